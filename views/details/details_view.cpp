#include "views/details/details_view.h"

#include <QApplication>
#include <QClipboard>
#include <QGridLayout>
#include <QKeyEvent>
#include <QScrollArea>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>

#include "views/canvas/glyphs.h"
#include "views/frame/flow_layout.h"

namespace tenon::views {

namespace {
/// A value: click copies it, or follows it where it is a link.
class Value : public ElidedLabel {
 public:
  Value(Bench& bench, const Details::Row& row, QWidget* parent) : ElidedLabel({}, parent), bench_(bench) {
    show_row(row);
    setCursor(Qt::PointingHandCursor);
    setFont(face_font(Face::mono));
    if (row.link) setForegroundRole(QPalette::Link);
    setFocusPolicy(row.link ? Qt::TabFocus : Qt::NoFocus);
  }
  void show_row(const Details::Row& row) {
    link_ = row.link;
    copy_ = QString::fromStdString(row.exact.empty() ? row.value : row.exact);
    set_text(QString::fromStdString(row.value));
    setToolTip(link_ ? QString::fromStdString(row.value) : copy_ + "\n" + tr("Click to copy"));
  }

 protected:
  void mousePressEvent(QMouseEvent*) override { click(); }
  void keyPressEvent(QKeyEvent* e) override {
    if (e->key() == Qt::Key_Return || e->key() == Qt::Key_Space)
      click();
    else
      ElidedLabel::keyPressEvent(e);
  }

 private:
  void click() {
    if (link_) return bench_.select(Selection(link_));  // the row may be another one when this returns
    QApplication::clipboard()->setText(copy_);
    QToolTip::showText(QCursor::pos(), tr("Copied %1").arg(copy_), this);
  }
  Bench& bench_;
  Selection link_;
  QString copy_;
};

/// What the widgets are made of; what stands in them is shown in those that are there.
std::string shape_of(const Details& d) {
  std::string text = d.title + '\n' + d.subtitle;
  for (const auto& j : d.jumps) text += '\t' + j.view;
  for (const auto& section : d.sections) {
    text += '\n' + section.title;
    for (const auto& r : section.rows)
      text += '\n' + r.name + '\t' + name(r.mark) + (r.link ? "\tlink" : "") + (r.mark == Ink::bad ? r.value : "");
  }
  return text;
}
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
  connect(&bench, &Bench::status_changed, this, [this] {
    if (bench_.bus.current().kind == Selection::Kind::run) refresh();  // it may be the one that trains
  });
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
  DetailsSources from{&links,     &builder_, &bench_.contents(), bench_.results().get(), bench_.document(s.document),
                      &arguments_};
  Details d = details_of(s, from);
  if (d.title.empty()) {
    inspector_->show_layer("");
    set_empty(true, s.document ? tr("This is in no file that is open.")
                    : s        ? tr("This belongs to a step that is not loaded.")
                               : tr("Pick anything in the window: what is known of it will be here."));
    shown_.clear();
    return;
  }
  for (const ViewDef& v : view_defs())
    if (v.link && v.shows && v.shows(s, bench_)) d.jumps.push_back({v.id, views::tr(v.link)});
  set_empty(false);
  const bool module = s.kind == Selection::Kind::module, layer = module && builder_.spec().find(s.name);
  const bool group = module && !s.name.empty() && builder_.selected_group() == s.name;
  inspector_->show_layer(layer ? s.name : group ? builder_.primary() : "");
  const std::string shape = shape_of(d);
  if (shape != shown_ || values_.empty()) {
    shown_ = shape;
    return fill(d);
  }
  size_t at = 0;  // the same widgets: nothing flickers while one types or trains
  for (const auto& section : d.sections)
    for (const auto& r : section.rows)
      if (r.mark != Ink::bad) static_cast<Value*>(values_[at++])->show_row(r);
}

/// The arguments of an event stand in its file, which may be packed: they are read away from the UI thread.
void DetailsView::read_arguments(const Selection& s) {
  if (s.kind == arguments_of_.kind && s.same(arguments_of_)) return;
  arguments_of_ = s;
  arguments_.clear();
  const Document* document = bench_.document(s.document);
  if (s.kind != Selection::Kind::event || !document || !document->trace || s.id < 0 ||
      s.id >= static_cast<int64_t>(document->trace->size()))
    return;
  bench_.jobs.start(
      "arguments", tr("Read the arguments of an event"),
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
    auto* row = new FlowLayout(5);
    for (const auto& j : d.jumps) {
      auto* b = new QPushButton(QString::fromStdString(j.text), body_);
      set_style(b, "link", "true");
      b->setFont(face_font(Face::small));
      QString view = QString::fromStdString(j.view);
      connect(b, &QPushButton::clicked, this, [this, view] { bench_.ask("view." + view); });
      row->addWidget(b);
    }
    box->addLayout(row);
  }
  int names = 0;  // as wide as they need, as far as that leaves the values most of the room
  for (const auto& section : d.sections)
    for (const auto& r : section.rows)
      names = std::max(names, fontMetrics().horizontalAdvance(QString::fromStdString(r.name)));
  names = std::clamp(names + 4, 56, kWidth * 2 / 5);
  values_.clear();
  for (const auto& section : d.sections) {
    if (!section.title.empty()) {
      auto* t = new QLabel(QString::fromStdString(section.title), body_);
      set_style(t, "voice", "small");
      box->addWidget(t);
    }
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(3);
    grid->setColumnMinimumWidth(0, names);
    grid->setColumnStretch(1, 1);
    int at = 0;
    for (const auto& r : section.rows) {
      auto* name = new ElidedLabel(QString::fromStdString(r.name), body_);
      set_style(name, "voice", "secondary");
      name->setFixedWidth(names);
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
      auto* value = new Value(bench_, r, body_);
      values_.push_back(value);
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
     .title = tr_later("Details"),
     .icon = "details",
     .order = 190,
     .spot = Spot::right,
     .help = {tr_later("What is selected, with everything that is known of it, and links to its other sides."),
              tr_later("A click on a link shows that side in its view; a click on a value copies it."),
              tr_later("Tab goes from link to link, Space follows it. Alt+Left and Alt+Right go through what was "
                       "selected before.")}});
}  // namespace

}  // namespace tenon::views
