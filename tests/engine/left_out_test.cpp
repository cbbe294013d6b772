// Samples that are left out: see Note [Samples that are left out].
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "engine/data/loader.h"
#include "engine/data/row_list.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/sessions.h"
#include "tests/messages.h"

namespace tenon::data {
namespace {

using Rows = std::vector<int64_t>;
using namespace testing_sessions;
using testing_words::has;
using testing_words::message_of;

TEST(RowList, IsReadAndWritten) {
  EXPECT_EQ(parse_rows("", "k"), Rows());
  EXPECT_EQ(parse_rows(" 7 ", "k"), Rows({7}));
  EXPECT_EQ(parse_rows("96, 120-123,5 , 121 - 122", "k"), Rows({5, 96, 120, 121, 122, 123}));
  EXPECT_EQ(rows_text({5, 96, 97, 120, 121, 122}), "5, 96, 97, 120-122");
  EXPECT_EQ(rows_text({}), "");
  const Rows all = {0, 1, 2, 3, 9, 11, 12, 13};
  EXPECT_EQ(parse_rows(rows_text(all), "k"), all);
  for (const char* wrong : {"x", "3-", "-3", "5-2", "1;2", "1,,2", "0-99999999999"})
    EXPECT_TRUE(has(message_of([&] { parse_rows(wrong, "data.without"); }), "data.without")) << wrong;
}

struct Numbered : Dataset {
  int64_t size() const override { return 103; }
  Meta input() const override { return {DType::f32, {}, {1}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      static_cast<float*>(x)[i] = static_cast<float>(rows[i]);
      static_cast<int64_t*>(y)[i] = rows[i];
    }
  }
};

Rows less(Rows rows, const Rows& gone) {
  std::erase_if(rows, [&](int64_t r) { return std::find(gone.begin(), gone.end(), r) != gone.end(); });
  return rows;
}

TEST(Loader, LeavesSamplesOutAndMovesNoOther) {
  const auto set = std::make_shared<Numbered>();
  const Rows gone = {3, 50, 51, 52, 102};
  for (int workers : {0, 2}) {
    Loader whole(set, {.batch = 10, .workers = workers, .seed = 5});
    Loader part(set, {.batch = 10, .workers = workers, .seed = 5, .without = gone});
    EXPECT_EQ(part.batches_per_epoch(), whole.batches_per_epoch());
    for (int i = 0; i < 25; ++i) {
      const Batch a = whole.next(), b = part.next();
      EXPECT_EQ(b.rows, less(a.rows, gone));
      EXPECT_EQ(b.whole, static_cast<int64_t>(b.rows.size()));
      EXPECT_EQ(b.epoch, a.epoch);
      EXPECT_EQ(b.index, a.index);
    }
    // From a batch on, whatever was fetched ahead.
    whole.seek(1, 4);
    Loader later(set, {.batch = 10, .workers = workers, .seed = 5});
    later.seek(1, 3);
    later.next();
    const Batch full = whole.next();
    Rows sorted = full.rows;
    std::sort(sorted.begin(), sorted.end());
    later.leave_out(sorted);
    const Batch none = later.next();
    EXPECT_EQ(none.whole, 0);
    EXPECT_TRUE(none.rows.empty());
    EXPECT_EQ(later.next().rows, whole.next().rows);
  }
}

TEST(Loader, ReplicasShareWhatIsLeftOfABatch) {
  const auto set = std::make_shared<Numbered>();
  const Rows gone = {0, 1, 2, 3, 4, 15};
  Loader whole(set, {.batch = 10, .workers = 0, .shuffle = false, .without = gone});
  Loader a(set, {.batch = 10, .workers = 0, .shuffle = false, .without = gone, .rank = 0, .world = 2});
  Loader b(set, {.batch = 10, .workers = 0, .shuffle = false, .without = gone, .rank = 1, .world = 2});
  for (int i = 0; i < 3; ++i) {
    const Batch all = whole.next(), first = a.next(), second = b.next();
    Rows both = first.rows;
    both.insert(both.end(), second.rows.begin(), second.rows.end());
    EXPECT_EQ(both, all.rows);
    EXPECT_EQ(first.whole, all.whole);
  }
  Loader few(set, {.batch = 10, .workers = 0, .shuffle = false, .without = {0, 1, 2, 3, 4, 5, 6, 7, 8}, .world = 2});
  EXPECT_TRUE(has(message_of([&] { few.next(); }), "replicas cannot share"));
}

TEST(LeftOut, AStepWithoutItsBatchChangesNothing) {
  TrainingSession as_it_is(tanh_model(), spirals({{"data.batch_size", "10"}}));
  std::vector<StepResult> steps;
  for (int i = 0; i < 4; ++i) steps.push_back(as_it_is.step());

  TrainingSession s(tanh_model(), spirals({{"data.batch_size", "10"}, {"data.without", data::rows_text([&] {
                                                                         std::vector<int64_t> rows = steps[2].rows;
                                                                         std::sort(rows.begin(), rows.end());
                                                                         return rows;
                                                                       }())}}));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(s.step().loss, steps[static_cast<size_t>(i)].loss);
  const Checkpoint before = s.save();
  const StepResult r = s.step();
  EXPECT_EQ(r.step, 3);
  EXPECT_EQ(r.samples, 0);
  EXPECT_TRUE(std::isnan(r.loss));
  EXPECT_TRUE(r.finite);
  EXPECT_FALSE(r.applied);
  const Checkpoint after = s.save();
  EXPECT_EQ(after.step, 3);
  ASSERT_EQ(before.tensors.size(), after.tensors.size());
  std::vector<char> a, b;
  for (size_t i = 0; i < before.tensors.size(); ++i)
    EXPECT_EQ(logical_bytes(before.tensors[i].second, a), logical_bytes(after.tensors[i].second, b));
  EXPECT_EQ(s.step().rows, steps[3].rows);
}

TEST(LeftOut, MayBeginInTheMiddleOfARun) {
  const Recipe whole = spirals({{"data.batch_size", "10"}});
  TrainingSession s(tanh_model(), whole);
  run(s, 5);
  TrainingSession other(tanh_model(), whole);
  run(other, 6);
  const std::vector<int64_t> rows = other.step().rows;
  Recipe less = whole;
  less.set("data.without", std::to_string(rows[4]));
  s.change(less);
  run(s, 1);
  std::vector<int64_t> left = rows;
  left.erase(left.begin() + 4);
  EXPECT_EQ(s.step().rows, left);
}

TEST(LeftOut, RowsThatAreNotThereAreRefused) {
  EXPECT_TRUE(has(message_of([] {
                    TrainingSession(tanh_model(), spirals({{"data.without", "130"}}));
                  }),
                  "there is no row 130"));
  EXPECT_TRUE(has(message_of([] {
                    TrainingSession(tanh_model(), spirals({{"data.without", "0-129"}}));
                  }),
                  "leaves out every sample"));
}

}  // namespace
}  // namespace tenon::data
