#pragma once
#include "engine/kernels/dnnl.h"

namespace tenon::kernels {

// Note [Tiled convolutions]
// Of NHWC activations, what an output element reads of one row of the kernel lies side by side: kw * ic numbers. So a
// convolution is a product whose left rows are places in the image, without a copy of it but for its padding, and whose
// right side is the weights. Where the processor has no AVX-512 this takes 91 to 96 GFLOP/s of 94, oneDNN 2.6 about 75.
// The functions are those of dnnl.h; forward and backward_data run on the calling thread alone. An element's bits
// depend on its own inputs alone, however the batch, its rows and its channels are cut. What they copy for themselves
// comes on top of a pass's workspace, as oneDNN's own buffers do: some hundred kilobytes a thread.

/// Whether this pass of this convolution can be computed so: f32, one group, enough channels; the input's gradient
/// where the stride is 1.
bool tiled_conv_fits(const ConvShape& s, ConvPass pass);
/// Whether it is: where that is the faster way, too.
bool tiles_conv(const ConvShape& s, ConvPass pass);

size_t tiled_conv_weight_bytes(const ConvShape& s, ConvPass pass);
/// `plain` is OIHW.
void tiled_conv_pack(const ConvShape& s, ConvPass pass, const float* plain, float* packed);
/// `bias` may be null.
void tiled_conv_forward(const ConvShape& s, const float* x, const float* packed, const float* bias, float* y);
void tiled_conv_backward_data(const ConvShape& s, const float* gy, const float* packed, float* gx);

/// Of the whole batch, on several threads: each has its own share of the weights, so nothing has to be added up. `gw`
/// is OIHW; `gb` is written where s.bias is set.
void tiled_conv_backward_weights(const ConvShape& s, const float* x, const float* gy, float* gw, float* gb);

}  // namespace tenon::kernels
