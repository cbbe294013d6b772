#include "views/shell/start_page.h"

#include <QContextMenuEvent>
#include <QDateTime>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMenu>
#include <QScrollArea>
#include <QStackedWidget>
#include <QSvgRenderer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>

#include "engine/templates/templates.h"
#include "views/canvas/glyphs.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
constexpr int kMostShown = 8;  // of the files of before; the list of all is a command
constexpr int kTwoColumns = 820;

QLabel* label(const QString& text, const char* voice, QWidget* parent) {
  auto* l = new QLabel(text, parent);
  set_style(l, "voice", voice);
  l->setAttribute(Qt::WA_TransparentForMouseEvents);
  return l;
}
}  // namespace

/// A button of two lines: an icon, a name, and quieter what it is; a note at the right edge.
class StartPage::Line : public QPushButton {
 public:
  Line(const QString& icon_name, const QString& title, const QString& about, QWidget* parent) : QPushButton(parent) {
    setProperty("icon_name", icon_name);
    set_style(this, "line", "true");
    setAccessibleName(title);
    setAccessibleDescription(about);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(10, 4, 10, 4);
    row->setSpacing(10);
    picture_ = label({}, "", this);
    row->addWidget(picture_, 0, Qt::AlignVCenter);
    auto* words = new QVBoxLayout;
    words->setSpacing(0);
    title_ = new ElidedLabel(title, this);
    title_->setAttribute(Qt::WA_TransparentForMouseEvents);
    about_ = new ElidedLabel(about, this);
    about_->setAttribute(Qt::WA_TransparentForMouseEvents);
    set_style(about_, "voice", "small");
    words->addWidget(title_);
    words->addWidget(about_);
    row->addLayout(words, 1);
    note_ = label({}, "small", this);
    row->addWidget(note_, 0, Qt::AlignVCenter);
    setToolTip(about);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  }
  void set_note(const QString& text, const char* voice) {
    note_->setText(text);
    set_style(note_, "voice", voice);
    setAccessibleDescription(about_->toolTip() + ", " + text);
  }
  void set_theme(ThemeName theme) {
    picture_->setPixmap(views::icon(property("icon_name").toString(), theme, Ink::secondary).pixmap(16, 16));
    updateGeometry();  // the letters may have another size
  }
  QSize sizeHint() const override { return {200, minimumSizeHint().height()}; }
  QSize minimumSizeHint() const override {
    return {120, QFontMetrics(face_font(Face::body)).height() + QFontMetrics(face_font(Face::small)).height() + 11};
  }
  std::function<void()> on_remove;
  std::function<void(bool down)> on_move;

 protected:
  void keyPressEvent(QKeyEvent* e) override {
    if (e->key() == Qt::Key_Delete && on_remove) return on_remove();
    if (e->key() == Qt::Key_Return || e->key() == Qt::Key_Enter) return click();
    // The page knows the lines around; left to itself, the scroll area between would scroll.
    if (on_move && (e->key() == Qt::Key_Up || e->key() == Qt::Key_Down)) return on_move(e->key() == Qt::Key_Down);
    QPushButton::keyPressEvent(e);
  }
  void contextMenuEvent(QContextMenuEvent* e) override {
    if (!on_remove) return;
    QMenu menu(this);
    menu.addAction(tr("Remove from this list"), this, [this] {
      if (auto remove = on_remove) remove();
    });
    menu.exec(e->globalPos());
  }

 private:
  QLabel *picture_, *note_;
  ElidedLabel *title_, *about_;
};

StartPage::StartPage(Workbench& bench, Commands& commands, QWidget* parent)
    : QWidget(parent),
      bench_(bench),
      commands_(commands),
      stack_(new QStackedWidget(this)),
      work_(new EmptyState(this)) {
  setObjectName("start");
  setAccessibleName(tr("Start page"));
  set_style(this, "surface", "base");
  setAttribute(Qt::WA_StyledBackground);
  setAutoFillBackground(true);
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->addWidget(stack_);
  build();
  stack_->addWidget(work_);
  connect(&bench.jobs, &Jobs::changed, this, &StartPage::show_work);
  connect(&bench.files, &Jobs::changed, this, &StartPage::show_work);
}

