// Sessions that go on with another model: see Note [Surgery].
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/tensor_values.h"
#include "engine/model/layer_sizes.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/optim/optimizer.h"
#include "engine/train/surgery.h"
#include "tests/engine/files.h"
#include "tests/engine/surgery_pair.h"
#include "tests/messages.h"

namespace tenon::surgery_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using testing_words::has;
using I = int64_t;
using Rows = std::vector<SurgeryRow>;
using Deed = SurgeryRow::Deed;

ModelSpec plain(I width = 16) {
  return Chain("plain", {2})
      .add("fc1", "Linear", {{"out_features", width}})
      .add("act1", "ReLU")
      .add("fc2", "Linear", {{"out_features", I{12}}})
      .add("act2", "Tanh")
      .add("fc3", "Linear", {{"out_features", I{2}}})
      .done();
}
/// 2 numbers as 4 channels of 4 x 4, convolutions with a norm, a sum and a Concat, Flatten, Linear.
ModelSpec image(I width = 6) {
  Chain c("image", {2});
  c.add("in", "Linear", {{"out_features", I{64}}})
      .add("shape", "Unflatten", {{"dim", I{1}}, {"unflattened_size", std::vector<I>{4, 4, 4}}})
      .add("conv1", "Conv2d", {{"out_channels", width}, {"padding", std::vector<I>{1, 1}}})
      .add("bn1", "BatchNorm2d")
      .add("act1", "ReLU")
      .add("conv2", "Conv2d", {{"out_channels", width}, {"padding", std::vector<I>{1, 1}}})
      .add("act2", "Tanh")
      .join("sum", "Add", {"act1", "act2"})
      .add("side", "Conv2d", {{"out_channels", I{3}}, {"kernel_size", std::vector<I>{1, 1}}})
      .join("cat", "Concat", {"side", "sum"})
      .add("pool", "MaxPool2d", {{"kernel_size", std::vector<I>{2, 2}}})
      .add("flat", "Flatten")
      .add("fc", "Linear", {{"out_features", I{2}}});
  return c.done();
}

struct Pair : SurgeryPair {
  Recipe told;
  Pair(const ModelSpec& before, const ModelSpec& after, const Settings& set = {}, I steps = 12)
      : told(few_spirals(set)) {
    begin(before, after, told, steps);
  }
};

std::map<std::string, Tensor> tensors_of(const Checkpoint& c) { return {c.tensors.begin(), c.tensors.end()}; }
std::vector<double> values(const Tensor& t) {
  std::vector<double> all(static_cast<size_t>(t.numel()));
  read_values(t, 0, t.numel(), all.data());
  return all;
}

TEST(Surgery, the_same_model_is_the_parent_bit_for_bit) {
  Pair p(plain(), plain());
  for (const SurgeryRow& r : p.rows) EXPECT_EQ(r.deed, Deed::kept) << r.tensor;
  for (int i = 0; i < 6; ++i) {
    expect_same(p.child->save(), p.parent->save());
    run(*p.child, 1);
    run(*p.parent, 1);
  }
}

TEST(Surgery, a_wider_linear_computes_the_same) {
  Pair p(plain(), with_channels(plain(), "fc1", 24));
  EXPECT_EQ(p.row("fc1.weight").deed, Deed::widened);
  EXPECT_EQ(p.row("fc1.weight").how, "8 more outputs, copies of others");
  EXPECT_EQ(p.row("fc1.bias").how, "8 more values, copies of others");
  EXPECT_EQ(p.row("fc2.weight").how, "8 more inputs, weights shared out");
  EXPECT_EQ(p.row("fc3.weight").deed, Deed::kept);
  p.expect_same_function();
}

