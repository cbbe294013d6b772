// The ops of recorded steps against ceilings that the test knows.
#include "tracing/ops/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/poisoned_device.h"
#include "tests/tracing/findings.h"
#include "tracing/record/step_record.h"
#include "tracing/record/step_recorder.h"

namespace tenon::tracing {
namespace {

/// 100 FLOP and 10 bytes a nanosecond: the ridge is at 10.
const kernels::Ceilings kHundred{"p", 1, 100e9, 10e9};

/// A step of ops with sizes, work and time.
class MadeStep {
 public:
  MadeStep& op(const char* name, Shape size, double flops, double bytes, int64_t ns) {
    OpRecord o;
    o.seq = static_cast<uint32_t>(record_->ops.size()) + 1;
    o.name = name;
    o.flops = flops;
    o.bytes = bytes;
    o.duration_ns = ns;
    TensorRecord t;
    t.layout = Layout::contiguous(size);
    o.inputs = {static_cast<int>(record_->tensors.size())};
    record_->tensors.push_back(t);
    record_->ops.push_back(o);
    return *this;
  }
  std::shared_ptr<const StepRecord> made(int64_t step, int64_t ns) {
    record_->step = step;
    record_->duration_ns = ns;
    return record_;
  }

 private:
  std::shared_ptr<StepRecord> record_ = std::make_shared<StepRecord>();
};

const RoofRow& row_of(const Roofline& r, const std::string& op) {
  return *std::find_if(r.rows.begin(), r.rows.end(), [&](const RoofRow& row) { return row.op == op; });
}

TEST(Roofline, a_row_is_held_against_what_its_work_allows) {
  const auto step = MadeStep()
                        .op("matmul", {64, 64}, 2e6, 1e4, 40'000)  // 200 a byte: 20 µs of arithmetic
                        .op("relu", {1000}, 1e5, 8e5, 100'000)     // an eighth a byte: 80 µs of memory
                        .op("copy", {500}, 0, 4e5, 160'000)        // 40 µs of memory
                        .op("view", {500}, 0, 0, 200)
                        .op("odd", {1}, 0, 0, 9'000)
                        .made(7, 400'000);
  const Roofline r = roofline({step}, kHundred);
  ASSERT_EQ(r.rows.size(), 5u);
  const RoofRow &product = row_of(r, "matmul"), &relu = row_of(r, "relu"), &copy = row_of(r, "copy");
  EXPECT_EQ(product.limit, Limit::arithmetic);
  EXPECT_DOUBLE_EQ(product.gflops(), 50);
  EXPECT_DOUBLE_EQ(product.ceiling(), 100);
  EXPECT_DOUBLE_EQ(product.reached(), 0.5);
  EXPECT_DOUBLE_EQ(product.to_win(), 20'000);
  EXPECT_EQ(product.sizes, "[64, 64]");
  EXPECT_EQ(relu.limit, Limit::memory);
  EXPECT_DOUBLE_EQ(relu.intensity(), 0.125);
  EXPECT_DOUBLE_EQ(relu.ceiling(), 1.25);
  EXPECT_DOUBLE_EQ(relu.ceiling() * 1e9, kHundred.at(relu.intensity())) << "the roof says the same";
  EXPECT_DOUBLE_EQ(relu.reached(), 0.8);
  EXPECT_EQ(copy.limit, Limit::memory) << "without arithmetic the bytes alone count";
  EXPECT_DOUBLE_EQ(copy.gbytes(), 2.5);
  EXPECT_DOUBLE_EQ(copy.reached(), 0.25);
  EXPECT_EQ(copy.ceiling(), 0);
  EXPECT_EQ(row_of(r, "view").limit, Limit::size);
  EXPECT_EQ(row_of(r, "odd").limit, Limit::unknown);
  EXPECT_EQ(row_of(r, "odd").to_win(), 0);
  EXPECT_EQ(r.rows.front().op, "copy") << "120 of its 160 µs";
  EXPECT_EQ(r.near_ns, 140'000);
  EXPECT_EQ(r.ops_ns, 309'200);
}

TEST(Roofline, calls_of_the_same_work_are_a_row_and_small_ones_of_an_op_another) {
  MadeStep made;
  made.op("add", {8}, 8, 96, 300).op("add", {4}, 4, 48, 100).op("add", {90'000}, 9e4, 1e6, 200'000);
  made.op("add", {90'000}, 9e4, 1e6, 400'000).op("mul", {4}, 4, 48, 100);
  const auto step = made.made(3, 1'000'000);
  const Roofline r = roofline({step, step}, kHundred);
  ASSERT_EQ(r.rows.size(), 3u);
  const RoofRow& large = r.rows.front();
  EXPECT_EQ(large.op, "add");
  EXPECT_EQ(large.count, 4) << "of both steps";
  EXPECT_EQ(large.ns, 1'200'000);
  EXPECT_DOUBLE_EQ(large.flops, 3.6e5);
  EXPECT_EQ(large.calls, (std::vector<uint32_t>{4, 3})) << "of the last step, the longest first";
  EXPECT_DOUBLE_EQ(large.to_win(), 1'200'000 - 400'000);
  const auto small = std::find_if(r.rows.begin(), r.rows.end(),
                                  [](const RoofRow& x) { return x.op == "add" && x.limit == Limit::size; });
  ASSERT_NE(small, r.rows.end());
  EXPECT_EQ(small->sizes, "2 sizes");
  EXPECT_EQ(small->count, 4);
  EXPECT_EQ(small->ns, 800);
  EXPECT_EQ(small->calls, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(row_of(r, "mul").sizes, "[4]") << "one size is named";
  EXPECT_EQ(r.step_ns, 2'000'000);
}

TEST(Roofline, its_page_says_where_the_most_time_is_to_win) {
  const auto step = MadeStep()
                        .op("copy", {500}, 0, 4e5, 160'000)
                        .op("relu", {10}, 1e4, 8e5, 60'000)  // faster than the memory: from a cache
                        .op("add", {1}, 1, 12, 4'000)
                        .made(7, 400'000);
  const Finding f = roofline_page(roofline({step}, kHundred), *step);
  EXPECT_EQ(f.sentence,
            "Of the 400 µs of step 7, 15.0 % run at half of their ceiling or more, and 1.0 % are calls too small to "
            "fill the machine. copy of [500] has the most to win: 120 µs of its 160 µs, where memory is the limit. One "
            "row is above 100 %: what it read lay in a cache, or it computes in fewer bits than 32.");
  EXPECT_DOUBLE_EQ(fact<double>(f, "peak_gflops"), 100);
  EXPECT_DOUBLE_EQ(fact<double>(f, "copy_gbytes"), 10);
  EXPECT_DOUBLE_EQ(fact<double>(f, "ridge"), 10);
  EXPECT_EQ(fact<int64_t>(f, "between_ns"), 176'000);
  const Table* t = table_of(f, "ops");
  ASSERT_TRUE(t);
  ASSERT_EQ(t->rows.size(), 3u);
  for (const auto& row : t->rows) EXPECT_EQ(row.size(), t->columns.size());
  EXPECT_EQ(cell_text(t->rows[0][3], Unit::share), "25.0 %");
}

TEST(Roofline, a_recorded_step_is_whole_in_its_rows) {
  const Template& t = find_template("spirals");
  TrainingSession session(t.model, t.recipe);
  const auto record = record_step(session, "run");
  const Roofline r = roofline({record}, kHundred);
  int64_t calls = 0, ns = 0;
  std::vector<bool> seen(record->ops.size() + 1, false);
  for (const RoofRow& row : r.rows) {
    calls += row.count;
    ns += row.ns;
    EXPECT_EQ(static_cast<int64_t>(row.calls.size()), row.count);
    for (const uint32_t seq : row.calls) {
      EXPECT_FALSE(seen[seq]);
      seen[seq] = true;
      EXPECT_EQ(record->ops[seq - 1].name, row.op);
    }
  }
  EXPECT_EQ(calls, static_cast<int64_t>(record->ops.size()));
  EXPECT_EQ(ns, r.ops_ns);
  EXPECT_LE(r.ops_ns, r.step_ns) << "no op is counted within another";
  const Finding f = roofline_page(r, *record);
  for (size_t i = 0; i < r.rows.size(); ++i) {
    const int64_t event = f.tables.at(0).sights.at(i).event;
    ASSERT_GE(event, 0);
    EXPECT_EQ(record->timeline.op(static_cast<uint32_t>(event)).seq, r.rows[i].calls.front());
  }
  EXPECT_THROW(roofline({}, kHundred), Error);
}

TEST(Roofline, a_step_of_another_device_has_none) {
  const Template& t = find_template("spirals");
  TrainingSession session(t.model, t.recipe, {poisoned::device(), nullptr});
  const auto record = record_step(session, "run");
  const Finding f = roofline_page(roofline({record}, kHundred), *record);
  EXPECT_FALSE(f.ok);
  EXPECT_NE(f.sentence.find("ceilings that were measured are the processor's"), std::string::npos) << f.sentence;
}

}  // namespace
}  // namespace tenon::tracing
