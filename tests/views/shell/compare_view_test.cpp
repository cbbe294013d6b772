// Two files compared in the window: traces, snapshots, models and checkpoints, by mouse and keys; one alone, two kinds,
// and one that is closed while it is compared.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMouseEvent>
#include <QPushButton>
#include <QTabWidget>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <filesystem>
#include <fstream>

#include "engine/formats/safetensors.h"
#include "projects/compare.h"
#include "tests/tracing/made_snapshot.h"
#include "tests/tracing/made_training.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/analyses/time_match.h"
#include "tracing/analyses/trace_analysis.h"
#include "views/compare/compare_view.h"
#include "views/frame/table_list.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class Compares : public testing::WindowTest {
 protected:
  void open_files(const QStringList& files) {
    if (!window_) make_window();
    for (const QString& f : files) {
      const size_t before = bench_->documents().size();
      testing::drop_files(window_.get(), {f});
      until([&] { return bench_->documents().size() > before || !problems_.empty(); });
      settle();
      ASSERT_EQ(bench_->documents().size(), before + 1) << (problems_.empty() ? "" : problems_.back());
    }
  }
  /// The small trace, with every event that many times as long.
  QString trace(const QString& name, int times) {
    const QString folder = dir_.filePath("of-" + name);
    std::filesystem::create_directories(folder.toStdString());
    std::ifstream in(testing::small_trace(folder.toStdString()));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (times > 1)
      for (size_t at = text.find(",\"dur\":160"); at != text.npos; at = text.find(",\"dur\":160", at))
        text.replace(at, 10, ",\"dur\":190");
    const QString path = dir_.filePath(name);
    std::ofstream(path.toStdString()) << text;
    return path;
  }
  QString weights(const QString& name, float moved) {
    Tensor w = empty({4, 3}), bias = empty({4});
    for (int64_t i = 0; i < 12; ++i) w.data<float>()[i] = static_cast<float>(i);
    for (int64_t i = 0; i < 4; ++i) bias.data<float>()[i] = 1;
    w.data<float>()[7] += moved;
    const QString path = dir_.filePath(name);
    formats::save_safetensors(path.toStdString(), {{"fc.weight", w}, {"fc.bias", bias}});
    return path;
  }
  /// A file of one tensor of that many bytes, none of which is on the disk.
  QString large_weights(const QString& name, uint64_t bytes) {
    const QString path = dir_.filePath(name);
    const std::string header = "{\"w\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(bytes) +
                               "],\"data_offsets\":[0," + std::to_string(bytes) + "]}}";
    const uint64_t length = header.size();
    std::ofstream(path.toStdString(), std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), 8) << header;
    std::filesystem::resize_file(path.toStdString(), 8 + length + bytes);
    return path;
  }
  void show_compare() {
    ASSERT_TRUE(window_->commands().run("view.compare"));
    settle();
  }
  CompareView* view() { return qobject_cast<CompareView*>(window_->view("compare")); }
  CompareModel& model() { return view()->model(); }
  QString sentence() { return window_->findChild<QLabel*>("compare.sentence")->text(); }
  bool says(const QString& words) {
    for (QLabel* l : view()->findChildren<QLabel*>())
      if (l->isVisible() && l->text().contains(words)) return true;
    return false;
  }
  TableList* table_named(const QString& title) {
    auto* tabs = window_->findChild<QTabWidget*>("compare.tables");
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->isTabVisible(i) && tabs->tabText(i) == title) {
        tabs->setCurrentIndex(i);
        return qobject_cast<TableList*>(tabs->widget(i));
      }
    return nullptr;
  }
  void click_on_row(TableList* rows, int row) {
    QTest::mouseClick(rows->viewport(), Qt::LeftButton, {}, rows->visualRect(rows->model()->index(row, 0)).center());
    settle();
  }
  /// The first row, as the list stands, that is something in both.
  int row_of_both(TableList* rows) {
    const Table shown = rows->shown();
    for (size_t r = 0; r < shown.rows.size(); ++r)
      if (shown.rows[r].selection && model().other(shown.rows[r].selection)) return static_cast<int>(r);
    return -1;
  }
};

