// A full disk under every command that writes: nothing half done is left, what was there is as it was, and training
// waits.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/journeys/tenon_process.h"
#include "tests/small_disk.h"

namespace tenon::journeys {
namespace {

using small_disk::drain;
using small_disk::fill;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    if (e.is_regular_file()) out.push_back(std::filesystem::relative(e.path(), folder).string());
  std::sort(out.begin(), out.end());
  return out;
}
/// Without what SQLite makes to read a project, and takes away when someone writes to it again.
std::vector<std::string> files_in(const std::string& folder) {
  auto out = names_in(folder);
  std::erase_if(out, [](const std::string& n) { return n.ends_with("-shm") || n.ends_with("-wal"); });
  return out;
}
void expect_no_space(const Outcome& o) {
  EXPECT_EQ(o.status, 1) << o.out;
  EXPECT_NE(o.err.find("no space is left on its disk"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("Free some space"), std::string::npos) << o.err;
}

TEST(FullDisk, new_leaves_nothing) {
  small_disk::with("4m", [](const std::string& disk) {
    for (int64_t leave : {0, 1 << 20}) {
      fill(disk, leave);
      expect_no_space(tenon({"new", disk + "/p.tenon", "--template", "spirals"}));
      EXPECT_EQ(names_in(disk), std::vector<std::string>{"ballast"});
      drain(disk);
    }
    EXPECT_EQ(tenon({"new", disk + "/p.tenon", "--template", "spirals"}).status, 0);
    EXPECT_EQ(tenon({"runs", disk + "/p.tenon"}).status, 0);
  });
}

TEST(FullDisk, text_that_cannot_be_cut_into_tokens_leaves_nothing) {
  small_disk::with("4m", [](const std::string& disk) {
    Folder folder;
    std::ofstream(folder / "text") << std::string(300000, 'a');
    fill(disk, 65536);
    setenv("XDG_CACHE_HOME", disk.c_str(), 1);
    expect_no_space(tenon({"new", folder / "p.tenon", "--template", "byte-gpt", "--data", folder / "text"}));
    EXPECT_EQ(names_in(disk), std::vector<std::string>{"ballast"});
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"text"});
    drain(disk);
    EXPECT_EQ(tenon({"new", folder / "p.tenon", "--template", "byte-gpt", "--data", folder / "text"}).status, 0);
  });
}

/// `tenon train` in the background, and what it says while it runs.
class Training {
 public:
  explicit Training(std::vector<std::string> words) {
    // The shell says its number, which the program that it becomes keeps.
    std::vector<std::string> all = {"sh",
                                    "-c",
                                    "echo $$ > '" + folder_ / "pid" + "'; exec \"$@\" 2> '" + folder_ / "err" + "'",
                                    "sh",
                                    std::string(TENON_BINARY_DIR) + "/bin/tenon",
                                    "train"};
    all.insert(all.end(), words.begin(), words.end());
    thread_ = std::thread([this, all] {
      outcome_ = run(all);
      ended_ = true;
    });
  }
  ~Training() { wait(); }
  /// Until it has said so, or ended.
  bool says(const std::string& text) const {
    while (!ended_)
      if (said().find(text) != std::string::npos)
        return true;
      else
        std::this_thread::yield();
    return said().find(text) != std::string::npos;
  }
  size_t times(const std::string& text) const {
    size_t n = 0;
    for (size_t at = 0; (at = said().find(text, at)) != std::string::npos; at += text.size()) ++n;
    return n;
  }
  std::string said() const { return slurp(folder_ / "err"); }
  void interrupt() const {
    kill(std::stoi(slurp(folder_ / "pid")), SIGINT);
  }  // our own child's, which is not yet waited for
  Outcome wait() {
    if (thread_.joinable()) thread_.join();
    return outcome_;
  }

 private:
  Folder folder_;
  Outcome outcome_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// Every point of a run's metrics but those that measure the machine.
std::vector<std::string> points(const std::string& project, const std::string& run) {
  std::vector<std::string> out;
  for (const char* metric : {"loss", "lr", "grad_norm", "test_loss", "test_accuracy"})
    for (const auto& j : tenon({"metrics", project, run, metric, "--json"}).json())
      out.push_back(metric + j.at("step").dump() + " " + j.at("value").dump());
  return out;
}

struct Trained {
  explicit Trained(const std::string& on) : disk(on), project(on + "/p.tenon"), plain(folder / "plain.tenon") {
    for (const std::string& p : {plain, project}) EXPECT_EQ(tenon({"new", p, "--template", "spirals"}).status, 0);
    const Outcome o = tenon(words(plain));
    EXPECT_EQ(o.status, 0) << o.err;
    fill(disk, 2 << 20);
  }
  static std::vector<std::string> words(const std::string& p) {
    return {"train",
            p,
            "--run",
            "r",
            "--json",
            "--max-steps",
            "1000",
            "--set",
            "data.batch_size=10",
            "--set",
            "checkpoint_every=25"};
  }
  std::vector<std::string> arguments() const {
    auto all = words(project);
    return {all.begin() + 1, all.end()};
  }
  void expect_same() const {
    for (const char* step : {"last", "333"}) {
      const Outcome mine = tenon({"digest", project, "r", "--step", step}),
                    theirs = tenon({"digest", plain, "r", "--step", step});
      EXPECT_EQ(mine.status, 0) << mine.err;
      EXPECT_EQ(mine.out, theirs.out) << step;
    }
    EXPECT_EQ(points(project, "r"), points(plain, "r"));
  }

