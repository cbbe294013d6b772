// C++ kernels of convolutions. All work in three axes of space; those that a picture or a signal lacks have one
// element.
#include <algorithm>
#include <array>

#include "engine/formats/cpp/kernel.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr int64_t kChannels = 16;

using Three = std::array<int64_t, 3>;

/// Sizes of a convolution: axes of space are depth, height, width.
struct Geometry {
  int64_t batch, groups, in_channels, out_channels;  ///< channels of a group
  Three in, out, kernel, stride, dilation, pad;

  std::string text() const {
    return cpp_sizes(
               {{"batch", batch}, {"groups", groups}, {"in_channels", in_channels}, {"out_channels", out_channels}}) +
           cpp_sizes({{"id", in[0]}, {"ih", in[1]}, {"iw", in[2]}}) +
           cpp_sizes({{"od", out[0]}, {"oh", out[1]}, {"ow", out[2]}}) +
           cpp_sizes({{"kd", kernel[0]}, {"kh", kernel[1]}, {"kw", kernel[2]}}) +
           cpp_sizes({{"sd", stride[0]}, {"sh", stride[1]}, {"sw", stride[2]}}) +
           cpp_sizes({{"dd", dilation[0]}, {"dh", dilation[1]}, {"dw", dilation[2]}}) +
           cpp_sizes({{"pd", pad[0]}, {"ph", pad[1]}, {"pw", pad[2]}});
  }
};

/// The last entries of a list, with `missing` for the axes in front that are not there.
Three three(const std::vector<int64_t>& list, int space, int64_t missing) {
  Three t = {missing, missing, missing};
  for (size_t i = 0; i < static_cast<size_t>(space) && i < list.size(); ++i)
    t[3 - static_cast<size_t>(space) + i] = list[i];
  return t;
}
Three space_of(const Shape& s) { return three({s.begin() + 2, s.end()}, s.n - 2, 1); }

Geometry geometry(const CppCall& c) {
  c.need_f32();
  const Shape &x = c.shape(0), &w = c.shape(1), &y = c.out().shape;
  const int space = x.n - 2;
  if (space < 1 || space > 3) throw OnnxUnsupported(fmt::format("it has {} axes of space", space));
  if (!c.in(1).constant) throw OnnxUnsupported("its weights are known only at a run");
  if (const std::string pads = c.node().text("auto_pad", "NOTSET"); pads != "NOTSET" && pads != "VALID")
    throw OnnxUnsupported("its padding is " + pads);
  const std::vector<int64_t> ones(static_cast<size_t>(space), 1), none(static_cast<size_t>(2 * space), 0);
  const int64_t groups = c.node().integer("group", 1);
  return {x[0],
          groups,
          x[1] / groups,
          y[1] / groups,
          space_of(x),
          space_of(y),
          space_of(w),
          three(c.node().integers("strides", ones), space, 1),
          three(c.node().integers("dilations", ones), space, 1),
          three(c.node().integers("pads", none), space, 0)};
}

constexpr const char* kWindow = R"(
/// The first element of a window that lies inside, where element k is at `at` + k `step`.
inline int first_inside(int at, int step) { return at >= 0 ? 0 : (-at + step - 1) / step; }
/// One behind the last.
inline int end_inside(int at, int step, int count, int size) {
  const int end = (size - at + step - 1) / step;
  return at >= size ? 0 : end < count ? end : count;
}
)";

constexpr const char* kConv = R"(
/// Pixels neighbours in a row of y, in Channels channels: w holds the channels of a place side by side.
template <int Pixels, int Channels>
void conv_tile(const float* x, int at, int x_step, int x_channel, const float* w, const float* bias, float* y,
               int y_channel, int in_channels, const int (&window)[3], const int (&step)[3], const int (&from)[3],
               const int (&to)[3]) {
  float total[Pixels][Channels];
  for (int p = 0; p < Pixels; ++p)
    for (int c = 0; c < Channels; ++c) total[p][c] = bias ? bias[c] : 0.0f;
  const int size = window[0] * window[1] * window[2], part = size < 128 ? 128 / size : 1;
  for (int begin = 0; begin < in_channels; begin += part) {
    const int end = begin + part < in_channels ? begin + part : in_channels;
    float sum[Pixels][Channels] = {};
    for (int i = begin; i < end; ++i)
      for (int z = from[0]; z < to[0]; ++z)
        for (int v = from[1]; v < to[1]; ++v)
          for (int u = from[2]; u < to[2]; ++u) {
            const float* weight = w + (((i * window[0] + z) * window[1] + v) * window[2] + u) * Channels;
            const int place = at + i * x_channel + z * step[0] + v * step[1] + u * step[2];
            for (int p = 0; p < Pixels; ++p) {
              const float a = x[place + p * x_step];
              for (int c = 0; c < Channels; ++c) sum[p][c] += a * weight[c];
            }
          }
    for (int p = 0; p < Pixels; ++p)
      for (int c = 0; c < Channels; ++c) total[p][c] += sum[p][c];
  }
  for (int p = 0; p < Pixels; ++p)
    for (int c = 0; c < Channels; ++c) y[c * y_channel + p] = total[p][c];
}
)";

