#pragma once
#include "engine/kernels/dnnl.h"
#include "engine/kernels/kept_weights.h"

namespace tenon::kernels {

// 2-d convolutions of NHWC activations with OIHW weights, in float and bf16 (uint16_t, its bits, with bf16 set in the
// shape: where has_bf16_products() alone) through oneDNN or by Note [Tiled convolutions], and in double by plain loops.
// The batch is cut by a rule of the shape; oneDNN's weight gradients are added up over those pieces in order, so the
// bits do not depend on the number of threads.

/// Images a piece: about 16 MFLOP, at most 8 images, and no remainder where a divisor of the batch is near.
int64_t conv_batch_cut(const ConvShape& s);

/// Bytes that a pass works in: `room` of the functions below. What oneDNN's primitives and tiled convolutions keep for
/// themselves is not in it, nor what `keep` has of the weights, for which it takes the memory.
template <class T>
size_t conv2d_workspace(const ConvShape& s, ConvPass pass, const WeightKeeper& keep = {});
/// `b` may be null where s.bias is not set.
template <class T>
void conv2d_forward(const ConvShape& s, const T* x, const T* w, const T* b, T* y, void* room,
                    const WeightKeeper& keep = {});
template <class T>
void conv2d_backward_data(const ConvShape& s, const T* gy, const T* w, T* gx, void* room,
                          const WeightKeeper& keep = {});
/// `gb` is written where s.bias is set.
template <class T>
void conv2d_backward_weights(const ConvShape& s, const T* x, const T* gy, T* gw, T* gb, void* room);

}  // namespace tenon::kernels