TEST(Surgery, copies_share_unevenly_and_come_to_differ) {
  for (const char* kind : {"sgd", "adam"}) {
    Pair p(tanh_model(), with_channels(tanh_model(), "fc1", 32), {{"optimizer.type", kind}});
    run(*p.child, 30);
    const Tensor w = tensors_of(p.child->save()).at("model/fc1.weight");
    const std::vector<double> v = values(w);
    for (size_t a = 0; a < 32; ++a)
      for (size_t b = a + 1; b < 32; ++b)
        EXPECT_GT(std::abs(v[2 * a] - v[2 * b]) + std::abs(v[2 * a + 1] - v[2 * b + 1]), 1e-6)
            << kind << ": units " << a << " and " << b;
  }
}

TEST(Surgery, wider_convolutions_with_norm_sum_concat_and_flatten_compute_the_same) {
  const ModelSpec wide = with_channels(image(), "conv1", 10);
  EXPECT_EQ(std::get<I>(*wide.find("conv2")->find("out_channels")), 10) << "what is added up goes together";
  Pair p(image(), wide);
  for (const char* name : {"conv1.weight", "bn1.weight", "bn1.running_var", "conv2.weight", "side.weight", "fc.weight"})
    EXPECT_EQ(p.row(name).deed, Deed::widened) << name;
  EXPECT_EQ(p.row("in.weight").deed, Deed::kept);
  p.expect_same_function();
  Pair beside(image(), with_channels(image(), "side", 5));
  EXPECT_EQ(beside.row("fc.weight").deed, Deed::widened);
  EXPECT_EQ(beside.row("conv2.weight").deed, Deed::kept);
  beside.expect_same_function();
}

ModelSpec deeper_plain(I width = 16) {
  return Chain("deeper", {2})
      .add("fc1", "Linear", {{"out_features", I{16}}})
      .add("act1", "ReLU")
      .add("more", "Linear", {{"out_features", width}})
      .add("act_more", "ReLU")
      .add("fc2", "Linear", {{"out_features", I{12}}})
      .add("act2", "Tanh")
      .add("fc3", "Linear", {{"out_features", I{2}}})
      .done();
}
TEST(Surgery, a_new_linear_passes_on_what_arrives) {
  Pair p(plain(), deeper_plain());
  EXPECT_EQ(p.row("more.weight").deed, Deed::identity);
  EXPECT_EQ(p.row("more.weight").how, "what arrives goes on");
  EXPECT_FALSE(p.row("more.weight").before);
  p.expect_same_function();
}
TEST(Surgery, a_new_linear_that_is_wider_passes_on_copies) {
  Pair p(plain(), deeper_plain(20));
  EXPECT_EQ(p.row("more.weight").how, "what arrives goes on, some of it as copies");
  EXPECT_EQ(p.row("fc2.weight").deed, Deed::widened);
  p.expect_same_function();
}
TEST(Surgery, a_new_linear_that_is_narrower_begins_as_the_seed_says) {
  Pair p(plain(), deeper_plain(9));
  EXPECT_EQ(p.row("more.weight").deed, Deed::begun);
  EXPECT_EQ(p.row("fc2.weight").deed, Deed::begun);
  EXPECT_EQ(p.row("fc2.weight").how, "as the seed gives it: other layers make what it reads");
  EXPECT_EQ(p.row("fc2.bias").deed, Deed::kept);
  EXPECT_GT(std::abs(p.child->loss_ahead() - p.parent->loss_ahead()), 1e-4);
}

TEST(Surgery, a_new_convolution_and_its_norm_undo_themselves) {
  Chain c("image", {2});
  c.add("in", "Linear", {{"out_features", I{64}}})
      .add("shape", "Unflatten", {{"dim", I{1}}, {"unflattened_size", std::vector<I>{4, 4, 4}}})
      .add("conv", "Conv2d", {{"out_channels", I{6}}, {"padding", std::vector<I>{1, 1}}})
      .add("bn", "BatchNorm2d")
      .add("act", "ReLU");
  Chain d = c;
  const auto end = [](Chain& m) {
    m.add("flat", "Flatten").add("fc", "Linear", {{"out_features", I{2}}});
    return m.done();
  };
  const ModelSpec before = end(c);
  d.add("conv_new", "Conv2d", {{"out_channels", I{6}}, {"padding", std::vector<I>{1, 1}}})
      .add("bn_new", "BatchNorm2d")
      .add("act_new", "ReLU");
  Pair p(before, end(d), {{"average.type", "ema"}});
  EXPECT_EQ(p.row("conv_new.weight").deed, Deed::identity);
  EXPECT_EQ(p.row("bn_new.weight").deed, Deed::identity);
  EXPECT_EQ(p.row("fc.weight").deed, Deed::kept);
  p.expect_same_function(2e-6);
}