TEST_F(Compares, two_traces_by_a_row_and_its_counterpart) {
  open_files({trace("a.json", 1), trace("b.json", 2)});
  show_compare();
  until([this] { return model().page() != nullptr; });
  settle();
  const auto& documents = bench_->documents();
  // What the command line says.
  const projects::Comparison c = projects::compare({.trace = documents[0].trace}, {.trace = documents[1].trace}, 500);
  EXPECT_EQ(sentence().toStdString(), c.finding.sentence);
  TableList* items = table_named("Items");
  ASSERT_NE(items, nullptr);
  const int row = row_of_both(items);
  ASSERT_GE(row, 0);
  ASSERT_EQ(bench_->shown_document()->id, documents[1].id) << "the one that was opened last";
  click_on_row(items, row);
  const Selection in_b = bench_->bus.current();
  ASSERT_EQ(in_b.kind, Selection::Kind::event);
  EXPECT_EQ(in_b.document, documents[1].id) << "of the document that is shown";
  EXPECT_EQ(bench_->model<TimelineModel>().selected_event(), in_b.id);
  // Its counterpart, by the keys, and back, by the button.
  key(window_.get(), Qt::Key_B, Qt::ControlModifier);
  settle();
  const Selection in_a = bench_->bus.current();
  EXPECT_EQ(in_a.document, documents[0].id);
  EXPECT_EQ(bench_->shown_document()->id, documents[0].id);
  EXPECT_EQ(documents[0].trace->event_name(static_cast<traces::EventId>(in_a.id)),
            documents[1].trace->event_name(static_cast<traces::EventId>(in_b.id)));
  EXPECT_EQ(items->currentIndex().row(), row) << "the row stays marked";
  press("compare.other");
  settle();
  EXPECT_TRUE(bench_->bus.current().same(in_b));
  // The other way round.
  press("compare.swap");
  until([this] { return model().page() != nullptr; });
  settle();
  EXPECT_EQ(model().a()->document, documents[1].id);
  ASSERT_NE(model().page(), nullptr);
  EXPECT_EQ(model().page()->figures[0].second, tracing::cell_text(c.finding.facts[1].value, c.finding.facts[1].unit))
      << "what was B is A";
}

/// Two trainings of which B takes longer for the same steps.
TEST_F(Compares, the_timeline_of_b_shows_the_time_that_was_seen_of_a_where_that_is_wanted) {
  QStringList files;
  for (int64_t kernel : {20000, 90000}) {
    files << dir_.filePath(QString("k%1.json").arg(kernel));
    std::ofstream(files.back().toStdString())
        << tracing::train({.lengths = 3, .steps = 5, .noise = 0, .op = 20000, .kernel = kernel});
  }
  open_files(files);
  show_compare();
  until([this] { return model().page() != nullptr; });
  settle();
  auto& timeline = bench_->model<TimelineModel>();
  const Document &a = bench_->documents()[0], &b = bench_->documents()[1];
  auto step = [](const Document& d, size_t i) {
    const tracing::TraceStep s = tracing::trace_steps(*d.trace).at(i);
    return std::pair(static_cast<double>(s.start - d.trace->begin()), static_cast<double>(s.end - d.trace->begin()));
  };
  bench_->select(Selection::of_document(a.id, "test"));
  settle();
  SceneCanvas* c = canvas("timeline");
  timeline.axis().show(step(a, 2).first, step(a, 2).second);
  const double lo = timeline.axis().lo, hi = timeline.axis().hi;
  bench_->select(Selection::of_document(b.id, "test"));
  settle();
  EXPECT_TRUE(timeline.axis().fitted()) << "by itself B is as it was left";
  bench_->select(Selection::of_document(a.id, "test"));
  settle();
  EXPECT_DOUBLE_EQ(timeline.axis().lo, lo);
  show_compare();
  press("compare.together");
  c = canvas("timeline");
  bench_->select(Selection::of_document(b.id, "test"));
  settle();
  EXPECT_NEAR(timeline.axis().lo, step(b, 2).first, 2);
  EXPECT_NEAR(timeline.axis().hi, step(b, 2).second, 2);
  // Moved there by the keys, A follows.
  c->setFocus();
  key(c, Qt::Key_W);
  key(c, Qt::Key_D);
  const double expected = model().times()->to_a(timeline.axis().lo);
  bench_->select(Selection::of_document(a.id, "test"));
  settle();
  EXPECT_NEAR(timeline.axis().lo, expected, 2);
  EXPECT_GT(timeline.axis().lo, lo);
  EXPECT_LT(timeline.axis().hi - timeline.axis().lo, hi - lo);
  // A stretch that is marked in A, by the mouse, is marked in B by Ctrl+B: the same steps of it.
  timeline.fit();
  settle();
  const int y = c->height() - 40;
  auto x = [&](double t) { return static_cast<int>(timeline.axis().to_px(t)); };
  QTest::mousePress(c, Qt::LeftButton, Qt::ShiftModifier, {x(step(a, 1).first), y});
  QTest::mouseMove(c, {x(step(a, 1).first) + 10, y});
  QMouseEvent move(QEvent::MouseMove, QPointF(x(step(a, 3).second), y),
                   c->mapToGlobal(QPointF(x(step(a, 3).second), y)), Qt::NoButton, Qt::LeftButton, Qt::ShiftModifier);
  QApplication::sendEvent(c, &move);
  QTest::mouseRelease(c, Qt::LeftButton, Qt::ShiftModifier, {x(step(a, 3).second), y});
  settle();
  const Selection marked = bench_->bus.current();
  ASSERT_EQ(marked.kind, Selection::Kind::range);
  ASSERT_EQ(marked.document, a.id);
  key(window_.get(), Qt::Key_B, Qt::ControlModifier);
  settle();
  const Selection in_b = bench_->bus.current();
  ASSERT_EQ(in_b.kind, Selection::Kind::range);
  EXPECT_EQ(in_b.document, b.id);
  EXPECT_DOUBLE_EQ(in_b.from, model().times()->to_b(marked.from));
  const double pixel = timeline.axis().per_pixel() * 3;
  EXPECT_NEAR(in_b.to, step(b, 3).second, std::max(pixel, (step(b, 4).first - step(b, 3).second) * 3));
}

