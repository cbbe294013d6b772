// What a project learns from, in the window: a table with holes is chosen, what is wrong is told with its lines, and
// a sample that was spoilt is found in its file.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include "core/file.h"
#include "engine/data/image.h"
#include "engine/train/recipe.h"
#include "projects/project.h"
#include "projects/time_travel.h"
#include "tests/views/shell/window_fixture.h"
#include "views/details/details_model.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class DataPage : public testing::WindowTest {
 protected:
  void show() {
    ASSERT_TRUE(window_->commands().run("view.data"));
    settle();
  }
  TableList* list(const char* name) { return window_->findChild<TableList*>(name); }
  QString said() { return window_->findChild<QLabel*>("data.said")->accessibleName(); }
  QString fault() { return window_->findChild<QLabel*>("data.fault")->accessibleName(); }
  QString cells(const char* name) {
    QString all;
    for (const Table::Row& r : list(name)->shown().rows) {
      for (const Table::Cell& c : r.cells) all += QString::fromStdString(c.text) + " | ";
      all += "\n";
    }
    return all;
  }
  std::string write_table(const char* name, const std::string& text) {
    const std::string path = dir_.filePath(name).toStdString();
    write_file(path, text);
    return path;
  }
  static std::string table(int rows) {
    std::string text = "width;height;kind\n";
    for (int i = 0; i < rows; ++i)
      text +=
          std::to_string(i % 17) + ",5;" + (i == 4 ? "inf" : std::to_string(i)) + ";" + (i % 2 ? "odd" : "even") + "\n";
    return text;
  }
};

TEST_F(DataPage, a_table_is_looked_at_before_anything_is_trained) {
  const std::string path = write_table("own.csv", table(60));
  make_window();
  file_ = dir_.filePath("p.tenon");
  bench_->create(file_, "tabular", QString::fromStdString(path));
  until([&] { return bench_->has_project(); });
  show();
  until([&] { return said().contains("own.csv"); });
  EXPECT_TRUE(said().contains("classification")) << said().toStdString();
  EXPECT_TRUE(fault().isEmpty());
  const QString found = cells("data.remarks");
  EXPECT_TRUE(found.contains("separated by \";\", decimal comma, UTF-8")) << found.toStdString();
  EXPECT_TRUE(found.contains("height: 1 of 60 cells are no finite number")) << found.toStdString();
  EXPECT_TRUE(found.contains("own.csv, line 6 | 1")) << found.toStdString();
  EXPECT_TRUE(cells("data.splits").contains("training | 48")) << cells("data.splits").toStdString();
  // What was found stands in the recipe of the new project.
  const Recipe recipe = Recipe::from_json(bench_->project()->recipe());
  EXPECT_EQ(recipe.text("data.decimal"), "comma");
  EXPECT_EQ(recipe.text("data.columns"), "width=number; height=number");
  press("data.page.samples");
  EXPECT_TRUE(cells("data.samples").contains("0 | own.csv, line 2 | even | training"))
      << cells("data.samples").toStdString();
  until([&] { return !cells("data.classes").isEmpty(); });
  press("data.page.classes");
  EXPECT_TRUE(cells("data.classes").contains("even | 24 | 6")) << cells("data.classes").toStdString();

  // Another file, whose label has a hole: it says what can be done, and does it.
  std::string text = table(60);
  text.replace(text.find("2,5;2;even"), 10, "2,5;2;");
  answer(QString::fromStdString(write_table("holes.csv", text)));
  press("data.file");
  until([&] { return !fault().isEmpty(); });
  EXPECT_TRUE(fault().contains("1 of 60 rows have no kind")) << fault().toStdString();
  EXPECT_TRUE(fault().contains("line 4")) << fault().toStdString();
  auto* offer = window_->findChild<QPushButton*>("data.offer");
  EXPECT_EQ(offer->text(), "Set data.unlabelled = leave-out");
  QTest::mouseClick(offer, Qt::LeftButton);
  EXPECT_EQ(bench_->recipe().text("data.unlabelled"), "leave-out");
  until([&] { return said().contains("holes.csv"); });
  EXPECT_TRUE(cells("data.remarks").contains("1 of 60 rows have no kind and are left out"));
  EXPECT_FALSE(offer->isVisible());
}

TEST_F(DataPage, a_project_without_files_says_that_its_samples_are_generated) {
  open_spirals();
  show();
  until([&] { return said().contains("spirals"); });
  press("data.page.samples");
  EXPECT_TRUE(cells("data.samples").contains("generated"));
  EXPECT_TRUE(cells("data.splits").contains("training | "));
}

