#include "engine/train/freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/name_pattern.h"

namespace tenon {

Freeze::Freeze(const std::string& patterns, std::string key) : key_(std::move(key)), patterns_(split_list(patterns)) {}

bool Freeze::holds(const std::string& tensor) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& p) { return fits_pattern(p, tensor); });
}

void Freeze::check(const std::vector<std::string>& names) const {
  for (const std::string& p : patterns_) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& n) { return fits_pattern(p, n); })) continue;
    const std::string near = near_names(p, names.data(), names.size());
    throw Error::usage(
        fmt::format("{}: the model has no parameter called \"{}\"{}", key_, p, near.empty() ? "" : " " + near),
        names.empty() ? "" : "the whole name is meant, as in \"" + names.front() + "\"; * stands for any text");
  }
}

}  // namespace tenon
