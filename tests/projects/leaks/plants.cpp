#include "tests/projects/leaks/plants.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/custom_function.h"
#include "engine/data/dataset.h"
#include "engine/nn/init.h"
#include "engine/nn/module.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/spec/chain.h"
#include "engine/spec/layer_registry.h"
#include "engine/train/callback.h"

namespace tenon::projects::testing_leaks {
namespace {

using tracing::OwnerKind;

// What plug-ins keep for their whole life.
std::vector<Tensor> kept_outputs;
std::vector<Tensor> kept_penalties;
Tensor running_penalty;
std::unordered_map<int64_t, Tensor> output_cache;
std::deque<Tensor> ring_of_outputs;
std::vector<Tensor> cleared_now_and_then;
std::map<int64_t, Tensor> bounded_cache;
thread_local std::vector<Tensor> per_thread;
std::vector<Tensor> workspaces_of_op;

/// One of a kind, on the heap: its static pointer is where a way to it begins.
struct Logbook {
  std::list<Tensor> lines;
  static Logbook& one() {
    static auto* book = new Logbook;
    return *book;
  }
};

class PlantLayer : public nn::Module {
 public:
  using Act = Tensor (*)(PlantLayer&, const Tensor&);
  PlantLayer(std::string type, Act act, int64_t size, Device device) : size(size), type_(std::move(type)), act_(act) {
    scale = empty({1}, DType::f32, device);
    add_parameter("scale", scale);
    gain = empty({1}, DType::f32, device);
    if (type_ == "GrowAGradient") add_buffer("gain", gain);
  }
  std::string describe() const override { return type_; }

  std::vector<Tensor> kept;
  std::deque<Tensor> last;
  Tensor buffer, scale, gain;
  int64_t calls = 0, size;

 protected:
  using Module::forward;
  Tensor forward(const Tensor& x) override {
    if (x.device() != Device{}) return mul(x, 1.0);  // a trial of shapes or of memory is no step
    ++calls;
    return act_(*this, x);
  }
  void reset(uint64_t) override {
    nn::fill(scale, 1);
    nn::fill(gain, 1);
  }

