// Watches at work on a session: each fires where something was planted, and nowhere else, and changes no bit.
#include "engine/train/watch_list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/parallel.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/engine/sessions.h"
#include "tests/messages.h"

namespace tenon::watch_tests {
namespace {

using namespace testing_sessions;
using testing_words::error_of;

constexpr int64_t kSteps = 14;

ModelSpec watched_model() {
  return Chain("test", {2})
      .add("fc1", "Linear", {{"out_features", int64_t{16}}})
      .add("relu", "ReLU")
      .add("fc2", "Linear", {{"out_features", int64_t{8}}})
      .add("tanh", "Tanh")
      .add("fc3", "Linear", {{"out_features", int64_t{2}}})
      .done();
}
Recipe watched_recipe(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "16"},
                       {"epochs", "4"},
                       {"optimizer.type", "sgd"},
                       {"optimizer.lr", "0.01"},
                       {"optimizer.momentum", "0"}}),
              set);
}
Tensor parameter(TrainingSession& s, const std::string& name) {
  for (const nn::Named& p : s.model().parameters())
    if (p.name == name) return p.tensor;
  throw Error("no parameter " + name);
}

/// What is put into one step: before it, into its gradients, or into its weights before anyone looks at them.
struct Planted : TrainingObserver {
  using Do = std::function<void(TrainingSession&)>;
  TrainingSession& session;
  int64_t at;
  Do into_gradients, into_weights;
  int64_t step = 0;
  Planted(TrainingSession& s, int64_t step_, Do g, Do w)
      : session(s), at(step_), into_gradients(std::move(g)), into_weights(std::move(w)) {
    session.add_observer(this);
  }
  ~Planted() override { session.remove_observer(this); }
  void on_step_begin(int64_t s) override { step = s; }
  void on_backward() override {
    const NoGrad off;
    if (step == at && into_gradients) into_gradients(session);
  }
  void on_step_end(const StepResult&) override {
    const NoGrad off;
    if (step == at && into_weights) into_weights(session);
  }
};

void fill_gradient(TrainingSession& s, const std::string& name, double value) {
  Tensor g = grad_of(parameter(s, name));
  fill(g, value);
}
void fill_weight(TrainingSession& s, const std::string& name, double value) {
  const NoGrad off;
  Tensor w = parameter(s, name);
  fill(w, value);
}

void fill_half(TrainingSession& s, const std::string& name, double value) {
  const NoGrad off;
  fill(narrow(parameter(s, name), 0, 0, 1), value);
}

struct Situation {
  const char *watch, *at;
  Planted::Do before = {}, into_gradients = {}, into_weights = {};
  int64_t step = 9;
};

