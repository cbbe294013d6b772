#pragma once
#include <cstdint>

namespace tenon {

/// Threads that compute ops, the calling one included. Never changes a result. 0: every core.
void set_num_threads(int n);
int num_threads();

/// Calls fn(begin, end) over [0, n) cut into pieces of `grain` (the last one shorter), on several threads, and waits.
/// The cuts depend on n and grain alone, never on the number of threads: whoever adds up per piece and then over the
/// pieces in order gets the same bits at any thread count. An exception of a piece is thrown again here, the lowest
/// piece's first. Called from inside a piece it runs serially. Several threads may call at once: they share the
/// workers.
template <class F>
void parallel_for(int64_t n, int64_t grain, const F& fn);

namespace detail {
using PieceFn = void (*)(const void* fn, int64_t begin, int64_t end);
void run_pieces(int64_t n, int64_t grain, PieceFn call, const void* fn);
}  // namespace detail

template <class F>
void parallel_for(int64_t n, int64_t grain, const F& fn) {
  if (n <= 0) return;
  if (n <= grain) return fn(int64_t{0}, n);
  detail::run_pieces(
      n, grain, [](const void* f, int64_t b, int64_t e) { (*static_cast<const F*>(f))(b, e); }, &fn);
}

}  // namespace tenon
