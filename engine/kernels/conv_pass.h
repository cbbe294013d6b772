#pragma once
#include "engine/kernels/dnnl.h"

namespace tenon::kernels {

// A pass of a convolution by the kernel that is the fastest here: oneDNN's, or that of Note [Tiled convolutions]. The
// arguments are those of the functions in dnnl.h; but for conv_pack() they run on the calling thread alone.

size_t conv_weight_bytes(const ConvShape& s, ConvPass pass);
/// True where both shapes want the same layout.
bool conv_same_weights(const ConvShape& a, const ConvShape& b, ConvPass pass);
void conv_pack(const ConvShape& s, ConvPass pass, const void* plain, void* packed);
void conv_forward(const ConvShape& s, const void* x, const void* packed, const void* bias, void* y);
void conv_backward_data(const ConvShape& s, const void* gy, const void* packed, void* gx);

}  // namespace tenon::kernels
