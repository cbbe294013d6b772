// Audits of what was exported: the file's nodes beside the values of the model that it was made from.
#include "projects/export_audit.h"

#include <fmt/format.h>

#include <map>

#include "core/backend.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process.h"
#include "core/temporary_folder.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/divergence.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/graph/graph.h"
#include "engine/train/session.h"
#include "projects/audit.h"
#include "projects/graph_exports.h"
#include "tracing/record/numbers.h"

namespace tenon::projects {
namespace {

// Names within an .npz are those of a zip and of files: places stand for the values' names.
constexpr const char* kRuntimeProgram = R"PY(import sys
import numpy
import onnxruntime
folder = sys.argv[1]
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(folder + "/model.onnx", options, providers=["CPUExecutionProvider"])
out = session.run(None, {session.get_inputs()[0].name: numpy.load(folder + "/in.npy")})
numpy.savez(folder + "/out.npz", **{"v%d" % i: numpy.ascontiguousarray(x) for i, x in enumerate(out)})
print(onnxruntime.__version__)
)PY";

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

/// The model's own values under the names of the file that its export writes.
struct Exported {
  formats::OnnxModel file;
  formats::ModelValues own;
  std::map<std::string, std::string> modules;  ///< of each value, what made it
};

Exported exported(TrainingSession& session, const RunInfo& info) {
  const Tensor x = to_host(traced_samples(session).x);
  const Graph g = formats::in_onnx_terms(trace_graph(session.model(), x.meta()));
  Exported e;
  e.file = formats::to_onnx(g, info.model.name);
  e.own = formats::model_values(g, {x});
  for (const Graph::Value& v : g.values)
    if (v.producer >= 0) e.modules[v.name] = module_path(g.nodes[static_cast<size_t>(v.producer)].module);
  return e;
}

tracing::OpDifference as_op(const Exported& e, const std::string& value, const std::string& op_type) {
  tracing::OpDifference op;
  op.op = op_type + " " + value;
  op.phase = "forward";
  if (const auto at = e.modules.find(value); at != e.modules.end()) op.module = at->second;
  return op;
}

void fill(const formats::TensorDifference& d, const Shape& size, tracing::OpDifference& op) {
  op.total = d.count;
  op.differs = d.changed;
  op.largest = d.worst();
  op.relative = d.relative();
  op.value_a = d.a_there;
  op.value_b = d.b_there;
  if (d.largest_at >= 0) op.index = tracing::index_of(size, d.largest_at);
}

void compare_file(const RunInfo& info, TrainingSession& session, const AuditOptions& options,
                  const std::function<bool()>&, Audit& audit) {
  if (options.file.empty()) throw Error::usage("no model file was named to compare with");
  const formats::OnnxModel file = formats::load_runnable(options.file);
  const Exported e = exported(session, info);
  const formats::Divergence found = formats::find_divergence(file, e.own, audit.tolerance);
  audit.a = "the run's model";
  audit.b = options.file;
  for (const formats::NodeDivergence& n : found.nodes) {
    tracing::OpDifference op = as_op(e, n.name, n.op_type);
    fill(n.known ? n.alone : n.carried, n.size, op);
    if (n.carried.count) op.carried = n.carried.relative();
    op.why = n.why;
    audit.difference.ops.push_back(std::move(op));
  }
  audit.difference.first = found.first;
  if (!found.broken.empty()) audit.remark = "The file as a whole does not run: " + found.broken + ".";
  audit.difference.unknown = static_cast<int64_t>(found.unmatched);
  if (found.nodes.empty())
    throw Error(
        options.file + ": " + (found.broken.empty() ? "none of its values has a name of the model's" : found.broken),
        "Compare with a file that was exported from this run, or from a run of the same model.");
}

void compare_runtime(const RunInfo& info, TrainingSession& session, const AuditOptions& options,
                     const std::function<bool()>& go_on, Audit& audit) {
  const std::string python = python_with_onnxruntime(options.python, go_on);
  const Exported e = exported(session, info);
  const RuntimeValues theirs = run_in_onnxruntime(python, e.file, e.own.inputs.at(0), go_on);
  audit.a = "Tenon";
  audit.b = "ONNX Runtime " + theirs.version;
  std::map<std::string, std::string> types;
  for (const formats::OnnxNode& n : e.file.graph.nodes) types[n.outputs.at(0)] = n.op_type;
  std::map<std::string, const Tensor*> by_name;
  for (const auto& [name, t] : theirs.values) by_name[name] = &t;
  tracing::StepDifference& d = audit.difference;
  for (const formats::OnnxNode& n : e.file.graph.nodes) {
    const auto own = e.own.values.find(n.outputs[0]);
    const auto other = by_name.find(n.outputs[0]);
    if (own == e.own.values.end() || other == by_name.end()) {
      ++d.unknown;
      continue;
    }
    tracing::OpDifference op = as_op(e, n.outputs[0], n.op_type);
    if (own->second.size() == other->second->size())
      compare_values(own->second, *other->second, op);
    else
      op.why = fmt::format("it gives the size {} where the model has {}", to_string(other->second->size()),
                           to_string(own->second.size()));
    if (d.first < 0 && op.beyond(audit.tolerance)) d.first = static_cast<int64_t>(d.ops.size());
    d.ops.push_back(std::move(op));
  }
}

const bool registered_onnx =
    register_audit({"onnx", "ONNX Runtime",
                    "the model is exported to ONNX, and ONNX Runtime's value of every node is held against ours",
                    kExportTolerance, true, compare_runtime, 2});
const bool registered_file = register_audit({"file", "A model file",
                                             "each node of a file is computed from the model's own values: the first "
                                             "that gives something else is the one to blame",
                                             kExportTolerance, true, compare_file, 3});

}  // namespace

std::string python_with_onnxruntime(const std::string& wanted, const std::function<bool()>& go_on) {
  std::vector<std::string> tried =
      wanted.empty() ? std::vector<std::string>{"python3", "python"} : std::vector<std::string>{wanted};
  std::string why;
  for (const std::string& python : tried) {
    if (first_program({python}).empty()) continue;
    const ProcessResult r = run_process({python, "-c", "import numpy, onnxruntime"}, go_on);
    if (r.status == 0) return python;
    why = fmt::format("{}: {}", python, last_line(r.said));
  }
  if (why.empty()) why = wanted.empty() ? "there is no Python on the path" : wanted + ": there is no such program";
  throw Error(
      "ONNX Runtime cannot be asked: " + why,
      "`pip install onnxruntime numpy`, or name the Python that has them: --python, or the setting \"python\".");
}

RuntimeValues run_in_onnxruntime(const std::string& python, const formats::OnnxModel& model, const Tensor& input,
                                 const std::function<bool()>& go_on) {
  const TemporaryFolder folder("tenon-onnxruntime");
  const std::vector<std::string> names = formats::value_names(model.graph);
  formats::save_onnx(folder / "model.onnx", formats::with_outputs(model, names));
  formats::save_npy(folder / "in.npy", input);
  write_file(folder / "run.py", kRuntimeProgram);
  const ProcessResult r = run_process({python, folder / "run.py", folder / ""}, go_on);
  if (r.status != 0) throw Error("ONNX Runtime does not run the exported model: " + last_line(r.said));
  RuntimeValues v;
  v.version = last_line(r.said);
  for (auto& [name, t] : formats::load_npz(folder / "out.npz")) {
    const auto at = static_cast<size_t>(std::stoul(name.substr(1)));
    v.values.emplace_back(names.at(at), std::move(t));
  }
  return v;
}

}  // namespace tenon::projects
