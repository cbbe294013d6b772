#include "engine/nn/embedding.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/state.h"
#include "engine/nn/init.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

Tensor table(int64_t rows, int64_t width, Device device, DType dtype) {
  CategoryScope parameters(Category::parameter);
  return empty({rows, width}, dtype, device);
}
void reset_table(const Tensor& t, int64_t padding, uint64_t seed, const std::string& name) {
  init_normal(t, 0, 1, seed, name);
  if (padding >= 0 && !t.is_meta()) tenon::fill(select(t, 0, padding), 0);
}

}  // namespace

Embedding::Embedding(int64_t rows, int64_t width, int64_t padding_idx, Device device, DType dtype)
    : padding_(padding_idx), weight_(table(rows, width, device, dtype)) {
  if (padding_idx >= rows) throw Error(fmt::format("padding_idx {} is no row of {}", padding_idx, rows));
  add_parameter("weight", weight_);
}
Tensor Embedding::forward(const Tensor& index) { return embedding(index, weight_, padding_); }
void Embedding::reset(uint64_t seed) { reset_table(weight_, padding_, seed, path() + ".weight"); }
std::string Embedding::describe() const { return fmt::format("Embedding({} x {})", weight_.size(0), weight_.size(1)); }

EmbeddingBag::EmbeddingBag(int64_t rows, int64_t width, const EmbeddingBagOptions& options, Device device, DType dtype)
    : options_(options), weight_(table(rows, width, device, dtype)) {
  if (options.padding_idx >= rows)
    throw Error(fmt::format("padding_idx {} is no row of {}", options.padding_idx, rows));
  add_parameter("weight", weight_);
}
Tensor EmbeddingBag::forward(std::span<const Tensor> in) {
  auto given = [&](size_t i) { return i < in.size() ? in[i] : Tensor(); };
  return embedding_bag(in[0], weight_, given(1), options_, given(2));
}
void EmbeddingBag::reset(uint64_t seed) { reset_table(weight_, options_.padding_idx, seed, path() + ".weight"); }
std::string EmbeddingBag::describe() const {
  const char* modes[] = {"sum", "mean", "max"};
  return fmt::format("EmbeddingBag({} x {}, {})", weight_.size(0), weight_.size(1),
                     modes[static_cast<int>(options_.mode)]);
}

namespace {

using Made = std::shared_ptr<Module>;

std::vector<AttrDef> table_attrs() {
  return {{"num_embeddings", int64_t{256}, 1, 1e9, "rows: one more than the largest number"},
          {"embedding_dim", int64_t{64}, 1, 1e6, "size of a row"},
          {"padding_idx", int64_t{-1}, -1, 1e9, "a number whose row stays as it is; -1: none"}};
}
const bool embedding_layer =
    register_layer({{.type = "Embedding",
                     .group = "Sequence",
                     .help = "A trained row of values for every token. Its input is i64.",
                     .attrs = table_attrs(),
                     .examples = {{{2, 5}, DType::i64, 8}}},
                    [](const LayerArgs& a) -> Made {
                      return std::make_shared<Embedding>(a.integer("num_embeddings"), a.integer("embedding_dim"),
                                                         a.integer("padding_idx"), a.device);
                    }});

const bool bag_layer = [] {
  std::vector<AttrDef> attrs = table_attrs();
  attrs.push_back(
      {"mode", std::string("mean"), 0, 0, "how a bag's rows are joined: sum, mean or max", {"sum", "mean", "max"}});
  attrs.push_back({"include_last_offset", false, 0, 0, "the last offset is the end of the last bag"});
  return register_layer({{.type = "EmbeddingBag",
                          .group = "Sequence",
                          .help = "Joins the trained rows of a bag of numbers. Inputs: numbers, where bags begin (for "
                                  "numbers of one axis), weights of the numbers.",
                          .inputs = 3,
                          .attrs = std::move(attrs),
                          .optional = 2,
                          .examples = {{{2, 5}, DType::i64, 8}}},
                         [](const LayerArgs& a) -> Made {
                           std::string mode = a.text("mode");
                           EmbeddingBagOptions o{mode == "sum"    ? BagMode::sum
                                                 : mode == "mean" ? BagMode::mean
                                                                  : BagMode::max,
                                                 a.integer("padding_idx"), a.flag("include_last_offset")};
                           return std::make_shared<EmbeddingBag>(a.integer("num_embeddings"),
                                                                 a.integer("embedding_dim"), o, a.device);
                         }});
}();

}  // namespace
}  // namespace tenon::nn