void StartPage::build() {
  auto* scroll = new QScrollArea(stack_);
  scroll->setObjectName("start.scroll");
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* page = new QWidget(scroll);
  set_style(page, "surface", "base");
  page->setAttribute(Qt::WA_StyledBackground);
  auto* middle = new QHBoxLayout(page);
  middle->setContentsMargins(24, 24, 24, 24);
  middle->addStretch(1);
  auto* content = new QWidget(page);
  content->setMaximumWidth(1040);
  content->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  middle->addWidget(content, 1000);
  middle->addStretch(1);
  auto* box = new QVBoxLayout(content);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(20);
  box->addWidget(build_head());
  box->addWidget(build_tour());
  columns_ = new QBoxLayout(QBoxLayout::LeftToRight);
  columns_->setSpacing(32);
  auto* left = new QWidget(content);
  recent_ = new QVBoxLayout(left);
  recent_->setContentsMargins(0, 0, 0, 0);
  recent_->setSpacing(2);
  auto* title = label(tr("Recent"), "title", left);
  title->setContentsMargins(10, 0, 0, 6);
  recent_->addWidget(title);
  recent_->addStretch(1);
  columns_->addWidget(left, 2);
  columns_->addWidget(build_templates(), 3);
  box->addLayout(columns_);
  box->addStretch(1);
  scroll->setWidget(page);
  stack_->addWidget(scroll);
  show_recent({});
}

QWidget* StartPage::build_head() {
  auto* head = new QWidget(this);
  auto* row = new QHBoxLayout(head);
  row->setContentsMargins(10, 0, 0, 0);
  row->setSpacing(14);
  auto* mark = new QLabel(head);
  QPixmap pixmap(QSize(40, 40) * 2);
  pixmap.fill(Qt::transparent);
  {
    QPainter painter(&pixmap);
    QSvgRenderer(QString(":/icons/tenon.svg")).render(&painter);
  }
  pixmap.setDevicePixelRatio(2);
  mark->setPixmap(pixmap);
  row->addWidget(mark);
  auto* words = new QVBoxLayout;
  words->setSpacing(0);
  words->addWidget(label("Tenon", "title", head));
  auto* about = new ElidedLabel(tr("Build a model, train it, and look at every step of it."), head);
  set_style(about, "voice", "secondary");
  words->addWidget(about);
  row->addLayout(words, 1);
  auto* own = new QPushButton(tr("From my data…"), head);
  own->setObjectName("start.own");
  own->setToolTip(tr("A project for data of your own: what kind they are, they say themselves"));
  auto* kinds = new QMenu(own);
  for (const auto& [id, text] : {std::pair("file.new_file", tr("A file: a table or a text…")),
                                 std::pair("file.new_folder", tr("A folder: images, sounds, arrays…"))})
    kinds->addAction(text, this, [this, id = QString(id)] { commands_.run(id); })
        ->setObjectName(QString("start.") + id);
  own->setMenu(kinds);
  row->addWidget(own);
  for (const char* id : {"file.open", "file.new_empty"}) {
    const Command* c = commands_.find(id);
    auto* b = new QPushButton(c->title, head);
    b->setObjectName(QString("start.") + id);
    b->setToolTip(commands_.action(id)->toolTip());
    set_style(b, "primary", QString(id) == "file.open" ? "true" : "false");
    connect(b, &QPushButton::clicked, this, [this, id = QString(id)] { commands_.run(id); });
    row->addWidget(b);
  }
  return head;
}

QWidget* StartPage::build_tour() {
  auto* card = new QFrame(this);
  tour_ = card;
  set_style(card, "surface", "raised");
  auto* row = new QHBoxLayout(card);
  row->setContentsMargins(12, 10, 12, 10);
  row->setSpacing(8);
  auto* words = new QVBoxLayout;
  words->setSpacing(2);
  words->addWidget(label(tr("A tour in three steps"), "", card));
  auto* about = new QLabel(
      tr("Make a small project, train it, and look into one of its steps. It takes a few minutes and needs no data "
         "files."),
      card);
  about->setWordWrap(true);
  set_style(about, "voice", "secondary");
  words->addWidget(about);
  row->addLayout(words, 1);
  no_tour_ = new QPushButton(tr("Not now"), card);
  no_tour_->setObjectName("start.no_tour");
  connect(no_tour_, &QPushButton::clicked, this, [this] {
    if (on_no_tour) on_no_tour();
  });
  row->addWidget(no_tour_);
  auto* begin = new QPushButton(tr("Start the tour"), card);
  begin->setObjectName("start.tour");
  connect(begin, &QPushButton::clicked, this, [this] {
    if (on_tour) on_tour();
  });
  row->addWidget(begin);
  return card;
}

