#include "views/details/file_details.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/formats/model_file.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
using formats::ModelFile;
constexpr size_t kMostListed = 12;  // of one kind of row

Details::Row fact(std::string name, std::string value, std::string exact = {}) {
  return {std::move(name), std::move(value), std::move(exact), {}, Ink::none};
}
std::string bytes_of(uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

void add_texts(Details& d, const std::string& title, const ModelFile::Texts& texts) {
  Details::Section section{title, {}};
  for (const auto& [name, text] : texts) {
    if (section.rows.size() == 4 * kMostListed) {
      section.rows.push_back(fact("", tr("and {} more", texts.size() - section.rows.size())));
      break;
    }
    section.rows.push_back(fact(name, text.substr(0, 400), text));
  }
  if (!section.rows.empty()) d.sections.push_back(std::move(section));
}

Details::Row node_row(const Document& document, const std::string& name, size_t node) {
  const ModelFile::Node& n = document.model->nodes[node];
  return {name, n.op + (n.name.empty() ? "" : " " + n.name), n.name,
          Selection::file_node(document.id, static_cast<int64_t>(node), "details"), Ink::none};
}
/// The nodes that read or make a value.
void add_nodes(Details::Section& to, const Document& document, const std::string& name, const std::string& value,
               std::vector<std::string> ModelFile::Node::*side) {
  size_t found = 0;
  const auto& nodes = document.model->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto& values = nodes[i].*side;
    if (value.empty() || std::find(values.begin(), values.end(), value) == values.end()) continue;
    if (found++ < kMostListed) to.rows.push_back(node_row(document, name, i));
  }
  if (found > kMostListed) to.rows.push_back(fact("", tr("and {} more", found - kMostListed)));
}
}  // namespace

void model_file_details(Details& d, const Document& document) {
  const ModelFile& m = *document.model;
  d.title = document.title;
  d.subtitle = describe(m.kind);
  Details::Section about{"",
                         {fact(tr("file"), document.path, document.path),
                          fact(tr("size"), bytes_of(m.file_bytes), tr("{} bytes", m.file_bytes)),
                          fact(tr("tensors"), format_grouped(static_cast<int64_t>(m.tensors.size()))),
                          fact(tr("elements"), format_grouped(m.elements()))}};
  if (!m.nodes.empty()) about.rows.push_back(fact(tr("nodes"), format_grouped(static_cast<int64_t>(m.nodes.size()))));
  for (const ModelFile::Fact& f : m.facts)
    if (!f.text().empty()) about.rows.push_back(fact(f.head(), f.text(), f.text()));
  for (const std::string& f : m.foreign)
    about.rows.push_back({tr("asks for"), tr("{}: no data; shown, never run", f), f, {}, Ink::warning});
  for (const std::string& w : m.warnings) about.rows.push_back({tr("warning"), w, w, {}, Ink::warning});
  d.sections.push_back(std::move(about));
  Details::Section sizes{tr("Bytes by dtype"), {}};
  for (const auto& [dtype, bytes] : m.bytes_by_dtype())
    sizes.rows.push_back(fact(dtype, bytes_of(bytes), tr("{} bytes", bytes)));
  if (!sizes.rows.empty()) d.sections.push_back(std::move(sizes));
  Details::Section ends{tr("Inputs and outputs"), {}};
  for (const ModelFile::Value& v : m.inputs) ends.rows.push_back(fact(tr("input"), v.name + "  " + v.type, v.name));
  for (const ModelFile::Value& v : m.outputs) ends.rows.push_back(fact(tr("output"), v.name + "  " + v.type, v.name));
  if (!ends.rows.empty()) d.sections.push_back(std::move(ends));
  add_texts(
      d,
      m.kind == formats::FileKind::torch || m.kind == formats::FileKind::torch_legacy ? tr("Values") : tr("Metadata"),
      m.texts);
}

