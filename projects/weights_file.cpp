#include "projects/weights_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/sha256.h"
#include "engine/formats/file_kind.h"
#include "engine/formats/gguf.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/exported_archive.h"
#include "engine/formats/torch/file.h"
#include "engine/ops/view.h"
#include "projects/gguf_export.h"
#include "projects/surgery.h"

namespace tenon::projects {
namespace {

using formats::FileKind;
using File = std::shared_ptr<const MappedFile>;

std::vector<int64_t> dims(const Tensor& t) { return {t.size().begin(), t.size().end()}; }

/// Numbers in names compare as numbers: layer 2 stands before layer 10.
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, k = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && k < b.size()) {
    if (digit(a[i]) && digit(b[k])) {
      size_t ia = i, kb = k;
      while (i < a.size() && digit(a[i])) ++i;
      while (k < b.size() && digit(b[k])) ++k;
      while (ia + 1 < i && a[ia] == '0') ++ia;
      while (kb + 1 < k && b[kb] == '0') ++kb;
      if (i - ia != k - kb) return i - ia < k - kb;
      if (const int c = a.compare(ia, i - ia, b, kb, k - kb)) return c < 0;
    } else if (a[i] != b[k]) {
      return a[i] < b[k];
    } else {
      ++i, ++k;
    }
  }
  return a.size() - i < b.size() - k;
}

std::vector<GivenTensor> of_safetensors(const File& file) {
  const auto all = formats::Safetensors::parse(file);
  std::vector<GivenTensor> out;
  for (const auto& e : all.entries()) {
    GivenTensor g{e.name, e.dtype, e.shape, {}, {}};
    try {
      g.tensor = all.tensor(e);
    } catch (const Error& error) {
      g.problem = error.message();
    }
    out.push_back(std::move(g));
  }
  // They lie by type and name, which is no order of a model.
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  return out;
}

/// llama.cpp's names of a gpt2 become those that the model has for the same tensors. Where the file has no projection
/// of its own at the end, as GPT-2 itself has none, that is the table of the tokens once more.
void name_as_model(const ModelSpec& model, std::vector<GivenTensor>& tensors) {
  GptLayers layers;
  try {
    layers = find_gpt(model);
  } catch (const Error&) {
    return;  // another kind of model: the table of weights shows both names
  }
  std::map<std::string, std::string> ours;
  for (const auto& [mine, theirs] : gpt2_names(layers)) ours[theirs] = mine;
  std::optional<GivenTensor> table;
  bool head = false;
  for (GivenTensor& t : tensors) {
    if (t.name == "token_embd.weight") table = t;
    head |= t.name == "output.weight";
    if (const auto at = ours.find(t.name); at != ours.end()) t.name = at->second;
  }
  if (!table || head) return;
  table->name = ours.at("output.weight");
  tensors.push_back(std::move(*table));
}

/// Quantized values begin as the numbers that they stand for.
std::vector<GivenTensor> of_gguf(const File& file, const ModelSpec* model) {
  const auto all = formats::Gguf::parse(file);
  std::vector<GivenTensor> out;
  for (const auto& e : all.entries()) {
    const std::string problem = e.problem();
    out.push_back({e.name, e.dtype(), e.shape, problem.empty() ? all.tensor(e) : Tensor(), problem});
  }
  for (const auto& [key, text] : all.metadata())
    if (model && key == "general.architecture" && text == "gpt2") name_as_model(*model, out);
  return out;
}

std::vector<GivenTensor> of_torch(const File& file) {
  std::vector<GivenTensor> out;
  const auto all = formats::TorchFile::parse(file);
  for (const auto& e : all.entries())
    out.push_back({e.name, e.dtype, e.shape, e.tensor, e.tensor.defined() ? "" : e.problem});
  return out;
}

std::vector<GivenTensor> of_exported(const File& file) {
  std::vector<GivenTensor> out;
  const formats::ExportedArchive all = formats::read_exported(file);
  for (size_t i = 0; i < all.values.size(); ++i) {
    const formats::ModelFile::Entry& e = all.held.tensors[i];
    out.push_back({e.name, e.dtype, e.shape, all.values[i], e.problem});
  }
  return out;
}

/// ONNX may hold the weight of a linear layer as [in, out], the other way round than every layer here: such a one is
/// given as its transpose.
std::vector<GivenTensor> of_onnx(const File& file) {
  const std::string folder = std::filesystem::path(file->name()).parent_path().string();
  const auto model = formats::parse_onnx(file->bytes(), file->name(), folder.empty() ? "." : folder);
  std::map<std::string, std::pair<int, int>> uses;  // of them as [in, out]
  for (const auto& node : model.graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto& [all, turned] = uses[node.inputs[i]];
      ++all;
      turned += i == 1 && (node.op_type == "MatMul" || (node.op_type == "Gemm" && node.integer("transB", 0) == 0));
    }
  std::vector<GivenTensor> out;
  for (const auto& [name, tensor] : model.graph.initializers) {
    const auto& [all, turned] = uses[name];
    const Tensor t = tensor.ndim() == 2 && turned > 0 && turned == all ? transpose(tensor, 0, 1) : tensor;
    out.push_back({name, tenon::name(t.dtype()), dims(t), t, {}});
  }
  return out;
}