 private:
  std::string type_;
  Act act_;
};

Tensor scaled(PlantLayer& l, const Tensor& x) { return mul(x, l.scale); }
Tensor penalty_of(const Tensor& y) { return mean(mul(y, y)); }

struct KeepingFunction : CustomFunction {
  const char* name() const override { return "keeping"; }
  std::vector<Tensor> forward(FunctionContext&, const std::vector<Tensor>& in) override {
    Tensor work = mul(in[0], 2.0);
    workspaces_of_op.push_back(work);
    return {mul(work, 0.5)};
  }
  std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& g) override { return {g[0]}; }
};

// Leaks.
/// A quantity beside the parameters that no optimizer knows, so that nobody clears its gradient, which remembers how it
/// came about: every step so far.
Tensor grow_a_gradient(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  if (!grad_enabled()) return y;
  if (!is_leaf(l.gain) || !l.gain.requires_grad()) set_requires_grad(l.gain);
  backward(penalty_of(mul(detach(y), l.gain)), {}, {.create_graph = true, .inputs = {l.gain}});
  return y;
}
Tensor keep_in_member(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  l.kept.push_back(detach(y));
  return y;
}
Tensor keep_in_variable(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  kept_outputs.push_back(detach(y));
  return y;
}
Tensor keep_now_and_then(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  if (l.calls % std::min<int64_t>(l.size, 4) == 0) kept_outputs.push_back(clone(detach(y)));
  return y;
}
Tensor keep_graph(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  kept_penalties.push_back(penalty_of(y));
  return y;
}
Tensor add_up_graph(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  const Tensor p = penalty_of(y);
  running_penalty = running_penalty ? add(running_penalty, p) : p;
  return y;
}
Tensor keep_in_cache(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  output_cache[l.calls] = detach(y);
  return y;
}
Tensor keep_view(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  l.last.push_back(narrow(detach(y), 0, 0, 1));
  return y;
}
Tensor keep_in_logbook(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  Logbook::one().lines.push_back(clone(detach(y)));
  return y;
}
Tensor keep_per_thread(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  per_thread.push_back(detach(y));
  return y;
}
Tensor add_hook_each_time(PlantLayer& l, const Tensor& x) {
  add_hook(l.scale, [seen = detach(x)](const Tensor&) { return seen.defined() ? Tensor() : Tensor(); });
  return scaled(l, x);
}
Tensor keep_in_op(PlantLayer& l, const Tensor& x) {
  return scaled(l, apply_function(std::make_shared<KeepingFunction>(), {x})[0]);
}
Tensor keep_and_use(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  l.kept.push_back(detach(y));
  return add(y, mul(mean(l.kept.front()), 0.01));
}
/// Two who hold the same.
Tensor keep_twice(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  kept_outputs.push_back(detach(y));
  l.kept.push_back(kept_outputs.back());
  return y;
}

// What only looks like one.
Tensor keep_last(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  l.buffer = penalty_of(y);  // with its graph, until the next one
  return y;
}
Tensor keep_ring(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  ring_of_outputs.push_back(detach(y));
  if (static_cast<int64_t>(ring_of_outputs.size()) > l.size) ring_of_outputs.pop_front();
  return y;
}
Tensor keep_until_cleared(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  if (static_cast<int64_t>(cleared_now_and_then.size()) >= l.size) cleared_now_and_then.clear();
  cleared_now_and_then.push_back(detach(y));
  return y;
}
Tensor keep_bounded(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  bounded_cache[l.calls] = detach(y);
  while (static_cast<int64_t>(bounded_cache.size()) > l.size) bounded_cache.erase(bounded_cache.begin());
  return y;
}
Tensor keep_some_first(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  if (l.calls <= l.size) l.kept.push_back(detach(y));
  return y;
}
Tensor keep_by_number(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  bounded_cache[l.calls % l.size] = detach(y);
  return y;
}
Tensor average_outputs(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  const Tensor m = mean(detach(y));
  l.buffer = l.buffer ? add(mul(l.buffer, 0.9), mul(m, 0.1)) : m;
  return y;
}
Tensor view_for_a_while(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  l.last.push_back(narrow(detach(y), 0, 0, 1));
  if (static_cast<int64_t>(l.last.size()) > 2) l.last.pop_front();
  return y;
}
Tensor hook_and_take_off(PlantLayer& l, const Tensor& x) {
  const int id = add_hook(l.scale, [seen = detach(x)](const Tensor&) { return seen.defined() ? Tensor() : Tensor(); });
  Tensor y = scaled(l, x);
  remove_hook(l.scale, id);
  return y;
}
Tensor graphs_of_the_last(PlantLayer& l, const Tensor& x) {
  Tensor y = scaled(l, x);
  l.last.push_back(penalty_of(y));
  if (static_cast<int64_t>(l.last.size()) > l.size) l.last.pop_front();
  return y;
}

struct LayerPlant {
  const char* type;
  PlantLayer::Act act;
  void (*after)(nn::Module&) = nullptr;
};
const std::vector<LayerPlant>& layer_plants() {
  static const std::vector<LayerPlant> all = {
      {"KeepInMember", keep_in_member},
      {"KeepInVariable", keep_in_variable},
      {"KeepNowAndThen", keep_now_and_then},
      {"KeepGraph", keep_graph},
      {"AddUpGraph", add_up_graph},
      {"KeepInCache", keep_in_cache},
      {"GrowAGradient", grow_a_gradient},
      {"KeepView", keep_view},
      {"KeepInLogbook", keep_in_logbook},
      {"KeepPerThread", keep_per_thread},
      {"AddHookEachTime", add_hook_each_time},
      {"KeepInOp", keep_in_op},
      {"KeepAndUse", keep_and_use},
      {"KeepTwice", keep_twice},
      {"HookKeeps", scaled,
       [](nn::Module& m) {
         m.add_forward_hook(
             [seen = std::make_shared<std::vector<Tensor>>()](nn::Module&, std::span<const Tensor>, Tensor& y) {
               if (!y.is_meta()) seen->push_back(detach(y));
             });
       }},
      {"BackwardHookKeeps", scaled,
       [](nn::Module& m) {
         m.add_full_backward_hook(
             [seen = std::make_shared<std::deque<Tensor>>()](nn::Module&, std::vector<Tensor>&, const Tensor& g) {
               seen->push_back(clone(detach(g)));
             });
       }},
      {"KeepLast", keep_last},
      {"KeepRing", keep_ring},
      {"KeepUntilCleared", keep_until_cleared},
      {"KeepBounded", keep_bounded},
      {"KeepSomeFirst", keep_some_first},
      {"KeepByNumber", keep_by_number},
      {"AverageOutputs", average_outputs},
      {"ViewForAWhile", view_for_a_while},
      {"HookAndTakeOff", hook_and_take_off},
      {"GraphsOfTheLast", graphs_of_the_last},
      {"HookLooks", scaled,
       [](nn::Module& m) {
         m.add_forward_hook([last = std::make_shared<Tensor>()](nn::Module&, std::span<const Tensor>, Tensor& y) {
           *last = detach(y);
         });
       }},
  };
  return all;
}

/// Points whose class is the side of a plane; `keeps`: every batch that is fetched, or the rows that were.
class PlantPoints : public data::Dataset {
 public:
  PlantPoints(uint64_t seed, int64_t samples, int64_t width, std::string keeps)
      : random_{seed, stream_of("plant.points")}, samples_(samples), width_(width), keeps_(std::move(keeps)) {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::f32, {}, {width_}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return 2; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < width_; ++k) {
        const double v = 2 * random_.uniform_double(static_cast<uint64_t>(rows[i] * width_ + k)) - 1;
        static_cast<float*>(x)[i * width_ + k] = static_cast<float>(v);
        sum += v;
      }
      static_cast<int64_t*>(y)[i] = sum > 0;
    }
    if (keeps_ == "nothing") return;
    std::lock_guard lock(mutex_);
    const auto copy = [&](int64_t from, int64_t n) {
      Tensor t = empty({n, width_});
      std::memcpy(t.raw(), static_cast<const float*>(x) + from * width_, t.nbytes());
      return t;
    };
    if (keeps_ == "batches") batches_.push_back(copy(0, count));
    if (keeps_ == "rows")
      for (int64_t i = 0; i < count; ++i)
        if (!by_row_.contains(rows[i])) by_row_[rows[i]] = copy(i, 1);
  }

 private:
  Philox random_;
  int64_t samples_, width_;
  std::string keeps_;
  mutable std::mutex mutex_;
  mutable std::vector<Tensor> batches_;
  mutable std::map<int64_t, Tensor> by_row_;
};