TEST(Surgery, a_new_residual_branch_adds_nothing) {
  const ModelSpec after = Chain("residual", {2})
                              .add("fc1", "Linear", {{"out_features", I{16}}})
                              .add("act1", "ReLU")
                              .add("branch1", "Linear", {{"out_features", I{5}}})
                              .add("branch_act", "GELU")
                              .add("branch2", "Linear", {{"out_features", I{16}}})
                              .join("sum", "Add", {"act1", "branch2"})
                              .add("fc2", "Linear", {{"out_features", I{12}}})
                              .add("act2", "Tanh")
                              .add("fc3", "Linear", {{"out_features", I{2}}})
                              .done();
  Pair p(plain(), after);
  EXPECT_EQ(p.row("branch2.weight").deed, Deed::silent);
  EXPECT_EQ(p.row("branch1.weight").deed, Deed::begun) << "a branch that is all zero would never learn";
  p.expect_same_function();
}

ModelSpec text_model(I feed_forward, I words, bool another) {
  Chain c("text", {6}, "i64");
  c.add("embed", "Embedding", {{"num_embeddings", words}, {"embedding_dim", I{8}}})
      .add("block", "TransformerEncoderLayer",
           {{"nhead", I{2}}, {"dim_feedforward", feed_forward}, {"dropout", 0.0}, {"norm_first", true}});
  if (another)
    c.add("block2", "TransformerEncoderLayer",
          {{"nhead", I{2}}, {"dim_feedforward", I{16}}, {"dropout", 0.0}, {"norm_first", true}});
  return c.add("head", "Linear", {{"out_features", words}}).done();
}
TEST(Surgery, a_transformer_gets_a_wider_feed_forward_and_another_block) {
  const testing_files::Folder folder;
  std::string letters;
  for (int i = 0; i < 400; ++i) letters += static_cast<char>('a' + (i * i + i / 7) % 26);
  testing_files::write(folder.file("letters.txt"), letters);
  const Settings set = {{"data.dataset", "text"},
                        {"data.dir", folder.file("letters.txt")},
                        {"data.cache", folder.str()},
                        {"data.context", "6"},
                        {"data.batch_size", "8"}};
  const ModelSpec before = text_model(12, 256, false);
  Pair wide(before, with_channels(before, "block", 20), set, 5);
  EXPECT_EQ(wide.row("block.linear1.weight").deed, Deed::widened);
  EXPECT_EQ(wide.row("block.linear2.weight").deed, Deed::widened);
  EXPECT_EQ(wide.row("block.self_attn.in_proj_weight").deed, Deed::kept);
  wide.expect_same_function();
  Pair deep(before, text_model(12, 256, true), set, 5);
  EXPECT_EQ(deep.row("block2.linear2.weight").deed, Deed::silent);
  EXPECT_EQ(deep.row("block2.self_attn.out_proj.weight").deed, Deed::silent);
  deep.expect_same_function();
}

