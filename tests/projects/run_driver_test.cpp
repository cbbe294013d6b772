#include "projects/run_driver.h"
#include "projects/time_travel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/error.h"
#include "core/tensor.h"
#include "engine/templates/templates.h"
#include "tests/projects/spirals.h"
#include "tests/thread_replica.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

using State = RunStatus::State;

struct DriverTest : testing_files::SpiralsTest {
  /// Waits for a state that the driver reaches by itself.
  static void until(const RunDriver& d, State s, int64_t step = -1) {
    while (d.status().state != s || (step >= 0 && d.status().step != step)) {
      ASSERT_NE(d.status().state, State::failed) << d.status().error;
      std::this_thread::yield();
    }
  }
  static TrainOptions options(const std::string& name, int64_t steps) {
    TrainOptions o;
    o.run_name = name;
    o.max_steps = steps;
    return o;
  }
  std::string last_digest(const std::string& run) {
    return digest_at(*project, project->run(run).id, project->run(run).steps);
  }
};

TEST_F(DriverTest, trains_to_the_end_and_keeps_everything) {
  auto d = RunDriver::start(project, options("r", 60));
  d->wait();
  const RunStatus s = d->status();
  EXPECT_EQ(s.state, State::finished) << s.error;
  EXPECT_EQ(s.step, 60);
  const RunInfo r = project->run("r");
  EXPECT_EQ(r.status, "finished");
  EXPECT_EQ(r.steps, 60);
  EXPECT_FALSE(r.best.is_null());
  EXPECT_EQ(project->metric(r.id, "loss").size(), 60u);
  const auto accuracy = project->metric(r.id, "train_accuracy");
  ASSERT_EQ(accuracy.size(), 60u) << "beside the evaluation's test_accuracy";
  EXPECT_GT(accuracy.back().value, accuracy.front().value);
  EXPECT_LE(accuracy.back().value, 1);
  EXPECT_EQ(project->checkpoints(r.id).front().step, 0);
  EXPECT_EQ(project->checkpoints(r.id).back().step, 60);
  std::vector<MetricRow> rows;
  d->drain(rows);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const MetricRow& m) { return m.name == "loss"; }), 60);
  d->drain(rows);
  EXPECT_TRUE(rows.empty());
}

TEST_F(DriverTest, of_two_replicas_the_first_writes_the_project) {
  testing_replicas::Group group(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      testing_replicas::ThreadReplica replica(group, rank);
      TrainOptions o = options("both", 30);
      o.session.replica = &replica;
      auto d = RunDriver::start(project, o);
      EXPECT_THROW(d->change({{"optimizer.lr", "0.1"}}), Error);
      d->wait();
      EXPECT_EQ(d->status().state, State::finished) << d->status().error;
      EXPECT_EQ(d->status().step, 30);
      std::vector<MetricRow> rows;
      d->drain(rows);
      EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const MetricRow& m) { return m.name == "loss"; }), 30);
    });
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(project->runs().size(), 1u);
  const RunInfo r = project->run("both");
  EXPECT_EQ(r.status, "finished");
  EXPECT_EQ(r.steps, 30);
  EXPECT_EQ(project->metric(r.id, "loss").size(), 30u);
}

