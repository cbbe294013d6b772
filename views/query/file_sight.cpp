#include "views/query/file_sight.h"

#include "engine/formats/model_file.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::views {

using Leads = projects::QueryColumn::Leads;

namespace {
constexpr const char* kQuerySource = "query";
}  // namespace

Selection FileSight::led_to(Leads leads, const projects::QueryValue& value) {
  const auto* number = std::get_if<int64_t>(&value);
  const auto* text = std::get_if<std::string>(&value);
  const int64_t id = number ? *number : -1;
  if (d_.snapshot) {
    if (leads == Leads::place && text) return place(*text);
    if (id < 0) return {};
    if (leads == Leads::event && id < static_cast<int64_t>(d_.snapshot->events.size_()))
      return Selection::event(d_.id, id, kQuerySource);
    if (leads == Leads::allocation) return allocation(id);
    if (leads == Leads::block) return block(id);
    if (leads == Leads::segment) return segment(id);
  } else if (d_.model) {
    if (leads == Leads::tensor && id >= 0 && id < static_cast<int64_t>(d_.model->tensors.size()))
      return Selection::file_tensor(d_.id, d_.model->tensors[static_cast<size_t>(id)].name, kQuerySource);
    if (leads == Leads::tensor && text && d_.model->find_tensor(*text) >= 0)
      return Selection::file_tensor(d_.id, *text, kQuerySource);
    if (leads == Leads::node && id >= 0 && id < static_cast<int64_t>(d_.model->nodes.size()))
      return Selection::file_node(d_.id, id, kQuerySource);
  }
  return {};
}

/// Rows of the table are those of the timelines, one device after the other.
Selection FileSight::allocation(int64_t row) const {
  for (size_t t = 0; t < d_.timelines.size(); ++t) {
    const auto here = static_cast<int64_t>(d_.timelines[t]->elements());
    if (row < here) return Selection::allocation(d_.id, t, static_cast<uint32_t>(row), kQuerySource);
    row -= here;
  }
  return {};
}

void FileSight::look_through() {
  if (looked_) return;
  looked_ = true;
  const snapshot::Snapshot& s = *d_.snapshot;
  taken_.resize(s.traces.size());
  for (size_t t = 0; t < s.traces.size(); ++t)
    for (size_t i = s.traces[t].begin; i < s.traces[t].end; ++i)
      if (s.events.action[i] == snapshot::Action::segment_alloc || s.events.action[i] == snapshot::Action::segment_map)
        taken_[t][s.events.address[i]] = static_cast<int64_t>(i);
  alive_.resize(d_.timelines.size());
  for (size_t t = 0; t < d_.timelines.size(); ++t) {
    const snapshot::Timeline& line = *d_.timelines[t];
    for (uint32_t e = 0; e < line.elements(); ++e)
      if (const snapshot::Element life = line.element(e); life.died >= line.events()) alive_[t][life.address] = e;
  }
  segment_of_.assign(s.blocks.size(), s.segments.size());
  for (size_t g = 0; g < s.segments.size(); ++g)
    for (size_t b = 0; b < s.segments[g].blocks && s.segments[g].first_block + b < segment_of_.size(); ++b)
      segment_of_[s.segments[g].first_block + b] = g;
}

/// The allocation that lives in it; of a free one, or where none was recorded, the code that its segment is from.
Selection FileSight::block(int64_t id) {
  const snapshot::Snapshot& s = *d_.snapshot;
  if (id >= static_cast<int64_t>(s.blocks.size())) return {};
  look_through();
  const snapshot::Block& b = s.blocks[static_cast<size_t>(id)];
  const size_t g = segment_of_[static_cast<size_t>(id)];
  if (g >= s.segments.size()) return {};
  for (size_t t = 0; b.state != snapshot::State::inactive && t < alive_.size(); ++t)
    if (const auto at = alive_[t].find(b.address); at != alive_[t].end() && s.traces[t].device == s.segments[g].device)
      return Selection::allocation(d_.id, t, at->second, kQuerySource);
  return segment(static_cast<int64_t>(g));
}

/// The event that made the allocator take it, the last one where it was taken more than once; the line of code, where
/// no event tells.
Selection FileSight::segment(int64_t id) {
  const snapshot::Snapshot& s = *d_.snapshot;
  if (id >= static_cast<int64_t>(s.segments.size())) return {};
  const snapshot::Segment& g = s.segments[static_cast<size_t>(id)];
  look_through();
  for (size_t t = 0; t < taken_.size(); ++t)
    if (const auto at = taken_[t].find(g.address); at != taken_[t].end() && s.traces[t].device == g.device)
      return Selection::event(d_.id, at->second, kQuerySource);
  return g.stack < s.stacks() ? Selection::place(d_.id, s.site(g.stack), kQuerySource) : Selection();
}

/// Words that are no line of code of the file lead nowhere.
Selection FileSight::place(const std::string& name) {
  const snapshot::Snapshot& s = *d_.snapshot;
  if (!places_found_) {
    places_found_ = true;
    for (uint32_t stack = 0; stack < s.stacks(); ++stack) places_.insert(s.site(stack));
  }
  return places_.count(name) ? Selection::place(d_.id, name, kQuerySource) : Selection();
}

}  // namespace tenon::views
