// tenon query over a trace, a memory snapshot and a project, against what other commands say of the same files.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

using nlohmann::json;

void make_file(const char* writer, int64_t bytes, const std::string& file) {
  ASSERT_EQ(run({std::string(TENON_BINARY_DIR) + "/bin/" + writer, std::to_string(bytes), file}).status, 0);
}
std::vector<json> answers(const std::string& file, const std::string& sql) {
  const Outcome o = tenon({"query", file, sql, "--json"});
  EXPECT_EQ(o.status, 0) << o.err;
  return o.json();
}

TEST(QueryCommand, of_a_trace_says_what_the_analyses_say) {
  Folder folder;
  const std::string file = folder / "t.json";
  make_file("make_trace", 2000000, file);
  const json theirs = tenon({"trace", "kernels", file, "--json", "--top", "100000"}).json().at(0);
  const auto ours =
      answers(file,
              "select name, count(*) as n, sum(dur) as total_ns from events where kind in ('kernel') group "
              "by name order by 3 desc");
  ASSERT_EQ(ours.size(), theirs["kernels"].size());
  std::map<std::string, json> totals;
  for (const auto& k : theirs["kernels"]) totals[k["name"].get<std::string>()] = k["total_ns"];
  for (const json& k : ours) EXPECT_EQ(k["total_ns"], totals[k["name"].get<std::string>()]) << k;
  const json info = tenon({"trace", "info", file, "--json"}).json().at(0);
  EXPECT_EQ(answers(file, "select count(*) as n from events").at(0)["n"], info["events"]);
  EXPECT_EQ(answers(file, "select count(*) as n from memory").at(0)["n"], info["memory_events"]);
}

TEST(QueryCommand, writes_rows_in_every_form) {
  Folder folder;
  const std::string file = folder / "t.json";
  make_file("make_trace", 300000, file);
  const std::string sql = "select category, dur, null as missing from events where id = 3";
  const json row = answers(file, sql).at(0);
  EXPECT_TRUE(row["missing"].is_null());
  const std::string cells = row["category"].get<std::string>() + "," + std::to_string(row["dur"].get<int64_t>()) + ",";
  EXPECT_EQ(tenon({"query", file, sql, "--csv"}).out, "category,dur,missing\n" + cells + "\n");
  EXPECT_EQ(tenon({"query", file, sql, "--markdown"}).out.substr(0, 11), "| category ");
  const std::string shown = tenon({"query", file, sql}).out;
  EXPECT_NE(shown.find("DUR, NS"), std::string::npos) << shown;
  // Of more rows than are wanted that is told beside them.
  const Outcome few = tenon({"query", file, "select id from events", "--csv", "--limit", "2"});
  EXPECT_EQ(few.out, "id\n0\n1\n");
  EXPECT_NE(few.err.find("more rows than the first 2"), std::string::npos) << few.err;
  EXPECT_EQ(tenon({"query", file, "select id from events limit 2", "--csv", "--limit", "2"}).err, "");
  // From standard input.
  const Outcome piped = run({"sh", "-c",
                             "echo 'select count(*) as n from events where id < 5' | '" +
                                 std::string(TENON_BINARY_DIR) + "/bin/tenon' query '" + file + "' - --csv"});
  EXPECT_EQ(piped.out, "n\n5\n") << piped.err;
}

TEST(QueryCommand, of_a_snapshot_says_what_the_analyses_say) {
  Folder folder;
  const std::string file = folder / "s.pickle";
  make_file("make_snapshot", 1000000, file);
  const json info = tenon({"memory", "info", file, "--json"}).json().at(0);
  for (const auto& a : info["actions"])
    EXPECT_EQ(answers(file, "select count(*) as n from events where action = '" + a["action"].get<std::string>() + "'")
                  .at(0)["n"],
              a["count"]);
  EXPECT_EQ(answers(file, "select sum(total) as n from segments").at(0)["n"], info["reserved_bytes"]);
  const json live = tenon({"memory", "live", file, "--json"}).json().at(0);
  EXPECT_EQ(answers(file, "select count(*) as n from allocations where died is null and device = 0").at(0)["n"],
            live["blocks"]);
}

TEST(QueryCommand, of_a_project_says_what_its_runs_say) {
  Folder folder;
  const std::string file = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", file, "--template", "spirals"}).status, 0);
  for (const char* lr : {"0.01", "0.05"})
    ASSERT_EQ(tenon({"train", file, "--set", std::string("optimizer.lr=") + lr, "--set", "max_steps=12"}).status, 0);
  const auto runs = tenon({"runs", file, "--json"}).json();
  const auto ours =
      answers(file,
              "select r.name, r.steps, c.number as lr from runs r join recipe c on c.run = r.id and c.key = "
              "'optimizer.lr' order by r.id");
  ASSERT_EQ(ours.size(), 2u);
  EXPECT_EQ(ours[0]["lr"], 0.01);
  EXPECT_EQ(ours[1]["lr"], 0.05);
  EXPECT_EQ(ours[1]["steps"], 12);
  const std::string name = ours[0]["name"];
  std::istringstream csv(tenon({"metrics", file, name, "loss", "--csv"}).out);
  std::string line;
  std::getline(csv, line);
  for (const json& p :
       answers(file, "select step, value from metrics where metric = 'loss' and run_name = '" + name + "'")) {
    ASSERT_TRUE(std::getline(csv, line));
    EXPECT_EQ(line.substr(0, line.find(',')), std::to_string(p["step"].get<int64_t>()));
  }
  EXPECT_FALSE(std::getline(csv, line));
}

TEST(QueryCommand, lists_its_tables_and_refuses_in_words) {
  Folder folder;
  const std::string file = folder / "t.json";
  make_file("make_trace", 300000, file);
  const Outcome tables = tenon({"query", file, "--tables"});
  for (const char* word : {"events", "dur", "INTEGER", "nanoseconds", "links", "SELECT"})
    EXPECT_NE(tables.out.find(word), std::string::npos) << word;
  EXPECT_GT(tenon({"query", file, "--tables", "--json"}).json().size(), 30u);
  const auto says = [&](const std::vector<std::string>& words, int status, const std::string& part) {
    std::vector<std::string> all = {"query", file};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome o = tenon(all);
    EXPECT_EQ(o.status, status) << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  says({}, 2, "--tables");
  says({"select durr from events"}, 2, "did you mean dur?");
  says({"select 1; select 2"}, 2, "one statement");
  says({"attach 'x' as y"}, 2, "no other file");
  says({"with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n", "--limit-s", "0.05"},
       1, "its limit");
  std::ofstream(folder / "x.npy", std::ios::binary) << "\x93NUMPY";
  EXPECT_NE(tenon({"query", folder / "x.npy", "select 1"}).status, 0);
  EXPECT_NE(tenon({"query", folder / "none.json", "select 1"}).status, 0);
  // A document is never changed by what asks it.
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  const std::string bytes = slurp(project);
  EXPECT_EQ(tenon({"query", project, "delete from runs"}).status, 2);
  EXPECT_EQ(tenon({"query", project, "select * from runs"}).status, 0);
  EXPECT_EQ(slurp(project), bytes);
}

}  // namespace
}  // namespace tenon::journeys
