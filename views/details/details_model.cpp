#include "views/details/details_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "projects/finish.h"
#include "tracing/record/step_record.h"
#include "views/details/file_details.h"
#include "views/details/sample_details.h"
#include "views/details/snapshot_details.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
using Kind = Selection::Kind;
using tracing::StepRecord;

Details::Row row(std::string name, std::string value, std::string exact = {}) {
  return {std::move(name), std::move(value), std::move(exact), {}, Ink::none};
}
/// "2026-11-27 18:58" of "2026-11-27T18:58:02Z".
std::string to_the_minute(std::string moment) {
  moment = moment.substr(0, 16);
  std::replace(moment.begin(), moment.end(), 'T', ' ');
  return moment;
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
  if (!path.empty()) about.rows.push_back({tr("module"), path, path, Selection::module(path, "details"), Ink::none});
  about.rows.push_back({tr("phase"), word(op.origin.phase), {}, {}, ink_of(op.origin.phase)});
  if (!op.attrs.empty()) about.rows.push_back(row(tr("attributes"), op.attrs, op.attrs));
  double share = r.duration_ns > 0 ? static_cast<double>(op.duration_ns) / static_cast<double>(r.duration_ns) : 0;
  const std::string time = format_ns(static_cast<double>(op.duration_ns));
  about.rows.push_back(
      row(tr("time"), tr("{} · {} of step", time, format_percent(share)), fmt::format("{} ns", op.duration_ns)));
  about.rows.push_back(
      row(tr("start"), format_ns(static_cast<double>(op.start_ns)), fmt::format("{} ns", op.start_ns)));
  if (op.flops > 0) {
    about.rows.push_back(row(tr("work"), format_flops(op.flops), format_exact(op.flops)));
    if (op.duration_ns > 0)
      about.rows.push_back(row(tr("rate"), format_flops(op.flops / static_cast<double>(op.duration_ns) * 1e9) + "/s"));
  }
  if (op.bytes > 0) about.rows.push_back(row(tr("traffic"), format_bytes(op.bytes), format_exact(op.bytes)));
  d.sections.push_back(std::move(about));
  Details::Section io{tr("Tensors"), {}};
  for (int t : op.inputs) add_tensor(io, r, tr("reads"), t);
  for (int t : op.outputs) add_tensor(io, r, tr("writes"), t);
  if (!io.rows.empty()) d.sections.push_back(std::move(io));
  Details::Section kin{tr("Belongs to"), {}};
  if (op.forward_seq && op.forward_seq <= r.ops.size()) kin.rows.push_back(op_row(r, tr("forward op"), op.forward_seq));
  for (uint32_t b : links.backward_of(seq)) kin.rows.push_back(op_row(r, tr("backward op"), b));
  int node = links.grad_node_of(Selection::op(seq));
  if (node >= 0) {
    const auto& g = r.grad_nodes[node];
    kin.rows.push_back({tr("autograd"), g.name, g.name, Selection::grad_node(node, "details"), Ink::phase_backward});
    if (g.saved_bytes)
      kin.rows.push_back(
          row(tr("saved"), format_bytes(static_cast<double>(g.saved_bytes)), tr("{} bytes", g.saved_bytes)));
  }
  auto blocks = links.blocks_of(seq);
  for (size_t i = 0; i < blocks.size() && i < 4; ++i)
    for (const auto& a : r.allocs)
      if (a.block == blocks[i] && a.bytes > 0) {
        kin.rows.push_back(
            {tr("took"), fmt::format("{} · {}", format_bytes(static_cast<double>(a.bytes)), word(a.origin.category)),
             std::to_string(a.bytes), Selection::alloc(blocks[i], "details"), ink_of(a.origin.category)});
        break;
      }
  if (!kin.rows.empty()) d.sections.push_back(std::move(kin));
}

