// tenon inspect: what a file is, by its content, and what is inside.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/data/idx.h"
#include "engine/formats/file_kind.h"
#include "engine/formats/gzip.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/torch/pickle.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::app {
namespace {

using formats::FileKind;
using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;
using File = std::shared_ptr<const MappedFile>;

/// What is said of a file: as JSON, and as facts and tables for a reader.
struct Report {
  std::string what;  ///< "a safetensors file"
  json j;            ///< with its "kind"
  Rows facts;
  std::vector<std::pair<Rows, std::vector<bool>>> tables;
};

std::string sizes(const std::vector<int64_t>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }
int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (int64_t d : v)
    if (__builtin_mul_overflow(n, d, &n)) return INT64_MAX;
  return n;
}

Report project(const std::string& path) {
  const auto p = open_to_read(path);
  Report r{"a Tenon project", {{"kind", "project"}, {"model", p->model().name}, {"runs", json::array()}}, {}, {}};
  Rows rows = {{"RUN", "STATUS", "STEPS", "CHECKPOINTS"}};
  for (const auto& run : p->runs()) {
    const size_t checkpoints = p->checkpoints(run.id).size();
    r.j["runs"].push_back(
        {{"name", run.name}, {"status", run.status}, {"steps", run.steps}, {"checkpoints", checkpoints}});
    rows.push_back({run.name, run.status, count_text(run.steps), std::to_string(checkpoints)});
  }
  r.facts = {{"model", p->model().name},
             {"layers", std::to_string(p->model().layers.size())},
             {"runs", std::to_string(rows.size() - 1)}};
  if (rows.size() > 1) r.tables.emplace_back(rows, std::vector<bool>{false, false, true, true});
  return r;
}

std::string value_text(const formats::OnnxValue& v) {
  std::vector<std::string> dims;
  for (const auto& d : v.shape) dims.push_back(d.value >= 0 ? std::to_string(d.value) : d.name.empty() ? "?" : d.name);
  return fmt::format("{} {} [{}]", v.name, v.typed ? tenon::name(v.dtype) : "?", fmt::join(dims, ", "));
}

Report onnx(const File& file) {
  const std::string folder = std::filesystem::path(file->name()).parent_path().string();
  const formats::OnnxModel m = formats::parse_onnx(file->bytes(), file->name(), folder.empty() ? "." : folder);
  Report r{"an ONNX model",
           {{"kind", "onnx"}, {"opset", m.opset}, {"ir_version", m.ir_version}, {"producer", m.producer}},
           {},
           {}};
  std::map<std::string, int64_t> operators;
  for (const auto& n : m.graph.nodes) ++operators[n.op_type];
  int64_t parameters = 0;
  for (const auto& [name, t] : m.graph.initializers) parameters += t.numel();
  r.facts = {{"made by", m.producer + (m.producer_version.empty() ? "" : " " + m.producer_version)},
             {"opset", std::to_string(m.opset)},
             {"nodes", std::to_string(m.graph.nodes.size())},
             {"initializers", fmt::format("{}, {} elements", m.graph.initializers.size(), count_text(parameters))}};
  for (const auto& v : m.graph.inputs)
    r.facts.push_back({"input", value_text(v)}), r.j["inputs"].push_back(value_text(v));
  for (const auto& v : m.graph.outputs)
    r.facts.push_back({"output", value_text(v)}), r.j["outputs"].push_back(value_text(v));
  Rows rows = {{"OPERATOR", "COUNT"}};
  for (const auto& [name, n] : operators) rows.push_back({name, count_text(n)});
  r.j.update({{"nodes", m.graph.nodes.size()},
              {"initializers", m.graph.initializers.size()},
              {"parameters", parameters},
              {"operators", operators}});
  r.tables.emplace_back(rows, std::vector<bool>{false, true});
  return r;
}

Report safetensors(const File& file) {
  const auto s = formats::Safetensors::parse(file);
  Report r{"a safetensors file",
           {{"kind", "safetensors"}, {"metadata", json::object()}, {"tensors", json::array()}},
           {},
           {}};
  Rows rows = {{"TENSOR", "DTYPE", "SHAPE", "BYTES"}};
  int64_t elements = 0;
  for (const auto& e : s.entries()) {
    const auto bytes = static_cast<int64_t>(e.end - e.begin);
    elements += product(e.shape);
    r.j["tensors"].push_back({{"name", e.name}, {"dtype", e.dtype}, {"shape", e.shape}, {"bytes", bytes}});
    rows.push_back({e.name, e.dtype, sizes(e.shape), bytes_text(bytes)});
  }
  r.facts = {{"tensors", fmt::format("{}, {} elements", s.entries().size(), count_text(elements))}};
  for (const auto& [key, value] : s.metadata()) {
    r.facts.push_back({key, value});
    r.j["metadata"][key] = value;
  }
  if (rows.size() > 1) r.tables.emplace_back(rows, std::vector<bool>{false, false, false, true});
  return r;
}

