#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "core/error.h"

// What the files that call oneDNN share; none but those of this folder may include it.
namespace tenon::kernels {

/// Tells OpenMP that this thread has no others: Note [oneDNN and threads]. guarded() does it.
void dnnl_alone();
dnnl::engine& dnnl_engine();
/// Of the calling thread.
dnnl::stream& dnnl_stream();

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

}  // namespace tenon::kernels
