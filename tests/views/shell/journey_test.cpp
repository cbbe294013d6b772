// What a person does on the first day, from the start page to a file for somebody else, with a mouse that is counted.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "engine/data/image.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/torch/file.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/templates/templates.h"
#include "projects/time_travel.h"
#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

class Journey : public testing::WindowTest {
 protected:
  void hit(QWidget* w) { hit(w, w->rect().center()); }
  void hit(QWidget* w, QPoint at) {
    ASSERT_TRUE(w->isVisible()) << w->objectName().toStdString();
    ++clicks_;
    click(w, at);
    settle();
  }
  void menu(const QString& title, const QString& command) {
    clicks_ += 3;  // at most: the bar, a menu within the menu, the entry
    for (const QAction* top : window_->menuBar()->actions())
      if (top->menu()->actions().contains(window_->commands().action(command))) --clicks_;
    choose_in_menu(title, command);
    settle();
  }
  /// A file dialog's name is typed, and its button is hit.
  void name_file(const QString& path) {
    ++clicks_;
    answer(path);
  }
  template <class W = QWidget>
  W* named(const QString& name) {
    auto* w = window_->findChild<W*>(name);
    EXPECT_NE(w, nullptr) << name.toStdString();
    return w;
  }
  QString said(const QString& label) { return named<QLabel>(label)->accessibleName(); }
  void empty_project() {
    make_window();
    settle();
    answer(dir_.filePath("own.tenon"));
    menu("File", "file.new_empty");
    ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
    clicks_ = 0;
  }
  /// The button in the window's bar, and the wait.
  void train_it() {
    for (QToolButton* b : window_->findChildren<QToolButton*>())
      if (b->isVisible() && b->defaultAction() == window_->commands().action("run.train")) {
        ++clicks_;
        click(b, b->rect().center());
        break;
      }
    until([this] { return bench_->shown() && bench_->shown()->status != "running" && !bench_->training(); });
    settle();
  }
  int clicks_ = 0;
};

