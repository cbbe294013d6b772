#include <algorithm>

#include "engine/cuda/rows.h"

// How many rows of scores have their answer's as the first of the highest.
namespace tenon::cuda {
namespace {

struct RightTask {
  const void *scores, *answers;
  DType scores_type, answers_type;
  rows::Walk<2> places;  ///< of scores (their first class) and of answers
  int64_t classes, apart;
  bool binary;
  float yes;

  __device__ float score(int64_t at) const { return static_cast<float>(element::at<double>(scores, scores_type, at)); }
};

__global__ void none_right(unsigned long long* count) { *count = 0; }

/// is_best_class() of engine/train/metric.h: each lane of a row looks for classes that are better than the answer.
__global__ void add_right(RightTask t, int lanes, unsigned long long* count) {
  TENON_SHARED(int, beaten, 32);
  for (rows::RowLoop r(t.places.count, t.classes, lanes); r.more(); r.next()) {
    int wrong = 0;
    if (r.there) {
      int64_t at[2];
      t.places.at(r.row, at);
      if (t.binary) {
        wrong = (t.score(at[0]) > t.yes) != (element::at<double>(t.answers, t.answers_type, at[1]) > 0.5);
      } else {
        const int64_t answer = static_cast<const int64_t*>(t.answers)[at[1]];
        if (answer < 0 || answer >= t.classes) {
          wrong = 1;
        } else {
          const float most = t.score(at[0] + answer * t.apart);
          wrong = !(most == most);
          for (int64_t i = r.lane; i < r.end; i += lanes) {
            const float s = t.score(at[0] + i * t.apart);
            wrong |= !(i < answer ? s < most : s <= most);
          }
        }
      }
    }
    wrong = rows::over_group<rows::Larger>(wrong, lanes, beaten);
    if (r.there && r.lane == 0 && !wrong) atomicAdd(count, 1ull);
  }
}
__global__ void put_right(const unsigned long long* count, double* to) { *to = static_cast<double>(*count); }

void run_count_right(Args& c) {
  const Operand scores = c.in(0), answers = c.in(1);
  const auto axis = static_cast<int>(c.whole("axis"));
  RightTask t{scores.data, answers.data, scores.type(), answers.type(), {}, 1, 0, axis < 0, 0};
  t.yes = static_cast<float>(c.number("yes"));
  if (axis >= 0) {
    t.classes = scores.size[axis];
    t.apart = scores.stride[axis];
  }
  for (int i = 0; i < answers.ndim; ++i)
    t.places.add(answers.size[i], {scores.stride[axis >= 0 && i >= axis ? i + 1 : i], answers.stride[i]});
  auto* count = c.scratch<unsigned long long>(1);
  launch(none_right, 1, 1, c, count);
  if (t.places.count > 0) {
    const rows::RowPlan plan(t.places.count, t.classes);
    launch(add_right, plan.blocks, plan.threads, c, t, plan.lanes, count);
  }
  launch(put_right, 1, 1, c, count, c.out(0).at<double>());
}

const KernelOf count_right_entry{"count_right", run_count_right};

}  // namespace
}  // namespace tenon::cuda
