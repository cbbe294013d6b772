#include "engine/kernels/conv_pass.h"

#include "engine/kernels/tiled_conv.h"

namespace tenon::kernels {

size_t conv_weight_bytes(const ConvShape& s, ConvPass pass) {
  return tiles_conv(s, pass) ? tiled_conv_weight_bytes(s, pass) : dnnl_conv_weight_bytes(s, pass);
}

bool conv_same_weights(const ConvShape& a, const ConvShape& b, ConvPass pass) {
  if (tiles_conv(a, pass) || tiles_conv(b, pass))
    return tiles_conv(a, pass) && tiles_conv(b, pass) && a.ic == b.ic && a.oc == b.oc && a.kh == b.kh && a.kw == b.kw;
  return dnnl_conv_same_weights(a, b, pass);
}

void conv_pack(const ConvShape& s, ConvPass pass, const void* plain, void* packed) {
  if (tiles_conv(s, pass))
    tiled_conv_pack(s, pass, static_cast<const float*>(plain), static_cast<float*>(packed));
  else
    dnnl_conv_pack(s, pass, plain, packed);
}

void conv_forward(const ConvShape& s, const void* x, const void* packed, const void* bias, void* y) {
  if (tiles_conv(s, ConvPass::forward))
    tiled_conv_forward(s, static_cast<const float*>(x), static_cast<const float*>(packed),
                       static_cast<const float*>(bias), static_cast<float*>(y));
  else
    dnnl_conv_forward(s, x, packed, bias, y);
}

void conv_backward_data(const ConvShape& s, const void* gy, const void* packed, void* gx) {
  if (tiles_conv(s, ConvPass::backward_data))
    tiled_conv_backward_data(s, static_cast<const float*>(gy), static_cast<const float*>(packed),
                             static_cast<float*>(gx));
  else
    dnnl_conv_backward_data(s, gy, packed, gx);
}

}  // namespace tenon::kernels
