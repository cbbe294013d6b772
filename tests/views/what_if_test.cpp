// The curves of a what-if: drawn at any size, its peaks those of the table, and what stands out said.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tracing/made_snapshot.h"
#include "tests/views/scenes.h"
#include "views/findings/what_if_model.h"

namespace tenon::views {
namespace {

std::shared_ptr<const tracing::WhatIf> of_recorded(const char* name, double limit_share = 0) {
  tracing::SnapshotRequest request{.snapshots = {snapshot::read_snapshot(
                                       std::string(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/") + name, {})}};
  auto w = tracing::what_if(request);
  if (limit_share > 0) {
    request.limit = static_cast<int64_t>(static_cast<double>(w->recorded_peak()) * limit_share);
    w = tracing::what_if(request);
  }
  return std::make_shared<const tracing::WhatIf>(std::move(*w));
}

TEST(WhatIfCurvesTest, each_reaches_the_peak_of_its_row_and_ends_where_its_replay_does) {
  for (const char* name : {"training-2.15.pickle.gz", "expandable_streams-2.15.pickle.gz", "garbage-2.15.pickle.gz",
                           "out_of_memory-2.15.pickle.gz"}) {
    const auto w = of_recorded(name);
    for (const auto& t : w->tries) {
      int64_t most = 0;
      size_t at = 0;
      for (const auto& [event, bytes] : t.replay.curve) {
        EXPECT_GE(event, at) << name << " " << t.name;
        at = event;
        most = std::max(most, bytes);
      }
      EXPECT_EQ(most, t.replay.peak_reserved) << name << " " << t.name;
      EXPECT_LE(at, t.replay.reached) << name << " " << t.name;
    }
  }
}

TEST(WhatIfCurvesTest, at_any_size_nothing_lies_over_another_and_one_stands_out) {
  for (const double limit : {0.0, 0.7, 1.5}) {
    WhatIfCurves curves;
    EXPECT_NE(curves.summary().find("nothing was tried"), std::string::npos);
    curves.show(of_recorded("training-2.15.pickle.gz", limit));
    for (const Size size : {Size{900, 300}, Size{420, 220}, Size{240, 130}, Size{100, 60}}) {
      const Scene& scene = curves.frame(size);
      EXPECT_TRUE(scene.overlaps().empty()) << size.w << " " << scene.overlaps().front();
    }
    const Scene& scene = curves.frame({900, 300});
    EXPECT_TRUE(shows(scene, "as recorded: default"));
    EXPECT_TRUE(shows(scene, "0 events"));
    EXPECT_EQ(shows(scene, "the device can give"), limit > 0);
    ASSERT_TRUE(curves.key({.key = "Down", .text = {}, .mods = {}}));
    ASSERT_TRUE(curves.key({.key = "Down", .text = {}, .mods = {}}));
    EXPECT_EQ(curves.chosen(), 1);
    EXPECT_NE(curves.summary().find(curves.what_if()->tries[1].name), std::string::npos);
    const Point at = center_of(curves.frame({900, 300}), {WhatIfCurves::legend, 1});
    EXPECT_TRUE(curves.pointer({.type = PointerEvent::Type::release, .button = Button::left, .x = at.x, .y = at.y}));
    EXPECT_EQ(curves.chosen(), -1) << "a click on the one that stands out takes that back";
  }
}

}  // namespace
}  // namespace tenon::views