/// Of layers that people wire themselves: attention beside a sum, a feed-forward beside another.
ModelSpec wired_text(int blocks) {
  Chain c("wired", {6}, "i64");
  c.add("embed", "Embedding", {{"num_embeddings", I{256}}, {"embedding_dim", I{8}}});
  for (int b = 0; b < blocks; ++b) {
    const std::string n = "b" + std::to_string(b) + ".", x = c.here;
    c.add(n + "norm1", "LayerNorm").add(n + "attention", "MultiheadAttention", {{"num_heads", I{2}}});
    c.join(n + "add1", "Add", {x, n + "attention"});
    c.add(n + "norm2", "LayerNorm").add(n + "up", "Linear", {{"out_features", I{12}}}).add(n + "act", "ReLU");
    c.add(n + "down", "Linear", {{"out_features", I{8}}}).join(n + "add2", "Add", {n + "add1", n + "down"});
  }
  return c.add("head", "Linear", {{"out_features", I{256}}}).done();
}
TEST(Surgery, a_new_block_of_attention_adds_nothing_and_learns) {
  const testing_files::Folder folder;
  testing_files::write(folder.file("letters.txt"), std::string(500, 'a') + std::string(400, 'b'));
  Pair p(wired_text(1), wired_text(2),
         {{"data.dataset", "text"},
          {"data.dir", folder.file("letters.txt")},
          {"data.cache", folder.str()},
          {"data.context", "6"},
          {"data.batch_size", "8"}},
         5);
  EXPECT_EQ(p.row("b1.attention.out_proj.weight").deed, Deed::silent);
  EXPECT_EQ(p.row("b1.down.weight").deed, Deed::silent);
  EXPECT_EQ(p.row("b1.up.weight").deed, Deed::begun);
  EXPECT_EQ(p.row("head.weight").deed, Deed::kept);
  p.expect_same_function();
  run(*p.child, 3);
  const auto now = tensors_of(p.child->save());
  for (const char* name : {"model/b1.down.weight", "model/b1.attention.out_proj.weight"}) {
    const std::vector<double> v = values(now.at(name));
    EXPECT_GT(*std::max_element(v.begin(), v.end()), 0) << name << " is zero no longer";
  }
}

TEST(Surgery, a_narrower_layer_keeps_its_heaviest_units) {
  Pair p(plain(), with_channels(plain(), "fc1", 9));
  EXPECT_EQ(p.row("fc1.weight").deed, Deed::narrowed);
  EXPECT_EQ(p.row("fc1.weight").how, "9 of 16 outputs stay");
  const auto was = tensors_of(p.parent->save()), is = tensors_of(p.child->save());
  const std::vector<double> w = values(was.at("model/fc1.weight")), v = values(is.at("model/fc1.weight"));
  std::vector<std::pair<double, size_t>> norms;
  for (size_t u = 0; u < 16; ++u) norms.emplace_back(-(std::abs(w[2 * u]) + std::abs(w[2 * u + 1])), u);
  std::sort(norms.begin(), norms.end());
  norms.resize(9);
  std::sort(norms.begin(), norms.end(), [](auto& a, auto& b) { return a.second < b.second; });
  const std::vector<double> out = values(was.at("model/fc2.weight")), kept = values(is.at("model/fc2.weight"));
  for (size_t k = 0; k < 9; ++k) {
    EXPECT_EQ(v[2 * k], w[2 * norms[k].second]);
    for (size_t row = 0; row < 12; ++row) EXPECT_EQ(kept[row * 9 + k], out[row * 16 + norms[k].second]);
  }
  p.child->step();
}

TEST(Surgery, more_classes_keep_those_that_were_there) {
  ModelSpec more = plain();
  more.find("fc3")->attrs = {{"out_features", I{5}}};
  TrainingSession s(plain(), few_spirals());
  run(s, 3);
  // Spirals have two classes: a session of five cannot be.
  Checkpoint fresh = s.save();
  for (auto& [name, t] : fresh.tensors) {
    if (name.ends_with("fc3.weight")) t = full({5, 12}, 0.25);
    if (name.ends_with("fc3.bias")) t = full({5}, 0.25);
  }
  const Surgery done = operate(plain(), more, s.save(), fresh, 1);
  const auto row = std::find_if(done.rows.begin(), done.rows.end(), [](auto& r) { return r.tensor == "fc3.weight"; });
  ASSERT_NE(row, done.rows.end());
  EXPECT_EQ(row->how, "3 more outputs as the seed gives them (the model's output)");
  const auto was = tensors_of(s.save()), is = tensors_of(done.state);
  const std::vector<double> w = values(was.at("model/fc3.weight")), v = values(is.at("model/fc3.weight"));
  EXPECT_TRUE(std::equal(w.begin(), w.end(), v.begin()));
  EXPECT_EQ(v.back(), 0.25);
}

