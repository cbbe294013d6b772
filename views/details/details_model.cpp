#include "views/details/details_model.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "projects/finish.h"
#include "tracing/record/step_record.h"
#include "views/shared/format.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
using Kind = Selection::Kind;
using tracing::StepRecord;

Details::Row row(std::string name, std::string value, std::string exact = {}) {
  return {std::move(name), std::move(value), std::move(exact), {}, Ink::none};
}
/// A tensor by its name, and under it what it is.
void add_tensor(Details::Section& to, const StepRecord& r, const std::string& name, int t) {
  const auto& x = r.tensors[t];
  to.rows.push_back({name, x.name, x.name, Selection::tensor(t, "details"), ink_of(x.category)});
  to.rows.push_back(row("", type_text(x), type_text(x)));
}
Details::Row op_row(const StepRecord& r, const std::string& name, uint32_t seq) {
  const auto& op = r.ops[seq - 1];
  return {name, op_text(op), op_text(op), Selection::op(seq, "details"), ink_of(op.origin.phase)};
}
void op_details(Details& d, const Links& links, uint32_t seq) {
  const StepRecord& r = *links.record();
  const auto& op = r.ops[seq - 1];
  std::string path = module_path(op.origin.module);
  Details::Section about{"", {}};
  if (!path.empty()) about.rows.push_back({"module", path, path, Selection::module(path, "details"), Ink::none});
  about.rows.push_back({"phase", word(op.origin.phase), {}, {}, ink_of(op.origin.phase)});
  if (!op.attrs.empty()) about.rows.push_back(row("attributes", op.attrs, op.attrs));
  double share = r.duration_ns > 0 ? static_cast<double>(op.duration_ns) / static_cast<double>(r.duration_ns) : 0;
  about.rows.push_back(
      row("time", fmt::format("{} · {} of step", format_ns(static_cast<double>(op.duration_ns)), format_percent(share)),
          fmt::format("{} ns", op.duration_ns)));
  about.rows.push_back(row("start", format_ns(static_cast<double>(op.start_ns)), fmt::format("{} ns", op.start_ns)));
  if (op.flops > 0) {
    about.rows.push_back(row("work", format_flops(op.flops), format_exact(op.flops)));
    if (op.duration_ns > 0)
      about.rows.push_back(row("rate", format_flops(op.flops / static_cast<double>(op.duration_ns) * 1e9) + "/s"));
  }
  if (op.bytes > 0) about.rows.push_back(row("traffic", format_bytes(op.bytes), format_exact(op.bytes)));
  d.sections.push_back(std::move(about));
  Details::Section io{"Tensors", {}};
  for (int t : op.inputs) add_tensor(io, r, "reads", t);
  for (int t : op.outputs) add_tensor(io, r, "writes", t);
  if (!io.rows.empty()) d.sections.push_back(std::move(io));
  Details::Section kin{"Belongs to", {}};
  if (op.forward_seq && op.forward_seq <= r.ops.size()) kin.rows.push_back(op_row(r, "forward op", op.forward_seq));
  for (uint32_t b : links.backward_of(seq)) kin.rows.push_back(op_row(r, "backward op", b));
  int node = links.grad_node_of(Selection::op(seq));
  if (node >= 0) {
    const auto& g = r.grad_nodes[node];
    kin.rows.push_back({"autograd", g.name, g.name, Selection::grad_node(node, "details"), Ink::phase_backward});
    if (g.saved_bytes)
      kin.rows.push_back(
          row("saved", format_bytes(static_cast<double>(g.saved_bytes)), fmt::format("{} bytes", g.saved_bytes)));
  }
  auto blocks = links.blocks_of(seq);
  for (size_t i = 0; i < blocks.size() && i < 4; ++i)
    for (const auto& a : r.allocs)
      if (a.block == blocks[i] && a.bytes > 0) {
        kin.rows.push_back(
            {"took", fmt::format("{} · {}", format_bytes(static_cast<double>(a.bytes)), word(a.origin.category)),
             std::to_string(a.bytes), Selection::alloc(blocks[i], "details"), ink_of(a.origin.category)});
        break;
      }
  if (!kin.rows.empty()) d.sections.push_back(std::move(kin));
}

