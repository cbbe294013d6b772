// The workloads that a PyTorch script runs beside: same models, batches, optimisers, metrics and units.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/bench.h"
#include "app/cli/command.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "app/cli/window_module.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/machine_memory.h"
#include "core/parallel.h"
#include "core/profile.h"
#include "core/random.h"
#include "core/version.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/op/autocast.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/train/planned_step.h"
#include "tracing/ops/plan_page.h"
#include "tracing/ops/seen_plan.h"

namespace tenon::app {

void Bench::emit(const std::string& workload, const std::string& metric, double value, const char* unit) const {
  if (json)
    print_json({{"workload", workload},
                {"metric", metric},
                {"value", value},
                {"unit", unit},
                {"engine", "tenon-" TENON_VERSION},
                {"threads", threads},
                {"device", to_string(device)},
                {"amp", bf16 ? "bf16" : ""}});
  else
    print(fmt::format("{:<12} {:<30} {:>14.2f} {}\n", workload, metric, value, unit));
}

void Bench::wait() const {
  if (!(device == Device{})) backend_of(device).sync({device, 0});
}

Device& bench_device() {
  static Device device;
  return device;
}

BenchFolder::BenchFolder(const std::filesystem::path& in) : path((in / "tenon-bench-XXXXXX").string()) {
  if (!mkdtemp(path.data())) throw Error("no folder could be made in " + path, "TMPDIR names another place.");
}

BenchFolder::~BenchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

Tensor bench_normal(const Shape& size, uint64_t stream, DType dtype) {
  Tensor t = empty(size);
  Philox random{0, stream};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return to_device(cast(t, dtype), bench_device());
}
Tensor bench_classes(const Shape& size, int64_t below) {
  Tensor t = empty(size, DType::i64);
  Philox random{0, 99};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<int64_t>()[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below)));
  return to_device(t, bench_device());
}

void BenchNet::step(bool bf16, PlannedStep* planned) const {
  optimizer->zero_grad();
  const auto eager = [&] {
    PlannedStep::Values v;
    {
      const AutocastScope cast(DType::bf16, bf16);
      v.output = (*model)(x);
      v.loss = loss(v.output, y);
    }
    backward(v.loss);
    return v;
  };
  if (planned) {
    t_state.origin.seq = 0;
    planned->run(x, y, 1, model->parameters(), eager);
  } else {
    eager();
  }
  NoGrad off;
  optimizer->step(lr);
}

void bench_training(const Bench& b, const std::string& name, const BenchNet& net) {
  nn::Module& model = *net.model;
  if (!(b.device == Device{})) reset_cuda_peak(b.device);
  model.initialize(0);
  model.train();
  PlannedStep planned(model);
  b.emit(name, "train_steps", b.rate([&] { net.step(b.bf16, b.compile ? &planned : nullptr); }), "steps/s");
  planned.rest();
  if (b.compile)
    for (const std::string& line : planned.told()) std::fprintf(stderr, "tenon: %s: %s\n", name.c_str(), line.c_str());
  if (b.explain) {
    tracing::SeenPlan seen;
    if (planned.plan())
      seen = tracing::seen_plan(*planned.plan());
    else
      seen.told = planned.told();
    show_finding(tracing::plan_page(seen), b.json, {{"workload", name}});
  }
  model.train(false);
  NoGrad off;
  b.emit(name, "infer_batches", b.rate([&] { model(net.x); }), "batches/s");
  Tensor one = contiguous(slice(net.x, 0, 0, 1));
  for (int i = 0; i < 10; ++i) model(one);
  std::vector<double> us;
  for (int i = 0; i < 200; ++i) {
    int64_t t = now_ns();
    model(one);
    b.wait();
    us.push_back(static_cast<double>(now_ns() - t) / 1e3);
  }
  std::sort(us.begin(), us.end());
  b.emit(name, "infer_one_p50", us[100], "us");
  b.emit(name, "infer_one_p99", us[197], "us");
  if (b.device == Device{})
    b.emit(name, "peak_rss", static_cast<double>(peak_memory()), "bytes");
  else
    b.emit(name, "peak_device_memory", static_cast<double>(tensor_memory(b.device).peak_bytes), "bytes");
}

