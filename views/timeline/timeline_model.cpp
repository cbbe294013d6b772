#include "views/timeline/timeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::OpEvent;
using tracing::OpRecord;

void TimelineModel::set_step(const Links& links) {
  step_ = links;
  sights_.erase(Document::kProject);  // another step is seen whole at first
  if (!shows_document()) show_step();
}

namespace {
std::vector<LaneLayout::Group> ranks_of(const Document& d) {
  std::vector<LaneLayout::Group> groups;
  for (size_t r = 0; r < d.ranks.size(); ++r) {
    const std::string& path = d.ranks[r].trace->path();
    groups.push_back({d.rank_title(r) + " · " + path.substr(path.find_last_of('/') + 1), path, d.ranks[r].first_row});
  }
  return groups;
}
}  // namespace

void TimelineModel::set_document(const Document* document) {
  const std::shared_ptr<const traces::Trace> begun =
      shows_beginning() && document && document->trace && document->path == begun_ ? trace_ : nullptr;
  const Sight seen = sight(Document::kBeginning);
  if (trace_ && document_ != Document::kBeginning) sights_[document_] = sight(document_);
  if (document && document->trace) {
    links_ = {};
    selected_ = 0;
    const traces::Trace& t = *document->trace;
    set_trace(document->trace, document->id, t.begin(), t.finish() - t.begin(), document->curves, ranks_of(*document));
  } else {
    show_step();
  }
  if (const auto at = sights_.find(document_); trace_ && at != sights_.end()) look_as(at->second);
  if (begun && !seen.whole) look_on(*begun, seen);
}

void TimelineModel::set_beginning(const Document* document) {
  const bool of_trace = document && document->trace;
  if (of_trace || shows_beginning()) set_document(document);
  begun_ = of_trace ? document->path : std::string();
}

/// What was seen of a beginning, of the same file's whole or of more of it. The axis of each begins with its own first
/// event, and where a file tells its clock at its end the beginning does not know it: so the place of an event that
/// both have says where one axis lies on the other.
void TimelineModel::look_on(const traces::Trace& before, const Sight& sight) {
  if (before.size() == 0) return;
  const auto& old = before.columns().source;
  const auto first = static_cast<traces::EventId>(std::min_element(old.begin(), old.end()) - old.begin());
  const auto& now = trace_->columns().source;
  const auto same = std::find(now.begin(), now.end(), old[first]);
  if (same == now.end()) return;
  const double by = at(trace_->start(static_cast<traces::EventId>(same - now.begin()))) -
                    static_cast<double>(before.start(first) - before.begin());
  axis_.show(sight.lo + by, sight.hi + by);
  scroll_ = sight.scroll;
}

void TimelineModel::set_beside(const Document& document, const std::vector<traces::CounterCurve>& beside) {
  if (!trace_ || document.trace != trace_) return;
  auto all = std::make_shared<std::vector<traces::CounterCurve>>();
  if (document.curves) *all = *document.curves;
  all->insert(all->end(), beside.begin(), beside.end());
  set_curves(std::move(all), ranks_of(document));
}

void TimelineModel::look_as(const Sight& sight) {
  if (sight.hi > sight.lo) axis_.show(sight.lo, sight.hi);
  scroll_ = sight.scroll;
  layout_.restore(sight.folded);
  layout_.restore_pins(sight.pinned);
}

TimelineModel::Sight TimelineModel::sight(int document) const {
  if (trace_ && document == document_)
    return {axis_.lo, axis_.hi, scroll_, layout_.state(), axis_.fitted(), layout_.pins()};
  const auto at = sights_.find(document);
  return at == sights_.end() ? Sight{} : at->second;
}

void TimelineModel::set_sight(int document, const Sight& sight) {
  sights_[document] = sight;
  if (!trace_ || document != document_) return;
  look_as(sight);
  changed();
}

void TimelineModel::show_step() {
  links_ = step_;
  phases_.clear();
  modules_.clear();
  outer_.clear();
  event_of_.clear();
  selected_ = 0;
  if (!links_) return set_trace(nullptr, Document::kProject, 0, 1);
  const auto& r = *links_.record();
  bad_.assign(r.ops.size() + 1, false);
  for (uint32_t seq : bad_ops(r))
    if (seq < bad_.size()) bad_[seq] = true;
  trace_ = r.timeline.store;
  gather_spans();
  set_trace(r.timeline.store, Document::kProject, 0, std::max(r.duration_ns, r.timeline.store->finish()));
  set_selection(selection_);
}

