#include "engine/model/templates.h"

#include <algorithm>

#include "core/error.h"

namespace tenon {
namespace {

std::vector<Template (*)()>& makers() {
  static std::vector<Template (*)()> list;
  return list;
}

/// Layers one after the other, each wired to the next, down the canvas.
struct Chain {
  ModelSpec model;
  explicit Chain(std::string name, std::vector<int64_t> input) {
    model.name = std::move(name);
    add("input", "Input", {{"shape", std::move(input)}});
  }
  Chain& add(std::string name, std::string type, std::vector<Attr> attrs = {}) {
    LayerSpec l{std::move(name), std::move(type), std::move(attrs), 0, 0};  // no place: the builder lays it out
    if (!model.layers.empty()) model.wires.push_back({model.layers.back().name, 0, l.name, 0});
    model.layers.push_back(std::move(l));
    return *this;
  }
  ModelSpec done() { return add("output", "Output").model; }
};

using Ints = std::vector<int64_t>;

Attr out(const char* what, int64_t n) { return {what, n}; }

Template fashion_cnn() {
  Template t{"fashion-cnn", "A small convolutional network that learns to tell 10 kinds of clothes apart (Fashion-MNIST)", {}, {}};
  t.model = Chain("fashion-cnn", {1, 28, 28})
                .add("features.0", "Conv2d", {out("out_channels", 32), {"kernel_size", Ints{3, 3}}, {"padding", Ints{1, 1}}})
                .add("features.1", "ReLU")
                .add("features.2", "MaxPool2d", {{"kernel_size", Ints{2, 2}}})
                .add("features.3", "Conv2d", {out("out_channels", 64), {"kernel_size", Ints{3, 3}}, {"padding", Ints{1, 1}}})
                .add("features.4", "ReLU")
                .add("features.5", "MaxPool2d", {{"kernel_size", Ints{2, 2}}})
                .add("flatten", "Flatten")
                .add("classifier.0", "Linear", {out("out_features", 128)})
                .add("classifier.1", "ReLU")
                .add("classifier.2", "Linear", {out("out_features", 10)})
                .done();
  t.recipe.set("optimizer.type", "sgd");
  t.recipe.set("optimizer.momentum", "0.9");
  t.recipe.set("optimizer.lr", "0.05");
  t.recipe.set("schedule.type", "cosine");
  t.recipe.set("schedule.warmup_steps", "100");
  return t;
}

Template fashion_mlp() {
  Template t{"fashion-mlp", "Three fully connected layers on Fashion-MNIST", {}, {}};
  t.model = Chain("fashion-mlp", {1, 28, 28})
                .add("flatten", "Flatten")
                .add("layers.0", "Linear", {out("out_features", 512)})
                .add("layers.1", "ReLU")
                .add("layers.2", "Linear", {out("out_features", 512)})
                .add("layers.3", "ReLU")
                .add("layers.4", "Linear", {out("out_features", 10)})
                .done();
  t.recipe.set("optimizer.type", "sgd");
  t.recipe.set("optimizer.momentum", "0.9");
  t.recipe.set("optimizer.lr", "0.05");
  t.recipe.set("schedule.type", "cosine");
  t.recipe.set("schedule.warmup_steps", "100");
  return t;
}

Template spirals() {
  Template t{"spirals", "Which arm of two interleaved spirals a point belongs to; generated, needs no files", {}, {}};
  t.model = Chain("spirals", {2})
                .add("layers.0", "Linear", {out("out_features", 64)})
                .add("layers.1", "ReLU")
                .add("layers.2", "Linear", {out("out_features", 64)})
                .add("layers.3", "ReLU")
                .add("layers.4", "Linear", {out("out_features", 2)})
                .done();
  t.recipe.set("data.dataset", "spirals");
  t.recipe.set("data.batch_size", "100");
  t.recipe.set("epochs", "50");
  t.recipe.set("eval_every", "5");
  t.recipe.set("optimizer.type", "sgd");
  t.recipe.set("optimizer.momentum", "0.9");
  t.recipe.set("optimizer.lr", "0.2");
  t.recipe.set("schedule.type", "cosine");
  return t;
}

const bool registered = register_template(fashion_cnn) && register_template(fashion_mlp) && register_template(spirals);

}  // namespace

bool register_template(Template (*make)()) {
  makers().push_back(make);
  return true;
}

const std::vector<Template>& templates() {
  static const std::vector<Template> all = [] {
    std::vector<Template> list;
    for (auto make : makers()) list.push_back(make());
    std::sort(list.begin(), list.end(), [](const Template& a, const Template& b) { return a.name < b.name; });
    return list;
  }();
  return all;
}

const Template& find_template(const std::string& name) {
  std::vector<std::string> names;
  std::string list;
  for (const Template& t : templates()) {
    if (t.name == name) return t;
    names.push_back(t.name);
    list += (list.empty() ? "" : ", ") + t.name;
  }
  std::string near = near_names(name, names.data(), names.size());
  throw Error::usage("there is no template \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"), "the templates are " + list);
}

}  // namespace tenon
