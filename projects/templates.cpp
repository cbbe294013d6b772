#include "projects/templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::projects {
namespace {

std::vector<Template>& table() {
  static std::vector<Template> all;
  return all;
}

using Ints = std::vector<int64_t>;

/// Layers one after the other, laid out from left to right in rows.
ModelSpec chain(std::string name, std::vector<LayerSpec> layers) {
  constexpr int kPerRow = 6;
  constexpr double kDx = 190, kDy = 150;
  ModelSpec m;
  m.name = std::move(name);
  layers.insert(layers.begin(), {"input", "Input", {}});
  layers.push_back({"output", "Output", {}});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].x = 40 + kDx * static_cast<double>(i % kPerRow);
    layers[i].y = 60 + kDy * static_cast<double>(i / kPerRow);
    if (i > 0) m.wires.push_back({layers[i - 1].name, 0, layers[i].name, 0});
  }
  m.layers = std::move(layers);
  return m;
}

LayerSpec input(LayerSpec l, Ints shape) {
  l.attrs = {{"shape", std::move(shape)}};
  return l;
}

ModelSpec with_input(ModelSpec m, Ints shape) {
  m.layers.front() = input(m.layers.front(), std::move(shape));
  return m;
}

LayerSpec conv(std::string name, int64_t out) {
  return {std::move(name), "Conv2d", {{"out_channels", out}, {"kernel_size", Ints{3, 3}}, {"padding", Ints{1, 1}}}};
}
LayerSpec pool(std::string name) { return {std::move(name), "MaxPool2d", {{"kernel_size", Ints{2, 2}}}}; }
LayerSpec relu(std::string name) { return {std::move(name), "ReLU", {}}; }
LayerSpec linear(std::string name, int64_t out) { return {std::move(name), "Linear", {{"out_features", out}}}; }

const bool cnn = register_template(
    {"fashion-cnn", "70,000 pictures of clothes, 10 classes: two convolutions, 421,642 parameters",
     [] {
       return with_input(chain("fashion-cnn", {conv("conv1", 32), relu("relu1"), pool("pool1"), conv("conv2", 64), relu("relu2"), pool("pool2"),
                                               {"flatten", "Flatten", {}}, linear("fc1", 128), relu("relu3"), linear("fc2", 10)}),
                         {1, 28, 28});
     },
     [] {
       return nlohmann::json{{"seed", 1},
                             {"epochs", 3},
                             {"data", {{"dataset", "fashion-mnist"}, {"batch_size", 64}}},
                             {"optimizer", {{"type", "adam"}, {"lr", 1e-3}}},
                             {"schedule", {{"type", "cosine"}, {"warmup_steps", 100}}}};
     },
     true});

const bool mlp = register_template(
    {"fashion-mlp", "the same pictures through three dense layers, 669,706 parameters",
     [] {
       return with_input(chain("fashion-mlp", {{"flatten", "Flatten", {}}, linear("fc1", 512), relu("relu1"), linear("fc2", 512), relu("relu2"), linear("fc3", 10)}),
                         {1, 28, 28});
     },
     [] {
       return nlohmann::json{{"seed", 1},
                             {"epochs", 3},
                             {"data", {{"dataset", "fashion-mnist"}, {"batch_size", 64}}},
                             {"optimizer", {{"type", "adam"}, {"lr", 1e-3}}},
                             {"schedule", {{"type", "cosine"}, {"warmup_steps", 100}}}};
     },
     true});

const bool spirals = register_template(
    {"spirals", "points on two interleaved spirals, generated: needs no files and trains in seconds",
     [] {
       return with_input(chain("spirals", {linear("fc1", 32), {"tanh1", "Tanh", {}}, linear("fc2", 32), {"tanh2", "Tanh", {}}, linear("fc3", 2)}), {2});
     },
     [] {
       return nlohmann::json{{"seed", 1},
                             {"epochs", 40},
                             {"data", {{"dataset", "spirals"}, {"batch_size", 50}}},
                             {"optimizer", {{"type", "adam"}, {"lr", 1e-2}}},
                             {"schedule", {{"type", "cosine"}}}};
     },
     false});

}  // namespace

bool register_template(Template t) {
  auto& all = table();
  all.insert(std::upper_bound(all.begin(), all.end(), t, [](const Template& a, const Template& b) { return a.name < b.name; }), std::move(t));
  return true;
}

const std::vector<Template>& templates() { return table(); }

const Template& find_template(const std::string& name) {
  std::vector<std::string> names;
  for (const Template& t : templates()) {
    if (t.name == name) return t;
    names.push_back(t.name);
  }
  const std::string near = near_names(name, names.data(), names.size());
  throw Error::usage(fmt::format("there is no template \"{}\"", name), near.empty() ? fmt::format("There are: {}", fmt::join(names, ", ")) : near);
}

}  // namespace tenon::projects
