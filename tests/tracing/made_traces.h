#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

// A training loop on a CPU and a GPU that are simulated: ops launch work, streams run it in order, and what happens is written as a trace.
namespace tenon::tracing {

class MadeTrace {
 public:
  explicit MadeTrace(int rank = -1, int64_t clock = 0) : rank_(rank), clock_(clock) {}

  void begin_step(int number) {
    step_begin_ = cpu_;
    number_ = number;
  }
  void end_step() {
    slice("user_annotation", "ProfilerStep#" + std::to_string(number_), "1", "1", step_begin_, cpu_ - step_begin_);
    cpu_ += 1000;
  }
  void load_data(int64_t ns) {
    slice("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "1", "1", cpu_, ns);
    cpu_ += ns;
  }
  void nothing(int64_t ns) { cpu_ += ns; }
  /// An op of the CPU that launches one piece of work.
  void op(const std::string& name, int64_t cpu_ns, const std::string& kernel, int64_t kernel_ns, int stream = 7, const std::string& category = "kernel", int64_t not_before = 0) {
    int64_t c = ++correlation_, call = cpu_ns / 2, launched = cpu_ + cpu_ns / 4 + call;
    slice("cpu_op", name, "1", "1", cpu_, cpu_ns);
    slice("cuda_runtime", "cudaLaunchKernel", "1", "1", cpu_ + cpu_ns / 4, call, "\"correlation\": " + std::to_string(c));
    int64_t start = std::max({launched + 2000, gpu_[stream], not_before});
    slice(category, kernel, "0", std::to_string(stream), start, kernel_ns, "\"correlation\": " + std::to_string(c));
    gpu_[stream] = start + kernel_ns;
    cpu_ += cpu_ns;
  }
  void sync(int64_t latency = 1000) {
    int64_t until = cpu_;
    for (auto& [s, t] : gpu_) until = std::max(until, t);
    slice("cuda_runtime", "cudaStreamSynchronize", "1", "1", cpu_, until + latency - cpu_);
    cpu_ = until + latency;
  }
  int64_t gpu_end(int stream = 7) { return gpu_[stream]; }
  int64_t now() const { return cpu_; }

  std::string text() const {
    std::string head = "{\n\"schemaVersion\": 1,\n";
    if (rank_ >= 0) head += "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::to_string(rank_) + "},\n";
    return head + "\"traceEvents\": [\n" + events_ + "\n]}\n";
  }

 private:
  void slice(const std::string& category, const std::string& name, const std::string& pid, const std::string& tid, int64_t start, int64_t duration, const std::string& args = "") {
    auto us = [](int64_t ns) {
      std::string fraction = std::to_string(ns % 1000);
      return std::to_string(ns / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction;
    };
    events_ += (events_.empty() ? "" : ",\n") + ("{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name + "\", \"pid\": " + pid + ", \"tid\": " + tid + ", \"ts\": " + us(start + clock_) + ", \"dur\": " + us(duration) +
                                                 (args.empty() ? "" : ", \"args\": {" + args + "}") + "}");
  }
  int rank_;
  int64_t clock_, cpu_ = 1000000, step_begin_ = 0, correlation_ = 0;
  int number_ = 0;
  std::map<int, int64_t> gpu_;
  std::string events_;
};

}  // namespace tenon::tracing
