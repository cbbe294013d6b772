// After the program was killed: what was kept is said, the way on is offered, and the run that goes on is the run that
// was never disturbed.
#include <gtest/gtest.h>

#include <QApplication>
#include <QProcess>
#include <QSlider>
#include <QTest>
#include <QToolButton>
#include <cstdlib>
#include <random>

#include "engine/templates/templates.h"
#include "projects/time_travel.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

using projects::Project;
using projects::RunDriver;

class Recovery : public testing::WindowTest {};

TEST_F(Recovery, says_what_was_kept_and_resumes_by_one_button) {
  open(QString::fromStdString(testing::copy_of(testing::project_state("killed"), dir_.path().toStdString())));
  ASSERT_TRUE(bench_->shown());
  EXPECT_EQ(bench_->shown()->status, "interrupted");
  const int64_t reached = bench_->shown_steps(), kept = bench_->project()->checkpoints(bench_->shown_run()).back().step;
  EXPECT_GT(reached, kept);
  EXPECT_EQ(bench_->training_model.last_step(), reached) << "curves and slider reach equally far";
  EXPECT_EQ(window_->step_slider()->maximum(), reached);
  ASSERT_TRUE(banner_shown());
  EXPECT_TRUE(banner().contains("was interrupted at step")) << banner().toStdString();
  bench_->select(
      Selection::step(std::min(reached, kept + 3), "test"));  // a step behind the last checkpoint can be gone back to
  settle();
  ASSERT_TRUE(static_cast<bool>(bench_->links())) << (problems_.empty() ? "" : problems_.back());
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());
  until([&] { return bench_->training() && bench_->status().step > kept; });
  EXPECT_FALSE(banner_shown());
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
  EXPECT_EQ(bench_->shown()->status, "stopped");
  EXPECT_EQ(bench_->contents().runs.size(), 1u) << "the same run went on";
  // A run that was stopped goes on by the same command.
  const int64_t before = bench_->shown_steps();
  ASSERT_TRUE(window_->commands().run("run.go_on"));
  until([&] { return bench_->training() && bench_->status().step > before; });
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
}

TEST_F(Recovery, a_project_that_nobody_killed_offers_nothing) {
  open(QString::fromStdString(testing::copy_of(testing::project_state("trained"), dir_.path().toStdString())));
  EXPECT_FALSE(banner_shown());
}

TEST_F(Recovery, the_offer_goes_with_its_project) {
  open(QString::fromStdString(testing::copy_of(testing::project_state("killed"), dir_.path().toStdString())));
  ASSERT_TRUE(banner_shown());
  // A run of the same number, and not at its end either.
  const QString other = dir_.filePath("other.tenon");
  const Beginning b = begin(find_template("spirals"), "", other.toStdString());
  {
    auto p = Project::create(other.toStdString(), b.model, b.recipe.to_json());
    auto driver = RunDriver::start(p, {.start_paused = true});
    driver->stop();
    driver->wait();
  }
  open(other);
  ASSERT_TRUE(bench_->can_go_on(bench_->shown_run()));
  EXPECT_FALSE(banner_shown()) << banner().toStdString();
}

TEST_F(Recovery, a_problem_covers_the_offer_and_gives_it_back) {
  open(QString::fromStdString(testing::copy_of(testing::project_state("killed"), dir_.path().toStdString())));
  bench_->fail("Something else", "went wrong", {});
  EXPECT_TRUE(banner().contains("went wrong"));
  EXPECT_EQ(banner_action(), nullptr);
  auto dismiss = [this] {
    for (QToolButton* b : window_->findChildren<QToolButton*>())
      if (b->text() == "Dismiss") click(b, b->rect().center());
  };
  dismiss();
  EXPECT_TRUE(banner().contains("was interrupted at step"));
  EXPECT_NE(banner_action(), nullptr);
  dismiss();
  EXPECT_FALSE(banner_shown());
}

