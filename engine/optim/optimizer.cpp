#include "engine/optim/optimizer.h"

#include <cmath>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/kernels/update.h"
#include "engine/nn/init.h"
#include "engine/op/op.h"
#include "engine/ops/dense.h"

namespace tenon::optim {
namespace {

std::string module_of(const std::string& parameter) {
  size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

}  // namespace

Optimizer::Optimizer(std::vector<nn::Named> parameters) : parameters_(std::move(parameters)), norms_(parameters_.size()) {
  for (const nn::Named& p : parameters_) {
    if (!p.tensor.is_contiguous() || (p.tensor.dtype() != DType::f32 && p.tensor.dtype() != DType::f64))
      throw Error("parameter " + p.name + " cannot be trained: optimizers work on contiguous f32 and f64");
    modules_.push_back(intern_module(module_of(p.name)));
  }
}

void Optimizer::zero_grad() {
  for (const nn::Named& p : parameters_) tenon::zero_grad(p.tensor);
}

double Optimizer::gradient_norm() {
  double total = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor g = ops::dense(grad_of(parameters_[i].tensor));
    double sum = 0;
    if (g)
      ops::float_or_double(g.dtype(), [&](auto one) { sum = kernels::sum_of_squares<decltype(one)>(g.numel(), g.data<decltype(one)>()); });
    norms_[i] = std::sqrt(sum);
    total += sum;
  }
  return std::sqrt(total);
}

void Optimizer::step(double lr) {
  NoGrad no_grad;
  ++steps_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor g = grad_of(parameters_[i].tensor);
    if (!g) continue;
    ModuleScope module(modules_[i]);
    update(i, parameters_[i].tensor, g, lr);
  }
}

int Optimizer::add_state(const std::string& what) {
  CategoryScope category(Category::optimizer);
  Slot slot{what, {}};
  for (const nn::Named& p : parameters_) {
    slot.tensors.push_back(empty(p.tensor.size(), p.tensor.dtype()));
    nn::fill(slot.tensors.back(), 0);
  }
  slots_.push_back(std::move(slot));
  return static_cast<int>(slots_.size()) - 1;
}

std::vector<nn::Named> Optimizer::state() const {
  std::vector<nn::Named> all;
  for (size_t i = 0; i < parameters_.size(); ++i)
    for (const Slot& s : slots_) all.push_back({parameters_[i].name + "/" + s.what, s.tensors[i]});
  return all;
}

namespace {

void bump(const Tensor& t) {
  if (t) ++t.storage()->version;
}

/// In place on input 0, the parameter; inputs gradient and momentum buffer (absent without momentum), which it also writes.
struct SgdOp {
  static constexpr OpInfo info{"sgd_step", "", Kind::other};
  struct Attrs {
    kernels::SgdStep s;
    template <class F>
    void fields(F&& f) const {
      f("lr", s.lr);
      f("momentum", s.momentum);
      f("weight_decay", s.weight_decay);
      f("nesterov", s.nesterov);
    }
  };
  static Meta infer(const Attrs&, const Meta& p, const Meta&, const Meta&) { return p; }
  static void cpu(const Call& c) {
    Tensor g = ops::dense(c.in[1]);
    ops::float_or_double(g.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::sgd<T>(c.as<Attrs>().s, g.numel(), c.out[0].data<T>(), g.data<T>(), c.in[2] ? c.in[2].data<T>() : nullptr);
    });
    bump(c.in[2]);
  }
  static Cost cost(const Attrs&, const Call& c) { return {6.0 * static_cast<double>(c.out[0].numel())}; }
};

/// In place on input 0, the parameter; inputs gradient, mean and mean square, of which it writes the last two.
struct AdamOp {
  static constexpr OpInfo info{"adam_step", "", Kind::other};
  struct Attrs {
    kernels::AdamStep s;
    template <class F>
    void fields(F&& f) const {
      f("lr", s.lr);
      f("beta1", s.beta1);
      f("beta2", s.beta2);
      f("eps", s.eps);
      f("weight_decay", s.weight_decay);
      f("decoupled", s.decoupled);
    }
  };
  static Meta infer(const Attrs&, const Meta& p, const Meta&, const Meta&, const Meta&) { return p; }
  static void cpu(const Call& c) {
    Tensor g = ops::dense(c.in[1]);
    ops::float_or_double(g.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::adam<T>(c.as<Attrs>().s, g.numel(), c.out[0].data<T>(), g.data<T>(), c.in[2].data<T>(), c.in[3].data<T>());
    });
    bump(c.in[2]);
    bump(c.in[3]);
  }
  static Cost cost(const Attrs&, const Call& c) { return {14.0 * static_cast<double>(c.out[0].numel())}; }
};

const Register<SgdOp> sgd_op;
const Register<AdamOp> adam_op;

class Sgd : public Optimizer {
 public:
  Sgd(std::vector<nn::Named> parameters, const SgdOptions& o) : Optimizer(std::move(parameters)), options_(o) {
    if (o.nesterov && o.momentum == 0)
      throw Error::usage("optimizer.nesterov looks ahead along the momentum, which is 0", "set optimizer.momentum, e.g. to 0.9");
    if (o.momentum != 0) momentum_ = add_state("momentum");
  }

 protected:
  void update(size_t i, const Tensor& p, const Tensor& grad, double lr) override {
    SgdOp::Attrs attrs{{lr, options_.momentum, options_.weight_decay, options_.nesterov}};
    Tensor in[] = {p, grad, momentum_ < 0 ? Tensor() : slot(momentum_, i)};
    dispatch_in_place(Register<SgdOp>::def(), &attrs, in, 3);
  }

 private:
  SgdOptions options_;
  int momentum_ = -1;
};

class Adam : public Optimizer {
 public:
  Adam(std::vector<nn::Named> parameters, const AdamOptions& o)
      : Optimizer(std::move(parameters)), options_(o), mean_(add_state("exp_avg")), square_(add_state("exp_avg_sq")) {}

 protected:
  void update(size_t i, const Tensor& p, const Tensor& grad, double lr) override {
    double t = static_cast<double>(steps_);
    AdamOp::Attrs attrs{{lr, options_.beta1, options_.beta2, options_.eps, options_.weight_decay, options_.decoupled,
                         1 - std::pow(options_.beta1, t), 1 - std::pow(options_.beta2, t)}};
    Tensor in[] = {p, grad, slot(mean_, i), slot(square_, i)};
    dispatch_in_place(Register<AdamOp>::def(), &attrs, in, 4);
  }

 private:
  AdamOptions options_;
  int mean_, square_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(std::vector<nn::Named> parameters, const SgdOptions& o) {
  return std::make_unique<Sgd>(std::move(parameters), o);
}
std::unique_ptr<Optimizer> adam(std::vector<nn::Named> parameters, const AdamOptions& o) {
  return std::make_unique<Adam>(std::move(parameters), o);
}

}  // namespace tenon::optim
