// tenon export, exec: models as files of other programs.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/tensor.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/run.h"
#include "projects/finish.h"

namespace tenon::app {
namespace {

int export_model(const Args& args) {
  const std::string path = args.required("-o");
  const projects::ExportFormat format = projects::export_format(args.required("--format"));
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  const int64_t step = pick_step(run, args.text("--checkpoint", "last"));
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const projects::ExportReport e =
      projects::export_run(*project, run, step, format, path, args.has("--verify"), bar.progress());
  bar.clear();
  if (!args.json()) {
    print(fmt::format("{}: {} at step {}, {}\n", path, run.name, count_text(step), e.text));
    return 0;
  }
  nlohmann::json j = {{"file", path}, {"format", projects::name(format)}, {"run", run.name}, {"step", step}};
  if (format == projects::ExportFormat::onnx)
    j.update({{"nodes", e.parts}, {"initializers", e.initializers}});
  else
    j["tensors"] = e.parts;
  if (e.verified && format == projects::ExportFormat::onnx)
    j.update({{"rows", e.rows}, {"max_difference", e.difference}, {"relative_difference", e.relative_difference}});
  else if (e.verified)
    j["verified"] = true;
  print_json(j);
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

const bool registered_model_files[] = {
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
