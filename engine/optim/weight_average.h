#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/nn/module.h"

namespace tenon::optim {

/// Averages of tensors beside the tensors: exponential (Polyak and Juditsky; Tarvainen and Valpola, 2017) or equal
/// weights (Izmailov et al., Averaging weights leads to wider optima, 2018). The first update copies. PyTorch:
/// AveragedModel. Integers are copied, not averaged.
class WeightAverage {
 public:
  /// decay < 0: equal weights.
  WeightAverage(std::vector<nn::Named> tensors, double decay);
  void update();
  int64_t updates() const { return updates_; }
  void set_updates(int64_t n) { updates_ = n; }
  /// The averages, by the names of the tensors.
  const std::vector<nn::Named>& averages() const { return averages_; }
  /// Exchanges the values of the tensors and of their averages; twice changes nothing.
  void swap();

 private:
  std::vector<nn::Named> tensors_, averages_;
  double decay_;
  int64_t updates_ = 0;
};

}  // namespace tenon::optim
