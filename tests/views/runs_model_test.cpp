#include "views/runs/runs_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "views/runs/run_groups.h"
#include "views/runs/runs_chart.h"
#include "views/shared/meaning.h"

namespace tenon::views {
namespace {

RunRow run_row(int64_t id, const std::string& name, double lr, const std::string& optimizer, double accuracy) {
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
template <class T>
KeyedValues<T> without(const KeyedValues<T>& all, const std::string& gone) {
  KeyedValues<T> rest;
  for (const std::string& key : all.keys())
    if (key != gone) rest[key] = *all.find(key);
  return rest;
}
RunRows shared(const std::vector<RunRow>& rows) {
  RunRows out;
  for (const RunRow& r : rows) out.push_back(std::make_shared<RunRow>(r));
  return out;
}
std::vector<RunRow> three_rows() {
  return {run_row(1, "cnn-01", 0.1, "sgd", 0.80), run_row(2, "cnn-02", 0.001, "adamw", 0.95),
          run_row(3, "mlp-01", 0.002, "adamw", 0.91)};
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
  rows[0].metrics = {};
  rows[1].metrics["test_accuracy"].best = std::nan("");
  RunsModel m;
  m.set_rows(shared(rows));
  ASSERT_TRUE(m.set_filter("best.accuracy > 0 or best.accuracy <= 0"));
  EXPECT_EQ(m.shown().size(), 1u);
  ASSERT_TRUE(m.set_filter("not best.accuracy > 0"));
  EXPECT_EQ(m.shown().size(), 2u);
}

TEST(Runs, ABaselineStandsFirstAndTheOthersSayByHowMuchTheyAreOther) {
  RunsModel m;
  std::vector<RunRow> rows = three_rows();
  rows[2].metrics = without(rows[2].metrics, "test_accuracy");
  m.set_rows(shared(rows));
  ASSERT_TRUE(m.set_filter("name ~ 02 or name ~ mlp"));
  const size_t columns = m.table().columns.size();
  m.set_baseline(1);
  const Table t = m.table();
  ASSERT_EQ(t.rows.size(), 3u) << "a filter does not take it away";
  EXPECT_EQ(t.rows[0].cells[0].text, "cnn-01 · baseline");
  const auto column = [&](const std::string& title) {
    for (size_t i = 0; i < t.columns.size(); ++i)
      if (t.columns[i].title == title) return i;
    throw Error("no column " + title);
  };
  EXPECT_EQ(t.columns.size(), columns + 3) << "two differences, and the optimizer in which it is another";
  const size_t accuracy = column("± test_accuracy"), loss = column("± loss");
  EXPECT_EQ(t.rows[0].cells[accuracy].text, "–");
  EXPECT_EQ(t.rows[1].cells[accuracy].text, "–") << "it has no accuracy";
  EXPECT_EQ(t.rows[2].cells[accuracy].text, "+15.00 %");
  EXPECT_EQ(t.rows[2].cells[accuracy].mark, Ink::good);
  EXPECT_NEAR(t.rows[2].cells[accuracy].key, 0.15, 1e-12);
  EXPECT_EQ(t.rows[2].cells[loss].mark, Ink::good) << "a loss is better where it is less";
  EXPECT_LT(t.rows[2].cells[loss].key, 0);
  EXPECT_NEAR(m.beside_baseline("test_accuracy", *m.rows()[1]), 0.15, 1e-12);
  m.set_baseline(77);
  EXPECT_EQ(m.table().columns.size(), columns);
}

TEST(Runs, KeysThatEndLikeSomethingElseOfARunAreWhole) {
  std::vector<RunRow> rows = three_rows();
  for (RunRow& r : rows) {
    r.recipe["init.run"] = {false, 0, "of " + r.info.name};
    r.recipe["init.layers"] = {false, 0, r.info.name};
  }
  RunsModel m;
  m.set_rows(shared(rows));
  std::set<std::string> titles;
  const Table t = m.table();
  for (const auto& c : t.columns) EXPECT_TRUE(titles.insert(c.title).second) << c.title << " stands there twice";
  for (const char* title : {"Run", "init.run", "layers", "lr"}) EXPECT_TRUE(titles.count(title)) << title;
}

TEST(Runs, TheTableHasWhatDiffersAndWhatCameOfIt) {
  RunsModel m;
  m.set_rows(three());
  m.set_picked({3, 1});
  const Table t = m.table();
  std::string titles;
  for (const auto& c : t.columns) titles += c.title + "|";
  EXPECT_EQ(titles,
            "Run|Status|best test_accuracy|Steps|Time|lr|optimizer.name|last loss|best loss|last test_accuracy|Begun "
            "(UTC)|")
      << "a name alone would be that of the run";
  ASSERT_EQ(t.rows.size(), 3u);
  EXPECT_TRUE(t.rows[0].selection.same(Selection::run(3)));
  EXPECT_TRUE(*t.rows[0].picked);
  EXPECT_FALSE(*t.rows[1].picked);
  EXPECT_EQ(t.rows[0].cells[0].mark, compared_ink(0)) << "the colour of its curve";
  EXPECT_EQ(t.rows[2].cells[0].mark, compared_ink(1));
  EXPECT_EQ(t.rows[1].cells[2].key, 0.95);
  EXPECT_NE(t.rows[1].cells[2].tip.str().find("at step 40"), std::string::npos) << t.rows[1].cells[2].tip.str();
  ASSERT_TRUE(m.set_filter("name ~ cnn-01"));
  EXPECT_EQ(m.table().columns.size(), 9u) << "one run differs from nobody";
  ASSERT_TRUE(m.set_filter("steps > 99999"));
  EXPECT_TRUE(m.table().rows.empty());
}

TEST(Runs, AKeyThatOnlySomeHaveIsNoColumnWhereTheseAgree) {
  std::vector<RunRow> rows = three_rows();
  rows[1].recipe["optimizer.beta1"] = rows[2].recipe["optimizer.beta1"] = {true, 0.9, "0.9"};
  const auto titles = [&] {
    RunsModel m;
    m.set_rows(shared(rows));
    std::string all;
    for (const auto& c : m.table().columns) all += c.title + "|";
    return all;
  };
  EXPECT_EQ(titles().find("beta1"), std::string::npos) << titles();
  const auto axes = [&] {
    std::string all;
    for (const RunField& f : varied_fields(shared(rows))) all += f.text() + " ";
    return all;
  };
  EXPECT_EQ(axes(), "optimizer.lr optimizer.name ");
  rows[2].recipe["optimizer.beta1"] = {true, 0.5, "0.5"};
  EXPECT_EQ(axes(), "optimizer.beta1 optimizer.lr optimizer.name ");
  EXPECT_NE(titles().find("beta1"), std::string::npos) << titles();
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
  EXPECT_EQ(m.rows()[1]->metrics.find("loss")->last, 0.125);
}

TEST(Runs, ValuesAreFoundByTheirKeysAndRowsShareTheListOfThem) {
  KeyedValues<int> a(std::map<std::string, int>{{"b", 2}, {"a", 1}}), b;
  b["b"] = 20;
  b["a"] = 10;
  EXPECT_EQ(*a.find("a"), 1);
  EXPECT_EQ(*b.find("b"), 20);
  EXPECT_EQ(a.find("aa"), nullptr);
  EXPECT_EQ(KeyedValues<int>().find("a"), nullptr);
  EXPECT_TRUE(a.same_keys(b));
  EXPECT_NE(&a.keys(), &b.keys());
  b.share_keys(a);
  EXPECT_EQ(&a.keys(), &b.keys());
  b["c"] = 30;  // its own from here on
  EXPECT_EQ(a.keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(b.keys(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(*b.find("b"), 20);
  EXPECT_FALSE(a.same_keys(b));
}

TEST(Runs, RowsAreReadFromAProjectAndOnlyWhatIsNewIsReadAgain) {
  const std::filesystem::path folder = ::testing::TempDir() + "/runs_model." + std::to_string(getpid());
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
  EXPECT_EQ(rows[0]->metrics.find("loss")->best, 1);
  EXPECT_EQ(rows[0]->metrics.find("loss")->best_step, 2);
  EXPECT_TRUE(std::isinf(rows[0]->metrics.find("loss")->last)) << "what is not finite is not hidden";
  EXPECT_EQ(rows[0]->metrics.find("test_accuracy")->best, 0.5);
  EXPECT_TRUE(std::isnan(rows[0]->metrics.find("lr")->best));
  EXPECT_TRUE(rows[0]->recipe.find("optimizer.lr") || rows[0]->recipe.find("optimizer.name"));
  EXPECT_EQ(take_over(project->runs(), rows)[0], rows[0]) << "the run did nothing";
  project->append_metrics(run.id, {{"loss", {5, 0.5, 0.25}}});
  EXPECT_EQ(take_over(project->runs(), rows)[0], nullptr);
  EXPECT_EQ(read_runs(*project, project->runs())[0]->metrics.find("loss")->best, 0.25);
  project.reset();
  std::filesystem::remove_all(folder);
}

TEST(Runs, GroupsHaveTheMeanTheSpreadAndTheBestOfTheirRuns) {
  const RunRows rows = shared({run_row(1, "a", 0.1, "sgd", 0.80), run_row(2, "b", 0.001, "adamw", 0.90),
                               run_row(3, "c", 0.002, "adamw", 0.94), run_row(4, "d", 0.002, "adamw", std::nan(""))});
  const RunField optimizer{RunField::Kind::recipe, "optimizer.name"};
  const auto groups = groups_of(rows, optimizer);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].value, "adamw");
  EXPECT_EQ(groups[0].runs.size(), 3u);
  const Spread s = spread_of(groups[0], "test_accuracy");
  EXPECT_EQ(s.values.size(), 2u) << "a run without a finite value says nothing";
  EXPECT_DOUBLE_EQ(s.mean(), 0.92);
  EXPECT_NEAR(s.deviation(), std::sqrt(0.0008), 1e-12);
  ASSERT_TRUE(s.best);
  EXPECT_EQ(s.best->info.name, "c");
  EXPECT_TRUE(std::isnan(spread_of(groups[1], "test_accuracy").deviation())) << "one run has no spread";
  RunsModel m;
  m.set_rows(rows);
  m.set_group(optimizer);
  Table t = m.table();
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.columns[0].title, "optimizer.name");
  EXPECT_EQ(t.rows[0].cells[1].text, "3");
  EXPECT_EQ(t.rows[0].selection.id, 3) << "the best run of the group";
  EXPECT_EQ(t.columns[3].title, "mean test_accuracy") << "of the test data, and where higher is better, first";
  // What a filter leaves out is in no group.
  ASSERT_TRUE(m.set_filter("name != c"));
  EXPECT_EQ(m.table().rows[0].cells[1].text, "2");
}

TEST(Runs, GroupsStandInTheOrderOfTheirValues) {
  std::vector<RunRow> rows = {run_row(1, "a", 10, "x", 0.5), run_row(2, "b", 9, "x", 0.5),
                              run_row(3, "c", 9, "x", 0.5)};
  rows.push_back(run_row(4, "d", 0, "x", 0.5));
  rows.back().recipe = without(rows.back().recipe, "optimizer.lr");
  const RunRows all = shared(rows);
  const auto groups = groups_of(all, {RunField::Kind::recipe, "optimizer.lr"});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].runs.size(), 2u);
  EXPECT_EQ(groups[1].runs.front()->info.name, "a") << "9 before 10, as numbers";
  EXPECT_EQ(groups[2].value, "–");
  EXPECT_TRUE(groups_of({}, {RunField::Kind::steps, {}}).empty());
}

TEST(Runs, FieldsAreNamedAsAFilterNamesThem) {
  const RunRows rows = three();
  const RunFields fields(rows);
  EXPECT_EQ(field_named(fields, "lr").text(), "optimizer.lr");
  EXPECT_EQ(field_named(fields, "best.accuracy").text(), "best.test_accuracy");
  EXPECT_EQ(field_named(fields, "time").text(), "seconds");
  for (const RunField& f : told_fields(rows)) EXPECT_EQ(field_named(fields, f.text()), f);
  for (const RunField& f : result_fields(rows)) EXPECT_EQ(field_named(fields, f.text()), f);
  EXPECT_THROW(field_named(fields, "lrr"), Error);
  EXPECT_THROW(field_named(fields, "best.samples_per_second"), Error) << "has no better and worse";
  EXPECT_EQ(result_fields(rows).front().text(), "best.test_accuracy");
  EXPECT_EQ(main_field(rows), (RunField{RunField::Kind::recipe, "optimizer.lr"})) << "three rates, two optimizers";
  EXPECT_FALSE(main_field({}));
}

struct RunsChartTest : ::testing::Test {
  RunsChart chart;
  std::vector<Selection> selected;
  void SetUp() override {
    chart.on_select = [this](const Selection& s) { selected.push_back(s); };
    chart.set_fields({RunField::Kind::recipe, "optimizer.lr"}, {RunField::Kind::best, "test_accuracy"});
    chart.set_rows(three());
  }
  Point middle(int64_t run) {
    for (const auto& t : chart.frame({600, 300}).targets())
      if (t.hit == Hit{RunsChart::run, run}) return {t.box.x + t.box.w / 2, t.box.y + t.box.h / 2};
    ADD_FAILURE() << "run " << run << " is not drawn";
    return {};
  }
};

TEST_F(RunsChartTest, EveryRunStandsWhereItsValuesAre) {
  // 0.001, 0.002, 0.1 against 0.95, 0.91, 0.80.
  EXPECT_LT(middle(2).x, middle(3).x);
  EXPECT_LT(middle(3).x, middle(1).x);
  EXPECT_LT(middle(2).y, middle(3).y) << "up is more";
  EXPECT_LT(middle(3).y, middle(1).y);
  // Not over 100: a linear axis, so the first two lie close together.
  EXPECT_LT(middle(3).x - middle(2).x, 0.05f * (middle(1).x - middle(2).x));
  auto rows = three_rows();
  rows[0].recipe["optimizer.lr"].x = 0.2;
  chart.set_rows(shared(rows));
  EXPECT_GT(middle(3).x - middle(2).x, 0.1f * (middle(1).x - middle(2).x)) << "over 100: a logarithmic axis";
  EXPECT_TRUE(chart.frame({600, 300}).overlaps().empty());
}

TEST_F(RunsChartTest, AClickAndKeysChooseARun) {
  const Point p = middle(3);
  EXPECT_TRUE(chart.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}}));
  ASSERT_EQ(selected.size(), 1u);
  EXPECT_EQ(selected[0].id, 3);
  EXPECT_TRUE(chart.key({"Right", "", {}}));
  EXPECT_EQ(selected.back().id, 1) << "the next along the axis";
  EXPECT_TRUE(chart.key({"Home", "", {}}));
  EXPECT_EQ(selected.back().id, 2);
  EXPECT_TRUE(chart.key({"Left", "", {}}));
  EXPECT_EQ(selected.size(), 3u) << "it was the first";
  EXPECT_FALSE(chart.key({"X", "", {}}));
  EXPECT_NE(chart.summary().find("highest: best.test_accuracy = 0.95 of cnn-02"), std::string::npos) << chart.summary();
  EXPECT_FALSE(chart.pointer({PointerEvent::Type::press, Button::left, 1, 1, {}}));
}

