#include "projects/graph_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/state.h"
#include "core/tensor_bytes.h"
#include "core/version.h"
#include "engine/formats/aten/exported_model.h"
#include "engine/formats/aten/writer.h"
#include "engine/formats/cpp/artifact.h"
#include "engine/formats/cpp/trial.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/tensor_difference.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/torchscript/script.h"
#include "engine/graph/graph.h"
#include "engine/model/graph_module.h"
#include "engine/nn/module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/view.h"
#include "engine/train/session.h"

namespace tenon::projects {
namespace {

constexpr int64_t kVerifiedRows = 64;
/// What a compiler takes as text in seconds; it is minutes and gigabytes for ten times as much.
constexpr size_t kMostInSource = 8'000'000;

std::string file_size(int64_t bytes) {
  return bytes < 10000        ? fmt::format("{} bytes", bytes)
         : bytes < 10'000'000 ? fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1e3)
                              : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// Compiles what was written and compares it with the session's model.
void verify_cpp(TrainingSession& session, const formats::Artifact& artifact, const std::string& header,
                const std::string& source, ExportReport& e) {
  const std::string compiler = formats::system_compiler();
  if (compiler.empty()) {
    e.text += "\nnot verified: there is no C++ compiler here (c++, g++ or clang++)";
    return;
  }
  const data::Batch batch = verified_samples(session);
  const NoGrad off;
  session.model().train(false);
  const Tensor ours = session.model()(batch.x);
  const formats::ArtifactTrial trial = formats::try_artifact(compiler, artifact, header, source, batch.x);
  const formats::TensorDifference d = formats::tensor_difference(ours, reshape(trial.output, ours.size()));
  if (!(d.worst_relative() <= kExportTolerance))
    throw Error(
        fmt::format("{}: the compiled model differs by {:.3g} relative from the trained one; at most {} is allowed",
                    source, d.worst_relative(), kExportTolerance));
  e.verified = true;
  e.rows = batch.x.size(0);
  e.difference = d.worst();
  e.relative_difference = d.worst_relative();
  e.figures.insert(e.figures.end(), {{"code_bytes", trial.fast.code},
                                     {"small_code_bytes", trial.small.code},
                                     {"data_bytes", trial.fast.data},
                                     {"run_microseconds", static_cast<int64_t>(trial.seconds * 1e6)}});
  e.text += fmt::format(
      "\nverified on {} test samples: compiled with {} it differs by at most {:.3g} ({:.3g} relative)\n"
      "{} of code with -O2, {} with -Os; {} of data; {} a run",
      e.rows, std::filesystem::path(compiler).filename().string(), e.difference, e.relative_difference,
      file_size(trial.fast.code), file_size(trial.small.code), file_size(trial.fast.data),
      // The program's clock counts microseconds.
      trial.seconds < 1e-6 ? std::string("less than 1 µs") : fmt::format("{:.3g} ms", trial.seconds * 1e3));
}

/// The graph of a model with recurrent layers on more steps; nothing where it has none, or takes no other number.
std::optional<Graph> longer_graph(TrainingSession& session, ModelSpec spec, const Graph& graph, Meta traced) {
  constexpr int64_t kMore = 3;
  const bool recurrent = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Graph::Node& n) {
    return n.op->info.name == std::string_view("rnn_sequence");
  });
  if (!recurrent || traced.shape.n < 2) return {};
  traced.shape[1] += kMore;
  for (LayerSpec& l : spec.layers)
    if (l.type == "Input")
      for (Attr& a : l.attrs)
        if (auto* shape = std::get_if<std::vector<int64_t>>(&a.value); shape && a.name == "shape" && !shape->empty())
          shape->front() += kMore;
  try {
    GraphModule longer(spec, traced.device);
    nn::load_state_dict(longer, state_dict_of(session));
    return trace_graph(longer, traced);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

formats::ScriptState script_state_of(TrainingSession& session) {
  formats::ScriptState state;
  for (const nn::Named& p : session.model().parameters()) state.parameters.emplace_back(p.name, p.tensor);
  for (const nn::Named& b : session.model().buffers()) state.buffers.emplace_back(b.name, b.tensor);
  return state;
}

data::Batch verified_samples(const TrainingSession& session) {
  const data::Dataset& test = session.test_data();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::min(kVerifiedRows, test.size()); ++i) rows.push_back(i);
  return data::fetch(test, rows);
}

data::Batch traced_samples(const TrainingSession& session) {
  const data::Dataset& test = session.test_data();
  if (test.size() == 0) throw Error("the data have no test samples to run the model on");
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < kTracedBatch; ++i) rows.push_back(i % test.size());
  return data::fetch(test, rows);
}

formats::OnnxModel onnx_of(TrainingSession& session, const RunInfo& run, const std::string& doc,
                           formats::Recurrence recurrence) {
  Meta traced = verified_samples(session).x.meta();
  traced.shape[0] = kTracedBatch;
  const Graph graph = trace_graph(session.model(), traced);
  const std::optional<Graph> longer =
      recurrence == formats::Recurrence::nodes ? longer_graph(session, run.model, graph, traced) : std::nullopt;
  formats::OnnxModel model = formats::to_onnx(graph, run.model.name, {recurrence, longer ? &*longer : nullptr});
  model.producer_version = TENON_VERSION;
  model.doc = doc;
  return model;
}