constexpr const char* kConvBody = R"(
constexpr int window[3] = {kd, kh, kw}, step[3] = {dd * ih * iw, dh * iw, dw};
for (int n = 0; n < batch; ++n)
for (int g = 0; g < groups; ++g)
for (int z = 0; z < od; ++z)
for (int v = 0; v < oh; ++v) {
const float* const x = x0 + (n * groups + g) * in_channels * id * ih * iw;
const int az = z * sd - pd, av = v * sh - ph;
int from[3] = {first_inside(az, dd), first_inside(av, dh), 0};
int to[3] = {end_inside(az, dd, kd, id), end_inside(av, dh, kh, ih), kw};
for (int u = 0; u < ow;) {
const int au = u * sw - pw, at = (az * ih + av) * iw + au;
const bool four = u + 4 <= ow && au >= 0 && au + 3 * sw + (kw - 1) * dw < iw;
from[2] = first_inside(au, dw);
to[2] = end_inside(au, dw, kw, iw);
float* const out = y + (((n * groups + g) * out_channels * od + z) * oh + v) * ow + u;
)";

/// One group of channels of a tile, in two widths of it.
std::string conv_call(int64_t channels, const std::string& first, bool bias) {
  auto call = [&](int pixels) {
    return fmt::format(
        "conv_tile<{0}, {1}>(x, at, sw, id * ih * iw, x1 + (g * out_channels + {2}) * in_channels * kd * kh * kw, "
        "{3}, out + ({2}) * od * oh * ow, od * oh * ow, in_channels, window, step, from, to);\n",
        pixels, channels, first, bias ? fmt::format("x2 + g * out_channels + {}", first) : "nullptr");
  };
  return "if (four) " + call(4) + "else " + call(1);
}

/// [groups * out, in, ...] as [groups, out / 16, in, ..., 16]: the last channels of a group may be fewer than 16.
Tensor channels_last_weights(const Tensor& w, int64_t groups) {
  const int64_t out = w.size(0) / groups, rest = w.numel() / w.size(0);
  const Tensor to = empty({w.numel()});
  const float* from = w.data<float>();
  float* next = to.data<float>();
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t first = 0; first < out; first += kChannels)
      for (int64_t k = 0; k < rest; ++k)
        for (int64_t o = first; o < std::min(first + kChannels, out); ++o) *next++ = from[(g * out + o) * rest + k];
  return to;
}

TENON_CPP(Conv) {
  const Geometry g = geometry(c);
  c.uses(kWindow);
  c.uses(kConv);
  c.hold(1, channels_last_weights(c.in(1).constant, g.groups), fmt::format("channels_{}", g.groups));
  const int64_t rest = g.out_channels % kChannels, whole = g.out_channels - rest;
  std::string text = g.text() + kConvBody;
  if (whole)
    text += fmt::format("for (int o = 0; o < {}; o += {}) {{\n", whole, kChannels) +
            conv_call(kChannels, "o", c.has(2)) + "}\n";
  if (rest) text += conv_call(rest, std::to_string(whole), c.has(2));
  return text + "u += four ? 4 : 1;\n}\n}\n";
}

