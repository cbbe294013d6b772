#include "engine/nn/checkpoint.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/node.h"
#include "engine/nn/random_state.h"
#include "engine/op/autocast.h"

namespace tenon::nn {
namespace {

thread_local bool t_recomputing = false;

/// One checkpointed stretch of the forward: what it needs to run again, and what the second run saved.
struct Stretch {
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f;
  std::vector<Tensor> inputs;
  std::vector<uint32_t> versions;
  RandomState random;
  size_t count = 0;  ///< tensors that the first run would have saved
  bool done = false;
  std::vector<Tensor> saved;
  bool autocast = false;
  DType low = DType::bf16;

  void run_again();
};

/// Stands for the i-th tensor saved in a stretch. Holds it alive: the graph of the stretch is made of these.
class StretchPlace : public PackedTensor {
 public:
  StretchPlace(std::shared_ptr<Stretch> s, size_t i) : stretch_(std::move(s)), index_(i) {}
  Tensor unpack() override {
    if (!stretch_->done) stretch_->run_again();
    return stretch_->saved[index_];
  }
  ~StretchPlace() override {
    if (stretch_->done && index_ < stretch_->saved.size()) stretch_->saved[index_].reset();
  }

 private:
  std::shared_ptr<Stretch> stretch_;
  size_t index_;
};

void Stretch::run_again() {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && inputs[i].version() != versions[i])
      throw Error(
          fmt::format("input {} of a checkpointed stretch was changed in place before backward ran it again", i),
          "clone it before writing");
  RandomState now = t_random;
  t_random = random;
  struct Restore {
    RandomState to;
    ~Restore() { t_random = to; }
  } restore{now};
  std::vector<Tensor> fresh;
  for (const Tensor& t : inputs) {
    Tensor d = t ? detach(t) : t;
    if (t && t.requires_grad()) set_requires_grad(d);
    fresh.push_back(std::move(d));
  }
  {
    struct Again {
      bool outer = std::exchange(t_recomputing, true);
      ~Again() { t_recomputing = outer; }
    } again;
    EnableGrad record;
    AutocastScope cast(low, autocast);
    SavedTensorHooks collect([this](const Tensor& t) -> std::unique_ptr<PackedTensor> {
      saved.push_back(t);
      return nullptr;
    });
    f(fresh);
  }
  if (saved.size() != count)
    throw Error(fmt::format("a checkpointed stretch saved {} tensors in its first run and {} in its second", count,
                            saved.size()),
                "it must do the same both times");
  done = true;
}

}  // namespace

bool recomputing() { return t_recomputing; }

std::vector<Tensor> checkpoint(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f,
                               std::vector<Tensor> inputs) {
  if (!grad_enabled()) return f(inputs);
  auto stretch = std::make_shared<Stretch>();
  stretch->f = f;
  stretch->inputs = inputs;
  stretch->random = t_random;
  stretch->autocast = autocast_enabled(&stretch->low);
  for (const Tensor& t : inputs) stretch->versions.push_back(t ? t.version() : 0);
  SavedTensorHooks places([stretch](const Tensor&) -> std::unique_ptr<PackedTensor> {
    return std::make_unique<StretchPlace>(stretch, stretch->count++);
  });
  return f(inputs);
}

}  // namespace tenon::nn
