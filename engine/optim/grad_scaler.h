#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace tenon::optim {

/// Keeps the gradients of a half-precision backward in range: the loss is multiplied by scale(), the gradients divided
/// by it before the update. An update whose gradients overflowed is skipped and lowers the scale; after many good ones
/// it rises. PyTorch: GradScaler.
class GradScaler {
 public:
  struct Options {
    double start = 65536, growth = 2, backoff = 0.5;
    int64_t growth_interval = 2000;
  };
  explicit GradScaler(const Options& options) : options_(options), scale_(options.start) {}
  GradScaler() : GradScaler(Options{}) {}
  double scale() const { return scale_; }
  /// After a step: whether its gradients had overflowed.
  void update(bool overflowed);
  /// Even a scale that makes gradients smaller than they are overflows: they are not finite whatever the type.
  bool hopeless() const { return scale_ < 1; }
  nlohmann::json state() const;
  /// Throws Error where it is no scaler's state.
  void load(const nlohmann::json& state);

 private:
  Options options_;
  double scale_;
  int64_t good_ = 0;  ///< steps since the last change
};

}  // namespace tenon::optim