TEST_F(Compares, a_dialog_that_was_cancelled_changes_nothing_and_nothing_is_waited_for) {
  open_files({trace("a.json", 1), trace("b.json", 2)});
  show_compare();
  until([this] { return model().page() != nullptr; });
  settle();
  QTimer::singleShot(0, window_.get(), [] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(d, nullptr);
    QTest::keyClick(d, Qt::Key_Escape);
  });
  press("compare.with");
  settle();
  EXPECT_FALSE(model().waits_for_next());
  EXPECT_NE(model().page(), nullptr) << "what was compared stays";
  open_files({trace("c.json", 2)});
  EXPECT_EQ(model().b()->title, "b.json");
  // A file that cannot be read is not waited for either.
  const QString broken = dir_.filePath("broken.json");
  std::ofstream(broken.toStdString()) << "{\"traceEvents\": 7}";
  show_compare();
  answer(broken);
  press("compare.with");
  until([this] { return !problems_.empty(); });
  settle();
  EXPECT_FALSE(model().waits_for_next());
  open_files({trace("d.json", 2)});
  EXPECT_EQ(model().b()->title, "b.json");
  // Chosen, it is B.
  show_compare();
  answer(trace("e.json", 2));
  press("compare.with");
  until([this] { return model().b() && model().b()->title == "e.json"; });
  EXPECT_EQ(model().a()->title, "a.json");
}

TEST_F(Compares, a_box_of_the_flame_graph_of_both_leads_to_its_event) {
  open_files({trace("a.json", 1), trace("b.json", 2)});
  show_compare();
  until([this] { return model().page() != nullptr; });
  settle();
  ASSERT_TRUE(window_->commands().run("compare.flame"));
  settle();
  SceneCanvas* c = canvas("compare");
  ASSERT_TRUE(c->isVisible());
  until([&] { return c->model().last().size().w > 0 && !c->model().last().targets().empty(); });
  uint32_t node = 0;
  const auto& flame = *model().flame().flame();
  for (uint32_t i = 1; i < flame.nodes().size(); ++i)
    if (flame.text(i) == "training") node = i;
  ASSERT_NE(node, 0u);
  click(c, place(c, {FlameModel::box, node}));
  settle();
  const Selection chosen = bench_->bus.current();
  EXPECT_EQ(chosen.kind, Selection::Kind::event);
  EXPECT_TRUE(model().other(chosen));
  c->setFocus();
  key(c, Qt::Key_Return);
  EXPECT_EQ(model().flame().root(), node);
  key(c, Qt::Key_Escape);
  EXPECT_EQ(model().flame().root(), 0u);
}

TEST_F(Compares, two_snapshots_by_place) {
  QStringList files;
  for (int i = 0; i < 2; ++i) {
    snapshot::MadeSnapshot s;
    s.alloc("model.py", 1 << 20);
    if (i) s.alloc("cache.py", 3 << 20);
    files << dir_.filePath(QString("s%1.json").arg(i));
    std::ofstream(files.back().toStdString()) << s.text();
  }
  open_files(files);
  show_compare();
  until([this] { return model().page() != nullptr; });
  settle();
  EXPECT_TRUE(sentence().contains("cache.py")) << sentence().toStdString();
  TableList* sites = table_named("Sites");
  ASSERT_NE(sites, nullptr);
  ASSERT_EQ(sites->shown_rows(), 1);
  click_on_row(sites, 0);
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::place);
  EXPECT_EQ(bench_->bus.current().document, bench_->documents()[1].id) << "B has it alone";
  EXPECT_FALSE(window_->commands().find("compare.other")->enabled());
  EXPECT_NE(table_named("Stacks"), nullptr);
}

