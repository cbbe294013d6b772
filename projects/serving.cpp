#include "projects/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/temporary_folder.h"
#include "core/version.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/zip.h"
#include "engine/train/session.h"
#include "projects/graph_exports.h"

namespace tenon::projects {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kServedBatch = 64;

/// The classes of a model that answers with one; none where it does not.
std::vector<std::string> class_names(const TrainingSession& session) {
  std::vector<std::string> names;
  const data::Dataset& test = session.test_data();
  if (session.task() == "classification")
    for (int64_t i = 0; i < test.classes(); ++i) names.push_back(test.class_name(i));
  return names;
}

std::string triton_type(const formats::OnnxValue& v) {
  switch (v.dtype) {
    case DType::f32:
      return "TYPE_FP32";
    case DType::f64:
      return "TYPE_FP64";
    case DType::f16:
      return "TYPE_FP16";
    case DType::bf16:
      return "TYPE_BF16";
    case DType::i64:
      return "TYPE_INT64";
    case DType::i32:
      return "TYPE_INT32";
    case DType::u8:
      return "TYPE_UINT8";
    case DType::i8:
      return "TYPE_INT8";
    case DType::boolean:
      return "TYPE_BOOL";
    default:
      throw Error(fmt::format("Triton has no type for '{}' of {}", v.name, name(v.dtype)));
  }
}

bool is_batched(const formats::OnnxValue& v) { return !v.shape.empty() && v.shape[0].value < 0; }

/// "[ 3, 224, 224 ]"; without the batch, which the server adds.
std::string dims_of(const formats::OnnxValue& v, bool batched) {
  std::string text;
  for (size_t i = batched ? 1 : 0; i < v.shape.size(); ++i)
    text += (text.empty() ? " " : ", ") + std::to_string(v.shape[i].value);
  return "[" + text + (text.empty() ? "]" : " ]");
}

/// A tensor without axes beside the batch is one of one number that is reshaped away.
std::string value_of(const formats::OnnxValue& v, bool batched, const std::string& more) {
  const bool bare = v.shape.size() <= (batched ? 1u : 0u);
  return fmt::format("  {{ name: \"{}\" data_type: {} dims: {}{}{} }}", v.name, triton_type(v),
                     bare ? "[ 1 ]" : dims_of(v, batched), bare ? " reshape: { shape: [ ] }" : "", more);
}

/// Text of a protobuf, as inference.ModelConfig has it.
std::string triton_config(const std::string& name, const formats::OnnxGraph& g, const std::string& doc, bool labelled) {
  const auto all = [](const std::vector<formats::OnnxValue>& values) {
    return std::all_of(values.begin(), values.end(), is_batched);
  };
  const bool batched = all(g.inputs) && all(g.outputs);
  std::string text = fmt::format("# {}, tenon {}\nname: \"{}\"\nbackend: \"onnxruntime\"\nmax_batch_size: {}\n", doc,
                                 TENON_VERSION, name, batched ? kServedBatch : 0);
  const auto list = [&](const char* what, const std::vector<formats::OnnxValue>& values, const std::string& more) {
    text += std::string(what) + " [\n";
    for (size_t i = 0; i < values.size(); ++i)
      text += value_of(values[i], batched, i == 0 ? more : "") + (i + 1 < values.size() ? ",\n" : "\n");
    text += "]\n";
  };
  list("input", g.inputs, "");
  list("output", g.outputs, labelled ? " label_filename: \"labels.txt\"" : "");
  if (batched) text += "dynamic_batching { max_queue_delay_microseconds: 100 }\n";
  return text;
}

/// The number behind the largest of the folders that are numbers.
int64_t next_version(const fs::path& folder) {
  int64_t last = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    int64_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc() && end == name.data() + name.size()) last = std::max(last, number);
  }
  return last + 1;
}

constexpr const char* kHandler = R"PY("""Serves a TorchScript program: {doc}.

