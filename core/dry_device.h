#pragma once
#include <cstdint>
#include <vector>

#include "core/state.h"
#include "core/tensor.h"

// Note [The dry device]
// A type of device whose memory is counted and never there: a block is an address that leads nowhere, kernels do
// nothing (make_ops_dry() of engine/op/dry_ops.h), and every value that crosses to the host is 0. A training step on it
// takes and gives back the blocks that it takes on the CPU, in the same order and for the same reasons, so what the
// step needs is known before it is ever computed, from the code that will compute it. What depends on values does not
// come out right: sizes that follow from data (nonzero, unique), and searches along a line.
namespace tenon {

/// Whether tensors of the device have memory that is only counted.
bool is_dry(Device device);

/// A block that was taken, or given back.
struct DryEvent {
  uint32_t block = 0;  ///< its number, from 0 in the order of taking
  bool taken = false;
  uint16_t op = 0;    ///< interned_name() of the op that was dispatched last
  Origin origin;      ///< who was acting
  int64_t bytes = 0;  ///< that the CPU pool would count
};

/// One dry device and the history of its memory. Ledgers know nothing of each other; each may be used by one thread at
/// a time. Tensors may outlive it: they count no longer.
class DryLedger {
 public:
  /// Throws Error where 256 are in use.
  DryLedger();
  ~DryLedger();
  DryLedger(const DryLedger&) = delete;
  Device device() const;
  /// All since the ledger was made.
  const std::vector<DryEvent>& events() const;
  int64_t live_bytes() const;
  /// The number of the block that a tensor lies in; -1 where it is not on this device.
  int64_t block_of(const Tensor& t) const;

 private:
  uint8_t index_;
};

}  // namespace tenon