const std::vector<Situation>& situations() {
  using S = TrainingSession;
  static const double nan = std::nan("");
  static const std::vector<Situation> all = {
      {"max_abs(grad(fc1.weight)) > 1e3", "fc1.weight", {}, [](S& s) { fill_gradient(s, "fc1.weight", -5e3); }},
      {"max(grad(fc2.bias)) > 100", "fc2.bias", {}, [](S& s) { fill_gradient(s, "fc2.bias", 200); }},
      {"min(grad(fc2.bias)) < -100", "fc2.bias", {}, [](S& s) { fill_gradient(s, "fc2.bias", -200); }},
      {"mean(grad(fc1)) > 50", "fc1.weight", {}, [](S& s) { fill_gradient(s, "fc1.weight", 100); }},
      {"std(grad(fc3.bias)) > 100",
       "fc3.bias",
       {},
       [](S& s) {
         Tensor g = grad_of(parameter(s, "fc3.bias"));
         Tensor half = narrow(g, 0, 0, 1);
         fill(half, 500);
       }},
      {"norm(grad(*)) > 1e3", "fc2.weight", {}, [](S& s) { fill_gradient(s, "fc2.weight", 1e3); }},
      {"dead(grad(fc3.weight)) >= 1", "fc3.weight", {}, [](S& s) { fill_gradient(s, "fc3.weight", 0); }},
      {"nonfinite(grad(*)) > 0", "fc2.bias", {}, [](S& s) { fill_gradient(s, "fc2.bias", nan); }},
      {"max_abs(grad(*.bias)) > 1e30", "fc1.bias", {}, [](S& s) { fill_gradient(s, "fc1.bias", -INFINITY); }},
      {"max_abs(weight(fc2.bias)) > 40", "fc2.bias", {}, {}, [](S& s) { fill_weight(s, "fc2.bias", 50); }},
      {"mean(weight(fc1.weight)) < -5", "fc1.weight", {}, {}, [](S& s) { fill_weight(s, "fc1.weight", -10); }},
      {"std(weight(fc.weight)) < 1e-6", "", {}, {}, {}, 0},
      {"std(weight(fc*.weight)) < 1e-6", "fc2.weight", {}, {}, [](S& s) { fill_weight(s, "fc2.weight", 3); }},
      {"dead(weight(*)) >= 1", "fc1.bias", {}, {}, [](S& s) { fill_weight(s, "fc1.bias", 0); }},
      {"nonfinite(weight(*)) >= 1", "fc3.weight", {}, {}, [](S& s) { fill_weight(s, "fc3.weight", nan); }},
      {"max(weight(fc3.bias)) inside 7..8", "fc3.bias", {}, {}, [](S& s) { fill_weight(s, "fc3.bias", 7.5); }},
      {"dead(activation(relu)) > 0.95", "relu", [](S& s) { fill_weight(s, "fc1.bias", -1e3); }},
      {"max(activation(fc3)) > 1e3", "fc3", [](S& s) { fill_weight(s, "fc3.bias", 5e3); }},
      {"saturated(activation(t*)) > 0.99", "tanh", [](S& s) { fill_weight(s, "fc2.bias", 1e3); }},
      {"norm(activation(*)) > 1e5", "fc1", [](S& s) { fill_weight(s, "fc1.weight", 1e6); }},
      {"ratio(update(fc3.weight)) > 0.5",
       "fc3.weight",
       {},
       {},
       [](S& s) {
         Tensor w = parameter(s, "fc3.weight");
         mul_(w, 3);
       }},
      {"ratio(update(*.weight)) outside 1e-9..0.5",
       "fc2.weight",
       {},
       {},
       [](S& s) {
         Tensor w = parameter(s, "fc2.weight");
         mul_(w, -2);
       }},
      {"max_abs(update(*)) > 10",
       "fc2.bias",
       {},
       {},
       [](S& s) {
         Tensor w = parameter(s, "fc2.bias");
         add_(w, 20);
       }},
      {"loss > 1e3", "loss", [](S& s) { fill_half(s, "fc3.bias", 1e5); }},
      {"loss > 3 * median(loss, 5)", "loss", [](S& s) { fill_half(s, "fc3.bias", 1e5); }},
      {"nonfinite(loss) > 0", "loss", [](S& s) { fill_weight(s, "fc3.bias", nan); }},
      {"grad_norm > 1e3", "grad_norm", {}, [](S& s) { fill_gradient(s, "fc2.weight", 1e3); }},
      {"lr < 0.005", "lr",
       [](S& s) {
         s.change(with(s.recipe(), {{"optimizer.lr", "0.001"}}));
       }},
      {"max_abs(grad(fc1.weight)) > 1e3 every 3", "fc1.weight", {}, [](S& s) { fill_gradient(s, "fc1.weight", 5e3); }},
      {"max_abs(grad(fc1.weight)) > 1e3 every 4", "", {}, [](S& s) { fill_gradient(s, "fc1.weight", 5e3); }, {}, 9},
  };
  return all;
}

std::vector<Watch> watches_of(const std::string& text) { return parse_watches(text); }

/// What a watch sees in so many steps, with the situation planted or without it.
std::vector<WatchHit> seen(const Situation& it, bool planted) {
  TrainingSession s(watched_model(), watched_recipe());
  const Planted in(s, planted ? it.step : 0, it.into_gradients, it.into_weights);
  WatchList list(s, s.recipe(), watches_of(it.watch));
  for (int64_t step = 1; step <= kSteps; ++step) {
    const Checkpoint before = s.save();
    const bool here = planted && step == it.step;
    if (here && it.before) it.before(s);
    s.step();
    if (!here) continue;
    // The disturbance goes again, weights and rate.
    const NoGrad off;
    for (const nn::Named& p : s.model().parameters())
      for (const auto& [name, t] : before.tensors)
        if (name == "model/" + p.name) copy_(p.tensor, t);
    s.change(watched_recipe());
  }
  return list.take();
}