class KeepGradients : public Callback {
 public:
  void on_gradients(const std::vector<nn::Named>& trained, int64_t) override {
    for (const nn::Named& p : trained)
      if (const Tensor g = grad_of(p.tensor)) history_.push_back(clone(g));
  }

 private:
  std::vector<Tensor> history_;
};
class AverageGradients : public Callback {
 public:
  void on_gradients(const std::vector<nn::Named>& trained, int64_t) override {
    for (const nn::Named& p : trained) {
      const Tensor g = grad_of(p.tensor);
      if (!g) continue;
      Tensor& mean = means_[p.name];
      mean = mean ? add(mul(mean, 0.9), mul(g, 0.1)) : clone(g);
    }
  }

 private:
  std::map<std::string, Tensor> means_;
};

class KeepingSgd : public optim::Optimizer {
 public:
  using Optimizer::Optimizer;

 protected:
  void update(size_t, const Tensor& p, const Tensor& grad, double lr) override {
    history_.push_back(clone(grad));
    const NoGrad no_history;
    copy_(p, sub(p, mul(grad, lr)));
  }

 private:
  std::list<Tensor> history_;
};

int64_t pick(uint64_t seed, const char* what, int64_t from, int64_t to) {
  const double u = Philox{seed, stream_of(what)}.uniform_double(0);
  return from + static_cast<int64_t>(u * static_cast<double>(to - from + 1));
}
int64_t width_of(uint64_t seed) { return pick(seed, "width", 3, 12); }

}  // namespace

const std::vector<Plant>& plants() {
  static const std::vector<Plant> all = {
      {"KeepInMember", true, OwnerKind::layer, "PlantLayer"},
      {"KeepInVariable", true, OwnerKind::variable, "kept_outputs"},
      {"KeepNowAndThen", true, OwnerKind::variable, "kept_outputs"},
      {"KeepGraph", true, OwnerKind::variable, "kept_penalties", "graph"},
      {"AddUpGraph", true, OwnerKind::variable, "running_penalty", "graph"},
      {"KeepInCache", true, OwnerKind::variable, "output_cache"},
      {"KeepView", true, OwnerKind::layer, "PlantLayer", "view"},
      {"KeepInLogbook", true, OwnerKind::variable, "Logbook::one()::book"},
      {"KeepPerThread", true, OwnerKind::variable, "per_thread"},
      {"AddHookEachTime", true, OwnerKind::tensor_hook, "plant.scale"},
      {"KeepInOp", true, OwnerKind::variable, "workspaces_of_op"},
      {"GrowAGradient", true, OwnerKind::gradient, "plant.gain", "graph"},
      {"KeepAndUse", true, OwnerKind::layer, "PlantLayer", "", true},
      {"HookKeeps", true, OwnerKind::hook, "forward hook of the layer 'plant'"},
      {"BackwardHookKeeps", true, OwnerKind::hook, "backward hook of the layer 'plant'"},
      {"", true, OwnerKind::data_set, "PlantPoints", "", false, {{"data.keeps", "batches"}, {"data.workers", "2"}}},
      {"", true, OwnerKind::optimizer, "KeepingSgd", "", false, {{"optimizer.type", "keeping_sgd"}}},
      {"", true, OwnerKind::callback, "KeepGradients", "", false, {{"callbacks", "keep_gradients"}}},

      {"", false},
      {.type = "", .set = {{"optimizer.type", "adamw"}, {"average.type", "ema"}}},
      {.type = "", .set = {{"amp", "bf16"}, {"optimizer.type", "adam"}}},
      {.type = "", .set = {{"data.keeps", "rows"}, {"data.points", "240"}}},
      {.type = "", .set = {{"callbacks", "average_gradients"}}},
      {.type = "KeepLast"},
      {.type = "KeepRing"},
      {.type = "KeepUntilCleared"},
      {.type = "KeepBounded"},
      {.type = "KeepSomeFirst"},
      {.type = "KeepByNumber"},
      {.type = "AverageOutputs"},
      {.type = "ViewForAWhile"},
      {.type = "HookAndTakeOff"},
      {.type = "GraphsOfTheLast"},
      {.type = "HookLooks"},
  };
  return all;
}