void tensor_details(Details& d, const Links& links, int t) {
  const StepRecord& r = *links.record();
  const auto& x = r.tensors[t];
  d.title = x.name;
  d.subtitle = tr("tensor");
  d.mark = ink_of(x.category);
  double bytes = static_cast<double>(x.layout.numel()) * static_cast<double>(itemsize(x.dtype));
  Details::Section about{"",
                         {row(tr("dtype"), name(x.dtype)),
                          row(tr("size"), to_string(x.layout.size), to_string(x.layout.size)),
                          row(tr("stride"), to_string(x.layout.stride), to_string(x.layout.stride)),
                          row(tr("offset"), format_grouped(x.layout.offset)),
                          row(tr("bytes"), format_bytes(bytes), tr("{:.0f} bytes", bytes)),
                          {tr("category"), word(x.category), {}, {}, ink_of(x.category)}}};
  if (x.storage) about.rows.push_back(row(tr("storage"), tr("#{} · version {}", x.storage, x.version)));
  about.rows.push_back(row(tr("values"), x.value.defined() ? tr("kept") : tr("not kept")));
  d.sections.push_back(std::move(about));
  Details::Section who{tr("Written and read by"), {}};
  if (x.producer && x.producer <= r.ops.size()) who.rows.push_back(op_row(r, tr("written by"), x.producer));
  auto readers = links.readers_of(t);
  for (size_t i = 0; i < readers.size() && i < 8; ++i) who.rows.push_back(op_row(r, tr("read by"), readers[i]));
  if (readers.size() > 8) who.rows.push_back(row("", tr("and {} more", readers.size() - 8)));
  if (!who.rows.empty()) d.sections.push_back(std::move(who));
  auto aliases = links.aliases_of(t);
  Details::Section same{tr("Same memory"), {}};
  for (size_t i = 0; i < aliases.size() && i < 6; ++i) add_tensor(same, r, tr("alias"), aliases[i]);
  if (!same.rows.empty()) d.sections.push_back(std::move(same));
}

/// Of several layers what adds up.
void layers_details(Details& d, const BuilderModel& builder, const std::vector<const LayerSpec*>& layers) {
  int64_t parameters = 0, bytes = 0;
  double flops = 0;
  Details::Section about{"", {}};
  for (const LayerSpec* l : layers) {
    const LayerReport* r = builder.report(l->name);
    if (!r) continue;
    parameters += r->parameters, bytes += r->output_bytes, flops += r->flops;
    if (r->error.empty()) continue;
    d.bad = true;
    about.rows.push_back(
        {tr("error"), l->name + ": " + r->error, r->error, Selection::module(l->name, "details"), Ink::bad});
  }
  about.rows.push_back(row(tr("layers"), format_grouped(static_cast<int64_t>(layers.size()))));
  if (parameters) about.rows.push_back(row(tr("parameters"), format_grouped(parameters), std::to_string(parameters)));
  if (flops > 0) about.rows.push_back(row(tr("forward"), format_flops(flops), format_exact(flops)));
  if (bytes) about.rows.push_back(row(tr("activations"), format_bytes(static_cast<double>(bytes))));
  d.sections.push_back(std::move(about));
}

