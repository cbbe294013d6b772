// What a step will need, told before it, and what it then takes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/dry_device.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/pool_block.h"
#include "engine/data/dataset.h"
#include "engine/nn/module.h"
#include "engine/op/dry_ops.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "engine/train/memory_forecast.h"
#include "engine/train/memory_proposals.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/sessions.h"

namespace tenon::memory_forecast {
namespace {

using testing_sessions::Settings;
using testing_sessions::with;

/// Adds up the blocks that are taken while it lives, as the pool counts them.
class Measured : public MemoryObserver {
 public:
  Measured() { add_memory_observer(*this); }
  ~Measured() override { remove_memory_observer(*this); }
  void taken(const Storage& s) override {
    std::lock_guard lock(mutex_);
    const auto bytes = static_cast<int64_t>(pool_block_bytes(s.bytes));
    const Category c = t_state.origin.category;
    known_[s.id] = {c, bytes};
    add(c, bytes);
  }
  void given_back(const Storage& s) override {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(s.id);
    if (found == known_.end()) return;  // taken before
    add(found->second.first, -found->second.second);
    known_.erase(found);
  }
  int64_t peak() const { return peak_; }
  int64_t most(Category c) const { return most_[static_cast<size_t>(c)]; }
  int64_t at_peak(Category c) const { return at_peak_[static_cast<size_t>(c)]; }
  /// Waits until the loader's workers have as much ready as they may.
  void wait_for_data(int64_t bytes) {
    for (int i = 0; i < 2000; ++i) {
      {
        std::lock_guard lock(mutex_);
        if (live_[static_cast<size_t>(Category::data)] >= bytes) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL() << "the loader does not have its batches ready";
  }

 private:
  void add(Category c, int64_t bytes) {
    const auto i = static_cast<size_t>(c);
    all_ += bytes;
    live_[i] += bytes;
    most_[i] = std::max(most_[i], live_[i]);
    if (all_ > peak_) peak_ = all_, at_peak_ = live_;
  }
  std::mutex mutex_;
  std::map<uint32_t, std::pair<Category, int64_t>> known_;
  int64_t all_ = 0, peak_ = 0;
  BytesByCategory live_{}, most_{}, at_peak_{};
};

struct Project {
  ModelSpec model;
  Recipe recipe;
  std::shared_ptr<const data::Split> data;
};

class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = testing::TempDir() + "tenon_forecast_" + std::to_string(::getpid());
};

bool has_fashion_mnist() {
  try {
    open_data(find_template("fashion-mlp").recipe);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A template with data small enough for a test.
Project project_of(const Template& t, const Folder& folder) {
  Settings set;
  const std::string kind = t.recipe.text("data.dataset");
  if (kind == "text") set = {{"data.context", "32"}, {"data.cache", folder / "cache"}};
  if (t.name == "resnet18" || t.name == "u-net") set = {{"data.samples", "64"}};
  if (t.name == "recommender" || t.name == "series") set = {{"data.samples", "1000"}};
  const Beginning b = begin(t, "", folder / (t.name + ".tenon"), set);
  return {b.model, b.recipe, std::make_shared<const data::Split>(open_data(b.recipe))};
}

int64_t in(const BytesByCategory& all, Category c) { return all[static_cast<size_t>(c)]; }

TEST(MemoryForecast, EveryTemplateNeedsWhatWasForetold) {
  const Folder folder;
  const std::vector<std::pair<const char*, Settings>> recipes = {
      {"sgd", {{"optimizer.type", "sgd"}}},
      {"adam", {{"optimizer.type", "adam"}}},
      {"bf16", {{"optimizer.type", "adam"}, {"amp", "bf16"}}}};
  int templates_seen = 0;
  for (const Template& t : templates()) {
    if (t.recipe.text("data.dataset") == "fashion-mnist" && !has_fashion_mnist()) continue;
    const Project p = project_of(t, folder);
    ++templates_seen;
    double worst = 0;
    std::string worst_of;
    for (const char* batch : {"4", "7", "16"})
      for (const auto& [name, set] : recipes) {
        SCOPED_TRACE(t.name + ", batch " + batch + ", " + name);
        Recipe r = with(p.recipe, {{"data.batch_size", batch}});
        for (const AttrDef& key : Recipe::keys())  // of another optimizer
          if (key.name.starts_with("optimizer.")) r.reset(key.name);
        r = with(r, set);
        const MemoryForecast f = forecast_memory(p.model, r, p.data);
        pool_trim();
        pool_reset_peak();
        const PoolStats before = pool_stats();
        Measured measured;
        TrainingSession session(p.model, r, {.data = p.data});
        const int64_t ready =
            r.integer("data.prefetch") * (in(f.most, Category::data) / (r.integer("data.prefetch") + 1));
        for (int step = 0; step < 2; ++step) {
          measured.wait_for_data(ready);
          session.step();
        }
        const double off = static_cast<double>(f.peak_bytes - measured.peak()) / static_cast<double>(measured.peak());
        if (std::abs(off) > std::abs(worst)) worst = off, worst_of = std::string("batch ") + batch + ", " + name;
        EXPECT_LE(std::abs(off), 0.05) << f.peak_bytes << " foretold, " << measured.peak() << " measured, at "
                                       << tenon::name(f.phase) << " " << f.layer << " " << f.op;
        // The pool's own figures: it looks for its peak, and counts what it keeps, with large blocks alone.
        const PoolStats after = pool_stats();
        if (const auto peak = static_cast<double>(after.peak_bytes - before.live_bytes); peak > 4e6) {
          EXPECT_NEAR(static_cast<double>(f.peak_bytes), peak, 0.05 * peak);
          const auto held =
              static_cast<double>(after.live_bytes + after.cached_bytes - before.live_bytes - before.cached_bytes);
          EXPECT_NEAR(static_cast<double>(f.held_bytes), held, 0.05 * held);
        }
        for (Category c : {Category::optimizer, Category::buffer, Category::gradient})
          EXPECT_EQ(in(f.most, c), measured.most(c)) << tenon::name(c);
        // What an op makes on the host on its way, and working memory that a kernel calls an activation.
        EXPECT_NEAR(static_cast<double>(in(f.most, Category::parameter)),
                    static_cast<double>(measured.most(Category::parameter)), 64);
        EXPECT_NEAR(static_cast<double>(in(f.most, Category::activation)),
                    static_cast<double>(measured.most(Category::activation)),
                    0.002 * static_cast<double>(measured.most(Category::activation)) + 64);
        EXPECT_GE(in(f.most, Category::data), measured.most(Category::data));
        EXPECT_GE(measured.most(Category::data), ready);
      }
    std::printf("[          ] %-12s worst %+.3f %% (%s)\n", t.name.c_str(), 100 * worst, worst_of.c_str());
  }
  EXPECT_GE(templates_seen, 8);
}

ModelSpec small_cnn() {
  using I = int64_t;
  Chain c("cnn", {2});
  c.add("view", "Reshape", {{"shape", std::vector<I>{1, 2, 1}}});
  c.add("conv1", "Conv2d",
        {{"out_channels", I{16}}, {"kernel_size", std::vector<I>{3, 3}}, {"padding", std::vector<I>{2, 2}}});
  c.add("norm1", "BatchNorm2d").add("act1", "ReLU").add("drop", "Dropout", {{"p", 0.2}});
  c.add("conv2", "Conv2d",
        {{"out_channels", I{16}}, {"kernel_size", std::vector<I>{3, 3}}, {"padding", std::vector<I>{1, 1}}});
  c.add("norm2", "BatchNorm2d").add("act2", "Tanh").add("flat", "Flatten");
  return c.add("fc", "Linear", {{"out_features", I{2}}}).done();
}
Recipe spirals_recipe(const Settings& set) { return testing_sessions::spirals(set); }
std::shared_ptr<const data::Split> data_of(const Recipe& r) {
  return std::make_shared<const data::Split>(open_data(r));
}

/// Live bytes at the highest moment of two real steps.
int64_t measured_peak(const ModelSpec& model, const Recipe& r, const std::shared_ptr<const data::Split>& data) {
  Measured measured;
  TrainingSession session(model, r, {.data = data});
  session.step();
  session.step();
  return measured.peak();
}

TEST(MemoryForecast, LeavesNothingBehind) {
  const Recipe r = spirals_recipe({{"data.batch_size", "64"}, {"data.samples", "200000"}});
  const auto data = data_of(r);
  forecast_memory(small_cnn(), r, data);  // what is made once for the whole program
  TrainingSession running(small_cnn(), with(r, {{"data.workers", "0"}}), {.data = data});
  TrainingSession alone(small_cnn(), with(r, {{"data.workers", "0"}}), {.data = data});
  running.step();
  alone.step();
  const auto resident = [] {
    std::ifstream in("/proc/self/statm");
    int64_t all = 0, pages = 0;
    in >> all >> pages;
    return pages * ::sysconf(_SC_PAGE_SIZE);
  };
  const PoolStats before = pool_stats();
  const int64_t resident_before = resident();
  const Origin origin = t_state.origin;
  const MemoryForecast f = forecast_memory(small_cnn(), with(r, {{"data.batch_size", "150000"}}), data);
  EXPECT_GT(f.peak_bytes, int64_t{1} << 29);
  EXPECT_LT(resident() - resident_before, int64_t{16} << 20);
  const PoolStats after = pool_stats();
  EXPECT_NEAR(static_cast<double>(after.live_bytes), static_cast<double>(before.live_bytes), 64) << "a step's key";
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(t_state.origin.seq, origin.seq);
  EXPECT_EQ(t_state.origin.phase, origin.phase);
  EXPECT_EQ(running.step().loss, alone.step().loss);
  testing_sessions::expect_same(running.save(), alone.save());
}

TEST(MemoryForecast, AnEvaluationIsForetoldToo) {
  const Recipe r = spirals_recipe({{"data.batch_size", "4"}, {"data.samples", "3000"}, {"data.workers", "0"}});
  const auto data = data_of(r);
  const MemoryForecast f = forecast_memory(small_cnn(), r, data);
  EXPECT_GT(f.evaluation_bytes, 2 * f.peak_bytes) << "256 samples at once, beside steps of 4";
  EXPECT_GT(f.held_with_evaluation, f.held_bytes);
  EXPECT_EQ(f.needed_bytes(), f.held_with_evaluation + f.checkpoint_bytes);
  TrainingSession session(small_cnn(), r, {.data = data});
  session.step();
  Measured measured;
  session.evaluate();
  // What the session held before is in the forecast, and not in what was measured from here on.
  const auto state = static_cast<double>(f.checkpoint_bytes);
  EXPECT_NEAR(static_cast<double>(f.evaluation_bytes), static_cast<double>(measured.peak()) + state,
              0.05 * state + 0.05 * static_cast<double>(measured.peak()));
  const MemoryForecast large = forecast_memory(small_cnn(), with(r, {{"data.batch_size", "900"}}), data);
  EXPECT_LT(large.evaluation_bytes, large.peak_bytes) << "a step of 900 keeps what an evaluation does not";
}

TEST(MemoryForecast, TheLargestBatchFitsAndOneMoreDoesNot) {
  const Recipe r = spirals_recipe({{"data.batch_size", "8"}, {"data.samples", "5000"}});
  const auto data = data_of(r);
  const auto needed = [&](int64_t batch) {
    return forecast_memory(small_cnn(), with(r, {{"data.batch_size", std::to_string(batch)}}), data).needed_bytes();
  };
  for (const int64_t batch : {2, 37, 100, 1000, 3999}) {
    const int64_t limit = needed(batch);
    const LargestBatch largest = largest_batch(small_cnn(), r, data, limit);
    EXPECT_GE(10 * largest.batch, 9 * batch);  // sizes of blocks go up in steps, so a larger batch may need less
    EXPECT_FALSE(largest.whole_data);
    EXPECT_LE(needed(largest.batch), limit);
    EXPECT_GT(needed(largest.batch + 1), limit);
    EXPECT_EQ(largest.needed_bytes, needed(largest.batch));
  }
  EXPECT_EQ(largest_batch(small_cnn(), r, data, needed(2) - 1).batch, 0);
  const LargestBatch all = largest_batch(small_cnn(), r, data, int64_t{1} << 40);
  EXPECT_EQ(all.batch, data->train->size());
  EXPECT_TRUE(all.whole_data);
  EXPECT_THROW(largest_batch(small_cnn(), r, data, needed(100), [] { return true; }), Error);
}

TEST(MemoryForecast, AnOutlineOfTheDataIsEnough) {
  const Recipe r = spirals_recipe({{"data.batch_size", "32"}});
  const auto data = data_of(r), outline = outline_of(*data, r);
  EXPECT_EQ(forecast_memory(small_cnn(), r, outline).peak_bytes, forecast_memory(small_cnn(), r, data).peak_bytes);
  EXPECT_THROW(data::fetch(*outline->train, {0}), Error);
  const Recipe balanced = with(r, {{"data.sampling", "balanced"}});
  EXPECT_EQ(forecast_memory(small_cnn(), balanced, outline_of(*data, balanced)).batch, 32);
}

TEST(MemoryForecast, ProposalsSaveWhatTheySay) {
  const Recipe r = spirals_recipe({{"data.batch_size", "256"}, {"data.samples", "1000"}, {"optimizer.type", "adam"}});
  const auto data = data_of(r);
  const ModelSpec model = small_cnn();
  const MemoryForecast now = forecast_memory(model, r, data);
  const std::vector<MemoryProposal> all = memory_proposals(model, r, data, now);
  std::set<MemoryProposal::Kind> kinds;
  for (const MemoryProposal& p : all) {
    SCOPED_TRACE(p.set.at(0).first + "=" + p.set.at(0).second);
    kinds.insert(p.kind);
    const Recipe changed = applied(r, p);
    const MemoryForecast then = forecast_memory(model, changed, data);
    EXPECT_EQ(p.saved_bytes, now.needed_bytes() - then.needed_bytes());
    EXPECT_GT(p.saved_bytes, 0);
    EXPECT_GT(p.time, 0.2);
    EXPECT_LT(p.time, 5);
    const int64_t measured = measured_peak(model, changed, data);
    EXPECT_NEAR(static_cast<double>(then.peak_bytes), static_cast<double>(measured),
                0.05 * static_cast<double>(measured));
  }
  EXPECT_TRUE(kinds.count(MemoryProposal::Kind::recompute));
  EXPECT_TRUE(kinds.count(MemoryProposal::Kind::accumulate));
  EXPECT_TRUE(kinds.count(MemoryProposal::Kind::smaller_batch));
}

TEST(Recompute, TakesTheSameStepsForLessMemory) {
  const Recipe kept = spirals_recipe({{"data.batch_size", "200"}, {"data.samples", "1000"}});
  const auto data = data_of(kept);
  for (const char* amp : {"none", "bf16"})
    for (const char* stretches : {"2", "3", "5", "100"}) {
      SCOPED_TRACE(std::string(amp) + ", " + stretches);
      const Recipe plain = with(kept, {{"amp", amp}}), again = with(plain, {{"recompute", stretches}});
      TrainingSession a(small_cnn(), plain, {.data = data}), b(small_cnn(), again, {.data = data});
      for (int i = 0; i < 4; ++i) {
        const StepResult x = a.step(), y = b.step();
        EXPECT_EQ(x.loss, y.loss);
        EXPECT_EQ(x.grad_norm, y.grad_norm);
      }
      testing_sessions::expect_same(a.save(), b.save());
      EXPECT_EQ(a.evaluate().loss, b.evaluate().loss);
    }
  EXPECT_LT(measured_peak(small_cnn(), with(kept, {{"recompute", "3"}}), data), measured_peak(small_cnn(), kept, data));
}

TEST(DryDevice, CountsAsThePoolDoesAndGivesNothing) {
  make_ops_dry();
  DryLedger ledger;
  Tensor kept;
  {
    const Tensor t = full({1000, 3}, 2, DType::f32, ledger.device());
    EXPECT_EQ(ledger.live_bytes(), static_cast<int64_t>(pool_block_bytes(12000)));
    EXPECT_EQ(item(narrow(t, 0, 3, 1).size() == Shape{1, 3} ? select(select(t, 0, 3), 0, 0) : t), 0);
    kept = add(t, t);
    EXPECT_EQ(ledger.block_of(kept), 1);
    EXPECT_EQ(ledger.block_of(ones({2})), -1);
  }
  EXPECT_EQ(ledger.live_bytes(), static_cast<int64_t>(pool_block_bytes(12000)));
  ASSERT_EQ(ledger.events().size(), 3u);
  EXPECT_TRUE(ledger.events()[1].taken);
  EXPECT_FALSE(ledger.events()[2].taken);
  EXPECT_EQ(ledger.events()[2].block, 0u);
  EXPECT_EQ(pool_block_bytes(pool_block_bytes(12000)), pool_block_bytes(12000));
  const DryLedger other;
  EXPECT_FALSE(other.device() == ledger.device());
  EXPECT_EQ(other.live_bytes(), 0);
}

/// What a kernel takes from the pool while it runs, beside its outputs and what it says it works in.
int64_t taken_by(const OpDef& op, const Sample& s, const std::vector<Tensor>& in) {
  std::vector<Tensor> out(static_cast<size_t>(op.info.outputs));
  NoGrad no_grad;
  dispatch(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
  Measured measured;
  run_kernel(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
  const Call call{&op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data(), op.info.outputs, {}, nullptr};
  const size_t works_in = op.workspace ? op.workspace(s.attrs.get(), call) : 0;
  const int64_t said = works_in > 0 ? static_cast<int64_t>(pool_block_bytes(works_in)) : 0;
  return measured.peak() - said;
}

/// The same values in another order of memory than the dense one.
Tensor in_another_order(const Tensor& t) {
  if (t.ndim() < 2) return t.ndim() == 1 ? flip(contiguous(flip(t, 0)), 0) : t;
  return transpose(contiguous(transpose(t, -1, -2)), -1, -2);
}

TEST(Workspace, IsAllThatAKernelTakes) {
  int say_all = 0, in_other_orders = 0;
  for (const OpDef& op : all_ops()) {
    if (!op.samples || op.info.any_device || op.view) continue;
    Samples samples;
    op.samples(samples);
    for (const Sample& s : samples.all())
      for (DType type : {DType::f32, DType::f64})
        for (bool dense : {true, false}) {
          SCOPED_TRACE(std::string(op.info.name) + " / " + s.name + " " + tenon::name(type) +
                       (dense ? "" : ", strided"));
          std::vector<Tensor> in;
          for (const Tensor& t : s.inputs) {
            in.push_back(t.defined() && t.dtype() == DType::f64 ? cast(t, type) : t);
            if (!dense && t.defined()) in.back() = in_another_order(in.back());
          }
          int64_t more = 0;
          try {
            more = taken_by(op, s, in);
          } catch (const Error&) {
            continue;  // a sample of f64 alone, or an op that wants its operands dense
          }
          // Numbers that are given as attributes become tensors of one element.
          EXPECT_LE(more, op.workspace ? 0 : 128);
          say_all += op.workspace != nullptr;
          in_other_orders += !dense;
        }
  }
  EXPECT_GT(say_all, 200);
  EXPECT_GT(in_other_orders, 200);
}

}  // namespace
}  // namespace tenon::memory_forecast
