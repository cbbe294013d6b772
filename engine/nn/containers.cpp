#include "engine/nn/containers.h"

#include "core/error.h"

namespace tenon::nn {

void ModuleDict::insert(std::string name, std::shared_ptr<Module> m) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw Error("\"" + name + "\" cannot be a module's name: paths are joined by dots");
  if (contains(name)) throw Error("there is a module \"" + name + "\" already");
  add_child(std::move(name), std::move(m));
}

Module& ModuleDict::operator[](const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [n, m] : children()) {
    if (n == name) return *m;
    names.push_back(n);
  }
  std::string near = near_names(name, names.data(), names.size());
  throw Error("there is no module \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"));
}

bool ModuleDict::contains(const std::string& name) const {
  for (const auto& child : children())
    if (child.first == name) return true;
  return false;
}

}  // namespace tenon::nn
