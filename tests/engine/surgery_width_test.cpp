// Wider and narrower models of attention, norms and embeddings: see Note [Surgery].
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/model/layer_sizes.h"
#include "engine/train/surgery.h"
#include "tests/engine/files.h"
#include "tests/engine/surgery_pair.h"
#include "tests/messages.h"

namespace tenon::surgery_width_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using testing_words::has;
using I = int64_t;
using Deed = SurgeryRow::Deed;
using Ints = std::vector<I>;

/// A parent that trained on letters, and the session of another model that goes on from there.
struct SurgeryOfWidths : ::testing::Test, SurgeryPair {
  testing_files::Folder folder;
  Settings set;

  void SetUp() override {
    std::string letters;
    for (int i = 0; i < 400; ++i) letters += static_cast<char>('a' + (i * i + i / 7) % 26);
    testing_files::write(folder.file("letters.txt"), letters);
    set = {{"data.dataset", "text"},     {"data.dir", folder.file("letters.txt")},
           {"data.cache", folder.str()}, {"data.context", "6"},
           {"data.batch_size", "8"},     {"optimizer.lr", "0.01"},
           {"optimizer.type", "adamw"}};
  }
  void operate(const ModelSpec& before, const ModelSpec& after) { begin(before, after, with(spirals({}), set), 5); }
  /// ... and then it goes on, finite.
  void expect_same_function() {
    SurgeryPair::expect_same_function();
    run(*child, 3);
    EXPECT_TRUE(std::isfinite(child->loss_ahead()));
  }
  void expect_other_function() {
    EXPECT_GT(std::abs(child->loss_ahead() - parent->loss_ahead()), 1e-5);
    run(*child, 3);
    EXPECT_TRUE(std::isfinite(child->loss_ahead()));
  }
};

/// As the template byte-gpt, of 8 features in 2 heads.
ModelSpec gpt(I heads = 2, I words = 256, const char* norm = "LayerNorm") {
  Chain c("gpt", {6}, "i64");
  c.add("embed", "Embedding", {{"num_embeddings", words}, {"embedding_dim", I{8}}});
  c.add("positions", "LearnedPositions", {{"max_length", I{6}}});
  for (const std::string n : {"b0.", "b1."}) {
    const std::string x = c.here;
    c.add(n + "norm1", norm, {{"normalized_shape", Ints{8}}});
    c.add(n + "attention", "MultiheadAttention", {{"num_heads", heads}, {"causal", true}});
    c.join(n + "add1", "Add", {x, c.here});
    const std::string middle = c.here;
    c.add(n + "norm2", norm).add(n + "up", "Linear", {{"out_features", I{12}}}).add(n + "act", "ReLU");
    c.add(n + "down", "Linear", {{"out_features", I{8}}}).join(n + "add2", "Add", {middle, c.here});
  }
  return c.add("norm", norm).add("head", "Linear", {{"out_features", I{256}}}).done();
}
ModelSpec with_value(ModelSpec model, const std::string& layer, const char* attr, AttrValue value) {
  set_anyway(*model.find(layer), attr, std::move(value));
  return model;
}
I number(const ModelSpec& model, const std::string& layer, const char* attr) {
  return std::get<I>(*model.find(layer)->find(attr));
}

TEST_F(SurgeryOfWidths, a_model_of_attention_gets_twice_as_wide_and_computes_the_same) {
  for (const char* norm : {"LayerNorm", "RMSNorm"}) {
    SCOPED_TRACE(norm);
    const ModelSpec wide = with_channels(gpt(2, 256, norm), "embed", 16);
    EXPECT_EQ(number(wide, "b0.down", "out_features"), 16) << "what is added up goes together";
    EXPECT_EQ(number(wide, "b1.attention", "num_heads"), 4) << "heads stay as large as they were";
    EXPECT_EQ(std::get<Ints>(*wide.find("b0.norm1")->find("normalized_shape")), Ints{16});
    operate(gpt(2, 256, norm), wide);
    EXPECT_EQ(row("embed.weight").how, "8 more columns, copies of others");
    EXPECT_EQ(row("positions.weight").deed, Deed::widened);
    EXPECT_EQ(row("b0.attention.in_proj_weight").how,
              "24 more outputs, copies of others; 8 more inputs, weights shared out");
    EXPECT_EQ(row("b0.up.weight").how, "8 more inputs, weights shared out");
    EXPECT_EQ(row("norm.weight").how, "8 more values, copies of others");
    for (const SurgeryRow& r : rows) EXPECT_NE(r.deed, Deed::begun) << r.tensor;
    expect_same_function();
  }
}

