#include "engine/train/memory_forecast.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/dry_device.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/pool_block.h"
#include "core/profile.h"
#include "engine/data/dataset.h"
#include "engine/kernels/gemm.h"
#include "engine/nn/module.h"
#include "engine/op/dry_ops.h"
#include "engine/op/op.h"
#include "engine/optim/optimizer.h"
#include "engine/train/recipe.h"
#include "engine/train/session_impl.h"

namespace tenon {
namespace {

constexpr int kSteps = 2;
constexpr size_t kHostBytes = size_t{256} << 20;  // what an op may make on the host on its way to the dry device

/// Adds up what the ops of the second step compute and move.
struct CostMeter : OpObserver, TrainingObserver {
  MachineRates rates = machine_rates();
  double flops = 0, bytes = 0, seconds = 0;
  void on_step_begin(int64_t) override { flops = bytes = seconds = 0; }
  void after(const Call& call, int64_t, int64_t) override {
    constexpr double kDispatch = 1e-6;  // what an op of a few elements costs
    const Cost c = cost_of(call);
    flops += c.flops;
    bytes += c.bytes;
    seconds += std::max({c.flops / rates.flops, c.bytes / rates.bytes, kDispatch});
  }
};

/// The layers of a model and what belongs to them: by module path, and of what was made before paths were given, by
/// block.
struct Owners {
  std::vector<std::string> layers;
  std::unordered_map<int64_t, std::string> blocks;

  Owners(TrainingSession& session, const DryLedger& ledger) {
    for (const auto& [name, child] : session.model().children()) layers.push_back(name);
    const auto note = [&](const std::vector<nn::Named>& all) {
      for (const nn::Named& n : all)
        if (const int64_t b = ledger.block_of(n.tensor); b >= 0) blocks.emplace(b, layer_of(n.name));
    };
    note(session.model().parameters());
    note(session.model().buffers());
    note(session.optimizer().state());
  }
  std::string of(const DryEvent& e) const {
    const auto found = blocks.find(e.block);
    return found != blocks.end() ? found->second : layer_of(module_path(e.origin.module));
  }
  /// The layer that a module, parameter or state lies in; empty: none. Names of layers may have dots.
  std::string layer_of(std::string path) const {
    while (!path.empty()) {
      if (std::find(layers.begin(), layers.end(), path) != layers.end()) return path;
      const size_t dot = path.rfind('.');
      path.erase(dot == std::string::npos ? 0 : dot);
    }
    return {};
  }
};

/// How many blocks of each size are live, and the most that ever were.
struct SizeClasses {
  std::map<int64_t, std::pair<int64_t, int64_t>> live_and_most;
  void see(const DryEvent& e) {
    auto& [live, most] = live_and_most[e.bytes];
    live += e.taken ? 1 : -1;
    most = std::max(most, live);
  }
  int64_t held() const {
    int64_t sum = 0;
    for (const auto& [bytes, counts] : live_and_most)
      sum += counts.second * (bytes + static_cast<int64_t>(kPoolHeaderBytes));
    return sum;
  }
};

/// Walks the history once for the highest moment of the steps and the highest of each category; what is behind `steps`
/// is the evaluation. Gives the place of that moment.
size_t find_peak(const std::vector<DryEvent>& events, size_t steps, MemoryForecast& f) {
  std::unordered_map<uint32_t, Category> category;
  BytesByCategory live{};
  SizeClasses classes;
  int64_t all = 0;
  size_t peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const DryEvent& e = events[i];
    classes.see(e);
    if (e.taken) category[e.block] = e.origin.category;
    const auto c = static_cast<size_t>(category[e.block]);
    const int64_t change = e.taken ? e.bytes : -e.bytes;
    all += change;
    if (i >= steps) {
      f.evaluation_bytes = std::max(f.evaluation_bytes, all);
      continue;
    }
    if (i + 1 == steps) f.held_bytes = classes.held();
    live[c] += change;
    f.most[c] = std::max(f.most[c], live[c]);
    if (all > f.peak_bytes) f.peak_bytes = all, peak = i;
  }
  f.held_with_evaluation = classes.held();
  return peak;
}

/// What is live behind event `peak`, by category and layer.
void spread_peak(const std::vector<DryEvent>& events, size_t peak, const Owners& owners, MemoryForecast& f) {
  std::unordered_map<uint32_t, const DryEvent*> live;
  std::map<std::string, LayerMemory> by_layer;
  for (size_t i = 0; i < events.size(); ++i) {
    const DryEvent& e = events[i];
    if (e.taken && e.origin.category == Category::workspace) {
      int64_t& largest = by_layer[owners.of(e)].largest_workspace;
      largest = std::max(largest, e.bytes);
    }
    if (i > peak) continue;
    if (e.taken)
      live[e.block] = &e;
    else
      live.erase(e.block);
  }
  for (const auto& [block, e] : live) {
    const auto c = static_cast<size_t>(e->origin.category);
    f.at_peak[c] += e->bytes;
    by_layer[owners.of(*e)].at_peak[c] += e->bytes;
  }
  const auto put = [&](const std::string& layer) {
    auto found = by_layer.find(layer);
    if (found == by_layer.end()) return;
    found->second.layer = layer;
    f.layers.push_back(std::move(found->second));
    by_layer.erase(found);
  };
  for (const std::string& layer : owners.layers) put(layer);
  // What no layer has: batches, the loss, and modules beside the model.
  LayerMemory rest;
  for (const auto& [name, m] : by_layer) {
    for (size_t c = 0; c < rest.at_peak.size(); ++c) rest.at_peak[c] += m.at_peak[c];
    rest.largest_workspace = std::max(rest.largest_workspace, m.largest_workspace);
  }
  f.layers.push_back(std::move(rest));
}

class Outline : public data::Dataset {
 public:
  explicit Outline(const data::Dataset& of)
      : size_(of.size()),
        input_(of.input()),
        target_(of.target()),
        classes_(of.classes()),
        task_(of.task()),
        bytes_per_token_(of.bytes_per_token()) {}
  int64_t size() const override { return size_; }
  Meta input() const override { return input_; }
  Meta target() const override { return target_; }
  int64_t classes() const override { return classes_; }
  std::string task() const override { return task_; }
  double bytes_per_token() const override { return bytes_per_token_; }
  void fetch(const int64_t*, int64_t, void*, void*) const override {
    throw Error("the outline of a data set has no samples");
  }