TENON_CPP(ConvTranspose) {
  const Geometry g = geometry(c);
  return g.text() + fmt::format("const float* const bias = {};", c.has(2) ? "x2" : "nullptr") + R"(
for (int n = 0; n < batch; ++n)
for (int g = 0; g < groups; ++g)
for (int o = 0; o < out_channels; ++o) {
const float* const x = x0 + (n * groups + g) * in_channels * id * ih * iw;
float* const out = y + ((n * groups + g) * out_channels + o) * od * oh * ow;
for (int i = 0; i < od * oh * ow; ++i) out[i] = bias ? bias[g * out_channels + o] : 0.0f;
for (int z = 0; z < id * kd; ++z)
for (int v = 0; v < ih * kh; ++v)
for (int u = 0; u < kw; ++u)
for (int first = 0; first < iw; first += 16) {
// Sixteen neighbours of a row of x, each with one place of the window.
const int oz = z / kd * sd + z % kd * dd - pd, ov = v / kh * sh + v % kh * dh - ph;
if (oz < 0 || oz >= od || ov < 0 || ov >= oh) continue;
const int count = first + 16 < iw ? 16 : iw - first;
float row[16] = {};
for (int i = 0; i < in_channels; ++i) {
const float w = x1[((((g * in_channels + i) * out_channels + o) * kd + z % kd) * kh + v % kh) * kw + u];
const float* const from = x + ((i * id + z / kd) * ih + v / kh) * iw + first;
for (int j = 0; j < count; ++j) row[j] += w * from[j];
}
for (int j = 0; j < count; ++j) {
const int ou = (first + j) * sw + u * dw - pw;
if (ou >= 0 && ou < ow) out[(oz * oh + ov) * ow + ou] += row[j];
}
}
}
)";
}

// Pools: the window's elements outside of x count for nothing.
std::string pool_text(const CppCall& c, bool greatest) {
  c.need_f32();
  const Shape &x = c.shape(0), &y = c.out().shape;
  const int space = x.n - 2;
  if (space < 1 || space > 3) throw OnnxUnsupported(fmt::format("it has {} axes of space", space));
  if (const std::string pads = c.node().text("auto_pad", "NOTSET"); pads != "NOTSET" && pads != "VALID")
    throw OnnxUnsupported("its padding is " + pads);
  const std::vector<int64_t> ones(static_cast<size_t>(space), 1), none(static_cast<size_t>(2 * space), 0),
      pads = c.node().integers("pads", none);
  const Geometry g{x[0] * x[1],
                   1,
                   1,
                   1,
                   space_of(x),
                   space_of(y),
                   three(c.node().integers("kernel_shape"), space, 1),
                   three(c.node().integers("strides", ones), space, 1),
                   three(c.node().integers("dilations", ones), space, 1),
                   three(pads, space, 0)};
  const bool padding_counts = c.node().integer("count_include_pad", 0);
  const Three behind = three({pads.begin() + space, pads.end()}, space, 0);
  auto counted = [&](int axis, const char* letters) {
    return padding_counts ? fmt::format("end_inside(a{0}, d{1}, k{1}, i{1} + {2})", letters[0], letters[1],
                                        behind[static_cast<size_t>(axis)])
                          : fmt::format("(e{0} - f{0})", letters[0]);
  };
  return g.text() + fmt::format(R"(for (int n = 0; n < batch; ++n)
for (int z = 0; z < od; ++z)
for (int v = 0; v < oh; ++v)
for (int u = 0; u < ow; ++u) {{
const float* const x = x0 + n * id * ih * iw;
const int az = z * sd - pd, av = v * sh - ph, au = u * sw - pw;
const int fz = first_inside(az, dd), fv = first_inside(av, dh), fu = first_inside(au, dw);
const int ez = end_inside(az, dd, kd, id), ev = end_inside(av, dh, kh, ih), eu = end_inside(au, dw, kw, iw);
float result = {};
for (int k = fz; k < ez; ++k)
for (int j = fv; j < ev; ++j)
for (int i = fu; i < eu; ++i) {{
const float a = x[((az + k * dd) * ih + av + j * dh) * iw + au + i * dw];
{}
}}
y[((n * od + z) * oh + v) * ow + u] = result{};
}}
)",
                                greatest ? "-INFINITY" : "0.0f",
                                greatest ? "result = a > result || a != a ? a : result;" : "result += a;",
                                greatest ? ""
                                         : fmt::format(" / static_cast<float>({} * {} * {})", counted(0, "zd"),
                                                       counted(1, "vh"), counted(2, "uw")));
}
TENON_CPP(MaxPool) {
  c.uses(kWindow);
  return pool_text(c, true);
}
TENON_CPP(AveragePool) {
  c.uses(kWindow);
  return pool_text(c, false);
}

}  // namespace
}  // namespace tenon::formats
