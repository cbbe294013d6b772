#include "engine/cuda/pointwise.h"

#include "engine/ops/math_formulas.h"

namespace tenon {

TENON_PLAIN_KERNEL(floor_divide, any, T, sc::floor_divide(a, b))

}  // namespace tenon