 private:
  int64_t size_;
  Meta input_, target_;
  int64_t classes_;
  std::string task_;
  double bytes_per_token_;
};

int64_t state_bytes(TrainingSession& session) {
  int64_t sum = 0;
  const auto add = [&](const std::vector<nn::Named>& all) {
    for (const nn::Named& n : all) sum += static_cast<int64_t>(pool_block_bytes(n.tensor.nbytes()) + kPoolHeaderBytes);
  };
  add(session.model().parameters());
  add(session.model().buffers());
  if (session.recipe().text("average.type") != "none") sum *= 2;  // the averages of both
  add(session.optimizer().state());
  return sum;
}

}  // namespace

std::shared_ptr<const data::Split> outline_of(const data::Split& data, const Recipe& recipe) {
  bool balances = recipe.text("data.sampling") == "balanced";
  for (const Attr& a : recipe.attrs("loss")) balances |= a.value == AttrValue(std::string("balanced"));
  if (balances) return std::make_shared<const data::Split>(data);
  return std::make_shared<const data::Split>(
      data::Split{std::make_shared<const Outline>(*data.train), std::make_shared<const Outline>(*data.test)});
}

MachineRates machine_rates() {
  static const MachineRates rates = [] {
    constexpr int64_t n = 512, values = 4 << 20;
    std::vector<float> a(n * n, 1.0f), b(n * n, 1.0f), c(n * n), from(values, 1.0f), to(values);
    const auto best_of = [](int times, const auto& work) {
      int64_t best = INT64_MAX;
      for (int i = 0; i < times; ++i) {
        const int64_t start = now_ns();
        work();
        best = std::min(best, now_ns() - start);
      }
      return static_cast<double>(std::max<int64_t>(1, best)) * 1e-9;
    };
    const double product =
        best_of(4, [&] { kernels::gemm(false, false, n, n, n, a.data(), n, b.data(), n, c.data(), n); });
    const double copy = best_of(4, [&] {
      parallel_for(values, values / 8, [&](int64_t begin, int64_t end) {
        std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
      });
    });
    return MachineRates{2.0 * n * n * n / product, 2.0 * values * sizeof(float) / copy};
  }();
  return rates;
}