  Folder folder;
  std::string disk, project, plain;
};

TEST(FullDisk, train_waits_says_so_and_goes_on) {
  small_disk::with("24m", [](const std::string& disk) {
    Trained t(disk);
    Training training(t.arguments());
    ASSERT_TRUE(training.says("Ctrl+C ends the run.")) << training.said();
    EXPECT_NE(training.said().find("training is paused at step "), std::string::npos) << training.said();
    EXPECT_NE(training.said().find("no space is left on its disk"), std::string::npos) << training.said();
    EXPECT_NE(training.said().find("The disk of " + disk), std::string::npos) << training.said();
    drain(disk);
    const Outcome o = training.wait();
    EXPECT_EQ(o.status, 0) << training.said();
    EXPECT_NE(training.said().find("training goes on after step "), std::string::npos) << training.said();
    std::vector<std::string> events;
    for (const auto& j : o.json())
      if (j.contains("event") && j.at("event") != "plan") events.push_back(j.at("event"));
    ASSERT_FALSE(events.empty());
    for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i], i % 2 ? "goes_on" : "no_space");
    EXPECT_EQ(events.back(), "goes_on");
    EXPECT_EQ(o.json().back().at("status"), "finished");
    t.expect_same();
  });
}

TEST(FullDisk, ctrl_c_ends_a_run_that_waits_and_it_can_be_resumed) {
  small_disk::with("24m", [](const std::string& disk) {
    Trained t(disk);
    Training training(t.arguments());
    // What a failed try gives back of the disk is taken too, until the run that waits has nowhere to go.
    for (size_t pauses = 0, seen = 1; pauses != seen;) {
      seen = pauses;
      ASSERT_TRUE(training.says("Ctrl+C ends the run.")) << training.said();
      fill(disk);
      pauses = training.times("training is paused at step ");
      if (training.times("training goes on after step ") == pauses) pauses = seen + 1;
    }
    training.interrupt();
    const Outcome o = training.wait();
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(training.said().find(" are not in the file"), std::string::npos) << training.said();
    EXPECT_NE(training.said().find("tenon train " + t.project + " --resume r` goes on from the checkpoint of step "),
              std::string::npos)
        << training.said();
    EXPECT_EQ(o.json().back().at("status"), "failed");
    // What was saved can be looked at, the disk as full as before.
    const auto runs = tenon({"runs", t.project, "--json"}).json();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(tenon({"digest", t.project, "r", "--step", runs[0].at("steps").dump()}).status, 0);
    drain(disk);
    const Outcome again = tenon({"train", t.project, "--resume", "r"});
    EXPECT_EQ(again.status, 0) << again.err;
    t.expect_same();
  });
}

TEST(FullDisk, training_outlives_a_full_disk_behind_standard_output) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  const std::string program = std::string(TENON_BINARY_DIR) + "/bin/tenon";
  const Outcome o = run({"sh", "-c", program + " train '" + project + "' --run r --max-steps 50 --json > /dev/full"});
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("standard output cannot be written"), std::string::npos) << o.err;
  const auto runs = tenon({"runs", project, "--json"}).json();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].at("status"), "finished");
  EXPECT_EQ(runs[0].at("steps"), 50);
}

TEST(FullDisk, every_export_is_whole_or_not_there) {
  small_disk::with("16m", [](const std::string& disk) {
    Folder folder;
    const std::string project = disk + "/p.tenon", model = folder / "m.onnx", input = folder / "x.npy";
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "20"}).status, 0);
    ASSERT_EQ(tenon({"export", project, "r", "--format", "onnx", "-o", model}).status, 0);
    const auto tensors = tenon({"goto", project, "r", "--step", "20", "--all", "--json"}).json();
    std::string weight;
    for (const auto& t : tensors)
      if (t.at("name").get<std::string>().ends_with("weight") && weight.empty()) weight = t.at("name");
    ASSERT_FALSE(weight.empty());
    // An input of the model: two numbers for each of a thousand samples.
    const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 2), }";
    std::string npy = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head;
    npy.resize(127, ' ');
    std::ofstream(input, std::ios::binary) << npy << '\n' << std::string(8000, '\0');
    const std::string note = folder / "snapshot.pickle";
    ASSERT_EQ(tenon({"memory", "record", project, "-o", note}).status, 0);
    ASSERT_EQ(tenon({"import", note, "-o", project}).status, 0);

    const std::string out = disk + "/out";
    const std::vector<std::vector<std::string>> writes = {
        {"export", project, "r", "--format", "onnx", "-o", out},
        {"export", project, "r", "--format", "safetensors", "-o", out},
        {"export", project, "r", "--format", "torch", "-o", out},
        {"profile", project, "-o", out},
        {"profile", project, "-o", out + ".gz"},
        {"memory", "record", project, "-o", out},
        {"goto", project, "r", "--step", "10", "--tensor", weight, "--out", out},
        {"artifacts", project, "1", "-o", out},
        {"exec", model, "--input", input, "--output", disk + "/folder"},
    };
    const auto before = files_in(disk);
    for (const auto& words : writes) {
      SCOPED_TRACE(testing::PrintToString(words));
      const std::string file = words[0] == "exec" ? disk + "/folder/output_0.npy" : words.back();
      std::filesystem::create_directories(disk + "/folder");
      for (const bool old : {false, true}) {
        if (old) std::ofstream(file) << "old";
        fill(disk);
        expect_no_space(tenon(words));
        drain(disk);
        EXPECT_EQ(std::filesystem::exists(file), old);
        EXPECT_EQ(slurp(file), old ? "old" : "");
        std::filesystem::remove(file);
        EXPECT_EQ(files_in(disk), before) << "nothing lies beside it";
      }
      const Outcome o = tenon(words);
      EXPECT_EQ(o.status, 0) << o.err;
      EXPECT_GT(slurp(file).size(), 100u);
      std::filesystem::remove(file);
    }
  });
}