void module_details(Details& d, const std::string& path, const DetailsSources& from) {
  d.title = path.empty() ? tr("model") : path;
  d.subtitle = tr("module");
  if (from.builder) {
    const bool several = from.builder->selected().size() > 1 && from.builder->selected_group().empty() &&
                         from.builder->selected().contains(path);
    std::vector<const LayerSpec*> layers;
    for (const LayerSpec& l : from.builder->spec().layers)
      if (several ? from.builder->selected().contains(l.name) : l.name != path && in_module(l.name, path))
        layers.push_back(&l);
    if (several) d.title = tr("{} layers", layers.size());
    if (several || (!path.empty() && !layers.empty())) {
      d.subtitle = several ? tr("selected together") : tr("group of layers");
      layers_details(d, *from.builder, layers);
      if (several) return;
    }
  }
  const LayerSpec* layer = from.builder ? from.builder->spec().find(path) : nullptr;
  if (layer) {
    d.subtitle = layer->type;
    Details::Section about{"", {}};
    const LayerReport* report = from.builder->report(path);
    if (report) {
      for (const auto& in : report->inputs)
        if (!in.empty()) about.rows.push_back(row(tr("input"), in, in));  // an optional one that has no wire is none
      for (const auto& out : report->outputs) about.rows.push_back(row(tr("output"), out, out));
      if (report->parameters)
        about.rows.push_back(
            row(tr("parameters"), format_grouped(report->parameters), std::to_string(report->parameters)));
      if (const std::string frozen = from.builder->frozen_text(*report); !frozen.empty())
        about.rows.push_back(row(tr("next run"), frozen + " (init.freeze)"));
      if (report->flops > 0)
        about.rows.push_back(row(tr("forward"), format_flops(report->flops), format_exact(report->flops)));
      if (report->output_bytes)
        about.rows.push_back(row(tr("activation"), format_bytes(static_cast<double>(report->output_bytes))));
      if (!report->error.empty()) {
        d.bad = true;
        about.rows.push_back({tr("error"),
                              report->error + (report->hint.empty() ? "" : "\n" + report->hint),
                              report->error,
                              {},
                              Ink::bad});
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
  Details::Section step{tr("In step {}", format_grouped(r.step)), {}};
  for (Phase p : {Phase::forward, Phase::backward, Phase::optimizer})
    if (ns[static_cast<int>(p)] > 0)
      step.rows.push_back({word(p),
                           fmt::format("{} · {}", format_ns(ns[static_cast<int>(p)]),
                                       format_percent(ns[static_cast<int>(p)] /
                                                      static_cast<double>(std::max<int64_t>(r.duration_ns, 1)))),
                           {},
                           {},
                           ink_of(p)});
  if (saved > 0) step.rows.push_back(row(tr("saved"), format_bytes(saved)));
  for (size_t i = 0; i < ops.size() && i < 6; ++i) step.rows.push_back(op_row(r, tr("op"), ops[i]));
  if (ops.size() > 6) step.rows.push_back(row("", tr("and {} more", ops.size() - 6)));
  d.sections.push_back(std::move(step));
}

void step_details(Details& d, int64_t step, const DetailsSources& from) {
  d.title = tr("step {}", format_grouped(step));
  d.subtitle = tr("step, not loaded");
  if (!from.links || !*from.links || from.links->record()->step != step) return;
  const StepRecord& r = *from.links->record();
  d.subtitle = r.run;
  Details::Section s{
      "",
      {row(tr("epoch"), std::to_string(r.epoch + 1)), row(tr("loss"), format_value(r.loss), format_exact(r.loss)),
       row(tr("time"), format_ns(static_cast<double>(r.duration_ns))),
       row(tr("ops"), format_grouped(static_cast<int64_t>(r.ops.size()))),
       row(tr("tensors"), format_grouped(static_cast<int64_t>(r.tensors.size()))),
       row(tr("samples"), format_grouped(static_cast<int64_t>(r.samples.size())))}};
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
  d.subtitle = tr("event of {}", from.document->title);
  const int rank = from.document->rank_of(e);
  Details::Section about{"",
                         {row(tr("category"), t.category(e).name),
                          row(tr("start"), format_ns(start), tr("{} ns after the first event", t.start(e) - t.begin())),
                          row(tr("duration"), format_ns(duration), fmt::format("{} ns", t.duration(e))),
                          row(tr("thread"), thread.label(), tr("process {}, thread {}", thread.pid, thread.tid))}};
  if (rank >= 0) {
    const traces::Trace& own = *from.document->ranks[static_cast<size_t>(rank)].trace;
    about.rows.push_back(row(tr("rank"), from.document->rank_title(static_cast<size_t>(rank)), own.path()));
  }
  const uint8_t flags = t.columns().flags[e];
  if (flags & traces::kUnfinished) about.rows.push_back(row(tr("note"), tr("begun and never ended in the file")));
  if (flags & traces::kRepaired) about.rows.push_back(row(tr("note"), tr("mended: the file has it damaged")));
  d.sections.push_back(std::move(about));
  Details::Section kin{tr("Belongs to"), {}};
  if (const auto parent = t.parent(e); parent != traces::kNone)
    kin.rows.push_back(event_row(*from.document, tr("within"), parent));
  if (const auto launch = t.launch_of(e); launch != traces::kNone)
    kin.rows.push_back(event_row(*from.document, tr("launched by"), launch));
  for (const traces::Link& l : t.forward_backward())
    if (l.from == e)
      kin.rows.push_back(event_row(*from.document, tr("backward"), l.to));
    else if (l.to == e)
      kin.rows.push_back(event_row(*from.document, tr("forward"), l.from));
  if (!kin.rows.empty()) d.sections.push_back(std::move(kin));
  if (!from.arguments || from.arguments->empty()) return;
  Details::Section args{tr("Arguments"), {}};
  for (const auto& [name, value] : *from.arguments) args.rows.push_back(row(name, value, value));
  d.sections.push_back(std::move(args));
}

void document_details(Details& d, const Document& document) {
  const traces::Trace& t = *document.trace;
  const int64_t busy = std::count_if(t.rows().begin(), t.rows().end(), [](const auto& r) { return r.events > 0; });
  d.title = document.title;
  d.subtitle = document.ranks.empty() ? tr("trace") : tr("session");
  Details::Section about{
      "",
      {row(document.ranks.empty() ? tr("file") : tr("folder"), document.path, document.path),
       row(tr("size"), format_bytes(static_cast<double>(t.source_bytes()))),
       row(tr("events"), format_grouped(static_cast<int64_t>(t.size()))), row(tr("threads"), format_grouped(busy)),
       row(tr("duration"), format_ns(static_cast<double>(t.finish() - t.begin())))}};
  if (!document.ranks.empty()) about.rows.push_back(row(tr("ranks"), std::to_string(document.ranks.size())));
  for (const std::string& sentence : document.left_out) about.rows.push_back(row(tr("left out"), sentence, sentence));
  if (t.rank() >= 0) about.rows.push_back(row(tr("rank"), std::to_string(t.rank())));
  if (t.truncated()) about.rows.push_back(row(tr("note"), tr("the file ends in the middle: what was whole is here")));
  d.sections.push_back(std::move(about));
  Details::Section mended{tr("Mended or passed over"), {}};
  for (const traces::Repair& r : t.repairs())
    mended.rows.push_back(
        row(r.kind, format_grouped(static_cast<int64_t>(r.count)), tr("first at byte {}", r.first_byte)));
  if (!mended.rows.empty()) d.sections.push_back(std::move(mended));
}

/// What a stretch of a trace holds: how many events touch it, thread by thread.
void trace_range_details(Details& d, const Selection& s, const Document& document) {
  const traces::Trace& t = *document.trace;
  d.title = format_ns(s.to - s.from);
  d.subtitle = tr("range of {}", document.title);
  Details::Section about{"", {row(tr("from"), format_ns(s.from)), row(tr("to"), format_ns(s.to))}};
  d.sections.push_back(std::move(about));
  Details::Section threads{tr("Events"), {}};
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

Details details_of(const Selection& s, const DetailsSources& from) {
  Details d;
  bool step = from.links && *from.links;
  const bool trace = from.document && from.document->trace;
  if (from.document && from.document->snapshot) {
    snapshot_details(d, s, *from.document);
    return d;
  }
  switch (s.kind) {
    case Kind::none:
      break;
    case Kind::op:
      if (uint32_t seq = step ? from.links->op_of(s) : 0) {
        const auto& op = from.links->record()->ops[seq - 1];
        d.title = op_text(op);
        d.subtitle = tr("op");
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
        d.subtitle = g.leaf ? tr("leaf") : tr("autograd node");
        d.mark = g.leaf ? Ink::memory_parameter : Ink::phase_backward;
        Details::Section about{"", {}};
        std::string path = module_path(g.module);
        if (!path.empty())
          about.rows.push_back({tr("module"), path, path, Selection::module(path, "details"), Ink::none});
        about.rows.push_back(row(tr("gradient norm"),
                                 g.grad_norm == -1 ? tr("none reached it") : format_value(g.grad_norm),
                                 format_exact(g.grad_norm)));
        if (!g.leaf)
          about.rows.push_back(
              row(tr("saved"), format_bytes(static_cast<double>(g.saved_bytes)), tr("{} bytes", g.saved_bytes)));
        for (const auto& e : g.next)
          if (e.node >= 0 && e.node < static_cast<int>(from.links->record()->grad_nodes.size()))
            about.rows.push_back({tr("feeds"),
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
            d.title = tr("block {}", s.id);
            d.subtitle = tr("memory");
            d.mark = ink_of(a.origin.category);
            Details::Section about{
                "",
                {row(tr("size"), format_bytes(static_cast<double>(a.bytes)), tr("{} bytes", a.bytes)),
                 {tr("category"), word(a.origin.category), {}, {}, ink_of(a.origin.category)},
                 row(tr("address"), fmt::format("0x{:x}", a.address), fmt::format("0x{:x}", a.address)),
                 row(tr("taken at"), format_ns(static_cast<double>(a.time_ns)))}};
            if (a.origin.seq && a.origin.seq <= from.links->record()->ops.size())
              about.rows.push_back(op_row(*from.links->record(), tr("asked by"), a.origin.seq));
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
        d.subtitle = tr("run");
        d.bad = r->status == "failed";
        Details::Section about{
            "",
            {row(tr("status"), r->status == "interrupted" ? tr("interrupted at step {}", format_grouped(r->steps))
                                                          : state_word(projects::status_text(*r))),
             row(tr("steps"), tr("{} of {}", format_grouped(r->steps), format_grouped(r->total_steps))),
             row(tr("time"), format_seconds(r->seconds)), row(tr("created"), to_the_minute(r->created), r->created)}};
        if (r->branch)
          about.rows.push_back(
              {tr("branch of"),
               tr("{} after step {}", r->branch.name, format_grouped(r->branch.step)),
               {},
               from.project->run(r->branch.run) ? Selection::run(r->branch.run, "details") : Selection(),
               Ink::none});
        if (const std::string surgery = from.project->surgery_of(*r); !surgery.empty())
          about.rows.push_back({tr("other model"), surgery, surgery, {}, Ink::warning});
        if (r->best.is_object() && r->best.contains("value") && r->best["value"].is_number()) {
          const auto metric = r->best.value("metric", std::string());
          const auto step = r->best.value("step", int64_t{0});
          about.rows.push_back(row(tr("best {}", metric), format_metric(metric, r->best["value"].get<double>())));
          about.rows.push_back({tr("best at step"), format_grouped(step), std::to_string(step),
                                Selection::step(step, "details"), Ink::none});
        }
        for (const std::string& t : r->tags) about.rows.push_back(row(tr("tag"), t));
        if (!r->note.empty()) about.rows.push_back(row(tr("note"), r->note));
        if (r->status == "pruned" || projects::stopped_early(*r))
          about.rows.push_back({tr("why"), r->error, r->error, {}, Ink::none});
        else if (!r->error.empty())
          about.rows.push_back({tr("error"), r->error, r->error, {}, Ink::bad});
        for (const auto& c : r->changes)
          about.rows.push_back({tr("other recipe"),
                                tr("after step {}", format_grouped(c.step)),
                                {},
                                c.step > 0 ? Selection::step(c.step, "details") : Selection(),
                                Ink::warning});
        d.sections.push_back(std::move(about));
        Details::Section recipe{r->changes.empty() ? tr("Recipe") : tr("Recipe at the end"), {}};
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
        d.title = tr("checkpoint of step {}", format_grouped(c->step));
        d.subtitle = c->best ? tr("best checkpoint") : tr("checkpoint");
        d.sections.push_back(
            {"",
             {row(tr("tensors"), format_bytes(static_cast<double>(c->bytes)), tr("{} bytes", c->bytes)),
              row(tr("in the file"), format_bytes(static_cast<double>(c->stored_bytes))),
              row(tr("created"), to_the_minute(c->created), c->created),
              {tr("step"), format_grouped(c->step), std::to_string(c->step), Selection::step(c->step, "details"),
               Ink::none}}});
      }
      break;
    case Kind::event:
      if (trace && s.id >= 0 && s.id < static_cast<int64_t>(from.document->trace->size()))
        event_details(d, static_cast<traces::EventId>(s.id), from);
      break;
    case Kind::document:
      if (trace) document_details(d, *from.document);
      if (from.document && from.document->model) model_file_details(d, *from.document);
      break;
    case Kind::file_tensor:
      if (from.document && from.document->model) file_tensor_details(d, s.name, *from.document);
      break;
    case Kind::file_node:
      if (from.document && from.document->model) file_node_details(d, s.id, *from.document);
      break;
    case Kind::place:  // of a snapshot alone
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
      d.subtitle = tr("range of the step");
      if (step) {
        auto ops = from.links->ops_of(s);
        Details::Section about{"",
                               {row(tr("from"), format_ns(s.from)), row(tr("to"), format_ns(s.to)),
                                row(tr("ops"), format_grouped(static_cast<int64_t>(ops.size())))}};
        for (size_t i = 0; i < ops.size() && i < 12; ++i)
          about.rows.push_back(op_row(*from.links->record(), tr("op"), ops[i]));
        d.sections.push_back(std::move(about));
      }
      break;
  }
  return d;
}

}  // namespace tenon::views