/// "cnn-01@best": both parts may be left out.
WeightsFile of_run(Project& project, const std::string& which, bool averaged, const Progress& progress) {
  const size_t at = which.rfind('@');
  const std::string run_name = which.substr(0, at), step_word = at == which.npos ? "" : which.substr(at + 1);
  RunInfo run;
  if (run_name.empty()) {
    const auto runs = project.runs();
    if (runs.empty()) throw Error(fmt::format("{} has no runs to begin with", project.path()));
    run = runs.back();
  } else {
    run = project.run(run_name);
  }
  int64_t step = run.steps;
  if (step_word == "best" || (step_word.empty() && !run.best.is_null())) {
    if (run.best.is_null())
      throw Error::usage(fmt::format("init.run = {}: run {} was never evaluated and has no best step", which, run.name),
                         "take @last or a step number");
    step = run.best.at("step").get<int64_t>();
  } else if (!step_word.empty() && step_word != "last") {
    const auto [end, error] = std::from_chars(step_word.data(), step_word.data() + step_word.size(), step);
    if (error != std::errc() || end != step_word.data() + step_word.size())
      throw Error::usage(fmt::format("init.run = {}: \"{}\" is no step", which, step_word),
                         "RUN@best, RUN@last, or RUN@ and a number");
  }
  // A state that was kept needs neither the data nor a replay.
  const auto kept = project.checkpoints(run.id);
  const auto exact = std::find_if(kept.begin(), kept.end(), [&](const CheckpointInfo& c) { return c.step == step; });
  const Checkpoint state =
      exact != kept.end() ? project.load_checkpoint(exact->id) : state_at(project, run.id, step, 0, progress);
  WeightsFile w;
  w.text = fmt::format("run {} of {} at step {}", run.name, project.path(), step);
  w.sha256 = digest(state);
  w.model = run_of_step(project, run, step).model;
  const bool average = averaged && state.state.value("averaged", int64_t{0}) > 0;
  for (const auto& [name, t] : state.tensors) {
    const std::string kind = average ? "average/" : "model/";
    if (name.starts_with(kind)) w.tensors.push_back({name.substr(kind.size()), tenon::name(t.dtype()), dims(t), t, {}});
  }
  std::stable_sort(w.tensors.begin(), w.tensors.end(),
                   [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  if (average) w.text += ", its averaged weights";
  return w;
}

bool keeps_average(Project& project, const std::string& which) {
  const std::string name = which.substr(0, which.rfind('@'));
  const auto runs = project.runs();
  if (runs.empty()) return false;
  const RunInfo run = name.empty() ? runs.back() : project.run(name);
  const Recipe recipe = Recipe::from_json(run.recipe);
  return recipe.text("average.type") != "none" && recipe.flag("average.evaluate");
}

/// `model`: whose names a file may be read with; null: it keeps its own.
WeightsFile of_file(const std::string& path, const ModelSpec* model) {
  const File file = MappedFile::open(path);
  const FileKind kind = formats::file_kind(file->bytes());
  WeightsFile w;
  w.text = path + ", " + formats::describe(kind);
  switch (kind) {
    case FileKind::safetensors:
      w.tensors = of_safetensors(file);
      break;
    case FileKind::gguf:
      w.tensors = of_gguf(file, model);
      break;
    case FileKind::torch:
    case FileKind::torch_legacy:
      w.tensors = of_torch(file);
      break;
    case FileKind::torch_export:
      w.tensors = of_exported(file);
      break;
    case FileKind::onnx:
      w.tensors = of_onnx(file);
      break;
    default:
      throw Error(fmt::format("init.from: {} is {}: no weights are read from it", path, formats::describe(kind)),
                  "Weights come from .safetensors, .gguf, .pt, .pth, .pt2, .onnx and .tenon files.");
  }
  if (w.tensors.empty()) throw Error(fmt::format("init.from: {} holds no tensors", path));
  w.sha256 = hex(sha256(file->bytes().data(), file->bytes().size()));
  return w;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

bool is_project(const std::string& path) {
  return formats::file_kind(MappedFile::open(path)->bytes()) == FileKind::project;
}

}  // namespace

WeightsFile weights_of_run(Project& project, const std::string& which, const Progress& progress) {
  return of_run(project, which, keeps_average(project, which), progress);
}

bool begins_with_weights(const Recipe& recipe) {
  return !recipe.text("init.from").empty() || !recipe.text("init.run").empty();
}

WeightsFile read_weights(Project& project, const ModelSpec& model, const Recipe& recipe, const Progress& progress) {
  const std::string &from = recipe.text("init.from"), &which = recipe.text("init.run");
  WeightsFile w;
  if (from.empty() || same_file(from, project.path())) {
    w = weights_of_run(project, which, progress);
  } else if (is_project(from)) {
    const auto other = Project::open(from, true);
    w = weights_of_run(*other, which, progress);
  } else if (!which.empty()) {
    throw Error::usage(fmt::format("init.run = {}: {} is no project, it has no runs", which, from),
                       "Leave init.run empty, or name a .tenon file.");
  } else {
    w = of_file(from, recipe.text("init.map").empty() ? &model : nullptr);
  }
  std::string wanted = recipe.text("init.sha256");
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!wanted.empty() && wanted != w.sha256)
    throw Error(fmt::format("{} is not what init.sha256 says: it is {}, not {}", w.text, w.sha256, wanted),
                "Bring the file back as it was, or reset init.sha256 to begin with the one that is there.");
  return w;
}

WeightMap weight_table(Project& project, const ModelSpec& model, const Recipe& recipe, const Progress& progress) {
  WeightsFile w = read_weights(project, model, recipe, progress);
  return map_weights(model_tensors(model, recipe), std::move(w.tensors), WeightRules(recipe));
}

}  // namespace tenon::projects