TEST_F(DataPage, a_sample_is_seen_before_and_after_each_transform) {
  QDir(dir_.path()).mkpath("images/left");
  QDir(dir_.path()).mkpath("images/right");
  for (int i = 0; i < 20; ++i) {
    data::Image image{16, 16, 3, std::vector<uint8_t>(16 * 16 * 3)};
    for (size_t k = 0; k < image.pixels.size(); ++k) image.pixels[k] = static_cast<uint8_t>(k * 3 + 11 * i);
    write_file(dir_.filePath(QString("images/%1/%2.png").arg(i % 2 ? "left" : "right").arg(i)).toStdString(),
               data::png_bytes(image));
  }
  make_window();
  file_ = dir_.filePath("p.tenon");
  bench_->create(file_, "resnet18", dir_.filePath("images"));
  until([&] { return bench_->has_project(); });
  show();
  until([&] { return said().contains("image-folder"); });
  EXPECT_TRUE(window_->findChild<QLabel*>("data.divided")->accessibleName().contains("Split evenly"));
  press("data.page.transforms");
  auto* steps = window_->findChild<QListWidget*>("data.transforms.steps");
  ASSERT_TRUE(steps);
  until([&] { return steps->count() == 3; });
  EXPECT_TRUE(
      steps->item(0)->text().startsWith(QString("as it is\n[3, 32, 32]").replace(", ", "," + QString(QChar::Nbsp))))
      << steps->item(0)->text().toStdString();
  EXPECT_TRUE(steps->item(1)->text().startsWith("random_crop padding=4"));
  EXPECT_TRUE(steps->item(2)->text().startsWith("flip"));
  // As large as the space has them, all in sight where there is room, and none on another.
  int in_sight = 0;
  for (const QSize size : {QSize(1280, 720), QSize(1440, 900), QSize(900, 600)}) {
    window_->resize(size);
    QTest::qWait(50);
    QRegion covered;
    for (int i = 0; i < steps->count(); ++i) {
      const QRect at = steps->visualItemRect(steps->item(i));
      // In a low window the list is scrolled: pictures of less than 96 pixels show nothing.
      const QRect room = steps->viewport()->rect();
      EXPECT_TRUE(at.left() >= 0 && at.right() <= room.right()) << size.width() << ", step " << i;
      EXPECT_TRUE(at.bottom() <= room.bottom() || steps->iconSize().width() == 96) << size.width() << ", step " << i;
      in_sight += room.contains(at);
      EXPECT_FALSE(covered.intersects(at)) << size.width() << ", step " << i;
      covered += at;
    }
    const int side = steps->iconSize().width();
    EXPECT_GE(3 * (side + 40) * 2, steps->viewport()->width()) << side << " of " << steps->viewport()->width();
    EXPECT_GE(side, 96);
  }
  EXPECT_GE(in_sight, steps->count()) << "of the large window";
  const auto shown = [&](int i) { return steps->item(i)->icon().pixmap(96, 96).toImage(); };
  const QImage plain = shown(0), cropped = shown(1);
  EXPECT_FALSE(plain.isNull());
  // In another epoch the crop is another, and the sample is the same.
  auto* epoch = window_->findChild<QSpinBox*>("data.transforms.epoch");
  auto* said = window_->findChild<QLabel*>("data.transforms.said");
  EXPECT_TRUE(said->accessibleName().contains("epoch 0")) << said->accessibleName().toStdString();
  bool other = false;
  for (int e = 1; e <= 4 && !other; ++e) {
    QTest::keyClick(epoch, Qt::Key_Up);
    until([&] { return said->accessibleName().contains(QString("epoch %1").arg(e)); });
    EXPECT_EQ(shown(0), plain);
    other = shown(1) != cropped;
  }
  EXPECT_TRUE(other);
  // A row of the samples' page is the one that is shown.
  press("data.page.samples");
  list("data.samples")->setCurrentIndex(list("data.samples")->model()->index(5, 0));
  until([&] { return said->accessibleName().contains("sample 5"); });
  // In the test nothing is random.
  press("data.page.transforms");
  window_->findChild<QComboBox*>("data.transforms.split")->setCurrentIndex(1);
  until([&] { return said->accessibleName().startsWith("test sample"); });
  EXPECT_EQ(shown(2), shown(0));
  EXPECT_FALSE(epoch->isEnabled());
}

TEST_F(DataPage, the_samples_of_a_step_are_listed_as_the_run_saw_them) {
  open_spirals();
  show();
  until([&] { return said().contains("spirals"); });
  bench_->train({.set = {{"epochs", "1"}}});
  until([&] { return !bench_->training() && bench_->shown_steps() > 2; });
  bench_->select(Selection::step(2, "training"));
  ASSERT_TRUE(window_->commands().run("data.batch"));
  until([&] { return said().startsWith("step 2 of run"); });
  const projects::StepBatch batch = projects::batch_of(*bench_->project(), bench_->shown_run(), 2);
  ASSERT_FALSE(batch.rows.empty());
  const Table shown = list("data.samples")->shown();
  ASSERT_GE(shown.rows.size(), batch.rows.size());
  for (size_t i = 0; i < batch.rows.size(); ++i)
    EXPECT_EQ(static_cast<int64_t>(shown.rows[i].cells[0].key), batch.rows[i]) << i;
  // The next run's data are back with the next change of its recipe.
  Recipe r = bench_->recipe();
  r.set("data.batch_size", "16");
  bench_->set_recipe(r);
  until([&] { return said().startsWith("spirals"); });
}

TEST_F(DataPage, without_a_project_there_is_one_sentence) {
  make_window();
  show();
  QWidget* view = window_->findChild<QLabel*>("data.said");
  while (view && !dynamic_cast<View*>(view)) view = view->parentWidget();
  ASSERT_NE(view, nullptr);
  EXPECT_TRUE(dynamic_cast<View*>(view)->empty());
}

}  // namespace
}  // namespace tenon::views
