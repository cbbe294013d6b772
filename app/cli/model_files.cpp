// tenon export, exec: models as files of other programs.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/quantize.h"
#include "core/error.h"
#include "core/tensor.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/onnx/runnable.h"
#include "projects/finish.h"
#include "views/model_file/model_run.h"

namespace tenon::app {
namespace {

int export_model(const Args& args) {
  for (const Option& o : quantize_options())
    if (args.has(o.name)) return export_in_fewer_bits(args);
  const std::string path = args.required("-o");
  const projects::ExportFormat format = projects::export_format(args.required("--format"));
  const auto [project, run, step] = asked_state(args);
  const projects::CppExport cpp{args.integer("--batch", 1, 1), args.text("--weights")};
  if (format != projects::ExportFormat::cpp)
    for (const char* option : {"--batch", "--weights"})
      if (args.has(option)) throw Error::usage(std::string(option) + " is for --format cpp alone");
  Bar bar("replaying");
  const projects::ExportReport e =
      projects::export_run(*project, run, step, format, path, args.has("--verify"), bar.progress(), cpp);
  bar.clear();
  if (!args.json()) {
    print(fmt::format("{}: {} at step {}, {}\n", path, run.name, count_text(step), e.text));
    return 0;
  }
  nlohmann::json j = {{"file", path}, {"format", projects::name(format)}, {"run", run.name}, {"step", step}};
  if (format == projects::ExportFormat::onnx)
    j.update({{"nodes", e.parts}, {"initializers", e.initializers}});
  else if (e.figures.empty())
    j["tensors"] = e.parts;
  for (const auto& [what, n] : e.figures) j[what] = n;
  if (e.verified && e.rows > 0)
    j.update({{"rows", e.rows}, {"max_difference", e.difference}, {"relative_difference", e.relative_difference}});
  else if (e.verified)
    j["verified"] = true;
  print_json(j);
  return 0;
}

/// "onnx (the model), torch (its state_dict), ..."
std::string formats_help() {
  std::string text;
  for (const projects::ExportForm& f : projects::export_forms())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", f.name, f.help);
  return text;
}

std::vector<Option> with_quantization(std::vector<Option> options) {
  options.insert(options.end(), quantize_options().begin(), quantize_options().end());
  options.push_back(kThreads);
  options.push_back(kJson);
  return options;
}

/// What each input is fed: files by its name or in the model's order, and what fills the others.
std::vector<formats::OnnxFeed> feeds_of(const std::vector<formats::OnnxValue>& inputs, const Args& args) {
  using From = formats::OnnxFeed::From;
  std::map<std::string, std::string> files, shapes;
  size_t next = 0;
  for (const std::string& text : args.all("--input")) {
    const size_t equal = text.find('=');
    const std::string name = text.substr(0, equal);
    if (equal != text.npos &&
        std::any_of(inputs.begin(), inputs.end(), [&](const auto& v) { return v.name == name; })) {
      files[name] = text.substr(equal + 1);
      continue;
    }
    while (next < inputs.size() && files.count(inputs[next].name)) ++next;
    if (next == inputs.size())
      throw Error(fmt::format("--input {}: the model has no further input, it has {}", text, inputs.size()));
    files[inputs[next].name] = text;
  }
  for (const std::string& text : args.all("--shape")) {
    const size_t equal = text.find('=');
    if (equal == text.npos) throw Error::usage(fmt::format("--shape {} names no input", text), "Write NAME=2x3x8x8.");
    shapes[formats::find_input(inputs, text.substr(0, equal)).name] = text.substr(equal + 1);
  }
  std::vector<formats::OnnxFeed> feeds;
  for (const formats::OnnxValue& v : inputs) {
    formats::OnnxFeed feed;
    if (const auto file = files.find(v.name); file != files.end()) {
      feed.from = From::file;
      feed.file = file->second;
    } else if (args.has("--fill")) {
      feed = formats::parse_feed(args.text("--fill"));
      const auto shape = shapes.find(v.name);
      feed.shape = shape == shapes.end() ? formats::least_shape(v) : formats::input_shape(v, shape->second);
    } else {
      throw Error(fmt::format("the model needs a value for its input '{}'", v.name),
                  "Give it with --input, or --fill seed:1.");
    }
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

/// The files that the outputs went to, in their order.
std::vector<std::string> write_outputs(const views::ModelRun& run, const std::string& to, bool pb) {
  std::vector<std::string> files(run.outputs.size(), to);
  if (to.ends_with(".npz") || to.ends_with(".safetensors") || to.ends_with(".npy")) {
    formats::save_outputs(to, run.outputs);
    return files;
  }
  std::error_code code;
  std::filesystem::create_directories(to, code);
  if (code) throw Error(fmt::format("{}: the folder cannot be made: {}", to, code.message()));
  for (size_t i = 0; i < files.size(); ++i) {
    files[i] = fmt::format("{}/output_{}.{}", to, i, pb ? "pb" : "npy");
    if (pb)
      formats::save_onnx_tensor(files[i], run.outputs[i].first, run.outputs[i].second);
    else
      formats::save_npy(files[i], run.outputs[i].second);
  }
  return files;
}

/// What is said of the inputs in their order, for a model that does not know their sizes.
std::vector<formats::InputHint> hints_of(const Args& args) {
  std::vector<formats::InputHint> hints;
  for (const std::string& text : args.all("--input")) {
    const std::string file = text.substr(text.find('=') == text.npos ? 0 : text.find('=') + 1);
    if (!file.ends_with(".npy")) return {};
    const Tensor t = formats::load_npy(file);
    hints.push_back({t.size(), t.dtype()});
  }
  for (const std::string& text : hints.empty() ? args.all("--shape") : std::vector<std::string>()) {
    const size_t equal = text.find('=');
    if (equal == text.npos) return {};
    Shape size;
    for (const int64_t n : formats::input_shape({.name = text.substr(0, equal)}, text.substr(equal + 1)))
      size.push_back(n);
    hints.push_back({size});
  }
  return hints;
}

/// With files alone it says where they are; else what came out.
int exec(const Args& args) {
  const formats::OnnxModel model = formats::load_runnable(args.word(0), hints_of(args));
  const auto feeds = feeds_of(formats::wanted_inputs(model), args);
  use_threads(args);
  catch_interrupts();
  Bar bar("running");
  const views::ModelRun run = views::run_model(
      model, feeds, bar.progress(), args.has("--no-integer") ? views::Arithmetic::floats : views::Arithmetic::integers);
  bar.clear();
  if (run.stopped) throw Error("the run was stopped");
  if (!run.ok()) throw Error(run.error, run.hint);
  const std::string to = args.text("--output");
  const auto files = to.empty() ? std::vector<std::string>() : write_outputs(run, to, args.has("--pb"));
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const auto& [name, t] = run.outputs[i];
    const views::TensorStats& s = run.stats[i];
    if (args.json()) {
      nlohmann::json j = {{"output", name}, {"dtype", tenon::name(t.dtype())}, {"nan", s.nan}};
      j["shape"] = std::vector<int64_t>(t.size().begin(), t.size().end());
      for (const auto& [what, v] : {std::pair{"min", s.min}, std::pair{"mean", s.mean}, std::pair{"max", s.max}})
        j[what] = s.finite() ? json_number(v) : nlohmann::json();
      if (!files.empty()) j["file"] = files[i];
      print_json(j);
    } else if (!files.empty()) {
      print(fmt::format("{}: {} {} {}\n", files[i], name, tenon::name(t.dtype()), to_string(t.size())));
    }
  }
  if (args.json() || !files.empty()) return 0;
  std::vector<std::vector<std::string>> rows{{}};
  std::vector<bool> right;
  const views::Table shown = run.table();
  for (const auto& c : shown.columns) rows[0].push_back(c.title), right.push_back(c.number);
  for (const auto& r : shown.rows) {
    rows.emplace_back();
    for (const auto& cell : r.cells) rows.back().push_back(cell.text);
  }
  print(run.sentence() + "\n" + table(rows, right));
  return 0;
}

const bool registered_model_files[] = {
    register_command({"export", "PROJECT [RUN] --format NAME -o F", 1, 2,
                      with_quantization({{"--format", "NAME", formats_help()},
                                         {"-o", "FILE", "the exported model"},
                                         {"--checkpoint", "best|last|STEP", "which state (last)"},
                                         {"--verify", "",
                                          "read the file back and compare: results on test samples (onnx, pt2; cpp, "
                                          "with a compiler), or every bit"},
                                         {"--batch", "N", "samples of a run of the C++ (1)"},
                                         {"--weights", "FILE",
                                          "where the weights of the C++ go (into its source; above 8 MB, F.bin)"}}),
                      "writes a trained model for other programs", export_model}),
    register_command(
        {"exec",
         "MODEL [--input F]... [--fill WHAT] [--output DIR]",
         1,
         1,
         {{"--input", "[NAME=]FILE",
           "an input, .npy, .pb, .npz, .safetensors or .pt; without names in the model's order"},
          {"--fill", "WHAT", "what the other inputs hold: seed:3, zeros or ones"},
          {"--shape", "NAME=2x3x8x8",
           "of an input that is filled (sizes that the model leaves open are 1); may be repeated"},
          {"--output", "DIR|FILE", "where the outputs go: a folder, or one file, .npz or .safetensors"},
          {"--pb", "", "write ONNX tensors instead of .npy"},
          {"--no-integer", "", "of a quantized model (QDQ): compute in f32 what integers would do"},
          kThreads,
          kJson},
         "runs a model, .onnx, .pt2 or TorchScript (.pt), on inputs from files or a seed, and says what comes out",
         exec}),
};

}  // namespace
}  // namespace tenon::app
