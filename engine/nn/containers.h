#pragma once
#include "engine/nn/module.h"

namespace tenon::nn {

/// Modules by number ("0", "1", ...), run by whoever holds the list.
class ModuleList : public Module {
 public:
  explicit ModuleList(std::vector<std::shared_ptr<Module>> modules = {}) {
    for (auto& m : modules) push_back(std::move(m));
  }
  void push_back(std::shared_ptr<Module> m) { add_child(std::to_string(children().size()), std::move(m)); }
  size_t size() const { return children().size(); }
  Module& operator[](size_t i) const { return *children().at(i).second; }
  std::string describe() const override { return "ModuleList(" + std::to_string(size()) + ")"; }
};

/// Modules by name, in the order they were put in.
class ModuleDict : public Module {
 public:
  explicit ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules = {}) {
    for (auto& [name, m] : modules) insert(std::move(name), std::move(m));
  }
  /// Throws Error where the name is taken, empty, or has a dot.
  void insert(std::string name, std::shared_ptr<Module> m);
  /// Throws Error naming near ones where there is none of that name.
  Module& operator[](const std::string& name) const;
  bool contains(const std::string& name) const;
  std::string describe() const override { return "ModuleDict(" + std::to_string(children().size()) + ")"; }
};

}  // namespace tenon::nn