QWidget* StartPage::build_templates() {
  auto* column = new QWidget(this);
  auto* box = new QVBoxLayout(column);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(2);
  auto* title = label(tr("New from a template"), "title", column);
  title->setContentsMargins(10, 0, 0, 6);
  box->addWidget(title);
  for (const Template& t : templates()) {
    auto* line = new Line("model", QString::fromStdString(t.name), QString::fromStdString(t.title), column);
    line->setObjectName("template." + QString::fromStdString(t.name));
    line->on_move = [this](bool down) { move_focus(down); };
    connect(line, &QPushButton::clicked, this, [this, name = t.name] {
      if (on_template) on_template(name);
    });
    box->addWidget(line);
  }
  box->addStretch(1);
  return column;
}

void StartPage::set_touring(bool on) { tour_->setVisible(!on); }

void StartPage::refresh() {
  no_tour_->setVisible(!settings::tour_seen());
  bench_.files.start(
      "recent", tr("Look for the files of before"),
      [](const Jobs::Report&, const std::atomic<bool>&) {
        std::vector<Found> found;
        for (const settings::RecentFile& f : settings::recent()) {
          std::error_code code;
          found.push_back({f, std::filesystem::exists(f.path, code)});
        }
        return found;
      },
      [this](const std::vector<Found>& found) { show_recent(found); }, {}, true);
}

void StartPage::show_recent(const std::vector<Found>& files) {
  QString focused;
  for (QWidget* w : recent_rows_) {
    for (QWidget* inside : w->findChildren<QWidget*>())
      if (inside->hasFocus()) focused = inside->objectName();
    recent_->removeWidget(w);
    discard(w);
  }
  recent_rows_.clear();
  for (int i = 0; i < std::min(kMostShown, static_cast<int>(files.size())); ++i)
    add_recent(files[static_cast<size_t>(i)]);
  if (files.empty()) {
    auto* none = label(tr("Files that you open will be here."), "secondary", this);
    none->setContentsMargins(10, 4, 0, 0);
    recent_rows_ << none;
    recent_->insertWidget(recent_->count() - 1, none);
  } else if (static_cast<int>(files.size()) > kMostShown) {
    auto* all = new QPushButton(tr("All %1…").arg(files.size()), this);
    all->setObjectName("start.all_recent");
    connect(all, &QPushButton::clicked, this, [this] { commands_.run("file.recent"); });
    auto* row = new QWidget(this);
    auto* box = new QHBoxLayout(row);
    box->setContentsMargins(10, 6, 0, 0);
    all->setParent(row);
    box->addWidget(all);
    box->addStretch(1);
    recent_rows_ << row;
    recent_->insertWidget(recent_->count() - 1, row);
  }
  dress();
  order_tabs();
  if (!focused.isEmpty())
    if (auto* w = findChild<QWidget*>(focused)) w->setFocus();
}

/// The words of name(Document::Kind).
[[maybe_unused]] static constexpr const char* kKinds[] = {tr_later("project"), tr_later("trace"), tr_later("snapshot"),
                                                          tr_later("model")};
/// The icon of a kind of document, as settings name it.
static QString icon_of(const std::string& kind) {
  return kind == name(Document::Kind::trace)      ? "timeline"
         : kind == name(Document::Kind::snapshot) ? "memory"
         : kind == name(Document::Kind::model)    ? "model"
                                                  : "project";
}

