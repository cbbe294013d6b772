// Leaks in the window: the steps are named, the cost is told, and who holds the memory stands there with its proof.
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include <atomic>
#include <thread>

#include "core/memory_image.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/functional.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/layer_registry.h"
#include "engine/templates/templates.h"
#include "projects/project.h"
#include "tests/memory_image.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

std::vector<Tensor> outputs_that_are_kept;

class LeaksInWindow : public testing::WindowTest {
 protected:
  void SetUp() override {
    scope_ = std::make_unique<RegistryScope>("the tests of leaks");
    register_layer({{.type = "Hoarder", .group = "Activation", .help = "x, of which it keeps every one"},
                    [](const LayerArgs&) -> std::shared_ptr<nn::Module> {
                      return nn::unary("Hoarder", [](const Tensor& x) {
                        Tensor y = mul(x, 1.0);
                        if (!y.is_meta()) outputs_that_are_kept.push_back(detach(y));
                        return y;
                      });
                    }});
    scope_->close();
    WindowTest::SetUp();
  }
  void TearDown() override {
    WindowTest::TearDown();
    std::vector<Tensor>().swap(outputs_that_are_kept);
    scope_.reset();
  }
  /// The spirals with an activation that hoards, trained.
  void open_hoarder(int steps) {
    const Template& t = find_template("spirals");
    ModelSpec model = t.model;
    for (LayerSpec& l : model.layers)
      if (l.name == "layers.1") l.type = "Hoarder";
    const QString path = dir_.filePath("hoarder.tenon");
    projects::Project::create(path.toStdString(), model, t.recipe.to_json());
    make_window();
    open(path);
    settle();
    train(steps);
    ASSERT_TRUE(window_->commands().run("run.leaks"));
    settle();
  }
  QLabel* sentence() { return window_->findChild<QLabel*>("leaks.sentence"); }
  std::unique_ptr<RegistryScope> scope_;
};

TEST_F(LeaksInWindow, an_owner_is_named_and_proven) {
  if (const std::string why = testing_words::why_no_image(); !why.empty()) GTEST_SKIP() << why;
  open_hoarder(60);
  auto* from = window_->findChild<QSpinBox*>("leaks.from");
  auto* to = window_->findChild<QSpinBox*>("leaks.to");
  auto* look = window_->findChild<QToolButton*>("leaks.look");
  ASSERT_TRUE(from && to && look);
  EXPECT_EQ(from->value(), 41);
  EXPECT_EQ(to->value(), 60);
  // Too few steps are refused before anything is done.
  const auto type = [&](QSpinBox* box, const char* text) {
    box->setFocus();
    box->selectAll();
    QTest::keyClicks(box, text);
    key(box, Qt::Key_Return);
    settle();
  };
  type(from, "58");
  EXPECT_FALSE(look->isEnabled());
  type(from, "21");
  type(to, "40");
  EXPECT_TRUE(look->isEnabled());
  EXPECT_TRUE(sentence()->text().contains("who holds it")) << sentence()->text().toStdString();
  press("leaks.look");
  until([&] { return sentence()->isVisible() && sentence()->text().contains("leak:"); });
  settle();
  const QString said = sentence()->text();
  EXPECT_TRUE(said.startsWith("Steps 21 to 40")) << said.toStdString();
  EXPECT_TRUE(said.contains("outputs_that_are_kept")) << said.toStdString();
  EXPECT_TRUE(said.contains("every loss has the same bits")) << said.toStdString();
  auto* leaks = window_->findChild<TableList*>("leaks.Leaks");
  ASSERT_NE(leaks, nullptr);
  EXPECT_EQ(leaks->shown_rows(), 1);
  EXPECT_TRUE(window_->findChild<QLabel*>("leaks.edit")->isVisible());
  for (const ThemeName theme : {ThemeName::light, ThemeName::contrast, ThemeName::dark}) {
    window_->set_theme(theme);
    settle();
    EXPECT_TRUE(sentence()->isVisible());
  }
}

TEST_F(LeaksInWindow, a_search_is_cancelled_and_a_run_that_leaks_nothing_says_so) {
  open_spirals();
  train(200);
  ASSERT_TRUE(window_->commands().run("run.leaks"));
  settle();
  // Other jobs are under way, so this one waits.
  std::atomic<bool> go_on{false};
  for (int i = 0; i < Bench::kWorkers; ++i)
    bench_->jobs.start(
        QString("hold %1").arg(i), "Hold",
        [&](const Jobs::Report&, const std::atomic<bool>&) {
          while (!go_on) std::this_thread::yield();
          return 0;
        },
        [](int) {});
  press("leaks.look");
  QPushButton* cancel = nullptr;
  for (auto* b : window_->findChildren<QPushButton*>())
    if (b->isVisible() && b->text() == "Cancel") cancel = b;
  EXPECT_NE(cancel, nullptr);
  if (cancel) QTest::mouseClick(cancel, Qt::LeftButton);
  go_on = true;
  until([&] { return bench_->jobs.idle(); });
  settle();
  EXPECT_TRUE(window_->findChild<QToolButton*>("leaks.look")->isVisible());
  press("leaks.look");
  until([&] { return sentence()->isVisible() && sentence()->text().contains("leak nothing"); });
  EXPECT_FALSE(window_->findChild<QLabel*>("leaks.edit")->isVisible());
}

}  // namespace
}  // namespace tenon::views
