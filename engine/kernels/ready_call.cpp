#include "engine/kernels/ready_call.h"

#include "engine/kernels/scratch.h"

namespace tenon::kernels {

ReadyCall::ReadyCall(dnnl::primitive primitive, dnnl::memory::desc src, dnnl::memory::desc dst,
                     dnnl::memory::desc scratch, Fixed fixed)
    : primitive_(std::move(primitive)),
      src_(std::move(src)),
      dst_(std::move(dst)),
      scratch_(std::move(scratch)),
      fixed_(std::move(fixed)) {}

std::unique_ptr<ReadyCall::Operands> ReadyCall::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto last = std::move(idle_.back());
      idle_.pop_back();
      return last;
    }
  }
  const auto nowhere = [](const dnnl::memory::desc& d) { return dnnl::memory(d, dnnl_engine(), nullptr); };
  auto o = std::make_unique<Operands>(Operands{nowhere(src_), nowhere(dst_), nowhere(scratch_), {}});
  o->all = {{DNNL_ARG_SRC, o->src.get()}, {DNNL_ARG_DST, o->dst.get()}, {DNNL_ARG_SCRATCHPAD, o->scratch.get()}};
  for (const auto& [number, memory] : fixed_) o->all.push_back({number, memory.get()});
  return o;
}

void ReadyCall::run(const float* src, float* dst) const {
  const Scratch<char> scratch(static_cast<int64_t>(scratch_.get_size()));
  auto o = take();
  o->src.set_data_handle(const_cast<float*>(src));
  o->dst.set_data_handle(dst);
  o->scratch.set_data_handle(scratch.data());
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), dnnl_stream().get(), static_cast<int>(o->all.size()), o->all.data()),
      "could not execute a primitive");
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(o));
}

}  // namespace tenon::kernels