TEST_F(SurgeryOfWidths, heads_of_twice_the_size_compute_the_same) {
  const ModelSpec wide = with_value(with_value(with_channels(gpt(), "embed", 16), "b0.attention", "num_heads", I{2}),
                                    "b1.attention", "num_heads", I{2});
  operate(gpt(), wide);
  expect_same_function();
  // One head is one still.
  const ModelSpec one = with_channels(gpt(1), "embed", 24);
  EXPECT_EQ(number(one, "b0.attention", "num_heads"), 1);
  operate(gpt(1), one);
  expect_same_function();
}

TEST_F(SurgeryOfWidths, a_width_that_a_norm_notices_is_told) {
  operate(gpt(), with_channels(gpt(), "embed", 12));
  EXPECT_TRUE(has(row("b0.norm1.weight").how, "mean and variance of 12 channels, of which some count more often"));
  EXPECT_TRUE(has(row("b0.norm1.weight").how, "those of 8 stay at a multiple of it"));
  EXPECT_EQ(row("embed.weight").deed, Deed::widened);
  expect_other_function();
  EXPECT_TRUE(has(error_of([] { with_channels(gpt(), "embed", 9); }), "num_heads = 2 of 4 each"));
}

TEST_F(SurgeryOfWidths, fewer_features_take_whole_heads_out) {
  const ModelSpec narrow = with_channels(gpt(), "embed", 4);
  EXPECT_EQ(number(narrow, "b0.attention", "num_heads"), 1);
  operate(gpt(), narrow);
  EXPECT_EQ(row("b0.attention.out_proj.weight").how, "4 of 8 outputs stay; 4 of 8 inputs stay");
  EXPECT_TRUE(has(row("norm.weight").how, "of 4 channels instead of 8"));
  for (const SurgeryRow& r : rows) EXPECT_NE(r.deed, Deed::begun) << r.tensor;
  expect_other_function();
}

TEST_F(SurgeryOfWidths, other_heads_of_the_same_width_are_told) {
  operate(gpt(), with_value(gpt(), "b0.attention", "num_heads", I{4}));
  EXPECT_EQ(row("b0.attention.in_proj_weight").deed, Deed::resized);
  EXPECT_EQ(row("b0.attention.in_proj_weight").how,
            "4 of 2 channels each instead of 2 of 4, which is another function");
  EXPECT_EQ(row("b1.attention.in_proj_weight").deed, Deed::kept);
  expect_other_function();
}

TEST_F(SurgeryOfWidths, a_bottleneck_between_two_linears_gets_any_width) {
  const ModelSpec wide = with_channels(gpt(), "b1.up", 17);
  operate(gpt(), wide);
  EXPECT_EQ(row("b1.down.weight").how, "5 more inputs, weights shared out");
  EXPECT_EQ(row("b1.norm2.weight").deed, Deed::kept);
  expect_same_function();
}

TEST_F(SurgeryOfWidths, an_embedding_gets_rows_and_positions_and_keeps_those_it_had) {
  operate(gpt(), with_value(with_value(gpt(), "embed", "num_embeddings", I{300}), "positions", "max_length", I{10}));
  EXPECT_EQ(row("embed.weight").how, "44 more rows as the seed gives them");
  EXPECT_EQ(row("positions.weight").how, "4 more rows as the seed gives them");
  expect_same_function();
}

/// Layers of a transformer as PyTorch has them, and stacks of them.
ModelSpec layers_of(const char* type, bool norm_first, I layers = 0) {
  Chain c("stack", {6}, "i64");
  c.add("embed", "Embedding", {{"num_embeddings", I{256}}, {"embedding_dim", I{8}}});
  std::vector<Attr> attrs = {{"nhead", I{2}}, {"dim_feedforward", I{12}}, {"dropout", 0.0}, {"norm_first", norm_first}};
  if (layers) attrs.push_back({"num_layers", layers}), attrs.push_back({"norm", true});
  const std::string x = c.here;
  if (std::string(type).find("Decoder") != std::string::npos)
    c.join("block", type, {x, x}, attrs);
  else
    c.add("block", type, attrs);
  return c.add("head", "Linear", {{"out_features", I{256}}}).done();
}

