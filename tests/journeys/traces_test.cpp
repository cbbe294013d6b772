// Traces and snapshots as files, through the command line, against Python's readings of the same files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

using nlohmann::json;

json one(const Outcome& o) {
  EXPECT_EQ(o.status, 0) << o.err << o.out;
  auto all = o.json();
  return all.empty() ? json() : all[0];
}
json by_python(const std::string& program, const std::string& file) {
  Outcome o = run({"python3", std::string(TENON_SOURCE_DIR) + "/tests/journeys/" + program, file});
  EXPECT_EQ(o.status, 0) << o.err;
  return json::parse(o.out);
}
void make(const char* writer, int64_t bytes, const std::string& file) {
  ASSERT_EQ(run({std::string(TENON_BINARY_DIR) + "/bin/" + writer, std::to_string(bytes), file}).status, 0);
}

void compare_with_python(const std::string& file) {
  SCOPED_TRACE(file);
  json theirs = by_python("count_trace.py", file), info = one(tenon({"trace", "info", file, "--json"}));
  int64_t events = 0;
  for (const auto& c : info["categories"]) {
    const std::string name = c["category"];
    EXPECT_EQ(c["events"], theirs["counts"][name]) << name;
    EXPECT_EQ(c["total_ns"], theirs["sums"].value(name, int64_t{0})) << name;
    events += c["events"].get<int64_t>();
  }
  EXPECT_EQ(info["categories"].size(), theirs["counts"].size());
  EXPECT_EQ(info["events"], events);
  EXPECT_EQ(info["memory_events"], theirs["memory"]);
  EXPECT_TRUE(info["repairs"].empty()) << info["repairs"];
  json kernels = one(tenon({"trace", "kernels", file, "--json", "--top", "100000"}));
  EXPECT_EQ(kernels["kernels"].size(), theirs["kernels"].size());
  for (const auto& k : kernels["kernels"]) EXPECT_EQ(k["total_ns"], theirs["kernels"][k["name"].get<std::string>()]);
}

TEST(TraceFiles, OfEveryWrappingAreCountedAsPythonCountsThem) {
  Folder folder;
  const std::string plain = folder / "t.json";
  make("make_trace", 6000000, plain);
  compare_with_python(plain);
  EXPECT_FALSE(std::filesystem::exists(plain + ".tenon-trace")) << "nothing is written beside the user's data";
  json again = one(tenon({"trace", "info", plain, "--json"}));
  EXPECT_EQ(again["from_cache"], "yes");
  ASSERT_EQ(run({"gzip", "-k", plain}).status, 0);
  compare_with_python(plain + ".gz");
  // Members one after the other are one file.
  ASSERT_EQ(run({"sh", "-c",
                 "head -c 3000000 '" + plain + "' | gzip > '" + (folder / "two.json.gz") + "'; tail -c +3000001 '" +
                     plain + "' | gzip >> '" + (folder / "two.json.gz") + "'"})
                .status,
            0);
  compare_with_python(folder / "two.json.gz");
  ASSERT_EQ(
      run({"python3", "-c",
           "import zipfile,sys; z=zipfile.ZipFile(sys.argv[1],'w',zipfile.ZIP_DEFLATED); z.write(sys.argv[2],'a.json')",
           folder / "t.zip", plain})
          .status,
      0);
  compare_with_python(folder / "t.zip");
  // The list of events alone.
  ASSERT_EQ(run({"python3", "-c",
                 "import json,sys; "
                 "json.dump(json.load(open(sys.argv[1]),parse_float=str)['traceEvents'],open(sys.argv[2],'w'))",
                 plain, folder / "list.json"})
                .status,
            0);
  json list = one(tenon({"trace", "info", folder / "list.json", "--json"}));
  EXPECT_EQ(list["events"], again["events"]);
  // A changed file is read anew.
  std::ofstream(plain, std::ios::app) << "  ";
  EXPECT_EQ(one(tenon({"trace", "info", plain, "--json"}))["from_cache"], "no");
  // What a kill leaves of a gzip opens with what it holds.
  ASSERT_EQ(run({"sh", "-c", "head -c 100000 '" + plain + ".gz' > '" + (folder / "cut.json.gz") + "'"}).status, 0);
  json cut = one(tenon({"trace", "info", folder / "cut.json.gz", "--json"}));
  EXPECT_EQ(cut["truncated"], "yes");
  EXPECT_GT(cut["events"].get<int64_t>(), 100);
}