void StartPage::add_recent(const Found& found) {
  const QFileInfo file(QString::fromStdString(found.file.path));
  auto* row = new QWidget(this);
  auto* box = new QHBoxLayout(row);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(4);
  auto* line = new Line(icon_of(found.file.kind), file.fileName(), file.absolutePath(), row);
  line->setObjectName("recent." + file.filePath());
  auto remove = [this, path = file.filePath()] {
    if (on_forget) on_forget(path);
  };
  line->on_remove = remove;
  line->on_move = [this](bool down) { move_focus(down); };
  if (found.there)
    line->set_note(tr(found.file.kind.c_str()) + " · " +
                       QString::fromStdString(format_ago(QDateTime::currentSecsSinceEpoch() - found.file.opened)),
                   "small");
  else
    line->set_note(tr("not there any more"), "small-bad");
  line->setEnabled(found.there);
  connect(line, &QPushButton::clicked, this, [this, path = file.filePath()] { bench_.open(path); });
  box->addWidget(line, 1);
  if (!found.there) {
    auto* gone = new QToolButton(row);
    gone->setText(tr("Remove"));
    gone->setObjectName("forget." + file.filePath());
    gone->setToolTip(tr("Remove it from this list"));
    connect(gone, &QToolButton::clicked, this, remove);
    box->addWidget(gone);
  }
  recent_rows_ << row;
  recent_->insertWidget(recent_->count() - 1, row);
}

/// While a file is read or made the page says so, with a way to cancel it.
void StartPage::show_work() {
  auto made = [](const Jobs::State& job) { return job.tag.startsWith("open ") || job.tag == "create"; };
  for (Jobs* jobs : {&bench_.jobs, &bench_.files})
    for (const auto& job : jobs->list()) {
      if (job->cancelled || (!made(*job) && !Bench::reads_document(*job))) continue;
      if (stack_->currentIndex() == 1) return;
      work_->wait_for(
          *jobs, [made](const Jobs::State& j) { return made(j) || Bench::reads_document(j); },
          tr("it will be here in a moment."));
      return stack_->setCurrentIndex(1);
    }
  stack_->setCurrentIndex(0);
}

void StartPage::set_theme(ThemeName theme) {
  theme_ = theme;
  dress();
}

void StartPage::dress() {
  for (QPushButton* b : findChildren<QPushButton*>())
    if (auto* line = dynamic_cast<Line*>(b)) line->set_theme(theme_);
}

void StartPage::resizeEvent(QResizeEvent* e) {
  QWidget::resizeEvent(e);
  columns_->setDirection(width() < kTwoColumns ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
}

/// Up and down go through the lines: those of the left column, then those of the right.
void StartPage::move_focus(bool down) {
  std::vector<QPushButton*> lines;
  for (QPushButton* b : findChildren<QPushButton*>())
    if (dynamic_cast<Line*>(b) && b->isVisible() && b->isEnabled()) lines.push_back(b);
  auto place = [this](const QPushButton* b) {
    const QPoint at = b->mapTo(this, QPoint(0, 0));
    return std::pair(at.x(), at.y());
  };
  std::sort(lines.begin(), lines.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
  if (lines.empty()) return;
  const auto at = std::find_if(lines.begin(), lines.end(), [](auto* b) { return b->hasFocus(); });
  const auto last = static_cast<std::ptrdiff_t>(lines.size()) - 1;
  const auto index = at == lines.end() ? -1 : at - lines.begin();
  QPushButton* next = lines[static_cast<size_t>(std::clamp<std::ptrdiff_t>(index + (down ? 1 : -1), 0, last))];
  next->setFocus(Qt::TabFocusReason);
  findChild<QScrollArea*>()->ensureWidgetVisible(next);
}

/// Tab goes over the page as it is read; lines of files come later than the rest of it.
void StartPage::order_tabs() {
  QWidget* before = findChild<QPushButton*>("start.tour");
  auto follow = [&before](QWidget* w) {
    setTabOrder(before, w);
    before = w;
  };
  for (QWidget* row : recent_rows_)
    for (QAbstractButton* b : row->findChildren<QAbstractButton*>()) follow(b);
  for (QPushButton* b : findChildren<QPushButton*>())
    if (b->objectName().startsWith("template.")) follow(b);
}

}  // namespace tenon::views
