// Edits: what is read, what is refused and in which words, what they write, and that they change no bit but those they
// are told to.
#include "engine/train/tensor_edit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "tests/engine/sessions.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using namespace testing_sessions;
using testing_words::error_of;
using How = TensorEdit::How;
using Target = TensorEdit::Target;

TEST(TensorEdits, every_part_of_a_text_is_read_and_written_again) {
  const struct {
    const char *text, *written;
    TensorEdit edit;
  } cases[] = {
      {"120 #14: output[3, 4] = 0.5",
       "120 #14: output[3, 4] = 0.5",
       {120, 14, Target::output, 0, "", Dims{3, 4}, How::set, 0.5}},
      {" 7#2:output(1)*-1e-3", "7 #2: output(1) * -0.001", {7, 2, Target::output, 1, "", {}, How::scale, -1e-3}},
      {"1: weight( fc1.weight )[0,1] + 2",
       "1: weight(fc1.weight)[0, 1] + 2",
       {1, 0, Target::weight, 0, "fc1.weight", Dims{0, 1}, How::add, 2}},
      {"9: grad(fc1.bias) clamp -1 .. 1",
       "9: grad(fc1.bias) clamp -1..1",
       {9, 0, Target::gradient, 0, "fc1.bias", {}, How::clamp, -1, 1}},
      {"9 #31: state(fc1.weight/momentum) = 0",
       "9 #31: state(fc1.weight/momentum) = 0",
       {9, 31, Target::state, 0, "fc1.weight/momentum", {}, How::set, 0}},
      {"9 #31: output[] = inf", "9 #31: output[] = inf", {9, 31, Target::output, 0, "", Dims{}, How::set, INFINITY}},
  };
  for (const auto& c : cases) {
    const TensorEdit e = parse_edit(c.text);
    EXPECT_EQ(e.step, c.edit.step) << c.text;
    EXPECT_EQ(e.seq, c.edit.seq) << c.text;
    EXPECT_EQ(e.target, c.edit.target) << c.text;
    EXPECT_EQ(e.output, c.edit.output) << c.text;
    EXPECT_EQ(e.name, c.edit.name) << c.text;
    EXPECT_EQ(e.element.has_value(), c.edit.element.has_value()) << c.text;
    if (e.element && c.edit.element) {
      EXPECT_TRUE(*e.element == *c.edit.element) << c.text;
    }
    EXPECT_EQ(e.how, c.edit.how) << c.text;
    EXPECT_EQ(e.a, c.edit.a) << c.text;
    EXPECT_EQ(e.b, c.edit.b) << c.text;
    EXPECT_EQ(edit_text(e), c.written);
    EXPECT_EQ(edit_text(parse_edit(edit_text(e))), c.written);
  }
  EXPECT_TRUE(std::isnan(parse_edit("1 #1: output = nan").a));
  EXPECT_EQ(parse_edit("#4: output = 1", 33).step, 33);
  EXPECT_EQ(parse_edit("34 #4: output = 1", 33).step, 34);
  EXPECT_EQ(edit_text(parse_edit(" weight(a) * 2", 33)), "33: weight(a) * 2");
  EXPECT_EQ(parse_edits(" 1 #2: output = 3; 2: weight(a) * 2 ;").size(), 2u);
  // The value that a tensor has is told exactly.
  const double third = static_cast<double>(1.0f / 3);
  EXPECT_EQ(parse_edit(edit_text({1, 1, Target::output, 0, "", {}, How::set, third})).a, third);
}

TEST(TensorEdits, what_is_none_is_refused_at_its_character) {
  const struct {
    const char *text, *says;
  } cases[] = {
      {"#4: output = 1", "character 1: an edit begins with the number of its step"},
      {"0 #4: output = 1", "steps count from 1"},
      {"3 #: output = 1", "the number of an op is to be a whole number"},
      {"3 #4 output = 1", "\":\" is missing behind the step"},
      {"3: output = 1", "an output is that of an op"},
      {"3: wait(a) = 1", "what is changed is expected"},
      {"3: weight = 1", "\"(\" is missing behind weight"},
      {"3: weight() = 1", "weight is of a name"},
      {"3: weight(a", "\")\" is missing"},
      {"3 #4: output[1 = 1", "\"]\" is missing behind the index"},
      {"3 #4: output[x] = 1", "an index is to be a whole number"},
      {"3 #4: output[1,2,3,4,5,6,7,8,9] = 1", "at most 8 axes"},
      {"3 #4: output / 2", "a change is expected"},
      {"3 #4: output = two", "what it is changed by is to be a number"},
      {"3 #4: output clamp 1..-1", "the lower bound is to be no more"},
      {"3 #4: output clamp 1", "\"..\" is missing behind the lower bound"},
      {"3 #4: output = 1 now", "character 18: nothing was expected here"},
      {"99999999999999 #4: output = 1", "the step is too large"},
  };
  for (const auto& c : cases) EXPECT_SAYS(error_of([&] { parse_edit(c.text); }), c.says);
}

