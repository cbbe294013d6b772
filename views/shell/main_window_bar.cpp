// The bar, the banner, the status bar and the menus of the main window.
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QMenu>
#include <QMenuBar>
#include <QStatusBar>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "tracing/record/step_record.h"
#include "views/canvas/glyphs.h"
#include "views/shared/format.h"
#include "views/shell/main_window.h"
#include "views/shell/start_page.h"

namespace tenon::views {

using projects::RunStatus;

QToolButton* MainWindow::tool(const QString& command, bool with_text) {
  auto* b = new QToolButton(this);
  b->setDefaultAction(commands_.action(command));
  b->setToolButtonStyle(with_text ? Qt::ToolButtonTextBesideIcon : Qt::ToolButtonIconOnly);
  b->setIconSize({16, 16});
  if (!with_text) b->setFixedWidth(32);
  b->setObjectName("tool." + command);
  b->setAccessibleName(commands_.action(command)->text());
  return b;
}

namespace {
/// A section that is a menu of its own: all of its menu in one would be longer than a small screen is high.
struct OwnMenu {
  const char *menu, *title;
  int section;
};
constexpr OwnMenu kOwnMenus[] = {{"Model", tr_later("Align"), 3},
                                 {"Run", tr_later("Curves"), run_menu::curves},
                                 {"Run", tr_later("Sweep"), run_menu::sweep},
                                 {"Run", tr_later("Diagnose"), run_menu::looking}};

/// The views by the layouts that have them; those that every layout has stand beside these menus.
void add_views(QMenu* menu, const Commands& commands) {
  const auto show = [&](const ViewDef& def) { return commands.action(QString("view.") + def.id); };
  for (const NamedLayout& l : named_layouts()) {
    QMenu* of_layout = menu->addMenu(MainWindow::tr(l.name));
    for (const ViewDef& def : view_defs())
      if (std::any_of(def.layouts.begin(), def.layouts.end(), [&](const char* has) { return QString(has) == l.name; }))
        of_layout->addAction(show(def));
  }
  for (const ViewDef& def : view_defs())
    if (def.layouts.empty()) menu->addAction(show(def));
}

/// `items` of one section, of which `menu` has others already or not.
void add_section(QMenu* menu, const QString& title, const std::vector<const Command*>& items,
                 const Commands& commands) {
  const auto* own = std::find_if(std::begin(kOwnMenus), std::end(kOwnMenus),
                                 [&](const OwnMenu& m) { return title == m.menu && items[0]->section == m.section; });
  const bool one_line = own != std::end(kOwnMenus);
  // Menus of their own stand together.
  if (!menu->isEmpty() && !(one_line && menu->actions().back()->menu())) menu->addSeparator();
  if (title == "View" && items[0]->id.startsWith("view.")) return add_views(menu, commands);
  QMenu* within = one_line ? menu->addMenu(MainWindow::tr(own->title)) : menu;
  for (const Command* c : items) within->addAction(commands.action(c->id));
}
}  // namespace

void MainWindow::build_menus() {
  for (const char* title : {tr_later("File"), tr_later("Edit"), tr_later("Model"), tr_later("Run"), tr_later("View"),
                            tr_later("Filter"), tr_later("Tools"), tr_later("Help")}) {
    std::map<int, std::vector<const Command*>> sections;
    for (const Command& c : commands_.all())
      if (c.menu == title) sections[c.section].push_back(&c);
    if (sections.empty()) continue;
    QMenu* menu = menuBar()->addMenu(tr(title));
    for (const auto& [section, items] : sections) add_section(menu, title, items, commands_);
  }
  auto* corner = new QWidget(this);
  auto* row = new QHBoxLayout(corner);
  row->setContentsMargins(0, 2, 10, 2);
  row->setSpacing(2);
  for (const NamedLayout& l : named_layouts()) {
    auto* b = new QToolButton(corner);
    b->setText(tr(l.name));
    b->setCheckable(true);
    b->setObjectName(QString("layout.%1").arg(l.name));
    set_style(b, "layout", "true");
    connect(b, &QToolButton::clicked, this,
            [this, name = QString(l.name)] { commands_.run("layout." + name.toLower()); });
    row->addWidget(b);
    layout_buttons_ << b;
  }
  menuBar()->setCornerWidget(corner);
}

void MainWindow::build_bar() {
  auto* bar = new QToolBar(tr("Run"), this);
  bar->setObjectName("bar");
  bar->setMovable(false);
  bar->setIconSize({16, 16});  // buttons in it have its size, not their own: icons would grow on a display of scale 2
  bar->setContextMenuPolicy(Qt::PreventContextMenu);
  addToolBar(Qt::TopToolBarArea, bar);
  train_button_ = tool("run.train", true);
  train_button_->setMinimumWidth(84);  // "Resume" and "Train" take the same room
  bar->addWidget(train_button_);
  bar->addWidget(tool("run.pause", false));
  bar->addWidget(tool("run.step", true));
  bar->addWidget(tool("run.stop", false));
  bar->addSeparator();
  auto* run_label = new QLabel(tr("run "), bar);
  set_style(run_label, "voice", "secondary");
  spare_words_ << bar->addWidget(run_label);
  runs_ = new QComboBox(bar);
  runs_->setObjectName("runs");
  runs_->setMinimumWidth(132);
  runs_->setAccessibleName(tr("Run that is shown"));
  connect(runs_, &QComboBox::activated, this,
          [this](int i) { bench_.select(Selection::run(runs_->itemData(i).toLongLong(), "bar")); });
  bar->addWidget(runs_);
  auto* device = new QLabel(tr("  device "), bar);
  set_style(device, "voice", "secondary");
  spare_words_ << bar->addWidget(device);
  spare_words_ << bar->addWidget(new QLabel("cpu ", bar));
  bar->addSeparator();
  auto* rewind = new QLabel(bar);
  rewind->setObjectName("rewind");
  bar->addWidget(rewind);
  step_label_ = new QLabel(bar);
  step_label_->setFont(face_font(Face::mono));
  step_label_->setMinimumWidth(
      text_width(views::tr("step {} / {}", format_grouped(100000), format_grouped(100000)), Face::mono));
  bar->addWidget(step_label_);
  slider_ = new QSlider(Qt::Horizontal, bar);
  slider_->setObjectName("step");
  slider_->setAccessibleName(tr("Step of the run: go back in time"));
  slider_->setToolTip(tr("Go back in time: every view follows to the step"));
  slider_->setMinimumWidth(72);
  slider_->setPageStep(10);
  bar->addWidget(slider_);
  step_timer_.setSingleShot(true);
  step_timer_.setInterval(250);  // keys and the wheel: the last of a burst counts
  connect(&step_timer_, &QTimer::timeout, this, [this] { bench_.select(Selection::step(slider_->value(), "slider")); });
  connect(slider_, &QSlider::valueChanged, this, [this](int) {
    if (!slider_->isSliderDown())
      step_timer_.start();  // first: while it runs the bar leaves the slider where it was put
    refresh_bar();
  });
  connect(slider_, &QSlider::sliderReleased, this, [this] {
    step_timer_.stop();
    bench_.select(Selection::step(slider_->value(), "slider"));
  });
  bar->addSeparator();
  bar->addWidget(tool("go.back", false));
  bar->addWidget(tool("go.forward", false));
  bar->addWidget(tool("go.to", true));
}

void MainWindow::build_banner() {
  addToolBarBreak();
  banner_ = new QToolBar(tr("Problem"), this);
  banner_->setObjectName("banner");
  banner_->setMovable(false);
  banner_->setContextMenuPolicy(Qt::PreventContextMenu);
  auto* frame = banner_frame_ = new QFrame(banner_);
  set_style(frame, "surface", "banner");
  frame->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  auto* row = new QHBoxLayout(frame);
  row->setContentsMargins(12, 4, 6, 4);
  banner_text_ = new QLabel(frame);
  banner_text_->setObjectName("banner.text");
  banner_text_->setWordWrap(true);
  banner_text_->setTextFormat(Qt::PlainText);
  banner_text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  row->addWidget(banner_text_, 1);
  auto button = [&](const QString& text, std::function<void()> run) {
    auto* b = new QToolButton(frame);
    b->setText(text);
    connect(b, &QToolButton::clicked, this, [run] { run(); });
    row->addWidget(b);
    return b;
  };
  banner_action_ = button("", [this] {
    if (auto act = result_.holds ? result_.act : notice_.act) act();  // it goes when what it says is over
  });
  banner_action_->setObjectName("banner.action");
  set_style(banner_action_, "primary", "true");
  button(tr("Copy"), [this] { QApplication::clipboard()->setText(banner_text_->text()); });
  button(tr("Dismiss"), [this] {
    banner_->hide();
    warnings_ = 0;  // they were seen; the log keeps them
    refresh_status();
    // A notice that still holds may lie under the problem, or under a result.
    const bool over = std::exchange(problem_shown_, false) || result_.holds;
    result_ = {};
    if (over && notice_.holds && notice_.holds())
      show_banner("notice", notice_.title + ": " + notice_.message, notice_.button);
  });
  banner_->addWidget(frame);
  addToolBar(Qt::TopToolBarArea, banner_);
  banner_->hide();
}

void MainWindow::show_problem(const QString& title, const QString& message, const QString& hint) {
  ++warnings_;
  problem_shown_ = true;
  problem_of_open_ = false;
  result_ = {};
  show_banner("bad", title + ": " + message + (hint.isEmpty() ? QString() : "\n" + hint), {});
  refresh_status();
}

/// A file was opened: nobody needs to read any more that one could not be. The log keeps it.
void MainWindow::problem_over() {
  if (!problem_shown_ || !problem_of_open_) return;
  problem_shown_ = false;
  banner_->hide();
  if (notice_.holds && notice_.holds()) show_banner("notice", notice_.title + ": " + notice_.message, notice_.button);
}

void MainWindow::show_notice(const Notice& notice) {
  if (notice.result) {
    result_ = notice;
    return show_banner("notice", notice.title + ": " + notice.message, notice.button);
  }
  const bool news = notice.title != notice_.title;
  notice_ = notice;
  // Its words may change while it lasts: that brings it neither over a problem that nobody has read yet nor back once
  // it was dismissed.
  if (problem_shown_ && banner_->isVisible()) return;
  if (news || (banner_->isVisible() && !result_.holds)) {
    result_ = {};
    show_banner("notice", notice.title + ": " + notice.message, notice.button);
  }
}

void MainWindow::drop_notice() {
  if (result_.holds && !result_.holds()) {
    result_ = {};
    if (!problem_shown_) banner_->hide();
    if (!problem_shown_ && notice_.holds && notice_.holds())
      show_banner("notice", notice_.title + ": " + notice_.message, notice_.button);
  }
  if (!notice_.holds || notice_.holds()) return;
  notice_ = {};
  if (!problem_shown_ && !result_.holds) banner_->hide();
}

void MainWindow::show_banner(const QString& tone, const QString& text, const QString& button) {
  set_style(banner_frame_, "tone", tone);
  banner_text_->setText(text);
  const bool acts = !button.isEmpty();
  if (tone == "notice") problem_shown_ = false;
  banner_action_->setText(button);
  banner_action_->setVisible(acts);
  fit_banner();  // first: the window gives a bar its height as it is shown
  banner_->show();
}

/// As tall as its words need at the window's width: a label that breaks lines asks a toolbar for those of a narrow one.
void MainWindow::fit_banner() {
  constexpr int kAround = 42;  // margins and spaces
  int buttons = kAround;
  for (const QToolButton* b : banner_frame_->findChildren<QToolButton*>())
    if (!b->isHidden()) buttons += b->sizeHint().width();
  buttons = std::max(buttons, banner_action_->isHidden() ? 190 : 280);
  const QRect room(0, 0, std::max(120, width() - buttons), 1000);
  banner_text_->setFixedHeight(
      banner_text_->fontMetrics().boundingRect(room, Qt::TextWordWrap, banner_text_->text()).height() + 6);
}

void MainWindow::resizeEvent(QResizeEvent* e) {
  QMainWindow::resizeEvent(e);
  constexpr int kRoomForWords = 1120;  // on a smaller screen the controls have the bar for themselves
  for (QAction* words : spare_words_) words->setVisible(width() >= kRoomForWords);
  if (!start_->isHidden()) fit_start();
  if (!banner_->isHidden()) fit_banner();
}

void MainWindow::build_status() {
  QStatusBar* bar = statusBar();
  bar->setSizeGripEnabled(false);
  bar->setContentsMargins(8, 0, 8, 0);
  auto add = [&](const QString& wide, bool mono) {
    auto* l = new QLabel(bar);
    l->setFont(face_font(mono ? Face::mono_small : Face::body));
    l->setMinimumWidth(QFontMetrics(l->font()).horizontalAdvance(wide));  // numbers change, places do not
    bar->addWidget(l);
    return l;
  };
  state_label_ = add("● " + tr("training"), false);
  state_label_->setObjectName("status.state");
  state_label_->setContentsMargins(0, 3, 0, 0);  // coloured words are set higher than plain ones: on one line with them
  epoch_label_ = add(tr("epoch %1/%2").arg("10", "10") + "  ", true);
  speed_label_ = add("99.9 k " + tr("samples") + "/s  ", true);
  loss_label_ = add(tr("loss %1").arg("1.00e+05") + "  ", true);
  live_label_ = add(tr("live %1").arg("99.9 MiB") + "  ", true);
  peak_label_ = add(tr("peak %1").arg("99.9 MiB") + "  ", true);
  auto corner = [&](const QString& name, const QString& view) {
    auto* b = new QToolButton(bar);
    b->setObjectName(name);
    set_style(b, "slim", "true");
    connect(b, &QToolButton::clicked, this, [this, view] { show_view(view); });
    bar->addPermanentWidget(b);
    return b;
  };
  jobs_button_ = corner("status.jobs", "jobs");
  warnings_button_ = corner("status.warnings", "log");
}

void MainWindow::refresh_status() {
  const RunStatus& s = bench_.status();
  static constexpr const char* kStates[] = {tr_later("starting"), tr_later("training"), tr_later("paused"),
                                            tr_later("finished"), tr_later("stopped"),  tr_later("failed"),
                                            tr_later("pruned")};
  static constexpr Ink kInks[] = {Ink::secondary, Ink::accent, Ink::warning,  Ink::good,
                                  Ink::secondary, Ink::bad,    Ink::secondary};
  bool known = s.run != 0;
  int k = static_cast<int>(s.state);
  const bool early = s.state == RunStatus::State::finished && !s.error.empty();
  auto text = [](const std::string& t) { return QString::fromStdString(t); };
  state_label_->setTextFormat(Qt::RichText);
  state_label_->setToolTip(text(s.paused_by));
  const QString state = early ? tr("stopped early") : s.paused_by.empty() ? tr(kStates[k]) : tr("paused by a watch");
  if (known)
    state_label_->setText(QString("<span style='color:%1'>●</span> %2").arg(qcolor(kInks[k], theme_).name(), state));
  else
    state_label_->setText(bench_.has_project() ? tr("ready") : tr("no project"));
  epoch_label_->setText(known && s.epochs ? tr("epoch %1/%2").arg(std::min(s.epoch + 1, s.epochs)).arg(s.epochs)
                                          : QString());
  speed_label_->setText(
      known && s.samples_per_second > 0 ? text(format_rate(s.samples_per_second, views::tr("samples"))) : QString());
  loss_label_->setText(known && s.step > 0 ? tr("loss %1").arg(text(format_value(s.loss))) : QString());
  live_label_->setText(
      known && s.live_bytes > 0 ? tr("live %1").arg(text(format_bytes(static_cast<double>(s.live_bytes)))) : QString());
  peak_label_->setText(
      known && s.peak_bytes > 0 ? tr("peak %1").arg(text(format_bytes(static_cast<double>(s.peak_bytes)))) : QString());
  size_t jobs = 0;
  for (auto& j : bench_.jobs.list()) jobs += !j->quiet;
  jobs_button_->setText(jobs == 0 ? tr("Jobs") : jobs == 1 ? tr("1 job") : tr("%1 jobs").arg(jobs));
  warnings_button_->setText(QString("⚠ %1").arg(warnings_));
  warnings_button_->setVisible(warnings_ > 0);
}

void MainWindow::refresh_bar() {
  const auto& runs = bench_.contents().runs;
  QStringList names;
  for (auto r = runs.rbegin(); r != runs.rend(); ++r) names << QString::fromStdString(r->name);
  QStringList have;
  for (int i = 0; i < runs_->count(); ++i) have << runs_->itemText(i);
  if (names != have) {
    runs_->clear();
    for (auto r = runs.rbegin(); r != runs.rend(); ++r)
      runs_->addItem(QString::fromStdString(r->name), qlonglong(r->id));
  }
  runs_->setEnabled(runs_->count() > 0);
  runs_->setPlaceholderText(tr("no run yet"));
  runs_->setCurrentIndex(runs_->findData(qlonglong(bench_.shown_run())));

  // The slider: as long as what was done; at the loaded (or wanted) step, else at the end.
  int64_t steps = bench_.shown_steps();
  const Selection& s = bench_.bus.current();
  int64_t at = s.kind == Selection::Kind::step ? s.id : bench_.links() ? bench_.links().record()->step : steps;
  if (slider_->isSliderDown() || step_timer_.isActive()) at = slider_->value();
  QSignalBlocker quiet(slider_);
  slider_->setRange(steps > 0 ? 1 : 0, static_cast<int>(std::max<int64_t>(steps, 0)));
  slider_->setEnabled(steps > 0);
  if (!slider_->isSliderDown() && !step_timer_.isActive()) slider_->setValue(static_cast<int>(at));
  const QString done = QString::fromStdString(format_grouped(steps));
  step_label_->setText(steps > 0 ? QString::fromStdString(views::tr("step {} / {}", format_grouped(at),
                                                                    format_grouped(bench_.shown_total_steps())))
                                 : tr("no steps yet"));
  slider_->setToolTip(steps > 0 ? tr("Go back in time: every view follows to the step. It ends at step %1, the "
                                     "last that was trained.")
                                      .arg(done)
                                : tr("Go back in time: every view follows to the step"));
  if (auto* rewind = findChild<QLabel*>("rewind"))
    rewind->setPixmap(icon("rewind", theme_, steps > 0 ? Ink::accent : Ink::secondary).pixmap(16, 16));
}

}  // namespace tenon::views
