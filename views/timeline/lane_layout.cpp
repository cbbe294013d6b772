#include "views/timeline/lane_layout.h"

#include <algorithm>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kHeading = 20, kCounter = 36;

float height_of(const LaneLayout::Band& b, float row) {
  return b.kind == LaneLayout::Band::Kind::heading   ? kHeading
         : b.kind == LaneLayout::Band::Kind::counter ? kCounter
                                                     : static_cast<float>(b.shown_depths()) * row;
}
float gap_below(const LaneLayout::Band& b) { return b.kind == LaneLayout::Band::Kind::heading ? 2 : LaneLayout::kGap; }
}  // namespace

void LaneLayout::set(const traces::Trace* trace, const std::vector<traces::CounterCurve>* curves, bool of_step,
                     const std::vector<Group>& groups) {
  bands_.clear();
  rows_ = 0;
  if (!trace) return;
  std::vector<std::string> processes;
  for (const traces::Row& row : trace->rows())
    if (row.lanes > 0 && std::find(processes.begin(), processes.end(), row.pid) == processes.end())
      processes.push_back(row.pid);
  const bool headings = !groups.empty() || (!of_step && processes.size() > 1);
  std::string last;
  size_t group = 0, shown_group = groups.size();
  int under = -1;
  for (uint32_t r = 0; r < trace->rows().size(); ++r) {
    const traces::Row& row = trace->rows()[r];
    // Of a file the rows that only have a name say nothing; a step's threads are always there.
    if (row.lanes == 0 && !of_step) continue;
    while (group + 1 < groups.size() && r >= groups[group + 1].first_row) ++group;
    if (headings && (under < 0 || (groups.empty() ? row.pid != last : group != shown_group))) {
      Band heading;
      heading.kind = Band::Kind::heading;
      heading.title = row.process.empty() ? tr("process {}", row.pid) : row.process + " " + row.pid;
      if (!row.labels.empty()) heading.title += " · " + row.labels;
      heading.tip = heading.title;
      if (!groups.empty()) heading.title = groups[group].title, heading.tip = groups[group].tip;
      shown_group = group;
      under = static_cast<int>(bands_.size());
      last = row.pid;
      bands_.push_back(std::move(heading));
    }
    Band b;
    b.title = of_step ? row.thread : row.label();
    if (headings)
      b.title = !row.thread.empty() ? row.thread : row.gpu ? tr("stream {}", row.tid) : tr("thread {}", row.tid);
    const std::string process = row.process.empty() ? row.pid : row.pid + " (" + row.process + ")";
    b.tip = row.label() + "\n" + tr("process {}, thread {}", process, row.tid) + "\n" +
            tr("{} events", format_grouped(static_cast<int64_t>(row.events)));
    b.full_title = of_step ? b.title : row.label();
    b.of = r;
    b.first = row.first_lane;
    b.depths = row.lanes;
    b.under = under;
    bands_.push_back(std::move(b));
    ++rows_;
  }
  if (!curves || curves->empty()) return;
  Band heading;
  heading.kind = Band::Kind::heading;
  heading.title = heading.tip = tr("Counters");
  under = static_cast<int>(bands_.size());
  bands_.push_back(std::move(heading));
  for (uint32_t c = 0; c < curves->size(); ++c) {
    const traces::CounterCurve& curve = (*curves)[c];
    Band b;
    b.kind = Band::Kind::counter;
    b.title = b.full_title = curve.name();
    b.tip = curve.name() + "\n" +
            tr("{} values, the largest {}", format_grouped(static_cast<int64_t>(curve.size())),
               curve.bytes() ? format_bytes(curve.peak()) : format_value(curve.peak()));
    b.of = c;
    b.under = under;
    bands_.push_back(std::move(b));
  }
}

void LaneLayout::toggle(size_t band) {
  if (band < bands_.size() && bands_[band].folds()) bands_[band].folded = !bands_[band].folded;
}

int LaneLayout::band_of(uint32_t lane) const {
  for (size_t i = 0; i < bands_.size(); ++i) {
    const Band& b = bands_[i];
    if (b.kind != Band::Kind::row || lane < b.first || lane >= b.first + b.depths) continue;
    return hidden(b) ? -1 : static_cast<int>(i);
  }
  return -1;
}

void LaneLayout::reveal(uint32_t lane) {
  for (Band& b : bands_) {
    if (b.kind != Band::Kind::row || lane < b.first || lane >= b.first + b.depths) continue;
    if (hidden(b)) bands_[static_cast<size_t>(b.under)].folded = false;
    if (lane > b.first) b.folded = false;
  }
}

void LaneLayout::fold_all(bool folded) {
  for (Band& b : bands_)
    if (b.kind == Band::Kind::row && b.folds()) b.folded = folded;
  if (folded) return;
  for (Band& b : bands_) b.folded = false;
}

bool LaneLayout::any_unfolded() const {
  return std::any_of(bands_.begin(), bands_.end(),
                     [](const Band& b) { return b.kind == Band::Kind::row && b.folds() && !b.folded; });
}

std::vector<LaneLayout::Placed> LaneLayout::place_pinned(float top, float row, float room) const {
  std::vector<Placed> all;
  const float end = top + room;
  for (size_t i = 0; i < bands_.size(); ++i) {
    if (!bands_[i].pinned) continue;
    const float h = height_of(bands_[i], row);
    if (top + h > end) break;
    all.push_back({i, top, h});
    top += h + gap_below(bands_[i]);
  }
  return all;
}

std::vector<LaneLayout::Placed> LaneLayout::place(float top, float row, size_t stuck) const {
  std::vector<Placed> all;
  auto add = [&](size_t i) {
    const float h = height_of(bands_[i], row);
    all.push_back({i, top, h});
    top += h + gap_below(bands_[i]);
  };
  for (size_t i = 0; i < bands_.size(); ++i)
    if (bands_[i].pinned && (stuck == 0 || stuck-- == 0)) add(i);
  for (size_t i = 0; i < bands_.size(); ++i)
    if (!bands_[i].pinned && !hidden(bands_[i])) add(i);
  return all;
}

float LaneLayout::height(float row, size_t stuck) const {
  const auto all = place(0, row, stuck);
  return all.empty() ? 0 : all.back().y + all.back().h + gap_below(bands_[all.back().band]);
}

void LaneLayout::toggle_pin(size_t band) {
  if (band < bands_.size() && bands_[band].pins()) bands_[band].pinned = !bands_[band].pinned;
}

void LaneLayout::unpin_all() {
  for (Band& b : bands_) b.pinned = false;
}

bool LaneLayout::any_pinned() const {
  return std::any_of(bands_.begin(), bands_.end(), [](const Band& b) { return b.pinned; });
}

std::vector<bool> LaneLayout::state() const {
  std::vector<bool> folded;
  for (const Band& b : bands_) folded.push_back(b.folded);
  return folded;
}

void LaneLayout::restore(const std::vector<bool>& state) {
  for (size_t i = 0; i < std::min(state.size(), bands_.size()); ++i) bands_[i].folded = state[i] && bands_[i].folds();
}

std::vector<bool> LaneLayout::pins() const {
  std::vector<bool> pinned;
  for (const Band& b : bands_) pinned.push_back(b.pinned);
  return pinned;
}

void LaneLayout::restore_pins(const std::vector<bool>& pins) {
  for (size_t i = 0; i < bands_.size(); ++i) bands_[i].pinned = i < pins.size() && pins[i] && bands_[i].pins();
}

}  // namespace tenon::views
