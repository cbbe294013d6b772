// tenon doctor: what this machine has and what is missing.
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/window_module.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/processor.h"
#include "core/version.h"
#include "engine/data/dataset.h"
#include "engine/formats/versions.h"
#include "engine/kernels/ceilings.h"
#include "engine/op/op.h"
#include "projects/versions.h"

namespace tenon::app {
namespace {

struct Finding {
  std::string what, state, hint;
  bool good = true;
  nlohmann::json figures = nlohmann::json::object();  ///< for programs, beside the words
};

/// "13.0" of CUDA's 13000
std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

void tell_of_cuda(std::vector<Finding>& f) {
  const CudaState& state = cuda_state();
  const cuda::Module* module = cuda_module();
  if (state.devices == 0) f.push_back({"device cuda", state.why, state.hint, true});
  if (!module) return;
  cuda::DriverFacts driver;
  module->driver(&driver);
  for (int i = 0; i < state.devices; ++i) {
    cuda::DeviceFacts d;
    cuda::Why why;
    const std::string what = fmt::format("device cuda:{}", i);
    if (module->device(i, &d, &why) != cuda::done) {
      f.push_back({what, why.text, "", false});
      continue;
    }
    f.push_back(
        {what,
         fmt::format("{}, compute capability {}.{}, {} multiprocessor{}, {} of {} free", d.name, d.major, d.minor,
                     d.multiprocessors, d.multiprocessors == 1 ? "" : "s",
                     bytes_text(static_cast<int64_t>(d.free_bytes)), bytes_text(static_cast<int64_t>(d.total_bytes))),
         ""});
  }
  int32_t kernels = 0;
  module->kernels(&kernels);
  f.push_back({"cuda module",
               fmt::format("of CUDA {}, for {}; kernels of {} ops, the others run on the CPU behind copies{}",
                           cuda_version(driver.runtime), module->build, kernels,
                           driver.driver ? "; driver of CUDA " + cuda_version(driver.driver) : ""),
               ""});
}

void tell_of_cuda_libraries(std::vector<Finding>& f) {
  if (cuda_state().devices == 0) return;  // they are of no use, and opening them takes a second
  cuda::LibraryFacts l;
  for (int32_t i = 0; cuda_module()->library(i, &l) == cuda::done; ++i) {
    const std::string what = fmt::format("cuda {}", l.name);
    if (l.there)
      f.push_back({what, fmt::format("{}, {}; {}", l.version, l.file, l.use), ""});
    else
      f.push_back(
          {what, fmt::format("{}; {}", l.why.text, l.without),
           l.package ? fmt::format("pip install {}, or name its folder in TENON_CUDA_LIBRARIES", l.package) : "",
           true});
  }
}

/// What the rates of ops are held against: told where it is known, since measuring takes the whole processor.
void tell_of_ceilings(std::vector<Finding>& f, const std::optional<kernels::Ceilings>& c) {
  if (!c)
    return f.push_back({"ceilings", "not measured yet with this many threads",
                        "tenon doctor --measure: about a second, best while nothing else runs", true});
  f.push_back({"ceilings",
               fmt::format("{:.4g} GFLOP/s of f32 multiply-adds, {:.4g} GB/s copied with {} thread{}; the ridge is at "
                           "{:.3g} FLOP per byte",
                           c->flops / 1e9, c->bytes / 1e9, c->threads, c->threads == 1 ? "" : "s", c->ridge()),
               ""});
  f.back().figures = {{"flops_per_second", c->flops}, {"bytes_per_second", c->bytes}, {"threads", c->threads}};
}

std::vector<Finding> diagnose(const std::optional<kernels::Ceilings>& ceilings) {
  std::vector<Finding> f;
  f.push_back({"tenon", fmt::format("{}, {} ops", TENON_VERSION, all_ops().size()), ""});
#ifdef __VERSION__
  f.push_back({"compiler", "gcc " __VERSION__, ""});
#endif
  const std::string flags = " " + processor_fact("flags") + " ";
  std::string sets;
  for (const char* s : {"avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16"})
    if (flags.find(fmt::format(" {} ", s)) != flags.npos) sets += (sets.empty() ? "" : " ") + std::string(s);
  const bool enough = flags.find(" avx2 ") != flags.npos && flags.find(" fma ") != flags.npos;
  f.push_back({"processor",
               fmt::format("{}, {} cores ({})", processor_name(), std::thread::hardware_concurrency(), sets),
               enough ? "" : "Tenon is built for processors with AVX2 and FMA.", enough});
  f.push_back({"threads", fmt::format("{} compute", num_threads()), ""});
  tell_of_ceilings(f, ceilings);
  struct sysinfo info {};
  if (sysinfo(&info) == 0)
    f.push_back({"memory",
                 fmt::format("{}, {} free", bytes_text(static_cast<int64_t>(info.totalram * info.mem_unit)),
                             bytes_text(static_cast<int64_t>((info.freeram + info.bufferram) * info.mem_unit))),
                 ""});
  f.push_back({"device cpu", "ready", ""});
  tell_of_cuda(f);
  tell_of_cuda_libraries(f);
  for (const auto& [name, version] : formats::library_versions()) f.push_back({name, version, ""});
  for (const auto& [name, version] : projects::library_versions()) f.push_back({name, version, ""});
  try {
    const data::Split split = data::open_dataset("fashion-mnist", {});
    f.push_back(
        {"data fashion-mnist",
         fmt::format("{} training and {} test images", count_text(split.train->size()), count_text(split.test->size())),
         ""});
  } catch (const Error& e) {
    f.push_back({"data fashion-mnist", e.message(),
                 e.hint().empty() ? "apt-get install dataset-fashion-mnist, or name the folder: tenon new --data DIR"
                                  : e.hint(),
                 false});
  }
  try {
    window();
    const char* display = std::getenv("DISPLAY");
    const char* wayland = std::getenv("WAYLAND_DISPLAY");
    const bool shown = (display && *display) || (wayland && *wayland);
    f.push_back(
        {"window",
         shown ? fmt::format("there; display {}", display && *display ? display : wayland) : "there; no display here",
         shown ? "" : "The command line does every job; pictures: xvfb-run tenon shot ...", true});
  } catch (const Error& e) {
    f.push_back({"window", e.message(), e.hint(), false});
  }
  return f;
}

int doctor(const Args& args) {
  use_threads(args);
  std::optional<kernels::Ceilings> ceilings;
  if (args.has("--measure")) {
    ceilings = kernels::measure_ceilings();
    kernels::keep_ceilings(*ceilings);
  } else {
    ceilings = kernels::kept_ceilings();
  }
  const std::vector<Finding> findings = diagnose(ceilings);
  if (args.json()) {
    for (const Finding& f : findings) {
      nlohmann::json j = f.figures;
      j.update({{"what", f.what}, {"state", f.state}, {"ok", f.good}, {"hint", f.hint}});
      print_json(j);
    }
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Finding& f : findings) {
    rows.push_back({f.good ? "ok" : "missing", f.what, f.state});
    if (!f.hint.empty()) rows.push_back({"", "", f.hint});
  }
  print(table(rows));
  return 0;
}

const bool registered_doctor = register_command({"doctor",
                                                 "",
                                                 0,
                                                 0,
                                                 {{"--measure", "",
                                                   "measures what the processor reaches at most, in multiply-adds and "
                                                   "in bytes copied, and keeps it for profile --roofline"},
                                                  kThreads,
                                                  {"--json", "", "JSON lines on standard output"}},
                                                 "versions, devices, libraries, and what is missing",
                                                 doctor});

}  // namespace
}  // namespace tenon::app
