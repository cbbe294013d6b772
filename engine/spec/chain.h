#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon {

/// Writes a model layer by layer: each is wired to the one before, to one that was named, or to several.
struct Chain {
  ModelSpec model;
  Chain(std::string name, std::vector<int64_t> input, std::string dtype = "f32") {
    model.name = std::move(name);
    std::vector<Attr> attrs = {{"shape", std::move(input)}};
    if (dtype != "f32") attrs.push_back({"dtype", dtype});
    add("input", "Input", std::move(attrs));
  }
  Chain& add(std::string name, std::string type, std::vector<Attr> attrs = {}) {
    std::vector<std::string> from;
    if (!model.layers.empty()) from.push_back(here);
    return join(std::move(name), std::move(type), from, std::move(attrs));
  }
  /// A layer of several inputs, by port.
  Chain& join(std::string name, std::string type, const std::vector<std::string>& from, std::vector<Attr> attrs = {}) {
    for (size_t port = 0; port < from.size(); ++port)
      model.wires.push_back({from[port], 0, name, static_cast<int>(port)});
    model.layers.push_back({name, std::move(type), std::move(attrs), 0, 0});  // no place: the builder lays it out
    here = std::move(name);
    return *this;
  }
  /// The next layer follows this one.
  Chain& at(std::string name) {
    here = std::move(name);
    return *this;
  }
  ModelSpec done() { return add("output", "Output").model; }
  std::string here;  ///< what the next layer follows
};

}  // namespace tenon
