#include "views/timeline/bookmarks_view.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

BookmarksView::BookmarksView(Bench& bench, TimelineModel& model, QWidget* parent)
    : QWidget(parent), bench_(bench), model_(model) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(this);
  add_ = new QToolButton(bar);
  add_->setObjectName("timeline.bookmark");
  add_->setText(tr("Add"));
  add_->setToolTip(tr("Keep what is marked, or the time of the selected event (B in the timeline)"));
  connect(add_, &QToolButton::clicked, this, &BookmarksView::add);
  bar->add(add_);
  note_ = new QLineEdit(bar);
  note_->setObjectName("timeline.note");
  note_->setAccessibleName(tr("Note of the bookmark"));
  note_->setPlaceholderText(tr("Note of the chosen bookmark"));
  connect(note_, &QLineEdit::editingFinished, this, &BookmarksView::note_typed);
  bar->add(note_, 1);
  remove_ = new QToolButton(bar);
  remove_->setObjectName("timeline.unbookmark");
  remove_->setText(tr("Remove"));
  connect(remove_, &QToolButton::clicked, this, &BookmarksView::remove);
  bar->add(remove_);
  box->addWidget(bar);
  list_ = new TableList(this);
  list_->setObjectName("timeline.bookmarks");
  list_->setAccessibleName(tr("Bookmarks"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  box->addWidget(list_, 1);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    if (s.kind != Selection::Kind::range || !shown()) return;
    chosen_from_ = s.from, chosen_to_ = s.to;
    fill();
  });
  refresh();
}

BookmarksView::~BookmarksView() {
  for (auto& [document, kept] : kept_) keep(document, kept);
}

BookmarksView::Kept* BookmarksView::shown() {
  const Document* d = model_.shows_beginning() ? nullptr : bench_.shown_document();
  const auto at = d ? kept_.find(d->id) : kept_.end();
  return at == kept_.end() ? nullptr : &at->second;
}

int BookmarksView::count() const { return static_cast<int>(model_.bookmarks().size()); }

void BookmarksView::refresh() {
  for (auto at = kept_.begin(); at != kept_.end();) {
    const bool open = bench_.document(at->first) != nullptr;
    if (!open) keep(at->first, at->second);
    at = open ? std::next(at) : kept_.erase(at);
  }
  for (const Document& d : bench_.documents()) {
    if (!d.trace || kept_.contains(d.id)) continue;
    const DocumentState state = document_state(d.path);
    kept_[d.id] = {d.path, state, state};
    if (state.hi > state.lo || !state.folded.empty() || !state.pinned.empty())
      model_.set_sight(d.id, {.lo = state.lo, .hi = state.hi, .folded = state.folded, .pinned = state.pinned});
  }
  const Kept* kept = shown();
  if (kept && model_.shows_document() && model_.bookmarks() != kept->is.bookmarks)
    model_.set_bookmarks(kept->is.bookmarks);
  fill();
}

/// Takes down how the document is seen, for the next time.
void BookmarksView::keep(int document, Kept& kept) {
  const TimelineModel::Sight sight = model_.sight(document);
  auto some = [](const std::vector<bool>& of) {
    return std::find(of.begin(), of.end(), true) != of.end() ? of : std::vector<bool>();
  };
  kept.is.lo = sight.whole ? 0 : sight.lo, kept.is.hi = sight.whole ? 0 : sight.hi;
  kept.is.folded = some(sight.folded);
  kept.is.pinned = some(sight.pinned);
  save(kept, false);
}

void BookmarksView::save(Kept& kept, bool aloud) {
  if (kept.is == kept.was) return;
  try {
    set_document_state(kept.path, kept.is);
    kept.was = kept.is;
  } catch (const Error& e) {
    if (aloud) return bench_.fail(tr("Bookmarks were not kept"), e.what(), QString::fromStdString(e.hint()));
    std::fprintf(stderr, "how %s was seen is not kept: %s\n", kept.path.c_str(),
                 e.what());  // the window may be gone by now
  }
}

void BookmarksView::add() {
  Kept* kept = shown();
  if (!kept || !model_.shows_document()) return;
  const Bookmark b = model_.bookmark_here();
  auto& all = kept->is.bookmarks;
  if (std::find_if(all.begin(), all.end(), [&](const Bookmark& o) { return o.from == b.from && o.to == b.to; }) ==
      all.end())
    all.insert(std::upper_bound(all.begin(), all.end(), b,
                                [](const Bookmark& x, const Bookmark& y) { return x.from < y.from; }),
               b);
  chosen_from_ = b.from, chosen_to_ = b.to;
  model_.set_bookmarks(all);
  save(*kept, true);
  fill();
  emit counted();
  note_->setFocus();
  note_->selectAll();
}

int BookmarksView::chosen() const {
  const auto& all = model_.bookmarks();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].from == chosen_from_ && (all[i].to == chosen_to_ || all[i].from + 1 == chosen_to_))
      return static_cast<int>(i);
  return -1;
}

void BookmarksView::note_typed() {
  Kept* kept = shown();
  const int i = chosen();
  if (!kept || i < 0 || static_cast<size_t>(i) >= kept->is.bookmarks.size()) return;
  std::string& note = kept->is.bookmarks[static_cast<size_t>(i)].note;
  if (note == note_->text().toStdString()) return;
  note = note_->text().toStdString();
  model_.set_bookmarks(kept->is.bookmarks);
  save(*kept, true);
  fill();
}

void BookmarksView::remove() {
  Kept* kept = shown();
  const int i = chosen();
  if (!kept || i < 0 || static_cast<size_t>(i) >= kept->is.bookmarks.size()) return;
  kept->is.bookmarks.erase(kept->is.bookmarks.begin() + i);
  chosen_to_ = -1;
  model_.set_bookmarks(kept->is.bookmarks);
  save(*kept, true);
  fill();
  emit counted();
}

void BookmarksView::fill() {
  Table t;
  t.columns = {{views::tr("At"), true}, {views::tr("Length"), true}, {views::tr("Note")}};
  const Document* d = bench_.shown_document();
  Selection of_chosen;
  const int now = chosen();
  const auto& all = model_.bookmarks();
  for (size_t i = 0; d && i < all.size(); ++i) {
    const Bookmark& b = all[i];
    Table::Row row;
    row.selection = Selection::range(b.from, std::max(b.to, b.from + 1), "bookmarks");
    row.selection.document = d->id;
    row.cells = {Table::Cell::number(b.from, format_ns(b.from)),
                 Table::Cell::number(b.to - b.from, b.to > b.from ? format_ns(b.to - b.from) : views::tr("a moment")),
                 {b.note, 0, {}, Ink::none}};
    if (static_cast<int>(i) == now) of_chosen = row.selection;
    t.rows.push_back(std::move(row));
  }
  list_->set_table(std::move(t));
  if (now >= 0) list_->mark(of_chosen);
  note_->setEnabled(now >= 0);
  remove_->setEnabled(now >= 0);
  const QString note = now >= 0 ? QString::fromStdString(all[static_cast<size_t>(now)].note) : QString();
  if (note_->text() != note) note_->setText(note);
}

}  // namespace tenon::views