TEST_F(RunsChartTest, EveryRunIsALineThroughAllKeys) {
  chart.set_axes(told_fields(three()));
  ASSERT_EQ(told_fields(three()).size(), 2u) << "rates and optimizers";
  const auto lines = [&] {
    std::vector<std::vector<Point>> all;
    const Scene& s = chart.frame({700, 260});
    EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
    for (const auto& p : s.prims())
      if (p.kind == Scene::Kind::line && p.count == 3)
        all.emplace_back(s.points().begin() + p.first, s.points().begin() + p.first + p.count);
    return all;
  }();
  ASSERT_EQ(lines.size(), 3u);
  for (const auto& line : lines) {
    EXPECT_LT(line[0].x, line[1].x);
    EXPECT_LT(line[1].x, line[2].x);
  }
  // By the result, the lowest first: 0.80 of cnn-01 with the highest rate.
  EXPECT_GT(lines[0][2].y, lines[1][2].y);
  EXPECT_LT(lines[0][0].y, lines[1][0].y);
  EXPECT_EQ(lines[1][1].y, lines[2][1].y) << "both adamw";
  // Keys go by the result, a click chooses; what is chosen is said.
  EXPECT_TRUE(chart.key({"End", "", {}}));
  EXPECT_EQ(selected.back().id, 2);
  EXPECT_NE(chart.summary().find("cnn-02: "), std::string::npos) << chart.summary();
  EXPECT_NE(chart.summary().find("optimizer.name = adamw"), std::string::npos) << chart.summary();
  const auto texts = chart.frame({700, 260}).texts();
  for (const char* said : {"optimizer.lr", "adamw", "best.test_accuracy"})
    EXPECT_NE(std::find(texts.begin(), texts.end(), said), texts.end()) << said;
  for (const Size size : {Size{300, 120}, Size{960, 120}, Size{1400, 500}})
    EXPECT_TRUE(chart.frame(size).overlaps().empty()) << size.w;
}

