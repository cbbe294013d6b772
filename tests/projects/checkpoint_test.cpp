#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "core/error.h"
#include "core/tensor.h"
#include "projects/project.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

Tensor floats(const Shape& shape, float first) {
  Tensor t = empty(shape, DType::f32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

Checkpoint checkpoint(int64_t step, std::vector<std::pair<std::string, Tensor>> tensors) {
  Checkpoint c;
  c.step = step;
  c.tensors = std::move(tensors);
  c.state = {{"step", step}, {"seed", 7}, {"cursor", {1, 2, 3}}};
  return c;
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(to_string(a.size()), to_string(b.size()));
  ASSERT_EQ(std::memcmp(a.raw(), b.raw(), a.nbytes()), 0);
}

struct CheckpointTest : ::testing::Test {
  TempDir dir;
  std::shared_ptr<Project> project = Project::create(dir / "a.tenon", small_model(), small_recipe());
  int64_t run = project->new_run("r", project->model(), project->recipe(), 100).id;
};

TEST_F(CheckpointTest, every_dtype_and_shape_comes_back) {
  Checkpoint c = checkpoint(5, {});
  for (DType t : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16,
                  DType::f32, DType::f64}) {
    Tensor v = empty({3, 5}, t);
    std::memset(v.raw(), 1, v.nbytes());
    c.tensors.emplace_back(name(t), v);
  }
  c.tensors.emplace_back("scalar", floats({}, 3));
  c.tensors.emplace_back("zero", floats({0, 4}, 0));
  c.tensors.emplace_back("big", floats({700, 1000}, 0));  // three chunks
  const int64_t id = project->save_checkpoint(run, c);
  const Checkpoint back = Project::open(dir / "a.tenon", true)->load_checkpoint(id);
  EXPECT_EQ(back.step, 5);
  EXPECT_EQ(back.state, c.state);
  ASSERT_EQ(back.tensors.size(), c.tensors.size());
  for (const auto& [name, value] : back.tensors) {
    const auto at =
        std::find_if(c.tensors.begin(), c.tensors.end(), [&, n = name](const auto& x) { return x.first == n; });
    ASSERT_NE(at, c.tensors.end());
    expect_same(value, at->second);
  }
}

TEST_F(CheckpointTest, strided_tensors_are_kept_in_logical_order) {
  const Tensor base = floats({2, 3, 4, 5}, 0);
  const Tensor view = view_of(base, base.layout().permute({0, 2, 3, 1}).slice(1, 1, 4, 2));
  const int64_t id = project->save_checkpoint(run, checkpoint(1, {{"view", view}}));
  const Tensor back = project->load_checkpoint(id).tensors.at(0).second;
  ASSERT_EQ(to_string(back.size()), to_string(view.size()));
  EXPECT_TRUE(back.is_contiguous());
  for (int64_t a = 0; a < view.size(0); ++a)
    for (int64_t b = 0; b < view.size(1); ++b)
      for (int64_t c = 0; c < view.size(2); ++c)
        for (int64_t d = 0; d < view.size(3); ++d)
          ASSERT_EQ(value_at(back, {a, b, c, d}), value_at(view, {a, b, c, d}));
}

TEST_F(CheckpointTest, an_unchanged_chunk_is_stored_once) {
  Tensor big = floats({1024, 1024}, 0);  // 4 chunks
  const Tensor still = floats({512, 512}, 9);
  project->save_checkpoint(run, checkpoint(1, {{"big", big}, {"still", still}}));
  big.data<float>()[0] = -1;  // changes the first chunk only
  project->save_checkpoint(run, checkpoint(2, {{"big", big}, {"still", still}}));
  const auto infos = project->checkpoints(run);
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].bytes, 5 << 20);
  EXPECT_EQ(infos[0].stored_bytes, 5 << 20);
  EXPECT_EQ(infos[1].bytes, 5 << 20);
  EXPECT_EQ(infos[1].stored_bytes, 1 << 20);
}

