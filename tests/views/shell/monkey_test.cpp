// The window under random hands: see Note [The monkey].
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QTemporaryDir>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/views/model_files.h"
#include "tests/views/shell/monkey.h"
#include "tests/views/shell/project_states.h"
#include "views/shared/settings.h"

namespace tenon::views::testing {
namespace {

std::vector<std::string> projects(const std::string& folder) {
  std::vector<std::string> files{project_state("trained").file};  // one with something in it first
  for (const std::string& name : project_state_names())
    if (const ProjectState& s = project_state(name); !s.file.empty() && s.skipped.empty()) files.push_back(s.file);
  const std::string broken = folder + "/broken.tenon";
  std::ofstream(broken) << "this is no project";
  files.push_back(broken);
  files.push_back(small_trace(folder));
  files.push_back(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/streams-2.15.pickle.gz");
  files.push_back(folder + "/blocks.onnx");
  formats::save_onnx(files.back(), blocks_model(4));
  return files;
}

std::string from_environment(const char* name, const std::string& otherwise) {
  const char* v = std::getenv(name);
  return v && *v ? v : otherwise;
}

Monkey::Report let_loose(uint64_t seed, int64_t events, bool trains, const std::string& log,
                         const std::string& replayed = {}) {
  QTemporaryDir folder;
  // What one monkey set holds for a person: the next begins as a new one, so that a replay finds the same start page.
  for (const AttrDef& def : settings::defs()) settings::reset(def.name);
  settings::reset_shortcuts();
  settings::set_tour_seen(false);
  for (const settings::RecentFile& f : settings::recent()) settings::forget_recent(f.path);
  QApplication::clipboard()->clear();
  Monkey::Options options;
  options.seed = seed;
  options.events = events;
  options.trains = trains;
  options.folder = folder.path().toStdString();
  // What trains depends on more than the hand: a replay that is to end alike has a trace to look at, and no project.
  options.projects = trains ? projects(options.folder) : std::vector<std::string>{small_trace(options.folder)};
  options.log = log;
  Monkey monkey(options);
  const Monkey::Report r = replayed.empty() ? monkey.run() : monkey.replay(replayed);
  std::printf("monkey: seed %llu, %lld acts, longest turn %.0f ms (before act %s), log %s\n",
              static_cast<unsigned long long>(seed), static_cast<long long>(r.acts), r.longest_ms,
              r.longest_act.c_str(), log.c_str());
  for (const auto& [kind, n] : r.kinds) std::printf("  %-8s %lld\n", kind.c_str(), static_cast<long long>(n));
  for (const auto& [what, n] : r.seen) std::printf("  %s: %lld\n", what.c_str(), static_cast<long long>(n));
  for (const auto& [title, n] : r.problems)
    std::printf("  told: %s (%lld)\n", title.c_str(), static_cast<long long>(n));
  return r;
}

/// TENON_MONKEY_EVENTS and TENON_MONKEY_SEED say how long and which; TENON_MONKEY_REPLAY names a log to repeat instead.
TEST(Monkey, twenty_thousand_acts_end_no_program) {
  const std::string folder = TENON_BINARY_DIR "/monkey";
  std::filesystem::create_directories(folder);
  const uint64_t seed = std::strtoull(from_environment("TENON_MONKEY_SEED", "1").c_str(), nullptr, 10);
  const int64_t events = std::strtoll(from_environment("TENON_MONKEY_EVENTS", "20000").c_str(), nullptr, 10);
  const std::string replayed = from_environment("TENON_MONKEY_REPLAY", "");
  const Monkey::Report r = let_loose(
      seed, events, true, folder + (replayed.empty() ? "/seed-" + std::to_string(seed) : "/replay") + ".log", replayed);
  EXPECT_TRUE(!replayed.empty() || r.acts == events);
  for (const std::string& t : r.thrown) ADD_FAILURE() << "a handler threw: " << t;
}

/// Qt does some things by the clock (tool tips, room for a dock that is dragged): a replay may end beside its log on a
/// machine that is very busy. It does so three times only where something else is wrong.
TEST(Monkey, a_log_replays_to_the_same_window) {
  QTemporaryDir dir;
  const std::string first = dir.filePath("first.log").toStdString(), second = dir.filePath("second.log").toStdString();
  auto whole = [](const std::string& file) {
    std::ifstream in(file);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const Monkey::Report a = let_loose(3, 400, false, first);
    const Monkey::Report b = let_loose(0, 0, false, second, first);
    if (attempt < 3 && (a.end != b.end || whole(first) != whole(second))) continue;
    EXPECT_EQ(a.end, b.end);
    EXPECT_EQ(a.acts, b.acts);
    EXPECT_EQ(whole(first), whole(second)) << "the log of a replay is the log";
    return;
  }
}

/// What it waits for after its last act is a window, which it makes anew.
TEST(Monkey, a_log_that_ends_on_a_closed_window_with_a_button_held_comes_to_its_end) {
  QTemporaryDir dir;
  const std::string log = dir.filePath("closed.log").toStdString();
  std::ofstream(log) << "turn - 0 0 hasty -\n"
                        "press main 600 400 left -\n"
                        "command - 0 0 file.quit -\n";
  const Monkey::Report r = let_loose(0, 0, false, dir.filePath("again.log").toStdString(), log);
  EXPECT_EQ(r.acts, 2);
  EXPECT_TRUE(r.thrown.empty());
}

}  // namespace
}  // namespace tenon::views::testing