void register_plants() {
  for (const LayerPlant& p : layer_plants())
    register_layer({{.type = p.type,
                     .group = "Activation",
                     .help = "x, for tests of what is kept",
                     .attrs = {{"size", int64_t{4}, 1, 1000, "how many it keeps"}}},
                    [p](const LayerArgs& a) -> std::shared_ptr<nn::Module> {
                      auto made = std::make_shared<PlantLayer>(p.type, p.act, a.integer("size"), a.device);
                      if (p.after) p.after(*made);
                      return made;
                    }});
  data::register_dataset({"plant_points",
                          "points on two sides of a plane; needs no files",
                          {{"points", int64_t{1200}, 1, 1e6, "training samples"},
                           {"width", int64_t{4}, 1, 64, "numbers a sample"},
                           {"keeps", std::string("nothing"), 0, 0, "batches, rows or nothing"}},
                          [](const data::Options& o, const AttrValues& v) -> data::Split {
                            const int64_t width = v.integer("width");
                            return {std::make_shared<PlantPoints>(o.seed, v.integer("points"), width, v.text("keeps")),
                                    std::make_shared<PlantPoints>(o.seed + 1, 40, width, "nothing")};
                          }});
  optim::register_optimizer({"keeping_sgd",
                             "SGD that keeps every gradient",
                             {optim::lr_attr(0.01)},
                             [](std::vector<nn::Named> p, const AttrValues& v) -> std::unique_ptr<optim::Optimizer> {
                               return std::make_unique<KeepingSgd>(std::move(p), v);
                             }});
  register_callback({.name = "keep_gradients",
                     .title = "Keep gradients",
                     .help = "keeps every gradient",
                     .moment = Moment::gradients,
                     .make = [](const AttrValues&, const CallbackRun&) -> std::unique_ptr<Callback> {
                       return std::make_unique<KeepGradients>();
                     }});
  register_callback({.name = "average_gradients",
                     .title = "Average gradients",
                     .help = "an average of the gradients",
                     .moment = Moment::gradients,
                     .make = [](const AttrValues&, const CallbackRun&) -> std::unique_ptr<Callback> {
                       return std::make_unique<AverageGradients>();
                     }});
}

void clear_plants() {
  for (auto* list : {&kept_outputs, &kept_penalties, &cleared_now_and_then, &workspaces_of_op, &per_thread})
    std::vector<Tensor>().swap(*list);
  running_penalty.reset();
  output_cache.clear();
  bounded_cache.clear();
  ring_of_outputs.clear();
  Logbook::one().lines.clear();
}

ModelSpec model_of(const Plant& plant, uint64_t seed) {
  Chain c("planted", {width_of(seed)});
  const int64_t layers = pick(seed, "layers", 2, 4), at = pick(seed, "at", 1, layers - 1);
  for (int64_t i = 0; i < layers; ++i) {
    const bool last = i + 1 == layers;
    if (i == at && !plant.type.empty()) c.add("plant", plant.type, {{"size", pick(seed, "size", 2, 13)}});
    c.add("fc" + std::to_string(i), "Linear",
          {{"out_features", last ? int64_t{2} : pick(seed + static_cast<uint64_t>(i), "hidden", 5, 40)}});
    if (!last) c.add("act" + std::to_string(i), pick(seed, "activation", 0, 1) ? "ReLU" : "Tanh");
  }
  return c.done();
}

Recipe recipe_of(const Plant& plant, uint64_t seed) {
  Recipe r;
  r.set("data.dataset", "plant_points");
  r.set("data.width", std::to_string(width_of(seed)));
  r.set("data.batch_size", std::to_string(pick(seed, "batch", 8, 24)));
  r.set("data.workers", std::to_string(pick(seed, "workers", 0, 2)));
  r.set("seed", std::to_string(seed));
  r.set("epochs", "20");
  r.set("eval_every", "0");
  r.set("optimizer.type", pick(seed, "optimizer", 0, 1) ? "adam" : "sgd");
  r.set("optimizer.lr", "0.01");
  for (const auto& [key, value] : plant.set) r.set(key, value);
  return r;
}

}  // namespace tenon::projects::testing_leaks
