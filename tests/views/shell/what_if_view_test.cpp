// The what-if of a memory snapshot as a form: settings typed as words or in fields, added, taken out, a limit; its
// figures are those of the command line.
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QTabWidget>
#include <QTest>
#include <QToolButton>

#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "views/findings/findings_view.h"
#include "views/shared/finding_page.h"

namespace tenon::views {
namespace {

class WhatIfWindow : public testing::WindowTest {
 protected:
  void open_what_if(const char* name = "training-2.15.pickle.gz") {
    make_window();
    testing::drop_files(window_.get(), {QString(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/") + name});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
    ASSERT_TRUE(window_->commands().run("view.findings"));
    settle();
    view()->choose("what-if");
    settle();
    ASSERT_NE(form(), nullptr);
    ASSERT_TRUE(form()->isVisible());
  }
  FindingsView* view() { return qobject_cast<FindingsView*>(window_->view("findings")); }
  WhatIfForm* form() { return window_->findChild<WhatIfForm*>("what_if"); }
  template <class W>
  W* part(const char* name) {
    return form()->findChild<W*>(name);
  }
  void type(const char* name, const QString& text) {
    auto* line = part<QLineEdit>(name);
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
  }
  /// What `tenon memory what-if` says with such options.
  tracing::Finding on_command_line(std::vector<std::string> settings, double limit_gib = 0) {
    return tracing::snapshot_analyses().at("what-if").run({.snapshots = {bench_->documents()[0].snapshot},
                                                           .top = 20,
                                                           .settings = std::move(settings),
                                                           .limit = static_cast<int64_t>(limit_gib * (1 << 30))});
  }
  void expect_shown(const tracing::Finding& f) {
    ASSERT_NE(view()->page(), nullptr);
    EXPECT_EQ(view()->page()->sentence, f.sentence);
    const FindingPage expected = make_page(f, {.document = bench_->documents()[0].id});
    EXPECT_EQ(view()->page()->tables.at(0).table.csv(), expected.tables.at(0).table.csv());
    EXPECT_EQ(view()->page()->figures, expected.figures);
    EXPECT_EQ(window_->findChild<QLabel*>("findings.sentence")->text().toStdString(), f.sentence);
    ASSERT_NE(form()->curves().what_if(), nullptr);
    EXPECT_EQ(form()->curves().what_if()->tries.size(), f.tables.at(0).rows.size());
  }
};

TEST_F(WhatIfWindow, settings_are_added_and_taken_out_and_the_figures_are_the_command_lines) {
  open_what_if();
  expect_shown(on_command_line({}));
  type("what_if.words", "roundup_power2_divisions:[1:4,256:8,>:1],expandable_segments:True");
  EXPECT_TRUE(part<QCheckBox>("what_if.expandable_segments")->isChecked()) << "the fields say the same";
  EXPECT_EQ(part<QLineEdit>("what_if.roundup_power2_divisions")->text(), "[1:4,256:8,>:1]");
  press("what_if.add");
  settle();
  std::vector<std::string> all = tracing::usual_settings();
  all.emplace_back("roundup_power2_divisions:[1:4,256:8,>:1],expandable_segments:True");
  expect_shown(on_command_line(all));
  // By the fields, which write the words; Enter adds.
  type("what_if.words", "");
  key(part<QLineEdit>("what_if.words"), Qt::Key_Delete);
  click(part<QCheckBox>("what_if.expandable_segments"), {8, 12});
  EXPECT_EQ(part<QLineEdit>("what_if.words")->text(), "expandable_segments:True");
  click(part<QCheckBox>("what_if.expandable_segments"), {8, 12});
  type("what_if.max_split_size_mb", "64");
  type("what_if.garbage_collection_threshold", "0.7");
  EXPECT_EQ(part<QLineEdit>("what_if.words")->text(), "garbage_collection_threshold:0.7,max_split_size_mb:64");
  key(part<QLineEdit>("what_if.max_split_size_mb"), Qt::Key_Return);
  settle();
  all.emplace_back("garbage_collection_threshold:0.7,max_split_size_mb:64");
  expect_shown(on_command_line(all));
  // Tried already, wrong, and taken out.
  press("what_if.add");
  EXPECT_TRUE(part<QLabel>("what_if.said")->text().contains("tried already"));
  type("what_if.max_split_size_mb", "3");
  press("what_if.add");
  EXPECT_TRUE(part<QLabel>("what_if.said")->text().contains("at least 20"))
      << part<QLabel>("what_if.said")->text().toStdString();
  press("what_if.tried.ideal");
  settle();
  std::erase(all, "ideal");
  expect_shown(on_command_line(all));
  press("what_if.usual");
  settle();
  expect_shown(on_command_line({}));
}

TEST_F(WhatIfWindow, a_limit_is_met_and_a_curve_chosen) {
  open_what_if();
  const int64_t peak = form()->curves().what_if()->recorded_peak();
  const double gib = std::max(0.01, std::floor(static_cast<double>(peak) / (1 << 30) * 60) / 100);
  auto* limit = part<QDoubleSpinBox>("what_if.limit");
  limit->setFocus();
  limit->selectAll();
  QTest::keyClicks(limit, QString::number(gib, 'f', 2));
  key(limit, Qt::Key_Return);
  settle();
  expect_shown(on_command_line({}, limit->value()));
  EXPECT_GT(limit->value(), 0);
  EXPECT_NE(form()->curves().what_if()->limit, 0);
  auto* picture = part<SceneCanvas>("what_if.curves");
  click(picture, place(picture, {WhatIfCurves::legend, 1}));
  EXPECT_EQ(form()->curves().chosen(), 1);
  key(picture, Qt::Key_Down);
  EXPECT_EQ(form()->curves().chosen(), 2);
}

TEST_F(WhatIfWindow, the_form_is_of_snapshots_and_kept_for_each) {
  open_what_if();
  type("what_if.words", "max_split_size_mb:32");
  press("what_if.add");
  settle();
  view()->choose("peak");
  settle();
  EXPECT_FALSE(form()->isVisible());
  testing::drop_files(window_.get(), {TENON_SOURCE_DIR "/tests/tracing/data/snapshots/failure-2.15.pickle.gz"});
  settle();
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  view()->choose("what-if");
  settle();
  EXPECT_EQ(form()->asked().settings, tracing::usual_settings()) << "another snapshot begins with the usual ones";
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  view()->choose("what-if");
  settle();
  EXPECT_EQ(form()->asked().settings.back(), "max_split_size_mb:32");
}

}  // namespace
}  // namespace tenon::views