TEST_F(RunsChartTest, ThousandsOfRunsAreSoManyLinesThatAFrameStaysShort) {
  std::vector<RunRow> many;
  for (int64_t i = 1; i <= 3000; ++i)
    many.push_back(run_row(i, "r" + std::to_string(i), 0.001 * static_cast<double>(i), i % 3 ? "sgd" : "adamw",
                           0.9 - 0.0002 * static_cast<double>(i)));
  chart.set_rows(shared(many));
  chart.set_axes(told_fields(shared(many)));
  chart.set_selected(1500);
  const Scene& s = chart.frame({900, 300});
  EXPECT_LT(s.prims().size(), 5000u);
  const auto texts = s.texts();
  EXPECT_NE(std::find(texts.begin(), texts.end(), "the 400 highest and lowest of 3,000"), texts.end());
}

TEST_F(RunsChartTest, WordsHaveAPlaceEachAndWhatHasNoValueIsCounted) {
  auto rows = three_rows();
  rows.push_back(run_row(4, "broken", 0.1, "sgd", std::nan("")));
  chart.set_rows(shared(rows));
  chart.set_fields({RunField::Kind::recipe, "optimizer.name"}, {RunField::Kind::best, "test_accuracy"});
  EXPECT_EQ(middle(2).x, middle(3).x) << "both adamw";
  EXPECT_NE(middle(1).x, middle(3).x);
  const auto texts = chart.frame({600, 300}).texts();
  for (const char* said : {"adamw", "sgd", "1 left out"})
    EXPECT_NE(std::find(texts.begin(), texts.end(), said), texts.end()) << said;
  chart.set_group(RunField{RunField::Kind::status, {}});
  const auto legend = chart.frame({600, 300}).texts();
  EXPECT_NE(std::find(legend.begin(), legend.end(), "status:"), legend.end());
  chart.set_rows({});
  EXPECT_EQ(chart.frame({600, 300}).texts().size(), 1u) << "says that there is nothing";
  EXPECT_FALSE(chart.key({"Right", "", {}}));
}

}  // namespace
}  // namespace tenon::views
