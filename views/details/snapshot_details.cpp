#include "views/details/snapshot_details.h"

#include <fmt/format.h>

#include <algorithm>

#include "tracing/snapshot/snapshot.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

using snapshot::kNone;
using snapshot::Snapshot;
using snapshot::Timeline;

Details::Row told(std::string name, std::string value, std::string exact = {}, Selection link = {}) {
  return {std::move(name), std::move(value), std::move(exact), std::move(link), Ink::none};
}
Details::Row bytes_fact(const std::string& name, int64_t bytes) {
  return told(name, format_bytes(static_cast<double>(bytes)), tr("{} bytes", format_grouped(bytes)));
}
Details::Row count_fact(const std::string& name, size_t n) {
  return told(name, format_grouped(static_cast<int64_t>(n)), std::to_string(n));
}
std::string device_text(int64_t device) {
  return device == snapshot::kHost ? tr("Pinned memory of the host") : tr("Device {}", device);
}

void add_stack(Details& d, const Snapshot& s, uint32_t stack) {
  constexpr size_t kMostFrames = 40;
  Details::Section frames{tr("Stack, the innermost first"), {}};
  size_t n = 0;
  for (const std::string& line : s.stack_lines(stack)) {
    if (++n > kMostFrames) continue;
    frames.rows.push_back(told(std::to_string(n), line, line));
  }
  if (n > kMostFrames) frames.rows.push_back(told("…", tr("{} more", n - kMostFrames)));
  if (!frames.rows.empty()) d.sections.push_back(std::move(frames));
}

void file_details(Details& d, const Document& document) {
  const Snapshot& s = *document.snapshot;
  d.title = document.title;
  d.subtitle = tr("memory snapshot");
  int64_t reserved = 0, active = 0;
  for (const auto& g : s.segments) {
    reserved += g.total;
    active += g.active;
  }
  Details::Section about{
      "",
      {told(tr("file"), document.path, document.path), bytes_fact(tr("size"), static_cast<int64_t>(s.source_bytes)),
       count_fact(tr("events"), s.events.size_())}};
  if (s.truncated) about.rows.push_back(told(tr("note"), tr("the file ends in the middle: what was whole is here")));
  d.sections.push_back(std::move(about));
  d.sections.push_back({tr("When it was written"),
                        {count_fact(tr("segments"), s.segments.size()), bytes_fact(tr("reserved"), reserved),
                         bytes_fact(tr("allocated"), active)}});
  for (size_t i = 0; i < document.timelines.size(); ++i) {
    const Timeline& t = *document.timelines[i];
    if (t.events() == 0) continue;
    const auto peak = static_cast<int64_t>(s.traces[i].begin + t.peak());
    Details::Section device{
        device_text(s.traces[i].device),
        {count_fact(tr("events"), t.events()),
         told(tr("peak"), format_bytes(static_cast<double>(t.peak_bytes())),
              tr("{} bytes", format_grouped(t.peak_bytes())), Selection::event(document.id, peak, "details")),
         bytes_fact(tr("alive at the end"), t.bytes(t.events() - 1))}};
    if (t.unknown_frees() > 0) device.rows.push_back(count_fact(tr("older, freed"), t.unknown_frees()));
    d.sections.push_back(std::move(device));
  }
  Details::Section settings{tr("Settings of the allocator"), {}};
  for (const auto& [name, value] : s.settings) settings.rows.push_back(told(name, value, value));
  if (!settings.rows.empty()) d.sections.push_back(std::move(settings));
  Details::Section passed{tr("Passed over"), {}};
  for (const auto& [what, count] : s.repairs) passed.rows.push_back(count_fact(what, count));
  if (!passed.rows.empty()) d.sections.push_back(std::move(passed));
}

/// The trace that an event of the snapshot belongs to; the number of traces where it is none's.
size_t trace_of(const Snapshot& s, int64_t event) {
  size_t i = 0;
  while (i < s.traces.size() &&
         (event < static_cast<int64_t>(s.traces[i].begin) || event >= static_cast<int64_t>(s.traces[i].end)))
    ++i;
  return i;
}

Details::Row element_fact(const Document& document, size_t trace, const std::string& name, uint32_t id) {
  const snapshot::Element e = document.timelines[trace]->element(id);
  return told(name, format_bytes(static_cast<double>(e.bytes)) + "  " + document.snapshot->site(e.stack), {},
              Selection::allocation(document.id, trace, id, "details"));
}

void snapshot_event_details(Details& d, int64_t event, const Document& document) {
  const Snapshot& s = *document.snapshot;
  const size_t trace = trace_of(s, event);
  if (trace >= document.timelines.size()) return;
  const Timeline& t = *document.timelines[trace];
  const auto k = static_cast<size_t>(event);
  const size_t at = k - s.traces[trace].begin;
  const auto& e = s.events;
  d.title = tr("event {}", format_grouped(static_cast<int64_t>(at)));
  d.subtitle = tr("of {}", document.title);
  Details::Section about{"",
                         {told(tr("what"), snapshot::name(e.action[k])),
                          told(tr("on"), device_text(s.traces[trace].device)), bytes_fact(tr("size"), e.size[k]),
                          told(tr("address"), fmt::format("0x{:x}", e.address[k]), fmt::format("0x{:x}", e.address[k])),
                          bytes_fact(tr("alive then"), t.bytes(at))}};
  if (e.time_us[k] >= 0 && e.time_us[s.traces[trace].begin] >= 0)
    about.rows.push_back(told(tr("time"),
                              format_ns(static_cast<double>(e.time_us[k] - e.time_us[s.traces[trace].begin]) * 1000),
                              fmt::format("{} µs", e.time_us[k])));
  if (e.stack[k] != kNone)
    about.rows.push_back(
        told(tr("by"), s.site(e.stack[k]), {}, Selection::place(document.id, s.site(e.stack[k]), "details")));
  d.sections.push_back(std::move(about));
  Details::Section lives{tr("Allocation"), {}};
  for (const Timeline::Change& c : t.changes(at))
    if (c.element != kNone)
      lives.rows.push_back(element_fact(document, trace, c.bytes >= 0 ? tr("begins") : tr("ends"), c.element));
  if (!lives.rows.empty()) d.sections.push_back(std::move(lives));
  add_stack(d, s, e.stack[k]);
}

