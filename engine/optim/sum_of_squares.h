#pragma once
#include "core/tensor.h"

namespace tenon {
class Readings;
}
namespace tenon::optim {

/// Of an f32 or f64 tensor, added up in f64 where it lies; the same bits at any number of threads. Not finite exactly
/// where an element is not (or the sum exceeds a double). No op is recorded.
double sum_of_squares(const Tensor& t);
/// The same as a number of `readings`.
size_t sum_of_squares(const Tensor& t, Readings& readings);

}  // namespace tenon::optim