TEST(WatchList, each_planted_situation_is_seen_at_its_step_and_nowhere_else) {
  int64_t seen_ones = 0;
  for (const Situation& it : situations()) {
    if (it.step == 0) {
      TrainingSession s(watched_model(), watched_recipe());
      EXPECT_SAYS(error_of([&] { WatchList(s, s.recipe(), watches_of(it.watch)); }), "has no parameter called");
      continue;
    }
    EXPECT_TRUE(seen(it, false).empty()) << it.watch << " without it: " << seen(it, false).front().text();
    const std::vector<WatchHit> hits = seen(it, true);
    if (*it.at == '\0') {
      EXPECT_TRUE(hits.empty()) << it.watch;
      continue;
    }
    ASSERT_EQ(hits.size(), 1u) << it.watch;
    EXPECT_EQ(hits[0].step, it.step) << it.watch;
    EXPECT_EQ(hits[0].at, it.at) << it.watch;
    EXPECT_TRUE(hits[0].begins) << it.watch;
    EXPECT_TRUE(watches_of(it.watch)[0].holds(hits[0].value, 1e9) || hits[0].bound > 1 ||
                watches_of(it.watch)[0].holds(hits[0].value, 0))
        << hits[0].text();
    ++seen_ones;
  }
  EXPECT_GE(seen_ones, 25);
}

TEST(WatchList, a_condition_that_holds_for_long_begins_once) {
  TrainingSession s(watched_model(), watched_recipe());
  const auto spoilt = [&](int64_t step) { return (step >= 4 && step <= 6) || step == 9; };
  struct Filled : TrainingObserver {
    TrainingSession& s;
    std::function<bool(int64_t)> at;
    int64_t step = 0;
    Filled(TrainingSession& session, std::function<bool(int64_t)> a) : s(session), at(std::move(a)) {
      s.add_observer(this);
    }
    ~Filled() override { s.remove_observer(this); }
    void on_step_begin(int64_t n) override { step = n; }
    void on_backward() override {
      const NoGrad off;
      if (at(step)) fill_gradient(s, "fc1.bias", 7);
    }
  } filled(s, spoilt);
  WatchList list(s, s.recipe(), watches_of("max(grad(fc1.bias)) > 6: pause; max(grad(fc1.bias)) > 6.5 every 3: count"));
  run(s, 12);
  std::string told;
  for (const WatchHit& h : list.take())
    told += std::to_string(h.step) + (h.action == WatchAction::pause ? "p" : "c") + (h.begins ? "! " : " ");
  EXPECT_EQ(told, "4p! 5p 6p 6c! 9p! 9c ");
  EXPECT_TRUE(list.take().empty());
}

TEST(WatchList, values_are_those_of_the_step) {
  // Parts of a batch and layers that are computed twice count once.
  for (const Settings& set : std::vector<Settings>{{}, {{"data.micro_batches", "4"}}, {{"recompute", "3"}}}) {
    TrainingSession s(watched_model(), watched_recipe(set));
    WatchList list(
        s, s.recipe(),
        watches_of("norm(activation(relu)) > 0; norm(grad(fc1.weight)) > 0; norm(weight(fc1.weight)) > 0; "
                   "norm(update(fc1.weight)) > 0; ratio(update(fc1.weight)) > 0; dead(activation(relu)) > 0; "
                   "loss > 0; grad_norm > 0; mean(activation(relu)) > 0; std(activation(relu)) > 0"));
    struct Brute : TrainingObserver {
      TrainingSession& s;
      std::vector<float> before;
      double gradient = 0;
      explicit Brute(TrainingSession& session) : s(session) { s.add_observer(this); }
      ~Brute() override { s.remove_observer(this); }
      static std::vector<float> values(const Tensor& t) {
        std::vector<float> v(static_cast<size_t>(t.numel()));
        const Tensor c = clone(detach(t), Order::contiguous);
        std::copy(c.data<float>(), c.data<float>() + t.numel(), v.begin());
        return v;
      }
      static double norm(const std::vector<float>& v) {
        double sum = 0;
        for (const float x : v) sum += static_cast<double>(x) * x;
        return std::sqrt(sum);
      }
      void on_backward() override {
        before = values(parameter(s, "fc1.weight"));
        gradient = norm(values(grad_of(parameter(s, "fc1.weight"))));
      }
    } brute(s);
    std::vector<float> relu;
    for (auto& [path, m] : s.model().named_modules())
      if (path == "relu")
        m->add_forward_hook([&](nn::Module&, std::span<const Tensor>, Tensor& y) {
          if (t_state.origin.phase != Phase::forward) return;
          for (const float v : Brute::values(y)) relu.push_back(v);
        });
    for (int64_t step = 1; step <= 5; ++step) {
      relu.clear();
      const StepResult r = s.step();
      std::map<std::string, double> told;
      for (const WatchHit& h : list.take()) told[h.watch] = h.value;
      ASSERT_EQ(told.size(), 10u);
      const std::vector<float> after = Brute::values(parameter(s, "fc1.weight"));
      std::vector<float> update(after);
      for (size_t i = 0; i < update.size(); ++i) update[i] -= brute.before[i];
      double sum = 0, dead = 0, about = 0;
      for (const float v : relu) sum += v, dead += v == 0;
      const auto n = static_cast<double>(relu.size());
      for (const float v : relu) about += (v - sum / n) * (v - sum / n);
      EXPECT_EQ(relu.size(), 16u * 16);
      const auto near = [&](const char* watch, double value) {
        EXPECT_NEAR(told.at(watch), value, 1e-12 + 1e-9 * std::fabs(value)) << watch << " at " << step;
      };
      near("norm(activation(relu)) > 0", Brute::norm(relu));
      near("norm(grad(fc1.weight)) > 0", brute.gradient);
      near("norm(weight(fc1.weight)) > 0", Brute::norm(after));
      near("norm(update(fc1.weight)) > 0", Brute::norm(update));
      near("ratio(update(fc1.weight)) > 0", Brute::norm(update) / Brute::norm(after));
      near("dead(activation(relu)) > 0", dead / n);
      near("mean(activation(relu)) > 0", sum / n);
      near("std(activation(relu)) > 0", std::sqrt(about / n));
      EXPECT_EQ(told.at("loss > 0"), r.loss);
      EXPECT_EQ(told.at("grad_norm > 0"), r.grad_norm);
    }
  }
}