void allocation_details(Details& d, const Selection& chosen, const Document& document) {
  const Snapshot& s = *document.snapshot;
  const size_t trace = chosen.allocation_trace();
  if (chosen.id < 0 || trace >= document.timelines.size()) return;
  const Timeline& t = *document.timelines[trace];
  if (chosen.allocation_element() >= t.elements()) return;
  const snapshot::Element e = t.element(chosen.allocation_element());
  const std::string site = s.site(e.stack);
  d.title = format_bytes(static_cast<double>(e.bytes));
  d.subtitle = tr("allocation of {}", document.title);
  auto event_fact = [&](const std::string& name, size_t at) {
    return told(name, tr("event {}", format_grouped(static_cast<int64_t>(at))), std::to_string(at),
                Selection::event(document.id, static_cast<int64_t>(s.traces[trace].begin + at), "details"));
  };
  Details::Section about{"",
                         {told(tr("allocated by"), site, {}, Selection::place(document.id, site, "details")),
                          bytes_fact(tr("size"), e.bytes),
                          told(tr("address"), fmt::format("0x{:x}", e.address), fmt::format("0x{:x}", e.address)),
                          told(tr("on"), device_text(s.traces[trace].device)),
                          told(tr("stream"), std::to_string(e.stream < s.streams.size() ? s.streams[e.stream] : 0))}};
  if (e.before)
    about.rows.push_back(told(tr("born"), tr("before the recording")));
  else
    about.rows.push_back(event_fact(tr("born"), e.born));
  if (e.died >= t.events())
    about.rows.push_back(told(tr("freed"), tr("not within the recording")));
  else
    about.rows.push_back(event_fact(tr("freed"), e.died));
  const auto& times = s.events.time_us;
  const size_t begin = s.traces[trace].begin;
  if (!e.before && e.died < t.events() && times[begin + e.born] >= 0 && times[begin + e.died] >= times[begin + e.born])
    about.rows.push_back(
        told(tr("lived"), format_ns(static_cast<double>(times[begin + e.died] - times[begin + e.born]) * 1000)));
  if (e.category != kNone) about.rows.push_back(told(tr("category"), std::string(s.text(e.category))));
  d.sections.push_back(std::move(about));
  add_stack(d, s, e.stack);
}

void place_details(Details& d, const std::string& place, const Document& document) {
  const Snapshot& s = *document.snapshot;
  uint32_t stack = kNone;
  std::vector<Details::Section> devices;
  for (size_t i = 0; i < document.timelines.size(); ++i) {
    const Timeline& t = *document.timelines[i];
    if (t.events() == 0) continue;
    std::vector<int8_t> fits(s.stacks() + 1, -1);  // the last: without a stack
    auto of_place = [&](uint32_t id) {
      int8_t& known = fits[std::min<size_t>(id, s.stacks())];
      if (known < 0) known = s.site(id) == place;
      return known == 1;
    };
    auto held = [&](const std::string& name, size_t at) {
      int64_t bytes = 0, blocks = 0;
      for (const uint32_t id : t.live(at))
        if (const snapshot::Element e = t.element(id); of_place(e.stack)) {
          bytes += e.bytes;
          ++blocks;
          if (e.stack != kNone) stack = e.stack;
        }
      return told(name,
                  blocks == 1 ? tr("{} in 1 block", format_bytes(static_cast<double>(bytes)))
                              : tr("{} in {} blocks", format_bytes(static_cast<double>(bytes)), format_grouped(blocks)),
                  tr("{} bytes", format_grouped(bytes)),
                  Selection::event(document.id, static_cast<int64_t>(s.traces[i].begin + at), "details"));
    };
    devices.push_back(
        {device_text(s.traces[i].device), {held(tr("at the peak"), t.peak()), held(tr("at the end"), t.events() - 1)}});
  }
  if (devices.empty()) return;
  d.title = place;
  d.subtitle = tr("line of code of {}", document.title);
  d.sections = std::move(devices);
  Details::Section callers{tr("Called from"), {}};
  for (const std::string& line : s.callers(stack))
    if (callers.rows.size() < 20) callers.rows.push_back(told(std::to_string(callers.rows.size() + 1), line, line));
  if (!callers.rows.empty()) d.sections.push_back(std::move(callers));
}

}  // namespace

void snapshot_details(Details& d, const Selection& s, const Document& document) {
  switch (s.kind) {
    case Selection::Kind::document:
      return file_details(d, document);
    case Selection::Kind::event:
      return snapshot_event_details(d, s.id, document);
    case Selection::Kind::alloc:
      return allocation_details(d, s, document);
    case Selection::Kind::place:
      return place_details(d, s.name, document);
    default:
      return;
  }
}

}  // namespace tenon::views
