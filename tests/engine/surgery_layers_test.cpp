// Surgery of recurrent layers and of attention that is wired by hand: see Note [Surgery].
#include <gtest/gtest.h>

#include "engine/model/layer_sizes.h"
#include "tests/engine/files.h"
#include "tests/engine/surgery_pair.h"
#include "tests/messages.h"

namespace tenon::surgery_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using testing_words::has;
using I = int64_t;
using Deed = SurgeryRow::Deed;

struct LayerPair : SurgeryPair {
  LayerPair(const ModelSpec& before, const ModelSpec& after, const Settings& set = {}) {
    begin(before, after, few_spirals(set), 12);
  }
};

/// 2 numbers as 4 steps of 6.
Chain steps() {
  Chain c("steps", {2});
  c.add("in", "Linear", {{"out_features", I{24}}})
      .add("act", "Tanh")
      .add("shape", "Unflatten", {{"dim", I{1}}, {"unflattened_size", std::vector<I>{4, 6}}});
  return c;
}
ModelSpec recurrent(const std::string& type, std::vector<Attr> more = {}) {
  std::vector<Attr> attrs = {{"hidden_size", I{8}}, {"output", std::string("last")}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return steps().add("rnn", type, attrs).add("head", "Linear", {{"out_features", I{2}}}).done();
}
int64_t whole_of(const ModelSpec& m, const std::string& layer, const std::string& attr) {
  return std::get<int64_t>(*m.find(layer)->find(attr));
}

TEST(SurgeryOfLayers, a_wider_recurrent_layer_computes_the_same) {
  for (const char* type : {"LSTM", "GRU", "RNN"})
    for (const std::vector<Attr>& more :
         {std::vector<Attr>{}, std::vector<Attr>{{"num_layers", I{2}}, {"bidirectional", true}},
          std::vector<Attr>{{"bias", false}}}) {
      SCOPED_TRACE(std::string(type) + " " + std::to_string(more.size()));
      const ModelSpec before = recurrent(type, more), after = with_channels(before, "rnn", 13);
      EXPECT_EQ(whole_of(after, "rnn", "hidden_size"), 13);
      LayerPair p(before, after);
      EXPECT_EQ(p.row("rnn.weight_ih_l0").deed, Deed::widened);
      EXPECT_EQ(p.row("rnn.weight_hh_l0").deed, Deed::widened);
      EXPECT_EQ((*p.row("rnn.weight_hh_l0").after)[1], 13);
      EXPECT_TRUE(has(p.row("head.weight").how, "weights shared out")) << p.row("head.weight").how;
      p.expect_same_function();
      run(*p.child, 3);
    }
}

TEST(SurgeryOfLayers, every_step_and_a_cell_go_with_what_reads_them) {
  Chain c = steps();
  c.add("rnn", "LSTM", {{"hidden_size", I{8}}})
      .add("norm", "LayerNorm")
      .add("second", "GRU", {{"hidden_size", I{5}}, {"output", std::string("last")}})
      .add("cell", "LSTMCell", {{"hidden_size", I{7}}})
      .add("head", "Linear", {{"out_features", I{2}}});
  const ModelSpec before = c.done();
  ModelSpec after = with_channels(before, "rnn", 16);  // twice: the norm sees the same
  after = with_channels(after, "second", 9);
  after = with_channels(after, "cell", 10);
  LayerPair p(before, after);
  EXPECT_EQ(p.row("norm.weight").deed, Deed::widened);
  EXPECT_EQ(p.row("second.weight_ih_l0").deed, Deed::widened);
  EXPECT_EQ(p.row("cell.weight_hh").deed, Deed::widened);
  p.expect_same_function();
}

TEST(SurgeryOfLayers, a_narrower_recurrent_layer_keeps_its_heaviest_units) {
  const ModelSpec before = recurrent("LSTM");
  LayerPair p(before, with_channels(before, "rnn", 5));
  EXPECT_EQ(p.row("rnn.weight_hh_l0").deed, Deed::narrowed);
  EXPECT_TRUE(has(p.row("rnn.weight_hh_l0").how, "20 of 32 outputs stay")) << p.row("rnn.weight_hh_l0").how;
  EXPECT_TRUE(has(p.row("head.weight").how, "5 of 8 inputs stay")) << p.row("head.weight").how;
  run(*p.child, 3);
}

TEST(SurgeryOfLayers, a_recurrent_layer_that_is_given_its_state_is_not_followed) {
  Chain c = steps();
  c.add("first", "Select")
      .join("cell", "GRUCell", {"first", "first"}, {{"hidden_size", I{6}}})
      .add("head", "Linear", {{"out_features", I{2}}});
  const ModelSpec before = c.done();
  const ModelSpec after = with_channels(before, "cell", 9);
  EXPECT_EQ(whole_of(after, "cell", "hidden_size"), 9);
  EXPECT_EQ(after.find("in")->attrs, before.find("in")->attrs);
}

/// Queries, keys and values of the steps, their products by hand; `bent`: the queries and keys go through a Tanh.
ModelSpec one_head(bool bent = false) {
  Chain c = steps();
  c.add("q", "Linear", {{"out_features", I{8}}});
  c.join("k", "Linear", {"shape"}, {{"out_features", I{8}}});
  c.join("v", "Linear", {"shape"}, {{"out_features", I{10}}});
  c.join("q_way", bent ? "Tanh" : "Identity", {"q"});
  c.join("k_way", bent ? "Tanh" : "Identity", {"k"});
  c.add("kt", "Permute", {{"dims", std::vector<I>{0, 2, 1}}});
  c.join("scores", "MatMul", {"q_way", "kt"}).add("soft", "Softmax").join("mix", "MatMul", {"soft", "v"});
  c.add("mean", "Mean").add("head", "Linear", {{"out_features", I{2}}});
  return c.done();
}

TEST(SurgeryOfLayers, attention_by_hand_computes_the_same_at_any_width) {
  const ModelSpec before = one_head();
  const ModelSpec wider = with_channels(before, "k", 11);
  EXPECT_EQ(whole_of(wider, "q", "out_features"), 11) << "their products are added up";
  EXPECT_EQ(whole_of(wider, "v", "out_features"), 10);
  for (const ModelSpec& after : {wider, with_channels(before, "v", 15), with_channels(wider, "v", 15)}) {
    LayerPair p(before, after);
    p.expect_same_function();
    run(*p.child, 3);
  }
  LayerPair fewer(before, with_channels(before, "q", 4));
  EXPECT_EQ(fewer.row("k.weight").deed, Deed::narrowed);
  run(*fewer.child, 3);
}

TEST(SurgeryOfLayers, products_that_cannot_stay_are_told) {
  const ModelSpec before = one_head(true);
  LayerPair p(before, with_channels(before, "q", 16));
  EXPECT_TRUE(has(p.row("q.weight").how, "which is another function")) << p.row("q.weight").how;
  run(*p.child, 3);
}

/// The same with heads of 4, by MatMul or by ScaledDotProductAttention.
ModelSpec heads(bool matmul, bool reshape) {
  Chain c = steps();
  for (const char* name : {"q", "k", "v"}) {
    const std::string n = name;
    c.join(n, "Linear", {"shape"}, {{"out_features", I{12}}});
    if (reshape)
      c.add(n + "_heads", "Reshape", {{"shape", std::vector<I>{4, 3, -1}}});
    else
      c.add(n + "_heads", "Unflatten", {{"dim", I{2}}, {"unflattened_size", std::vector<I>{3, 4}}});
    c.add(n + "_first", "Permute", {{"dims", std::vector<I>{0, 2, 1, 3}}});
  }
  if (matmul) {
    c.join("kt", "Permute", {"k_first"}, {{"dims", std::vector<I>{0, 1, 3, 2}}});
    c.join("scores", "MatMul", {"q_first", "kt"}).add("soft", "Softmax").join("mix", "MatMul", {"soft", "v_first"});
  } else {
    c.join("mix", "ScaledDotProductAttention", {"q_first", "k_first", "v_first"});
  }
  c.add("last", "Permute", {{"dims", std::vector<I>{0, 2, 1, 3}}});
  if (reshape)
    c.add("flat", "Reshape", {{"shape", std::vector<I>{4, 12}}});
  else
    c.add("flat", "Flatten", {{"start_dim", I{2}}});
  c.add("out", "Linear", {{"out_features", I{6}}}).add("mean", "Mean").add("head", "Linear", {{"out_features", I{2}}});
  return c.done();
}

TEST(SurgeryOfLayers, heads_by_hand_compute_the_same_and_take_their_shapes_along) {
  for (bool matmul : {false, true})
    for (bool reshape : {false, true}) {
      SCOPED_TRACE(std::to_string(matmul) + std::to_string(reshape));
      const ModelSpec before = heads(matmul, reshape);
      // Two more heads of 4; heads of 5.
      for (I width : {I{20}, I{15}}) {
        const ModelSpec after = with_channels(before, "v", width);
        for (const char* name : {"q", "k", "v"}) EXPECT_EQ(whole_of(after, name, "out_features"), width);
        const auto& of = *after.find("q_heads");
        const auto want = reshape ? std::vector<I>{4, width == 20 ? I{5} : I{3}, -1}
                                  : (width == 20 ? std::vector<I>{5, 4} : std::vector<I>{3, 5});
        EXPECT_EQ(std::get<std::vector<I>>(*of.find(reshape ? "shape" : "unflattened_size")), want);
        LayerPair p(before, after);
        EXPECT_EQ(p.row("out.weight").deed, Deed::widened);
        p.expect_same_function();
        run(*p.child, 3);
      }
      EXPECT_SAYS(error_of([&] { with_channels(before, "q", 14); }), "14 channels");
    }
}

}  // namespace
}  // namespace tenon::surgery_tests
