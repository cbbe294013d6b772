#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/profile.h"
#include "core/tensor.h"

namespace tenon {
class PlannedStep;
}
namespace tenon::nn {
class Module;
}
namespace tenon::optim {
class Optimizer;
}

namespace tenon::app {

/// What `tenon bench` was asked for, and where its figures go.
struct Bench {
  double seconds = 3;
  Device device;  ///< where models and single ops compute
  int64_t threads = 0;
  bool json = false;
  bool compile = false;                   ///< forward and backward run from a plan
  bool explain = false;                   ///< the plan is told, kernel by kernel
  bool bf16 = false;                      ///< models are trained under autocast to bf16
  int64_t runs = 5000, points = 100'000;  ///< of the project of `curves`
  int64_t layers = 10'000;                ///< of the model of `builder`
  std::string project;                    ///< its file; empty: one that goes when it was measured
  std::string file;                       ///< of `loader`, `open` and `onnx`
  int64_t batch = 0;                      ///< of `onnx`; 0: one of 1 and one of 64
  std::string against;                    ///< of `onnx`: another model; empty: none
  std::string net, axis;                  ///< of `growth`: the one that is measured; empty: each
  int64_t at = 0;                         ///< of `growth`: the size that is measured; 0: one after the other

  void emit(const std::string& workload, const std::string& metric, double value, const char* unit) const;

  /// Until the device has done what it was given.
  void wait() const;
  /// Median calls per second over slices that share `seconds`: one slow slice on a shared machine does not count.
  template <class F>
  double rate(F&& step, int slices = 7) const {
    for (int i = 0; i < 3; ++i) step();
    wait();
    int64_t n = 0, start = now_ns();
    while (now_ns() - start < 200'000'000) {
      step();
      // What was queued counts when it was done.
      if (++n % 8 == 0) wait();
    }
    wait();
    n = std::max<int64_t>(1, n * 200'000'000 / std::max<int64_t>(1, now_ns() - start));
    auto calls = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(n) * (seconds / slices) / 0.2));
    std::vector<double> rates;
    for (int s = 0; s < slices; ++s) {
      int64_t t = now_ns();
      for (int64_t i = 0; i < calls; ++i) step();
      wait();
      rates.push_back(static_cast<double>(calls) * 1e9 / static_cast<double>(now_ns() - t));
    }
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
  }
};

/// A folder that goes with the measurement.
struct BenchFolder {
  explicit BenchFolder(const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  std::string path;
};

/// Where bench_normal() and the workloads' models lie: the CPU, until it is set.
Device& bench_device();
/// Random numbers, the same in every run: of a normal distribution, and whole ones of [0, below).
Tensor bench_normal(const Shape& size, uint64_t stream, DType dtype = DType::f32);
Tensor bench_classes(const Shape& size, int64_t below);
/// A net of the workloads with a batch for it and what trains it.
struct BenchNet {
  std::shared_ptr<nn::Module> model;
  Tensor x, y;
  Tensor (*loss)(const Tensor&, const Tensor&);
  std::shared_ptr<optim::Optimizer> optimizer;
  double lr;
  /// Gradients are dropped, forward (under autocast where it is bf16), backward, one update. With `planned`, from a
  /// plan once there is one.
  void step(bool bf16, PlannedStep* planned = nullptr) const;
};
/// The sizes that a net of the workloads can have otherwise than there.
struct NetSize {
  int64_t batch;   ///< samples
  int64_t width;   ///< of mlp: numbers of a hidden layer; of cnn: channels of the first resolution; of gpt: of a token
  int64_t depth;   ///< of mlp: hidden layers; of cnn: convolutions at each resolution; of gpt: blocks
  int64_t length;  ///< of cnn: an image's side in pixels; of gpt: a sample's tokens; 0 where there is none
};
/// A net that can be made in other sizes.
struct SizedNet {
  const char* name;  ///< its workload's
  NetSize fixed;     ///< of its workload
  BenchNet (*make)(const NetSize&);
};
extern const SizedNet kMlp, kCnn, kGpt;

/// Training steps, batches and single samples of a model a second, and the memory of the process after them.
void bench_training(const Bench& b, const std::string& name, const BenchNet& net);

// Models, and single ops.
void bench_tiny(const Bench& b);
void bench_mlp(const Bench& b);
void bench_cnn(const Bench& b);
void bench_resnet18(const Bench& b);
void bench_gpt(const Bench& b);
void bench_lstm(const Bench& b);
void bench_pointwise(const Bench& b);
void bench_reduce(const Bench& b);
void bench_matmul(const Bench& b);
void bench_conv(const Bench& b);
void bench_attention(const Bench& b);
void bench_optimizer(const Bench& b);
void bench_checkpoint(const Bench& b);

/// How a training step's time and memory grow with the batch and the sizes of mlp, cnn and gpt.
void bench_growth(const Bench& b);
/// Whether there is a window, and a display for it; says what is missing.
bool window_can_be_measured(const std::string& workload);
/// A project of many runs, some of them long: made, opened, filtered, and its curves drawn.
void bench_curves(const Bench& b);
/// A model of very many layers in the builder: opened, unfolded, and worked with by mouse and wheel.
void bench_builder(const Bench& b);
/// A model file as `tenon exec` runs it, beside itself without integers and beside another one, in turns.
void bench_onnx(const Bench& b);
/// The data of a project, loaded alone and taken by its steps.
void bench_loader(const Bench& b);
/// A large trace, snapshot or model file in the window: opened, flown through, opened again.
void bench_open(const Bench& b);

}  // namespace tenon::app