TEST(TraceFiles, AFolderIsASession) {
  Folder folder;
  make("make_trace", 500000, folder / "rank0.json");
  make("make_trace", 500000, folder / "rank1.json");
  // Two of one rank are not two ranks: one is taken, and that is said.
  const auto twice = tenon({"trace", "ranks", folder.path(), "--json"});
  EXPECT_EQ(twice.status, 2);
  EXPECT_NE(twice.err.find("rank0.json is of rank 3, of which rank1.json begins later and is taken."),
            std::string::npos)
      << twice.err;
  ASSERT_EQ(run({"sh", "-c", "sed -i 's/\"rank\": 3/\"rank\": 4/' '" + (folder / "rank1.json") + "'"}).status, 0);
  // A broken file among good ones is left out with a sentence.
  std::ofstream(folder / "broken.json") << "{\"traceEvents\": 7}";
  const auto three = tenon({"trace", "ranks", folder.path(), "--json"});
  EXPECT_NE(three.err.find("broken.json is no trace: "), std::string::npos) << three.err;
  json ranks = one(tenon({"trace", "ranks", folder.path(), "--json"}));
  EXPECT_EQ(ranks["ranks"].size(), 2u);
  EXPECT_EQ(ranks["ranks"][1]["ahead_ns"], 0);
  EXPECT_EQ(tenon({"trace", "ranks", folder / "rank0.json"}).status, 2);
  EXPECT_EQ(tenon({"trace", "why", folder / "nothing.json"}).status, 1);
}

TEST(TraceFiles, OneIsSeenAtAGlanceAndHandedOnAsAPage) {
  Folder folder;
  const std::string trace = folder / "t.json", page = folder / "t.html";
  make("make_trace", 500000, trace);
  const json seen = one(tenon({"trace", "overview", trace, "--json"}));
  EXPECT_EQ(seen["sentence"], one(tenon({"trace", "why", trace, "--json"}))["sentence"]);
  for (const json& step : seen["steps"]) {
    int64_t parts = 0;
    for (const auto& [name, value] : step.items())
      if (name.ends_with("_ns") && name != "total_ns") parts += value.get<int64_t>();
    EXPECT_EQ(parts, step["total_ns"]) << step.dump();
  }
  const Outcome written = tenon({"report", trace, "-o", page, "--json"});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(written.json().at(0).at("kind"), "trace");
  const std::string html = slurp(page);
  EXPECT_NE(html.find("<svg "), std::string::npos);
  EXPECT_NE(html.find(seen["sentence"].get<std::string>().substr(0, 20)), std::string::npos);
  ASSERT_EQ(tenon({"report", trace, "-o", folder / "again.html"}).status, 0);
  EXPECT_EQ(slurp(folder / "again.html"), html) << "the same file, the same page";
  // What it cannot be is told before anything is read.
  EXPECT_EQ(tenon({"report", trace, "-o", folder / "t.pdf"}).status, 2);
  EXPECT_EQ(tenon({"report", trace, "run", "-o", page}).status, 2);
  EXPECT_EQ(tenon({"report", trace, "-o", page, "--checkpoint", "best"}).status, 2);
  EXPECT_EQ(tenon({"report", folder / "none.json", "-o", page}).status, 1);
  const std::string snapshot = folder / "s.pickle";
  make("make_snapshot", 400000, snapshot);
  ASSERT_EQ(tenon({"report", snapshot, "-o", page}).status, 0);
  EXPECT_NE(slurp(page).find("Memory over time"), std::string::npos);
}

TEST(SnapshotFiles, AreCountedAsPythonCountsThem) {
  Folder folder;
  const std::string file = folder / "s.pickle";
  make("make_snapshot", 4000000, file);
  json theirs = by_python("count_snapshot.py", file), info = one(tenon({"memory", "info", file, "--json"})),
       peak = one(tenon({"memory", "peak", file, "--json"}));
  EXPECT_EQ(peak["bytes"], theirs["peak"]);
  EXPECT_EQ(peak["event"], theirs["peak_event"]);
  EXPECT_EQ(info["segments"], theirs["segments"]);
  EXPECT_EQ(info["reserved_bytes"], theirs["reserved"]);
  for (const auto& a : info["actions"]) EXPECT_EQ(a["count"], theirs["actions"][a["action"].get<std::string>()]);
  EXPECT_EQ(one(tenon({"memory", "live", file, "--json"}))["blocks"], theirs["live"]);
  // Protocols 2 to 5 and JSON say the same.
  for (int protocol = 2; protocol <= 5; ++protocol) {
    const std::string other = folder / ("p" + std::to_string(protocol) + ".pickle");
    ASSERT_EQ(run({"python3", "-c",
                   "import pickle,sys; "
                   "pickle.dump(pickle.load(open(sys.argv[1],'rb')),open(sys.argv[2],'wb'),protocol=int(sys.argv[3]))",
                   file, other, std::to_string(protocol)})
                  .status,
              0);
    EXPECT_EQ(one(tenon({"memory", "peak", other, "--json"}))["bytes"], theirs["peak"]) << protocol;
  }
  ASSERT_EQ(run({"python3", "-c",
                 "import pickle,json,sys; json.dump(pickle.load(open(sys.argv[1],'rb')),open(sys.argv[2],'w'))", file,
                 folder / "s.json"})
                .status,
            0);
  EXPECT_EQ(one(tenon({"memory", "peak", folder / "s.json", "--json"}))["bytes"], theirs["peak"]);
  json seen = one(tenon({"inspect", file, "--json"}));
  EXPECT_EQ(seen["kind"], "memory-snapshot");
}

