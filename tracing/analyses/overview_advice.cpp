// What a trace's overview says to try: a figure beyond a threshold each, and where to see it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tracing/analyses/overview.h"

namespace tenon::tracing {
namespace {

using traces::EventKind;
using traces::kNone;
using traces::Trace;

/// From which share of the steps a cause is worth a word. Launches cost every step something; data that is waited for
/// at all is a mistake.
struct CauseThreshold {
  const char *name, *about;
  double share;
};
constexpr CauseThreshold kCauses[] = {{"data", "data loading", 0.05},
                                      {"host", "the CPU is late", 0.25},
                                      {"sync", "waits for the GPU", 0.05},
                                      {"communication", "communication", 0.10},
                                      {"copy", "memory copies", 0.05},
                                      {"pauses", "pauses between kernels", 0.15},
                                      {"streams", "streams wait for each other", 0.10},
                                      {"allocation", "the driver holds work up", 0.05},
                                      {"profiler", "the profiler holds work up", 0.05},
                                      {"queued", "work waits in the queue", 0.10}};
constexpr double kFp32Matrices = 0.20, kShortKernels = 0.50, kShortKernelsIdle = 0.10, kUnderFull = 0.50;
constexpr double kLongStep = 2;  ///< times the median

bool holds(std::string_view name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return name.find(w) != name.npos; });
}
/// A product of matrices or a convolution in float32 on the ordinary units, as cuBLAS, cuDNN and CUTLASS name them:
/// "ampere_sgemm_128x64_tn", "cutlass_80_simt_sgemm_...", "sm80_xmma_gemm_f32f32_..._ffma_...". Those on tensor cores
/// are "s16816gemm", "tensorop", "tensor16x8x8", "hmma", ...
bool fp32_matrix_kernel(std::string_view name) {
  return holds(name, {"sgemm", "scudnn", "gemmSN", "_ffma"}) && !holds(name, {"tensorop", "tensor16", "hmma", "wmma"});
}
/// Of the devices, or of what the names of kernels were made for.
int capability_of(const Trace& t, std::string_view kernel) {
  if (const int told = compute_capability(t)) return told;
  static constexpr std::pair<const char*, int> names[] = {
      {"volta_", 70},     {"turing_", 75},    {"ampere_", 80},    {"hopper_", 90},    {"sm70_", 70},
      {"sm75_", 75},      {"sm80_", 80},      {"sm86_", 86},      {"sm89_", 89},      {"sm90_", 90},
      {"cutlass_70", 70}, {"cutlass_75", 75}, {"cutlass_80", 80}, {"cutlass_90", 90}, {"cutlass3x_sm90", 90}};
  for (const auto& [word, capability] : names)
    if (kernel.find(word) != kernel.npos) return capability;
  return 0;
}

