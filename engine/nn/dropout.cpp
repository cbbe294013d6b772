#include "engine/ops/dropout.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {

thread_local RandomState t_random;

const Tensor& step_key(Device device) {
  struct Made {
    uint64_t seed = 0, step = 0;
    Tensor key;
  };
  thread_local Made made;
  const Device on = device.type == DeviceType::meta ? Device{} : device;
  if (!made.key || made.seed != t_random.seed || made.step != t_random.step || !(made.key.device() == on))
    made = {t_random.seed, t_random.step, random_key(t_random.seed, t_random.step << 40, on)};
  return made.key;
}

namespace {

void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("the probability {} is not between 0 and 1", p));
}

}  // namespace

Dropout::Dropout(double p, Kind kind) : p_(p), kind_(kind) { check_probability(p); }

Tensor Dropout::forward(const Tensor& x) {
  if (kind_.axes > 0 && x.ndim() != kind_.axes + 2 && x.ndim() != kind_.axes + 1)
    throw Error(fmt::format("its input has size {}; it must be [batch, channels{}]", to_string(x.size()),
                            kind_.axes == 1   ? ", length"
                            : kind_.axes == 2 ? ", height, width"
                                              : ", depth, height, width"));
  if (!training() || p_ == 0) return x;
  if (!kind_.features && !kind_.alpha) return dropout(x, p_, draws(static_cast<uint64_t>(x.numel()), path(), x));
  // One random number a channel: a mask that broadcasts over the rest.
  Shape size = x.size();
  if (kind_.features)
    for (int i = kind_.axes > 0 ? x.ndim() - kind_.axes : 2; i < size.n; ++i) size[i] = 1;
  Tensor one = ones(size, x.dtype(), x.device());
  Tensor mask = dropout(one, p_, draws(static_cast<uint64_t>(size.product()), path(), x));
  if (!kind_.alpha) return mul(x, mask);
  // Klambauer et al. (2017): what is dropped becomes SELU's lowest value, then mean and variance are brought back to 0
  // and 1.
  constexpr double kLowest = 1.7580993408473766;  // SELU's scale times its alpha
  if (p_ == 1) return mul(x, 0);
  double a = 1 / std::sqrt((1 - p_) * (1 + p_ * kLowest * kLowest)), b = a * kLowest * p_;
  Tensor keep = mul(mask, 1 - p_);  // 0 or 1
  return add(mul(x, mul(keep, a)), add(mul(keep, kLowest * a), b - kLowest * a));
}

std::string Dropout::describe() const {
  return fmt::format("{}{}Dropout{}({})", kind_.features && kind_.alpha ? "Feature" : "", kind_.alpha ? "Alpha" : "",
                     kind_.axes ? fmt::format("{}d", kind_.axes) : "", p_);
}

namespace {

using Made = std::shared_ptr<Module>;
template <int Axes, bool Features, bool Alpha>
bool dropout_layer(const char* type, const char* help, std::vector<LayerExample> examples = {}) {
  return register_layer(
      {{.type = type,
        .group = "Regularisation",
        .help = help,
        .attrs = {{"p", 0.5, 0, 1, Features ? "share of the channels set to 0" : "share of the values set to 0"}},
        .examples = std::move(examples)},
       [](const LayerArgs& a) -> Made {
         return std::make_shared<Dropout>(a.number("p"), Dropout::Kind{Axes, Features, Alpha});
       }});
}
const bool registered_dropout[] = {
    dropout_layer<0, false, false>("Dropout",
                                   "Sets a random part of the values to 0 in training and scales the rest up."),
    dropout_layer<1, true, false>("Dropout1d", "Sets whole random channels of a sequence to 0 in training.",
                                  {{{2, 3, 8}}}),
    dropout_layer<2, true, false>("Dropout2d", "Sets whole random channels of an image to 0 in training."),
    dropout_layer<3, true, false>("Dropout3d", "Sets whole random channels of a volume to 0 in training.",
                                  {{{2, 3, 4, 4, 4}}}),
    dropout_layer<0, false, true>("AlphaDropout", "Dropout that keeps mean 0 and variance 1, for SELU."),
    dropout_layer<0, true, true>("FeatureAlphaDropout", "AlphaDropout of whole channels."),
};

}  // namespace
}  // namespace tenon::nn