void tensor_details(Details& d, const Links& links, int t) {
  const StepRecord& r = *links.record();
  const auto& x = r.tensors[t];
  d.title = x.name;
  d.subtitle = "tensor";
  d.mark = ink_of(x.category);
  double bytes = static_cast<double>(x.layout.numel()) * static_cast<double>(itemsize(x.dtype));
  Details::Section about{"",
                         {row("dtype", name(x.dtype)),
                          row("size", to_string(x.layout.size), to_string(x.layout.size)),
                          row("stride", to_string(x.layout.stride), to_string(x.layout.stride)),
                          row("offset", format_grouped(x.layout.offset)),
                          row("bytes", format_bytes(bytes), fmt::format("{:.0f} bytes", bytes)),
                          {"category", word(x.category), {}, {}, ink_of(x.category)}}};
  if (x.storage) about.rows.push_back(row("storage", fmt::format("#{} · version {}", x.storage, x.version)));
  about.rows.push_back(row("values", x.value.defined() ? "kept" : "not kept"));
  d.sections.push_back(std::move(about));
  Details::Section who{"Written and read by", {}};
  if (x.producer && x.producer <= r.ops.size()) who.rows.push_back(op_row(r, "written by", x.producer));
  auto readers = links.readers_of(t);
  for (size_t i = 0; i < readers.size() && i < 8; ++i) who.rows.push_back(op_row(r, "read by", readers[i]));
  if (readers.size() > 8) who.rows.push_back(row("", fmt::format("and {} more", readers.size() - 8)));
  if (!who.rows.empty()) d.sections.push_back(std::move(who));
  auto aliases = links.aliases_of(t);
  Details::Section same{"Same memory", {}};
  for (size_t i = 0; i < aliases.size() && i < 6; ++i) add_tensor(same, r, "alias", aliases[i]);
  if (!same.rows.empty()) d.sections.push_back(std::move(same));
}

void module_details(Details& d, const std::string& path, const DetailsSources& from) {
  d.title = path.empty() ? "model" : path;
  d.subtitle = "module";
  const LayerSpec* layer = from.builder ? from.builder->spec().find(path) : nullptr;
  if (layer) {
    d.subtitle = layer->type;
    Details::Section about{"", {}};
    const LayerReport* report = from.builder->report(path);
    if (report) {
      for (const auto& in : report->inputs) about.rows.push_back(row("input", in, in));
      for (const auto& out : report->outputs) about.rows.push_back(row("output", out, out));
      if (report->parameters)
        about.rows.push_back(row("parameters", format_grouped(report->parameters), std::to_string(report->parameters)));
      if (const std::string frozen = from.builder->frozen_text(*report); !frozen.empty())
        about.rows.push_back(row("next run", frozen + " (init.freeze)"));
      if (report->flops > 0)
        about.rows.push_back(row("forward", format_flops(report->flops), format_exact(report->flops)));
      if (report->output_bytes)
        about.rows.push_back(row("activation", format_bytes(static_cast<double>(report->output_bytes))));
      if (!report->error.empty()) {
        d.bad = true;
        about.rows.push_back(
            {"error", report->error + (report->hint.empty() ? "" : "\n" + report->hint), report->error, {}, Ink::bad});
      }
    }
    d.sections.push_back(std::move(about));
  }
  if (!from.links || !*from.links) return;
  const StepRecord& r = *from.links->record();
  auto ops = from.links->ops_of(Selection::module(path));
  if (ops.empty()) return;
  double ns[kPhases] = {}, saved = 0;
  for (uint32_t s : ops)
    ns[static_cast<int>(r.ops[s - 1].origin.phase)] += static_cast<double>(r.ops[s - 1].duration_ns);
  for (const auto& g : r.grad_nodes)
    if (in_module(module_path(g.module), path)) saved += static_cast<double>(g.saved_bytes);
  Details::Section step{fmt::format("In step {}", format_grouped(r.step)), {}};
  for (Phase p : {Phase::forward, Phase::backward, Phase::optimizer})
    if (ns[static_cast<int>(p)] > 0)
      step.rows.push_back({word(p),
                           fmt::format("{} · {}", format_ns(ns[static_cast<int>(p)]),
                                       format_percent(ns[static_cast<int>(p)] /
                                                      static_cast<double>(std::max<int64_t>(r.duration_ns, 1)))),
                           {},
                           {},
                           ink_of(p)});
  if (saved > 0) step.rows.push_back(row("saved", format_bytes(saved)));
  for (size_t i = 0; i < ops.size() && i < 6; ++i) step.rows.push_back(op_row(r, "op", ops[i]));
  if (ops.size() > 6) step.rows.push_back(row("", fmt::format("and {} more", ops.size() - 6)));
  d.sections.push_back(std::move(step));
}

