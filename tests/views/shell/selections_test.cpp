// Every kind of thing that can be selected, in every state a project can be in, shown in every view; and every route to
// a run.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProcess>
#include <QPushButton>
#include <QTest>
#include <QTreeWidget>
#include <cmath>
#include <limits>

#include "tests/views/model_files.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::views {
namespace {

using testing::copy_of;
using testing::project_state;
using testing::project_state_names;
using testing::ProjectState;
using testing::small_trace;

class Selections : public testing::WindowTest {
 protected:
  void open_state(const ProjectState& state) {
    if (state.file.empty()) return make_window();
    open(QString::fromStdString(copy_of(state, dir_.path().toStdString())));
    ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_.back());
    if (!state.pauses) return;
    for (int64_t step : {1, 2}) {
      ASSERT_TRUE(window_->commands().run("run.step"));
      until([&] {
        return bench_->status().step == step && bench_->status().state == projects::RunStatus::State::paused;
      });
    }
    settle();
  }

  /// Things that are there and things that are not: first, last, before the first, far behind the last.
  std::vector<Selection> things(bool of_step) const {
    std::vector<Selection> out;
    const auto record = bench_->links().record();
    constexpr int64_t kFar = int64_t{1} << 40;
    auto numbered = [&](Selection (*make)(int64_t, std::string), int64_t first, int64_t count) {
      for (int64_t id : {first, first + count / 2, first + count - 1, first + count, int64_t{-1}, kFar,
                         std::numeric_limits<int64_t>::min()})
        out.push_back(make(id, "test"));
    };
    numbered(Selection::op, 1, record ? static_cast<int64_t>(record->ops.size()) : 0);
    numbered(Selection::tensor, 0, record ? static_cast<int64_t>(record->tensors.size()) : 0);
    numbered(Selection::grad_node, 0, record ? static_cast<int64_t>(record->grad_nodes.size()) : 0);
    for (int64_t block :
         {record && !record->allocs.empty() ? record->allocs.front().block : int64_t{1},
          record && !record->allocs.empty() ? record->allocs.back().block : int64_t{2}, int64_t{0}, kFar})
      out.push_back(Selection::alloc(block, "test"));
    const double ns = record ? static_cast<double>(record->duration_ns) : 1e6, nan = std::nan("");
    for (auto [a, b] : {std::pair{0.0, ns}, {ns / 2, ns / 2}, {ns, 0.0}, {-1e300, 1e300}, {nan, nan}})
      out.push_back(Selection::range(a, b, "test"));
    const auto& layers = bench_->builder.spec().layers;
    for (const std::string& name :
         {layers.empty() ? std::string("fc") : layers.front().name, layers.empty() ? std::string() : layers.back().name,
          std::string("blocks"), std::string("no.such.layer")})
      out.push_back(Selection::module(name, "test"));
    out.push_back({});
    // Of other files: those that are open, and one that is not.
    for (const Document& d : bench_->documents())
      for (int id : {d.id, 99}) {
        if (!d.model) continue;
        for (const std::string& name :
             {d.model->tensors.front().name, d.model->tensors.back().name, std::string("none"), std::string()})
          out.push_back(Selection::file_tensor(id, name, "test"));
        for (int64_t n : {int64_t{0}, static_cast<int64_t>(d.model->nodes.size()) - 1,
                          static_cast<int64_t>(d.model->nodes.size()), int64_t{-1}, kFar})
          out.push_back(Selection::file_node(id, n, "test"));
        out.push_back(Selection::of_document(id, "test"));
      }
    for (const Document& d : bench_->documents())
      for (int id : {d.id, 99}) {
        if (d.model) continue;
        const auto events = static_cast<int64_t>(d.trace ? d.trace->size() : d.snapshot->events.size_());
        for (int64_t e : {int64_t{0}, events - 1, events, int64_t{-1}, kFar})
          out.push_back(Selection::event(id, e, "test"));
        out.push_back(Selection::of_document(id, "test"));
        for (auto [a, b] : {std::pair{0.0, 1e9}, {5e6, 2e6}, {-1e300, 1e300}, {nan, nan}}) {
          out.push_back(Selection::range(a, b, "test"));
          out.back().document = id;
        }
        if (!d.snapshot) continue;
        const auto elements = static_cast<uint32_t>(d.timelines.at(0)->elements());
        for (uint32_t e : {0u, elements - 1, elements, ~0u}) out.push_back(Selection::allocation(id, 0, e, "test"));
        out.push_back(Selection::allocation(id, 7, 0, "test"));
        out.push_back(Selection::alloc(std::numeric_limits<int64_t>::min(), "test"));
        out.back().document = id;
        out.push_back(Selection::place(id, d.snapshot->site(d.timelines[0]->element(0).stack), "test"));
        out.push_back(Selection::place(id, "no such place", "test"));
      }
    if (of_step) return out;
    const auto& contents = bench_->contents();
    for (const auto& r : contents.runs) out.push_back(Selection::run(r.id, "test"));
    for (const auto& list : contents.checkpoints)
      for (const auto& c : list)
        if (&c == &list.front() || &c == &list.back()) out.push_back(Selection::checkpoint(c.id, "test"));
    for (int64_t id : {int64_t{0}, int64_t{-7}, kFar}) {
      out.push_back(Selection::run(id, "test"));
      out.push_back(Selection::checkpoint(id, "test"));
      out.push_back(Selection::step(id, "test"));
    }
    out.push_back(Selection::step(1, "test"));
    out.push_back(Selection::step(bench_->shown_steps(), "test"));
    return out;
  }

