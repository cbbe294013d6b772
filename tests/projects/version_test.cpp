// Projects of every version that was ever released open in this program. A version's schema is frozen here, as it was
// then.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>

#include "projects/project.h"
#include "projects/schema.h"
#include "tests/projects/old_versions.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::make_version_1;
using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

TEST(ProjectVersion, version_1_opens_with_everything_in_it) {
  TempDir dir;
  make_version_1(dir / "old.tenon");
  for (int round = 0; round < 2; ++round) {  // as it was, and once it has been brought up to date
    auto p = Project::open(dir / "old.tenon");
    EXPECT_EQ(p->model(), small_model());
    EXPECT_EQ(p->recipe(), small_recipe());
    const RunInfo r = p->run("old");
    EXPECT_EQ(r.steps, 20);
    EXPECT_EQ(r.best.at("value"), 0.5);
    const auto loss = p->metric(r.id, "loss");
    ASSERT_EQ(loss.size(), 2u);
    EXPECT_EQ(loss[0].value, 2.5);
    EXPECT_TRUE(std::isnan(loss[1].value));
    const Checkpoint c = p->checkpoint_before(r.id, 100);
    EXPECT_EQ(c.step, 20);
    ASSERT_EQ(c.tensors.size(), 1u);
    EXPECT_EQ(value_at(c.tensors[0].second, {0}), 1.5);
    EXPECT_EQ(value_at(c.tensors[0].second, {1}), -2);
    EXPECT_EQ(p->artifact(p->artifacts(r.id).at(0).id), "hi");
    EXPECT_EQ(p->window_state("docks"), nlohmann::json::array({1}));
    p->append_metrics(r.id, {{"lr", {2, 0.2, 0.1}}});
  }
}

TEST(ProjectVersion, version_1_opens_where_it_cannot_be_written) {
  TempDir dir;
  make_version_1(dir / "old.tenon");
  const std::string before = testing_files::read(dir / "old.tenon");
  {
    auto p = Project::open(dir / "old.tenon", true);
    const RunInfo r = p->run("old");
    EXPECT_EQ(r.steps, 20);
    EXPECT_TRUE(r.note.empty() && r.tags.empty() && r.changes.empty());
    EXPECT_EQ(p->runs().size(), 1u);
    EXPECT_EQ(p->metric(r.id, "loss").size(), 2u);
    EXPECT_EQ(p->checkpoint_before(r.id, 100).step, 20);
  }
  EXPECT_EQ(testing_files::read(dir / "old.tenon"), before);
}

TEST(ProjectVersion, a_new_project_has_the_current_version) {
  TempDir dir;
  { auto p = Project::create(dir / "new.tenon", small_model(), small_recipe()); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((dir / "new.tenon").c_str(), &db), SQLITE_OK);
  int version = -1;
  sqlite3_exec(
      db, "PRAGMA user_version",
      [](void* out, int, char** v, char**) { return *static_cast<int*>(out) = std::atoi(v[0]), 0; }, &version, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(version, schema_version());
}

}  // namespace
}  // namespace tenon::projects