void step_details(Details& d, int64_t step, const DetailsSources& from) {
  d.title = "step " + format_grouped(step);
  d.subtitle = "step, not loaded";
  if (!from.links || !*from.links || from.links->record()->step != step) return;
  const StepRecord& r = *from.links->record();
  d.subtitle = r.run;
  Details::Section s{
      "",
      {row("epoch", std::to_string(r.epoch + 1)), row("loss", format_value(r.loss), format_exact(r.loss)),
       row("time", format_ns(static_cast<double>(r.duration_ns))),
       row("ops", format_grouped(static_cast<int64_t>(r.ops.size()))),
       row("tensors", format_grouped(static_cast<int64_t>(r.tensors.size()))),
       row("samples", format_grouped(static_cast<int64_t>(r.samples.size())))}};
  d.bad = !std::isfinite(r.loss);
  d.sections.push_back(std::move(s));
}

Details::Row event_row(const Document& document, const std::string& name, traces::EventId e) {
  return {name, std::string(document.trace->event_name(e)), {}, Selection::event(document.id, e, "details"), Ink::none};
}

void event_details(Details& d, traces::EventId e, const DetailsSources& from) {
  const traces::Trace& t = *from.document->trace;
  const traces::Row& thread = t.rows()[t.row_of(e)];
  const auto start = static_cast<double>(t.start(e) - t.begin()), duration = static_cast<double>(t.duration(e));
  d.title = std::string(t.event_name(e));
  d.subtitle = "event of " + from.document->title;
  Details::Section about{
      "",
      {row("category", t.category(e).name),
       row("start", format_ns(start), fmt::format("{} ns after the first event", t.start(e) - t.begin())),
       row("duration", format_ns(duration), fmt::format("{} ns", t.duration(e))),
       row("thread", thread.label(), fmt::format("process {}, thread {}", thread.pid, thread.tid))}};
  const uint8_t flags = t.columns().flags[e];
  if (flags & traces::kUnfinished) about.rows.push_back(row("note", "begun and never ended in the file"));
  if (flags & traces::kRepaired) about.rows.push_back(row("note", "mended: the file has it damaged"));
  d.sections.push_back(std::move(about));
  Details::Section kin{"Belongs to", {}};
  if (const auto parent = t.parent(e); parent != traces::kNone)
    kin.rows.push_back(event_row(*from.document, "within", parent));
  if (const auto launch = t.launch_of(e); launch != traces::kNone)
    kin.rows.push_back(event_row(*from.document, "launched by", launch));
  for (const traces::Link& l : t.forward_backward())
    if (l.from == e)
      kin.rows.push_back(event_row(*from.document, "backward", l.to));
    else if (l.to == e)
      kin.rows.push_back(event_row(*from.document, "forward", l.from));
  if (!kin.rows.empty()) d.sections.push_back(std::move(kin));
  if (!from.arguments || from.arguments->empty()) return;
  Details::Section args{"Arguments", {}};
  for (const auto& [name, value] : *from.arguments) args.rows.push_back(row(name, value, value));
  d.sections.push_back(std::move(args));
}

void document_details(Details& d, const Document& document) {
  const traces::Trace& t = *document.trace;
  d.title = document.title;
  d.subtitle = "trace";
  Details::Section about{
      "",
      {row("file", document.path, document.path), row("size", format_bytes(static_cast<double>(t.source_bytes()))),
       row("events", format_grouped(static_cast<int64_t>(t.size()))),
       row("threads", format_grouped(static_cast<int64_t>(t.rows().size()))),
       row("duration", format_ns(static_cast<double>(t.finish() - t.begin())))}};
  if (t.rank() >= 0) about.rows.push_back(row("rank", std::to_string(t.rank())));
  if (t.truncated()) about.rows.push_back(row("note", "the file ends in the middle: what was whole is here"));
  d.sections.push_back(std::move(about));
  Details::Section mended{"Mended or passed over", {}};
  for (const traces::Repair& r : t.repairs())
    mended.rows.push_back(
        row(r.kind, format_grouped(static_cast<int64_t>(r.count)), fmt::format("first at byte {}", r.first_byte)));
  if (!mended.rows.empty()) d.sections.push_back(std::move(mended));
}

