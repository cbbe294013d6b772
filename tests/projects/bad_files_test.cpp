#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "core/error.h"
#include "core/tensor.h"
#include "projects/project.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

using testing_words::message_of;

void sql(const std::string& path, const char* text) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

/// Runs `body` in a child process and gives what it returned: limits and user ids set there do not reach the other
/// tests.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Checkpoint some_megabytes(int n, float value) {
  Checkpoint c;
  c.step = 1;
  for (int i = 0; i < n; ++i) {
    Tensor t = empty({1 << 18}, DType::f32);
    for (int64_t k = 0; k < t.numel(); ++k) t.data<float>()[k] = value + static_cast<float>(i) + static_cast<float>(k);
    c.tensors.emplace_back("w" + std::to_string(i), t);
  }
  c.state = nlohmann::json::object();
  return c;
}

TEST(BadFile, missing) {
  TempDir dir;
  EXPECT_SAYS(message_of([&] { Project::open(dir / "no.tenon"); }), "No such file");
  EXPECT_TRUE(dir.names().empty()) << "opening must not make a file";
  EXPECT_SAYS(message_of([&] { Project::open(dir.path()); }), "is a folder");
  EXPECT_SAYS(message_of([&] { Project::create(dir / "no/such/a.tenon", small_model(), small_recipe()); }),
              "cannot be opened");
}

TEST(BadFile, create_leaves_an_existing_file_alone) {
  TempDir dir;
  testing_files::write(dir / "a.tenon", "mine");
  EXPECT_SAYS(message_of([&] { Project::create(dir / "a.tenon", small_model(), small_recipe()); }), "already exists");
  EXPECT_EQ(testing_files::read(dir / "a.tenon"), "mine");
  EXPECT_EQ(dir.names().size(), 1u);
}

TEST(BadFile, some_other_file) {
  TempDir dir;
  testing_files::write(dir / "a.tenon", std::string(5000, 'x'));
  EXPECT_SAYS(message_of([&] { Project::open(dir / "a.tenon"); }), "is not a Tenon project");
  testing_files::write(dir / "b.tenon", "");
  EXPECT_SAYS(message_of([&] { Project::open(dir / "b.tenon"); }), "is not a Tenon project: it is an empty file");
  EXPECT_EQ(testing_files::read(dir / "b.tenon"), "");
  sql(dir / "c.tenon", "CREATE TABLE t (x)");
  EXPECT_SAYS(message_of([&] { Project::open(dir / "c.tenon"); }), "database of another program");
}

TEST(BadFile, newer_version) {
  TempDir dir;
  { auto p = Project::create(dir / "a.tenon", small_model(), small_recipe()); }
  sql(dir / "a.tenon", "PRAGMA user_version = 1000");
  EXPECT_SAYS(message_of([&] { Project::open(dir / "a.tenon"); }), "newer Tenon");
  EXPECT_SAYS(message_of([&] { Project::open(dir / "a.tenon", true); }), "1000");
}

TEST(BadFile, truncated) {
  TempDir dir;
  {
    auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
    p->save_checkpoint(p->new_run("r", p->model(), p->recipe(), 1).id, some_megabytes(2, 0));
  }
  const std::string whole = testing_files::read(dir / "a.tenon");
  for (size_t keep : {whole.size() / 2, whole.size() - 1, size_t{70000}, size_t{100}, size_t{50}}) {
    testing_files::write(dir / "a.tenon", whole.substr(0, keep));
    const std::string said = message_of([&] { Project::open(dir / "a.tenon"); });
    EXPECT_TRUE(said.find("damaged") != said.npos || said.find("not a Tenon project") != said.npos)
        << keep << ": " << said;
  }
}

TEST(BadFile, damaged_pages_give_an_error_not_a_crash) {
  TempDir dir;
  {
    auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
    const RunInfo r = p->new_run("r", p->model(), p->recipe(), 1);
    p->save_checkpoint(r.id, some_megabytes(1, 0), {{"loss", {1, 1, 1}}});
  }
  const std::string whole = testing_files::read(dir / "a.tenon");
  int failed = 0;
  for (size_t page = 1; page * 65536 < whole.size(); ++page) {
    std::string bad = whole;
    for (size_t i = 0; i < 4096; ++i) bad[page * 65536 + i] = static_cast<char>(i * 31 + page);
    testing_files::write(dir / "a.tenon", bad);
    failed += message_of([&] {
                auto p = Project::open(dir / "a.tenon");
                p->model();
                const RunInfo r = p->run("r");
                p->metric(r.id, "loss");
                p->checkpoint_before(r.id, 1);
                p->set_run_status(r.id, "stopped");
              }) != "no error";
  }
  EXPECT_GT(failed, 5);
}

TEST(BadFile, read_only_file_opens_and_says_so_when_written) {
  TempDir dir;
  { auto p = Project::create(dir / "a.tenon", small_model(), small_recipe()); }
  chmod((dir / "a.tenon").c_str(), 0444);
  chmod(dir.path().c_str(), 0555);
  EXPECT_EQ(in_child([&] {
              if (geteuid() == 0 && seteuid(65534) != 0) return 9;  // root may write anything
              auto p = Project::open(dir / "a.tenon");
              if (!p->read_only()) return 1;
              if (p->model() != small_model()) return 2;
              const std::string said = message_of([&] { p->set_recipe({{"seed", 2}}); });
              if (said.find("read-only") == said.npos) return 3;
              return message_of([&] {
                       Project::create(dir / "b.tenon", small_model(), small_recipe());
                     }).find("cannot be opened") == std::string::npos
                         ? 4
                         : 0;
            }),
            0);
  chmod(dir.path().c_str(), 0755);
}

TEST(BadFile, a_full_disk_loses_nothing) {
  TempDir dir;
  { auto p = Project::create(dir / "a.tenon", small_model(), small_recipe()); }
  // A limit on the size of files stands for a full disk where nothing can be mounted.
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              auto p = Project::open(dir / "a.tenon");
              const RunInfo r = p->new_run("r", p->model(), p->recipe(), 10);
              p->append_metrics(r.id, {{"loss", {1, 0, 0.5}}});
              const rlimit tight{3 << 20, 3 << 20};
              setrlimit(RLIMIT_FSIZE, &tight);
              const std::string said = message_of([&] {
                p->save_checkpoint(r.id, some_megabytes(6, 0), {{"loss", {2, 0, 0.4}}});
              });
              if (said.find("what was saved before is still there") == said.npos) return 1;
              return p->metric(r.id, "loss").size() == 1 && p->checkpoints(r.id).empty() ? 0 : 2;
            }),
            0);
  auto p = Project::open(dir / "a.tenon");
  EXPECT_EQ(p->metric(p->run("r").id, "loss").size(), 1u);
  EXPECT_TRUE(p->checkpoints(p->run("r").id).empty());
}

TEST(BadFile, a_really_full_disk_is_called_by_its_name) {
  TempDir dir;
  const int result = in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=4m") != 0)
      return 77;
    auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
    const RunInfo r = p->new_run("r", p->model(), p->recipe(), 10);
    p->append_metrics(r.id, {{"loss", {1, 0, 0.5}}});
    const std::string said = message_of([&] { p->save_checkpoint(r.id, some_megabytes(6, 0)); });
    if (said.find("no space is left on its disk") == said.npos) return 1;
    if (p->metric(r.id, "loss").size() != 1) return 2;
    return message_of([&] { p->append_metrics(r.id, {{"loss", {2, 0, 0.5}}}); }) == "no error" ? 0 : 3;
  });
  if (result == 77) GTEST_SKIP() << "this user may not mount a small disk";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace tenon::projects
