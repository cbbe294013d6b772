// Where a trained model errs, by mouse and keys: evaluated, a cell of the confusion, its samples, inside one of them.
#include <gtest/gtest.h>

#include <QTest>
#include <QToolButton>

#include "engine/templates/templates.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/results/results_model.h"
#include "views/results/samples_view.h"

namespace tenon::views {
namespace {

class ResultsPage : public testing::WindowTest {
 protected:
  ResultsModel& model() { return bench_->model<ResultsModel>(); }
  TableList* samples() { return window_->findChild<TableList*>("results.samples"); }
};

TEST_F(ResultsPage, from_the_evaluation_to_the_tensors_of_the_worst_sample) {
  open_spirals();
  ASSERT_TRUE(window_->commands().run("view.results"));
  settle();
  EXPECT_EQ(model().results(), nullptr);
  train(40);
  ASSERT_TRUE(window_->commands().run("run.evaluate_last"));
  until([&] { return model().results() != nullptr; });
  settle();
  EXPECT_TRUE(banner().contains("accuracy")) << banner().toStdString();
  ASSERT_TRUE(window_->commands().run("view.builder"));
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());  // "Where it errs"
  settle();
  ASSERT_TRUE(window_->view("results")->isVisible());
  const auto& r = *model().results();
  const size_t all = r.predictions.size();
  EXPECT_EQ(static_cast<size_t>(samples()->shown_rows()), std::min(all, ResultsModel::kListed));

  // A cell of the confusion leaves its samples.
  ASSERT_GT(r.count(0, 1), 0) << "40 steps are too few to be right everywhere";
  SceneCanvas* c = canvas("results");
  click(c, place(c, {ResultsModel::cell, 1}));
  settle();
  EXPECT_EQ(samples()->shown_rows(), r.count(0, 1));
  c->setFocus();
  key(c, Qt::Key_Down);
  settle();
  ASSERT_TRUE(model().cell_chosen());
  EXPECT_EQ(samples()->shown_rows(), r.count(1, 1));
  key(c, Qt::Key_Escape);
  settle();
  EXPECT_FALSE(model().cell_chosen());

