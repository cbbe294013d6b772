// Models of text: each foretells the next token at every place of a window.
#include "engine/data/dataset.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"

namespace tenon {
namespace {

using I = int64_t;

/// Blocks of causal attention and a feed-forward network, each added to what came in (Radford et al., 2019: norms in
/// front).
ModelSpec gpt(I vocabulary, I context, I width, I heads, I blocks) {
  Chain c("byte-gpt", {context}, "i64");
  c.add("embed", "Embedding", {{"num_embeddings", vocabulary}, {"embedding_dim", width}});
  c.add("positions", "LearnedPositions", {{"max_length", context}});
  for (I i = 0; i < blocks; ++i) {
    const std::string p = "blocks." + std::to_string(i) + ".", from = c.here;
    c.add(p + "norm1", "LayerNorm");
    c.add(p + "attention", "MultiheadAttention", {{"num_heads", heads}, {"causal", true}});
    c.join(p + "add1", "Add", {from, c.here});
    const std::string middle = c.here;
    c.add(p + "norm2", "LayerNorm");
    c.add(p + "up", "Linear", {{"out_features", 4 * width}});
    c.add(p + "act", "ReLU");
    c.add(p + "down", "Linear", {{"out_features", width}});
    c.join(p + "add2", "Add", {middle, c.here});
  }
  c.add("norm", "LayerNorm");
  c.add("head", "Linear", {{"out_features", vocabulary}});
  return c.done();
}

std::string usual_text(Recipe& r, const std::string& data, const std::string&) {
  if (!data.empty()) {
    r.set("data.dir", data);
    return "";
  }
  if (!r.text("data.dir").empty()) return "";
  return "No text was named: the licences in /usr/share/common-licenses are read";
}

Template byte_gpt() {
  Template t{
      .title = "A small transformer that writes on any text, byte by byte; without one of yours the system's licences"};
  t.own_data = {Template::OwnData::Place::file, "a text of any kind"};
  t.model = gpt(256, 128, 128, 4, 4);
  set_keys(t.recipe, {{"data.dataset", "text"},
                      {"data.batch_size", "32"},
                      {"data.test_samples", "200"},
                      {"epochs", "3"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.002"},
                      {"optimizer.beta2", "0.95"},
                      {"optimizer.weight_decay", "0.1"},
                      {"optimizer.decay_all", "false"},
                      {"optimizer.clip_norm", "1"},
                      {"schedule.type", "cosine"},
                      {"schedule.warmup_steps", "100"},
                      {"schedule.min_lr", "0.0002"}});
  t.fit = [](const Recipe& r, const data::Dataset& train) {
    return gpt(train.classes(), r.integer("data.context"), 128, 4, 4);
  };
  t.prepare = usual_text;
  return t;
}

ModelSpec lstm(I vocabulary, I context) {
  return Chain("byte-lstm", {context}, "i64")
      .add("embed", "Embedding", {{"num_embeddings", vocabulary}, {"embedding_dim", I{64}}})
      .add("lstm", "LSTM", {{"hidden_size", I{256}}})
      .add("head", "Linear", {{"out_features", vocabulary}})
      .done();
}

Template byte_lstm() {
  Template t{
      .title = "A recurrent network that writes on any text, byte by byte; without one of yours the system's licences"};
  t.own_data = {Template::OwnData::Place::file, "a text of any kind"};
  t.model = lstm(256, 128);
  set_keys(t.recipe, {{"data.dataset", "text"},
                      {"data.batch_size", "32"},
                      {"data.test_samples", "200"},
                      {"epochs", "3"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.003"},
                      {"optimizer.decay_all", "false"},
                      {"optimizer.clip_norm", "1"},
                      {"schedule.type", "cosine"},
                      {"schedule.warmup_steps", "50"},
                      {"schedule.min_lr", "0.0003"}});
  t.fit = [](const Recipe& r, const data::Dataset& train) { return lstm(train.classes(), r.integer("data.context")); };
  t.prepare = usual_text;
  return t;
}

const bool registered_text = register_template("byte-gpt", byte_gpt) && register_template("byte-lstm", byte_lstm);

}  // namespace
}  // namespace tenon
