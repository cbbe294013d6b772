#include "engine/ops/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

thread_local Generator t_generator;
Generator& generator_of(Generator* g) { return g ? *g : t_generator; }

enum class Law : int64_t { uniform, normal, exponential, cauchy, log_normal, geometric, integer };
const std::vector<std::string>& attr_choices(Law) {
  static const std::vector<std::string> names = {"uniform",    "normal",    "exponential", "cauchy",
                                                 "log_normal", "geometric", "integer"};
  return names;
}

/// Draw i of the stream, shaped by the law with its two numbers. Draws that take two words stand on even places.
double draw(const Philox& random, uint64_t base, uint64_t i, Law law, double a, double b) {
  auto open_unit = [&] { return 1.0 - random.uniform_double(base * 2 + i); };  // in (0, 1]
  switch (law) {
    case Law::uniform:
      return a + (b - a) * random.uniform_double(base * 2 + i);
    case Law::normal:
      return a + b * random.normal(base * 2 + i);
    case Law::exponential:
      return -std::log(open_unit()) / a;
    case Law::cauchy:
      return a + b * std::tan(M_PI * (random.uniform_double(base * 2 + i) - 0.5));
    case Law::log_normal:
      return std::exp(a + b * random.normal(base * 2 + i));
    case Law::geometric:
      return std::max(1.0, std::ceil(std::log(open_unit()) / std::log1p(-a)));
    case Law::integer:
      return a + static_cast<double>(random.below(base * 2 + i, static_cast<uint64_t>(b - a)));
  }
  return 0;
}

/// On the CPU. A tensor of numbers drawn one after the other. Counter c of Philox holds four words, so two of these
/// 64-bit draws.
struct Random {
  static constexpr OpInfo info{"random", "", OpKind::random, 1, Amp::leave, true};
  struct Attrs {
    Shape size;
    DType dtype;
    Law law;
    double a, b;
    uint64_t seed, stream, offset;
    template <class F>
    void fields(F&& f) const {
      f("law", law);
      f("a", a);
      f("b", b);
      f("seed", seed);
      f("stream", stream);
      f("offset", offset);
      f("size", size, false);
      f("dtype", dtype, false);
    }
  };
  static Meta infer(const Attrs& a) {
    Meta m;
    m.dtype = a.dtype;
    m.shape = a.size;
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    ops::target(c, 0, DType::f64, room);
    return room.used();
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    Philox random{a.seed, a.stream};
    kernels::Room room(c.workspace);
    const Tensor out = ops::target(c, 0, DType::f64, room);
    double* to = out.data<double>();
    parallel_for(out.numel(), 4096, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) to[i] = draw(random, a.offset, static_cast<uint64_t>(i), a.law, a.a, a.b);
    });
    // Rounding to a narrower type must not reach the open end of an interval.
    if (!out.same(c.out[0])) {
      if (a.law == Law::uniform && is_floating(a.dtype) && a.dtype != DType::f64) {
        int bits = a.dtype == DType::f32 ? 24 : a.dtype == DType::f16 ? 11 : 8;
        double step = std::ldexp(1.0, -bits);
        for (int64_t i = 0; i < out.numel(); ++i) {
          double u = (to[i] - a.a) / (a.b - a.a);
          to[i] = a.a + (a.b - a.a) * std::min(u, 1 - step);
        }
      }
      copy_(c.out[0], out);
    }
  }
  static void samples(Samples& s) {
    s.add("uniform", Attrs{{3, 4}, DType::f64, Law::uniform, -1, 1, 5, 6, 7}, {});
    s.add("normal", Attrs{{5}, DType::f32, Law::normal, 0, 1, 5, 6, 7}, {});
    s.add("integers", Attrs{{5}, DType::i64, Law::integer, -3, 9, 5, 6, 7}, {});
  }
};
const Register<Random> random_op;

Tensor drawn(const Shape& size, DType dtype, Law law, double a, double b, Generator* g, Device device = {}) {
  Generator& from = generator_of(g);
  // Two words a draw.
  uint64_t at = from.take(2 * static_cast<uint64_t>(std::max<int64_t>(0, size.product())));
  const Random::Attrs attrs{size, dtype, law, a, b, from.seed, from.stream, at};
  Tensor out;
  dispatch(Register<Random>::def(), &attrs, nullptr, 0, &out);
  return to(out, device);
}