namespace {

/// Nanoseconds a call on one element, without and with the graph being recorded.
void op_cost(const Bench& b) {
  Tensor a = to_device(ones({1}), b.device), c = clone(a), g = clone(a);
  set_requires_grad(g);
  auto ns = [&](auto&& one, double per) { return 1e9 / (b.rate(one) * per); };
  {
    NoGrad off;
    b.emit("op_cost", "add_no_grad",
           ns(
               [&] {
                 for (int i = 0; i < 1000; ++i) add(a, c);
               },
               1000),
           "ns");
    b.emit("op_cost", "add_in_place",
           ns(
               [&] {
                 for (int i = 0; i < 1000; ++i) add_(a, c);
               },
               1000),
           "ns");
  }
  b.emit("op_cost", "add_grad",
         ns(
             [&] {
               for (int i = 0; i < 1000; ++i) add(g, c);
             },
             1000),
         "ns");
  b.emit("op_cost", "mul_forward_backward",
         ns(
             [&] {
               Tensor x = g;
               for (int i = 0; i < 1000; ++i) x = mul(x, c);
               backward(sum(x));
             },
             1000),
         "ns");
}

const std::map<std::string, void (*)(const Bench&)>& workloads() {
  static const std::map<std::string, void (*)(const Bench&)> all = {{"attention", bench_attention},
                                                                    {"builder", bench_builder},
                                                                    {"checkpoint", bench_checkpoint},
                                                                    {"cnn", bench_cnn},
                                                                    {"conv", bench_conv},
                                                                    {"curves", bench_curves},
                                                                    {"gpt", bench_gpt},
                                                                    {"growth", bench_growth},
                                                                    {"loader", bench_loader},
                                                                    {"lstm", bench_lstm},
                                                                    {"matmul", bench_matmul},
                                                                    {"mlp", bench_mlp},
                                                                    {"op_cost", op_cost},
                                                                    {"onnx", bench_onnx},
                                                                    {"open", bench_open},
                                                                    {"optimizer", bench_optimizer},
                                                                    {"pointwise", bench_pointwise},
                                                                    {"reduce", bench_reduce},
                                                                    {"resnet18", bench_resnet18},
                                                                    {"tiny", bench_tiny}};
  return all;
}
/// Those that want a file.
bool of_file(const std::string& workload) { return workload == "loader" || workload == "onnx" || workload == "open"; }
/// Not among those that run where none is named: `curves` writes a file of hundreds of megabytes, `builder` wants a
/// display, and `growth` takes minutes.
bool only_named(const std::string& workload) {
  return workload == "curves" || workload == "builder" || workload == "growth" || of_file(workload);
}

/// Those of models and single ops, which a device can compute.
bool of_device(const std::string& workload) { return !only_named(workload) && workload != "checkpoint"; }

/// Which ops a library computed, and which the CPU for want of a kernel: figures of a GPU say little without.
void tell_who_computed() {
  std::map<std::string, std::string> by;
  const auto add = [&](const std::string& who, const std::string& op) {
    std::string& ops = by[who];
    ops += (ops.empty() ? "" : ", ") + op;
  };
  for (const LibraryRuns& r : cuda_library_runs()) add("by " + r.library, r.op);
  for (const HostRuns& r : cuda_host_runs()) add("on the CPU, behind copies", r.op);
  for (const auto& [who, ops] : by) std::fprintf(stderr, "tenon: %s: %s\n", who.c_str(), ops.c_str());
}

int bench(const Args& args) {
  Bench b;
  b.seconds = args.number("--seconds", 3, 0.01);
  b.threads = args.integer("--threads", 0, 0);
  b.json = args.json();
  b.explain = args.has("--explain");
  b.compile = args.has("--compile") || b.explain;
  if (const std::string amp = args.text("--amp"); !amp.empty()) {
    if (amp != "bf16") throw Error::usage(fmt::format("--amp is bf16, not '{}'", amp));
    b.bf16 = true;
  }
  b.runs = args.integer("--runs", b.runs, 1);
  b.points = args.integer("--points", b.points, 1);
  b.layers = args.integer("--layers", b.layers, 1);
  b.project = args.text("--project");
  b.against = args.text("--against");
  b.batch = args.integer("--batch", b.batch, 1);
  b.net = args.text("--net");
  b.axis = args.text("--axis");
  b.at = args.integer("--at", b.at, 1);
  b.device = bench_device() = parse_device(args.text("--device", "cpu"));
  set_num_threads(static_cast<int>(b.threads));
  b.threads = num_threads();
  std::vector<std::string> names;
  for (const auto& [name, run] : workloads()) names.push_back(name);
  std::vector<std::string> wanted;
  for (size_t i = 0; i < args.words(); ++i) {
    wanted.push_back(args.word(i));
    if (!of_file(args.word(i))) continue;
    if (++i == args.words())
      throw Error::usage(wanted.back() + " needs a file",
                         wanted.back() == "onnx"     ? "tenon bench onnx FILE.onnx"
                         : wanted.back() == "loader" ? "tenon bench loader PROJECT.tenon"
                                                     : "tenon bench open FILE: a trace, a snapshot or a model file");
    b.file = args.word(i);
  }
  for (const std::string& w : wanted)
    if (!workloads().count(w))
      throw Error::usage(
          fmt::format("no workload is called '{}'", w),
          fmt::format("{} There are: {}", near_names(w, names.data(), names.size()), fmt::join(names, ", ")));
  const bool host = b.device == Device{};
  for (const std::string& w : wanted)
    if (!host && !of_device(w)) throw Error::usage(w + " is measured on the CPU", "Leave out --device.");
  if (wanted.empty())
    std::copy_if(names.begin(), names.end(), std::back_inserter(wanted),
                 [&](const auto& n) { return host ? !only_named(n) : of_device(n); });
  for (const std::string& w : wanted) workloads().at(w)(b);
  if (!host) tell_who_computed();
  return 0;
}

const bool registered_bench =
    register_command({"bench",
                      "[WORKLOAD...] | loader PROJECT | open FILE | onnx FILE",
                      0,
                      64,
                      {{"--threads", "N", "threads that compute; default every core"},
                       {"--seconds", "S", "time for each measurement; default 3"},
                       {"--device", "NAME", "where models and single ops compute: cpu, cuda, cuda:1; default cpu"},
                       {"--amp", "bf16", "models are trained in mixed precision"},
                       {"--compile", "", "models are trained from plans, as runs are; without it op by op"},
                       {"--explain", "",
                        "after their figures, the plans that models are trained from, kernel by kernel; of onnx: the "
                        "nodes as they run, and their times"},
                       {"--runs", "N", "of curves: runs in its project; default 5000"},
                       {"--points", "N", "of curves: of each long run; default 100000"},
                       {"--layers", "N", "of builder: layers of its model; default 10000"},
                       {"--project", "FILE", "of curves: made where there is none, and kept; else it goes"},
                       {"--against", "FILE", "of onnx: another model, run in turns with it"},
                       {"--batch", "N", "of onnx: where the model leaves it open; default 1, then 64"},
                       {"--net", "NET", "of growth: mlp, cnn or gpt; default each"},
                       {"--axis", "AXIS", "of growth: batch, width, depth or length; default each"},
                       {"--at", "N", "of growth: one size of that axis, measured in this process"},
                       {"--json", "", "JSON lines on standard output"}},
                      "measures the engine on fixed workloads, on mlp, cnn and gpt in other sizes (growth), on a model "
                      "file (onnx) or on "
                      "the data of a project beside its steps (loader), and the window on a large project (curves), "
                      "model (builder) or file (open)",
                      bench});

}  // namespace
bool window_can_be_measured(const std::string& workload) {
  if (!std::getenv("DISPLAY")) {
    std::fprintf(stderr, "tenon: no display: the window was not measured. xvfb-run -a tenon bench %s does\n",
                 workload.c_str());
    return false;
  }
  try {
    window();
  } catch (const Error& e) {
    std::fprintf(stderr, "tenon: the window was not measured: %s\n", e.message().c_str());
    return false;
  }
  return true;
}

}  // namespace tenon::app
