#include "core/registry.h"

#include <atomic>

#include "core/error.h"

namespace tenon {
namespace {

constinit std::atomic<uint64_t> g_generation{1};
constinit thread_local RegistryScope* t_scope = nullptr;

}  // namespace

std::string place_text(const Place& place) {
  std::string_view file = place.file_name();
  while (file.starts_with("../")) file.remove_prefix(3);  // relative to a build folder, where this file is not
  return std::string(file) + ":" + std::to_string(place.line());
}

uint64_t registry_generation() { return g_generation.load(std::memory_order_acquire); }

RegistryScope* RegistryBase::open_scope() { return t_scope; }
void RegistryBase::changed() { g_generation.fetch_add(1, std::memory_order_acq_rel); }

void RegistryBase::added(const std::string& name, const Origin& by) {
  if (by.scope) by.scope->added_.emplace_back(this, name);
  changed();
}

void RegistryBase::refused(const std::string& name, const Origin& first, const Origin& second) {
  auto where = [](const Origin& o) {
    const std::string s = place_text(o.place);
    return o.scope ? s + " of " + o.scope->from() : s;
  };
  std::string& clash = second.scope ? second.scope->clash_ : clash_;
  if (clash.empty())
    clash = "the " + what_ + " \"" + name + "\" is defined twice, in " + where(first) + " and in " + where(second);
}

void RegistryBase::check() const {
  if (!clash_.empty()) throw Error(clash_, "give one of them another name");
}

void RegistryBase::no_such(const std::string& name, const std::vector<std::string>& there) const {
  std::string list, near = near_names(name, there.data(), there.size());
  for (const std::string& n : there) list += (list.empty() ? "" : ", ") + n;
  throw Error::usage("no " + what_ + " is called \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"),
                     "there are " + list);
}

RegistryScope::RegistryScope(std::string from) : from_(std::move(from)), outer_(t_scope) { t_scope = this; }

RegistryScope::~RegistryScope() {
  if (open_) t_scope = outer_;
  for (auto at = added_.rbegin(); at != added_.rend(); ++at) at->first->remove(at->second);
}

void RegistryScope::close() {
  if (open_) t_scope = outer_;
  open_ = false;
  if (!clash_.empty()) throw Error(clash_, "give one of them another name");
}

std::vector<RegistryScope::Added> RegistryScope::added() const {
  std::vector<Added> all;
  for (const auto& [registry, name] : added_) all.push_back({registry->what(), name});
  return all;
}

}  // namespace tenon
