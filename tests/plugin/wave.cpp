// A plug-in: an op with its gradient, a layer of it, a data set to learn with it, and an analysis of traces.
#include <cmath>

#include "core/error.h"
#include "core/plugin.h"
#include "core/random.h"
#include "engine/autograd/node.h"
#include "engine/data/dataset.h"
#include "engine/nn/functional.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/layer_registry.h"
#include "tracing/analyses/trace_analysis.h"

using namespace tenon;

namespace {

/// y = sin(frequency x), for every element. In an ONNX file it is the operator Wave of the domain org.example.
struct Wave {
  static constexpr OpInfo info{"wave", "org.example.Wave"};
  struct Attrs {
    double frequency;
    template <class F>
    void fields(F&& f) const {
      f("frequency", frequency);
    }
  };
  static constexpr Saves saves{.inputs = 1};
  static Meta infer(const Attrs&, const Meta& x) {
    if (!is_floating(x.dtype)) throw Error(std::string("waves are of numbers, not of ") + name(x.dtype));
    return x;
  }
  static void cpu(const Call& c) {
    const Tensor x = ops::dense(c.in[0]);
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      const T frequency = static_cast<T>(c.as<Attrs>().frequency);
      for (int64_t i = 0; i < x.numel(); ++i) c.out[0].data<T>()[i] = std::sin(frequency * x.data<T>()[i]);
    });
  }
  static void backward(Grad& d) {
    const double f = d.as<Attrs>().frequency;
    d.in(0) = mul(d.out(), mul(cos(mul(d.x(0), f)), f));
  }
  static void samples(Samples& s) { s.add("matrix", Attrs{2}, {s.values({3, 4})}); }
};
const Register<Wave> wave_op;

Tensor wave(const Tensor& x, double frequency) { return apply<Wave>({frequency}, x); }

/// Points of the plane, and whether they lie above a wave: row i is a pure function of (seed, stream, i).
class Waves : public data::Dataset {
 public:
  Waves(uint64_t seed, const char* stream, int64_t samples, double frequency)
      : random_{seed, stream_of(stream)}, samples_(samples), frequency_(frequency) {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::f32, {}, {2}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return 2; }
  std::string class_name(int64_t i) const override { return i ? "above" : "below"; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<uint64_t>(rows[i]);
      const double across = 2 * random_.uniform_double(2 * row) - 1, up = 2 * random_.uniform_double(2 * row + 1) - 1;
      static_cast<float*>(x)[2 * i] = static_cast<float>(across);
      static_cast<float*>(x)[2 * i + 1] = static_cast<float>(up);
      static_cast<int64_t*>(y)[i] = up > std::sin(frequency_ * across);
    }
  }

 private:
  Philox random_;
  int64_t samples_;
  double frequency_;
};

tracing::Finding longest(const tracing::TraceRequest& request) {
  const traces::Trace& t = request.first();
  if (t.size() == 0) return tracing::nothing("the trace has no events");
  traces::EventId best = 0;
  for (traces::EventId e = 1; e < t.size(); ++e)
    if (t.duration(e) > t.duration(best)) best = e;
  tracing::Finding f;
  f.sentence = "The longest event is " + std::string(t.event_name(best)) + ".";
  f.facts = {{"duration_ns", "DURATION", tracing::Unit::nanoseconds, t.duration(best)}};
  return f;
}

}  // namespace

TENON_PLUGIN("wave") {
  register_layer({{.type = "Wave",
                   .group = "Activation",
                   .help = "sin(frequency x)",
                   .attrs = {{"frequency", 1.0, 0.01, 100, "how fast it goes up and down"}}},
                  [](const LayerArgs& a) -> std::shared_ptr<nn::Module> {
                    const double frequency = a.number("frequency");
                    return nn::unary("Wave", [=](const Tensor& x) { return wave(x, frequency); });
                  }});
  data::register_dataset({"waves",
                          "generated points above and below a wave; needs no files",
                          {{"points", int64_t{2000}, 1, 1e9, "training samples that are generated", {}, "samples"},
                           {"frequency", 3.0, 0.01, 100, "of the wave between them"}},
                          [](const data::Options& o, const AttrValues& v) -> data::Split {
                            const double frequency = v.number("frequency");
                            return {std::make_shared<Waves>(o.seed, "waves.train", v.integer("points"), frequency),
                                    std::make_shared<Waves>(o.seed, "waves.test", 500, frequency)};
                          }});
  tracing::register_trace_analysis({"longest", "which event took longest", 1, 1, longest});
}
