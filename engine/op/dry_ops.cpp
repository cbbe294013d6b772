#include "engine/op/dry_ops.h"

#include <mutex>

#include "core/dry_device.h"
#include "engine/op/op.h"

namespace tenon {

void make_ops_dry() {
  static std::mutex mutex;  // whoever runs an op on the dry device has been here before
  std::lock_guard lock(mutex);
  const DeviceType dry = DryLedger().device().type;
  for (const OpDef& op : all_ops())
    if (!op.info.any_device && op.kernels[static_cast<size_t>(DeviceType::cpu)] &&
        !op.kernels[static_cast<size_t>(dry)])
      register_kernel(op.info.name, dry, [](const Call&) {});
}

}  // namespace tenon
