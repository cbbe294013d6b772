// Small networks on images, points, tables and time series.
#include <filesystem>

#include "core/file.h"
#include "engine/data/dataset.h"
#include "engine/data/tabular.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "engine/train/own_data.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

Attr out(const char* what, int64_t n) { return {what, n}; }

void sgd_cosine(Recipe& r, const char* lr) {
  set_keys(
      r, {{"optimizer.type", "sgd"}, {"optimizer.momentum", "0.9"}, {"optimizer.lr", lr}, {"schedule.type", "cosine"}});
}

Template::OwnData four_files() {
  return {Template::OwnData::Place::folder, "the four files of an IDX data set, such as MNIST's"};
}

Template fashion_cnn() {
  Template t{.title = "A small convolutional network that learns to tell 10 kinds of clothes apart (Fashion-MNIST)"};
  t.own_data = four_files();
  t.model =
      Chain("fashion-cnn", {1, 28, 28})
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
  sgd_cosine(t.recipe, "0.05");
  t.recipe.set("schedule.warmup_steps", "100");
  return t;
}

Template fashion_mlp() {
  Template t{.title = "Three fully connected layers on Fashion-MNIST"};
  t.own_data = four_files();
  t.model = Chain("fashion-mlp", {1, 28, 28})
                .add("flatten", "Flatten")
                .add("layers.0", "Linear", {out("out_features", 512)})
                .add("layers.1", "ReLU")
                .add("layers.2", "Linear", {out("out_features", 512)})
                .add("layers.3", "ReLU")
                .add("layers.4", "Linear", {out("out_features", 10)})
                .done();
  sgd_cosine(t.recipe, "0.05");
  t.recipe.set("schedule.warmup_steps", "100");
  return t;
}

Template autoencoder() {
  Template t{.title = "Squeezes images of clothes through 16 numbers and draws them again (Fashion-MNIST)"};
  t.own_data = four_files();
  t.model = Chain("autoencoder", {1, 28, 28})
                .add("flatten", "Flatten")
                .add("encoder.0", "Linear", {out("out_features", 256)})
                .add("encoder.1", "ReLU")
                .add("encoder.2", "Linear", {out("out_features", 16)})
                .add("decoder.0", "Linear", {out("out_features", 256)})
                .add("decoder.1", "ReLU")
                .add("decoder.2", "Linear", {out("out_features", 784)})
                .add("unflatten", "Unflatten", {{"dim", int64_t{1}}, {"unflattened_size", Ints{1, 28, 28}}})
                .done();
  set_keys(t.recipe, {{"data.target", "input"},
                      {"loss.type", "mse"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.002"},
                      {"schedule.type", "one_cycle"},
                      {"data.batch_size", "128"},
                      {"epochs", "5"}});
  return t;
}

Template spirals() {
  Template t{.title = "Which arm of two interleaved spirals a point belongs to; generated, needs no files"};
  t.model = Chain("spirals", {2})
                .add("layers.0", "Linear", {out("out_features", 64)})
                .add("layers.1", "ReLU")
                .add("layers.2", "Linear", {out("out_features", 64)})
                .add("layers.3", "ReLU")
                .add("layers.4", "Linear", {out("out_features", 2)})
                .done();
  set_keys(t.recipe, {{"data.dataset", "spirals"}, {"data.batch_size", "100"}, {"epochs", "50"}, {"eval_every", "5"}});
  sgd_cosine(t.recipe, "0.2");
  return t;
}

/// The generated table has 3 numbers, 4 colours and 3 places, and 3 classes.
ModelSpec tabular_model(int64_t inputs, int64_t outputs) {
  return Chain("tabular", {inputs})
      .add("layers.0", "Linear", {out("out_features", 128)})
      .add("layers.1", "ReLU")
      .add("layers.2", "Dropout", {{"p", 0.1}})
      .add("layers.3", "Linear", {out("out_features", 64)})
      .add("layers.4", "ReLU")
      .add("layers.5", "Linear", {out("out_features", outputs)})
      .done();
}

Template tabular() {
  Template t{.title = "Foretells one column of a table from the others; without one of yours it makes a table"};
  t.own_data = {Template::OwnData::Place::file, "a table (CSV)"};
  t.model = tabular_model(10, 3);
  set_keys(t.recipe, {{"data.dataset", "csv"},
                      {"epochs", "20"},
                      {"data.batch_size", "64"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.002"},
                      {"schedule.type", "cosine"}});
  t.fit = [](const Recipe&, const data::Dataset& train) {
    return tabular_model(train.input().shape[0], train.classes() > 0 ? train.classes() : 1);
  };
  t.prepare = [](Recipe& r, const std::string& data, const std::string& project) -> std::string {
    std::string path = data, note;
    if (path.empty()) {
      // Where the user can see it, change it, and put another in its place.
      std::filesystem::path beside = std::filesystem::absolute(project);
      path = beside.replace_extension(".csv").string();
      if (!std::filesystem::exists(path)) {
        write_file(path, data::example_csv(static_cast<uint64_t>(r.integer("seed"))));
        note = "No table was named: one was made, " + path;
      } else {
        note = "No table was named: " + path + " is there and is used";
      }
    }
    r.set("data.dir", path);
    // A label of numbers is a value to come near to, not a class.
    suit_to_data(r, *data::open_dataset("csv", {.dir = path, .attrs = r.attrs("data")}).train);
    return note;
  };
  return t;
}

const bool registered_basic = register_template("fashion-cnn", fashion_cnn) &&
                              register_template("fashion-mlp", fashion_mlp) &&
                              register_template("autoencoder", autoencoder) && register_template("spirals", spirals) &&
                              register_template("tabular", tabular);

}  // namespace
}  // namespace tenon
