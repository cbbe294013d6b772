// A recommender, a time series and sounds: generated data unless other arrays are named.
#include "engine/data/dataset.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"

namespace tenon {
namespace {

using I = int64_t;

/// Counts through a small network, words and bags of words through tables; products of pairs of them, then a network on
/// top (after Naumov et al., Deep learning recommendation model, 2019).
ModelSpec clicks(I users, I items) {
  constexpr I d = 16;
  Chain c("recommender", {12}, "i64");
  auto columns = [&](const char* name, I start, I length) {
    c.at("input").add(name, "Narrow", {{"start", start}, {"length", length}});
  };
  auto table = [&](const std::string& name, I start, I length, I rows) {
    columns((name + ".columns").c_str(), start, length);
    c.add(name + ".table", "EmbeddingBag", {{"num_embeddings", rows}, {"embedding_dim", d}});
  };
  columns("counts.columns", 0, 4);
  c.add("counts.cast", "Cast").add("counts.log", "Log1p");
  c.add("counts.0", "Linear", {{"out_features", I{32}}})
      .add("counts.1", "ReLU")
      .add("counts.2", "Linear", {{"out_features", d}})
      .add("counts.3", "ReLU");
  table("user", 4, 1, users);
  table("item", 5, 1, items);
  table("place", 6, 1, 4);
  table("history", 7, 5, items);
  c.join("user_item", "Mul", {"user.table", "item.table"});
  c.join("history_item", "Mul", {"history.table", "item.table"});
  c.join("counts_item", "Mul", {"counts.3", "item.table"});
  c.join("single", "Concat", {"counts.3", "user.table", "item.table", "place.table"});
  c.join("pairs", "Concat", {"user_item", "history_item", "counts_item", "history.table"});
  c.join("all", "Concat", {"single", "pairs"});
  c.add("top.0", "Linear", {{"out_features", I{64}}})
      .add("top.1", "ReLU")
      .add("top.2", "Linear", {{"out_features", I{1}}});
  return c.done();
}

Template recommender() {
  Template t{.title = "Whether an advert will be clicked, from counts, words and a history (generated clicks)"};
  t.model = clicks(200, 500);
  set_keys(t.recipe, {{"data.dataset", "clicks"},
                      {"data.batch_size", "256"},
                      {"epochs", "3"},
                      {"optimizer.type", "adam"},
                      {"optimizer.lr", "0.01"},
                      {"schedule.type", "cosine"},
                      {"loss.type", "bce_with_logits"}});
  t.fit = [](const Recipe& r, const data::Dataset&) {
    return clicks(r.integer("data.users"), r.integer("data.items"));
  };
  return t;
}

ModelSpec gru(I length, I features, I horizon) {
  return Chain("series", {length, features})
      .add("gru", "GRU", {{"hidden_size", I{64}}, {"output", std::string("last")}})
      .add("head", "Linear", {{"out_features", horizon}})
      .done();
}

Template series() {
  Template t{.title = "How a time series goes on; without one of yours generated waves"};
  t.own_data = {Template::OwnData::Place::folder, "x.npy [n, steps, features] and y.npy [n, values]"};
  t.kinds = {"npy"};
  t.model = gru(64, 1, 1);
  set_keys(t.recipe, {{"data.dataset", "series"},
                      {"data.batch_size", "64"},
                      {"epochs", "8"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.003"},
                      {"optimizer.clip_norm", "1"},
                      {"schedule.type", "cosine"},
                      {"loss.type", "mse"}});
  t.fit = [](const Recipe&, const data::Dataset& train) {
    const Shape x = train.input().shape, y = train.target().shape;
    return gru(x[0], x.n > 1 ? x[1] : 1, y.n ? y[0] : 1);
  };
  t.prepare = [](Recipe& r, const std::string& data, const std::string&) -> std::string {
    if (data.empty()) return "";
    r.set("data.dataset", "npy");
    r.set("data.dir", data);
    return "";
  };
  return t;
}

/// A small convolutional network over spectrograms.
ModelSpec sound_net(const Shape& picture, I classes) {
  Chain c("sounds", {picture[0], picture[1], picture[2]});
  I channels = 16;
  for (const char* k : {"0", "1", "2"}) {
    c.add(std::string("conv") + k, "Conv2d",
          {{"out_channels", channels}, {"kernel_size", std::vector<I>{3, 3}}, {"padding", std::vector<I>{1, 1}}})
        .add(std::string("bn") + k, "BatchNorm2d")
        .add(std::string("relu") + k, "ReLU")
        .add(std::string("pool") + k, "MaxPool2d", {{"kernel_size", std::vector<I>{2, 2}}});
    channels *= 2;
  }
  return c.add("mean", "AdaptiveAvgPool2d", {{"output_size", std::vector<I>{1, 1}}})
      .add("flat", "Flatten")
      .add("head", "Linear", {{"out_features", classes}})
      .done();
}

Template sounds() {
  Template t{.title = "Tells sounds apart by their spectrograms; without some of yours generated tones"};
  t.own_data = {Template::OwnData::Place::folder, "sounds (WAV), one folder a class"};
  t.model = sound_net({1, 40, 98}, 3);
  set_keys(t.recipe, {{"data.dataset", "audio-folder"},
                      {"data.batch_size", "16"},
                      {"data.transforms", "shift; log_mel; normalise mean=-4 std=4"},
                      {"epochs", "6"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.003"},
                      {"schedule.type", "one_cycle"}});
  t.fit = [](const Recipe&, const data::Dataset& train) { return sound_net(train.input().shape, train.classes()); };
  return t;
}

const bool registered_more = register_template("sounds", sounds) && register_template("recommender", recommender) &&
                             register_template("series", series);

}  // namespace
}  // namespace tenon
