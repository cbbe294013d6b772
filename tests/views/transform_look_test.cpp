// A sample on its way through a recipe's transforms, as the data's page and the command line show it.
#include "views/data/transform_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/data/loader.h"
#include "engine/data/transform.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "tests/messages.h"
#include "views/data/data_look.h"
#include "views/shared/sample_picture.h"

namespace tenon::views {
namespace {

using testing_words::message_of;

Recipe shapes(const char* transforms) {
  Recipe r;
  r.set("data.dataset", "shapes");
  r.set("data.samples", "40");
  r.set("data.transforms", transforms);
  r.set("seed", "7");
  return r;
}

data::Split raw(Recipe r) {
  r.set("data.transforms", "");
  return open_data(r);
}

TEST(TransformLooks, the_last_step_is_what_the_run_computes_with) {
  const Recipe recipe = shapes("random_crop padding=3; flip; colour_jitter");
  const data::Split plain = raw(recipe), run = open_data(recipe);
  for (int64_t epoch : {0, 1, 5})
    for (int64_t row : {0, 9}) {
      const TransformLook look = look_through(recipe, plain, true, row, epoch);
      ASSERT_EQ(look.steps.size(), 4u);
      EXPECT_EQ(step_name(look.steps[1]), "random_crop padding=3");
      const data::Batch b = data::fetch(*run.train, {row}, epoch);
      const auto* x = b.x.data<float>();
      const auto n = static_cast<size_t>(b.x.numel());
      EXPECT_EQ(look.steps[3].min, static_cast<double>(*std::min_element(x, x + n)));
      EXPECT_EQ(look.steps[3].max, static_cast<double>(*std::max_element(x, x + n)));
      EXPECT_EQ(look.steps[3].picture.pixels,
                sample_picture(x, run.train->input().shape, false, Levels(x, b.x.numel())).pixels);
      const data::Batch before = data::fetch(*plain.train, {row});
      EXPECT_EQ(look.steps[0].max, static_cast<double>(*std::max_element(before.x.data<float>(),
                                                                         before.x.data<float>() + before.x.numel())));
    }
  // In the test nothing is random, whatever the epoch.
  const TransformLook a = look_through(recipe, plain, false, 2, 0), b = look_through(recipe, plain, false, 2, 9);
  EXPECT_EQ(a.steps[3].picture.pixels, b.steps[3].picture.pixels);
}

TEST(TransformLooks, what_is_mixed_tells_its_classes_and_what_is_missing_is_said) {
  const Recipe recipe = shapes("mixup");
  const data::Split plain = raw(recipe);
  const TransformLook look = look_through(recipe, plain, true, 0, 0);
  EXPECT_TRUE(look.steps[0].shares.empty());
  EXPECT_FALSE(look.steps[1].shares.empty());
  EXPECT_EQ(steps_table(look).rows.size(), 2u);
  EXPECT_NE(sample_text(look).find("training sample 0"), std::string::npos);
  EXPECT_NE(message_of([&] { look_through(recipe, plain, true, 4000, 0); }).find("row 4000"), std::string::npos);
  const Recipe odd = shapes("turn");
  EXPECT_NE(message_of([&] { look_through(odd, plain, true, 0, 0); }).find("turn"), std::string::npos);
}

/// Row 0 is a low tone, row 1 a high one.
class PureTones : public data::Dataset {
 public:
  static constexpr int64_t kRate = 8000, kLength = 4000;
  int64_t size() const override { return 2; }
  Meta input() const override { return {DType::f32, {}, {1, kLength}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return 2; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      const double hertz = rows[i] == 0 ? 300 : 3000;
      for (int64_t t = 0; t < kLength; ++t)
        static_cast<float*>(x)[i * kLength + t] = static_cast<float>(
            std::sin(2 * std::numbers::pi * hertz * static_cast<double>(t) / static_cast<double>(kRate)));
      static_cast<int64_t*>(y)[i] = rows[i];
    }
  }
};

int64_t brightest_row(const data::Image& image) {
  const auto middle = [&](int64_t y) { return image.pixels[static_cast<size_t>(y * image.width + image.width / 2)]; };
  int64_t best = 0;
  for (int64_t y = 0; y < image.height; ++y)
    if (middle(y) > middle(best)) best = y;
  return best;
}

TEST(SamplePictures, low_tones_of_a_spectrogram_are_at_the_bottom) {
  Recipe recipe;
  recipe.set("data.transforms", "log_mel rate=8000; normalise mean=-4 std=4");
  const auto tones = std::make_shared<PureTones>();
  const data::Split plain{tones, tones};
  EXPECT_FALSE(tones->bottom_first());
  for (int64_t row : {0, 1}) {
    const TransformLook look = look_through(recipe, plain, true, row, 0);
    for (size_t step : {1u, 2u}) {
      const data::Image& image = look.steps[step].picture;
      ASSERT_EQ(image.height, 40);
      if (row == 0)
        EXPECT_GT(brightest_row(image), 26) << "step " << step;
      else
        EXPECT_LT(brightest_row(image), 14) << "step " << step;
    }
  }
  // What is computed with is as it was: the lowest band comes first.
  const data::Split run = data::transformed(plain, recipe.text("data.transforms"), 1);
  EXPECT_TRUE(run.train->bottom_first());
  EXPECT_TRUE(data::subset(run.test, {1})->bottom_first());
  const data::Batch low = data::fetch(*run.train, {0});
  const int64_t frames = low.x.size(3);
  const auto* x = low.x.data<float>();
  int64_t band = 0;
  for (int64_t k = 0; k < 40; ++k)
    if (x[k * frames] > x[band * frames]) band = k;
  EXPECT_LT(band, 14);
}

TEST(SamplePictures, a_mask_lies_as_its_picture_does) {
  const std::vector<int64_t> classes = {1, 1, 1, 1, 0, 0, 0, 0};
  const data::Image down = mask_picture(classes.data(), 2, 4, false), up = mask_picture(classes.data(), 2, 4, true);
  const auto half = static_cast<std::ptrdiff_t>(down.pixels.size() / 2);
  ASSERT_NE(down.pixels, up.pixels);
  EXPECT_TRUE(std::equal(down.pixels.begin(), down.pixels.begin() + half, up.pixels.begin() + half));
}

TEST(SamplePictures, a_sound_is_a_line_as_high_as_it_is_loud) {
  std::vector<float> sound(960, 0.0f);
  for (size_t i = 480; i < 960; ++i) sound[i] = i % 2 ? 1.0f : -1.0f;
  const Meta meta{DType::f32, {}, {1, 960}};
  ASSERT_TRUE(is_sound(meta));
  const data::Image image = sample_picture(sound.data(), meta.shape, false, Levels(sound.data(), 960));
  ASSERT_EQ(image.width, 96);
  const auto lit = [&](int64_t x) {
    int64_t n = 0;
    for (int64_t y = 0; y < image.height; ++y) n += image.pixels[static_cast<size_t>(y * image.width + x)] > 100;
    return n;
  };
  EXPECT_EQ(lit(10), 1) << "silence is a line";
  EXPECT_EQ(lit(80), image.height);
}

}  // namespace
}  // namespace tenon::views