TEST(Surgery, a_layer_that_goes_and_one_that_is_new) {
  const ModelSpec after = Chain("other", {2})
                              .add("fc1", "Linear", {{"out_features", I{16}}})
                              .add("act1", "ReLU")
                              .add("norm", "LayerNorm", {{"normalized_shape", std::vector<I>{16}}})
                              .add("fc3", "Linear", {{"out_features", I{2}}})
                              .done();
  Pair p(plain(), after);
  EXPECT_EQ(p.row("fc2.weight").deed, Deed::gone);
  EXPECT_FALSE(p.row("fc2.weight").after);
  EXPECT_EQ(p.row("norm.weight").deed, Deed::begun);
  EXPECT_EQ(p.row("fc3.weight").deed, Deed::begun);
  EXPECT_EQ(p.rows.back().tensor, "fc2.bias");
  run(*p.child, 3);
}

TEST(Surgery, wires_that_change_places_take_their_weights_along) {
  const auto model = [](bool turned) {
    Chain c("cat", {2});
    c.add("a", "Linear", {{"out_features", I{3}}}).at("input").add("b", "Linear", {{"out_features", I{5}}});
    c.join("cat", "Concat", turned ? std::vector<std::string>{"b", "a"} : std::vector<std::string>{"a", "b"},
           {{"dim", I{1}}});
    return c.add("act", "Tanh").add("fc", "Linear", {{"out_features", I{2}}}).done();
  };
  Pair p(model(false), model(true));
  EXPECT_EQ(p.row("fc.weight").how, "its inputs in another order");
  p.expect_same_function();
}

/// Every kind of optimizer: what it remembers goes along, and the function stays.
TEST(Surgery, every_optimizer_goes_on) {
  for (const optim::OptimizerDef& def : optim::optimizers()) {
    SCOPED_TRACE(def.name);
    Settings set = {{"optimizer.type", def.name}, {"optimizer.lr", "0.001"}};
    if (def.name == "sgd" || def.name == "rmsprop") set.emplace_back("optimizer.momentum", "0.9");
    Pair p(plain(), with_channels(plain(), "fc1", 20), set, 6);
    const auto was = tensors_of(p.parent->save()), is = tensors_of(p.child->save());
    size_t compared = 0;
    for (const auto& [name, t] : was) {
      if (!name.starts_with("optimizer/")) continue;
      const Tensor& now = is.at(name);
      const std::vector<double> a = values(t), b = values(now);
      if (name.find("fc1") == name.npos && name.find("fc2.weight") == name.npos && t.size() == now.size()) {
        if (name.rfind('/') != name.find('/')) {
          EXPECT_EQ(a, b) << name;
        }
        ++compared;
      }
      // Units of before are the first ones, and remember what they did.
      if (name.starts_with("optimizer/fc1.weight/") && t.size() == Shape{16, 2}) {
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << name;
        for (size_t row = 16; row < 20; ++row) {
          bool copy = false;
          for (size_t of = 0; of < 16; ++of) copy |= a[2 * of] == b[2 * row] && a[2 * of + 1] == b[2 * row + 1];
          EXPECT_TRUE(copy) << name << " row " << row;
        }
        ++compared;
      }
    }
    EXPECT_TRUE(compared > 0 || def.name == "lbfgs");
    p.expect_same_function();
    run(*p.child, 3);
    for (const auto& [name, t] : p.child->save().tensors)
      for (const double v : values(t)) ASSERT_TRUE(std::isfinite(v)) << name;
  }
}

TEST(Surgery, averages_teachers_and_masks_go_along) {
  Pair ema(plain(), with_channels(plain(), "fc2", 15), {{"average.type", "ema"}, {"eval_every", "1"}});
  const double was = ema.parent->evaluate().loss, is = ema.child->evaluate().loss;
  EXPECT_NEAR(is, was, 1e-6);
  ema.expect_same_function();
  Pair pruned(plain(), with_channels(plain(), "fc1", 20), {{"callbacks", "prune amount=0.5 layers=fc1,fc2"}});
  run(*pruned.child, 2);
  EXPECT_NEAR(pruned.child->callback_figures().at(0).second, 0.5, 1e-3) << "masks of the new size were chosen";
}

