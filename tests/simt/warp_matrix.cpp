#include <atomic>
#include <memory>
#include <string>

#include "tests/simt/simt_warp_matrix.h"

namespace simt {
namespace {

std::atomic<uint64_t> g_calls{0};

std::string matrix_at(const WarpCall& call) {
  return std::string(call.place.file_name()) + ":" + std::to_string(call.place.line());
}

bool same_call(const WarpCall& a, const WarpCall& b) {
  return a.place.line() == b.place.line() && a.place.column() == b.place.column() &&
         std::string(a.place.file_name()) == b.place.file_name() && a.data == b.data && a.line == b.line;
}

}  // namespace

void warp_call(const WarpCall& call, void (*work)(const WarpCall* const (&lanes)[32])) {
  using Lanes = const WarpCall* [32];
  static thread_local const std::unique_ptr<Lanes[]> calls(new Lanes[32]);
  const Dim3 &at = position().thread, &block = position().block;
  auto& lanes = calls[(at.x + block.x * (at.y + block.y * at.z)) / 32];
  const unsigned own = lane();
  lanes[own] = &call;
  exchange(0, own, "a matrix of a warp");
  if (own == 0) {
    for (const WarpCall* other : lanes)
      if (!same_call(call, *other))
        throw Fault("lanes of one warp come with different matrices: " + matrix_at(call) + "; " + matrix_at(*other));
    work(lanes);
    g_calls.fetch_add(1, std::memory_order_relaxed);
  }
  exchange(0, own, "the end of a matrix of a warp");
}

void warp_memory(const WarpCall& call, unsigned bytes) {
  if (reinterpret_cast<uintptr_t>(call.data) % 32 != 0 || call.line * bytes % 16 != 0 || call.line < 16)
    throw Fault("a matrix that is not aligned at " + matrix_at(call));
  warp_call(call, [](const WarpCall* const(&)[32]) {});
}

}  // namespace simt

extern "C" __attribute__((visibility("default"))) uint64_t tenon_simt_warp_calls() { return simt::g_calls.load(); }
