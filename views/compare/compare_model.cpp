#include "views/compare/compare_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "tracing/analyses/time_match.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/project_contents.h"

namespace tenon::views {

namespace {

constexpr size_t kMostCheckpoints = 1000;

/// "a trace", "two memory snapshots"
std::string kind_words(Document::Kind kind, bool two) {
  switch (kind) {
    case Document::Kind::trace:
      return two ? tr("two traces") : tr("a trace");
    case Document::Kind::snapshot:
      return two ? tr("two memory snapshots") : tr("a memory snapshot");
    default:
      return two ? tr("two models") : tr("a model");
  }
}
std::string another(Document::Kind kind) {
  return kind == Document::Kind::trace      ? tr("another trace")
         : kind == Document::Kind::snapshot ? tr("another memory snapshot")
                                            : tr("another model file");
}

}  // namespace

std::vector<CompareSide> comparable_sides(const std::vector<Document>& documents, const ProjectContents& contents) {
  std::vector<CompareSide> out;
  for (const Document& d : documents) {
    const bool again = std::count_if(documents.begin(), documents.end(),
                                     [&](const Document& other) { return other.title == d.title; }) > 1;
    const std::string folder = std::filesystem::path(d.path).parent_path().filename().string();
    const std::string title = again ? fmt::format("{} ({} #{})", d.title, folder, d.id) : d.title;
    if (d.ranks.empty()) out.push_back({d.kind, d.id, 0, title, d.path});
    for (size_t r = 0; r < d.ranks.size(); ++r)
      out.push_back({d.kind, d.id, 0, title + " · " + d.rank_title(r), d.ranks[r].trace->path(), r});
  }
  std::map<int64_t, std::vector<const projects::CheckpointInfo*>> of_run;  // the last step first
  size_t all = 0;
  for (const auto& list : contents.checkpoints)
    for (auto c = list.rbegin(); c != list.rend(); ++c, ++all) of_run[c->run].push_back(&*c);
  // A list that nobody can read helps nobody: of very many checkpoints each run's last and best, the newest runs first.
  const bool some = all > kMostCheckpoints;
  size_t taken = 0;
  auto take = [&](const projects::RunInfo& run) {
    for (const projects::CheckpointInfo* c : of_run[run.id]) {
      if (some && (taken >= kMostCheckpoints || !(c->best || c == of_run[run.id].front()))) continue;
      ++taken;
      out.push_back({Document::Kind::model, Document::kProject, c->id,
                     tr("{} · step {}", run.name, format_grouped(c->step)) + (c->best ? tr(", best") : ""),
                     tr("the weights of a checkpoint")});
    }
  };
  if (some)
    std::for_each(contents.runs.rbegin(), contents.runs.rend(), take);
  else
    std::for_each(contents.runs.begin(), contents.runs.end(), take);
  return out;
}

size_t CompareModel::documents_of(Document::Kind kind) const {
  return static_cast<size_t>(std::count_if(offered_.begin(), offered_.end(), [&](const CompareSide& s) {
    return s.kind == kind && s.document != Document::kProject;
  }));
}

bool CompareModel::set_offered(std::vector<CompareSide> sides, int shown_document) {
  const Side a = a_, b = b_;
  offered_ = std::move(sides);
  for (Side* side : {&a_, &b_}) {
    if (!*side) continue;
    const auto now = std::find(offered_.begin(), offered_.end(), **side);
    if (now == offered_.end())
      side->reset();
    else
      **side = *now;  // it may be called otherwise by now
  }
  if (!a_ && b_) a_ = std::exchange(b_, {});
  take_pairs(shown_document);
  if (a == a_ && b == b_) return false;
  set_result(nullptr, nullptr);
  return true;
}

bool CompareModel::take_pairs(int shown_document) {
  if (next_after_ && a_) {
    for (const CompareSide& s : offered_)
      if (s.document > next_after_ && s.kind == a_->kind) {
        b_ = s;
        next_after_ = 0;
        return true;
      }
  }
  if (a_ && !b_) {
    const auto others = offered_b();
    const auto files = std::count_if(others.begin(), others.end(), [](const auto& s) { return s.document; });
    if (files == 1 && !next_after_)
      b_ = *std::find_if(others.begin(), others.end(), [](const auto& s) { return s.document != 0; });
  }
  if (a_) return ready();
  next_after_ = 0;
  const CompareSide* leads = nullptr;
  for (const CompareSide& s : offered_)
    if (s.document && documents_of(s.kind) == 2 && (!leads || leads->document != shown_document)) leads = &s;
  if (!leads) return false;
  const Document::Kind kind = leads->kind;
  for (const CompareSide& s : offered_)
    if (s.document && s.kind == kind) (a_ ? b_ : a_) = s;
  return true;
}

std::vector<CompareSide> CompareModel::offered_b() const {
  std::vector<CompareSide> out;
  for (const CompareSide& s : offered_)
    if (a_ && s.kind == a_->kind && !(s == *a_)) out.push_back(s);
  return out;
}

bool CompareModel::can_choose() const {
  for (size_t i = 0; i < offered_.size(); ++i)
    for (size_t k = i + 1; k < offered_.size(); ++k)
      if (offered_[i].kind == offered_[k].kind) return true;
  return false;
}

void CompareModel::choose_a(const CompareSide& side) {
  if (a_ == side) return;
  if (b_ == side) return swap();
  if (b_ && b_->kind != side.kind) b_.reset();
  a_ = side;
  next_after_ = 0;
  take_pairs(side.document);
  set_result(nullptr, nullptr);
}

void CompareModel::choose_b(const CompareSide& side) {
  if (b_ == side || !a_ || a_ == side || a_->kind != side.kind) return;
  b_ = side;
  next_after_ = 0;
  set_result(nullptr, nullptr);
}

void CompareModel::swap() {
  if (!ready()) return;
  std::swap(a_, b_);
  set_result(nullptr, nullptr);
}

void CompareModel::compare_with_next(int document, size_t rank) {
  int last = 0;
  for (const CompareSide& s : offered_) last = std::max(last, s.document);
  for (const CompareSide& s : offered_)
    if (s.document == document && document && s.rank == rank) {
      if (a_ == s) break;
      b_.reset();
      a_ = s;
      set_result(nullptr, nullptr);
      break;
    }
  if (a_) next_after_ = std::max(last, 1);
}

void CompareModel::stop_waiting() {
  next_after_ = 0;
  take_pairs(a_ ? a_->document : Document::kProject);
}

std::string CompareModel::missing() const {
  if (a_ && !offered_b().empty()) return tr("Choose what {} is compared with: B.", a_->title);
  if (can_choose()) return tr("Choose A and B above: two traces, two memory snapshots, or two models or checkpoints.");
  if (offered_.empty())
    return tr("Open two traces, two memory snapshots or two model files to see what is different in the second.");
  if (offered_.size() == 1)
    return tr("{} is open. Open {} to see what is different in it.", offered_[0].title, another(offered_[0].kind));
  return tr("{} is {} and {} {}: they have nothing to be compared by. Open another of one kind.", offered_[0].title,
            kind_words(offered_[0].kind, false), offered_[1].title, kind_words(offered_[1].kind, false));
}

void CompareModel::set_result(std::shared_ptr<const FindingPage> page, std::shared_ptr<const tracing::FlamePair> flames,
                              std::shared_ptr<const tracing::TimeMatch> times) {
  page_ = std::move(page);
  times_ = a_ && b_ && a_->document != b_->document ? std::move(times) : nullptr;
  pairs_.clear();
  last_ = {};
  for (const FindingPage::Part& part : page_ ? page_->tables : std::vector<FindingPage::Part>())
    for (size_t r = 0; r < part.others.size(); ++r)
      if (part.others[r]) pairs_.push_back({part.table.rows[r].selection, part.others[r]});
  flame_.set_difference(std::move(flames), a_ ? a_->document : 0, b_ ? b_->document : 0);
}

Selection CompareModel::choose_side(Pair pair, int shown_document) {
  last_ = std::move(pair);
  if (!last_.a) return last_.b;
  return last_.b && last_.b.document == shown_document && last_.a.document != shown_document ? last_.b : last_.a;
}

Selection CompareModel::chosen(const Selection& row, int shown_document) {
  for (const Pair& p : pairs_)
    if (p.a.same(row)) return choose_side(p, shown_document);
  return choose_side({row, {}}, shown_document);
}

Selection CompareModel::chosen_box(int shown_document) {
  return choose_side({flame_.in_a(flame_.chosen()), flame_.in_b(flame_.chosen())}, shown_document);
}

Selection CompareModel::other(const Selection& s) const {
  if (!s) return {};
  if (last_.a && last_.a.same(s)) return last_.b;
  if (last_.b && last_.b.same(s)) return last_.a;
  for (const Pair& p : pairs_) {
    if (p.a.same(s)) return p.b;
    if (p.b.same(s)) return p.a;
  }
  if (s.kind != Selection::Kind::range || !times_) return {};
  const bool in_a = s.document == a_->document;
  if (!in_a && s.document != b_->document) return {};
  Selection there = in_a ? Selection::range(times_->to_b(s.from), times_->to_b(s.to), "compare")
                         : Selection::range(times_->to_a(s.from), times_->to_a(s.to), "compare");
  there.document = in_a ? b_->document : a_->document;
  return there;
}

Selection CompareModel::row_of(const Selection& s) const {
  if (last_.b && last_.b.same(s) && last_.a) return last_.a;
  for (const Pair& p : pairs_)
    if (p.b.same(s)) return p.a;
  return s;
}

}  // namespace tenon::views
