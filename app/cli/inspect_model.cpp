// tenon inspect of a file that holds a model or weights: what is in it, and what its tensors look like.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "app/cli/file_report.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "views/shared/tensor_stats.h"

namespace tenon::app {
namespace {

using formats::ModelFile;
using nlohmann::json;
using views::TensorStats;

json entry_json(const ModelFile::Entry& e) {
  json j = {{"name", e.name}, {"dtype", e.dtype}, {"shape", e.shape}, {"bytes", e.bytes}};
  if (!e.storage.empty()) j["storage"] = e.storage;
  if (!e.device.empty()) j["device"] = e.device;
  if (!e.stride.empty()) j.update({{"stride", e.stride}, {"offset", e.offset}});
  if (!e.category.empty()) j["category"] = e.category;
  if (!e.problem.empty()) j["problem"] = e.problem;
  return j;
}

FileReport::Rows tensor_rows(const ModelFile& m, std::vector<bool>& right) {
  bool strided = false, odd = false;
  for (const ModelFile::Entry& e : m.tensors) {
    strided |= !e.stride.empty();
    odd |= !e.problem.empty();
  }
  right = {false, false, false, true};
  FileReport::Rows rows = {{"TENSOR", "DTYPE", "SHAPE", "BYTES"}};
  if (strided) rows[0].insert(rows[0].end(), {"STRIDE", "STORAGE"});
  if (odd) rows[0].emplace_back("");
  for (const ModelFile::Entry& e : m.tensors) {
    auto& row = rows.emplace_back(
        std::vector<std::string>{e.name, e.dtype, sizes_text(e.shape), bytes_text(static_cast<int64_t>(e.bytes))});
    if (strided) {
      row.push_back(sizes_text(e.stride));
      row.push_back(e.offset ? fmt::format("{} + {}", e.storage, e.offset) : e.storage);
    }
    if (odd) row.push_back(e.problem);
  }
  return rows;
}

json stats_json(const TensorStats& s) {
  json j = {{"elements", s.count}, {"nan", s.nan}, {"inf", s.inf}, {"zeros", s.zeros}, {"negative", s.negative}};
  const auto finite = static_cast<size_t>(s.finite());
  j["denormal"] = s.denormal;
  for (const auto& [name, value] : {std::pair{"min", s.min}, std::pair{"max", s.max}, std::pair{"mean", s.mean},
                                    std::pair{"std", s.std}, std::pair{"l2", s.l2}})
    j[name] = finite ? json_number(value) : json();
  return j;
}

TensorStats stats_of(const ModelFile& m, size_t i, Bar& bar) {
  constexpr int kBins = 64;
  const projects::Progress go_on = bar.progress();
  TensorStats s = views::file_tensor_stats(m, i, kBins, go_on);
  bar.clear();
  if (interrupted()) throw Error("the reading was stopped");
  return s;
}

std::vector<std::string> figures(const TensorStats& s) {
  auto number = [&](double v) { return s.finite() ? value_text(v) : std::string("-"); };
  return {number(s.min), number(s.max),       number(s.mean),    number(s.std),
          number(s.l2),  count_text(s.zeros), count_text(s.nan), count_text(s.inf)};
}

}  // namespace

std::string sizes_text(const std::vector<int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

FileReport::Rows shown(FileReport::Rows rows) {
  for (auto& row : rows)
    for (std::string& cell : row)
      for (char& c : cell)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return rows;
}

FileReport report_of(const ModelFile& m) {
  FileReport r{describe(m.kind), {{"kind", formats::model_file_reader(m.kind)->name}, {"tensors", json::array()}}, {}};
  for (const ModelFile::Fact& f : m.facts) {
    r.facts.push_back({f.head(), f.text()});
    r.j[f.name] = std::visit([](const auto& v) { return json(v); }, f.value);
  }
  std::set<std::string> storages;
  for (const ModelFile::Entry& e : m.tensors) {
    r.j["tensors"].push_back(entry_json(e));
    storages.insert(e.storage);
  }
  r.j["parameters"] = m.elements();
  r.facts.push_back({"tensors", fmt::format("{}, {} elements, {}", m.tensors.size(), count_text(m.elements()),
                                            bytes_text(static_cast<int64_t>(m.bytes())))});
  if (storages.size() > 1) r.facts.push_back({"storages", std::to_string(storages.size())});
  for (const auto& [what, values] : {std::pair{"input", &m.inputs}, std::pair{"output", &m.outputs}})
    for (const ModelFile::Value& v : *values) {
      r.facts.push_back({what, v.name + " " + v.type});
      r.j[std::string(what) + "s"].push_back(v.name + " " + v.type);
    }
  for (const std::string& f : m.foreign) r.facts.push_back({"asks for", f + ": no data; shown, never run"});
  for (const std::string& w : m.warnings) r.facts.push_back({"warning", w});
  r.j.update({{"foreign", m.foreign}, {"warnings", m.warnings}, {"metadata", json::object()}});
  for (const auto& [name, text] : m.texts) r.j["metadata"][name] = text;
  if (!m.nodes.empty()) {
    std::map<std::string, int64_t> operators;
    for (const ModelFile::Node& n : m.nodes) ++operators[n.op];
    FileReport::Rows rows = {{"OPERATOR", "COUNT"}};
    for (const auto& [name, n] : operators) rows.push_back({name, count_text(n)});
    r.tables.emplace_back(std::move(rows), std::vector<bool>{false, true});
    r.facts.push_back({"nodes", count_text(static_cast<int64_t>(m.nodes.size()))});
    r.j.update({{"nodes", m.nodes.size()}, {"operators", operators}});
  }
  if (!m.sources.empty()) {
    uint64_t bytes = 0;
    for (const ModelFile::Source& s : m.sources) {
      bytes += s.bytes;
      r.j["sources"].push_back({{"name", s.name}, {"bytes", s.bytes}});
    }
    r.facts.push_back(
        {"code", fmt::format("{} in {} {}: --code prints it; shown, never run", bytes_text(static_cast<int64_t>(bytes)),
                             m.sources.size(), m.sources.size() == 1 ? "listing" : "listings")});
  }
  std::vector<bool> right;
  if (!m.tensors.empty()) {
    FileReport::Rows rows = tensor_rows(m, right);
    r.tables.emplace_back(std::move(rows), right);
  }
  FileReport::Rows texts = {{"VALUE", ""}};
  for (const auto& [name, text] : m.texts) texts.push_back({name, text});
  if (texts.size() > 1) r.tables.emplace_back(std::move(texts), std::vector<bool>{});
  return r;
}

int print_tensor(const ModelFile& m, const std::string& name, const Args& args) {
  const size_t i = m.at(name);
  const ModelFile::Entry& e = m.tensors[i];
  Bar bar("read");
  const TensorStats s = stats_of(m, i, bar);
  if (args.json()) {
    json j = entry_json(e);
    j.update(stats_json(s));
    j["bins"] = s.bins;
    print_json(j);
    return 0;
  }
  FileReport::Rows rows = {{"tensor", e.name},
                           {"dtype", e.dtype},
                           {"shape", sizes_text(e.shape)},
                           {"bytes", bytes_text(static_cast<int64_t>(e.bytes))},
                           {"elements", count_text(s.count)}};
  const std::vector<std::string> all = figures(s);
  for (size_t k = 0; k < all.size(); ++k)
    rows.push_back({std::vector<std::string>{"min", "max", "mean", "std", "norm", "zeros", "nan", "inf"}[k], all[k]});
  print(table(shown(std::move(rows))));
  return 0;
}

int print_all_tensors(const ModelFile& m, const Args& args) {
  FileReport::Rows rows = {{"TENSOR", "DTYPE", "SHAPE", "MIN", "MAX", "MEAN", "STD", "NORM", "ZEROS", "NAN", "INF"}};
  Bar bar("read");
  for (size_t i = 0; i < m.tensors.size(); ++i) {
    const ModelFile::Entry& e = m.tensors[i];
    json j = entry_json(e);
    std::vector<std::string> row = {e.name, e.dtype, sizes_text(e.shape)};
    if (e.problem.empty()) {
      const TensorStats s = stats_of(m, i, bar);
      j.update(stats_json(s));
      for (std::string& f : figures(s)) row.push_back(std::move(f));
    } else {
      row.push_back(e.problem);
    }
    if (args.json()) print_json(j);
    row.resize(rows[0].size());
    rows.push_back(std::move(row));
  }
  if (!args.json())
    print(table(shown(std::move(rows)), {false, false, false, true, true, true, true, true, true, true, true}));
  return 0;
}

int print_code(const ModelFile& m, const Args& args) {
  if (m.sources.empty())
    throw Error(fmt::format("{} is {} and brings no code", m.path, describe(m.kind)),
                "a program of torch.jit.save does; `tenon code` writes the model of a project as source");
  for (size_t i = 0; i < m.sources.size(); ++i) {
    std::string text = m.source_text(i);
    if (args.json()) {
      print_json({{"source", m.sources[i].name}, {"bytes", m.sources[i].bytes}, {"text", text}});
      continue;
    }
    for (char& c : text)
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = '?';
    if (!text.empty() && text.back() != '\n') text += '\n';
    print(fmt::format("{}# {}\n{}", i ? "\n" : "", shown({{m.sources[i].name}})[0][0], text));
  }
  return 0;
}

}  // namespace tenon::app
