#include "views/details/details_view.h"

#include <QApplication>
#include <QClipboard>
#include <QGridLayout>
#include <QKeyEvent>
#include <QScrollArea>
#include <QToolTip>
#include <QVBoxLayout>

#include "views/canvas/glyphs.h"

namespace tenon::views {

namespace {
/// A value: click copies it, or follows it where it is a link.
class Value : public ElidedLabel {
 public:
  Value(const QString& text, bool link, std::function<void()> click, QWidget* parent)
      : ElidedLabel(text, parent), click_(std::move(click)) {
    setCursor(Qt::PointingHandCursor);
    setFont(face_font(Face::mono));
    if (link) setForegroundRole(QPalette::Link);
    setFocusPolicy(link ? Qt::TabFocus : Qt::NoFocus);
  }

 protected:
  void mousePressEvent(QMouseEvent*) override { click_(); }
  void keyPressEvent(QKeyEvent* e) override {
    if (e->key() == Qt::Key_Return || e->key() == Qt::Key_Space)
      click_();
    else
      ElidedLabel::keyPressEvent(e);
  }

 private:
  std::function<void()> click_;
};
}  // namespace

DetailsView::DetailsView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent),
      builder_(bench.model<BuilderModel>()),
      scroll_(new QScrollArea(this)),
      page_(new QWidget),
      inspector_(new InspectorView(bench, page_)) {
  box_ = new QVBoxLayout(page_);
  box_->setContentsMargins(14, 12, 14, 12);
  box_->setSpacing(12);
  box_->addWidget(inspector_);
  box_->addStretch();
  inspector_->hide();
  set_style(page_, "surface", "panel");
  page_->setAttribute(Qt::WA_StyledBackground);
  scroll_->setWidget(page_);
  scroll_->setWidgetResizable(true);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  set_content(scroll_);
  connect(&bench, &Bench::selection_changed, this, &DetailsView::refresh);
  connect(&bench, &Bench::step_changed, this, &DetailsView::refresh);
  connect(&bench, &Bench::project_changed, this, &DetailsView::refresh);
  connect(&bench, &Bench::state_changed, this, [this] {
    if (bench_.bus.current().kind == Selection::Kind::module) refresh();  // shapes change with every edit
  });
  refresh();
}

void DetailsView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  shown_.clear();
  refresh();
}

void DetailsView::refresh() {
  Links links = bench_.links();
  const Selection& s = bench_.bus.current();
  read_arguments(s);
  DetailsSources from{&links, &builder_, &bench_.contents(), bench_.document(s.document), &arguments_};
  Details d = details_of(s, from);
  if (d.title.empty()) {
    inspector_->show_layer("");
    set_empty(true, s.document ? "This is in no trace that is open."
                    : s        ? "This belongs to a step that is not loaded."
                               : "Pick anything in the window: what is known of it will be here.");
    shown_.clear();
    return;
  }
  for (const ViewDef& v : view_defs())
    if (v.link && v.shows && v.shows(s, bench_)) d.jumps.push_back({v.id, v.link});
  set_empty(false);
  bool layer = s.kind == Selection::Kind::module && builder_.spec().find(s.name);
  inspector_->show_layer(layer ? s.name : "");
  std::string text =
      d.title + '\n' + d.subtitle;  // the same words need no new widgets: nothing flickers while one types
  for (const auto& j : d.jumps) text += '\t' + j.view;
  for (const auto& section : d.sections) {
    text += '\n' + section.title;
    for (const auto& r : section.rows) text += '\n' + r.name + '\t' + r.value;
  }
  if (text == shown_) return;
  shown_ = text;
  fill(d);
}

/// The arguments of an event stand in its file, which may be packed: they are read away from the UI thread.
void DetailsView::read_arguments(const Selection& s) {
  if (s.kind == arguments_of_.kind && s.same(arguments_of_)) return;
  arguments_of_ = s;
  arguments_.clear();
  const Document* document = bench_.document(s.document);
  if (s.kind != Selection::Kind::event || !document || s.id < 0 ||
      s.id >= static_cast<int64_t>(document->trace->size()))
    return;
  bench_.jobs.start(
      "arguments", "Read the arguments of an event",
      [trace = document->trace, e = static_cast<traces::EventId>(s.id)](const Jobs::Report&, const std::atomic<bool>&) {
        return traces::arguments(*trace, e);
      },
      [this, s](std::vector<std::pair<std::string, std::string>> arguments) {
        if (!s.same(arguments_of_)) return;
        arguments_ = std::move(arguments);
        refresh();
      },
      {}, true);
}