Tensor& filled(Tensor& t, Law law, double a, double b, Generator* g) {
  Tensor values = drawn(t.size(), t.dtype(), law, a, b, g);
  copy_(t, values);
  return t;
}

/// The values as the host can read them.
const double* as_double(const Tensor& t, Tensor& keep) {
  keep = empty(t.size(), DType::f64);
  copy_(keep, t);
  return keep.data<double>();
}
/// f64 values of the host as a tensor like `like` in dtype and device.
Tensor given_back(const Tensor& values, const Tensor& like) {
  Tensor t = empty(values.size(), like.dtype(), like.device());
  copy_(t, values);
  return t;
}

}  // namespace

Generator& default_generator() { return t_generator; }
void manual_seed(uint64_t seed) { t_generator = {seed, 0, 0}; }

Tensor rand(const Shape& size, DType dtype, Generator* g, Device device) {
  if (!is_floating(dtype))
    throw Error(fmt::format("rand: uniform numbers of [0, 1) in {}", name(dtype)), "use randint()");
  return drawn(size, dtype, Law::uniform, 0, 1, g, device);
}
Tensor randn(const Shape& size, DType dtype, Generator* g, Device device) {
  if (!is_floating(dtype)) throw Error(fmt::format("randn: normal numbers in {}", name(dtype)));
  return drawn(size, dtype, Law::normal, 0, 1, g, device);
}
Tensor randint(int64_t low, int64_t high, const Shape& size, DType dtype, Generator* g, Device device) {
  if (low >= high) throw Error(fmt::format("randint: no number is at least {} and below {}", low, high));
  if (high - low > (int64_t{1} << 53) || std::abs(low) > (int64_t{1} << 53))
    throw Error("randint: the range is wider than 2^53");
  return drawn(size, dtype, Law::integer, static_cast<double>(low), static_cast<double>(high), g, device);
}

Tensor randperm(int64_t n, Generator* g, Device device) {
  if (n < 0) throw Error(fmt::format("randperm: {} numbers", n));
  Generator& from = generator_of(g);
  Philox random{from.seed, from.stream};
  uint64_t at = from.take(2 * static_cast<uint64_t>(n)) * 2;
  Tensor t = empty({n}, DType::i64);
  int64_t* p = t.data<int64_t>();
  std::iota(p, p + n, 0);
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(p[i], p[random.below(at + static_cast<uint64_t>(i), static_cast<uint64_t>(i) + 1)]);
  return to_device(t, device);
}

Tensor bernoulli(const Tensor& p, Generator* g) {
  Tensor keep, u = drawn(p.size(), DType::f64, Law::uniform, 0, 1, g);
  const double* at = as_double(p, keep);
  double* x = u.data<double>();
  for (int64_t i = 0; i < u.numel(); ++i) {
    if (!(at[i] >= 0 && at[i] <= 1))
      throw Error(fmt::format("bernoulli: element {} is {}, which is no probability", i, at[i]));
    x[i] = x[i] < at[i];
  }
  return given_back(u, p);
}

Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement, Generator* g) {
  if (weights.ndim() < 1 || weights.ndim() > 2)
    throw Error(fmt::format("multinomial: weights of size {}; one or two axes are needed", to_string(weights.size())));
  Tensor keep;
  const double* w = as_double(weights, keep);
  int64_t n = weights.size(-1), rows = n ? weights.numel() / n : 0;
  if (samples < 1) throw Error(fmt::format("multinomial: {} samples", samples));
  Shape size = weights.size();
  size[size.n - 1] = samples;
  Tensor t = empty(size, DType::i64), u = drawn({rows, replacement ? samples : n}, DType::f64, Law::uniform, 0, 1, g);
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = w + r * n;
    double total = 0;
    int64_t positive = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (!(row[i] >= 0) || std::isinf(row[i]))
        throw Error(fmt::format("multinomial: weight {} of row {} is {}", i, r, row[i]));
      total += row[i];
      positive += row[i] > 0;
    }
    if (total <= 0 || (!replacement && positive < samples))
      throw Error(fmt::format("multinomial: row {} has {} weights above 0 for {} samples", r, positive, samples),
                  "draw with replacement, or fewer");
    const double* luck = u.data<double>() + r * u.size(1);
    int64_t* to = t.data<int64_t>() + r * samples;
    if (replacement) {
      std::vector<double> upto(static_cast<size_t>(n));
      std::partial_sum(row, row + n, upto.begin());
      for (int64_t k = 0; k < samples; ++k) {
        int64_t i = std::upper_bound(upto.begin(), upto.end(), luck[k] * upto.back()) - upto.begin();
        to[k] = std::min(i, n - 1);
      }
    } else {
      // The largest of u^(1/w): in logarithms, the smallest of -log(u) / w.
      std::vector<std::pair<double, int64_t>> keys;
      for (int64_t i = 0; i < n; ++i)
        if (row[i] > 0) keys.emplace_back(-std::log(1 - luck[i]) / row[i], i);
      std::partial_sort(keys.begin(), keys.begin() + samples, keys.end());
      for (int64_t k = 0; k < samples; ++k) to[k] = keys[static_cast<size_t>(k)].second;
    }
  }
  return to_device(t, weights.device());
}

