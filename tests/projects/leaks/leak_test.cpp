// Leaks planted in runs, and what only looks like one: which are found, who is named, and what the replay without them
// shows.
#include "projects/leaks/leak.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/error.h"
#include "core/memory_image.h"
#include "core/registry.h"
#include "projects/run_driver.h"
#include "tests/memory_image.h"
#include "tests/messages.h"
#include "tests/projects/leaks/plants.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using namespace testing_leaks;
using testing_files::TempDir;

class Leaks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scope_ = new RegistryScope("the tests of leaks");
    register_plants();
    scope_->close();
  }
  static void TearDownTestSuite() {
    delete scope_;
    scope_ = nullptr;
  }
  void SetUp() override {
    if (const std::string why = testing_words::why_no_image(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { clear_plants(); }

  std::shared_ptr<Project> trained(const Plant& plant, uint64_t seed, int64_t steps = 20) {
    auto project = Project::create(dir_ / fmt::format("{}.tenon", made_++), model_of(plant, seed),
                                   recipe_of(plant, seed).to_json());
    TrainOptions o;
    o.run_name = "r";
    o.max_steps = steps;
    auto d = RunDriver::start(project, o);
    d->wait();
    EXPECT_EQ(d->status().state, RunStatus::State::finished) << plant.type << ": " << d->status().error;
    d.reset();
    clear_plants();  // a fresh process would not have it
    return project;
  }
  static LeakReport search(Project& project, const LeakOptions& options = {}) {
    return find_run_leaks(project, project.run("r").id, options);
  }
  static const Plant& plant(const std::string& type) {
    for (const Plant& p : plants())
      if (p.type == type) return p;
    throw Error("no plant " + type);
  }

  TempDir dir_;
  int made_ = 0;
  static inline RegistryScope* scope_ = nullptr;
};

std::string told(const LeakReport& r) {
  std::string all = r.sentence();
  for (const RunLeak& l : r.leaks) {
    all += "\n  " + l.sentence();
    for (const std::string& c : l.chain) all += "\n    " + c;
  }
  return all;
}

void wrong(const Plant& p, uint64_t seed, const char* what, const LeakReport& r) {
  std::printf("%s%s, seed %d: %s\n%s\n", p.type.c_str(), p.owner.c_str(), static_cast<int>(seed), what,
              told(r).c_str());
}

/// Of the leaks of a report the one that was planted; null where the owner is another one.
const RunLeak* planted_among(const LeakReport& r, const Plant& p) {
  for (const RunLeak& l : r.leaks)
    if (l.owner.kind == p.kind && l.owner.name.find(p.owner) != std::string::npos) return &l;
  return nullptr;
}

TEST_F(Leaks, planted_ones_are_found_with_their_owner_and_proven_and_look_alikes_are_not) {
  constexpr uint64_t kSeeds = 2;
  int planted = 0, found = 0, owners = 0, alike = 0, alarms = 0, proven = 0, as = 0;
  for (const Plant& p : plants())
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto project = trained(p, seed * 7 + static_cast<uint64_t>(&p - plants().data()));
      const LeakReport r = search(*project);
      clear_plants();
      if (!p.leaks) {
        ++alike;
        alarms += !r.leaks.empty();
        if (!r.leaks.empty()) wrong(p, seed, "no leak", r);
        continue;
      }
      ++planted;
      found += !r.leaks.empty();
      const RunLeak* l = planted_among(r, p);
      owners += l && r.leaks.size() == 1;
      if (!l || r.leaks.size() != 1) wrong(p, seed, "another owner", r);
      if (!l) continue;
      const bool proof = l->proof.gone && l->proof.same_losses == !p.used;
      proven += proof;
      if (!proof) wrong(p, seed, "no proof", r);
      const bool held = (l->by_graph ? "graph" : l->by_view ? "view" : "") == p.as;
      as += held;
      if (!held) wrong(p, seed, "held otherwise", r);
      EXPECT_FALSE(l->edit().empty());
    }
  std::printf("planted %d: found %d, owner right %d, how it is held right %d, proven %d; look-alikes %d: alarms %d\n",
              planted, found, owners, as, proven, alike, alarms);
  EXPECT_GE(planted, 30);
  EXPECT_GE(alike, 30);
  EXPECT_GE(found * 100, planted * 95);
  EXPECT_GE(owners * 100, planted * 95);
  EXPECT_GE(as * 100, planted * 95);
  EXPECT_GE(proven * 100, planted * 95);
  EXPECT_LE(alarms * 100, alike * 2);
}

TEST_F(Leaks, a_leak_is_told_from_its_root_to_its_storage_with_what_it_takes_and_what_ends_it) {
  const auto project = trained(plant("KeepGraph"), 3);
  const LeakReport r = search(*project);
  ASSERT_EQ(r.leaks.size(), 1u) << told(r);
  const RunLeak& l = r.leaks[0];
  ASSERT_GE(l.chain.size(), 4u) << told(r);
  EXPECT_SAYS(l.chain.front(), "kept_penalties of test_projects");
  EXPECT_SAYS(l.chain.back(), "its storage of ");
  bool graph = false;
  for (const std::string& c : l.chain) graph |= c.starts_with("its graph: ");
  EXPECT_TRUE(graph) << told(r);
  EXPECT_SAYS(l.edit(), "detach");
  EXPECT_SAYS(r.sentence(), "every loss has the same bits");
  EXPECT_GT(l.bytes_a_step, 0);
  EXPECT_EQ(l.proof.after, 0);
  EXPECT_EQ(l.places.front().place.module_name(), "plant");
  const tracing::Finding f = leak_finding(r);
  EXPECT_EQ(f.tables.front().rows.size(), 1u);
}

TEST_F(Leaks, what_two_keep_goes_when_both_are_left_out) {
  const auto project = trained({.type = "KeepTwice"}, 5);
  const LeakReport r = search(*project);
  ASSERT_EQ(r.leaks.size(), 1u) << told(r);
  const RunLeak& l = r.leaks[0];
  ASSERT_EQ(l.also.size(), 1u) << told(r);
  EXPECT_NE(l.owner.kind, l.also[0].kind);
  EXPECT_TRUE(l.proof.gone) << told(r);
  EXPECT_TRUE(l.proof.same_losses);
}

TEST_F(Leaks, a_window_of_the_run_is_looked_at_and_its_cost_told_first) {
  const auto project = trained(plant("KeepInVariable"), 2, 60);
  const int64_t run = project->run("r").id;
  const LeakPlan plan = plan_leaks(*project, run, {.from = 21, .to = 40});
  EXPECT_EQ(plan.from, 21);
  EXPECT_EQ(plan.to, 40);
  EXPECT_EQ(plan.kept, 0);
  EXPECT_EQ(plan.to_window, 40);
  int64_t last = 0, all = 0;
  const LeakReport r = find_run_leaks(*project, run, {.from = 21, .to = 40}, [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    all = total;
    return true;
  });
  EXPECT_EQ(last, all);
  EXPECT_EQ(r.replayed, last);
  EXPECT_LE(r.replayed, plan.most);
  EXPECT_EQ(r.leaks.size(), 1u);
  EXPECT_THROW(find_run_leaks(*project, run, {}, [](int64_t, int64_t) { return false; }), Error);
  const auto words = [&](const LeakOptions& o) {
    try {
      plan_leaks(*project, run, o);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  EXPECT_SAYS(words({.from = 50, .to = 70}), "50 to 70 cannot be looked at");
  EXPECT_SAYS(words({.from = 20, .to = 24}), "5 steps are too few");
  EXPECT_SAYS(words({.from = 40, .to = 30}), "cannot be looked at");
}

TEST_F(Leaks, what_other_threads_do_with_memory_meanwhile_changes_nothing) {
  const auto project = trained(plant("KeepGraph"), 4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (unsigned seed = 1; seed <= 2; ++seed)
    others.emplace_back([&stop, seed] {
      // Lists of blocks that lead to each other, some with pages of their own that go back to the system.
      std::mt19937 random(seed);
      std::vector<std::vector<void*>> lists(16);
      while (!stop) {
        auto& list = lists[random() % lists.size()];
        list = std::vector<void*>(random() % 3 ? 1 + random() % 100 : 50000);
        for (void*& p : list) p = lists[random() % lists.size()].data();
      }
    });
  for (int i = 0; i < 3; ++i) {
    const LeakReport r = search(*project);
    clear_plants();
    EXPECT_EQ(r.leaks.size(), 1u) << told(r);
    if (r.leaks.empty()) break;
    EXPECT_SAYS(r.leaks[0].owner.name, "kept_penalties");
    EXPECT_TRUE(r.leaks[0].proof.gone) << told(r);
  }
  stop = true;
  for (std::thread& t : others) t.join();
}

TEST_F(Leaks, without_a_proof_the_owner_is_named_all_the_same) {
  const auto project = trained(plant("KeepInVariable"), 9);
  const LeakReport r = search(*project, {.prove = false});
  ASSERT_EQ(r.leaks.size(), 1u);
  EXPECT_FALSE(r.leaks[0].proof.done);
  EXPECT_EQ(r.leaks[0].owner.kind, tracing::OwnerKind::variable);
  EXPECT_SAYS(r.leaks[0].sentence(), "not proven: it was not asked for");
}

}  // namespace
}  // namespace tenon::projects
