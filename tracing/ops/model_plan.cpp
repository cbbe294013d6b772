#include "tracing/ops/model_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/median.h"
#include "core/profile.h"
#include "engine/formats/onnx/fold_constants.h"

namespace tenon::tracing {
namespace {

/// Nanoseconds of each node of a prepared model, and of whole runs.
struct NodeTimes {
  std::vector<std::vector<double>> of_node;
  std::vector<double> of_run;

  void run(const formats::PreparedModel& prepared, const std::vector<formats::OnnxItem>& inputs) {
    const int64_t begin = now_ns();
    int64_t since = begin, at = -1;
    const auto ends = [&](int64_t next) {
      const int64_t now = now_ns();
      if (at >= 0) of_node[static_cast<size_t>(at)].back() += static_cast<double>(now - since);
      since = now;
      at = next;
    };
    for (auto& times : of_node) times.push_back(0);
    formats::OnnxLimits limits;
    limits.go_on = [&](int64_t node, int64_t) {
      ends(node);
      return true;
    };
    prepared.run(inputs, limits);
    ends(-1);
    of_run.push_back(static_cast<double>(now_ns() - begin));
  }
};

}  // namespace

Finding model_plan_page(const formats::OnnxModel& given, const formats::PreparedModel& prepared,
                        const std::vector<formats::OnnxItem>& inputs, double seconds) {
  const std::vector<formats::OnnxNode>& nodes = prepared.model().graph.nodes;
  if (!formats::as_declared(given, inputs))
    return nothing(
        "There is no plan: tensors of other types or sizes than the model declares run node by node, as the file has "
        "them.");
  prepared.run(inputs);  // packs the weights
  NodeTimes times;
  times.of_node.resize(nodes.size());
  const int64_t begin = now_ns();
  while (times.of_run.size() < 2 || static_cast<double>(now_ns() - begin) < seconds * 1e9) times.run(prepared, inputs);

  Table t{"nodes",
          {{"node", "#", Unit::count},
           {"name", "RESULT", Unit::text},
           {"runs", "RUNS", Unit::text},
           {"prepared", "PREPARED", Unit::text},
           {"time_ns", "TIME", Unit::nanoseconds},
           {"share", "OF THE RUN", Unit::share}},
          {}};
  const double run = median_of(times.of_run);
  double all = 0;
  int64_t several = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const formats::OnnxNode& n = nodes[i];
    const double ns = median_of(times.of_node[i]);
    all += ns;
    several += !n.made_of.empty();
    t.rows.push_back({static_cast<int64_t>(i), n.outputs.empty() ? n.name : n.outputs[0], n.types(),
                      std::string(n.compiled ? "yes" : ""), static_cast<int64_t>(ns), run > 0 ? ns / run : 0.0});
  }
  Finding f;
  const auto of_file = static_cast<int64_t>(given.graph.nodes.size()), left = static_cast<int64_t>(nodes.size());
  f.sentence = fmt::format(
      "{} nodes of the file run as {}, {} of which are several in one. A run takes {}, of which {:.1f} % lie between "
      "the "
      "nodes.",
      count_text(of_file), count_text(left), count_text(several), nanoseconds_text(run),
      run > 0 ? 100 * std::max(0.0, 1 - all / run) : 0.0);
  f.facts = {{"file_nodes", "nodes of the file", Unit::count, of_file},
             {"nodes_count", "nodes that run", Unit::count, left},
             {"joined_count", "several in one", Unit::count, several},
             {"run_ns", "a run", Unit::nanoseconds, static_cast<int64_t>(run)}};
  f.tables.push_back(std::move(t));
  return f;
}

}  // namespace tenon::tracing
