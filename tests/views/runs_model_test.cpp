#include "views/runs/runs_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "views/shared/meaning.h"

namespace tenon::views {
namespace {

RunRow row(int64_t id, const std::string& name, double lr, const std::string& optimizer, double accuracy) {
  RunRow r;
  r.info.id = id;
  r.info.name = name;
  r.info.status = id % 2 ? "finished" : "stopped";
  r.info.steps = 100 * id;
  r.info.total_steps = 1000;
  r.info.seconds = 2.5 * static_cast<double>(id);
  r.info.created = "2026-0" + std::to_string(id) + "-01T10:00:00Z";
  r.recipe["optimizer.lr"] = {true, lr, std::to_string(lr)};
  r.recipe["optimizer.name"] = {false, 0, optimizer};
  r.recipe["data.batch_size"] = {true, 64, "64"};
  r.recipe["schedule.name"] = {false, 0, "constant"};
  r.metrics["loss"] = {1 - accuracy, 0.9 - accuracy, 10 * id};
  r.metrics["test_accuracy"] = {accuracy - 0.01, accuracy, 20 * id};
  r.metrics["samples_per_second"] = {1000.0 * static_cast<double>(id), std::nan(""), 0};
  return r;
}
RunRows shared(const std::vector<RunRow>& rows) {
  RunRows out;
  for (const RunRow& r : rows) out.push_back(std::make_shared<RunRow>(r));
  return out;
}
std::vector<RunRow> three_rows() {
  return {row(1, "cnn-01", 0.1, "sgd", 0.80), row(2, "cnn-02", 0.001, "adamw", 0.95),
          row(3, "mlp-01", 0.002, "adamw", 0.91)};
}
RunRows three() { return shared(three_rows()); }
/// The names of the runs that fit, or what is said to be wrong.
std::string fitting(const std::string& filter) {
  RunsModel m;
  m.set_rows(three());
  if (!m.set_filter(filter)) return m.why();
  std::string names;
  for (const auto& r : m.shown()) names += (names.empty() ? "" : " ") + r->info.name;
  return names;
}

TEST(Runs, AFilterKnowsRecipeMetricsAndNames) {
  EXPECT_EQ(fitting(""), "mlp-01 cnn-02 cnn-01") << "the newest first";
  EXPECT_EQ(fitting("lr > 0.001"), "mlp-01 cnn-01");
  EXPECT_EQ(fitting("optimizer.lr >= 1e-3 and best.accuracy >= 0.9"), "mlp-01 cnn-02");
  EXPECT_EQ(fitting("lr > 0.001 and best.accuracy >= 0.9 and name ~ MLP"), "mlp-01");
  EXPECT_EQ(fitting("best.test_accuracy = 0.95"), "cnn-02");
  EXPECT_EQ(fitting("last.accuracy < 0.8"), "cnn-01");
  EXPECT_EQ(fitting("loss < 0.07"), "cnn-02") << "a metric alone is its last value";
  EXPECT_EQ(fitting("samples_per_second > 1500"), "mlp-01 cnn-02");
  EXPECT_EQ(fitting("not name ~ cnn"), "mlp-01");
  EXPECT_EQ(fitting("name ~ cnn and not (lr = 0.1 or lr = 0.2)"), "cnn-02");
  EXPECT_EQ(fitting("lr = 0.1 or name = \"mlp-01\" and steps > 200"), "mlp-01 cnn-01") << "and binds before or";
  EXPECT_EQ(fitting("created >= 2026-02"), "mlp-01 cnn-02");
  EXPECT_EQ(fitting("status != finished"), "cnn-02");
  EXPECT_EQ(fitting("seconds<=5"), "cnn-02 cnn-01");
}

TEST(Runs, AWrongFilterIsSaidInWordsAndTheLastRightOneStays) {
  EXPECT_NE(fitting("lrr > 1").find("did you mean lr"), std::string::npos) << fitting("lrr > 1");
  EXPECT_NE(fitting("name > ").find("nothing where a value belongs"), std::string::npos);
  EXPECT_NE(fitting("lr").find("where an operator belongs"), std::string::npos);
  EXPECT_NE(fitting("(lr > 1").find("not closed"), std::string::npos);
  EXPECT_NE(fitting("lr > 1)").find("not opened"), std::string::npos);
  EXPECT_NE(fitting("lr => 1").find("\"=>\" at letter 4"), std::string::npos) << fitting("lr => 1");
  EXPECT_NE(fitting("lr > 1 steps > 2").find("after a comparison"), std::string::npos);
  EXPECT_NE(fitting("name ~ \"x").find("a quote that does not end"), std::string::npos);
  EXPECT_NE(fitting("best.samples_per_second > 1").find("no better and worse"), std::string::npos);
  const std::string ambiguous = fitting("name = sgd and schedule.name = constant");
  EXPECT_EQ(ambiguous, "") << "a field of its own goes before the end of a key";
  EXPECT_NE(fitting(std::string(5000, '(')).find("hundred"), std::string::npos);
  EXPECT_NE(fitting(std::string(5000, '(') + "lr > 1").find("hundred"), std::string::npos);
  RunsModel m;
  m.set_rows(three());
  ASSERT_TRUE(m.set_filter("name ~ mlp"));
  EXPECT_FALSE(m.set_filter("name ~"));
  EXPECT_EQ(m.shown().size(), 1u);
}

TEST(Runs, ARunWithoutTheFieldFitsItsNegationOnly) {
  std::vector<RunRow> rows = three_rows();
  rows[0].metrics.clear();
  rows[1].metrics["test_accuracy"].best = std::nan("");
  RunsModel m;
  m.set_rows(shared(rows));
  ASSERT_TRUE(m.set_filter("best.accuracy > 0 or best.accuracy <= 0"));
  EXPECT_EQ(m.shown().size(), 1u);
  ASSERT_TRUE(m.set_filter("not best.accuracy > 0"));
  EXPECT_EQ(m.shown().size(), 2u);
}

TEST(Runs, TheTableHasWhatDiffersAndWhatCameOfIt) {
  RunsModel m;
  m.set_rows(three());
  m.set_picked({3, 1});
  const Table t = m.table();
  std::string titles;
  for (const auto& c : t.columns) titles += c.title + "|";
  EXPECT_EQ(titles, "Run|Status|Steps|Time|lr|name|last loss|best loss|last test_accuracy|best test_accuracy|Begun|");
  ASSERT_EQ(t.rows.size(), 3u);
  EXPECT_TRUE(t.rows[0].selection.same(Selection::run(3)));
  EXPECT_TRUE(*t.rows[0].picked);
  EXPECT_FALSE(*t.rows[1].picked);
  EXPECT_EQ(t.rows[0].cells[0].mark, compared_ink(0)) << "the colour of its curve";
  EXPECT_EQ(t.rows[2].cells[0].mark, compared_ink(1));
  EXPECT_EQ(t.rows[1].cells[9].key, 0.95);
  EXPECT_NE(t.rows[1].cells[9].tip.find("at step 40"), std::string::npos) << t.rows[1].cells[9].tip;
  ASSERT_TRUE(m.set_filter("name ~ cnn-01"));
  EXPECT_EQ(m.table().columns.size(), 9u) << "one run differs from nobody";
  ASSERT_TRUE(m.set_filter("steps > 99999"));
  EXPECT_TRUE(m.table().rows.empty());
}

TEST(Runs, TheRunThatTrainsFollowsItsStatus) {
  RunsModel m;
  m.set_rows(three());
  projects::RunStatus s;
  s.run = 2;
  s.state = projects::RunStatus::State::paused;
  s.step = 777;
  s.loss = 0.125;
  m.set_status(s);
  EXPECT_EQ(m.rows()[1]->info.status, "paused");
  EXPECT_EQ(m.rows()[1]->info.steps, 777);
  EXPECT_EQ(m.rows()[1]->metrics.at("loss").last, 0.125);
}

TEST(Runs, RowsAreReadFromAProjectAndOnlyWhatIsNewIsReadAgain) {
  const std::filesystem::path folder = testing::TempDir() + "/runs_model." + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "p.tenon").string();
  const Beginning b = begin(find_template("spirals"), "", path);
  auto project = projects::Project::create(path, b.model, b.recipe.to_json());
  const auto run = project->new_run("", b.model, b.recipe.to_json(), 10);
  project->append_metrics(run.id, {{"loss", {1, 0.1, 3}},
                                   {"loss", {2, 0.2, 1}},
                                   {"loss", {3, 0.3, 2}},
                                   {"loss", {4, 0.4, std::numeric_limits<double>::infinity()}},
                                   {"test_accuracy", {4, 0.4, 0.5}},
                                   {"lr", {4, 0.4, 0.01}}});
  RunRows rows = read_runs(*project, project->runs());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]->metrics.at("loss").best, 1);
  EXPECT_EQ(rows[0]->metrics.at("loss").best_step, 2);
  EXPECT_TRUE(std::isinf(rows[0]->metrics.at("loss").last)) << "what is not finite is not hidden";
  EXPECT_EQ(rows[0]->metrics.at("test_accuracy").best, 0.5);
  EXPECT_TRUE(std::isnan(rows[0]->metrics.at("lr").best));
  EXPECT_TRUE(rows[0]->recipe.count("optimizer.lr") || rows[0]->recipe.count("optimizer.name"));
  EXPECT_EQ(take_over(project->runs(), rows)[0], rows[0]) << "the run did nothing";
  project->append_metrics(run.id, {{"loss", {5, 0.5, 0.25}}});
  EXPECT_EQ(take_over(project->runs(), rows)[0], nullptr);
  EXPECT_EQ(read_runs(*project, project->runs())[0]->metrics.at("loss").best, 0.25);
  project.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::views