/// What a stretch of a trace holds: how many events touch it, thread by thread.
void trace_range_details(Details& d, const Selection& s, const Document& document) {
  const traces::Trace& t = *document.trace;
  d.title = format_ns(s.to - s.from);
  d.subtitle = "range of " + document.title;
  Details::Section about{"", {row("from", format_ns(s.from)), row("to", format_ns(s.to))}};
  d.sections.push_back(std::move(about));
  Details::Section threads{"Events", {}};
  // A range may be anyone's: what lies outside of the trace, or is no number, is no place in it.
  const auto length = static_cast<double>(t.finish() - t.begin());
  if (!(s.to >= 0 && s.from <= length)) return;
  const int64_t from = t.begin() + static_cast<int64_t>(std::max(s.from, 0.0)),
                to = t.begin() + static_cast<int64_t>(std::min(s.to, length));
  for (const traces::Row& r : t.rows()) {
    int64_t events = 0;
    for (uint32_t l = r.first_lane; l < r.first_lane + r.lanes; ++l) {
      const auto [first, last] = t.range(l, from, to);
      events += last > first ? last - first : 0;
    }
    if (events > 0 && threads.rows.size() < 40) threads.rows.push_back(row(r.label(), format_grouped(events)));
  }
  if (!threads.rows.empty()) d.sections.push_back(std::move(threads));
}
}  // namespace

static void sample_details(Details& d, int64_t row_number, const projects::Results& r) {
  if (row_number < 0 || row_number >= static_cast<int64_t>(r.predictions.size())) return;
  const projects::Prediction& p = r.predictions[static_cast<size_t>(row_number)];
  d.title = "sample " + format_grouped(row_number);
  d.subtitle = "test split, " + r.run + " at step " + format_grouped(r.step);
  Details::Section about{"", {}};
  auto class_name = [&](int64_t c) {
    return c >= 0 && c < static_cast<int64_t>(r.classes.size()) ? r.classes[static_cast<size_t>(c)]
           : c < 0                                              ? std::string("none")
                                                                : std::to_string(c);
  };
  if (p.truth >= 0) {
    about.rows.push_back(row("truth", class_name(p.truth)));
    about.rows.push_back({"guess", class_name(p.guess), {}, {}, p.guess == p.truth ? Ink::good : Ink::bad});
    about.rows.push_back(row("sure", fmt::format("{:.2f} %", 100 * p.confidence), format_exact(p.confidence)));
  }
  about.rows.push_back(row("loss", format_value(p.loss), format_exact(p.loss)));
  d.sections.push_back(std::move(about));
  d.bad = p.truth >= 0 && p.guess != p.truth;
}

