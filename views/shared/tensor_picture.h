#pragma once
#include <utility>

#include "core/layout.h"
#include "views/shared/scene.h"
#include "views/shared/tensor_stats.h"

// What the views of tensors draw alike.
namespace tenon::views {

/// The axes of the slice that is shown first, rows and columns: the last two, or the first two of [N, C, 1, 1], which
/// would show a single cell else. -1: there is none.
std::pair<int, int> first_slice(const Shape& size);

/// The colour of a value, of which one of size `scale` has the full one at a strength of 1. What is not finite is
/// hatched.
void tint_value(Scene& scene, Box box, double v, double scale, float strength);
/// Which colours the values of size `scale` have; 16 high and 210 wide.
void draw_tint_legend(Scene& scene, Point at, double scale);

/// How high the statistics are, with a histogram that can be read, in a box of that size.
float statistics_height(float width, float height);
/// The figures, a line each or two where the box is low, and under them the histogram, as far as the box goes.
void draw_statistics(Scene& scene, Box box, const TensorStats& stats);

}  // namespace tenon::views
