// tenon export, exec: models as files of other programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/state.h"
#include "core/tensor.h"
#include "core/tensor_bytes.h"
#include "core/version.h"
#include "engine/data/dataset.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/file.h"
#include "engine/nn/module.h"
#include "engine/train/session.h"
#include "projects/time_travel.h"

namespace tenon::app {
namespace {

constexpr int64_t kVerifyRows = 64;
constexpr double kTolerance = 1e-5;

struct Difference {
  double absolute = 0;
  double relative = 0;  ///< of the largest difference to the largest value
};

Difference compare(const Tensor& a, const Tensor& b) {
  if (!(a.size() == b.size()))
    throw Error(
        fmt::format("the exported model gives {} where ours gives {}", to_string(b.size()), to_string(a.size())));
  Difference d;
  double largest = 0;
  Dims index = Dims::filled(a.ndim(), 0);
  for (int64_t k = 0; k < a.numel(); ++k) {
    const double x = value_at(a, index), y = value_at(b, index);
    largest = std::max(largest, std::abs(x));
    const double difference = std::abs(x - y);
    if (!(difference <= d.absolute))
      d.absolute = std::isnan(difference) && std::isnan(x) && std::isnan(y) ? d.absolute : difference;
    for (int axis = a.ndim() - 1; axis >= 0 && ++index[axis] == a.size(axis); --axis) index[axis] = 0;
  }
  d.relative = largest > 0 ? d.absolute / largest : d.absolute;
  return d;
}

/// What an export says of itself.
struct Exported {
  nlohmann::json j;
  std::string text;
};

Exported export_onnx(TrainingSession& session, const projects::RunInfo& run, const std::string& doc,
                     const std::string& path, bool verify) {
  const data::Dataset& test = session.test_data();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::min(kVerifyRows, test.size()); ++i) rows.push_back(i);
  const data::Batch batch = data::fetch(test, rows);
  // A batch whose number is no other size's: the file serves any batch, and is verified at another.
  Meta traced = batch.x.meta();
  traced.shape[0] = 31;
  formats::OnnxModel model = formats::to_onnx(trace_graph(session.model(), traced), run.model.name);
  model.producer_version = TENON_VERSION;
  model.doc = doc;
  formats::save_onnx(path, model);