Report torch(const File& file) {
  const auto t = formats::TorchFile::parse(file);
  Report r{describe(t.legacy() ? FileKind::torch_legacy : FileKind::torch),
           {{"kind", t.legacy() ? "torch-legacy" : "torch"},
            {"tensors", json::array()},
            {"values", json::array()},
            {"foreign", t.foreign()},
            {"warnings", t.warnings()}},
           {},
           {}};
  Rows rows = {{"TENSOR", "DTYPE", "SHAPE", "STRIDE", "STORAGE", ""}};
  std::set<std::string> storages;
  for (const auto& e : t.entries()) {
    storages.insert(e.storage);
    json one = {{"name", e.name},     {"dtype", e.dtype},   {"device", e.device},  {"shape", e.shape},
                {"stride", e.stride}, {"offset", e.offset}, {"storage", e.storage}};
    if (!e.problem.empty()) one["problem"] = e.problem;
    r.j["tensors"].push_back(one);
    rows.push_back({e.name, e.dtype, sizes(e.shape), sizes(e.stride),
                    e.offset ? fmt::format("{} + {}", e.storage, e.offset) : e.storage, e.problem});
  }
  r.facts = {{"tensors", fmt::format("{} on {} storages", t.entries().size(), storages.size())}};
  for (const std::string& f : t.foreign()) r.facts.push_back({"asks for", f + ": no data; shown, never run"});
  for (const std::string& w : t.warnings()) r.facts.push_back({"warning", w});
  if (rows.size() > 1) r.tables.emplace_back(rows, std::vector<bool>{});
  Rows values = {{"VALUE", ""}};
  for (const auto& [name, text] : t.values()) {
    r.j["values"].push_back({{"name", name}, {"value", text}});
    values.push_back({name, text});
  }
  if (values.size() > 1) r.tables.emplace_back(values, std::vector<bool>{});
  return r;
}

Report array(const char* what, const char* kind, const std::string& dtype, const std::vector<int64_t>& shape) {
  return {what,
          {{"kind", kind}, {"dtype", dtype}, {"shape", shape}},
          {{"dtype", dtype}, {"shape", sizes(shape)}, {"elements", count_text(product(shape))}},
          {}};
}

Report npy(const File& file) {
  const Tensor t = formats::parse_npy(file->bytes(), file->name());
  return array("a NumPy array", "npy", name(t.dtype()), {t.size().begin(), t.size().end()});
}

Report idx(const File& file) {
  const data::IdxHeader header = data::idx_header(file->bytes(), file->name());
  return array("an IDX array", "idx", header.dtype, header.shape);
}

/// What an analysis says of a file, as a report on it.
Report told(const char* what, const char* kind, const tracing::Finding& found, const char* more) {
  Report r{what, {{"kind", kind}, {"sentence", found.sentence}}, {}, {}};
  auto number = [](const tracing::Cell& c) { return std::visit([](const auto& v) { return json(v); }, c); };
  for (const auto& f : found.facts) {
    r.j[f.name] = number(f.value);
    r.facts.push_back({f.head, tracing::cell_text(f.value, f.unit)});
  }
  r.facts.push_back({"more", more});
  for (const auto& t : found.tables) {
    if (t.rows.empty()) continue;
    Rows rows{{}};
    std::vector<bool> right;
    json list = json::array();
    for (const auto& c : t.columns) {
      rows[0].push_back(c.head);
      right.push_back(c.unit != tracing::Unit::text);
    }
    for (const auto& row : t.rows) {
      auto& cells = rows.emplace_back();
      json object;
      for (size_t i = 0; i < row.size(); ++i) {
        cells.push_back(tracing::cell_text(row[i], t.columns[i].unit).substr(0, 90));
        object[t.columns[i].name] = number(row[i]);
      }
      list.push_back(std::move(object));
    }
    r.j[t.name] = std::move(list);
    r.tables.emplace_back(std::move(rows), std::move(right));
  }
  return r;
}

