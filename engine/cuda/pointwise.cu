#include "engine/cuda/pointwise.h"

#include "engine/ops/pointwise_formulas.h"
