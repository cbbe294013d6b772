#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/kernels/dnnl_engine.h"

namespace tenon::kernels {

/// A primitive of oneDNN that stands ready with its operands. Those that lie elsewhere in every call are pointed there:
/// to make them anew takes as long as a small product. Several threads may call it at once.
class ReadyCall {
 public:
  using Fixed = std::vector<std::pair<int, dnnl::memory>>;  ///< operands that stay, such as weights
  ReadyCall(dnnl::primitive primitive, dnnl::memory::desc src, dnnl::memory::desc dst, dnnl::memory::desc scratch,
            Fixed fixed);
  /// Throws what oneDNN throws.
  void run(const float* src, float* dst) const;

 private:
  struct Operands {
    dnnl::memory src, dst, scratch;
    std::vector<dnnl_exec_arg_t> all;
  };
  std::unique_ptr<Operands> take() const;

  const dnnl::primitive primitive_;
  const dnnl::memory::desc src_, dst_, scratch_;
  const Fixed fixed_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Operands>> idle_;  ///< of calls that are over
};

}  // namespace tenon::kernels
