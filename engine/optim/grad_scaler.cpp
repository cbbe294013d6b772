#include "engine/optim/grad_scaler.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::optim {

void GradScaler::update(bool overflowed) {
  if (overflowed) {
    scale_ *= options_.backoff;
    good_ = 0;
  } else if (++good_ == options_.growth_interval) {
    // f32 has an end too.
    if (scale_ * options_.growth <= 0x1p+120) scale_ *= options_.growth;
    good_ = 0;
  }
}

nlohmann::json GradScaler::state() const { return {{"scale", scale_}, {"good", good_}}; }

void GradScaler::load(const nlohmann::json& j) {
  if (!j.is_object() || !j.contains("scale") || !j["scale"].is_number() || !j.contains("good") ||
      !j["good"].is_number_integer())
    throw Error("the checkpoint has no state of a gradient scaler", "it belongs to a run of another amp");
  double scale = j["scale"].get<double>();
  if (!(scale > 0) || !std::isfinite(scale)) throw Error("the checkpoint's gradient scale is not above 0");
  scale_ = scale;
  good_ = j["good"].get<int64_t>();
}

}  // namespace tenon::optim
