// What stands in a model file: its tensors, the nodes of its graph, and what they read and make. No values are read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

#include "engine/formats/model_file.h"
#include "projects/query/query_table.h"

namespace tenon::projects {
namespace {

using formats::ModelFile;
using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

struct FileTensors final : QueryRows {
  explicit FileTensors(std::shared_ptr<const ModelFile> of) : file(std::move(of)) {}
  int64_t end() const override { return static_cast<int64_t>(file->tensors.size()); }
  const ModelFile::Entry& operator[](int64_t i) const { return file->tensors[static_cast<size_t>(i)]; }
  std::shared_ptr<const ModelFile> file;
};

/// Text that may be missing is NULL.
void put_told(QueryCell& c, const std::string& text) {
  if (!text.empty()) c.put_standing(text);
}

std::string_view owning_module(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : std::string_view(name).substr(0, dot);
}

const bool registered_file_tensors = register_query_table(
    QueryKind::model,
    {"tensors",
     10,
     "the tensors of the file, in its order",
     QueryColumns<FileTensors>()
         .add(
             "id", Unit::count, "its number", [](const FileTensors&, int64_t i, QueryCell& c) { c.put(i); },
             Found::unique, Leads::tensor)
         .add(
             "name", Unit::text, "there once in a file",
             [](const FileTensors& t, int64_t i, QueryCell& c) { c.put_standing(t[i].name); }, Found::by_looking,
             Leads::tensor)
         .add("module", Unit::text, "the part of its name before the last point; NULL: it has none",
              [](const FileTensors& t, int64_t i, QueryCell& c) {
                if (const std::string_view m = owning_module(t[i].name); !m.empty()) c.put_standing(m);
              })
         .add("dtype", Unit::text, "as the file names it",
              [](const FileTensors& t, int64_t i, QueryCell& c) { c.put_standing(t[i].dtype); })
         .add("shape", Unit::text, "as [64, 3, 7, 7], which json_each takes apart",
              [](const FileTensors& t, int64_t i, QueryCell& c) {
                c.put(fmt::format("[{}]", fmt::join(t[i].shape, ", ")));
              })
         .add("dims", Unit::count, "how many sizes its shape has",
              [](const FileTensors& t, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(t[i].shape.size())); })
         .add("elements", Unit::count, "the product of its shape",
              [](const FileTensors& t, int64_t i, QueryCell& c) { c.put(t[i].elements()); })
         .add("bytes", Unit::bytes, "of its values",
              [](const FileTensors& t, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(t[i].bytes)); })
         .add("category", Unit::text, "parameter or buffer; NULL where the file does not tell",
              [](const FileTensors& t, int64_t i, QueryCell& c) { put_told(c, t[i].category); })
         .add("storage", Unit::text, "of formats with views of storages, or values beside the file; else NULL",
              [](const FileTensors& t, int64_t i, QueryCell& c) { put_told(c, t[i].storage); })
         .add("device", Unit::text, "that it was saved from; NULL where the file does not tell",
              [](const FileTensors& t, int64_t i, QueryCell& c) { put_told(c, t[i].device); })
         .add("problem", Unit::text, "why its values cannot be read; NULL: they can",
              [](const FileTensors& t, int64_t i, QueryCell& c) { put_told(c, t[i].problem); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<FileTensors>(s.model); },
     {{"The largest tensors", "SELECT name, dtype, shape, bytes\nFROM tensors ORDER BY bytes DESC LIMIT 50"},
      {"Modules by their bytes",
       "SELECT module, count(*) AS tensors, sum(elements), sum(bytes)\nFROM tensors GROUP BY module ORDER BY 4 DESC "
       "LIMIT 50"},
      {"Types", "SELECT dtype, count(*) AS tensors, sum(elements), sum(bytes)\nFROM tensors GROUP BY dtype"}}});

struct FileNodes final : QueryRows {
  explicit FileNodes(std::shared_ptr<const ModelFile> of) : file(std::move(of)) {}
  int64_t end() const override { return static_cast<int64_t>(file->nodes.size()); }
  const ModelFile::Node& operator[](int64_t i) const { return file->nodes[static_cast<size_t>(i)]; }
  std::shared_ptr<const ModelFile> file;
};

const bool registered_file_nodes = register_query_table(
    QueryKind::model,
    {"nodes",
     20,
     "the operations of the graph, in the file's order; none where the format has no graph",
     QueryColumns<FileNodes>()
         .add(
             "id", Unit::count, "its number", [](const FileNodes&, int64_t i, QueryCell& c) { c.put(i); },
             Found::unique, Leads::node)
         .add("name", Unit::text, "NULL where it has none",
              [](const FileNodes& n, int64_t i, QueryCell& c) { put_told(c, n[i].name); })
         .add("op", Unit::text, "Conv, MatMul, ...",
              [](const FileNodes& n, int64_t i, QueryCell& c) { c.put_standing(n[i].op); })
         .add("domain", Unit::text, "of the operator; NULL: ONNX's own",
              [](const FileNodes& n, int64_t i, QueryCell& c) { put_told(c, n[i].domain); })
         .add("module", Unit::text, "it stands in; NULL where nothing says so",
              [](const FileNodes& n, int64_t i, QueryCell& c) { put_told(c, n[i].scope); })
         .add("inputs", Unit::text, "names of the values that it reads, with commas between them",
              [](const FileNodes& n, int64_t i, QueryCell& c) {
                c.put(fmt::format("{}", fmt::join(n[i].inputs, ", ")));
              })
         .add("outputs", Unit::text, "names of the values that it makes",
              [](const FileNodes& n, int64_t i, QueryCell& c) {
                c.put(fmt::format("{}", fmt::join(n[i].outputs, ", ")));
              })
         .add("attributes", Unit::text, "as name=value, with semicolons between them; NULL: none",
              [](const FileNodes& n, int64_t i, QueryCell& c) {
                std::string all;
                for (const auto& [name, value] : n[i].attributes) all += (all.empty() ? "" : "; ") + name + "=" + value;
                if (!all.empty()) c.put(std::move(all));
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<FileNodes>(s.model); },
     {{"Operators", "SELECT op, count(*) AS nodes\nFROM nodes GROUP BY op ORDER BY nodes DESC"}}});

/// A value that a node reads or makes.
struct Operand {
  int64_t node = 0, position = 0;
  bool made = false;
  std::string_view value;
  int64_t tensor = -1;
};
struct FileOperands final : QueryRows {
  explicit FileOperands(std::shared_ptr<const ModelFile> of) : file(std::move(of)) {
    std::unordered_map<std::string_view, int64_t> tensors;
    for (const ModelFile::Entry& e : file->tensors) tensors.emplace(e.name, static_cast<int64_t>(tensors.size()));
    for (size_t n = 0; n < file->nodes.size(); ++n)
      for (const bool made : {false, true}) {
        const auto& names = made ? file->nodes[n].outputs : file->nodes[n].inputs;
        for (size_t i = 0; i < names.size(); ++i) {
          if (names[i].empty()) continue;
          const auto at = tensors.find(names[i]);
          all.push_back({static_cast<int64_t>(n), static_cast<int64_t>(i), made, names[i],
                         at == tensors.end() ? -1 : at->second});
        }
      }
  }
  int64_t end() const override { return static_cast<int64_t>(all.size()); }
  const Operand& operator[](int64_t i) const { return all[static_cast<size_t>(i)]; }
  std::shared_ptr<const ModelFile> file;
  std::vector<Operand> all;
};

const bool registered_file_operands = register_query_table(
    QueryKind::model,
    {"operands",
     30,
     "what the nodes read and make, a row each",
     QueryColumns<FileOperands>()
         .add(
             "node", Unit::count, "id in nodes",
             [](const FileOperands& o, int64_t i, QueryCell& c) { c.put(o[i].node); }, Found::sorted, Leads::node)
         .add("position", Unit::count, "among what it reads, or makes",
              [](const FileOperands& o, int64_t i, QueryCell& c) { c.put(o[i].position); })
         .add("made", Unit::count, "1: the node makes it, 0: it reads it",
              [](const FileOperands& o, int64_t i, QueryCell& c) { c.put(int64_t{o[i].made}); })
         .add("value", Unit::text, "its name",
              [](const FileOperands& o, int64_t i, QueryCell& c) { c.put_standing(o[i].value); })
         .add(
             "tensor", Unit::count, "id in tensors, of what the file has values for; else NULL",
             [](const FileOperands& o, int64_t i, QueryCell& c) {
               if (o[i].tensor >= 0) c.put(o[i].tensor);
             },
             Found::by_looking, Leads::tensor),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<FileOperands>(s.model); },
     {{"Nodes by the weights that they read",
       "SELECT n.id AS node, n.op, n.name, sum(t.bytes)\nFROM operands o JOIN nodes n ON n.id = o.node JOIN tensors t "
       "ON t.id = o.tensor\nGROUP BY n.id ORDER BY 4 DESC LIMIT 50"}}});

}  // namespace
}  // namespace tenon::projects