TEST_F(SurgeryOfWidths, layers_of_a_transformer_get_wider_and_compute_the_same) {
  for (const bool norm_first : {true, false})
    for (const auto& [type, layers] : {std::pair("TransformerEncoderLayer", I{0}),
                                       {"TransformerDecoderLayer", I{0}},
                                       {"TransformerEncoder", I{2}},
                                       {"TransformerDecoder", I{2}}}) {
      SCOPED_TRACE(std::string(type) + (norm_first ? ", norms first" : ""));
      const ModelSpec before = layers_of(type, norm_first, layers), wide = with_channels(before, "embed", 16);
      EXPECT_EQ(number(wide, "block", "nhead"), 4);
      operate(before, wide);
      for (const SurgeryRow& r : rows) EXPECT_NE(r.deed, Deed::begun) << r.tensor;
      expect_same_function();
      operate(before, with_channels(before, "block", 19));
      EXPECT_EQ(row("head.weight").deed, Deed::kept);
      expect_same_function();
    }
}

TEST_F(SurgeryOfWidths, groups_of_a_norm_are_copied_as_a_whole) {
  const auto model = [](I groups) {
    Chain c("groups", {6}, "i64");
    c.add("embed", "Embedding", {{"num_embeddings", I{256}}, {"embedding_dim", I{8}}});
    c.add("turn", "Permute", {{"dims", Ints{0, 2, 1}}});
    c.add("conv", "Conv1d", {{"out_channels", I{6}}, {"kernel_size", Ints{3}}, {"padding", Ints{1}}});
    c.add("norm", "GroupNorm", {{"num_groups", groups}}).add("act", "ReLU");
    c.add("back", "Permute", {{"dims", Ints{0, 2, 1}}});
    return c.add("head", "Linear", {{"out_features", I{256}}}).done();
  };
  for (const auto& [groups, channels, then] : {std::tuple<I, I, I>{3, 8, 4}, {2, 12, 4}, {1, 12, 1}, {6, 9, 9}}) {
    SCOPED_TRACE(groups);
    const ModelSpec wide = with_channels(model(groups), "conv", channels);
    EXPECT_EQ(number(wide, "norm", "num_groups"), then);
    operate(model(groups), wide);
    EXPECT_EQ(row("head.weight").deed, Deed::widened);
    EXPECT_EQ(row("embed.weight").deed, Deed::kept);
    expect_same_function();
  }
  operate(model(2), with_channels(model(2), "embed", 11));
  EXPECT_EQ(row("conv.weight").how, "3 more inputs, weights shared out");
  expect_same_function();
}

TEST_F(SurgeryOfWidths, what_the_optimizer_and_averages_remember_goes_along) {
  set.emplace_back("average.type", "ema");
  operate(gpt(), with_channels(gpt(), "embed", 16));
  const Checkpoint was = parent->save(), is = child->save();
  const auto find = [](const Checkpoint& c, const std::string& head) {
    for (const auto& [name, t] : c.tensors)
      if (name.starts_with(head)) return t;
    throw Error("no tensor " + head);
  };
  for (const char* head : {"optimizer/embed.weight/", "average/embed.weight"}) {
    const Tensor a = find(was, head), b = find(is, head);
    ASSERT_EQ(b.size(1), 2 * a.size(1)) << head;
    const float *x = a.data<float>(), *y = b.data<float>();
    for (I r = 0; r < a.size(0); ++r)
      for (I c = 0; c < 16; ++c) ASSERT_EQ(y[r * 16 + c], x[r * 8 + c % 8]) << head;
  }
  EXPECT_NEAR(child->evaluate().loss, parent->evaluate().loss, 1e-6 * std::max(1.0, parent->evaluate().loss));
  expect_same_function();
}

}  // namespace
}  // namespace tenon::surgery_width_tests
