// Views tried on a tensor of a step: what is shown, what it costs, and what stays as it was.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/messages.h"
#include "tests/views/scenes.h"
#include "tests/views/step_fixture.h"
#include "views/tensor/tensor_model.h"

namespace tenon::views {
namespace {

using testing::small_links;
using testing::small_step;
using testing_words::error_of;

TEST(TensorViews, a_view_shows_other_cells_of_the_same_memory) {
  TensorModel m;
  m.set_step(small_links());
  m.show(6);  // linear output, 2 x 10: -5, -4.5, ...
  const Tensor whole = m.value();
  m.try_views(".T[::2]");
  ASSERT_EQ(m.record()->layout.size, (Shape{5, 2}));
  EXPECT_EQ(m.record()->layout.stride, (Dims{2, 10}));
  EXPECT_EQ(m.value().storage(), whole.storage());
  m.set_focus(3, 1);
  EXPECT_EQ(m.focus_position(), 16);
  const Scene& s = m.frame({1100, 600});
  for (const char* text :
       {"linear #4 output 0 .T[::2]", "size [5, 2] · stride [2, 10]", "[3, 1] = 3",
        "a view, nothing is copied · read in order, 2 cache lines are fetched, 2.0 ×", "1 other tensor looks here"})
    EXPECT_TRUE(shows(s, text)) << text << "\n" << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  m.try_views("");
  EXPECT_EQ(m.record()->layout.size, (Shape{2, 10}));
  EXPECT_TRUE(m.value().same(whole));
}

TEST(TensorViews, what_copies_says_why_and_has_memory_of_its_own) {
  TensorModel m;
  m.set_step(small_links());
  m.show(6);
  const Tensor whole = m.value();
  m.try_views(".T.reshape(-1)");
  EXPECT_EQ(m.record()->layout.size, (Shape{20}));
  EXPECT_NE(m.value().storage(), whole.storage());
  EXPECT_EQ(value_at(m.value(), {1}), value_at(whole, {1, 0}));
  EXPECT_SAYS(m.walk_text(), ".reshape(-1) copies 80 B: axes 0 and 1 cannot be walked as one");
  EXPECT_FALSE(shows(m.frame({1100, 600}), "other tensor"));
}

TEST(TensorViews, a_text_that_is_none_leaves_what_is_shown) {
  TensorModel m;
  m.set_step(small_links());
  m.show(6);
  m.try_views(".T");
  EXPECT_SAYS(error_of([&] { m.try_views(".T.perm"); }), "there is no view \"perm\"");
  EXPECT_EQ(m.views(), ".T");
  EXPECT_EQ(m.record()->layout.size, (Shape{10, 2}));
  m.refuse_views("there is no such view");
  EXPECT_TRUE(shows(m.frame({1100, 600}), "there is no such view"));
  m.show(1);  // another tensor is shown as it is
  EXPECT_FALSE(shows(m.frame({1100, 600}), "there is no such view"));
  EXPECT_EQ(m.views(), "");
  EXPECT_EQ(m.record()->layout.ndim(), 4);
}

TEST(TensorViews, views_stay_when_the_step_does_not) {
  TensorModel m;
  m.set_step(small_links());
  m.show(6);
  m.try_views("[1]");
  m.set_step(small_links());
  EXPECT_EQ(m.views(), "[1]");
  EXPECT_EQ(m.record()->layout.size, (Shape{10}));
  m.set_step({});
  EXPECT_EQ(m.record(), nullptr);
  EXPECT_EQ(m.walk_text(), "");
}

TEST(TensorViews, a_huge_copy_is_told_and_not_made) {
  TensorModel m;
  m.set_step(small_links());
  m.show(6);
  m.try_views(".unsqueeze(0).expand(100000000, 2, 10).contiguous()");
  EXPECT_FALSE(m.has_values());
  EXPECT_SAYS(m.walk_text(), "copies 7.45 GiB");
  EXPECT_SAYS(m.walk_text(), "of the first 1,048,576 elements");
  EXPECT_TRUE(shows(m.frame({1100, 600}), "is not made for a picture"));
}

TEST(TensorViews, the_ops_that_wrote_over_it_lead_there) {
  auto r = small_step();
  r->tensors[6].versions = {{0, r->tensors[6].value}, {5, r->tensors[6].value}, {10, r->tensors[6].value}};
  TensorModel m;
  m.set_step(Links(r));
  m.show(6);
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  const Scene& s = m.frame({1100, 640});
  EXPECT_TRUE(shows(s, "Written over in this step by")) << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  const Point at = center_of(s, {TensorModel::writer, 5});
  m.pointer({PointerEvent::Type::press, Button::left, at.x, at.y, {}});
  EXPECT_TRUE(chosen.same(Selection::op(5)));
}

TEST(TensorViews, nothing_is_drawn_over_anything) {
  TensorModel m;
  m.set_step(small_links());
  for (const char* views : {".T", "[::-1]", ".reshape(4, 5)", ".T.contiguous()", "[0, 0]", ".unsqueeze(0)", "[:0]"})
    for (float w : {60.f, 160.f, 300.f, 460.f, 640.f, 1100.f})
      for (float h : {60.f, 130.f, 200.f, 320.f, 600.f}) {
        m.show(6);
        m.try_views(views);
        if (m.has_values()) m.set_stats(6, tensor_stats(m.value()));
        const Scene& s = m.frame({w, h});
        EXPECT_TRUE(s.overlaps().empty()) << views << " at " << w << " x " << h << ": " << s.overlaps().front();
      }
}

}  // namespace
}  // namespace tenon::views