Details details_of(const Selection& s, const DetailsSources& from) {
  Details d;
  bool step = from.links && *from.links;
  const bool trace = from.document && from.document->trace;
  switch (s.kind) {
    case Kind::none:
      break;
    case Kind::op:
      if (uint32_t seq = step ? from.links->op_of(s) : 0) {
        const auto& op = from.links->record()->ops[seq - 1];
        d.title = op_text(op);
        d.subtitle = "op";
        d.mark = ink_of(op.origin.phase);
        op_details(d, *from.links, seq);
      }
      break;
    case Kind::tensor:
      if (int t = step ? from.links->tensor_of(s) : -1; t >= 0) {
        tensor_details(d, *from.links, t);
      }
      break;
    case Kind::grad_node:
      if (int n = step ? from.links->grad_node_of(s) : -1; n >= 0) {
        const auto& g = from.links->record()->grad_nodes[n];
        d.title = g.name;
        d.subtitle = g.leaf ? "leaf" : "autograd node";
        d.mark = g.leaf ? Ink::memory_parameter : Ink::phase_backward;
        Details::Section about{"", {}};
        std::string path = module_path(g.module);
        if (!path.empty()) about.rows.push_back({"module", path, path, Selection::module(path, "details"), Ink::none});
        about.rows.push_back(row("gradient norm", g.grad_norm == -1 ? "none reached it" : format_value(g.grad_norm),
                                 format_exact(g.grad_norm)));
        if (!g.leaf)
          about.rows.push_back(
              row("saved", format_bytes(static_cast<double>(g.saved_bytes)), fmt::format("{} bytes", g.saved_bytes)));
        for (const auto& e : g.next)
          if (e.node >= 0 && e.node < static_cast<int>(from.links->record()->grad_nodes.size()))
            about.rows.push_back({"feeds",
                                  from.links->record()->grad_nodes[e.node].name,
                                  {},
                                  Selection::grad_node(e.node, "details"),
                                  Ink::none});
        d.sections.push_back(std::move(about));
        if (!g.leaf && g.forward_seq && g.forward_seq <= from.links->record()->ops.size())
          op_details(d, *from.links, g.forward_seq);
      }
      break;
    case Kind::alloc:
      if (step)
        for (const auto& a : from.links->record()->allocs)
          if (a.block == s.id && a.bytes > 0) {
            d.title = fmt::format("block {}", s.id);
            d.subtitle = "memory";
            d.mark = ink_of(a.origin.category);
            Details::Section about{
                "",
                {row("size", format_bytes(static_cast<double>(a.bytes)), fmt::format("{} bytes", a.bytes)),
                 {"category", word(a.origin.category), {}, {}, ink_of(a.origin.category)},
                 row("address", fmt::format("0x{:x}", a.address), fmt::format("0x{:x}", a.address)),
                 row("taken at", format_ns(static_cast<double>(a.time_ns)))}};
            if (a.origin.seq && a.origin.seq <= from.links->record()->ops.size())
              about.rows.push_back(op_row(*from.links->record(), "asked by", a.origin.seq));
            d.sections.push_back(std::move(about));
            break;
          }
      break;
    case Kind::module:
      module_details(d, s.name, from);
      break;
    case Kind::step:
      step_details(d, s.id, from);
      break;
    case Kind::run:
      if (const auto* r = from.project ? from.project->run(s.id) : nullptr) {
        d.title = r->name;
        d.subtitle = "run";
        d.bad = r->status == "failed";
        Details::Section about{
            "",
            {row("status", r->status == "interrupted" ? fmt::format("interrupted at step {}", format_grouped(r->steps))
                                                      : projects::status_text(*r)),
             row("steps", fmt::format("{} of {}", format_grouped(r->steps), format_grouped(r->total_steps))),
             row("time", format_seconds(r->seconds)), row("created", r->created)}};
        if (r->best.is_object() && r->best.contains("value") && r->best["value"].is_number())
          about.rows.push_back(
              row("best", r->best.value("metric", std::string()) + " " +
                              format_metric(r->best.value("metric", std::string()), r->best["value"].get<double>()) +
                              " at step " + format_grouped(r->best.value("step", int64_t{0}))));
        for (const std::string& t : r->tags) about.rows.push_back(row("tag", t));
        if (!r->note.empty()) about.rows.push_back(row("note", r->note));
        if (r->status == "pruned" || projects::stopped_early(*r))
          about.rows.push_back({"why", r->error, r->error, {}, Ink::none});
        else if (!r->error.empty())
          about.rows.push_back({"error", r->error, r->error, {}, Ink::bad});
        for (const auto& c : r->changes)
          about.rows.push_back({"other recipe",
                                "after step " + format_grouped(c.step),
                                {},
                                c.step > 0 ? Selection::step(c.step, "details") : Selection(),
                                Ink::warning});
        d.sections.push_back(std::move(about));
        Details::Section recipe{r->changes.empty() ? "Recipe" : "Recipe at the end", {}};
        const nlohmann::json flat = r->recipe_after(r->steps).flatten();  // items() walks over what it is called on
        for (const auto& [key, value] : flat.items()) {
          std::string k = key.empty() ? key : key.substr(1);
          for (char& c : k)
            if (c == '/') c = '.';
          recipe.rows.push_back(row(k, value.is_string() ? value.get<std::string>() : value.dump()));
        }
        if (!recipe.rows.empty()) d.sections.push_back(std::move(recipe));
      }
      break;
    case Kind::checkpoint:
      if (const auto* c = from.project ? from.project->checkpoint(s.id) : nullptr) {
        d.title = "checkpoint of step " + format_grouped(c->step);
        d.subtitle = c->best ? "best checkpoint" : "checkpoint";
        d.sections.push_back(
            {"",
             {row("tensors", format_bytes(static_cast<double>(c->bytes)), fmt::format("{} bytes", c->bytes)),
              row("in the file", format_bytes(static_cast<double>(c->stored_bytes))),
              row("created", c->created),
              {"step", format_grouped(c->step), std::to_string(c->step), Selection::step(c->step, "details"),
               Ink::none}}});
      }
      break;
    case Kind::event:
      if (trace && s.id >= 0 && s.id < static_cast<int64_t>(from.document->trace->size()))
        event_details(d, static_cast<traces::EventId>(s.id), from);
      break;
    case Kind::document:
      if (trace) document_details(d, *from.document);
      break;
    case Kind::sample:
      if (from.results) sample_details(d, s.id, *from.results);
      break;
    case Kind::range:
      if (s.document) {
        if (trace) trace_range_details(d, s, *from.document);
        break;
      }
      d.title = format_ns(s.to - s.from);
      d.subtitle = "range of the step";
      if (step) {
        auto ops = from.links->ops_of(s);
        Details::Section about{"",
                               {row("from", format_ns(s.from)), row("to", format_ns(s.to)),
                                row("ops", format_grouped(static_cast<int64_t>(ops.size())))}};
        for (size_t i = 0; i < ops.size() && i < 12; ++i)
          about.rows.push_back(op_row(*from.links->record(), "op", ops[i]));
        d.sections.push_back(std::move(about));
      }
      break;
  }
  return d;
}

}  // namespace tenon::views
