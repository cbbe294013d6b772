#include "tracing/ops/model_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/median.h"
#include "core/profile.h"

namespace tenon::tracing {
namespace {

/// Nanoseconds of each node of the model that runs; one run, or none more where it ran another model.
struct NodeTimes {
  std::vector<std::vector<double>> of_node;
  std::vector<double> of_run;

  /// False where the inputs are not as the model declares them: then its nodes run one by one, as they are in the file.
  bool run(const formats::PreparedModel& prepared, const std::vector<formats::OnnxItem>& inputs) {
    const int64_t begin = now_ns();
    int64_t since = begin, at = -1;
    bool known = true;
    const auto ends = [&](int64_t next) {
      const int64_t now = now_ns();
      if (at >= 0) of_node[static_cast<size_t>(at)].back() += static_cast<double>(now - since);
      since = now;
      at = next;
    };
    for (auto& times : of_node) times.push_back(0);
    formats::OnnxLimits limits;
    limits.go_on = [&](int64_t node, int64_t of) {
      known = known && of == static_cast<int64_t>(of_node.size());
      if (known) ends(node);
      return true;
    };
    prepared.run(inputs, limits);
    ends(-1);
    of_run.push_back(static_cast<double>(now_ns() - begin));
    return known;
  }
};

}  // namespace

Finding model_plan_page(const formats::OnnxModel& given, const formats::PreparedModel& prepared,
                        const std::vector<formats::OnnxItem>& inputs, double seconds) {
  const std::vector<formats::OnnxNode>& nodes = prepared.model().graph.nodes;
  NodeTimes times;
  times.of_node.resize(nodes.size());
  const auto no_plan = [] {
    return nothing(
        "There is no plan: tensors of other types or sizes than the model declares run node by node, as the file has "
        "them.");
  };
  if (!times.run(prepared, inputs)) return no_plan();  // packs the weights
  for (auto& t : times.of_node) t.clear();
  times.of_run.clear();
  const int64_t begin = now_ns();
  while (times.of_run.size() < 2 || static_cast<double>(now_ns() - begin) < seconds * 1e9)
    if (!times.run(prepared, inputs)) return no_plan();

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
    t.rows.push_back({static_cast<int64_t>(i), n.outputs.empty() ? n.name : n.outputs[0],
                      n.made_of.empty() ? n.op_type : n.made_of, std::string(n.compiled ? "yes" : ""),
                      static_cast<int64_t>(ns), run > 0 ? ns / run : 0.0});
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
