#pragma once
#include "engine/cuda/conv_shape.h"

namespace tenon::cuda {

/// What a convolution of x and w to y is asked for, of the other two.
enum class ConvDirection : int32_t { result, of_input, of_weight };

/// Queues it by cuDNN. False, with nothing written, where the library is missing or does not take it: operands without
/// elements or with elements that share a place, more than 2^31 places, or no algorithm that always gives the same bits
/// in working memory that can be had. A bias only of the result.
bool conv_by_cudnn(const Args& c, ConvDirection direction, const ConvShape& shape, const Operand& x, const Operand& w,
                   const Operand& y, const Operand& bias);

}  // namespace tenon::cuda