class Kills : public Recovery {
 protected:
  static constexpr const char* kRun = "spirals-01";
  void make(const QString& file) {
    const Beginning b =
        begin(find_template("spirals"), "", file.toStdString(), {{"data.samples", "20000"}, {"epochs", "20"}});
    Project::create(file.toStdString(), b.model, b.recipe.to_json());
  }
  std::string last_digest(const QString& file) {
    auto p = Project::open(file.toStdString());
    const auto r = p->run(kRun);
    EXPECT_EQ(r.status, "finished");
    EXPECT_EQ(r.steps, r.total_steps);
    EXPECT_EQ(static_cast<int64_t>(p->metric(r.id, "loss").size()), r.total_steps) << "a loss for each step";
    return projects::digest_at(*p, r.id, r.steps);
  }

  /// Starts a window that works on the file, and kills it: a while after its first step, or somewhere on the way there.
  void kill_one(const QString& file, int seed, bool once_it_trains, int after_ms) {
    QProcess program;
    program.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    program.start(QApplication::applicationFilePath(), {"--victim", file, QString::number(seed)});
    ASSERT_TRUE(program.waitForStarted());
    QByteArray said;
    while (once_it_trains && !said.contains("training") && program.state() == QProcess::Running) {
      program.waitForReadyRead(100);
      said += program.readAllStandardOutput();
    }
    QTest::qWait(after_ms);
    ASSERT_EQ(program.state(), QProcess::Running)
        << "the program ended by itself with " << program.exitCode() << ", seed " << seed;
    program.kill();
    ASSERT_TRUE(program.waitForFinished());
  }
};

/// TENON_KILLS says how many.
TEST_F(Kills, at_random_moments_lose_nothing_that_was_kept) {
  const char* asked = std::getenv("TENON_KILLS");
  const int wanted = asked ? std::atoi(asked) : 6;
  std::mt19937 random(11);
  const QString plain = dir_.filePath("plain.tenon");
  make(plain);
  RunDriver::start(Project::open(plain.toStdString()), {})->wait();
  const std::string undisturbed = last_digest(plain);
  int kills = 0, early = 0, late = 0;
  for (int project = 0; kills < wanted; ++project) {
    ASSERT_LT(project, wanted * 4 + 20) << "the program ends before it can be killed";
    const QString file = dir_.filePath(QString("k%1.tenon").arg(project));
    make(file);
    // A run may be killed again after it went on.
    const int rounds = 1 + static_cast<int>(random() % 3);
    for (int round = 0; round < rounds; ++round) {
      kill_one(file, project * 10 + round, random() % 8 != 0, static_cast<int>(random() % 700));
      if (HasFatalFailure()) return;
      open(file);
      if (HasFatalFailure()) return;
      ASSERT_TRUE(bench_->has_project()) << "kill " << kills << (problems_.empty() ? "" : ": " + problems_.back());
      EXPECT_TRUE(problems_.empty()) << problems_.back();
      const auto* run = bench_->shown();
      if (!run)
        ++early;
      else if (run->status == "finished")
        ++late;
      else {
        ++kills;
        EXPECT_EQ(run->status, "interrupted");
        EXPECT_EQ(bench_->contents().runs.size(), 1u);
        EXPECT_EQ(bench_->training_model.last_step(), bench_->shown_steps());
        EXPECT_TRUE(banner_shown() && banner().contains("was interrupted at step")) << banner().toStdString();
        ASSERT_NE(banner_action(), nullptr);
        if (round + 1 == rounds) {
          click(banner_action(), banner_action()->rect().center());
          // What is left of the run may be over before anyone looks.
          const auto over = [this] { return bench_->shown() && bench_->shown()->status == "finished"; };
          until([this, over] { return bench_->training() || over() || !problems_.empty(); });
          ASSERT_TRUE(problems_.empty()) << problems_.back();
          until([this] { return !bench_->training(); });
          settle();
          EXPECT_EQ(last_digest(file), undisturbed) << "kill " << kills;
        }
      }
      close_window();
      if (!QFile::exists(file) || !Project::open(file.toStdString())->runs().size()) continue;
      if (Project::open(file.toStdString())->runs()[0].status == "finished") break;
    }
    QFile::remove(file);
  }
  std::printf("kills: %d in the middle of a run, %d before its first step, %d after its end\n", kills, early, late);
}

}  // namespace
}  // namespace tenon::views