TEST_F(Journey, from_a_template_to_an_exported_model_in_twelve_clicks) {
  make_window();
  settle();
  QElapsedTimer clock;
  clock.start();
  name_file(dir_.filePath("first.tenon"));
  hit(named("template.spirals"));
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
  // The rate and the schedule, in the form.
  key(window_.get(), Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
  settle();
  auto* rate = named<QLineEdit>("recipe.optimizer.lr");
  hit(rate);
  key(rate, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(rate, "0.1");
  key(rate, Qt::Key_Return);
  settle();
  auto* schedule = named<QComboBox>("recipe.schedule.type");
  hit(schedule);
  QAbstractItemView* choices = schedule->view();
  ASSERT_TRUE(choices->isVisible());
  const QModelIndex linear = choices->model()->index(schedule->findText("linear"), 0);
  choices->scrollTo(linear);
  // Qt takes what comes at once after the opening for the second half of a double click.
  QTest::mouseMove(choices->viewport(), choices->visualRect(linear).center());
  QTest::qWait(QApplication::doubleClickInterval() + 20);
  hit(choices->viewport(), choices->visualRect(linear).center());
  EXPECT_EQ(bench_->recipe().text("schedule.type"), "linear");
  EXPECT_EQ(bench_->recipe().number("optimizer.lr"), 0.1);
  // Train.
  train_it();
  const Recipe told = Recipe::from_json(bench_->shown()->recipe);
  EXPECT_EQ(told.text("schedule.type"), "linear");
  // Evaluate.
  menu("Run", "run.evaluate_last");
  EXPECT_TRUE(banner().startsWith("Evaluated: ")) << banner().toStdString();
  // Export: which state, and where to.
  const QString onnx = dir_.filePath("first.onnx");
  menu("File", "file.export");
  QListWidget* states = window_->picker()->list();
  ASSERT_GT(states->count(), 0);
  name_file(onnx);
  hit(states->viewport(), states->visualItemRect(states->item(0)).center());
  ASSERT_TRUE(std::filesystem::exists(onnx.toStdString())) << banner().toStdString();
  EXPECT_TRUE(banner().contains("verified on 64 test samples")) << banner().toStdString();
  EXPECT_FALSE(formats::load_onnx(onnx.toStdString()).graph.nodes.empty());
  EXPECT_TRUE(problems_.empty());
  EXPECT_LE(clicks_, 12);
  RecordProperty("clicks", clicks_);
  RecordProperty("milliseconds", static_cast<int>(clock.elapsed()));
}

TEST_F(Journey, from_an_empty_project_and_a_table_of_ones_own_to_a_trained_model) {
  const QString table = dir_.filePath("mine.csv");
  std::string text = "width;height;kind\n";
  for (int i = 0; i < 240; ++i)
    text += std::to_string(i % 17) + ",5;" + std::to_string(i % 7) + ";" + (i % 17 > 8 ? "wide" : "narrow") + "\n";
  write_file(table.toStdString(), text);
  empty_project();
  menu("View", "view.data");
  name_file(table);
  hit(named("data.file"));
  until([this] { return named("data.begin")->isVisible(); });
  EXPECT_EQ(bench_->recipe().text("data.dataset"), "csv");
  EXPECT_EQ(named<QPushButton>("data.begin")->text(), "Begin with tabular");
  EXPECT_TRUE(said("data.fits").contains("no layers yet")) << said("data.fits").toStdString();
  hit(named("data.begin"));
  until([this] { return said("data.fits").contains("takes these samples"); });
  EXPECT_FALSE(named("data.begin")->isVisible());
  train_it();
  ASSERT_EQ(bench_->shown()->status, "finished") << bench_->shown()->error;
  EXPECT_TRUE(problems_.empty()) << problems_[0];
  EXPECT_LE(clicks_, 15);
  RecordProperty("clicks", clicks_);
}

TEST_F(Journey, from_an_empty_project_and_images_of_ones_own_on_the_weights_of_a_file_to_a_trained_model) {
  for (int i = 0; i < 24; ++i) {
    data::Image image{32, 32, 3, std::vector<uint8_t>(32 * 32 * 3)};
    for (size_t k = 0; k < image.pixels.size(); ++k)
      image.pixels[k] = static_cast<uint8_t>(i % 3 == 0 ? k * 3 : i % 3 == 1 ? 255 - k / 9 : (k / 96) * 8);
    QDir(dir_.path()).mkpath(QString("pets/%1").arg(i % 3));
    write_file(dir_.filePath(QString("pets/%1/%2.png").arg(i % 3).arg(i)).toStdString(), data::png_bytes(image));
  }
  // A network that was trained on ten classes of something else.
  const QString weights = dir_.filePath("pretrained.pt");
  formats::NamedTensors state;
  for (const nn::Named& n : GraphModule(find_template("resnet18").model).parameters())
    state.emplace_back(n.name, full(n.tensor.size(), 0.01));
  formats::save_torch(weights.toStdString(), state);
  empty_project();
  menu("View", "view.data");
  name_file(dir_.filePath("pets"));
  hit(named("data.folder"));
  until([this] { return named("data.begin")->isVisible(); });
  EXPECT_EQ(named<QPushButton>("data.begin")->text(), "Begin with resnet18");
  hit(named("data.begin"));
  until([this] { return said("data.fits").contains("takes these samples"); });
  name_file(weights);
  menu("Model", "weights.file");
  EXPECT_EQ(bench_->recipe().text("init.from"), weights.toStdString());
  // The last layer has other classes: it keeps what the seed gives. All others stay as they came.
  auto* missing = named<QComboBox>("weights.init.missing");
  hit(missing);
  key(missing->view(), Qt::Key_Down);
  key(missing->view(), Qt::Key_Return);
  settle();
  EXPECT_EQ(bench_->recipe().text("init.missing"), "keep");
  auto* freeze = named<QLineEdit>("weights.init.freeze");
  hit(freeze);
  QTest::keyClicks(freeze, "layer*; conv1.*");
  key(freeze, Qt::Key_Return);
  settle();
  train_it();
  ASSERT_EQ(bench_->shown()->status, "finished") << bench_->shown()->error;
  EXPECT_TRUE(problems_.empty()) << problems_[0];
  std::map<std::string, double> at;
  for (const auto& [name, t] :
       projects::state_at(*bench_->project(), bench_->shown_run(), bench_->shown_steps()).tensors)
    if (t.dtype() == DType::f32 && t.numel() > 0) at[name] = t.data<float>()[0];
  EXPECT_EQ(at.at("model/conv1.weight"), 0.01f) << "frozen";
  EXPECT_LE(clicks_, 15);
  RecordProperty("clicks", clicks_);
}

}  // namespace
}  // namespace tenon::views
