#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// Numbers that are left where they were computed and read together: from a device by one copy, for which the program
/// waits once. On the CPU, and on the dry device, each is read when it is added. No op is recorded.
class Readings {
 public:
  explicit Readings(Device device);
  /// The value of a tensor of one element. Returns its number.
  size_t add(const Tensor& one);
  size_t add(double known);
  /// What `write` leaves in a tensor without axes of f64, which comes uninitialised. It is written there and then.
  size_t add(const std::function<void(Tensor& out)>& write);
  /// By its number. Waits for all that were added where it has not been read yet.
  double at(size_t number);

 private:
  Tensor place();

  Device device_;
  bool at_once_;
  std::vector<double> values_;
  size_t read_ = 0;  ///< of the values; the others lie in the room, by their numbers
  Tensor room_;
};

}  // namespace tenon
