#include "engine/ops/readings.h"

#include <algorithm>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "engine/op/value_watch.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon {

Readings::Readings(Device device) : device_(device), at_once_(device.type == DeviceType::cpu || is_dry(device)) {}

Tensor Readings::place() {
  const auto n = static_cast<int64_t>(values_.size());
  if (!room_ || n == room_.numel()) {
    const Tensor wider = empty({std::max<int64_t>(64, 2 * n)}, DType::f64, device_);
    if (room_) copy_bytes(wider.raw(), device_, room_.raw(), device_, room_.nbytes());
    room_ = wider;
  }
  values_.push_back(0);
  Layout one = Layout::contiguous({});
  one.offset = n;
  return view_of(room_, one);
}

size_t Readings::add(const Tensor& one) {
  if (at_once_ || !(one.device() == device_)) return add(item(one));
  if (one.numel() != 1) throw Error("a reading is one number; this is a tensor of size " + to_string(one.size()));
  ValueWatch::tell(one);
  Layout alone = Layout::contiguous({});
  alone.offset = one.offset();
  copy_(place(), view_of(one, alone));
  return values_.size() - 1;
}

size_t Readings::add(double known) {
  if (at_once_) {
    values_.push_back(known);
    read_ = values_.size();
    return read_ - 1;
  }
  const Tensor out = place();
  fill(out, known);
  return values_.size() - 1;
}

size_t Readings::add(const std::function<void(Tensor& out)>& write) {
  if (at_once_) {
    Tensor out = empty({}, DType::f64, device_);
    write(out);
    return add(item(out));
  }
  Tensor out = place();
  write(out);
  return values_.size() - 1;
}

double Readings::at(size_t number) {
  if (number >= read_ && read_ < values_.size()) {
    const auto* from = static_cast<const double*>(room_.raw()) + read_;
    copy_bytes(values_.data() + read_, {}, from, device_, (values_.size() - read_) * sizeof(double));
    read_ = values_.size();
  }
  return values_.at(number);
}

}  // namespace tenon