TEST(TensorEdits, writes_the_place_and_nothing_else) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64}) {
    Tensor base = cast(arange(0, 24), dtype);
    const Tensor view = permute(reshape(base, {4, 6}), {1, 0});  // [6, 4]
    apply_edit(parse_edit("1 #1: output[2, 3] = 7"), view);
    for (int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(value_at(base, {i}), i == 20 ? 7 : static_cast<double>(i)) << name(dtype);
    apply_edit(parse_edit("1 #1: output clamp 2..20"), view);
    EXPECT_EQ(value_at(base, {0}), 2);
    EXPECT_EQ(value_at(base, {23}), 20);
    EXPECT_EQ(value_at(base, {11}), 11);
    apply_edit(parse_edit("1 #1: output * 2"), view);
    apply_edit(parse_edit("1 #1: output + 1"), view);
    EXPECT_EQ(value_at(base, {11}), 23);
  }
  Tensor scalar = zeros({});
  apply_edit(parse_edit("1 #1: output[] = 3"), scalar);
  EXPECT_EQ(value_at(scalar, {}), 3);
  Tensor strange = zeros({3});
  apply_edit(parse_edit("1 #1: output[1] = nan"), strange);
  apply_edit(parse_edit("1 #1: output clamp -1..1"), strange);
  EXPECT_TRUE(std::isnan(value_at(strange, {1})));
  EXPECT_SAYS(error_of([&] { apply_edit(parse_edit("1 #1: output[3] = 1"), strange); }),
              "there is no element [3] in a tensor of size [3]");
  EXPECT_SAYS(error_of([&] { apply_edit(parse_edit("1 #1: output[0, 0] = 1"), strange); }), "no element [0, 0]");
}

/// Every op of a step with its outputs, as an edit names them.
struct Outputs : OpObserver {
  struct Row {
    uint32_t seq;
    int output;
    std::string op;
    Phase phase;
    Dims size;
    double first;
    bool view;
  };
  std::vector<Row> rows;
  std::vector<uint32_t> open;
  void before(const Call&) override { open.push_back(t_state.origin.seq); }
  void after(const Call& c, int64_t, int64_t) override {
    for (int k = 0; k < c.outputs; ++k)
      if (c.out[k].defined() && c.out[k].numel() > 0)
        rows.push_back({open.back(), k, c.op->info.name, t_state.origin.phase, c.out[k].size(),
                        value_at(c.out[k], Dims::filled(c.out[k].ndim(), 0)), c.op->view != nullptr});
    open.pop_back();
  }
};

std::vector<Outputs::Row> outputs_of_step(const Recipe& recipe, int64_t step) {
  TrainingSession s(tanh_model(), recipe);
  run(s, step - 1);
  Outputs seen;
  ObserveScope scope(seen);
  s.step();
  return seen.rows;
}

Recipe adam_recipe(const Settings& more = {}) {
  return with(spirals({{"data.batch_size", "10"}, {"optimizer.type", "adam"}, {"optimizer.clip_norm", "0.5"}}), more);
}

Checkpoint after(const Recipe& recipe, int64_t steps, StepResult* last = nullptr) {
  TrainingSession s(tanh_model(), recipe);
  for (int64_t i = 0; i < steps; ++i) {
    const StepResult r = s.step();
    if (last) *last = r;
  }
  return s.save();
}

TEST(SessionEdits, writing_what_is_there_changes_no_bit_at_any_op) {
  const auto rows = outputs_of_step(adam_recipe(), 3);
  ASSERT_GT(rows.size(), 12u);
  std::string edits;
  for (const Outputs::Row& r : rows) {
    TensorEdit e{3, r.seq, Target::output, r.output, "", Dims::filled(r.size.n, 0), How::set, r.first};
    edits += (edits.empty() ? "" : "; ") + edit_text(e);
  }
  edits += "; 2: weight(fc1.weight) * 1; 2: grad(fc1.weight) * 1; 4: grad(fc2.bias) + 0; 2: state(fc1.weight/" +
           std::string("exp_avg) * 1");
  const Checkpoint plain = after(adam_recipe(), 6), edited = after(adam_recipe({{"edits", edits}}), 6);
  expect_same(plain, edited);
}

