#include "views/frame/bookmark_list.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"

namespace tenon::views {

BookmarkList::BookmarkList(Bench& bench, std::unique_ptr<BookmarkedPicture> picture, const QString& view,
                           const QString& what, QWidget* parent)
    : QWidget(parent), bench_(bench), picture_(std::move(picture)) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(this);
  add_ = new QToolButton(bar);
  add_->setObjectName(view + ".bookmark");
  add_->setText(tr("Add"));
  add_->setToolTip(what);
  connect(add_, &QToolButton::clicked, this, &BookmarkList::add);
  bar->add(add_);
  note_ = new QLineEdit(bar);
  note_->setObjectName(view + ".note");
  note_->setAccessibleName(tr("Note of the bookmark"));
  note_->setPlaceholderText(tr("Note of the chosen bookmark"));
  connect(note_, &QLineEdit::editingFinished, this, &BookmarkList::note_typed);
  bar->add(note_, 1);
  remove_ = new QToolButton(bar);
  remove_->setObjectName(view + ".unbookmark");
  remove_->setText(tr("Remove"));
  connect(remove_, &QToolButton::clicked, this, &BookmarkList::remove);
  bar->add(remove_);
  box->addWidget(bar);
  list_ = new TableList(this);
  list_->setObjectName(view + ".bookmarks");
  list_->setAccessibleName(tr("Bookmarks"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  box->addWidget(list_, 1);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    const Document* d = shown() ? bench_.shown_document() : nullptr;
    if (!d || s.kind != picture_->selection(*d, {}).kind) return;
    chosen_ = s;
    fill();
  });
  refresh();
}

BookmarkList::~BookmarkList() {
  for (auto& [document, kept] : kept_) keep(document, kept);
}

BookmarkList::Kept* BookmarkList::shown() {
  const Document* d = picture_->shows_document() ? bench_.shown_document() : nullptr;
  const auto at = d ? kept_.find(d->id) : kept_.end();
  return at == kept_.end() ? nullptr : &at->second;
}

QString BookmarkList::title() const {
  const size_t n = picture_->bookmarks().size();
  return n ? tr("Bookmarks (%1)").arg(n) : tr("Bookmarks");
}

void BookmarkList::refresh() {
  for (auto at = kept_.begin(); at != kept_.end();) {
    const bool open = bench_.document(at->first) != nullptr;
    if (!open) keep(at->first, at->second);
    at = open ? std::next(at) : kept_.erase(at);
  }
  for (const Document& d : bench_.documents()) {
    if (!picture_->holds(d) || kept_.contains(d.id)) continue;
    const DocumentState state = document_state(d.path);
    kept_[d.id] = {d.path, state, state};
    if (state != DocumentState{}) picture_->look_as(d.id, state);
  }
  const Kept* kept = shown();
  const std::vector<Bookmark> of_shown = kept ? kept->is.bookmarks : std::vector<Bookmark>();
  if (picture_->bookmarks() != of_shown) picture_->set_bookmarks(of_shown);
  fill();
}

/// Takes down how the document is seen, for the next time.
void BookmarkList::keep(int document, Kept& kept) {
  picture_->take_down(document, kept.is);
  save(kept, false);
}

void BookmarkList::save(Kept& kept, bool aloud) {
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

void BookmarkList::add() {
  Kept* kept = shown();
  if (!kept) return;
  const Bookmark b = picture_->bookmark_here();
  auto& all = kept->is.bookmarks;
  if (std::find_if(all.begin(), all.end(), [&](const Bookmark& o) { return o.from == b.from && o.to == b.to; }) ==
      all.end())
    all.insert(std::upper_bound(all.begin(), all.end(), b,
                                [](const Bookmark& x, const Bookmark& y) { return x.from < y.from; }),
               b);
  chosen_ = picture_->selection(*bench_.shown_document(), b);
  picture_->set_bookmarks(all);
  save(*kept, true);
  fill();
  emit counted();
  note_->setFocus();
  note_->selectAll();
}

int BookmarkList::chosen() const {
  const Document* d = bench_.shown_document();
  const auto& all = picture_->bookmarks();
  for (size_t i = 0; d && i < all.size(); ++i)
    if (picture_->selection(*d, all[i]).same(chosen_)) return static_cast<int>(i);
  return -1;
}

void BookmarkList::note_typed() {
  Kept* kept = shown();
  const int i = chosen();
  if (!kept || i < 0 || static_cast<size_t>(i) >= kept->is.bookmarks.size()) return;
  std::string& note = kept->is.bookmarks[static_cast<size_t>(i)].note;
  if (note == note_->text().toStdString()) return;
  note = note_->text().toStdString();
  picture_->set_bookmarks(kept->is.bookmarks);
  save(*kept, true);
  fill();
}

void BookmarkList::remove() {
  Kept* kept = shown();
  const int i = chosen();
  if (!kept || i < 0 || static_cast<size_t>(i) >= kept->is.bookmarks.size()) return;
  kept->is.bookmarks.erase(kept->is.bookmarks.begin() + i);
  chosen_ = {};
  picture_->set_bookmarks(kept->is.bookmarks);
  save(*kept, true);
  fill();
  emit counted();
}

void BookmarkList::fill() {
  Table t;
  t.columns = picture_->columns();
  t.columns.push_back({views::tr("Note")});
  const Document* d = bench_.shown_document();
  const int now = chosen();
  const auto& all = picture_->bookmarks();
  for (size_t i = 0; d && i < all.size(); ++i) {
    Table::Row row;
    row.selection = picture_->selection(*d, all[i]);
    row.cells = picture_->cells(*d, all[i]);
    row.cells.push_back({all[i].note, 0, {}, Ink::none});
    t.rows.push_back(std::move(row));
  }
  list_->set_table(std::move(t));
  if (now >= 0) list_->mark(chosen_);
  note_->setEnabled(now >= 0);
  remove_->setEnabled(now >= 0);
  const QString note = now >= 0 ? QString::fromStdString(all[static_cast<size_t>(now)].note) : QString();
  if (note_->text() != note) note_->setText(note);
}

}  // namespace tenon::views