void file_tensor_details(Details& d, const std::string& name, const Document& document) {
  const ModelFile& m = *document.model;
  const int at = m.find_tensor(name);
  if (at < 0) return;
  const ModelFile::Entry& e = m.tensors[static_cast<size_t>(at)];
  d.title = e.name;
  d.subtitle = tr("{} of {}", e.category.empty() ? tr("tensor") : e.category, document.title);
  d.mark = Ink::memory_parameter;
  const double share = static_cast<double>(e.bytes) / std::max(1.0, static_cast<double>(m.bytes()));
  Details::Section about{"",
                         {fact(tr("dtype"), e.dtype), fact(tr("shape"), fmt::format("[{}]", fmt::join(e.shape, ", "))),
                          fact(tr("elements"), format_grouped(e.elements())),
                          fact(tr("bytes"), bytes_of(e.bytes), tr("{} bytes", e.bytes)),
                          fact(tr("share"), tr("{} of the file's tensors", format_percent(share)))}};
  if (!e.stride.empty()) about.rows.push_back(fact(tr("stride"), fmt::format("[{}]", fmt::join(e.stride, ", "))));
  if (!e.storage.empty())
    about.rows.push_back(fact(tr("storage"), e.offset ? fmt::format("{} + {}", e.storage, e.offset) : e.storage));
  if (!e.device.empty()) about.rows.push_back(fact(tr("saved from"), e.device));
  if (!e.problem.empty())
    about.rows.push_back({tr("values"), tr("cannot be shown: it {}", e.problem), {}, {}, Ink::warning});
  d.sections.push_back(std::move(about));
  Details::Section same{tr("Same memory"), {}};
  for (const ModelFile::Entry& o : m.tensors)
    if (!e.storage.empty() && m.nodes.empty() && o.storage == e.storage && &o != &e && same.rows.size() < kMostListed)
      same.rows.push_back(
          {tr("view"), o.name, o.name, Selection::file_tensor(document.id, o.name, "details"), Ink::none});
  if (!same.rows.empty()) d.sections.push_back(std::move(same));
  Details::Section readers{tr("Read by"), {}};
  add_nodes(readers, document, tr("node"), e.name, &ModelFile::Node::inputs);
  if (!readers.rows.empty()) d.sections.push_back(std::move(readers));
}

void file_node_details(Details& d, int64_t node, const Document& document) {
  const ModelFile& m = *document.model;
  if (node < 0 || node >= static_cast<int64_t>(m.nodes.size())) return;
  const ModelFile::Node& n = m.nodes[static_cast<size_t>(node)];
  d.title = n.op + (n.name.empty() ? "" : " " + n.name);
  d.subtitle = tr("node of {}", document.title);
  Details::Section about{"", {fact(tr("op"), n.domain.empty() ? n.op : tr("{} of {}", n.op, n.domain))}};
  if (!n.scope.empty()) about.rows.push_back(fact(tr("module"), n.scope));
  for (const auto& [name, text] : n.attributes) about.rows.push_back(fact(name, text, text));
  d.sections.push_back(std::move(about));
  Details::Section reads{tr("Reads"), {}}, makes{tr("Makes"), {}};
  for (const std::string& in : n.inputs) {
    if (in.empty()) {
      reads.rows.push_back(fact("", tr("left out")));
    } else if (const int tensor = m.find_tensor(in); tensor >= 0) {
      const ModelFile::Entry& e = m.tensors[static_cast<size_t>(tensor)];
      reads.rows.push_back(
          {tr("weight"), in, in, Selection::file_tensor(document.id, in, "details"), Ink::memory_parameter});
      reads.rows.push_back(fact("", fmt::format("{} [{}]", e.dtype, fmt::join(e.shape, ", "))));
    } else {
      reads.rows.push_back(fact(tr("value"), in, in));
      add_nodes(reads, document, tr("made by"), in, &ModelFile::Node::outputs);
    }
  }
  for (const std::string& out : n.outputs) {
    if (out.empty()) continue;
    makes.rows.push_back(fact(tr("value"), out, out));
    add_nodes(makes, document, tr("read by"), out, &ModelFile::Node::inputs);
  }
  if (!reads.rows.empty()) d.sections.push_back(std::move(reads));
  if (!makes.rows.empty()) d.sections.push_back(std::move(makes));
}

}  // namespace tenon::views
