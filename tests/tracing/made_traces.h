#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"

// A training loop on a CPU and a GPU that are simulated: threads run ops, ops launch work, streams run it in order, and
// what happens is written as a trace.
namespace tenon::tracing {

class MadeTrace {
 public:
  /// Every duration is off by up to `noise` of itself.
  explicit MadeTrace(int rank = -1, int64_t clock = 0, double noise = 0, uint64_t seed = 0)
      : rank_(rank), clock_(clock), noise_(noise), random_{seed, 17} {}

  int64_t about(int64_t ns) {
    return noise_ > 0
               ? static_cast<int64_t>(
                     static_cast<double>(ns) *
                     (1 + noise_ * (2 * static_cast<double>(random_.below(drawn_++ * 2, 1u << 20)) / (1 << 20) - 1)))
               : ns;
  }

  void begin_step(int number) {
    step_begin_ = cpu_;
    number_ = number;
    if (framed_) cpu_ += 600;
  }
  /// With the frame of profiler.step(), which ends one step and begins the next, so that neither lies within the other.
  void end_step(bool frame = false) {
    slice("user_annotation", "ProfilerStep#" + std::to_string(number_), "1", "1", step_begin_, cpu_ - step_begin_);
    if (frame) slice("python_function", "torch/profiler/profiler.py(1443): step", "1", thread_, cpu_ - 2000, 3400);
    cpu_ += 1000;
    framed_ = frame;
  }
  void load_data(int64_t ns, const std::string& iterator = "_SingleProcessDataLoaderIter") {
    ns = about(ns);
    slice("user_annotation", "enumerate(DataLoader)#" + iterator + ".__next__", "1", thread_, cpu_, ns);
    cpu_ += ns;
  }
  void nothing(int64_t ns) { cpu_ += about(ns); }

  /// What runs inside of `body` lies in a slice: an annotation, a frame of Python, an op.
  template <class Body>
  void in(const std::string& category, const std::string& name, Body body) {
    const int64_t begin = cpu_;
    const std::string thread = thread_;
    cpu_ += 300;
    body();
    cpu_ += 300;
    slice(category, name, "1", thread, begin, cpu_ - begin);
  }

