#include "views/shared/document_state.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/sha256.h"
#include "views/shared/settings.h"

namespace tenon::views {

using nlohmann::json;

namespace {
std::string full_path(const std::string& path) {
  std::error_code code;
  const auto whole = std::filesystem::weakly_canonical(path, code);
  return code ? path : whole.string();
}
std::string folder_of_states() { return settings::folder() + "/documents"; }
std::string state_file(const std::string& path) {
  return folder_of_states() + "/" + hex(Sha256().update(full_path(path)).finish()).substr(0, 32) + ".json";
}

double number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  const double v = found != object.end() && found->is_number() ? found->get<double>() : 0;
  return std::isfinite(v) ? v : 0;
}
}  // namespace

DocumentState document_state(const std::string& path) {
  DocumentState state;
  try {
    const std::string file = state_file(path);
    if (!std::filesystem::exists(file)) return state;
    const json all = json::parse(read_file(file), nullptr, false);
    if (!all.is_object() || all.value("path", std::string()) != full_path(path)) return state;
    state.lo = number_of(all, "from"), state.hi = number_of(all, "to");
    for (const json& folded : all.value("folded", json::array())) state.folded.push_back(folded == true);
    for (const json& pinned : all.value("pinned", json::array())) state.pinned.push_back(pinned == true);
    if (const json memory = all.value("memory", json()); memory.is_object())
      state.memory = {static_cast<int64_t>(std::clamp(number_of(memory, "trace"), -1.0, 1e9)),
                      memory.value("by", std::string()), memory.value("over_time", false),
                      static_cast<int64_t>(std::clamp(number_of(memory, "cursor"), 0.0, 1e15))};
    for (const json& b : all.value("bookmarks", json::array()))
      if (b.is_object()) {
        const double from = number_of(b, "from");
        state.bookmarks.push_back({from, std::max(from, number_of(b, "to")), b.value("note", std::string())});
      }
    return state;
  } catch (const std::exception&) {
    return {};
  }
}

void set_document_state(const std::string& path, const DocumentState& state) {
  const std::string file = state_file(path);
  std::error_code code;
  if (state == DocumentState{}) {
    std::filesystem::remove(file, code);
    return;
  }
  std::filesystem::create_directories(folder_of_states(), code);
  if (code) throw Error(folder_of_states() + ": the folder cannot be made: " + code.message(), "Nothing was kept.");
  json all = {{"path", full_path(path)}, {"from", state.lo}, {"to", state.hi}};
  all["folded"] = state.folded;
  all["pinned"] = state.pinned;
  if (const auto& m = state.memory; m.trace >= 0)
    all["memory"] = {{"trace", m.trace}, {"by", m.by}, {"over_time", m.over_time}, {"cursor", m.cursor}};
  all["bookmarks"] = json::array();
  for (const Bookmark& b : state.bookmarks)
    all["bookmarks"].push_back({{"from", b.from}, {"to", b.to}, {"note", b.note}});
  write_file(file, all.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace tenon::views