  // The worst: chosen, described, looked into.
  const int64_t worst = r.predictions[r.worst_first().front()].row;
  click(samples()->viewport(), samples()->visualRect(samples()->model()->index(0, 0)).center());
  settle();
  EXPECT_EQ(to_text(bench_->bus.current()), "sample:" + std::to_string(worst));
  auto* inside = window_->findChild<QToolButton*>("results.inside");
  ASSERT_TRUE(inside->isEnabled());
  click(inside, inside->rect().center());
  until([&] { return bench_->links() && bench_->links().record()->sample == worst; });
  settle();
  EXPECT_TRUE(window_->view("tensor")->isVisible());
  EXPECT_NEAR(bench_->links().record()->loss, r.predictions[static_cast<size_t>(worst)].loss, 1e-5);
  // The step itself is another thing than the sample at it.
  bench_->select(Selection::step(40, "test"));
  until([&] { return bench_->links() && bench_->links().record()->sample < 0; });
  settle();
}

TEST_F(ResultsPage, the_curves_are_a_press_away_and_move_by_keys) {
  open_spirals();
  train(20);
  ASSERT_TRUE(window_->commands().run("run.evaluate_last"));
  until([&] { return model().results() != nullptr; });
  ASSERT_TRUE(window_->commands().run("view.results"));
  settle();
  EXPECT_TRUE(window_->findChild<QToolButton*>("results.errors")->isChecked());
  press("results.curves");
  settle();
  ASSERT_EQ(model().page(), ResultsModel::Page::curves);
  EXPECT_FALSE(window_->findChild<QToolButton*>("results.errors")->isChecked());
  const size_t first = model().ranked_class();
  SceneCanvas* c = canvas("results");
  click(c, place(c, {ResultsModel::ranked, static_cast<int64_t>(1 - first)}));
  settle();
  EXPECT_EQ(model().ranked_class(), 1 - first);
  c->setFocus();
  key(c, first == 0 ? Qt::Key_Up : Qt::Key_Down);
  EXPECT_EQ(model().ranked_class(), first);
  const auto table = window_->view("results")->shown_table();
  ASSERT_TRUE(table);
  // Every sample as the last layer reads it: an arrow chooses one, and the list and the gallery follow.
  press("results.embedding");
  settle();
  ASSERT_EQ(model().page(), ResultsModel::Page::embedding);
  EXPECT_EQ(model().results()->embedding.module, "layers.4");
  c->setFocus();
  key(c, Qt::Key_Right);
  settle();
  const Selection first_sample = bench_->bus.current();
  EXPECT_EQ(first_sample.kind, Selection::Kind::sample);
  key(c, Qt::Key_Right);
  settle();
  EXPECT_FALSE(bench_->bus.current().same(first_sample));
  EXPECT_TRUE(c->model().last().overlaps().empty()) << c->model().last().overlaps().front();
  // The same samples placed by t-SNE, and back; what was worked out is not worked out again.
  const ResultsModel::Places along = model().places();
  auto* tsne = window_->findChild<QToolButton*>("results.tsne");
  ASSERT_TRUE(tsne->isVisible());
  press("results.tsne");
  until([this] { return model().placement(); });
  EXPECT_EQ(model().places(), projects::find_placement("tsne")->place(model().results()->embedding, {}));
  settle();
  EXPECT_TRUE(c->model().last().overlaps().empty()) << c->model().last().overlaps().front();
  const Selection before_key = bench_->bus.current();
  key(c, Qt::Key_Right);
  settle();
  EXPECT_FALSE(bench_->bus.current().same(before_key)) << "the arrows go along what is seen";
  press("results.tsne");
  EXPECT_EQ(model().places(), along);
  press("results.tsne");
  ASSERT_NE(model().placement(), nullptr);
  // One after the other: only one is pressed, and each keeps its places.
  press("results.umap");
  EXPECT_FALSE(tsne->isChecked());
  until([this] { return model().placement() && std::string(model().placement()->name) == "umap"; });
  press("results.tsne");
  ASSERT_NE(model().placement(), nullptr);
  EXPECT_STREQ(model().placement()->name, "tsne");
  ASSERT_TRUE(window_->commands().run("run.evaluate_last"));
  until([this] { return !model().has_places("tsne"); });
  EXPECT_FALSE(tsne->isChecked()) << "other results have other places";
  settle();
  press("results.tsne");
  bench_->jobs.cancel_tag("placement");
  until([tsne] { return !tsne->isChecked(); });
  EXPECT_EQ(model().placement(), nullptr);
  ASSERT_TRUE(window_->commands().run("results.errors"));
  EXPECT_FALSE(tsne->isVisible());
  settle();
  EXPECT_EQ(model().page(), ResultsModel::Page::errors);
  EXPECT_TRUE(window_->findChild<QToolButton*>("results.errors")->isChecked());
}

/// Two steps of a small u-net, whose samples are pictures with masks.
TEST_F(ResultsPage, pictures_of_the_worst_samples_are_chosen_as_their_rows_are) {
  const QString path = dir_.filePath("u-net.tenon");
  const Beginning b =
      begin(find_template("u-net"), "", path.toStdString(), {{"data.samples", "40"}, {"data.batch_size", "8"}});
  projects::Project::create(path.toStdString(), b.model, b.recipe.to_json());
  make_window();
  open(path);
  train(2);
  ASSERT_TRUE(window_->commands().run("run.evaluate_last"));
  until([&] { return model().results() != nullptr; });
  ASSERT_TRUE(window_->commands().run("view.results"));
  window_->resize(1400, 900);
  auto* gallery = window_->findChild<SampleGallery*>("results.gallery");
  until([&] { return gallery->isVisible() && gallery->count() == 8; });
  settle();
  const auto& r = *model().results();
  const auto order = r.worst_first();
  EXPECT_GE(gallery->iconSize().width(), 3 * 64) << "input, truth and answer";
  for (int i = 0; i < gallery->count(); ++i)
    EXPECT_TRUE(gallery->item(i)->toolTip().contains("input, truth, answer")) << i;
  // A press on one, and the arrow to the next: the row in the table goes along.
  click(gallery->viewport(), gallery->visualItemRect(gallery->item(0)).center());
  settle();
  EXPECT_EQ(to_text(bench_->bus.current()), "sample:" + std::to_string(r.predictions[order[0]].row));
  key(gallery, Qt::Key_Right);
  settle();
  EXPECT_EQ(to_text(bench_->bus.current()), "sample:" + std::to_string(r.predictions[order[1]].row));
  EXPECT_EQ(samples()->currentIndex().row(), 1);
  // And the other way round.
  click(samples()->viewport(), samples()->visualRect(samples()->model()->index(2, 0)).center());
  settle();
  EXPECT_EQ(gallery->currentRow(), 2);
}

TEST_F(ResultsPage, they_go_with_their_project) {
  open_spirals();
  train(5);
  window_->commands().run("run.evaluate_last");
  until([&] { return model().results() != nullptr; });
  bench_->select(Selection::sample(0, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  EXPECT_EQ(model().results(), nullptr);
  EXPECT_EQ(bench_->results(), nullptr);
  bench_->select(Selection::sample(0, "test"));  // of nothing
  bench_->look_into_sample(0);
  settle();
}

}  // namespace
}  // namespace tenon::views