TEST(SessionEdits, each_kind_changes_the_step_it_is_of_and_no_earlier_one) {
  const auto rows = outputs_of_step(adam_recipe(), 3);
  std::string forward, update;
  for (const Outputs::Row& r : rows) {
    if (r.phase == Phase::forward && r.op == "tanh") forward = "3 #" + std::to_string(r.seq) + ": output * 0.5";
    if (r.phase == Phase::optimizer) update = "3 #" + std::to_string(r.seq) + ": output + 0.25";
  }
  ASSERT_FALSE(forward.empty());
  ASSERT_FALSE(update.empty());
  for (const std::string& edit :
       {forward, update, std::string("3: weight(fc1.weight)[0, 0] = 5"), std::string("3: grad(fc2.weight) * -1"),
        std::string("3: state(fc2.weight/exp_avg) = 1")}) {
    const Recipe recipe = adam_recipe({{"edits", edit}});
    expect_same(after(adam_recipe(), 2), after(recipe, 2));
    const Checkpoint plain = after(adam_recipe(), 3), one = after(recipe, 3);
    bool differs = false;
    std::vector<char> ca, cb;
    for (size_t i = 0; i < plain.tensors.size(); ++i)
      differs |= logical_bytes(plain.tensors[i].second, ca) != logical_bytes(one.tensors[i].second, cb);
    EXPECT_TRUE(differs) << edit;
    // The same bits at another number of threads, and where the session was saved in between.
    const int before = num_threads();
    set_num_threads(before == 1 ? 2 : 1);
    expect_same(after(recipe, 5), [&] {
      set_num_threads(before);
      TrainingSession first(tanh_model(), recipe), second(tanh_model(), recipe);
      run(first, 2);
      second.load(first.save());
      run(second, 3);
      return second.save();
    }());
    set_num_threads(before);
  }
}

TEST(SessionEdits, an_output_counts_as_what_the_op_gave) {
  // The loss is that of the changed output, and its gradient, too: with the last layer's output at 0 for all, every
  // class is as likely as the other.
  const auto rows = outputs_of_step(adam_recipe(), 1);
  const Outputs::Row* last = nullptr;
  for (const Outputs::Row& r : rows)
    if (r.op == "linear") last = &r;
  ASSERT_NE(last, nullptr);
  StepResult r;
  after(adam_recipe({{"edits", "1 #" + std::to_string(last->seq) + ": output = 0"}}), 1, &r);
  EXPECT_NEAR(r.loss, std::log(2.0), 1e-6);
  after(adam_recipe({{"edits", "1 #" + std::to_string(last->seq) + ": output = nan"}}), 1, &r);
  EXPECT_FALSE(r.finite);
}

TEST(SessionEdits, others_that_look_see_the_changed_values) {
  const auto rows = outputs_of_step(adam_recipe(), 2);
  const Outputs::Row& at = rows.at(2);
  TensorEdit e{2, at.seq, Target::output, at.output, "", Dims::filled(at.size.n, 0), How::set, 3};
  const auto seen = outputs_of_step(adam_recipe({{"edits", edit_text(e)}}), 2);
  ASSERT_EQ(seen.size(), rows.size());
  EXPECT_EQ(seen.at(2).first, 3);
  EXPECT_EQ(seen.at(1).first, rows.at(1).first);
}

TEST(SessionEdits, what_cannot_be_is_said) {
  const auto make = [](const std::string& edits, const Settings& more = {}) {
    return error_of([&] { TrainingSession(tanh_model(), with(adam_recipe({{"edits", edits}}), more)); });
  };
  EXPECT_SAYS(make("1: weight(fc1.weigth) = 1"), "there is no fc1.weigth");
  EXPECT_SAYS(make("1: weight(fc1.weigth) = 1"), "fc1.weight");
  EXPECT_SAYS(make("1: state(fc1.weight) = 1"), "there is no fc1.weight");
  EXPECT_SAYS(make("1 #3: output = 1", {{"recompute", "2"}}), "set recompute=0");
  EXPECT_SAYS(make("1 #3"), "edits: \"1 #3\"");
  const auto step = [](const std::string& edits) {
    return error_of([&] {
      TrainingSession s(tanh_model(), adam_recipe({{"edits", edits}}));
      s.step();
    });
  };
  EXPECT_SAYS(step("1 #9999: output = 1"), "step 1 has no op #9999");
  EXPECT_SAYS(step("1 #1: output(5) = 1"), "output 5 of ");
  EXPECT_SAYS(step("1 #1: output[9999, 0] = 1"), "there is no element [9999, 0]");
  EXPECT_SAYS(step("1 #1: grad(fc1.weight) = 1"), "the gradient of fc1.weight is not there at that moment");
  EXPECT_EQ(step("2 #9999: output = 1"), "no error");
  EXPECT_FALSE(TrainingSession::may_change("edits"));
}

}  // namespace
}  // namespace tenon