TEST(WatchList, an_overflow_in_half_precision_is_seen_where_its_update_was_skipped) {
  TrainingSession s(watched_model(), watched_recipe({{"amp", "fp16"}, {"amp_scale", "1e9"}}));
  WatchList list(s, s.recipe(),
                 watches_of("nonfinite(grad(*)) > 0; max_abs(grad(*)) inside 1e-30..1e3; "
                            "ratio(update(fc1.weight)) > 0; loss_scale > 0"));
  int64_t overflows = 0, scaled = 0;
  for (int64_t step = 1; step <= 30; ++step) {
    const StepResult r = s.step();
    std::map<std::string, WatchHit> told;
    for (const WatchHit& h : list.take()) told[h.watch] = h;
    EXPECT_EQ(told.contains("nonfinite(grad(*)) > 0"), !r.overflow.empty()) << step;
    EXPECT_EQ(told.contains("ratio(update(fc1.weight)) > 0"), r.applied) << step << ": a step that wrote nothing";
    EXPECT_EQ(told.at("loss_scale > 0").value, r.loss_scale);
    overflows += !r.overflow.empty();
    if (r.overflow.empty() && r.loss_scale > 1e4)
      scaled += told.contains("max_abs(grad(*)) inside 1e-30..1e3");  // as it is without the scale
  }
  EXPECT_GT(overflows, 0);
  EXPECT_GT(scaled, 0);
}

TEST(WatchList, armed_watches_change_no_bit_at_any_number_of_threads) {
  std::string all;
  for (const Situation& it : situations())
    if (it.step > 0) all += std::string(it.watch) + "; ";
  all += "norm(activation(*)) > 0; norm(grad(*)) > 0; norm(update(*)) > 0; norm(weight(*)) > 0";
  for (const Settings& set : std::vector<Settings>{{},
                                                   {{"data.micro_batches", "3"}, {"recompute", "2"}},
                                                   {{"amp", "bf16"}},
                                                   {{"optimizer.type", "adam"}, {"optimizer.lr", "0.01"}}}) {
    TrainingSession bare(watched_model(), watched_recipe(set));
    run(bare, 20);
    std::vector<WatchHit> first;
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      TrainingSession armed(watched_model(), watched_recipe(set));
      WatchList list(armed, armed.recipe(), watches_of(all));
      run(armed, 20);
      expect_same(armed.save(), bare.save());
      const std::vector<WatchHit> hits = list.take();
      EXPECT_GT(hits.size(), 60u);
      if (first.empty()) first = hits;
      EXPECT_TRUE(hits == first) << threads << " threads";
    }
    set_num_threads(0);
  }
}

TEST(WatchList, one_that_is_gone_leaves_nothing_behind) {
  TrainingSession s(watched_model(), watched_recipe());
  { WatchList list(s, s.recipe(), watches_of("norm(activation(*)) > 0; norm(update(*)) > 0")); }
  run(s, 3);
  TrainingSession bare(watched_model(), watched_recipe());
  run(bare, 3);
  expect_same(s.save(), bare.save());
}

