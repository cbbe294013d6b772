// Every job of the command line, as a script sees it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/file.h"
#include "engine/formats/gzip.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct Commands : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    ASSERT_EQ(tenon({"train", project, "--run", "r", "--epochs", "3"}).status, 0);
  }
};

TEST_F(Commands, train_gives_a_record_for_every_step) {
  const Outcome o = tenon({"train", project, "--run", "s", "--epochs", "5", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  auto lines = o.json();
  std::erase_if(lines, [](const auto& j) { return j.contains("event"); });  // what became of plans
  EXPECT_EQ(lines.front().at("run"), "s");
  EXPECT_EQ(lines.back().at("status"), "finished");
  const int64_t steps = lines.back().at("step").get<int64_t>();
  ASSERT_EQ(lines.size(), static_cast<size_t>(steps) + 2);
  for (int64_t i = 1; i <= steps; ++i) {
    const auto& j = lines[static_cast<size_t>(i)];
    ASSERT_EQ(j.at("step"), i);
    ASSERT_TRUE(j.contains("loss") && j.contains("lr") && j.contains("epoch"));
  }
  EXPECT_TRUE(lines[static_cast<size_t>(steps)].contains("test_accuracy"));
}

TEST_F(Commands, classes_are_ranked_and_a_report_is_written) {
  const Outcome o = tenon({"eval", project, "r", "--roc", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto lines = o.json();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].at("class"), "first arm");
  const double mean = (lines[1].at("auroc").get<double>() + lines[2].at("auroc").get<double>()) / 2;
  EXPECT_DOUBLE_EQ(lines[0].at("auroc").get<double>(), mean);
  EXPECT_EQ(lines[1].at("points").back().at(1), 1.0) << "at the least threshold everything is taken";
  EXPECT_EQ(lines[1].at("points").back().at(2), 1.0);
  EXPECT_NE(tenon({"eval", project, "r", "--roc"}).out.find("mean of the classes"), std::string::npos);
  const auto embedded = tenon({"eval", project, "r", "--embedding", "--json"}).json();
  ASSERT_EQ(embedded.size(), 2 + static_cast<size_t>(embedded.front().at("samples").get<int64_t>()))
      << "what it came to, the directions, and a line a sample";
  EXPECT_EQ(embedded[1].at("module"), "layers.4");
  EXPECT_EQ(embedded[1].at("numbers"), 64);
  EXPECT_EQ(embedded.back().at("at").size(), 2u);
  for (const std::string by : {"tsne", "umap"}) {
    const auto placed = tenon({"eval", project, "r", "--" + by, "--json"}).json();
    ASSERT_EQ(placed.size(), embedded.size());
    EXPECT_EQ(placed[1].at("method"), by);
    EXPECT_NE(placed.back().at("at"), embedded.back().at("at"));
    EXPECT_EQ(placed.back().at("sample"), embedded.back().at("sample"));
  }

  const std::string page = folder / "report.html";
  const Outcome report = tenon({"report", project, "r", "-o", page});
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.out.find("the report of r at step"), std::string::npos) << report.out;
  const std::string first = read_file(page);
  EXPECT_TRUE(first.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(tenon({"report", project, "-o", page, "--threads", "2"}).status, 0);
  EXPECT_EQ(tenon({"report", project, "r", "-o", folder / "again.html", "--threads", "2"}).status, 0);
  EXPECT_EQ(read_file(page), read_file(folder / "again.html"));
  EXPECT_EQ(tenon({"report", project, "r", "-o", folder / "report.pdf"}).status, 2);
  EXPECT_EQ(tenon({"report", project, "r"}).status, 2);
  EXPECT_EQ(tenon({"report", project, "r", "-o", page, "--checkpoint", "9999999"}).status != 0, true);
  EXPECT_EQ(read_file(page), read_file(folder / "again.html")) << "a report that fails leaves the old one";
}

TEST_F(Commands, the_recipe_of_the_next_run) {
  auto value = [&](const std::string& key, const char* what) {
    for (const auto& j : tenon({"recipe", project, "--json"}).json())
      if (j.at("key") == key) return j.at(what);
    return nlohmann::json();
  };
  const auto before = value("optimizer.lr", "value");
  EXPECT_EQ(value("optimizer.lr", "last_run"), before);
  const Outcome set = tenon({"recipe", project, "--set", "optimizer.lr=0.125", "--set", "epochs=7"});
  EXPECT_EQ(set.status, 0) << set.err;
  EXPECT_NE(set.out.find("0.125"), std::string::npos) << set.out;
  EXPECT_EQ(value("optimizer.lr", "value"), 0.125);
  EXPECT_EQ(value("optimizer.lr", "last_run"), before) << "the run keeps what it was told";
  EXPECT_EQ(value("epochs", "value"), 7);
  EXPECT_EQ(tenon({"recipe", project, "--reset", "epochs"}).status, 0);
  EXPECT_EQ(value("epochs", "value"), value("epochs", "default"));
  EXPECT_EQ(tenon({"recipe", project, "--set", "epochs=9"}).status, 0);
  EXPECT_EQ(tenon({"recipe", project, "--as", "r"}).status, 0);
  EXPECT_EQ(value("optimizer.lr", "value"), before) << "as the run was told";
  EXPECT_EQ(tenon({"recipe", project, "--as-template", "spirals", "--set", "optimizer.lr=0.125"}).status, 0);
  EXPECT_EQ(tenon({"recipe", project, "--set", "optimizer.lr"}).status, 2);
  EXPECT_EQ(tenon({"recipe", project, "--set", "optimizer.lrr=1"}).status, 2);
  EXPECT_EQ(value("optimizer.lr", "value"), 0.125) << "wrong words change nothing";
  EXPECT_EQ(tenon({"recipe", project, "--set", "optimizer.lr=" + before.dump()}).status, 0);
}

TEST_F(Commands, a_run_stops_early_and_says_so) {
  const Outcome o = tenon({"train", project, "--run", "e", "--set", "stop.metric=test_loss", "--set", "stop.patience=1",
                           "--set", "stop.min_delta=50", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto end = o.json().back();
  EXPECT_EQ(end.at("status"), "finished");
  EXPECT_NE(end.at("stopped_early").get<std::string>().find("test_loss was best at step"), std::string::npos);
  EXPECT_LT(end.at("step").get<int64_t>(), end.at("total_steps").get<int64_t>());
  EXPECT_FALSE(end.contains("error"));
  EXPECT_NE(tenon({"run", project, "e"}).out.find("stopped early"), std::string::npos);
  EXPECT_NE(tenon({"runs", project, "--filter", "status ~ early"}).out.find("stopped early"), std::string::npos);
  const Outcome refused = tenon({"train", project, "--set", "stop.metric=test_auc"});
  EXPECT_EQ(refused.status, 2) << refused.err;
}

TEST_F(Commands, classes_are_counted) {
  const Outcome o = tenon({"classes", project, "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto all = o.json();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_GT(all[0].at("train").get<int64_t>(), 0);
  EXPECT_NEAR(all[0].at("weight").get<double>() * all[0].at("train").get<double>(),
              all[1].at("weight").get<double>() * all[1].at("train").get<double>(), 1e-6);
  const Outcome words = tenon({"classes", project});
  EXPECT_NE(words.out.find("2 classes in "), std::string::npos) << words.out;
}

TEST_F(Commands, runs_and_metrics) {
  const auto runs = tenon({"runs", project, "--json"}).json();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].at("name"), "r");
  EXPECT_EQ(runs[0].at("status"), "finished");
  EXPECT_FALSE(runs[0].at("best").is_null());
  EXPECT_EQ(runs[0].at("metrics").at("test_accuracy").at("best"), runs[0].at("best").at("value"));
  const std::string text = tenon({"runs", project}).out;
  for (const char* column : {"RUN", "STATUS", "LAST LOSS", "BEST TEST_ACCURACY", "BEGUN"})
    EXPECT_NE(text.find(column), std::string::npos) << text;
  EXPECT_EQ(tenon({"runs", project, "--filter", "best.accuracy > 0 and name = r", "--json"}).json().size(), 1u);
  EXPECT_EQ(tenon({"runs", project, "--filter", "not status = finished", "--json"}).out, "");
  EXPECT_NE(tenon({"runs", project, "--filter", "steps < 1"}).out.find("fits the filter"), std::string::npos);
  // Deleted by what they have in common, and brought back.
  EXPECT_NE(tenon({"runs", project, "--delete"}).err.find("delete which runs?"), std::string::npos);
  EXPECT_EQ(tenon({"runs", project, "--filter", "name = r", "--delete"}).out.rfind("1 run deleted", 0), 0u);
  EXPECT_EQ(tenon({"runs", project, "--json"}).out, "");
  EXPECT_EQ(tenon({"runs", project, "--filter", "name = r", "--undelete"}).out, "1 run brought back\n");
  EXPECT_EQ(tenon({"runs", project, "--json"}).json().size(), 1u);
  const Outcome wrong = tenon({"runs", project, "--filter", "stepps > 1"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("did you mean steps"), std::string::npos) << wrong.err;
  const std::string csv = tenon({"metrics", project, "r", "loss", "--csv"}).out;
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "step,seconds,value");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + runs[0].at("steps").get<int64_t>());
  const std::string over = tenon({"metrics", project, "r", "loss", "--csv", "--over", "epoch"}).out;
  EXPECT_EQ(over.substr(0, over.find('\n')), "step,epoch,value");
  EXPECT_EQ(tenon({"metrics", project, "r", "loss", "--csv", "--over", "step"}).out.substr(0, 11), "step,value\n");
  for (const auto& point : tenon({"metrics", project, "r", "loss", "--json"}).json())
    if (point.at("epoch") == 1.0) {
      EXPECT_EQ(point.at("samples"), 2000);
    }
  const Outcome other = tenon({"metrics", project, "r", "loss", "--over", "minutes"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("step, epoch, time and samples"), std::string::npos) << other.err;
  EXPECT_EQ(tenon({"metrics", project, "r", "los"}).status, 2);
  EXPECT_NE(tenon({"metrics", project, "r"}).out.find("grad_norm"), std::string::npos);
}

TEST_F(Commands, a_large_project_is_made_and_measured) {
  const Outcome o = tenon({"bench", "curves", "--runs", "12", "--points", "300", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  std::map<std::string, double> found;
  for (const auto& j : o.json()) found[j.at("metric")] = j.at("value");
  EXPECT_EQ(found["runs"], 12);
  EXPECT_GE(found["points"], 12 * 300);
  for (const char* metric : {"log_scalar", "write_points", "open_to_table", "filter_worst"})
    EXPECT_GT(found[metric], 0) << metric;
}

TEST_F(Commands, eval_agrees_with_training) {
  const Outcome o = tenon({"eval", project, "r", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto j = o.json().at(0);
  EXPECT_EQ(j.at("samples").get<int64_t>(), 1000);
  EXPECT_EQ(tenon({"eval", project, "r", "--checkpoint", "best", "--json"}).status, 0);
  const auto points = tenon({"metrics", project, "r", "test_accuracy", "--json"}).json();
  ASSERT_FALSE(points.empty());
  EXPECT_EQ(points.back().at("value"), j.at("accuracy"));
  EXPECT_EQ(tenon({"eval", project, "r", "--checkpoint", "7", "--threads", "1", "--json"}).out,
            tenon({"eval", project, "r", "--checkpoint", "7", "--threads", "2", "--json"}).out);
}

TEST_F(Commands, profile_is_a_trace_that_others_open) {
  const std::string file = folder / "t.json.gz";
  const Outcome o = tenon({"profile", project, "--steps", "3", "-o", file});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(o.out.find("The step is ") != o.out.npos && o.out.find("try this") != o.out.npos)
      << "what bounds it: " << o.out;
  const auto trace = nlohmann::json::parse(formats::gunzip(read_file(file), file));
  std::set<std::string> names, categories;
  for (const auto& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    EXPECT_GE(e.at("dur").get<double>(), 0);
    names.insert(e.at("name").get<std::string>());
    if (e.contains("cat")) categories.insert(e.at("cat").get<std::string>());
  }
  EXPECT_TRUE(names.contains("linear")) << trace.dump().substr(0, 500);
  EXPECT_TRUE(categories.contains("cpu_op"));
  EXPECT_TRUE(
      std::any_of(names.begin(), names.end(), [](const std::string& n) { return n.rfind("ProfilerStep#", 0) == 0; }));
}

TEST_F(Commands, the_loader_is_measured_beside_the_steps) {
  const auto figures = tenon({"bench", "loader", project, "--seconds", "0.05", "--json"}).json();
  ASSERT_EQ(figures.size(), 4u);
  EXPECT_EQ(figures[0].at("metric"), "loaded_samples");
  EXPECT_GT(figures[0].at("value").get<double>(), 0);
  EXPECT_GT(figures[2].at("value").get<double>(), 0);
  EXPECT_DOUBLE_EQ(figures[3].at("value").get<double>(),
                   figures[0].at("value").get<double>() / figures[2].at("value").get<double>());
  EXPECT_NE(tenon({"bench", "loader", project, "--seconds", "0.05"}).out.find("The steps are bound by"),
            std::string::npos);
  const Outcome none = tenon({"bench", "loader"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("tenon bench loader PROJECT.tenon"), std::string::npos) << none.err;
}

TEST_F(Commands, memory_is_a_snapshot_that_python_opens) {
  const std::string file = folder / "s.pickle";
  const Outcome recorded = tenon({"memory", "record", project, "-o", file, "--json"});
  ASSERT_EQ(recorded.status, 0) << recorded.err;
  const Outcome info = tenon({"memory", "info", file, "--json"});
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(recorded.json().at(0).at("events"), info.json().at(0).at("events"));
  EXPECT_GT(info.json().at(0).at("devices").at(0).at("peak_bytes").get<int64_t>(), 0);
  if (python().empty()) GTEST_SKIP() << "build/venv is not there (packaging/test.sh makes it)";
  const Outcome o = run({python(), "-c", R"py(
import pickle, sys
s = pickle.load(open(sys.argv[1], "rb"))
trace = s["device_traces"][0]
live = {}
for e in trace:
    if e["action"] == "alloc": assert e["addr"] not in live; live[e["addr"]] = e["size"]
    if e["action"] == "free_completed": live.pop(e["addr"], None)
for g in s["segments"]:
    assert sum(b["size"] for b in g["blocks"]) == g["total_size"]
    for b in g["blocks"]: assert b["state"] in ("active_allocated", "inactive")
assert all({"action", "addr", "size", "stream", "frames"} <= set(e) for e in trace)
print(len(trace) > 10)
)py",
                         file});
  EXPECT_EQ(o.out, "True\n") << o.err;
}

TEST_F(Commands, a_broadcast_is_looked_for_where_asked) {
  const std::string fresh = folder / "broadcast.tenon";
  ASSERT_EQ(tenon({"new", fresh, "--template", "spirals"}).status, 0);
  const Outcome o = tenon({"train", fresh, "--max-steps", "2", "--warn-broadcast"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("broadcast: every size of a step pairs"), std::string::npos) << o.out;
}

TEST_F(Commands, a_project_without_runs_can_be_profiled) {
  const std::string fresh = folder / "fresh.tenon";
  ASSERT_EQ(tenon({"new", fresh, "--template", "spirals"}).status, 0);
  EXPECT_EQ(tenon({"profile", fresh, "-o", folder / "t.json"}).status, 0);
  EXPECT_EQ(tenon({"runs", fresh, "--json"}).out, "");
  EXPECT_EQ(tenon({"eval", fresh}).status, 1);
}

TEST_F(Commands, a_family_says_what_is_in_it) {
  const Outcome help = tenon({"trace", "--help"}), bare = tenon({"trace"}), typo = tenon({"trace", "kernel", "t.json"});
  EXPECT_EQ(help.status, 0);
  for (const char* name : {"tenon trace why FILE", "tenon trace diff A B", "tenon trace ranks FILE|FOLDER..."}) {
    EXPECT_NE(help.out.find(name), std::string::npos) << help.out;
    EXPECT_NE(bare.err.find(name), std::string::npos) << bare.err;
  }
  EXPECT_EQ(bare.status, 2);
  EXPECT_EQ(typo.status, 2);
  EXPECT_NE(typo.err.find("did you mean trace kernels?"), std::string::npos) << typo.err;
}

TEST_F(Commands, doctor_and_templates) {
  const Outcome doctor = tenon({"doctor", "--json"});
  ASSERT_EQ(doctor.status, 0);
  std::set<std::string> what;
  for (const auto& j : doctor.json()) what.insert(j.at("what").get<std::string>());
  for (const char* w : {"tenon", "processor", "oneDNN", "SQLite", "data fashion-mnist", "window"})
    EXPECT_TRUE(what.contains(w)) << w;
  std::set<std::string> names;
  for (const auto& j : tenon({"templates", "--json"}).json()) names.insert(j.at("name").get<std::string>());
  EXPECT_TRUE(names.contains("fashion-cnn") && names.contains("fashion-mlp") && names.contains("spirals"));
}

}  // namespace
}  // namespace tenon::journeys