TEST_F(Compares, two_models_by_tensor_with_words_to_find_it) {
  open_files({weights("a.safetensors", 0), weights("b.safetensors", 5)});
  show_compare();
  until([this] { return model().page() != nullptr; });
  settle();
  EXPECT_TRUE(sentence().contains("1 of 2 tensors differ")) << sentence().toStdString();
  TableList* rows = table_named("Weights");
  ASSERT_NE(rows, nullptr);
  ASSERT_EQ(rows->shown_rows(), 2);
  EXPECT_EQ(rows->table().rows[0].cells[0].text, "fc.weight");
  EXPECT_EQ(table_named("Flame graph"), nullptr) << "a model has none";
  rows = table_named("Weights");
  click_on_row(rows, 0);
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::file_tensor);
  EXPECT_EQ(bench_->bus.current().name, "fc.weight");
  const int first = bench_->bus.current().document;
  key(window_.get(), Qt::Key_B, Qt::ControlModifier);
  settle();
  EXPECT_EQ(bench_->bus.current().name, "fc.weight");
  EXPECT_NE(bench_->bus.current().document, first);
  auto* search = window_->findChild<QLineEdit*>("compare.search");
  search->setFocus();
  QTest::keyClicks(search, "bias");
  EXPECT_EQ(rows->shown_rows(), 1);
}

TEST_F(Compares, one_alone_says_what_to_do_and_takes_the_next) {
  make_window();
  show_compare();
  EXPECT_TRUE(says("Open two traces, two memory snapshots or two model files"));
  open_files({weights("a.safetensors", 0)});
  show_compare();
  EXPECT_TRUE(says("a.safetensors is open. Open another model file"));
  // Of another kind: nothing to compare yet.
  open_files({trace("t.json", 1)});
  show_compare();
  EXPECT_TRUE(says("they have nothing to be compared by"));
  bench_->select(Selection::of_document(bench_->documents()[0].id, "test"));
  settle();
  answer(weights("b.safetensors", 1));
  for (QPushButton* b : view()->findChildren<QPushButton*>())
    if (b->isVisible() && b->text() == "Compare with…") QTest::mouseClick(b, Qt::LeftButton);
  until([this] { return model().page() != nullptr; });
  settle();
  EXPECT_FALSE(view()->visibleRegion().isEmpty()) << "it is what the file was opened for";
  EXPECT_EQ(model().a()->title, "a.safetensors");
  EXPECT_EQ(model().b()->title, "b.safetensors");
}

TEST_F(Compares, a_file_is_closed_while_it_is_compared_and_a_comparison_is_cancelled) {
  constexpr uint64_t kBytes = uint64_t{3} << 30;
  open_files({large_weights("a.safetensors", kBytes), large_weights("b.safetensors", kBytes)});
  EXPECT_FALSE(bench_->jobs.has("compare")) << "nobody looks at it";
  EXPECT_EQ(model().page(), nullptr);
  ASSERT_TRUE(window_->commands().run("view.compare"));
  until([this] { return bench_->jobs.has("compare"); });
  until([this] { return says("what is different in B will be here"); });
  for (QPushButton* b : view()->findChildren<QPushButton*>())
    if (b->isVisible() && b->text() == "Cancel") QTest::mouseClick(b, Qt::LeftButton);
  until([this] { return !bench_->jobs.has("compare"); });
  EXPECT_TRUE(says("The comparison was cancelled."));
  for (QPushButton* b : view()->findChildren<QPushButton*>())
    if (b->isVisible() && b->text() == "Compare") QTest::mouseClick(b, Qt::LeftButton);
  until([this] { return bench_->jobs.has("compare"); });
  bench_->close_document(bench_->documents()[1].id);
  until([this] { return !bench_->jobs.has("compare"); });
  settle();
  EXPECT_FALSE(model().ready());
  EXPECT_EQ(model().page(), nullptr);
  EXPECT_TRUE(says("a.safetensors is open. Open another model file"));
  bench_->close_document(bench_->documents()[0].id);
  settle();
  EXPECT_TRUE(says("Open two traces"));
}

TEST_F(Compares, two_checkpoints_of_a_project_chosen_in_the_boxes) {
  open_spirals();
  train(4, {{"checkpoint_every", "2"}});
  show_compare();
  auto* a = window_->findChild<QComboBox*>("compare.a");
  auto* b = window_->findChild<QComboBox*>("compare.b");
  ASSERT_GE(a->count(), 2) << "two checkpoints at least";
  EXPECT_TRUE(says("Choose A and B above"));
  a->setFocus();
  key(a, Qt::Key_End);
  settle();
  ASSERT_TRUE(model().a());
  b->setFocus();
  key(b, Qt::Key_Home);
  settle();
  ASSERT_TRUE(model().ready());
  until([this] { return model().page() != nullptr; });
  settle();
  EXPECT_TRUE(sentence().contains("differ")) << sentence().toStdString();
  TableList* rows = table_named("Weights");
  ASSERT_NE(rows, nullptr);
  click_on_row(rows, 0);
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::module);
}

}  // namespace
}  // namespace tenon::views
