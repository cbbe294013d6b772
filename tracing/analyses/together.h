#pragma once
#include <functional>

#include "core/parallel.h"

namespace tenon::tracing {

/// Calls each of these, on several threads where there are some, and waits for all: parts of one answer that have
/// nothing to do with each other. The first that throws throws here.
template <class... F>
void together(const F&... parts) {
  const std::function<void()> all[] = {parts...};
  parallel_for(static_cast<int64_t>(sizeof...(F)), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) all[i]();
  });
}

}  // namespace tenon::tracing