/// Phases and modules in the order of the training thread, and where each op's event is.
void TimelineModel::gather_spans() {
  const auto& r = *links_.record();
  const traces::Trace& t = *trace_;
  event_of_.assign(r.ops.size() + 1, traces::kNone);
  std::vector<traces::EventId> training;
  for (const traces::Row& row : t.rows())
    for (uint32_t l = row.first_lane; l < row.first_lane + row.lanes; ++l)
      for (traces::EventId e = t.lanes()[l].begin; e < t.lanes()[l].end; ++e) {
        if (const OpRecord* o = op_of(e)) event_of_[o->seq] = e;
        if (row.tid_number == 0) training.push_back(e);
      }
  std::stable_sort(training.begin(), training.end(),
                   [&](traces::EventId a, traces::EventId b) { return t.start(a) < t.start(b); });
  for (traces::EventId e : training) {
    const bool inside = !outer_.empty() && t.start(e) < t.end(outer_.back());
    if (!op_of(e) || inside) continue;
    outer_.push_back(e);
    const auto a = static_cast<double>(t.start(e)), b = static_cast<double>(t.end(e));
    const OpEvent& o = r.timeline.op(e);
    if (!phases_.empty() && phases_.back().phase == o.phase)
      phases_.back().b = b;
    else
      phases_.push_back({a, b, word(o.phase), ink_of(o.phase), 0, o.phase});
    if (!modules_.empty() && modules_.back().module == o.module && modules_.back().phase == o.phase)
      modules_.back().b = b;
    else if (o.module)
      modules_.push_back({a, b, module_path(o.module), ink_of(o.phase), o.module, o.phase});
  }
}

void TimelineModel::set_selection(const Selection& s) {
  selection_ = s;
  follow(s);
  chosen_.assign(links_ ? links_.record()->ops.size() + 1 : 0, false);
  if (!links_) return;
  selected_ = s.kind == Selection::Kind::range || s.kind == Selection::Kind::module ? 0 : links_.op_of(s);
  for (uint32_t seq : links_.ops_of(s)) chosen_[seq] = true;
  if (selected_ && s.source != "timeline") {
    const OpRecord& op = links_.record()->ops[selected_ - 1];
    axis_.reveal(static_cast<double>(op.start_ns), static_cast<double>(op.start_ns + op.duration_ns));
  }
}

