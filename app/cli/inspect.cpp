// tenon inspect: what a file is, by its content, and what is inside.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/file_report.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/data/idx.h"
#include "engine/formats/file_kind.h"
#include "engine/formats/gzip.h"
#include "engine/formats/model_file.h"
#include "engine/formats/npy.h"
#include "engine/formats/torch/pickle.h"
#include "engine/model/examine.h"
#include "engine/spec/submodel.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/snapshot/snapshot_store.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/store_file.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::app {
namespace {

using formats::FileKind;
using nlohmann::json;
using Rows = FileReport::Rows;
using Report = FileReport;
using File = std::shared_ptr<const MappedFile>;

/// The product of an array's sizes; INT64_MAX where that is no number.
int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (int64_t d : v)
    if (__builtin_mul_overflow(n, d, &n)) return INT64_MAX;
  return n;
}

/// A row an instance of a sub-model, and one a layer that shares weights by itself.
void add_submodels(Report& r, const ModelSpec& model) {
  const std::vector<LayerReport> reports = examine(model, 2);
  int64_t parameters = 0;
  for (const LayerReport& l : reports) parameters += l.parameters;
  r.j["parameters"] = parameters;
  r.facts.push_back({"parameters", count_text(parameters)});
  if (!model.submodels.empty()) r.j["submodels"] = json::array();
  Rows rows = {{"SUB-MODEL", "INSTANCE", "LAYERS", "PARAMETERS", "WEIGHTS OF", "VALUES OF ITS OWN"}};
  for (const SubModelSpec& s : model.submodels)
    for (const std::string& scope : s.instances) {
      int64_t layers = 0, own = 0;
      for (const LayerReport& l : reports)
        if (in_scope(l.layer, scope)) ++layers, own += l.parameters;
      const std::string owner = shared_instance(model, scope);
      json values = json::object();
      std::string told;
      for (const OwnAttr& o : s.own) {
        const AttrValue* v = model.find(scope + "." + o.layer)->find(o.attr);
        const std::string key = o.layer + "." + o.attr;
        values[key] = v ? attr_to_json(*v) : json();
        told += (told.empty() ? "" : ", ") + key + " = " + (v ? attr_text(*v) : "default");
      }
      r.j["submodels"].push_back({{"name", s.name},
                                  {"instance", scope},
                                  {"layers", layers},
                                  {"parameters", own},
                                  {"weights_of", owner},
                                  {"own", values}});
      rows.push_back({s.name, scope, count_text(layers), count_text(own), owner, told});
    }
  if (rows.size() > 1) r.tables.emplace_back(rows, std::vector<bool>{false, false, true, true, false, false});
  rows = {{"LAYER", "WEIGHTS OF"}};
  for (const LayerSpec& l : model.layers)
    if (!l.shares.empty()) {
      r.j["shares"][l.name] = l.shares;
      rows.push_back({l.name, l.shares});
    }
  if (rows.size() > 1) r.tables.emplace_back(rows, std::vector<bool>{false, false});
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
  add_submodels(r, p->model());
  return r;
}

Report array(const char* what, const char* kind, const std::string& dtype, const std::vector<int64_t>& shape) {
  return {what,
          {{"kind", kind}, {"dtype", dtype}, {"shape", shape}},
          {{"dtype", dtype}, {"shape", sizes_text(shape)}, {"elements", count_text(product(shape))}},
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

Report told_of(std::shared_ptr<const snapshot::Snapshot> snapshot, const char* what, const char* kind) {
  tracing::SnapshotRequest request;
  request.snapshots.push_back(std::move(snapshot));
  return told(what, kind, tracing::snapshot_analyses().at("info").run(request),
              "tenon memory peak|leaks|fragmentation|what-if FILE");
}

Report memory_snapshot(const File& file) {
  return told_of(snapshot::parse_snapshot(std::string(file->bytes())), "a snapshot of PyTorch's memory",
                 "memory-snapshot");
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

Report stored_trace(const File& file) {
  tracing::TraceRequest request;
  request.traces.push_back(traces::open_given_store(file->name()));
  return told("what was kept of a Chrome trace", "trace-store", tracing::trace_analyses().at("info").run(request),
              "tenon trace why|steps|ops|kernels FILE");
}

Report stored_snapshot(const File& file) {
  return told_of(snapshot::open_given_store(file->name()), "what was kept of a snapshot of PyTorch's memory",
                 "memory-snapshot-store");
}

Report inspect_file(const File& file) {
  const FileKind kind = formats::file_kind(file->bytes());
  if (kind == FileKind::npy) return npy(file);
  if (formats::model_file_reader(kind)) return report_of(*formats::ModelFile::parse(file));
  switch (kind) {
    case FileKind::project:
      return project(file->name());
    case FileKind::idx:
      return idx(file);
    case FileKind::pickle:
      return pickle(file);
    case FileKind::json:
      return trace(file);
    case FileKind::gzip: {
      std::string unpacked = formats::gunzip(file->bytes(), file->name());
      if (formats::is_gzip(unpacked)) throw Error(fmt::format("{} is a gzip file of a gzip file", file->name()));
      Report r = inspect_file(MappedFile::of(std::move(unpacked), file->name()));
      r.what += ", compressed";
      r.j["compressed"] = true;
      return r;
    }
    default: {
      // zstd, and a zip with traces in it, unpack to text.
      std::string_view b = file->bytes();
      if (b.starts_with("\x28\xb5\x2f\xfd") || (kind == FileKind::zip && !traces::zip_members(file->name()).empty())) {
        Report r =
            inspect_file(MappedFile::of(std::string(traces::SourceText::open(file->name())->bytes()), file->name()));
        r.what += ", compressed";
        r.j["compressed"] = true;
        return r;
      }
      if (traces::is_store(traces::kTraceStore, b)) return stored_trace(file);
      if (traces::is_store(snapshot::kSnapshotStore, b)) return stored_snapshot(file);
      throw Error(fmt::format("{} is {}", file->name(), describe(kind)));
    }
  }
}

int inspect(const Args& args) {
  const bool one = args.has("--tensor"), all = args.has("--stats"), code = args.has("--code");
  if (one && all) throw Error::usage("--tensor is of one tensor and --stats of all: give one of them");
  if (code && (one || all)) throw Error::usage("--code is of the file's code and not of its tensors");
  use_threads(args);
  const File file = MappedFile::open(args.word(0));
  if (one || all || code) {
    const auto m = formats::ModelFile::parse(file);
    if (code) return print_code(*m, args);
    return one ? print_tensor(*m, args.text("--tensor"), args) : print_all_tensors(*m, args);
  }
  Report r = inspect_file(file);
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

const bool registered_inspect =
    register_command({"inspect",
                      "FILE",
                      1,
                      1,
                      {{"--tensor", "NAME", "the statistics of one tensor of a model file"},
                       {"--stats", "", "the statistics of every tensor, a row each"},
                       {"--code", "", "the code of a TorchScript program: shown, never run"},
                       kThreads,
                       {"--json", "", "JSON lines on standard output"}},
                      "says what a file is, by its content, and what is inside",
                      inspect});

}  // namespace
}  // namespace tenon::app