Tensor normal(const Tensor& mean, const Tensor& stddev, Generator* g) {
  Shape size = broadcast_shape(mean.size(), stddev.size());
  Tensor z = drawn(size, DType::f64, Law::normal, 0, 1, g), keep_m, keep_s;
  const double *m = as_double(contiguous(expand(mean, size)), keep_m),
               *s = as_double(contiguous(expand(stddev, size)), keep_s);
  for (int64_t i = 0; i < z.numel(); ++i) {
    if (!(s[i] >= 0)) throw Error(fmt::format("normal: the deviation of element {} is {}", i, s[i]));
    z.data<double>()[i] = m[i] + s[i] * z.data<double>()[i];
  }
  return given_back(z, mean);
}

Tensor poisson(const Tensor& rate, Generator* g) {
  Tensor keep, counts = empty(rate.size(), DType::f64);
  const double* at = as_double(rate, keep);
  Generator& from = generator_of(g);
  // Each element has a stream of its own, as long as it needs (Knuth's product of uniforms, in steps of rate 500 so
  // that e^-rate holds).
  const uint64_t base = from.take(4);
  for (int64_t i = 0; i < counts.numel(); ++i) {
    if (!(at[i] >= 0) || std::isinf(at[i])) throw Error(fmt::format("poisson: the rate of element {} is {}", i, at[i]));
    Philox random{from.seed, from.stream ^ (0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(i) + 1))};
    uint64_t k = base * 1000003;
    double total = 0;
    for (double rest = at[i]; rest > 0; rest -= 500) {
      double limit = std::exp(-std::min(rest, 500.0)), product = 1 - random.uniform_double(k++);
      for (; product > limit; product *= 1 - random.uniform_double(k++)) ++total;
    }
    counts.data<double>()[i] = total;
  }
  return given_back(counts, rate);
}

Tensor& uniform_(Tensor& t, double low, double high, Generator* g) { return filled(t, Law::uniform, low, high, g); }
Tensor& normal_(Tensor& t, double mean, double stddev, Generator* g) { return filled(t, Law::normal, mean, stddev, g); }
Tensor& exponential_(Tensor& t, double rate, Generator* g) { return filled(t, Law::exponential, rate, 0, g); }
Tensor& cauchy_(Tensor& t, double median, double scale, Generator* g) {
  return filled(t, Law::cauchy, median, scale, g);
}
Tensor& log_normal_(Tensor& t, double mean, double stddev, Generator* g) {
  return filled(t, Law::log_normal, mean, stddev, g);
}
Tensor& geometric_(Tensor& t, double p, Generator* g) {
  if (!(p > 0 && p < 1)) throw Error(fmt::format("geometric_: the probability {} is not between 0 and 1", p));
  return filled(t, Law::geometric, p, 0, g);
}

}  // namespace tenon