  bool details_say(const QString& title) {
    for (QLabel* l : window_->view("details")->findChildren<QLabel*>())
      if (l->toolTip() == title || l->text() == title) return true;
    return false;
  }

  int show_everywhere(const std::vector<Selection>& selections, const std::string& state) {
    int cells = 0;
    for (const Selection& s : selections) {
      bench_->select(s);
      settle();
      if (::testing::Test::HasFatalFailure()) return cells;
      for (const ViewDef& def : view_defs()) {
        const QString view = def.id;
        SCOPED_TRACE(state + ", " + to_text(s) + " in " + def.id);
        EXPECT_TRUE(window_->show_view(view));
        QCoreApplication::processEvents();
        EXPECT_FALSE(window_->view(view)->visibleRegion().isEmpty());
        if (SceneCanvas* c = window_->view(view)->canvas()) c->model().summary();
        EXPECT_TRUE(thrown_.empty()) << thrown_.back();
        if (!thrown_.empty()) return cells;
        ++cells;
      }
      std::string named;
      if (const auto* r = s.kind == Selection::Kind::run ? bench_->contents().run(s.id) : nullptr) named = r->name;
      if (s.kind == Selection::Kind::module && bench_->builder.spec().find(s.name)) named = s.name;
      if (const Document* d = bench_->document(s.document)) {
        if (s.kind == Selection::Kind::document) named = d->title;
        if (s.kind == Selection::Kind::file_tensor && d->model && d->model->find_tensor(s.name) >= 0) named = s.name;
        if (d->trace && s.kind == Selection::Kind::event && s.id >= 0 && s.id < static_cast<int64_t>(d->trace->size()))
          named = d->trace->event_name(static_cast<traces::EventId>(s.id));
        if (d->snapshot && s.kind == Selection::Kind::place) named = s.name;
      }
      EXPECT_TRUE(named.empty() || details_say(QString::fromStdString(named)))
          << state << ": the details do not name " << to_text(s);
    }
    return cells;
  }
};

class InState : public Selections, public ::testing::WithParamInterface<std::string> {};

