#include "projects/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/state.h"
#include "core/tensor.h"
#include "core/tensor_bytes.h"
#include "core/version.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/tensor_difference.h"
#include "engine/formats/torch/file.h"
#include "engine/nn/module.h"
#include "engine/train/metric.h"
#include "engine/train/session.h"
#include "projects/gguf_export.h"
#include "projects/graph_exports.h"
#include "projects/serving.h"

namespace tenon::projects {

ExportReport export_onnx(TrainingSession& session, const RunInfo& run, const std::string& doc, const std::string& path,
                         bool verify) {
  const formats::OnnxModel model = onnx_of(session, run, doc);
  formats::save_onnx(path, model);

  ExportReport e;
  e.parts = model.graph.nodes.size();
  e.initializers = model.graph.initializers.size();
  e.text = fmt::format("{} nodes", e.parts);
  if (!verify) return e;
  verify_outputs(session, formats::load_onnx(path), path, e);
  return e;
}

formats::NamedTensors state_dict_of(TrainingSession& session) {
  formats::NamedTensors all;
  for (const nn::Named& p : session.model().parameters()) all.emplace_back(p.name, p.tensor);
  for (const nn::Named& b : session.model().buffers()) all.emplace_back(b.name, b.tensor);
  return all;
}

void verify_tensors(const formats::NamedTensors& all, const formats::NamedTensors& back, const std::string& path,
                    ExportReport& e) {
  if (back.size() != all.size())
    throw Error(fmt::format("{}: {} tensors were written and {} are read back", path, all.size(), back.size()));
  for (const auto& wrote : all) {
    const Tensor& t = wrote.second;
    const auto it = std::find_if(back.begin(), back.end(), [&](const auto& b) { return b.first == wrote.first; });
    std::vector<char> one, other;
    if (it == back.end() || it->second.dtype() != t.dtype() || !(it->second.size() == t.size()) ||
        logical_bytes(it->second, one) != logical_bytes(t, other))
      throw Error(fmt::format("{}: the tensor \"{}\" read back is not the one that was written", path, wrote.first));
  }
  e.verified = true;
  e.text += "\nverified: every tensor read back has the same bits";
}

namespace {

/// Layers that share weights are modules of their own in PyTorch, whose state_dict has the same tensors once more.
formats::NamedTensors with_aliases(formats::NamedTensors all, const ModelSpec& model) {
  const size_t own = all.size();
  for (const LayerSpec& l : model.layers)
    for (size_t i = 0; i < own && !l.shares.empty(); ++i)
      if (all[i].first.starts_with(l.shares + "."))
        all.emplace_back(l.name + all[i].first.substr(l.shares.size()), all[i].second);
  return all;
}

/// The state_dict as a file of tensors alone.
ExportReport export_weights(TrainingSession& session, const std::string& doc, const std::string& path, bool torch,
                            bool verify) {
  formats::NamedTensors all = state_dict_of(session);
  if (torch) all = with_aliases(std::move(all), session.spec());
  if (torch)
    formats::save_torch(path, all);
  else
    formats::save_safetensors(path, all,
                              {{"format", "pt"}, {"producer", "tenon " TENON_VERSION}, {"description", doc}});

  ExportReport e;
  e.parts = all.size();
  e.text = fmt::format("{} tensors", e.parts);
  if (!verify) return e;
  formats::NamedTensors back;
  if (torch) {
    back = formats::TorchFile::open(path).tensors();
  } else {
    const auto file = formats::Safetensors::open(path);
    for (const auto& t : file.entries()) back.emplace_back(t.name, file.tensor(t));
  }
  verify_tensors(all, back, path, e);
  return e;
}

/// The model as source, and its state_dict beside it.
ExportReport export_source(TrainingSession& session, const ModelSpec& model, const std::string& doc,
                           const std::string& path, bool verify) {
  std::filesystem::path weights = path;
  weights.replace_extension(".pt");
  const std::string source = python::write_model(model, weights.filename().string());
  ExportReport e = export_weights(session, doc, weights.string(), true, verify);
  write_file(path, "# " + doc + "\n" + source);
  e.text = fmt::format("PyTorch source, and {} in {}", e.text, weights.filename().string());
  if (!verify) return e;
  const std::string other = python::difference(model, python::read_model(read_file(path)).model);
  if (!other.empty()) throw Error(path + ": the source read back is of another model: " + other);
  e.text += "; the source read back is of the same model";
  return e;
}

std::string grouped(int64_t n) {
  std::string s = std::to_string(n);
  for (int i = static_cast<int>(s.size()) - 3; i > 0; i -= 3) s.insert(static_cast<size_t>(i), ",");
  return s;
}
}  // namespace

std::vector<NamedStep> named_steps(const RunInfo& run) {
  std::vector<NamedStep> steps;
  if (run.best.is_object() && run.best.contains("step")) steps.push_back({"best", run.best.at("step").get<int64_t>()});
  if (steps.empty() || steps[0].step != run.steps)
    steps.push_back({"last", run.steps});
  else
    steps[0].name = "best and last";
  return steps;
}

bool stopped_early(const RunInfo& run) { return run.status == "finished" && !run.error.empty(); }
std::string status_text(const RunInfo& run) { return stopped_early(run) ? "stopped early" : run.status; }

std::string metric_text(const std::string& name, double value) {
  if (std::isnan(value)) value = NAN;  // its sign says nothing
  const std::string words = metric_words(name);
  return name.ends_with("accuracy") ? fmt::format("{} {:.2f} %", words, 100 * value)
                                    : fmt::format("{} {:.4f}", words, value);
}

std::string evaluation_text(const RunInfo& run, int64_t step, const Evaluation& e) {
  std::string judged;
  for (const Judgement& m : e.judgements) judged += ", " + metric_text("test_" + m.name, m.value);
  return fmt::format("run {} at step {}: {}{} ({} samples)", run.name, grouped(step), metric_text("test_loss", e.loss),
                     judged, grouped(e.samples));
}

const std::vector<ExportForm>& export_forms() {
  using enum ExportFormat;
  static const auto& all = *new std::vector<ExportForm>{
      {onnx, "onnx", {"onnx"}, "ONNX model", "the model"},
      {torch, "torch", {"pt", "pth"}, "PyTorch state_dict", "its state_dict"},
      {safetensors, "safetensors", {"safetensors"}, "safetensors", "its state_dict"},
      {gguf, "gguf", {"gguf"}, "GGUF model", "a transformer and its tokens, for programs that read GGUF"},
      {python, "python", {"py"}, "PyTorch source and weights", "its source, the state_dict beside it"},
      {torchscript, "torchscript", {"torchscript"}, "TorchScript program", "a program for torch.jit.load"},
      {pt2, "pt2", {"pt2"}, "Exported PyTorch program", "a program for torch.export.load"},
      {cpp, "cpp", {"h"}, "C++ header and source", "a header and a source that need nothing else"},
      {triton, "triton", {"triton"}, "Triton model repository", "a model repository, a folder"},
      {torchserve, "torchserve", {"mar"}, "TorchServe archive", "an archive, .mar"}};
  return all;
}

const char* name(ExportFormat f) {
  for (const ExportForm& form : export_forms())
    if (form.format == f) return form.name;
  return "";
}

ExportFormat export_format(const std::string& word) {
  std::string all;
  for (const ExportForm& form : export_forms()) {
    if (word == form.name) return form.format;
    all += (all.empty() ? "" : &form == &export_forms().back() ? " or " : ", ") + std::string(form.name);
  }
  throw Error::usage("there is no format \"" + word + "\"", all);
}

ExportFormat format_of_file(const std::string& path) {
  const std::string end = std::filesystem::path(path).extension().string();
  std::string all;
  for (const ExportForm& form : export_forms()) {
    for (const char* ending : form.endings)
      if (end == std::string(".") + ending) return form.format;
    all += (all.empty() ? "." : &form == &export_forms().back() ? " or ." : ", .") + std::string(form.endings[0]);
  }
  throw Error::usage(path + ": the end of the name says no format", "End it in " + all + ".");
}

std::string export_doc(const Project& project, const RunInfo& run, int64_t step) {
  return fmt::format("run {} of {}, step {}", run.name, std::filesystem::path(project.path()).filename().string(),
                     step);
}

ExportReport export_run(Project& project, const RunInfo& run, int64_t step, ExportFormat format,
                        const std::string& path, bool verify, const Progress& progress, const CppExport& cpp) {
  const auto session = replay_to(project, run.id, step, progress);
  const std::string doc = export_doc(project, run, step);
  if (format == ExportFormat::cpp) return export_cpp(*session, run, doc, path, verify, cpp);
  if (format == ExportFormat::torchscript) return export_torchscript(*session, run, doc, path, verify);
  if (format == ExportFormat::pt2) return export_pt2(*session, run, doc, path, verify);
  if (format == ExportFormat::gguf) return export_gguf(*session, doc, path, verify);
  if (format == ExportFormat::triton) return export_triton(*session, run, doc, path, verify);
  if (format == ExportFormat::torchserve) return export_torchserve(*session, run, doc, path, verify);
  if (format == ExportFormat::python) return export_source(*session, session->spec(), doc, path, verify);
  return format == ExportFormat::onnx ? export_onnx(*session, run, doc, path, verify)
                                      : export_weights(*session, doc, path, format == ExportFormat::torch, verify);
}

}  // namespace tenon::projects