void DetailsView::fill(const Details& d) {
  if (body_) {  // not deleted here: a click into it may be what led here
    box_->removeWidget(body_);
    discard(body_);
  }
  body_ = new QWidget(page_);
  auto* box = new QVBoxLayout(body_);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(10);
  auto* head = new QWidget(body_);
  auto* head_box = new QVBoxLayout(head);
  head_box->setContentsMargins(0, 0, 0, 0);
  head_box->setSpacing(2);
  auto* title = new ElidedLabel(QString::fromStdString(d.title), head);
  title->setFont(face_font(Face::title));
  auto* sub = new ElidedLabel(QString::fromStdString(d.subtitle), head);
  set_style(sub, "voice", "small");
  sub->setFont(face_font(Face::small));
  head_box->addWidget(title);
  head_box->addWidget(sub);
  box->addWidget(head);
  if (!d.jumps.empty()) {
    auto* row = new QHBoxLayout;
    row->setSpacing(5);
    for (const auto& j : d.jumps) {
      auto* b = new QPushButton(QString::fromStdString(j.text), body_);
      set_style(b, "link", "true");
      b->setFont(face_font(Face::small));
      QString view = QString::fromStdString(j.view);
      connect(b, &QPushButton::clicked, this, [this, view] { bench_.ask("view." + view); });
      row->addWidget(b);
    }
    row->addStretch();
    box->addLayout(row);
  }
  for (const auto& section : d.sections) {
    if (!section.title.empty()) {
      auto* t = new QLabel(QString::fromStdString(section.title), body_);
      set_style(t, "voice", "small");
      box->addWidget(t);
    }
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(3);
    grid->setColumnMinimumWidth(0, 84);
    grid->setColumnStretch(1, 1);
    int at = 0;
    for (const auto& r : section.rows) {
      auto* name = new ElidedLabel(QString::fromStdString(r.name), body_);
      set_style(name, "voice", "secondary");
      name->setFixedWidth(84);
      bool bad = r.mark == Ink::bad;
      if (bad) {
        auto* wrong = new QLabel(QString::fromStdString(r.value), body_);
        wrong->setWordWrap(true);
        wrong->setTextInteractionFlags(Qt::TextSelectableByMouse);
        set_style(wrong, "voice", "bad");
        grid->addWidget(name, at, 0, Qt::AlignTop);
        grid->addWidget(wrong, at++, 1);
        continue;
      }
      Selection link = r.link;
      QString copy = QString::fromStdString(r.exact.empty() ? r.value : r.exact);
      auto* value = new Value(
          QString::fromStdString(r.value), static_cast<bool>(link),
          [this, link, copy] {
            if (link) return bench_.select(link);
            QApplication::clipboard()->setText(copy);
            QToolTip::showText(QCursor::pos(), "Copied " + copy, this);
          },
          body_);
      value->setToolTip(link ? QString::fromStdString(r.value) : copy + "\nClick to copy");
      auto* cell = new QHBoxLayout;
      cell->setSpacing(6);
      if (r.mark != Ink::none) {
        auto* dot = new QLabel(body_);
        dot->setFixedSize(8, 8);
        dot->setPixmap(mark(r.mark, theme_, 8));
        cell->addWidget(dot);
      }
      cell->addWidget(value, 1);
      grid->addWidget(name, at, 0);
      grid->addLayout(cell, at++, 1);
    }
    box->addLayout(grid);
  }
  box_->insertWidget(0, body_);
}

namespace {
const bool registered_details_view = register_view<DetailsView>(
    {.id = "details",
     .title = "Details",
     .icon = "details",
     .order = 190,
     .spot = Spot::right,
     .help = {
         "What is selected, with everything that is known of it, and links to its other sides.",
         "A click on a link shows that side in its view; a click on a value copies it.",
         "Tab goes from link to link, Space follows it. Alt+Left and Alt+Right go through what was selected before."}});
}  // namespace

}  // namespace tenon::views
