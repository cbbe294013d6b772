#pragma once
#include <gtest/gtest.h>

#include <string>

#include "core/backend.h"
#include "core/cuda_module.h"
#include "engine/op/cuda_device.h"
#include "tests/cuda/emulated.h"

// Which library computed what, for tests of ops that NVIDIA's libraries compute where they are there.
namespace tenon::emulated {

inline bool library_there(const std::string& name) {
  emulated::device();
  cuda::LibraryFacts l;
  for (int32_t i = 0; cuda_module()->library(i, &l) == cuda::done; ++i)
    if (name == l.name) return l.there;
  ADD_FAILURE() << "the module does not know " << name;
  return false;
}

inline int64_t runs_by(const std::string& library, const std::string& op) {
  for (const LibraryRuns& r : cuda_library_runs())
    if (r.op == op && r.library == library) return r.count;
  return 0;
}

/// How often an op was computed by a library while f ran.
template <class F>
int64_t runs_while(const std::string& library, const std::string& op, F&& f) {
  const int64_t before = runs_by(library, op);
  f();
  return runs_by(library, op) - before;
}

}  // namespace tenon::emulated
