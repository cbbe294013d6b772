#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "engine/op/op.h"
#include "engine/ops/dense.h"
#include "engine/optim/optimizer.h"

// Note [An optimizer that works element by element is a rule]
// A rule holds the constants of a step and the loop over a piece of one parameter; the rest (the op, its place in
// profiles and recordings, the cut over threads, the state's tensors) is made from it here. A rule has
//   static constexpr const char* op;  static constexpr double flops;        // its name in profiles, operations an
//   element void begin(double lr, double weight_decay, double t);                   // the constants of step t, from 1
//   template <class T> void run(int64_t n, T* w, const T* g, T* const* s) const;   // one pass; s[k] is null for a
//   state left out template <class F> void fields(F&& f) const;                            // what a recording shows
// run() copies its constants to locals first: behind a pointer they would be read again after every store.
namespace tenon::optim {

/// In place on input 0, the parameter; input 1 is the gradient, the others are states, which it also writes.
template <class Rule>
struct ElementwiseOp {
  static constexpr OpInfo info{Rule::op, "", OpKind::other};
  static constexpr int kStates = 4;
  using Attrs = Rule;
  static void infer(const Attrs&, const Tensor* in, int, Meta* out) { out[0] = in[0].meta(); }
  static void cpu(const Call& c) {
    constexpr int64_t grain = 32 * 1024;
    Tensor g = ops::dense(c.in[1]);
    const int states = c.inputs - 2;
    ops::float_or_double(g.dtype(), [&](auto one) {
      using T = decltype(one);
      std::array<T*, kStates> s{};
      for (int k = 0; k < states; ++k)
        if (c.in[2 + k]) s[static_cast<size_t>(k)] = c.in[2 + k].data<T>();
      T* w = c.out[0].data<T>();
      const T* from = g.data<T>();
      const Rule& rule = c.as<Rule>();
      parallel_for(g.numel(), grain, [&](int64_t i, int64_t e) {
        std::array<T*, kStates> at = s;
        for (T*& p : at)
          if (p) p += i;
        rule.template run<T>(e - i, w + i, from + i, at.data());
      });
    });
  }
  static constexpr uint32_t writes = ((1u << kStates) - 1u) << 2;
  static Cost cost(const Attrs&, const Call& c) { return {Rule::flops * static_cast<double>(c.out[0].numel())}; }
};

template <class Rule>
class Elementwise : public Optimizer {
 public:
  /// A state with an empty name is left out.
  Elementwise(std::vector<nn::Named> parameters, const AttrValues& values, Rule rule,
              const std::vector<std::string>& states, double start = 0)
      : Optimizer(std::move(parameters), values), rule_(rule) {
    for (const std::string& s : states) slots_.push_back(s.empty() ? -1 : add_state(s, start));
  }

 protected:
  void update(size_t i, const Tensor& p, const Tensor& grad, double lr) override {
    Rule attrs = rule_;
    attrs.begin(lr, decay(i), static_cast<double>(age(i)));
    Tensor in[2 + ElementwiseOp<Rule>::kStates] = {p, grad};
    for (size_t k = 0; k < slots_.size(); ++k)
      if (slots_[k] >= 0) in[2 + k] = slot(slots_[k], i);
    dispatch_in_place(Register<ElementwiseOp<Rule>>::def(), &attrs, in, 2 + static_cast<int>(slots_.size()));
  }

 private:
  Rule rule_;
  std::vector<int> slots_;
};

}  // namespace tenon::optim