TEST(Surgery, frozen_and_anew_hold_in_the_new_model) {
  const ModelSpec wide = with_channels(plain(), "fc1", 20);
  const Recipe before = few_spirals(), after = few_spirals({{"init.freeze", "fc1.*"}, {"init.anew", "fc3.*"}});
  TrainingSession parent(plain(), before), child(wide, after);
  run(parent, 5);
  const Rows rows = child.branch(parent.save(), before, plain());
  EXPECT_EQ(rows.back().how, "as init.anew says");
  const auto at = tensors_of(child.save());
  child.step();
  EXPECT_EQ(values(at.at("model/fc1.weight")), values(tensors_of(child.save()).at("model/fc1.weight")));
}

TEST(Surgery, an_optimizer_counts_the_steps_of_a_new_parameter_from_its_own_first) {
  // The first update of Adam is as long as the rate, whatever the gradient; of a count that goes on it would be 3
  // times.
  Pair p(plain(), deeper_plain(), {{"optimizer.lr", "0.001"}}, 50);
  const auto before = tensors_of(p.child->save());
  EXPECT_EQ(p.child->save().state.at("optimizer_begun").at("more.weight"), 50);
  EXPECT_FALSE(p.child->save().state.at("optimizer_begun").contains("fc1.weight"));
  p.child->step();
  const std::vector<double> a = values(before.at("model/more.weight")),
                            b = values(tensors_of(p.child->save()).at("model/more.weight"));
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  EXPECT_NEAR(most, 0.001, 1e-5);
}

TEST(Surgery, is_saved_and_loaded_as_any_session) {
  Pair p(plain(), deeper_plain(20), {{"optimizer.type", "adam"}, {"average.type", "swa"}});
  run(*p.child, 4);
  TrainingSession other(deeper_plain(20), p.told);
  other.load(p.child->save());
  for (int i = 0; i < 8; ++i) {
    run(*p.child, 1);
    run(other, 1);
    expect_same(other.save(), p.child->save());
  }
  Pair again(plain(), deeper_plain(20), {{"optimizer.type", "adam"}, {"average.type", "swa"}});
  run(*again.child, 12);
  expect_same(again.child->save(), p.child->save());
}

TEST(Surgery, a_state_of_another_model_is_an_error) {
  TrainingSession parent(plain(), few_spirals());
  run(parent, 2);
  const Checkpoint whole = parent.save();
  const auto told = [&](const Checkpoint& c, const ModelSpec& before) {
    TrainingSession child(with_channels(plain(), "fc1", 20), few_spirals());
    return error_of([&] { child.branch(c, few_spirals(), before); });
  };
  EXPECT_TRUE(has(told(whole, plain(18)), "\"model/fc1.bias\" of the state of step 2 is [16], and [18] in the model"));
  Checkpoint less = whole;
  std::erase_if(less.tensors, [](const auto& t) { return t.first == "model/fc2.bias"; });
  EXPECT_TRUE(has(told(less, plain()), "has no tensor \"model/fc2.bias\""));
  for (auto& [name, t] : less.tensors)
    if (name == "model/fc3.weight") t = Tensor();
  EXPECT_FALSE(told(less, plain()).empty());
  // What the optimizer remembers of other sizes has no place, and begins.
  Checkpoint odd = whole;
  for (auto& [name, t] : odd.tensors)
    if (name.starts_with("optimizer/fc1.weight")) t = whole.tensors.back().second;
  EXPECT_EQ(told(odd, plain()), "no error");
  ModelSpec broken = plain();
  broken.wires.pop_back();
  EXPECT_FALSE(told(whole, broken).empty());
}

}  // namespace
}  // namespace tenon::surgery_tests
