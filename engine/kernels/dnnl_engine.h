#pragma once
#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>
#include <string>

#include "core/error.h"

// What the files that call oneDNN share; none but those of this folder may include it.
namespace tenon::kernels {

/// Tells OpenMP that this thread has no others: Note [oneDNN and threads]. guarded() does it.
void dnnl_alone();
dnnl::engine& dnnl_engine();
/// Of the calling thread.
dnnl::stream& dnnl_stream();

/// Whether oneDNN computes for one of these processors: what it may use, ONEDNN_MAX_CPU_ISA included.
inline bool dnnl_runs_on(std::initializer_list<dnnl::cpu_isa> any) {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return std::find(any.begin(), any.end(), isa) != any.end();
}

/// Runs f; errors of oneDNN say what was asked for.
template <class F>
auto dnnl_guarded(const char* what, const F& f) {
  dnnl_alone();
  try {
    return f();
  } catch (const dnnl::error& e) {
    throw Error(
        std::string(what) + " in oneDNN: " + e.what() + " (status " + std::to_string(static_cast<int>(e.status)) + ")",
        e.status == dnnl_out_of_memory ? "use a smaller batch" : "");
  }
}

/// Primitives that stand ready, by the sizes that they are for. Several threads may ask; one makes what is missing.
template <class Key, class Ready>
class ReadyOnes {
 public:
  explicit ReadyOnes(size_t most) : most_(most) {}
  /// `full` is called where there are so many that all go.
  template <class Make, class Full>
  std::shared_ptr<const Ready> get(const Key& key, const Make& make, const Full& full) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = ready_.find(key); found != ready_.end()) return found->second;
    }
    const std::lock_guard lock(mutex_);
    if (const auto found = ready_.find(key); found != ready_.end()) return found->second;
    if (ready_.size() >= most_) ready_.clear(), full();
    return ready_.emplace(key, make(key)).first->second;
  }
  template <class Make>
  std::shared_ptr<const Ready> get(const Key& key, const Make& make) {
    return get(key, make, [] {});
  }

 private:
  const size_t most_;
  std::shared_mutex mutex_;
  std::map<Key, std::shared_ptr<const Ready>> ready_;
};

}  // namespace tenon::kernels
