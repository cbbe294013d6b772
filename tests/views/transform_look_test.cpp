// A sample on its way through a recipe's transforms, as the data's page and the command line show it.
#include "views/data/transform_look.h"

#include <gtest/gtest.h>

#include "engine/data/loader.h"
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
                sample_picture(x, run.train->input().shape, Levels(x, b.x.numel())).pixels);
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

TEST(SamplePictures, a_sound_is_a_line_as_high_as_it_is_loud) {
  std::vector<float> sound(960, 0.0f);
  for (size_t i = 480; i < 960; ++i) sound[i] = i % 2 ? 1.0f : -1.0f;
  const Meta meta{DType::f32, {}, {1, 960}};
  ASSERT_TRUE(is_sound(meta));
  const data::Image image = sample_picture(sound.data(), meta.shape, Levels(sound.data(), 960));
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