MemoryForecast forecast_memory(const ModelSpec& spec, const Recipe& recipe,
                               const std::shared_ptr<const data::Split>& data) {
  make_ops_dry();
  const AllocationLimit host(kHostBytes);
  const DryLedger ledger;
  CostMeter meter;
  MemoryForecast f;
  f.batch = recipe.integer("data.batch_size");
  TrainingSession session(spec, recipe, {.device = ledger.device(), .data = data});
  session.add_observer(&meter);
  const Owners owners(session, ledger);
  std::array<size_t, kSteps> begins{};
  {
    ObserveScope observe(meter);
    for (size_t i = 0; i < kSteps; ++i) {
      begins[i] = ledger.events().size();
      session.step();
    }
  }
  const size_t steps = ledger.events().size();
  session.rehearse_evaluation();
  const int64_t parts = std::min(recipe.integer("data.micro_batches"), f.batch);
  const double of_all = parts > kDryParts ? static_cast<double>(parts) / static_cast<double>(kDryParts) : 1;
  f.flops = of_all * meter.flops;
  f.moved_bytes = of_all * meter.bytes;
  f.seconds = of_all * meter.seconds;
  f.checkpoint_bytes = state_bytes(session);
  const std::vector<DryEvent>& events = ledger.events();
  const size_t peak = find_peak(events, steps, f);
  spread_peak(events, peak, owners, f);
  const DryEvent& e = events.at(peak);
  f.phase = e.origin.phase;
  f.layer = owners.of(e);
  f.op = interned_name(e.op);
  f.step = peak >= begins[1] ? 2 : peak >= begins[0] ? 1 : 0;
  return f;
}

LargestBatch largest_batch(const ModelSpec& spec, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
                           int64_t limit, const Cancelled& cancelled) {
  constexpr int64_t kNoSuchBatch = INT64_MAX / 4;  // its tensors have more elements than a size can hold
  const int64_t all = data->train->size();
  std::map<int64_t, int64_t> known;
  const auto needed = [&](int64_t batch) {
    const auto found = known.find(batch);
    if (found != known.end()) return found->second;
    if (cancelled && cancelled()) throw Error("the forecast of memory was cancelled");
    Recipe with = recipe;
    with.set_value("data.batch_size", batch);
    int64_t bytes = kNoSuchBatch;
    try {
      bytes = forecast_memory(spec, with, data).needed_bytes();
    } catch (const Error&) {
    }
    return known[batch] = bytes;
  };
  const int64_t smallest = std::min<int64_t>(2, all);  // a norm over the batch has no variance of one
  if (needed(all) <= limit) return {all, true, needed(all)};
  if (needed(smallest) > limit) return {};
  int64_t fits = smallest, too_much = all;
  while (too_much - fits > 1) {
    // Memory grows about in a line with the batch: the guess is where the line meets the limit, never near an end.
    const double slope = static_cast<double>(needed(too_much) - needed(fits)) / static_cast<double>(too_much - fits);
    double guess = static_cast<double>(fits) + static_cast<double>(limit - needed(fits)) / std::max(slope, 1e-9);
    if (needed(too_much) == kNoSuchBatch) guess = 0.5 * static_cast<double>(fits + too_much);
    const int64_t margin = std::max<int64_t>(1, (too_much - fits) / 16);
    const int64_t at =
        std::clamp(static_cast<int64_t>(guess), fits + margin, std::max(fits + margin, too_much - margin));
    (needed(at) <= limit ? fits : too_much) = at;
  }
  return {fits, false, needed(fits)};
}

}  // namespace tenon