TEST(SnapshotFiles, AreReadOnceAndThenMapped) {
  Folder folder;
  const std::string file = folder / "s.pickle", stores = folder / "cache/tenon/snapshots";
  const char* was = std::getenv("XDG_CACHE_HOME");
  const std::string before = was ? was : "";
  setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  make("make_snapshot", 6000000, file);
  json info = one(tenon({"memory", "info", file, "--json", "--no-cache"}));
  EXPECT_EQ(info["from_cache"], "no");
  EXPECT_FALSE(std::filesystem::exists(stores));
  EXPECT_EQ(one(tenon({"memory", "info", file, "--json"}))["from_cache"], "no");
  ASSERT_TRUE(std::filesystem::exists(stores));
  json again = one(tenon({"memory", "info", file, "--json"}));
  EXPECT_EQ(again["from_cache"], "yes");
  info.erase("from_cache"), again.erase("from_cache");
  EXPECT_EQ(info, again);
  for (const char* analysis : {"peak", "live", "leaks", "fragmentation", "stacks"})
    EXPECT_EQ(tenon({"memory", analysis, file, "--json", "--no-cache"}).out,
              tenon({"memory", analysis, file, "--json"}).out)
        << analysis;
  // The store itself is the snapshot, whatever its name.
  const std::string moved = folder / "moved";
  std::filesystem::rename(std::filesystem::directory_iterator(stores)->path(), moved);
  EXPECT_EQ(tenon({"memory", "peak", moved, "--json"}).out, tenon({"memory", "peak", file, "--json"}).out);
  EXPECT_EQ(one(tenon({"inspect", moved, "--json"}))["kind"], "memory-snapshot-store");
  // One that was put beside the file is taken.
  std::filesystem::remove_all(stores);
  std::filesystem::rename(moved, file + ".tenon-memory");
  EXPECT_EQ(one(tenon({"memory", "info", file, "--json"}))["from_cache"], "yes");
  was ? setenv("XDG_CACHE_HOME", before.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
}

TEST(Imports, PutAFileAndItsFindingsIntoAProject) {
  Folder folder;
  const std::string trace = folder / "t.json", project = folder / "p.tenon";
  make("make_trace", 300000, trace);
  json j = one(tenon({"import", trace, "-o", project, "--json"}));
  EXPECT_EQ(j["kind"], "trace");
  EXPECT_GT(j["findings"].get<int>(), 8);
  make("make_snapshot", 300000, folder / "s.pickle");
  EXPECT_EQ(one(tenon({"import", folder / "s.pickle", "-o", project, "--json"}))["kind"], "memory");
  auto all = tenon({"artifacts", project, "--json"}).json();
  EXPECT_GT(all.size(), 14u);
  ASSERT_EQ(
      tenon({"artifacts", project, std::to_string(all[0]["id"].get<int>()), "-o", folder / "back.json.gz"}).status, 0);
  EXPECT_EQ(one(tenon({"trace", "info", folder / "back.json.gz", "--json"}))["events"],
            one(tenon({"trace", "info", trace, "--json"}))["events"]);
  EXPECT_EQ(tenon({"import", TENON_SOURCE_DIR "/README.md", "-o", project}).status, 1);
}

TEST(OwnTraceJourney, a_module_has_the_time_of_its_backward) {
  Folder folder;
  const std::string project = folder / "p.tenon", trace = folder / "t.json.gz";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"profile", project, "--steps", "3", "-o", trace}).status, 0);
  const Outcome o = tenon({"trace", "modules", trace, "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  size_t layers = 0;
  const auto told = o.json();
  for (const auto& m : told.at(0).at("modules")) {
    if (!m.at("module").get<std::string>().starts_with("layers.")) continue;
    ++layers;
    EXPECT_GT(m.at("self_ns"), 0) << m;
    EXPECT_GT(m.at("backward_ns"), 0) << m;
    EXPECT_EQ(m.at("calls"), 3) << "its forward ops, and no others: " << m;
  }
  EXPECT_EQ(layers, 5u);
}

}  // namespace
}  // namespace tenon::journeys
