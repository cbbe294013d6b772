#include "engine/cuda/pointwise.h"

#include "engine/ops/activation_formulas.h"
