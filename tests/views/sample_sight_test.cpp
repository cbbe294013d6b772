// Samples for eyes: images, masks, drawn pictures, and text around what was guessed worst.
#include "views/results/sample_sight.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/data/dataset.h"
#include "views/shared/sample_picture.h"

namespace tenon::views {
namespace {

using projects::Prediction;
using projects::Results;

/// Two grey pictures of 4 x 6, with a class a pixel where it is asked for.
class Pictures : public data::Dataset {
 public:
  Pictures(float low, float high, bool masks, int64_t side = 4) : low_(low), high_(high), masks_(masks), side_(side) {}
  int64_t size() const override { return 2; }
  Meta input() const override { return {DType::f32, {}, {1, side_, side_ + 2}}; }
  Meta target() const override { return masks_ ? Meta{DType::i64, {}, {side_, side_ + 2}} : Meta{DType::i64, {}, {}}; }
  int64_t classes() const override { return 3; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    const int64_t n = side_ * (side_ + 2);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < n; ++k)
        static_cast<float*>(x)[i * n + k] =
            low_ + (high_ - low_) * static_cast<float>(k) / static_cast<float>(n - 1) * (rows[i] ? 1.f : 0.5f);
      for (int64_t k = 0; k < (masks_ ? n : 1); ++k) static_cast<int64_t*>(y)[i * (masks_ ? n : 1) + k] = k % 3;
    }
  }

 private:
  float low_, high_;
  bool masks_;
  int64_t side_;
};

/// Windows of eight letters.
class Letters : public data::Dataset {
 public:
  explicit Letters(std::string text) : text_(std::move(text)) {}
  int64_t size() const override { return 1; }
  Meta input() const override { return {DType::i64, {}, {8}}; }
  Meta target() const override { return {DType::i64, {}, {8}}; }
  int64_t classes() const override { return 256; }
  std::string task() const override { return "language"; }
  std::string token_text(int64_t t) const override { return std::string(1, static_cast<char>(t)); }
  void fetch(const int64_t*, int64_t, void* x, void* y) const override {
    for (size_t i = 0; i < 8; ++i) {
      static_cast<int64_t*>(x)[i] = static_cast<unsigned char>(text_[i]);
      static_cast<int64_t*>(y)[i] = static_cast<unsigned char>(text_[i + 1]);
    }
  }

 private:
  std::string text_;
};

Results of(std::shared_ptr<const data::Dataset> set) {
  Results r;
  r.task = set->task();
  r.data = std::move(set);
  return r;
}
Prediction prediction_at(int64_t n) {
  Prediction p;
  p.row = n;
  return p;
}

TEST(SampleSight, values_between_0_and_1_are_shown_as_they_are_and_others_from_the_least_to_the_largest) {
  const SampleSight plain = sight_of(of(std::make_shared<Pictures>(0, 1, false)), prediction_at(0));
  ASSERT_EQ(plain.input.pixels.size(), 24u);
  EXPECT_EQ(plain.input.width, 6);
  EXPECT_EQ(plain.input.pixels.front(), 0);
  EXPECT_EQ(plain.input.pixels.back(), 128) << "half of white";
  const SampleSight shifted = sight_of(of(std::make_shared<Pictures>(-2, 2, false)), prediction_at(0));
  EXPECT_EQ(shifted.input.pixels.back(), 255) << "the largest it has";
  EXPECT_TRUE(plain.target.pixels.empty() && plain.answer.pixels.empty());
}

TEST(SampleSight, a_segmentation_has_its_mask_and_what_it_was_taken_for_in_the_same_colours) {
  Results r = of(std::make_shared<Pictures>(0, 1, true));
  EXPECT_EQ(r.task, "segmentation");
  projects::Answer a;
  for (int64_t k = 0; k < 24; ++k) a.classes.push_back(k == 5 ? -1 : k % 3);
  r.answers[1] = a;
  const SampleSight s = sight_of(r, prediction_at(1));
  ASSERT_EQ(s.target.pixels.size(), 72u);
  ASSERT_EQ(s.answer.pixels.size(), 72u);
  for (size_t k = 0; k < 24; ++k) {
    const bool same = std::equal(s.target.pixels.begin() + static_cast<std::ptrdiff_t>(3 * k),
                                 s.target.pixels.begin() + static_cast<std::ptrdiff_t>(3 * k + 3),
                                 s.answer.pixels.begin() + static_cast<std::ptrdiff_t>(3 * k));
    EXPECT_EQ(same, k != 5) << k;
  }
  EXPECT_FALSE(sight_of(r, prediction_at(0)).target.pixels.empty());
  EXPECT_TRUE(sight_of(r, prediction_at(0)).answer.pixels.empty()) << "answers are kept of the worst alone";
}

TEST(SampleSight, large_pictures_are_made_small) {
  Results r = of(std::make_shared<Pictures>(0, 1, true, 200));
  const SampleSight s = sight_of(r, prediction_at(0));
  EXPECT_EQ(s.input.width, kSampleSide);
  EXPECT_EQ(s.input.height, 200 * kSampleSide / 202);
  EXPECT_EQ(s.target.height, s.input.height);
}

TEST(SampleSight, a_text_is_shown_around_what_was_guessed_worst) {
  Results r = of(std::make_shared<Letters>("one\ttwo\n."));
  EXPECT_EQ(SampleSight::kind(*r.data), SampleSight::Kind::text);
  Prediction p = prediction_at(0);
  p.worst = 3, p.worst_truth = 't', p.worst_guess = '\n';
  const SampleSight s = sight_of(r, p);
  EXPECT_EQ(s.before, "one⇥");
  EXPECT_EQ(s.at, "t");
  EXPECT_EQ(s.after, "wo⏎.");
  EXPECT_EQ(s.guess, "⏎");
  p.worst = -1;
  EXPECT_TRUE(sight_of(r, p).at.empty());
  Results cut = of(std::make_shared<Letters>("\xa4\xc3\xa4\xe2\x82zzzz"));
  p.worst = 4;
  EXPECT_EQ(sight_of(cut, p).before, "\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd") << "bytes that are no letters";
}

TEST(SampleSight, outcomes_are_told_by_name) {
  Results r;
  r.classes = {"cat", "dog"};
  Prediction p;
  p.truth = 0, p.guess = 1;
  EXPECT_EQ(outcome_text(r, p), "cat → dog");
  p.guess = 0;
  EXPECT_EQ(outcome_text(r, p), "cat");
  p.guess = -1;
  EXPECT_EQ(outcome_text(r, p), "cat → –");
}

}  // namespace
}  // namespace tenon::views
