// tenon bench growth: a training step's time and memory as one size of a net grows and the others stay.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/bench.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/machine_memory.h"
#include "core/median.h"
#include "core/process.h"
#include "core/version.h"
#include "engine/nn/module.h"
#include "engine/optim/optimizer.h"

namespace tenon::app {
namespace {

struct GrowthAxis {
  std::string name;
  int64_t NetSize::*size;
};
const GrowthAxis kGrowthAxes[] = {
    {"batch", &NetSize::batch}, {"width", &NetSize::width}, {"depth", &NetSize::depth}, {"length", &NetSize::length}};

/// From an eighth of the workload's own size to eight times it, as far as those are whole.
std::vector<int64_t> growth_sizes(int64_t fixed) {
  std::vector<int64_t> sizes;
  for (const int64_t part : {8, 4, 2})
    if (fixed % part == 0) sizes.push_back(fixed / part);
  for (const int64_t times : {1, 2, 4, 8}) sizes.push_back(fixed * times);
  return sizes;
}

struct GrowthRow {
  int64_t parameters = 0;
  double step_ms = 0;                   ///< median of the steps of `seconds`, three at least
  double peak_rss = 0, rss_before = 0;  ///< bytes that the process had at most, and behind a step of the least net
};

BenchNet made_to_train(const SizedNet& sized, const NetSize& size) {
  BenchNet net = sized.make(size);
  net.model->initialize(0);
  net.model->train();
  return net;
}

GrowthRow measure_here(const Bench& b, const SizedNet& sized, const GrowthAxis& axis) {
  NetSize size = sized.fixed;
  size.*axis.size = b.at;
  GrowthRow row;
  // What a first step loads and keeps whatever the net's size is no growth.
  made_to_train(sized, {.batch = 1, .width = 4, .depth = 1, .length = sized.fixed.length ? 4 : 0}).step(b.bf16);
  row.rss_before = static_cast<double>(peak_memory());
  const BenchNet net = made_to_train(sized, size);
  row.parameters = net.model->parameter_count();
  std::vector<double> ms;
  const auto steps_for = [&](double seconds, size_t least, size_t most) {
    ms.clear();
    const int64_t start = now_ns();
    for (int64_t begin = start; ms.size() < most; begin = now_ns()) {
      if (ms.size() >= least && static_cast<double>(begin - start) >= seconds * 1e9) break;
      net.step(b.bf16);
      ms.push_back(static_cast<double>(now_ns() - begin) / 1e6);
    }
  };
  steps_for(b.seconds, 1, 3);  // warms up
  steps_for(b.seconds, 3, 100'000);
  row.step_ms = median_of(ms);
  row.peak_rss = static_cast<double>(peak_memory());
  return row;
}

void emit_row(const Bench& b, const SizedNet& net, const GrowthAxis& axis, int64_t at, const GrowthRow& row) {
  if (b.json)
    print_json({{"workload", "growth"},
                {"net", net.name},
                {"axis", axis.name},
                {"at", at},
                {"parameters", row.parameters},
                {"step_ms", row.step_ms},
                {"peak_rss", row.peak_rss},
                {"rss_before", row.rss_before},
                {"engine", "tenon-" TENON_VERSION},
                {"threads", b.threads},
                {"device", "cpu"},
                {"amp", b.bf16 ? "bf16" : ""}});
  else
    print(fmt::format("{:<5} {:<7} {:>6} {:>14} parameters {:>11.3f} ms/step {:>9.1f} MB\n", net.name, axis.name, at,
                      count_text(row.parameters), row.step_ms, row.peak_rss / 1e6));
}

/// A process of its own has no memory from the sizes before.
GrowthRow measure_in_process(const Bench& b, const SizedNet& net, const GrowthAxis& axis, int64_t at) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(), "bench", "growth"};
  for (const std::string& w :
       {std::string("--json"), std::string("--net"), std::string(net.name), std::string("--axis"), axis.name,
        std::string("--at"), std::to_string(at), std::string("--threads"), std::to_string(b.threads),
        std::string("--seconds"), fmt::format("{}", b.seconds)})
    words.push_back(w);
  if (b.bf16) words.insert(words.end(), {"--amp", "bf16"});
  const ProcessResult done = run_process(words);
  const size_t row = std::min(done.said.find('{'), done.said.size());
  const auto j = nlohmann::json::parse(done.said.substr(row), nullptr, false);
  if (done.status != 0 || !j.is_object())
    throw Error(fmt::format("{} with a {} of {} ended with status {} before it was measured", net.name, axis.name, at,
                            done.status),
                done.said);
  return {j.at("parameters").get<int64_t>(), j.at("step_ms").get<double>(), j.at("peak_rss").get<double>(),
          j.at("rss_before").get<double>()};
}

/// Upwards, until a step would outlast the time of a measurement, or its memory what the machine has left: as the last
/// two sizes tell, and that twice the size takes twice as much at least.
void grow(const Bench& b, const SizedNet& net, const GrowthAxis& axis) {
  const std::vector<int64_t> sizes = growth_sizes(net.fixed.*axis.size);
  GrowthRow last;
  double next_ms = 0, next_bytes = 0;
  for (const int64_t at : sizes) {
    if (next_ms > b.seconds * 1e3 || next_bytes > 0.75 * static_cast<double>(available_memory())) {
      std::fprintf(stderr,
                   "tenon: %s with a %s of %lld and more is left out: a step would take about %.2g s (--seconds allows "
                   "%g) and %.2g GB\n",
                   net.name, axis.name.c_str(), static_cast<long long>(at), next_ms / 1e3, b.seconds, next_bytes / 1e9);
      return;
    }
    const GrowthRow row = measure_in_process(b, net, axis, at);
    emit_row(b, net, axis, at, row);
    const auto next = [](double before, double now) { return now * std::max(2.0, before > 0 ? now / before : 0.0); };
    next_ms = next(last.step_ms, row.step_ms);
    next_bytes = next(last.peak_rss, row.peak_rss);
    last = row;
  }
}

template <class List, class Name>
void known(const std::string& wanted, const char* option, const List& list, Name&& name) {
  std::vector<std::string> names;
  for (const auto& each : list) names.push_back(name(each));
  if (wanted.empty() || std::find(names.begin(), names.end(), wanted) != names.end()) return;
  throw Error::usage(
      fmt::format("{} '{}' is not one of growth's", option, wanted),
      fmt::format("{} There are: {}", near_names(wanted, names.data(), names.size()), fmt::join(names, ", ")));
}

}  // namespace

void bench_growth(const Bench& b) {
  const SizedNet* const nets[] = {&kMlp, &kCnn, &kGpt};
  known(b.net, "--net", nets, [](const SizedNet* n) { return std::string(n->name); });
  known(b.axis, "--axis", kGrowthAxes, [](const GrowthAxis& a) { return a.name; });
  if (b.at && (b.net.empty() || b.axis.empty()))
    throw Error::usage("--at is a size of one axis of one net", "tenon bench growth --net gpt --axis length --at 512");
  bool any = false;
  for (const SizedNet* net : nets)
    for (const GrowthAxis& axis : kGrowthAxes) {
      if ((!b.net.empty() && b.net != net->name) || (!b.axis.empty() && b.axis != axis.name)) continue;
      if (net->fixed.*axis.size == 0) continue;
      any = true;
      if (b.at)
        emit_row(b, *net, axis, b.at, measure_here(b, *net, axis));
      else
        grow(b, *net, axis);
    }
  if (!any) throw Error::usage(b.net + " has no " + b.axis);
}

}  // namespace tenon::app