ExportReport export_cpp(TrainingSession& session, const RunInfo& run, const std::string& doc, const std::string& path,
                        bool verify, const CppExport& how) {
  std::filesystem::path header = path, source = path;
  header.replace_extension(".h");
  source.replace_extension(".cpp");
  const formats::OnnxModel model = onnx_of(session, run, doc, formats::Recurrence::steps);
  size_t bytes = 0;
  for (const auto& [name, t] : model.graph.initializers) bytes += t.nbytes();
  std::filesystem::path weights = how.weights;
  if (weights.empty() && bytes > kMostInSource) weights = std::filesystem::path(path).replace_extension(".bin");
  const formats::ArtifactOptions options{how.batch, !weights.empty()};
  const formats::Artifact a = formats::write_artifact(model, header.filename().string(), options, doc);
  if (options.weights_beside) write_file(weights.string(), a.weights);
  write_file(source.string(), a.source);
  write_file(header.string(), a.header);

  ExportReport e;
  e.parts = static_cast<size_t>(a.calls);
  e.figures = {
      {"kernels", a.kernels}, {"calls", a.calls}, {"arena_bytes", a.arena_bytes}, {"weight_bytes", a.weight_bytes}};
  e.text = fmt::format("{} and {}: {} calls of {} kernels, an arena of {} ({} without a plan), {} of weights in {}",
                       header.filename().string(), source.filename().string(), a.calls, a.kernels,
                       file_size(a.arena_bytes), file_size(a.unshared_bytes), file_size(a.weight_bytes),
                       options.weights_beside ? weights.filename().string() : "the source");
  if (verify) verify_cpp(session, a, header.string(), source.string(), e);
  return e;
}

void verify_outputs(TrainingSession& session, const formats::OnnxModel& back, const std::string& path,
                    ExportReport& e) {
  const data::Batch batch = verified_samples(session);
  const NoGrad off;
  session.model().train(false);
  const Tensor ours = session.model()(batch.x);
  const std::vector<Tensor> theirs = formats::run_onnx(back, {batch.x});
  if (!(ours.size() == theirs.at(0).size()))
    throw Error(fmt::format("the exported model gives {} where ours gives {}", to_string(theirs[0].size()),
                            to_string(ours.size())));
  const formats::TensorDifference d = formats::tensor_difference(ours, theirs[0]);
  e.verified = true;
  e.rows = batch.x.size(0);
  e.difference = d.worst();
  e.relative_difference = d.worst_relative();
  e.text += fmt::format("\nverified on {} test samples: the file read back ", e.rows);
  e.text += d.worst() == 0 ? "gives the same numbers"
                           : fmt::format("differs by at most {:.3g} ({:.3g} relative)", d.worst(), d.worst_relative());
  if (!(d.worst_relative() <= kExportTolerance))
    throw Error(
        fmt::format("{}: the exported model differs by {:.3g} relative from the trained one; at most {} is allowed",
                    path, d.worst_relative(), kExportTolerance));
}

ExportReport export_pt2(TrainingSession& session, const RunInfo& run, const std::string& doc, const std::string& path,
                        bool verify) {
  const formats::ScriptState state = script_state_of(session);
  formats::save_exported(path, onnx_of(session, run, doc, formats::Recurrence::steps), state, kTracedBatch);
  ExportReport e;
  e.parts = state.parameters.size() + state.buffers.size();
  e.text = fmt::format("a program for torch.export.load(), {} tensors", e.parts);
  if (verify) verify_outputs(session, formats::load_exported(path), path, e);
  return e;
}

ExportReport export_torchscript(TrainingSession& session, const RunInfo& run, const std::string& doc,
                                const std::string& path, bool verify) {
  const formats::ScriptState state = script_state_of(session);
  const formats::OnnxModel model = onnx_of(session, run, doc, formats::Recurrence::steps);
  formats::save_torchscript(path, model, state, kTracedBatch);
  ExportReport e;
  e.parts = state.parameters.size() + state.buffers.size();
  e.text = fmt::format("a program of {} steps for torch.jit.load(), {} tensors", model.graph.nodes.size(), e.parts);
  if (!verify) return e;
  const auto back = formats::TorchFile::parse_program(MappedFile::open(path));
  for (const auto* tensors : {&state.parameters, &state.buffers})
    for (const auto& [name, t] : *tensors) {
      std::string keys = name;  // the way to it, an attribute of an attribute
      std::replace(keys.begin(), keys.end(), '.', '/');
      const auto it = std::find_if(back.entries().begin(), back.entries().end(),
                                   [&](const auto& entry) { return entry.name == keys; });
      std::vector<char> one, other;
      if (it == back.entries().end() || !it->tensor || it->tensor.dtype() != t.dtype() ||
          !(it->tensor.size() == t.size()) || logical_bytes(it->tensor, one) != logical_bytes(t, other))
        throw Error(fmt::format("{}: the tensor \"{}\" read back is not the one that was written", path, name));
    }
  e.verified = true;
  e.text += "\nverified: every tensor read back has the same bits";
  return e;
}

}  // namespace tenon::projects
