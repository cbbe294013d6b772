#include "views/walk/walk_table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/train/moments.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::OpRecord;
using tracing::StepRecord;
using tracing::TensorRecord;

namespace {

std::string output_types(const StepRecord& r, const OpRecord& op) {
  std::string text;
  for (int t : op.outputs) text += (text.empty() ? "" : ", ") + type_text(r.tensors[static_cast<size_t>(t)]);
  return text;
}

/// "-3.1 … 4.2"; the mean is in the tip.
Table::Cell values_cell(const Tensor& value) {
  if (!value.defined()) return {"–", -HUGE_VAL, {}, Ink::none};
  const Moments m = moments_of(value);
  const int64_t bad = m.nans + m.infinite;
  if (!m.any()) return {tr("empty"), -HUGE_VAL, {}, Ink::none};
  if (m.finite() == 0) return {tr("nothing finite"), HUGE_VAL, {}, Ink::bad};
  const double mean = m.sum / static_cast<double>(m.finite());
  std::string text = m.low == m.high ? format_value(m.low) : format_value(m.low) + " … " + format_value(m.high);
  std::string tip = tr("min {}, max {}, mean {}", format_exact(m.low), format_exact(m.high), format_exact(mean));
  if (bad) tip += "\n" + tr("{} not finite", format_grouped(bad));
  return {std::move(text), mean, std::move(tip), bad ? Ink::bad : Ink::none};
}

std::string role_text(tracing::WalkTensor::Role role) {
  using Role = tracing::WalkTensor::Role;
  return role == Role::input ? tr("input") : role == Role::output ? tr("output") : tr("written over");
}

/// By storage, the first tensor in each memory that is there.
std::map<uint32_t, size_t> memories_at(const StepRecord& r, const std::vector<tracing::TensorLife>& lives,
                                       uint32_t seq) {
  std::map<uint32_t, size_t> all;
  for (size_t i = 0; i < r.tensors.size() && i < lives.size(); ++i)
    if (r.tensors[i].storage && lives[i].at(seq)) all.try_emplace(r.tensors[i].storage, i);
  return all;
}

double bytes_of(const TensorRecord& t) {
  return static_cast<double>(t.layout.numel()) * static_cast<double>(itemsize(t.dtype));
}

}  // namespace

Table walk_ops_table(const StepRecord& r) {
  Table t;
  t.columns = {{"#", true}, {tr("Op")}, {tr("Module")}, {tr("Phase")}};
  for (const OpRecord& op : r.ops) {
    if (op.name.empty()) continue;
    Table::Row row;
    row.selection = Selection::op(op.seq, "walk");
    const std::string& module = module_path(op.origin.module);
    const std::string tip = tr("gives {}", output_types(r, op)) + (op.attrs.empty() ? "" : "\n" + op.attrs);
    row.cells = {Table::Cell::number(op.seq, std::to_string(op.seq)),
                 {op.name, 0, tip, ink_of(op.origin.phase)},
                 {module.empty() ? "–" : module, 0, {}, Ink::none},
                 {word(op.origin.phase), 0, {}, Ink::none}};
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table walk_tensors_table(const StepRecord& r, uint32_t seq) {
  Table t;
  t.columns = {{tr("Tensor")}, {tr("Before")}, {tr("After")}, {tr("Role")}, {.title = tr("Type"), .whole = true}};
  for (const tracing::WalkTensor& w : tensors_at(r, seq)) {
    const TensorRecord& record = r.tensors[static_cast<size_t>(w.tensor)];
    Table::Row row;
    row.selection = Selection::tensor(w.tensor, "walk");
    const bool same = w.role == tracing::WalkTensor::Role::input;
    row.cells = {{record.name, 0, {}, ink_of(record.category)},
                 values_cell(w.before),
                 same ? Table::Cell{tr("the same"), 0, {}, Ink::none} : values_cell(w.after),
                 {role_text(w.role), static_cast<double>(w.role), {}, Ink::none},
                 {type_text(record), 0, {}, Ink::none}};
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table walk_alive_table(const StepRecord& r, const std::vector<tracing::TensorLife>& lives, uint32_t seq) {
  Table t;
  t.columns = {{tr("Tensor")}, {tr("Bytes"), true}, {tr("From")}, {tr("To")}};
  for (const auto& [storage, first] : memories_at(r, lives, seq)) {
    const TensorRecord& record = r.tensors[first];
    const tracing::TensorLife life = lives[first];
    const auto op = [&](uint32_t at) { return at >= 1 && at <= r.ops.size() ? op_text(r.ops[at - 1]) : std::string(); };
    Table::Row row;
    row.selection = Selection::tensor(static_cast<int64_t>(first), "walk");
    row.cells = {
        {record.name, 0, word(record.category) + ", " + type_text(record), ink_of(record.category)},
        Table::Cell::number(bytes_of(record), format_bytes(bytes_of(record))),
        {life.from ? op(life.from) : tr("before the step"), static_cast<double>(life.from), {}, Ink::none},
        {life.to == UINT32_MAX ? tr("after the step") : op(life.to), static_cast<double>(life.to), {}, Ink::none}};
    t.rows.push_back(std::move(row));
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [](const Table::Row& a, const Table::Row& b) { return a.cells[1].key > b.cells[1].key; });
  return t;
}

std::string cursor_text(const StepRecord& r, uint32_t seq) {
  if (seq < 1 || seq > r.ops.size()) return tr("before the first op");
  const OpRecord& op = r.ops[seq - 1];
  const std::string& module = module_path(op.origin.module);
  std::string text =
      tr("{} of {} ops · {}", op_text(op), format_grouped(static_cast<int64_t>(r.ops.size())), word(op.origin.phase));
  return module.empty() ? text : text + " · " + module;
}

std::string alive_text(const StepRecord& r, const std::vector<tracing::TensorLife>& lives, uint32_t seq) {
  const auto memories = memories_at(r, lives, seq);
  double bytes = 0;
  for (const auto& [storage, first] : memories) bytes += bytes_of(r.tensors[first]);
  return tr("{} tensors are there, {}", format_grouped(static_cast<int64_t>(memories.size())), format_bytes(bytes));
}

std::string walk_run_text(const StepRecord& r, const std::vector<tracing::WalkBreak>& breaks,
                          const tracing::WalkRun& run) {
  std::string text = tr("No break holds on the way.");
  if (run.stop) {
    const std::string op = op_text(r.ops[run.stop->seq - 1]), &why = breaks[run.stop->which].text;
    text = run.stop->output < 0 ? tr("Stopped at {}: {}", op, why)
                                : tr("Stopped at {}: {}; it is {}", op, why, format_value(run.stop->value));
  }
  if (run.unknown)
    text +=
        " " + tr("{} outputs on the way could not be judged: their values were not kept.", format_grouped(run.unknown));
  return text;
}

}  // namespace tenon::views
