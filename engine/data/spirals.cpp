#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "engine/data/dataset.h"

namespace tenon::data {
namespace {

constexpr double kTurns = 1.5;
constexpr int64_t kDefaultSamples = 2000, kTestSamples = 1000;

/// Points on two interleaved spirals in the plane, one class each: r runs from 0.1 to 1, the angle with it, plus normal
/// noise. Row i is a pure function of (seed, stream, i), made when it is fetched.
class Spirals : public Dataset {
 public:
  Spirals(uint64_t seed, const char* stream, int64_t samples, double noise)
      : uniform_{seed, stream_of(stream)}, normal_{seed, stream_of(stream) + 1}, samples_(samples), noise_(noise) {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::f32, {}, {2}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return 2; }
  std::string class_name(int64_t i) const override { return i == 0 ? "first arm" : "second arm"; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      const auto k = static_cast<uint64_t>(rows[i]);
      const double r = 0.1 + 0.9 * std::sqrt(uniform_.uniform_double(k)),
                   angle = kTurns * 2 * M_PI * r + M_PI * static_cast<double>(rows[i] % 2);
      static_cast<float*>(x)[2 * i] = static_cast<float>(r * std::cos(angle) + noise_ * normal_.normal(2 * k));
      static_cast<float*>(x)[2 * i + 1] = static_cast<float>(r * std::sin(angle) + noise_ * normal_.normal(2 * k + 1));
      static_cast<int64_t*>(y)[i] = rows[i] % 2;
    }
  }

 private:
  Philox uniform_, normal_;
  int64_t samples_;
  double noise_;
};

Split open_spirals(const Options& o, const AttrValues& v) {
  int64_t samples = v.integer("samples") > 0 ? v.integer("samples") : kDefaultSamples;
  return {std::make_shared<Spirals>(o.seed, "spirals.train", samples, v.number("noise")),
          std::make_shared<Spirals>(o.seed, "spirals.test", kTestSamples, v.number("noise"))};
}

const bool registered_spirals =
    register_dataset({"spirals",
                      "generated points on two interleaved spirals in the plane; needs no files",
                      {{"samples", int64_t{0}, 0, 1e9, "training samples that are generated; 0: 2,000", {}, "samples"},
                       {"noise", 0.03, 0, 1e6, "standard deviation of the noise"}},
                      open_spirals});

}  // namespace
}  // namespace tenon::data