TEST_F(CheckpointTest, deleting_one_leaves_what_others_share) {
  Tensor big = floats({1024, 1024}, 0);
  const int64_t a = project->save_checkpoint(run, checkpoint(1, {{"big", big}}));
  Tensor other = floats({1024, 1024}, 0);
  other.data<float>()[0] = -1;
  const int64_t b = project->save_checkpoint(run, checkpoint(2, {{"big", other}}));
  project->delete_checkpoint(a);
  EXPECT_THROW(project->load_checkpoint(a), Error);
  expect_same(project->load_checkpoint(b).tensors.at(0).second, other);
  // The first chunk of `big` is gone: storing it again adds exactly that.
  project->save_checkpoint(run, checkpoint(3, {{"big", big}}));
  EXPECT_EQ(project->checkpoints(run).back().stored_bytes, 1 << 20);
}

TEST_F(CheckpointTest, comes_with_its_metrics_progress_and_best) {
  project->save_checkpoint(run, checkpoint(40, {{"w", floats({4}, 0)}}), {{"loss", {40, 2.0, 0.5}}}, 2.5,
                           {{"metric", "accuracy"}, {"value", 0.9}, {"step", 40}});
  const RunInfo r = project->run(run);
  EXPECT_EQ(r.steps, 40);
  EXPECT_EQ(r.seconds, 2.5);
  EXPECT_EQ(r.best.at("value"), 0.9);
  EXPECT_EQ(project->metric(run, "loss").size(), 1u);
  EXPECT_TRUE(project->checkpoints(run).front().best);
}

TEST_F(CheckpointTest, finds_the_last_one_at_or_before_a_step) {
  for (int64_t s : {0, 10, 20})
    project->save_checkpoint(run, checkpoint(s, {{"w", floats({4}, static_cast<float>(s))}}));
  EXPECT_EQ(project->checkpoint_before(run, 9).step, 0);
  EXPECT_EQ(project->checkpoint_before(run, 10).step, 10);
  EXPECT_EQ(project->checkpoint_before(run, 999).step, 20);
  EXPECT_THROW(project->checkpoint_before(run, -1), Error);
}

TEST_F(CheckpointTest, the_same_step_is_replaced) {
  project->save_checkpoint(run, checkpoint(3, {{"w", floats({4}, 0)}}));
  project->save_checkpoint(run, checkpoint(3, {{"w", floats({4}, 1)}}));
  ASSERT_EQ(project->checkpoints(run).size(), 1u);
  expect_same(project->checkpoint_before(run, 3).tensors.at(0).second, floats({4}, 1));
}

TEST_F(CheckpointTest, a_damaged_chunk_is_named) {
  const int64_t id = project->save_checkpoint(run, checkpoint(6, {{"model/w", floats({1000}, 100)}}));
  project.reset();
  std::string bytes = testing_files::read(dir / "a.tenon");
  const float needle[3] = {600, 601, 602};
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(needle), sizeof needle));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  testing_files::write(dir / "a.tenon", bytes);
  try {
    Project::open(dir / "a.tenon")->load_checkpoint(id);
    FAIL() << "a changed bit went unnoticed";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("step 6"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("model/w"), std::string::npos) << e.message();
  }
}

TEST_F(CheckpointTest, a_kill_in_the_middle_leaves_the_last_whole_one) {
  project->save_checkpoint(run, checkpoint(1, {{"w", floats({1 << 20}, 1)}}), {{"loss", {1, 0, 1}}});
  project.reset();
  for (int round = 0; round < 8; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto p = Project::open(dir / "a.tenon");
      if (write(ready[1], "x", 1) != 1) _exit(1);
      for (int64_t s = 2 + 1000 * round;; ++s)
        p->save_checkpoint(run, checkpoint(s, {{"w", floats({1 << 20}, static_cast<float>(s))}}),
                           {{"loss", {s, 0, 1.0 * s}}});
    }
    char x;
    ASSERT_EQ(read(ready[0], &x, 1), 1);
    usleep(2000 + 7919 * static_cast<useconds_t>(round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    auto p = Project::open(dir / "a.tenon");
    const Checkpoint last = p->checkpoint_before(run, INT64_MAX);
    EXPECT_EQ(p->run(run).steps, last.step);
    EXPECT_EQ(p->metric(run, "loss").back().step, last.step);
    expect_same(last.tensors.at(0).second, floats({1 << 20}, static_cast<float>(last.step)));
  }
}

}  // namespace
}  // namespace tenon::projects