  Exported e{{{"nodes", model.graph.nodes.size()}, {"initializers", model.graph.initializers.size()}},
             fmt::format("{} nodes\n", model.graph.nodes.size())};
  if (!verify) return e;
  const NoGrad off;
  session.model().train(false);
  const Tensor ours = session.model()(batch.x);
  const std::vector<Tensor> theirs = formats::run_onnx(formats::load_onnx(path), {batch.x});
  const Difference d = compare(ours, theirs.at(0));
  e.j.update({{"rows", rows.size()}, {"max_difference", d.absolute}, {"relative_difference", d.relative}});
  e.text += fmt::format("verified on {} test samples: the file read back differs by at most {:.3g} ({:.3g} relative)\n",
                        rows.size(), d.absolute, d.relative);
  if (!(d.relative <= kTolerance))
    throw Error(
        fmt::format("{}: the exported model differs by {:.3g} relative from the trained one; at most {} is allowed",
                    path, d.relative, kTolerance));
  return e;
}

/// The state_dict: every parameter and buffer under its module path.
Exported export_weights(TrainingSession& session, const std::string& doc, const std::string& path, bool torch,
                        bool verify) {
  formats::NamedTensors all;
  for (const nn::Named& p : session.model().parameters()) all.emplace_back(p.name, p.tensor);
  for (const nn::Named& b : session.model().buffers()) all.emplace_back(b.name, b.tensor);
  if (torch)
    formats::save_torch(path, all);
  else
    formats::save_safetensors(path, all,
                              {{"format", "pt"}, {"producer", "tenon " TENON_VERSION}, {"description", doc}});

  Exported e{{{"tensors", all.size()}}, fmt::format("{} tensors\n", all.size())};
  if (!verify) return e;
  formats::NamedTensors back;
  if (torch) {
    back = formats::TorchFile::open(path).tensors();
  } else {
    const auto file = formats::Safetensors::open(path);
    for (const auto& t : file.entries()) back.emplace_back(t.name, file.tensor(t));
  }
  if (back.size() != all.size())
    throw Error(fmt::format("{}: {} tensors were written and {} are read back", path, all.size(), back.size()));
  for (const auto& [name, t] : all) {
    const auto it = std::find_if(back.begin(), back.end(), [&](const auto& b) { return b.first == name; });
    std::vector<char> one, other;
    if (it == back.end() || it->second.dtype() != t.dtype() || !(it->second.size() == t.size()) ||
        logical_bytes(it->second, one) != logical_bytes(t, other))
      throw Error(fmt::format("{}: the tensor \"{}\" read back is not the one that was written", path, name));
  }
  e.j["verified"] = true;
  e.text += "verified: every tensor read back has the same bits\n";
  return e;
}

int export_model(const Args& args) {
  const std::string format = args.required("--format"), path = args.required("-o");
  if (format != "onnx" && format != "torch" && format != "safetensors")
    throw Error::usage(fmt::format("there is no format \"{}\"", format), "onnx, torch or safetensors");
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  const int64_t step = pick_step(run, args.text("--checkpoint", "last"));
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const auto session = projects::replay_to(*project, run.id, step, bar.progress());
  bar.clear();
  const std::string doc =
      fmt::format("run {} of {}, step {}", run.name, std::filesystem::path(project->path()).filename().string(), step);
  const Exported e = format == "onnx" ? export_onnx(*session, run, doc, path, args.has("--verify"))
                                      : export_weights(*session, doc, path, format == "torch", args.has("--verify"));
  if (args.json()) {
    nlohmann::json j = {{"file", path}, {"format", format}, {"run", run.name}, {"step", step}};
    j.update(e.j);
    print_json(j);
  } else {
    print(fmt::format("{}: {} at step {}, {}", path, run.name, count_text(step), e.text));
  }
  return 0;
}

int exec(const Args& args) {
  const formats::OnnxModel model = formats::load_onnx(args.word(0));
  const std::string folder = args.required("--output");
  std::vector<Tensor> inputs;
  for (const std::string& file : args.all("--input"))
    inputs.push_back(file.ends_with(".npy") ? formats::load_npy(file) : formats::load_onnx_tensor(file));
  use_threads(args);
  const std::vector<Tensor> outputs = formats::run_onnx(model, inputs);
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw Error(fmt::format("{}: the folder cannot be made: {}", folder, code.message()));
  const bool pb = args.has("--pb");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.graph.outputs[i].name;
    const std::string file = fmt::format("{}/output_{}.{}", folder, i, pb ? "pb" : "npy");
    if (pb)
      formats::save_onnx_tensor(file, name, outputs[i]);
    else
      formats::save_npy(file, outputs[i]);
    const Shape& size = outputs[i].size();
    if (args.json())
      print_json({{"output", name},
                  {"file", file},
                  {"dtype", tenon::name(outputs[i].dtype())},
                  {"shape", std::vector<int64_t>(size.begin(), size.end())}});
    else
      print(fmt::format("{}: {} {} {}\n", file, name, tenon::name(outputs[i].dtype()), to_string(size)));
  }
  return 0;
}

const Option kJson{"--json", "", "JSON lines on standard output"};
const Option kThreads{"--threads", "N", "threads that compute; never changes a result"};

const bool registered[] = {
    register_command({"export",
                      "PROJECT [RUN] --format NAME -o F",
                      1,
                      2,
                      {{"--format", "NAME", "onnx (the model), torch or safetensors (its state_dict)"},
                       {"-o", "FILE", "the exported model"},
                       {"--checkpoint", "best|last|STEP", "which state (last)"},
                       {"--verify", "", "read the file back and compare: results on test samples (onnx), or every bit"},
                       kThreads,
                       kJson},
                      "writes a trained model for other programs",
                      export_model}),
    register_command({"exec",
                      "MODEL.onnx --input F... --output DIR",
                      1,
                      1,
                      {{"--input", "FILE", "an input, .npy or .pb; once for each, in the model's order"},
                       {"--output", "DIR", "where the outputs go"},
                       {"--pb", "", "write ONNX tensors instead of .npy"},
                       kThreads,
                       kJson},
                      "runs an ONNX model on inputs from files",
                      exec}),
};

}  // namespace
}  // namespace tenon::app