A request is a body of JSON, {{"instances": [row, ...]}} or [row, ...], or of NumPy's .npy with rows along the first
axis. The answer has a result for each row: numbers, or with names of classes the shares of each.
"""
import io
import json
import os

import torch

_model = None
_classes = None
_dtype = torch.{dtype}


def _load(context):
    global _model, _classes
    folder = context.system_properties.get("model_dir")
    program = os.path.join(folder, context.manifest["model"]["serializedFile"])
    _model = torch.jit.load(program, map_location="cpu").eval()
    names = os.path.join(folder, "index_to_name.json")
    if os.path.exists(names):
        with open(names, encoding="utf-8") as file:
            named = json.load(file)
        _classes = [named[str(i)] for i in range(len(named))]


def _rows(request):
    body = request.get("data") if request.get("data") is not None else request.get("body")
    if isinstance(body, (bytes, bytearray)):
        if bytes(body[:6]) == b"\x93NUMPY":
            import numpy

            return torch.from_numpy(numpy.load(io.BytesIO(body), allow_pickle=False)).to(_dtype)
        body = json.loads(body)
    if isinstance(body, dict):
        body = body["instances"]
    return torch.tensor(body, dtype=_dtype)


def handle(data, context):
    if _model is None:
        _load(context)
    if not data:
        return None
    batches = [_rows(request) for request in data]
    with torch.inference_mode():
        output = _model(torch.cat(batches))
    results, at = [], 0
    for rows in batches:
        mine = output[at : at + len(rows)]
        at += len(rows)
        if _classes and mine.dim() == 2 and mine.shape[1] == len(_classes):
            shares = torch.softmax(mine.float(), 1).tolist()
            results.append([dict(zip(_classes, row)) for row in shares])
        else:
            results.append(mine.tolist())
    return results
)PY";

std::string handler_of(const std::string& doc, DType input) {
  const char* type = input == DType::i64 ? "int64" : input == DType::f64 ? "float64" : "float32";
  std::string said = doc;
  std::erase_if(said, [](char c) { return c == '"' || c == '\\' || c == '{' || c == '}'; });
  return fmt::format(fmt::runtime(kHandler), fmt::arg("doc", said), fmt::arg("dtype", type));
}

}  // namespace

std::string served_name(const std::string& name) {
  std::string ok;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool fits = letter || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (ok.empty() && !letter) ok = "m";
    ok += fits ? c : '_';
  }
  return ok.empty() ? "model" : ok;
}

ExportReport export_triton(TrainingSession& session, const RunInfo& run, const std::string& doc,
                           const std::string& folder, bool verify) {
  const std::string name = served_name(run.model.name);
  const fs::path model_folder = fs::path(folder) / name;
  std::error_code code;
  fs::create_directories(model_folder, code);
  if (code) throw Error(model_folder.string() + ": the folder cannot be made: " + code.message());
  const int64_t version = next_version(model_folder);
  const fs::path made = model_folder / (".new-" + std::to_string(version)),
                 there = model_folder / std::to_string(version);
  struct Gone {
    const fs::path& path;
    ~Gone() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } gone{made};
  fs::remove_all(made, code);
  fs::create_directory(made, code);
  if (code) throw Error(made.string() + ": the folder cannot be made: " + code.message());
  const std::string file = (made / "model.onnx").string();
  ExportReport e = export_onnx(session, run, doc, file, verify);
  const std::vector<std::string> classes = class_names(session);
  const std::string config = triton_config(name, formats::load_onnx(file).graph, doc, !classes.empty());
  std::string labels;
  for (const std::string& c : classes) labels += c + "\n";
  fs::rename(made, there, code);
  if (code) throw Error(there.string() + ": cannot be made: " + code.message());
  if (!classes.empty()) write_file((model_folder / "labels.txt").string(), labels);
  write_file((model_folder / "config.pbtxt").string(), config);
  e.figures = {{"version", version}};
  e.text = fmt::format("version {} of {} in a repository of Triton, {}", version, name, e.text);
  return e;
}

ExportReport export_torchserve(TrainingSession& session, const RunInfo& run, const std::string& doc,
                               const std::string& path, bool verify) {
  const TemporaryFolder folder("tenon-archive");
  const std::string program = folder / "model.pt";
  ExportReport e = export_torchscript(session, run, doc, program, verify);
  char now[32] = {};
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::strftime(now, sizeof now, "%d/%m/%Y %H:%M:%S", &parts);
  const nlohmann::ordered_json manifest = {{"createdOn", now},
                                           {"runtime", "python"},
                                           {"model",
                                            {{"modelName", served_name(run.model.name)},
                                             {"serializedFile", "model.pt"},
                                             {"handler", "handler.py"},
                                             {"modelVersion", "1.0"}}},
                                           {"archiverVersion", "0.12.0"},
                                           {"description", doc}};
  const std::vector<std::string> classes = class_names(session);
  FileWriter out(path);
  formats::ZipWriter zip(out);
  zip.add("MAR-INF/MANIFEST.json", manifest.dump(2));
  zip.add("handler.py", handler_of(doc, session.test_data().input().dtype));
  if (!classes.empty()) {
    nlohmann::ordered_json names;
    for (size_t i = 0; i < classes.size(); ++i) names[std::to_string(i)] = classes[i];
    zip.add("index_to_name.json", names.dump(2));
  }
  zip.add("model.pt", read_file(program));
  zip.finish();
  out.commit();
  e.text = "an archive of TorchServe with " + e.text;
  return e;
}

}  // namespace tenon::projects