TEST(FullDisk, an_import_is_whole_or_not_there) {
  small_disk::with("10m", [](const std::string& disk) {
    Folder folder;
    const std::string made = folder / "made.tenon", trace = folder / "t.json", project = disk + "/p.tenon",
                      other = disk + "/new.tenon";
    ASSERT_EQ(tenon({"new", made, "--template", "spirals"}).status, 0);
    ASSERT_EQ(tenon({"profile", made, "-o", trace}).status, 0);
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    // From no room at all to room for a part of what was found in it.
    for (int64_t leave : {0, 40 << 10, 120 << 10}) {
      SCOPED_TRACE(leave);
      fill(disk, leave);
      expect_no_space(tenon({"import", trace, "-o", project}));
      EXPECT_TRUE(tenon({"artifacts", project, "--json"}).json().empty());
      drain(disk);
    }
    int refused = 0;
    for (int64_t leave = 0; leave < 4 << 20; leave += 256 << 10) {
      SCOPED_TRACE(leave);
      fill(disk, leave);
      const Outcome o = tenon({"import", trace, "-o", other});
      if (o.status != 0) expect_no_space(o);
      refused += o.status != 0;
      EXPECT_EQ(std::filesystem::exists(other), o.status == 0) << "a project made only for it goes with it";
      drain(disk);
      std::filesystem::remove(other);
    }
    EXPECT_GT(refused, 4);
    EXPECT_EQ(tenon({"import", trace, "-o", project}).status, 0);
    EXPECT_GT(tenon({"artifacts", project, "--json"}).json().size(), 3u);
  });
}

int files_below(const std::string& folder) {
  int n = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) n += entry.is_regular_file();
  return n;
}

/// The same answer while there is no room for the store, when it is written, and from it.
void expect_answer_without_store(const char* writer, const char* family, const char* analysis) {
  small_disk::with("40m", [&](const std::string& disk) {
    const std::string file = disk + "/f", cache = disk + "/cache";
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    ASSERT_EQ(run({std::string(TENON_BINARY_DIR) + "/bin/" + writer, "6000000", file}).status, 0);
    std::string answer;
    for (int64_t leave : {0, 100 << 10}) {
      fill(disk, leave);
      const Outcome o = tenon({family, analysis, file, "--json"});
      EXPECT_EQ(o.status, 0) << o.err;
      EXPECT_GT(o.out.size(), 100u);
      answer = o.out;
      drain(disk);
      EXPECT_EQ(files_below(disk), 1) << "the trace or snapshot itself";
    }
    EXPECT_EQ(tenon({family, analysis, file, "--json"}).out, answer);
    EXPECT_EQ(files_below(disk), 2) << "the next time there is room";
    EXPECT_EQ(tenon({family, analysis, file, "--json"}).out, answer);
  });
}

TEST(FullDisk, a_trace_is_answered_without_its_store) { expect_answer_without_store("make_trace", "trace", "kernels"); }

TEST(FullDisk, a_snapshot_is_answered_without_its_store) {
  expect_answer_without_store("make_snapshot", "memory", "peak");
}

TEST(FullDisk, a_packed_trace_that_finds_no_room_to_unpack_says_where) {
  small_disk::with("2m", [](const std::string& disk) {
    Folder folder;
    ASSERT_EQ(run({std::string(TENON_BINARY_DIR) + "/bin/make_trace", "6000000", folder / "t.json"}).status, 0);
    ASSERT_EQ(run({"gzip", folder / "t.json"}).status, 0);
    setenv("TMPDIR", disk.c_str(), 1);
    const Outcome o = tenon({"trace", "info", folder / "t.json.gz"});
    unsetenv("TMPDIR");
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.err.find("could not be unpacked: No space left on device"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("set TMPDIR to a folder with room"), std::string::npos) << o.err;
  });
}

}  // namespace
}  // namespace tenon::journeys