TEST_F(DriverTest, replicas_start_together_or_not_at_all) {
  RunDriver::start(project, options("taken", 1))->wait();
  testing_replicas::Group group(2);
  std::string said[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      testing_replicas::ThreadReplica replica(group, rank);
      TrainOptions o = options("taken", 30);
      o.session.replica = &replica;
      try {
        RunDriver::start(project, o);
      } catch (const Error& e) {
        said[rank] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_NE(said[0].find("taken"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("rank 0 could not begin"), std::string::npos) << said[1];
}

TEST_F(DriverTest, a_stop_of_one_replica_ends_all) {
  testing_replicas::Group group(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      testing_replicas::ThreadReplica replica(group, rank);
      TrainOptions o = options("both", 1000000);
      o.session.replica = &replica;
      auto d = RunDriver::start(project, o);
      while (d->status().step < 3) std::this_thread::yield();
      if (rank == 1) d->stop();
      d->wait();
      EXPECT_EQ(d->status().state, State::stopped) << d->status().error;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(project->run("both").status, "stopped");
  EXPECT_EQ(project->checkpoints(project->run("both").id).back().step, project->run("both").steps);
}

TEST_F(DriverTest, single_steps_and_pauses_change_nothing) {
  auto plain = RunDriver::start(project, options("plain", 40));
  plain->wait();
  TrainOptions o = options("stepped", 40);
  o.start_paused = true;
  auto d = RunDriver::start(project, o);
  until(*d, State::paused, 0);
  for (int i = 1; i <= 5; ++i) {
    d->step_once();
    until(*d, State::paused, i);
  }
  EXPECT_EQ(project->metric(d->status().run, "loss").size(), 5u) << "what is done is kept while paused";
  EXPECT_EQ(project->run("stepped").status, "paused");
  d->checkpoint();
  while (project->checkpoints(d->status().run).back().step != 5) std::this_thread::yield();
  d->resume();
  d->wait();
  EXPECT_EQ(d->status().state, State::finished) << d->status().error;
  EXPECT_EQ(last_digest("stepped"), last_digest("plain"));
}

TEST_F(DriverTest, a_stopped_run_goes_on_where_it_was) {
  auto plain = RunDriver::start(project, options("plain", 90));
  plain->wait();
  auto d = RunDriver::start(project, options("stopped", 90));
  while (d->status().step < 20) std::this_thread::yield();
  d->stop();
  d->wait();
  const RunStatus s = d->status();
  ASSERT_TRUE(s.state == State::stopped || s.state == State::finished);
  EXPECT_EQ(project->checkpoints(s.run).back().step, s.step);
  d.reset();
  TrainOptions again;
  again.resume = "stopped";
  d = RunDriver::start(project, again);
  d->wait();
  EXPECT_EQ(d->status().state, State::finished) << d->status().error;
  EXPECT_EQ(last_digest("stopped"), last_digest("plain"));
  EXPECT_EQ(project->metric(s.run, "loss").size(), 90u);
}

TEST_F(DriverTest, a_recorded_step_is_the_step_that_was_trained) {
  auto d = RunDriver::start(project, options("r", 50));
  d->wait();
  const int64_t run = d->status().run;
  for (int64_t step : {1, 33, 50}) {
    const auto record = record_step(*project, run, step);
    EXPECT_EQ(record->step, step);
    EXPECT_EQ(record->loss, project->metric(run, "loss").at(static_cast<size_t>(step - 1)).value);
    EXPECT_FALSE(record->ops.empty());
    EXPECT_FALSE(record->grad_nodes.empty());
    EXPECT_FALSE(record->allocs.empty());
  }
  EXPECT_THROW(record_step(*project, run, 0), Error);
  EXPECT_THROW(record_step(*project, run, 51), Error);
  EXPECT_EQ(find_nan(*project, run), nullptr);
  EXPECT_THROW(state_at(*project, run, 33, 0, [](int64_t, int64_t) { return false; }), Error) << "cancelled";
}

TEST_F(DriverTest, the_digest_sees_every_part_of_the_state) {
  auto d = RunDriver::start(project, options("r", 10));
  d->wait();
  const int64_t run = d->status().run;
  Checkpoint c = state_at(*project, run, 10);
  const std::string whole = digest(c);
  EXPECT_EQ(whole, digest(state_at(*project, run, 10)));
  for (auto& [name, t] : c.tensors) {
    if (t.dtype() != DType::f32 || t.numel() == 0) continue;
    float& x = t.data<float>()[t.numel() - 1];
    const float before = x;
    x = std::nextafter(x, 10.0f);
    EXPECT_NE(digest(c), whole) << name;
    x = before;
  }
  EXPECT_EQ(digest(c), whole);
  for (const auto& [key, value] : c.state.items()) {
    Checkpoint other = c;
    other.state[key] = "changed";
    EXPECT_NE(digest(other), whole) << key;
  }
}

TEST_F(DriverTest, what_cannot_be_is_told_before_a_run_begins) {
  TrainOptions o;
  o.set = {{"no.such.key", "1"}};
  EXPECT_THROW(RunDriver::start(project, o), Error);
  o.set = {{"data.batch_size", "0"}};
  EXPECT_THROW(RunDriver::start(project, o), Error);
  o = {};
  o.resume = "nothing";
  EXPECT_THROW(RunDriver::start(project, o), Error);
  EXPECT_TRUE(project->runs().empty());
  EXPECT_THROW(RunDriver::start(Project::open(dir / "a.tenon", true), {}), Error) << "read-only";
}

TEST_F(DriverTest, a_run_that_stops_being_finite_fails_with_its_step) {
  TrainOptions o;
  o.run_name = "r";
  o.set = {{"data.nan_sample", "5"}};
  auto d = RunDriver::start(project, o);
  d->wait();
  const RunStatus s = d->status();
  EXPECT_EQ(s.state, State::failed);
  EXPECT_TRUE(s.nan);
  EXPECT_GT(s.nan_step, 0);
  EXPECT_EQ(project->run("r").status, "failed");
  const auto record = find_nan(*project, s.run);
  ASSERT_TRUE(record && record->nan);
  EXPECT_EQ(record->nan->step, s.nan_step);
  EXPECT_EQ(record->nan->sample, 5);
}

TEST_F(DriverTest, two_runs_at_once_do_not_disturb_each_other) {
  auto alone = RunDriver::start(project, options("alone", 80));
  alone->wait();
  auto a = RunDriver::start(project, options("a", 80)), b = RunDriver::start(project, options("b", 80));
  a->wait();
  b->wait();
  EXPECT_EQ(last_digest("a"), last_digest("alone"));
  EXPECT_EQ(last_digest("b"), last_digest("alone"));
}

}  // namespace
}  // namespace tenon::projects
