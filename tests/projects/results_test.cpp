// What an evaluation's number is made of, sample by sample.
#include "projects/results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "projects/run_driver.h"
#include "tests/projects/project_files.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

using testing_files::TempDir;

Results made(std::vector<std::pair<int64_t, int64_t>> truth_and_guess, std::vector<double> sure = {}) {
  Results r;
  r.classes = {"a", "b", "c"};
  r.confusion.assign(9, 0);
  for (size_t i = 0; i < truth_and_guess.size(); ++i) {
    const auto [t, g] = truth_and_guess[i];
    ++r.confusion[static_cast<size_t>(t * 3 + g)];
    Prediction p;
    p.row = static_cast<int64_t>(i);
    p.truth = t, p.guess = g;
    p.confidence = i < sure.size() ? sure[i] : 0.5;
    p.loss = -std::log(t == g ? p.confidence : 1 - p.confidence);
    r.predictions.push_back(p);
  }
  return r;
}

TEST(Results, classes_are_counted_as_their_names_say) {
  const Results r = made({{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 0}, {1, 0}});
  const auto all = r.per_class();
  EXPECT_EQ(all[0].samples, 3);
  EXPECT_EQ(all[0].guessed, 4);
  EXPECT_EQ(all[0].right, 2);
  EXPECT_DOUBLE_EQ(all[0].precision(), 0.5);
  EXPECT_DOUBLE_EQ(all[0].recall(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(all[0].f1(), 2 * 0.5 * (2.0 / 3) / (0.5 + 2.0 / 3));
  EXPECT_EQ(all[2].samples, 0);
  EXPECT_TRUE(std::isnan(all[2].recall()) && std::isnan(all[2].precision()) && std::isnan(all[2].f1()));
}

TEST(Results, calibration_is_the_distance_of_sure_and_right) {
  // Four samples it was 95 % sure of, of which three were right; two it was 55 % sure of, both right.
  const Results r = made({{0, 0}, {0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 1}}, {0.95, 0.95, 0.95, 0.95, 0.55, 0.55});
  const auto bins = r.calibration();
  EXPECT_EQ(bins[9].samples, 4);
  EXPECT_DOUBLE_EQ(bins[9].accuracy, 0.75);
  EXPECT_EQ(bins[5].samples, 2);
  EXPECT_NEAR(r.calibration_error(), (4 * 0.20 + 2 * 0.45) / 6, 1e-12);
  EXPECT_EQ(r.worst_first().front(), 3u);
  EXPECT_TRUE(std::isnan(Results{}.calibration_error()));
}

struct OfARun : ::testing::Test {
  TempDir dir;
  std::shared_ptr<Project> project;
  RunInfo run;
  void train(const char* name, int64_t steps, const std::vector<std::pair<std::string, std::string>>& set = {}) {
    const Template& t = find_template(name);
    project = Project::create(dir / (std::string(name) + ".tenon"), t.model, t.recipe.to_json());
    TrainOptions o;
    o.run_name = "r";
    o.max_steps = steps;
    o.set = set;
    RunDriver::start(project, o)->wait();
    run = project->run("r");
    ASSERT_EQ(run.steps, steps) << run.error;
  }
};

TEST_F(OfARun, samples_add_up_to_the_evaluation) {
  train("spirals", 80);
  const Results r = results_at(*project, run, 80);
  EXPECT_EQ(r.classes.size(), 2u);
  ASSERT_EQ(static_cast<int64_t>(r.predictions.size()), r.evaluation.samples);
  double loss = 0;
  int64_t right = 0;
  for (const Prediction& p : r.predictions) loss += p.loss, right += p.guess == p.truth;
  EXPECT_NEAR(loss / static_cast<double>(r.evaluation.samples), r.evaluation.loss, 1e-5);
  EXPECT_EQ(right, r.evaluation.correct);
  EXPECT_EQ(r.count(0, 0) + r.count(1, 1), right);
  EXPECT_EQ(r.count(0, 0) + r.count(0, 1) + r.count(1, 0) + r.count(1, 1), r.evaluation.samples);
  EXPECT_EQ(r.evaluation.loss, project->metric(run.id, "test_loss").back().value) << "the same as while it trained";
}

TEST_F(OfARun, the_samples_lie_where_the_last_layer_reads_them) {
  train("spirals", 80);
  const Results r = results_at(*project, run, 80);
  EXPECT_EQ(r.embedding.module, "layers.4");
  EXPECT_EQ(r.embedding.width, 64);
  ASSERT_EQ(r.embedding.plane.points.size(), r.predictions.size());
  EXPECT_GT(r.embedding.plane.share[0], r.embedding.plane.share[1]);
  EXPECT_LE(r.embedding.plane.share[0] + r.embedding.plane.share[1], 1 + 1e-9);
  EXPECT_TRUE(r.why_unembedded().empty());
  // The same state, looked at again, gives the same bits.
  EXPECT_EQ(results_at(*project, run, 80).embedding.plane.points, r.embedding.plane.points);
  for (const Placement& by : placements()) {
    const auto placed = by.place(r.embedding, {});
    EXPECT_EQ(placed.size(), r.predictions.size());
    EXPECT_EQ(by.place(results_at(*project, run, 80).embedding, {}), placed) << by.title;
    EXPECT_TRUE(by.place(Embedding(), {}).empty());
  }
}

TEST_F(OfARun, many_targets_a_sample_are_no_point) {
  train("u-net", 1, {{"data.samples", "24"}, {"data.batch_size", "4"}});
  const Results r = results_at(*project, run, 1);
  EXPECT_TRUE(r.embedding.module.empty());
  EXPECT_NE(r.why_unembedded().find("many targets in each"), std::string::npos) << r.why_unembedded();
}

TEST_F(OfARun, a_sample_is_looked_into_and_its_loss_is_the_one_that_was_judged) {
  train("spirals", 60);
  const Results r = results_at(*project, run, 60);
  const int64_t row = r.predictions[r.worst_first().front()].row;
  const auto record = record_sample(*project, run.id, 60, row);
  EXPECT_EQ(record->sample, row);
  EXPECT_EQ(record->step, 60);
  EXPECT_NEAR(record->loss, r.predictions[static_cast<size_t>(row)].loss, 1e-5);
  EXPECT_FALSE(record->ops.empty() || record->grad_nodes.empty() || record->allocs.empty());
  EXPECT_EQ(record->samples, std::vector<int64_t>{row});
  bool gradient = false;
  for (const auto& t : record->tensors) gradient |= t.name.starts_with("grad of ");
  EXPECT_TRUE(gradient);
  EXPECT_THROW(record_sample(*project, run.id, 60, 1 << 30), Error);
  EXPECT_THROW(record_sample(*project, run.id, 60, -1), Error);
}

TEST_F(OfARun, looking_inside_changes_nothing_of_the_state) {
  train("spirals", 20);
  const auto session = replay_to(*project, run.id, 20, {});
  const std::string before = digest(session->save());
  session->probe({0});
  EXPECT_EQ(digest(session->save()), before);
  session->step();
  const auto plain = replay_to(*project, run.id, 20, {});
  plain->step();
  EXPECT_EQ(digest(session->save()), digest(plain->save()));
}

/// The share that the first of two classes was given.
double share_of_first(const Prediction& p) { return p.guess == 0 ? p.confidence : 1 - p.confidence; }

TEST_F(OfARun, classes_are_ranked_by_the_shares_they_were_given) {
  train("spirals", 80);
  const Results r = results_at(*project, run, 80);
  ASSERT_EQ(r.rankings.size(), 2u);
  EXPECT_EQ(r.rankings[0].positives, r.count(0, 0) + r.count(0, 1));
  EXPECT_EQ(r.rankings[0].positives + r.rankings[0].negatives, r.evaluation.samples);
  double won = 0, pairs = 0;
  for (const Prediction& p : r.predictions)
    for (const Prediction& q : r.predictions)
      if (p.truth == 0 && q.truth == 1) {
        const double a = share_of_first(p), b = share_of_first(q);
        ++pairs, won += a > b ? 1 : a == b ? 0.5 : 0;
      }
  EXPECT_NEAR(r.rankings[0].auroc, won / pairs, 1e-4);
  EXPECT_NEAR(r.rankings[1].auroc, r.rankings[0].auroc, 1e-4) << "of two classes one is the other turned round";
  EXPECT_DOUBLE_EQ(r.auroc(), (r.rankings[0].auroc + r.rankings[1].auroc) / 2);
  EXPECT_TRUE(r.why_unranked().empty());
  EXPECT_EQ(r.unranked, 0);
}

TEST_F(OfARun, the_answers_to_the_worst_pictures_are_kept_and_no_more) {
  train("u-net", 2, {{"data.samples", "300"}, {"data.batch_size", "8"}});
  const Results r = results_at(*project, run, 2);
  ASSERT_EQ(r.predictions.size(), 60u);
  ASSERT_EQ(r.answers.size(), Results::kAnswers);
  const auto order = r.worst_first();
  for (size_t i = 0; i < Results::kAnswers; ++i) {
    const Prediction& p = r.predictions[order[i]];
    ASSERT_TRUE(r.answers.count(p.row)) << i;
    const std::vector<int64_t>& guesses = r.answers.at(p.row).classes;
    ASSERT_EQ(static_cast<int64_t>(guesses.size()), 32 * 32);
    EXPECT_EQ(p.truth, -1) << "a sample of many targets has no single class";
    ASSERT_TRUE(p.worst >= 0 && p.worst < 32 * 32);
    EXPECT_EQ(guesses[static_cast<size_t>(p.worst)], p.worst_guess);
    EXPECT_GE(p.worst_loss, p.loss) << "no target lies above the worst, so no mean does";
    const data::Batch b = data::fetch(*r.data, {p.row});
    EXPECT_EQ(b.y.data<int64_t>()[p.worst], p.worst_truth);
  }
  int64_t all = 0;
  for (int64_t n : r.confusion) all += n;
  EXPECT_EQ(all, 60 * 32 * 32);
  EXPECT_EQ(r.rankings[0].positives + r.rankings[0].negatives, all) << "every pixel is ranked";
}

TEST_F(OfARun, scores_that_are_no_numbers_are_left_out_of_the_ranking_and_counted) {
  train("spirals", 12, {{"optimizer.lr", "1e30"}, {"on_nan", "continue"}});
  const Results r = results_at(*project, run, 12);
  EXPECT_EQ(r.unranked, r.evaluation.samples);
  ASSERT_EQ(r.rankings.size(), 2u);
  EXPECT_TRUE(std::isnan(r.auroc()) && std::isnan(r.average_precision()));
  EXPECT_EQ(r.predictions[0].guess, -1);
}

TEST_F(OfARun, yes_or_no_is_ranked_as_its_metric_says) {
  train("recommender", 12);
  const Results r = results_at(*project, run, 12);
  ASSERT_EQ(r.rankings.size(), 2u);
  EXPECT_GT(r.auroc(), 0.3);
  EXPECT_EQ(r.auroc(), r.rankings[1].auroc) << "that of yes";
  bool found = false;
  for (const Judgement& j : r.evaluation.judgements) {
    if (j.name != "auc") continue;
    found = true;
    EXPECT_NEAR(j.value, r.auroc(), 1e-6);
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(std::isnan(Results{}.auroc()));
  Results values;
  values.task = "regression";
  EXPECT_NE(values.why_unranked().find("regression"), std::string::npos);
}

TEST_F(OfARun, values_and_yes_or_no_are_judged_too) {
  train("tabular", 30);
  const Results values = results_at(*project, run, 30);
  ASSERT_FALSE(values.predictions.empty());
  double loss = 0;
  for (const Prediction& p : values.predictions) loss += p.loss / static_cast<double>(values.predictions.size());
  if (values.classes.empty()) {
    EXPECT_TRUE(std::isnan(values.calibration_error()));
    EXPECT_TRUE(std::isfinite(loss));
  } else {
    EXPECT_EQ(values.classes.size() * values.classes.size(), values.confusion.size());
  }
}

}  // namespace
}  // namespace tenon::projects
