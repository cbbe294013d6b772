// C++ kernels that bring values to a common scale.
#include <cmath>

#include "engine/formats/cpp/kernel.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

std::string epsilon_of(const CppCall& c) { return cpp_number(c.node().number("epsilon", 1e-5), DType::f32); }

// In evaluation it is one multiplication and one addition a channel, which are worked out here.
TENON_CPP_IN_PLACE(BatchNormalization) {
  c.need_f32();
  const Shape& x = c.shape(0);
  for (size_t i = 1; i < 5; ++i)
    if (!c.in(i).constant) throw OnnxUnsupported("its statistics are known only at a run");
  const int64_t channels = x[1];
  const double epsilon = c.node().number("epsilon", 1e-5);
  const Tensor scale = empty({channels}), shift = empty({channels});
  auto at = [&](size_t i, int64_t k) { return static_cast<double>(c.in(i).constant.data<float>()[k]); };
  for (int64_t k = 0; k < channels; ++k) {
    const double s = at(1, k) / std::sqrt(at(4, k) + epsilon);
    scale.data<float>()[k] = static_cast<float>(s);
    shift.data<float>()[k] = static_cast<float>(at(2, k) - at(3, k) * s);
  }
  c.hold(1, scale, "scale_" + c.node().name);
  c.hold(2, shift, "shift_" + c.node().name);
  return cpp_sizes({{"batch", x[0]}, {"channels", channels}, {"size", x.product() / (x[0] * channels)}}) +
         R"(for (int n = 0; n < batch; ++n)
for (int c = 0; c < channels; ++c)
for (int i = 0; i < size; ++i) {
const int at = (n * channels + c) * size + i;
y[at] = x0[at] * x1[c] + x2[c];
}
)";
}

/// Rows of `size` elements that are brought to mean 0 and variance 1, then scaled and shifted by the expressions.
std::string normalized_rows(const CppCall& c, int64_t rows, int64_t size, const std::string& scale,
                            const std::string& shift) {
  return cpp_sizes({{"rows", rows}, {"size", size}}) + fmt::format(R"(for (int r = 0; r < rows; ++r) {{
const float* const x = x0 + r * size;
float sum = 0.0f, square = 0.0f;
for (int i = 0; i < size; ++i) sum += x[i];
const float mean = sum / size;
for (int i = 0; i < size; ++i) square += (x[i] - mean) * (x[i] - mean);
const float factor = 1 / std::sqrt(square / size + {});
for (int i = 0; i < size; ++i) y[r * size + i] = (x[i] - mean) * factor{}{};
}}
)",
                                                                   epsilon_of(c), scale, shift);
}

/// How many elements the axes from one on have.
int64_t elements_from(const Shape& s, int axis) {
  int64_t n = 1;
  for (int i = axis; i < s.n; ++i) n *= s[i];
  return n;
}

TENON_CPP_IN_PLACE(LayerNormalization) {
  c.need_f32();
  const Shape& x = c.shape(0);
  const int64_t size = elements_from(x, wrap_axis(c.node().integer("axis", -1), x.n));
  for (size_t i = 1; i < 3; ++i)
    if (c.has(i) && c.shape(i).product() != size) throw OnnxUnsupported("its scale is not of the normalized size");
  return normalized_rows(c, x.product() / size, size, " * x1[i]", c.has(2) ? " + x2[i]" : "");
}
TENON_CPP_IN_PLACE(InstanceNormalization) {
  c.need_f32();
  const Shape& x = c.shape(0);
  const std::string channel = fmt::format("[r % {}]", x[1]);
  return normalized_rows(c, x[0] * x[1], elements_from(x, 2), " * x1" + channel, " + x2" + channel);
}
TENON_CPP_IN_PLACE(GroupNormalization) {
  c.need_f32();
  const Shape& x = c.shape(0);
  const int64_t groups = c.node().integer("num_groups", 1), size = elements_from(x, 2), channels = x[1] / groups;
  // Scale and shift were of a group before opset 21, of a channel since.
  const std::string at = c.shape(1).product() == groups ? fmt::format("[r % {}]", groups)
                                                        : fmt::format("[r % {} * {} + i / {}]", groups, channels, size);
  return normalized_rows(c, x[0] * groups, channels * size, " * x1" + at, " + x2" + at);
}
TENON_CPP_IN_PLACE(RMSNormalization) {
  c.need_f32();
  const Shape& x = c.shape(0);
  const int64_t size = elements_from(x, wrap_axis(c.node().integer("axis", -1), x.n));
  return cpp_sizes({{"rows", x.product() / size}, {"size", size}}) + fmt::format(R"(for (int r = 0; r < rows; ++r) {{
const float* const x = x0 + r * size;
float square = 0.0f;
for (int i = 0; i < size; ++i) square += x[i] * x[i];
const float factor = 1 / std::sqrt(square / size + {});
for (int i = 0; i < size; ++i) y[r * size + i] = x[i] * factor * x1[i];
}}
)",
                                                                                 epsilon_of(c));
}

std::string softmax_text(const CppCall& c, const char* each, const char* result) {
  c.need_f32();
  const Shape& x = c.shape(0);
  const int axis = wrap_axis(c.node().integer("axis", -1), x.n);
  if (c.opset() < 13 && axis != x.n - 1) throw OnnxUnsupported("it is over several axes");
  const int64_t inner = elements_from(x, axis + 1);
  return cpp_sizes({{"outer", x.product() / (inner * x[axis])}, {"length", x[axis]}, {"inner", inner}}) +
         fmt::format(R"(for (int o = 0; o < outer; ++o)
for (int j = 0; j < inner; ++j) {{
const float* const x = x0 + o * length * inner + j;
float* const to = y + o * length * inner + j;
float most = x[0], sum = 0.0f;
for (int i = 1; i < length; ++i) most = x[i * inner] > most ? x[i * inner] : most;
for (int i = 0; i < length; ++i) sum += {}std::exp(x[i * inner] - most);
for (int i = 0; i < length; ++i) to[i * inner] = {};
}}
)",
                     each, result);
}
TENON_CPP_IN_PLACE(Softmax) { return softmax_text(c, "to[i * inner] = ", "to[i * inner] / sum"); }
TENON_CPP_IN_PLACE(LogSoftmax) { return softmax_text(c, "", "x[i * inner] - most - std::log(sum)"); }

}  // namespace
}  // namespace tenon::formats