Report memory_snapshot(const File& file) {
  tracing::SnapshotRequest request;
  request.snapshots.push_back(snapshot::parse_snapshot(std::string(file->bytes())));
  return told("a snapshot of PyTorch's memory", "memory-snapshot", tracing::snapshot_analyses().at("info").run(request),
              "tenon memory peak|leaks|fragmentation|what-if FILE");
}

Report pickle(const File& file) {
  std::string why;
  try {
    return memory_snapshot(file);
  } catch (const Error& e) {
    why = e.message();
  }
  formats::Pickle p;
  try {
    p = formats::read_pickle(file->bytes(), formats::PickleOf::objects);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file->name(), e.message()), e.hint());
  }
  std::set<std::string> names;
  for (const auto& v : p.values())
    if (const auto* g = v.as<formats::PyValue::Global>()) names.insert(g->full());
  Report r{"a Python pickle, shown and never run",
           {{"kind", "pickle"}, {"values", p.values().size()}, {"names", names}},
           {{"values", std::to_string(p.values().size())}},
           {}};
  for (const std::string& n : names) r.facts.push_back({"asks for", n});
  if (names.empty()) r.facts.push_back({"note", why});
  return r;
}

/// JSON is a trace where it has events, or a memory snapshot that was written as JSON.
Report trace(const File& file) {
  tracing::TraceRequest request;
  std::string why;
  try {
    request.traces.push_back(traces::parse_trace(std::string(file->bytes())));
    if (request.first().size() ==
        0) {  // an array of anything reads as an empty trace; the older snapshots are a list of segments
      try {
        return memory_snapshot(file);
      } catch (const Error&) {
      }
    }
    return told("a Chrome trace", "trace", tracing::trace_analyses().at("info").run(request),
                "tenon trace why|steps|ops|kernels FILE");
  } catch (const Error& e) {
    why = e.message();
  }
  try {
    return memory_snapshot(file);
  } catch (const Error&) {
    throw Error(fmt::format("{} is {}: {}", file->name(), describe(FileKind::json), why));
  }
}

Report look(const File& file) {
  const FileKind kind = formats::file_kind(file->bytes());
  switch (kind) {
    case FileKind::project:
      return project(file->name());
    case FileKind::onnx:
      return onnx(file);
    case FileKind::safetensors:
      return safetensors(file);
    case FileKind::torch:
    case FileKind::torch_legacy:
      return torch(file);
    case FileKind::npy:
      return npy(file);
    case FileKind::idx:
      return idx(file);
    case FileKind::pickle:
      return pickle(file);
    case FileKind::json:
      return trace(file);
    case FileKind::gzip: {
      std::string unpacked = formats::gunzip(file->bytes(), file->name());
      if (formats::is_gzip(unpacked)) throw Error(fmt::format("{} is a gzip file of a gzip file", file->name()));
      Report r = look(MappedFile::of(std::move(unpacked), file->name()));
      r.what += ", compressed";
      r.j["compressed"] = true;
      return r;
    }
    default: {
      // zstd, and a zip with traces in it, unpack to text.
      std::string_view b = file->bytes();
      if (b.starts_with("\x28\xb5\x2f\xfd") || (kind == FileKind::zip && !traces::zip_members(file->name()).empty())) {
        Report r = look(MappedFile::of(std::string(traces::SourceText::open(file->name())->bytes()), file->name()));
        r.what += ", compressed";
        r.j["compressed"] = true;
        return r;
      }
      throw Error(fmt::format("{} is {}", file->name(), describe(kind)));
    }
  }
}

/// Names in a file are anyone's: none may move the terminal's cursor.
Rows shown(Rows rows) {
  for (auto& row : rows)
    for (std::string& cell : row)
      for (char& c : cell)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return rows;
}

int inspect(const Args& args) {
  const File file = MappedFile::open(args.word(0));
  Report r = look(file);
  if (args.json()) {
    r.j.update({{"file", args.word(0)}, {"bytes", file->bytes().size()}});
    print_json(r.j);
    return 0;
  }
  print(fmt::format("{}: {}, {}\n", args.word(0), r.what, bytes_text(static_cast<int64_t>(file->bytes().size()))));
  print(table(shown(std::move(r.facts))));
  for (const auto& [rows, right] : r.tables) print("\n" + table(shown(rows), right));
  return 0;
}

const bool registered_inspect = register_command({"inspect",
                                                  "FILE",
                                                  1,
                                                  1,
                                                  {{"--json", "", "one JSON object on standard output"}},
                                                  "says what a file is, by its content, and what is inside",
                                                  inspect});

}  // namespace
}  // namespace tenon::app
