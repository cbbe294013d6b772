#include "tests/views/shell/window_fixture.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include "engine/templates/templates.h"
#include "views/frame/application.h"

namespace tenon::views::testing {

void WindowTest::SetUp() { ASSERT_TRUE(dir_.isValid()); }

void WindowTest::TearDown() {
  close_window();
  static_cast<Application*>(qApp)->on_exception = nullptr;  // it tells this test
  for (const std::string& t : thrown_) ADD_FAILURE() << "a handler threw: " << t;
}

void WindowTest::close_window() {
  if (window_) window_->close();
  window_.reset();
  bench_.reset();
}

void WindowTest::make_window() {
  bench_ = std::make_unique<Workbench>();
  static_cast<Application*>(qApp)->on_exception = [this](const QString& where, const QString& message,
                                                         const QString& hint) {
    thrown_.push_back((where + ": " + message).toStdString());
    if (bench_) bench_->caught(where, message, hint);
  };
  QObject::connect(bench_.get(), &Workbench::problem,
                   [this](const QString& title, const QString& message, const QString&) {
                     problems_.push_back((title + ": " + message).toStdString());
                   });
  window_ = std::make_unique<MainWindow>(*bench_, ThemeName::dark);
  window_->show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(window_.get()));
  QApplication::setActiveWindow(window_.get());  // no window manager gives it the keys
}

void WindowTest::open(const QString& file) {
  file_ = file;
  if (!window_) make_window();
  bench_->open(file_);
  settle();
}

void WindowTest::open_spirals() {
  file_ = dir_.filePath("t.tenon");
  const Template& t = find_template("spirals");
  projects::Project::create(file_.toStdString(), t.model, t.recipe.to_json());
  open(file_);
  ASSERT_TRUE(bench_->has_project());
}

void WindowTest::until(const std::function<bool()>& what) { ASSERT_TRUE(QTest::qWaitFor(what, 120000)); }

void WindowTest::settle() {
  until([this] { return window_->idle(); });
  QTest::qWait(0);
  until([this] { return window_->idle(); });
  take_picture();
}

/// With TENON_PICTURES=FOLDER whoever reads a test sees what its hand saw: a picture each time that the window is at
/// rest and looks otherwise than on the one before.
void WindowTest::take_picture() {
  const QString folder = qEnvironmentVariable("TENON_PICTURES");
  if (folder.isEmpty() || !window_ || !window_->isVisible()) return;
  const QImage now = window_->grab().toImage();
  if (now == last_picture_) return;
  last_picture_ = now;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const QString name = QString("%1.%2").arg(test->test_suite_name(), test->name()).replace('/', '.');
  const QString file = QString("%1/%2.%3.png").arg(folder, name).arg(++pictures_, 3, 10, QChar('0'));
  EXPECT_TRUE(QDir().mkpath(folder) && now.save(file)) << file.toStdString();
}

void WindowTest::train(int steps, const std::vector<std::pair<std::string, std::string>>& set) {
  const int64_t before = bench_->status().run;
  bench_->train({.set = set, .max_steps = steps});
  // On a busy machine a short run may begin and end within one turn of the loop.
  until([&] { return bench_->status().run != before && !bench_->training(); });
  settle();
}

void WindowTest::load_step(int64_t step) {
  bench_->select(Selection::step(step, "test"));
  settle();
  ASSERT_TRUE(static_cast<bool>(bench_->links()));
}

void WindowTest::key(QWidget* w, Qt::Key k, Qt::KeyboardModifiers m) { QTest::keyClick(w, k, m); }
void WindowTest::click(QWidget* w, QPoint at) { QTest::mouseClick(w, Qt::LeftButton, {}, at); }

void WindowTest::press(const QString& name) {
  QWidget* found = nullptr;
  for (QWidget* w : window_->findChildren<QWidget*>(name))
    if (w->isVisible()) found = w;
  ASSERT_NE(found, nullptr) << name.toStdString() << " is not to be seen";
  ASSERT_TRUE(found->isEnabled()) << name.toStdString();
  click(found, found->rect().center());
}

void WindowTest::choose_in_menu(const QString& title, const QString& command) {
  for (QAction* top : window_->menuBar()->actions()) {
    if (top->text() != title) continue;
    QMenu* menu = top->menu();
    click(window_->menuBar(), window_->menuBar()->actionGeometry(top).center());
    ASSERT_TRUE(menu->isVisible());
    QAction* action = window_->commands().action(command);
    if (!menu->actions().contains(action))
      for (QAction* entry : menu->actions())
        if (QMenu* inner = entry->menu(); inner && inner->actions().contains(action)) {
          click(menu, menu->actionGeometry(entry).center());
          until([&] { return inner->isVisible(); });
          menu = inner;
          break;
        }
    ASSERT_TRUE(menu->actions().contains(action)) << command.toStdString() << " is not in " << title.toStdString();
    ASSERT_TRUE(action->isEnabled()) << command.toStdString();
    click(menu, menu->actionGeometry(action).center());
    return;
  }
  ADD_FAILURE() << "there is no menu " << title.toStdString();
}

void WindowTest::answer(const QString& path, const QString& kind) {
  QTimer::singleShot(0, window_.get(), [path, kind] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(d, nullptr);
    if (!kind.isEmpty()) {
      auto* kinds = d->findChild<QComboBox*>("fileTypeCombo");
      kinds->setFocus();
      while (kinds->currentText() != kind && kinds->currentIndex() + 1 < kinds->count())
        QTest::keyClick(kinds, Qt::Key_Down);
    }
    d->findChild<QLineEdit*>("fileNameEdit")->setText(path);
    QMetaObject::invokeMethod(d, "accept");
  });
}

SceneCanvas* WindowTest::canvas(const QString& id) {
  window_->show_view(id);
  settle();
  return window_->view(id)->canvas();
}

QPoint WindowTest::place(SceneCanvas* c, Hit hit) {
  for (const auto& t : c->model().last().targets())
    if (t.hit == hit) return {static_cast<int>(t.box.x + t.box.w / 2), static_cast<int>(t.box.y + t.box.h / 2)};
  ADD_FAILURE() << "no target " << hit.kind << " " << hit.id;
  return {};
}

QString WindowTest::banner() const { return window_->findChild<QLabel*>("banner.text")->text(); }
bool WindowTest::banner_shown() const { return window_->findChild<QLabel*>("banner.text")->isVisible(); }
QToolButton* WindowTest::banner_action() const {
  auto* b = window_->findChild<QToolButton*>("banner.action");
  return b && b->isVisible() ? b : nullptr;
}

}  // namespace tenon::views::testing