std::vector<traces::EventId> TimelineModel::find(const Filter& f) const {
  if (!links_) return LaneModel::find(f);
  std::vector<traces::EventId> found;
  const std::string q = lower(f.name);
  auto holds = [&](const std::string& text) { return lower(text).find(q) != std::string::npos; };
  for (const OpRecord& op : links_.record()->ops) {
    const std::string& module = module_path(op.origin.module);
    if (event_of_[op.seq] != traces::kNone && (f.module.empty() || in_module(module, f.module)) &&
        (holds(op.name) || holds(module) || holds(op.attrs)))
      found.push_back(event_of_[op.seq]);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void TimelineModel::next_match(int direction) {
  if (!links_) return LaneModel::next_match(direction);
  const auto& ops = links_.record()->ops;
  int n = static_cast<int>(ops.size());
  std::string same = selected_ ? ops[selected_ - 1].name : std::string();
  for (int k = 1; k <= n; ++k) {
    int i = ((static_cast<int>(selected_) - 1 + direction * k) % n + n) % n;
    const bool hit = filter_ ? leaves_op(ops[i]) : same.empty() || ops[i].name == same;
    if (hit) return select_op(ops[i].seq);
  }
}

bool TimelineModel::leaves_op(const OpRecord& op) const {
  return !filter_ || (event_of_[op.seq] != traces::kNone && leaves(event_of_[op.seq]));
}

void TimelineModel::select_op(int64_t seq) {
  const OpRecord& op = links_.record()->ops[static_cast<size_t>(seq) - 1];
  select(Selection::op(seq, "timeline"));
  axis_.reveal(static_cast<double>(op.start_ns), static_cast<double>(op.start_ns + op.duration_ns));
}

void TimelineModel::step_aside(int direction) {
  if (!links_) return LaneModel::step_aside(direction);
  const auto n = static_cast<int64_t>(links_.record()->ops.size());
  if (n > 0) select_op(std::clamp<int64_t>(static_cast<int64_t>(selected_) + direction, 1, n));
}

bool TimelineModel::selected_span(double& a, double& b) const {
  if (!links_) return LaneModel::selected_span(a, b);
  a = 1e300;
  b = -1e300;
  for (const OpRecord& op : links_.record()->ops)
    if (op.seq < chosen_.size() && chosen_[op.seq]) {
      a = std::min(a, static_cast<double>(op.start_ns));
      b = std::max(b, static_cast<double>(op.start_ns + op.duration_ns));
    }
  return b > a;
}

void TimelineModel::click(Hit hit) {
  if (hit.kind == op)
    select(Selection::op(hit.id, "timeline"));
  else if (hit.kind == module)
    select(Selection::module(module_path(static_cast<uint16_t>(hit.id)), "timeline"));
  else
    LaneModel::click(hit);
}

std::string TimelineModel::summary() const {
  if (!links_) return shows_document() ? LaneModel::summary() : tr("Timeline: no step is loaded");
  const auto& r = *links_.record();
  return tr("Timeline of step {}: {} ops in {}{}", format_grouped(r.step), r.ops.size(),
            format_ns(static_cast<double>(r.duration_ns)), chosen_words());
}

std::string TimelineModel::chosen_words() const {
  if (!links_) return LaneModel::chosen_words();
  const auto& ops = links_.record()->ops;
  if (selected_ < 1 || selected_ > ops.size()) return {};
  const OpRecord& op = ops[selected_ - 1];
  const std::string& module = module_path(op.origin.module);
  return tr("; chosen: {}{}, {}, starts at {}", op_text(op), module.empty() ? "" : tr(" of {}", module),
            format_ns(static_cast<double>(op.duration_ns)), format_ns(static_cast<double>(op.start_ns)));
}

const OpRecord* TimelineModel::op_of(traces::EventId e) const {
  const uint32_t seq = links_.record()->timeline.op(e).seq;
  const auto& ops = links_.record()->ops;
  return seq >= 1 && seq <= ops.size() ? &ops[seq - 1] : nullptr;
}

bool TimelineModel::has_spans() const {
  const traces::Trace& t = *trace_;
  for (const traces::Row& row : t.rows())
    for (uint32_t l = row.first_lane; row.tid_number == 0 && l < row.first_lane + row.lanes; ++l)
      for (traces::EventId e = t.lanes()[l].begin; e < t.lanes()[l].end; ++e)
        if (!op_of(e)) return true;
  return false;
}

LaneModel::Look TimelineModel::look(traces::EventId e) const {
  if (!links_) return LaneModel::look(e);
  const OpRecord* of = op_of(e);
  return {ink_of(links_.record()->timeline.op(e).phase), of && bad_[of->seq], of ? Hit{op, of->seq} : Hit{lane, 0}};
}

std::string TimelineModel::tip(traces::EventId e) const {
  if (!links_) return LaneModel::tip(e);
  const traces::Trace& t = *trace_;
  const auto start = static_cast<double>(t.start(e)), duration = static_cast<double>(t.duration(e));
  if (!op_of(e))
    return fmt::format("{}\n{}", t.event_name(e), tr("{}, starts at {}", format_ns(duration), format_ns(start)));
  const OpRecord& op = *op_of(e);
  const std::string& module = module_path(op.origin.module);
  std::string text = fmt::format("{}\n{}", op_text(op), module.empty() ? tr("(no module)") : module);
  if (!op.attrs.empty()) text += "\n" + op.attrs;
  text += "\n" + tr("{} ({} ns), starts at {}", format_ns(duration), format_grouped(t.duration(e)), format_ns(start));
  for (int i : op.inputs)
    text += "\n" + tr("reads {}  {}", links_.record()->tensors[i].name, type_text(links_.record()->tensors[i]));
  for (int i : op.outputs) text += "\n" + tr("writes {}", type_text(links_.record()->tensors[i]));
  return text;
}

Table TimelineModel::operators() const {
  Table t;
  t.columns = {{tr("Operator")},    {tr("Calls"), true}, {tr("Total"), true},
               {tr("Share"), true}, {tr("Mean"), true},  {tr("FLOP/s"), true}};
  if (!links_) return t;
  struct Sum {
    int calls = 0;
    double ns = 0, flops = 0;
    uint32_t longest = 0;
    int64_t most = -1;
    Phase phase = Phase::none;
  };
  std::map<std::string, Sum> sums;
  double all = static_cast<double>(std::max<int64_t>(links_.record()->duration_ns, 1));
  for (const OpRecord& op : links_.record()->ops) {
    if (!leaves_op(op)) continue;
    Sum& s = sums[op.name];
    ++s.calls;
    s.ns += static_cast<double>(op.duration_ns);
    s.flops += op.flops;
    if (op.duration_ns > s.most) {
      s.most = op.duration_ns;
      s.longest = op.seq;
      s.phase = op.origin.phase;
    }
  }
  for (auto& [name, s] : sums) {
    double rate = s.ns > 0 ? s.flops / s.ns * 1e9 : 0;
    Table::Row row;
    row.selection = Selection::op(s.longest, "timeline table");
    row.cells = {{name, 0, tr("The longest call is op #{}", s.longest), ink_of(s.phase)},
                 Table::Cell::number(s.calls, std::to_string(s.calls)),
                 Table::Cell::number(s.ns, format_ns(s.ns)),
                 Table::Cell::number(s.ns / all, format_percent(s.ns / all)),
                 Table::Cell::number(s.ns / s.calls, format_ns(s.ns / s.calls)),
                 Table::Cell::number(rate, rate > 0 ? format_flops(rate) + "/s" : "–")};
    t.rows.push_back(std::move(row));
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [](const auto& a, const auto& b) { return a.cells[2].key > b.cells[2].key; });
  return t;
}

Table TimelineModel::modules() const {
  Table t;
  t.columns = {
      {tr("Module")}, {tr("Forward"), true}, {tr("Backward"), true}, {tr("Optimizer"), true}, {tr("Share"), true}};
  if (!links_) return t;
  std::map<std::string, std::array<double, kPhases>> sums;
  double all = static_cast<double>(std::max<int64_t>(links_.record()->duration_ns, 1));
  for (traces::EventId e : outer_) {
    if (!leaves(e)) continue;
    const OpEvent& o = links_.record()->timeline.op(e);
    sums[module_path(o.module)][static_cast<int>(o.phase)] += static_cast<double>((*trace_).duration(e));
  }
  for (auto& [path, s] : sums) {
    double sum = 0;
    for (double v : s) sum += v;
    auto cell = [&](Phase p) {
      return Table::Cell::number(s[static_cast<int>(p)],
                                 s[static_cast<int>(p)] > 0 ? format_ns(s[static_cast<int>(p)]) : "–");
    };
    Table::Row row;
    row.selection = path.empty() ? Selection{} : Selection::module(path, "timeline table");
    row.cells = {{path.empty() ? tr("(outside of modules)") : path, 0, {}, Ink::none},
                 cell(Phase::forward),
                 cell(Phase::backward),
                 cell(Phase::optimizer),
                 Table::Cell::number(sum / all, format_percent(sum / all))};
    t.rows.push_back(std::move(row));
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [](const auto& a, const auto& b) { return a.cells[4].key > b.cells[4].key; });
  return t;
}

Table TimelineModel::events() const {
  Table t;
  t.columns = {{"#", true}, {tr("Op")}, {tr("Module")}, {tr("Start"), true}, {tr("Time"), true}, {tr("Output")}};
  if (!links_) return t;
  for (const OpRecord& op : links_.record()->ops) {
    if (!leaves_op(op)) continue;
    Table::Row row;
    row.selection = Selection::op(op.seq, "timeline table");
    row.cells = {
        Table::Cell::number(op.seq, std::to_string(op.seq)),
        {op.name, 0, op.attrs, ink_of(op.origin.phase)},
        {module_path(op.origin.module), 0, {}, Ink::none},
        Table::Cell::number(static_cast<double>(op.start_ns), format_ns(static_cast<double>(op.start_ns))),
        Table::Cell::number(static_cast<double>(op.duration_ns), format_ns(static_cast<double>(op.duration_ns))),
        {op.outputs.empty() ? "" : type_text(links_.record()->tensors[op.outputs[0]]), 0, {}, Ink::none}};
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