  struct Launch {
    std::string kernel;
    int64_t ns = 0;
    int stream = 7;
    std::string category = "kernel";
    int64_t not_before = 0;
  };
  /// An op of the CPU that launches one piece of work.
  void op(const std::string& name, int64_t cpu_ns, const std::string& kernel, int64_t kernel_ns, int stream = 7,
          const std::string& category = "kernel", int64_t not_before = 0) {
    op(name, cpu_ns, {{kernel, kernel_ns, stream, category, not_before}});
  }
  /// ... or several by one call, as a CUDA graph does. Returns when the op began.
  int64_t op(const std::string& name, int64_t cpu_ns, const std::vector<Launch>& work,
             const std::string& launch = "cudaLaunchKernel") {
    cpu_ns = about(cpu_ns);
    const int64_t c = ++correlation_, call = cpu_ns / 2, launched = cpu_ + cpu_ns / 4 + call, began = cpu_;
    slice("cpu_op", name, "1", thread_, cpu_, cpu_ns);
    slice("cuda_runtime", launch, "1", thread_, cpu_ + cpu_ns / 4, call, "\"correlation\": " + std::to_string(c));
    for (const Launch& w : work) {
      const int64_t ns = about(w.ns), start = std::max({launched + 2000, gpu_[w.stream], w.not_before});
      slice(w.category, w.kernel, "0", std::to_string(w.stream), start, ns, "\"correlation\": " + std::to_string(c));
      gpu_[w.stream] = start + ns;
    }
    cpu_ += cpu_ns;
    return began;
  }
  /// A forward op and the backward op that belongs to it: each where and when it began.
  struct Place {
    std::string thread;
    int64_t time = 0;
  };
  Place here() const { return {thread_, cpu_}; }
  void link(const Place& forward, const Place& backward) {
    const std::string id = std::to_string(++flows_);
    for (bool from : {true, false}) {
      const Place& p = from ? forward : backward;
      add("{\"ph\": \"" + std::string(from ? "s" : "f") + "\", \"id\": " + id + ", \"pid\": 1, \"tid\": " + p.thread +
          ", \"ts\": " + us(p.time + clock_) + ", \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\"" +
          (from ? "" : ", \"bp\": \"e\"") + "}");
    }
  }
  /// What autograd does on its own thread while this one stands in backward().
  template <class Body>
  void on_thread(const std::string& thread, Body body) {
    const std::string mine = thread_;
    thread_ = thread;
    cpu_ += 4000;
    body();
    cpu_ += 3000;
    thread_ = mine;
  }
  void wait_event(int stream, int for_stream) {
    slice("cuda_sync", "Stream Wait Event", "0", std::to_string(stream), cpu_, 0,
          "\"cuda_sync_kind\": \"Stream Wait Event\", \"wait_on_stream\": " + std::to_string(for_stream));
  }
  /// A call of the runtime that has nothing to do with work of the GPU.
  void call(const std::string& name, int64_t ns) {
    slice("cuda_runtime", name, "1", thread_, cpu_, ns);
    cpu_ += ns;
  }
  /// What the profiler does for itself, beside everything.
  void overhead(const std::string& name, int64_t from, int64_t ns) { slice("overhead", name, "-1", "0", from, ns); }
  void sync(int64_t latency = 1000) {
    int64_t until = cpu_;
    for (auto& [s, t] : gpu_) until = std::max(until, t);
    slice("cuda_runtime", "cudaStreamSynchronize", "1", thread_, cpu_, until + latency - cpu_);
    cpu_ = until + latency;
  }
  /// .item(): a copy into memory that is not pinned, for which its call waits.
  void read(const std::string& op, int stream = 7) {
    const int64_t c = ++correlation_, begin = cpu_, start = std::max(cpu_ + 4000, gpu_[stream]),
                  end = start + about(1500);
    slice("cuda_runtime", "cudaMemcpyAsync", "1", thread_, begin + 1000, end + 2000 - begin - 1000,
          "\"correlation\": " + std::to_string(c));
    slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", "0", std::to_string(stream), start, end - start,
          "\"correlation\": " + std::to_string(c));
    slice("cuda_runtime", "cudaStreamSynchronize", "1", thread_, end + 3000, 2000);
    gpu_[stream] = end;
    cpu_ = end + 9000;
    slice("cpu_op", op, "1", thread_, begin, cpu_ - begin);
  }
  int64_t gpu_end(int stream = 7) { return gpu_[stream]; }
  int64_t now() const { return cpu_; }

  std::string text() const {
    std::string head = "{\n\"schemaVersion\": 1,\n";
    if (rank_ >= 0) head += "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::to_string(rank_) + "},\n";
    return head + "\"traceEvents\": [\n" + events_ + "\n]}\n";
  }

 private:
  static std::string us(int64_t ns) {
    std::string fraction = std::to_string(ns % 1000);
    return std::to_string(ns / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction;
  }
  void add(const std::string& event) { events_ += (events_.empty() ? "" : ",\n") + event; }
  void slice(const std::string& category, const std::string& name, const std::string& pid, const std::string& tid,
             int64_t start, int64_t duration, const std::string& args = "") {
    add("{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name + "\", \"pid\": " + pid +
        ", \"tid\": " + tid + ", \"ts\": " + us(start + clock_) + ", \"dur\": " + us(duration) +
        (args.empty() ? "" : ", \"args\": {" + args + "}") + "}");
  }
  int rank_;
  int64_t clock_, cpu_ = 1000000, step_begin_ = 0, correlation_ = 0, flows_ = 0;
  double noise_;
  Philox random_;
  uint64_t drawn_ = 0;
  int number_ = 0;
  bool framed_ = false;
  std::string thread_ = "1";
  std::map<int, int64_t> gpu_;
  std::string events_;
};

}  // namespace tenon::tracing
