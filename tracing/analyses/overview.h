#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracing/analyses/why.h"

// A trace at one glance: the time of every step by part, how well the GPU is filled, and what to try.
namespace tenon::tracing {

// Note [What a moment counts as]
// Every moment of a step counts once, as the first of these that goes on in it. Where a GPU works: a kernel that
// computes, a copy, a fill, a collective (so communication is what nothing hides), the CPU loading data, a call of the
// GPU's runtime, an op of the CPU, a collective that a thread of the CPU carries out, and else other. Without a GPU:
// the CPU loading data, the optimizer, the backward pass, any other op (the forward pass), a collective, and else
// other. So the parts of a step add up to its length exactly, and how long that is is told in Note [How long a step
// lasts].
enum class StepPart : uint8_t {
  kernel,
  memcpy,
  memset,
  communication,
  data,
  runtime,
  ops,
  optimizer,
  backward,
  forward,
  other
};
inline constexpr size_t kStepParts = 11;
struct StepPartName {
  const char *name, *head;  ///< "memcpy" for programs, "copies" for people
};
const StepPartName& name_of(StepPart part);
/// Those that steps are told by, in the order of their stacking: of a trace with work of a GPU, or without.
const std::vector<StepPart>& step_parts(bool gpu);

/// Times by part; they add up to `length()`.
struct PartTimes {
  std::array<int64_t, kStepParts> ns{};
  int64_t& operator[](StepPart p) { return ns[static_cast<size_t>(p)]; }
  int64_t operator[](StepPart p) const { return ns[static_cast<size_t>(p)]; }
  int64_t length() const;
  PartTimes& operator+=(const PartTimes& other);
};
struct StepTimes {
  TraceStep step;
  int64_t begin = 0, end = 0;  ///< from when to when it lasts
  PartTimes parts;
};

/// How well the kernels of the steps fill the GPU, by what the profiler wrote into them; means over their time.
struct KernelFill {
  int64_t kernels = 0;    ///< that tell
  int64_t looked_at = 0;  ///< fewer than there are where there are very many
  double occupancy = 0;   ///< "est. achieved occupancy %": 0..1
  double full = 0;        ///< "blocks per SM", as far as one of each is had: 0..1
  double under_full = 0;  ///< share of the time in kernels with less than one block for each SM
  Sight most_under_full;  ///< the longest of them
  bool occupancy_told = false, blocks_told = false;
};

/// Something to try, with the figure that says so.
struct Advice {
  std::string about;     ///< "data loading"
  std::string seen;      ///< "the GPU waits 3.1 ms a step while the CPU loads data"
  double figure = 0;     ///< the share that is seen
  double threshold = 0;  ///< from which it is told
  std::string try_this;
  Sight sight;
};

struct Overview {
  bool gpu = false;
  std::vector<StepTimes> steps;
  int64_t warm_up = -1;  ///< number of a first step that was left out: see asked_steps()
  PartTimes sum;
  std::string sentence;  ///< of StepBounds
  Sight cause;           ///< the longest piece of what bounds the steps
  std::optional<double> gpu_busy;
  KernelFill fill;
  int64_t kernels = 0;                                             ///< launched by the steps
  std::vector<Advice> advice;                                      ///< that furthest beyond its threshold first
  std::vector<std::pair<std::string, std::string>> configuration;  ///< what and its value, for people

  double share_of(StepPart p) const { return share(sum[p], sum.length()); }
};
/// Of the steps that are asked for; nothing where there are none.
std::optional<Overview> overview_of(const TraceRequest& request);
/// As every analysis says it; `top` rows of a table at most.
Finding overview_finding(const Overview& overview, const TraceRequest& request);

// The parts of overview_of() that stand in files of their own.
KernelFill kernel_fill(const traces::Trace& trace, const std::vector<GpuWork>& kernels);
std::vector<Advice> advice_of(const traces::Trace& trace, const Overview& overview, const StepBounds& bounds,
                              const std::vector<GpuWork>& work);
std::vector<std::pair<std::string, std::string>> configuration_of(const traces::Trace& trace);
/// The largest compute capability of the devices, times ten: 80 of an A100; 0 where the trace does not tell.
int compute_capability(const traces::Trace& trace);

}  // namespace tenon::tracing