void advise_fp32_matrices(const Trace& t, const std::vector<GpuWork>& work, std::vector<Advice>& all) {
  std::vector<int8_t> is(t.names(), -1);
  std::map<uint32_t, int64_t> by_name;
  int64_t total = 0, matrices = 0;
  for (const GpuWork& w : work) {
    if (w.copy || w.communication) continue;
    const uint32_t name = t.columns().name[w.event];
    if (is[name] < 0) is[name] = fp32_matrix_kernel(t.text(name));
    total += w.end - w.start;
    if (is[name]) matrices += w.end - w.start, by_name[name] += w.end - w.start;
  }
  if (by_name.empty() || share(matrices, total) < kFp32Matrices) return;
  const auto most = std::max_element(by_name.begin(), by_name.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const int capability = capability_of(t, t.text(most->first));
  if (capability < 70) return;
  Sight sight;
  int64_t longest = -1;
  for (const GpuWork& w : work)
    if (t.columns().name[w.event] == most->first && w.end - w.start > longest)
      longest = w.end - w.start, sight = Sight::of(w.event);
  all.push_back(
      {"tensor cores",
       fmt::format("{} of the kernels' time is float32 matrix work that leaves the tensor cores idle, most of "
                   "it in {}",
                   share_text(share(matrices, total)), short_name(t.text(most->first), 40)),
       share(matrices, total), kFp32Matrices,
       capability >= 80 ? "torch.set_float32_matmul_precision(\"high\"), or bfloat16 with torch.autocast"
                        : "float16 with torch.autocast and a GradScaler",
       sight});
}

void advise_short_kernels(const Trace& t, const std::vector<GpuWork>& work, double waiting, std::vector<Advice>& all) {
  int64_t linked = 0, brief = 0;
  std::map<uint32_t, std::pair<int64_t, traces::EventId>> by_name;  // how many, and one of them
  for (const GpuWork& w : work) {
    if (w.launch == kNone || t.kind(w.launch) != EventKind::runtime || w.copy) continue;
    ++linked;
    if (w.end - w.start >= t.duration(w.launch)) continue;
    ++brief;
    auto& [n, event] = by_name.try_emplace(t.columns().name[w.event], 0, w.event).first->second;
    ++n;
  }
  if (share(brief, linked) < kShortKernels || waiting < kShortKernelsIdle) return;
  const auto most = std::max_element(by_name.begin(), by_name.end(),
                                     [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  all.push_back(
      {"short kernels",
       fmt::format("{} of {} kernels run shorter than the call that launches them, most often {}, and the "
                   "GPU waits for launches for {} of the time",
                   count_text(brief), count_text(linked), short_name(t.text(most->first), 40), share_text(waiting)),
       share(brief, linked), kShortKernels, "fuse them (torch.compile) or capture them in a CUDA graph",
       Sight::of(most->second.second)});
}

void advise_long_step(const Overview& o, std::vector<Advice>& all) {
  if (o.steps.size() < 3) return;
  std::vector<int64_t> lengths;
  for (const StepTimes& s : o.steps) lengths.push_back(s.end - s.begin);
  const auto middle = lengths.begin() + static_cast<long>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const auto longest = std::max_element(o.steps.begin(), o.steps.end(), [](const StepTimes& a, const StepTimes& b) {
    return a.end - a.begin < b.end - b.begin;
  });
  const int64_t length = longest->end - longest->begin, median = *middle;
  if (median <= 0 || static_cast<double>(length) < kLongStep * static_cast<double>(median)) return;
  // What of it is longest beyond its mean.
  const auto count = static_cast<int64_t>(o.steps.size());
  StepPart most = StepPart::other;
  int64_t more = 0;
  for (const StepPart p : step_parts(o.gpu))
    if (const int64_t d = longest->parts[p] - o.sum[p] / count; d > more) more = d, most = p;
  all.push_back({"a long step",
                 fmt::format("step {} takes {}, {:.3g} times the median; {} more of it than usual is {}",
                             longest->step.number, nanoseconds_text(static_cast<double>(length)),
                             static_cast<double>(length) / static_cast<double>(median),
                             nanoseconds_text(static_cast<double>(more)), name_of(most).head),
                 static_cast<double>(length) / static_cast<double>(median),
                 kLongStep,
                 "look at what runs in that step alone: evaluation, a checkpoint, an allocation, garbage collection",
                 {-1, longest->begin, longest->end, {}}});
}

}  // namespace

std::vector<Advice> advice_of(const Trace& t, const Overview& o, const StepBounds& bounds,
                              const std::vector<GpuWork>& work) {
  std::vector<Advice> all;
  double waiting = 0;
  for (const Cause& c : bounds.causes)
    for (const CauseThreshold& k : kCauses) {
      if (k.name != std::string(c.name)) continue;
      const double figure = share(c.time, bounds.total);
      if (k.name == std::string("host")) waiting = figure;
      const bool no_op = !o.gpu && k.name == std::string("host");
      if (figure >= k.share && (c.sight.event >= 0 || c.sight.to > c.sight.from))
        all.push_back({no_op ? "no op runs" : k.about, c.what + c.within, figure, k.share, c.try_this, c.sight});
    }
  if (o.gpu) {
    advise_fp32_matrices(t, work, all);
    advise_short_kernels(t, work, waiting, all);
    if (o.fill.blocks_told && o.fill.under_full >= kUnderFull)
      all.push_back({"small kernels",
                     fmt::format("{} of the kernels' time is in kernels with fewer blocks than the GPU has SMs",
                                 share_text(o.fill.under_full)),
                     o.fill.under_full, kUnderFull, "use a larger batch, or fuse small ops (torch.compile)",
                     o.fill.most_under_full});
  }
  advise_long_step(o, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const Advice& a, const Advice& b) { return a.figure / a.threshold > b.figure / b.threshold; });
  return all;
}

}  // namespace tenon::tracing