TEST(WatchList, evaluations_are_looked_at_when_they_come) {
  TrainingSession s(watched_model(), watched_recipe({{"eval_every", "1"}}));
  WatchList list(s, s.recipe(),
                 watches_of("test_loss > 0; test_accuracy <= 1: count; loss > 0 * median(test_loss, 1)"));
  const int64_t epoch = s.steps_per_epoch();
  std::vector<int64_t> at, beside;
  for (int64_t step = 1; step <= 2 * epoch + 1; ++step) {
    s.step();
    if (s.evaluation_due()) {
      const Evaluation e = s.evaluate();
      list.on_evaluation(e, s.steps_done());
    }
    for (const WatchHit& h : list.take()) (h.watch == "test_loss > 0" ? at : beside).push_back(h.step);
  }
  EXPECT_EQ(at, (std::vector<int64_t>{epoch, 2 * epoch}));
  EXPECT_EQ(beside.size(), 2u + static_cast<size_t>(epoch) + 1) << "a median of evaluations is there from the first on";
}

TEST(WatchList, what_a_run_does_not_have_is_refused) {
  const auto refused = [](const Settings& set, const char* text) {
    TrainingSession s(watched_model(), watched_recipe(set));
    return error_of([&] { WatchList(s, s.recipe(), watches_of(text)); });
  };
  EXPECT_SAYS(refused({}, "norm(grad(fc4)) > 1"), "the model has no parameter that is trained and called \"fc4\"");
  EXPECT_SAYS(refused({{"init.freeze", "fc1.*"}}, "norm(grad(fc1)) > 1"), "that is trained");
  EXPECT_EQ(refused({{"init.freeze", "fc1.*"}}, "norm(weight(fc1)) > 1"), "no error");
  EXPECT_SAYS(refused({}, "dead(activation(relu1)) > 1"), "no layer called \"relu1\"");
  EXPECT_SAYS(refused({}, "loss_scale > 1"), "amp = fp16");
  EXPECT_SAYS(refused({{"eval_every", "0"}}, "test_loss > 1"), "needs evaluations");
  EXPECT_SAYS(refused({}, "test_mean_iou > 1"), "no evaluation of a classification task records it");
  EXPECT_SAYS(refused({}, "loss > median(loss_scale, 3)"), "amp = fp16");
}

TEST(Moments, add_up_any_layout_dtype_and_size) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const int64_t n : {0, 1, 7, 8, 9, 16384, 16385, 50001}) {
      Tensor t = empty({n}, DType::f64);
      for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = i % 5 == 0 ? 0 : std::sin(static_cast<double>(i)) * 2;
      Tensor given = empty({n}, dtype);
      copy_(given, t);
      Tensor back = empty({n}, DType::f64);
      copy_(back, given);
      double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
      int64_t zeros = 0, full = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double v = back.data<double>()[i];
        sum += v, squares += v * v, zeros += v == 0, full += std::fabs(v) >= 0.99;
        low = std::min(low, v), high = std::max(high, v);
      }
      const Moments m = moments_of(given);
      EXPECT_EQ(m.count, n);
      EXPECT_EQ(m.zeros, zeros);
      EXPECT_EQ(m.saturated, full);
      EXPECT_EQ(m.low, low);
      EXPECT_EQ(m.high, high);
      EXPECT_NEAR(m.sum, sum, 1e-9);
      EXPECT_NEAR(m.squares, squares, 1e-7);
    }
  }
  Tensor t = empty({3, 4}, DType::f32);
  for (int i = 0; i < 12; ++i) t.data<float>()[i] = static_cast<float>(i);
  const Moments m = moments_of(narrow(transpose(t, 0, 1), 0, 1, 2));  // 1 5 9, 2 6 10
  EXPECT_EQ(m.count, 6);
  EXPECT_EQ(m.sum, 33);
  EXPECT_EQ(m.high, 10);
  t.data<float>()[3] = NAN;
  t.data<float>()[4] = -INFINITY;
  const Moments bad = moments_of(t);
  EXPECT_EQ(bad.nans, 1);
  EXPECT_EQ(bad.infinite, 1);
  EXPECT_EQ(bad.low, -INFINITY);
  EXPECT_EQ(bad.sum, 66 - 3 - 4);
  EXPECT_FALSE(moments_of({}).any());
}

}  // namespace
}  // namespace tenon::watch_tests