TEST_P(InState, everything_is_shown_in_every_view) {
  const ProjectState& state = project_state(GetParam());
  if (!state.skipped.empty()) GTEST_SKIP() << state.skipped;
  open_state(state);
  if (HasFatalFailure()) return;
  window_->resize(1100, 720);
  settle();
  bench_->open(QString::fromStdString(small_trace(dir_.path().toStdString())));
  settle();
  // Other kinds of files stand beside a project, whatever its state: two states are enough for them.
  const bool all_kinds = state.name == "no project" || state.name == "trained";
  if (all_kinds) {
    bench_->open(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/streams-2.15.pickle.gz");
    settle();
    const QString model = dir_.filePath("blocks.onnx");
    formats::save_onnx(model.toStdString(), testing::blocks_model(4));
    bench_->open(model);
    settle();
  }
  ASSERT_EQ(bench_->documents().size(), all_kinds ? 3u : 1u) << (problems_.empty() ? "" : problems_.back());
  bool tables = true;  // half of the views are tables under their picture
  for (QToolButton* b : window_->findChildren<QToolButton*>())
    if (b->text() == "Table" && b->isCheckable()) b->setChecked(tables);
  const std::vector<Selection> all = things(false);
  const int cells = show_everywhere(all, state.name);
  if (HasFatalFailure()) return;
  // Then with a step loaded, where the state has one that can be.
  int of_step = 0;
  if (bench_->shown_steps() > 0) {
    bench_->select(Selection::step(bench_->shown_steps(), "test"));
    settle();
    const bool replays = state.name != "no data on disk" && state.name != "from version 1";
    EXPECT_EQ(static_cast<bool>(bench_->links()), replays) << (problems_.empty() ? "" : problems_.back());
    of_step = show_everywhere(things(true), state.name + " with a step");
  }
  if (HasFatalFailure()) return;
  RecordProperty("cells", cells + of_step);
  EXPECT_EQ(cells, static_cast<int>(all.size() * view_defs().size()));
  // The way back through all of them, and forward again.
  while (bench_->bus.can_go_back()) window_->commands().run("go.back");
  settle();
  while (bench_->bus.can_go_forward()) window_->commands().run("go.forward");
  settle();
}
INSTANTIATE_TEST_SUITE_P(States, InState, ::testing::ValuesIn(project_state_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// The click that once ended the program, by every route to it.
class ARun : public Selections {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_state(project_state("trained"));
    settle();
    name_ = QString::fromStdString(bench_->contents().runs[0].name);
    id_ = bench_->contents().runs[0].id;
  }
  void expect_shown() {
    settle();
    EXPECT_EQ(bench_->shown_run(), id_);
    EXPECT_TRUE(bench_->bus.current().same(Selection::run(id_)));
    EXPECT_TRUE(details_say(name_));
    EXPECT_TRUE(details_say("optimizer.lr") || details_say("optimizer.name")) << "the recipe is among the details";
  }
  QString name_;
  int64_t id_ = 0;
};

TEST_F(ARun, in_the_project_tree) {
  window_->show_view("project");
  auto* tree = window_->findChild<QTreeWidget*>("project.tree");
  ASSERT_NE(tree, nullptr);
  const auto items = tree->findItems(name_, Qt::MatchExactly | Qt::MatchRecursive);
  ASSERT_EQ(items.size(), 1);
  tree->scrollToItem(items[0]);
  click(tree->viewport(), tree->visualItemRect(items[0]).center());
  expect_shown();
}

TEST_F(ARun, in_the_run_box) {
  auto* box = window_->findChild<QComboBox*>("runs");
  ASSERT_NE(box, nullptr);
  ASSERT_GT(box->count(), 1);
  box->setFocus();
  while (box->currentText() != name_) {
    const int before = box->currentIndex();
    key(box, Qt::Key_Down);
    ASSERT_NE(box->currentIndex(), before);
  }
  expect_shown();
}

TEST_F(ARun, by_go_to) {
  window_->open_goto("?" + name_);
  ASSERT_GT(window_->picker()->list()->count(), 0);
  EXPECT_EQ(window_->picker()->list()->item(0)->text(), name_);
  key(window_->picker()->field(), Qt::Key_Return);
  expect_shown();
}

TEST_F(ARun, by_the_way_back) {
  bench_->select(Selection::run(id_, "test"));
  bench_->select(Selection::module(bench_->builder.spec().layers[1].name, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("go.back"));
  expect_shown();
}

TEST_F(ARun, as_the_window_was_left) {
  bench_->select(Selection::run(id_, "test"));
  settle();
  const QString file = file_;
  close_window();
  open(file);
  expect_shown();
}

TEST_F(ARun, while_another_one_trains) {
  bench_->train({.set = {{"epochs", "100000"}}});
  until([this] { return bench_->training() && bench_->status().step > 20; });
  const int64_t live = bench_->status().run;
  auto* tree = window_->findChild<QTreeWidget*>("project.tree");
  const auto runs = bench_->contents().runs;  // those of the model are read anew while one waits
  for (const auto& r : runs) {
    bench_->select(Selection::run(r.id, "test"));
    QTest::qWait(120);
    EXPECT_TRUE(details_say(QString::fromStdString(r.name)));
  }
  bench_->select(Selection::run(live, "test"));
  QTest::qWait(120);
  EXPECT_TRUE(details_say(QString::fromStdString(bench_->status().name)));
  EXPECT_NE(tree->currentItem(), nullptr);
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
}

TEST_F(ARun, in_a_picture_made_without_a_hand) {
  const QString picture = dir_.filePath("details.png");
  QProcess program;
  program.start(QString(TENON_BINARY_DIR) + "/bin/tenon",
                {"shot", file_, "--view", "details", "--select", QString("run:%1").arg(id_), "-o", picture});
  ASSERT_TRUE(program.waitForFinished(120000));
  EXPECT_EQ(program.exitStatus(), QProcess::NormalExit);
  EXPECT_EQ(program.exitCode(), 0) << program.readAllStandardError().toStdString();
  QImage image(picture);
  ASSERT_FALSE(image.isNull());
  EXPECT_EQ(image.size(), QSize(1440, 900));

  // A page of a view, another than the one it begins with.
  QImage pages[2];
  for (const auto& [page, i] : {std::pair("errors", 0), std::pair("curves", 1)}) {
    program.start(QString(TENON_BINARY_DIR) + "/bin/tenon",
                  {"shot", file_, "--view", QString("results/%1").arg(page), "--size", "900x600", "-o", picture});
    ASSERT_TRUE(program.waitForFinished(120000));
    ASSERT_EQ(program.exitCode(), 0) << program.readAllStandardError().toStdString();
    pages[i].load(picture);
  }
  EXPECT_NE(pages[0], pages[1]);
  program.start(QString(TENON_BINARY_DIR) + "/bin/tenon",
                {"shot", file_, "--view", "results/curve", "-o", dir_.filePath("none.png")});
  ASSERT_TRUE(program.waitForFinished(120000));
  EXPECT_EQ(program.exitCode(), 2);
  EXPECT_TRUE(program.readAllStandardError().contains("its pages are errors, curves"));
}

}  // namespace
}  // namespace tenon::views
