#include "engine/kernels/ceilings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "core/machine_memory.h"
#include "core/parallel.h"
#include "core/processor.h"
#include "core/sha256.h"

namespace tenon::kernels {
namespace {

// Note [What the peak is of]
// A multiply-add gives its result after about four cycles and two can begin in each: eight must be on their way at once
// for a core to be busy. Twelve chains that do not wait for each other are enough for any, and fit into the sixteen
// registers of AVX2 with their two constants. Every chain tends to kAdd / (1 - kBy), so that no number leaves the
// normal ones. The chains begin with numbers of their own: of equal ones a compiler would keep one. Unrolled, since an
// array is in registers only where its places are constants.
constexpr int kChains = 12;
constexpr float kBy = 0.5f, kAdd = 1;

struct Chains {
  int lanes;                     ///< f32 in a vector
  float (*run)(int64_t rounds);  ///< so many rounds of kChains vector operations; the sum of what came out
};

#ifdef __x86_64__
[[gnu::target("avx512f")]] float run_512(int64_t rounds) {
  const __m512 by = _mm512_set1_ps(kBy), add = _mm512_set1_ps(kAdd);
  __m512 x[kChains];
  for (int k = 0; k < kChains; ++k) x[k] = _mm512_set1_ps(static_cast<float>(k));
  for (; rounds > 0; --rounds) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) x[k] = _mm512_fmadd_ps(x[k], by, add);
  }
  __m512 sum = x[0];
  for (int k = 1; k < kChains; ++k) sum = _mm512_add_ps(sum, x[k]);
  float lanes[16];
  _mm512_storeu_ps(lanes, sum);
  return lanes[0];
}
[[gnu::target("avx2,fma")]] float run_256(int64_t rounds) {
  const __m256 by = _mm256_set1_ps(kBy), add = _mm256_set1_ps(kAdd);
  __m256 x[kChains];
  for (int k = 0; k < kChains; ++k) x[k] = _mm256_set1_ps(static_cast<float>(k));
  for (; rounds > 0; --rounds) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) x[k] = _mm256_fmadd_ps(x[k], by, add);
  }
  __m256 sum = x[0];
  for (int k = 1; k < kChains; ++k) sum = _mm256_add_ps(sum, x[k]);
  float lanes[8];
  _mm256_storeu_ps(lanes, sum);
  return lanes[0];
}
Chains widest_chains() { return __builtin_cpu_supports("avx512f") ? Chains{16, run_512} : Chains{8, run_256}; }
#else
/// In as wide vectors as the compiler makes of it.
float run_any(int64_t rounds) {
  constexpr int kLanes = 4;
  float x[kChains * kLanes];
  for (int k = 0; k < kChains * kLanes; ++k) x[k] = static_cast<float>(k);
  for (; rounds > 0; --rounds)
    for (float& v : x) v = std::fma(v, kBy, kAdd);
  float sum = 0;
  for (float v : x) sum += v;
  return sum;
}
Chains widest_chains() { return {4, run_any}; }
#endif

// Note [Short repetitions]
// What runs beside the measurement takes a core for some milliseconds, and all threads wait for the one that lost its
// core. A repetition of a millisecond or two falls between such times on a machine that is not idle; one of 20 hardly
// ever does.

/// The least time that `what(i)` takes, in seconds: at least `least` times, and again until `budget_s` is over.
template <class F>
double best_seconds(int least, double budget_s, const F& what) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = 1e30;
  for (int i = 0;; ++i) {
    const auto from = Clock::now();
    what(i);
    const auto to = Clock::now();
    best = std::min(best, std::chrono::duration<double>(to - from).count());
    if (i + 1 >= least && std::chrono::duration<double>(to - begin).count() >= budget_s) return best;
  }
}

double measure_flops() {
  const Chains chains = widest_chains();
  constexpr int64_t kRounds = 200'000;                // about half a millisecond
  const int64_t pieces = int64_t{num_threads()} * 4;  // a thread that wakes late leaves its pieces to others
  std::atomic<float> sink = 0;
  const double s = best_seconds(5, 0.5, [&](int) {
    parallel_for(pieces, 1, [&](int64_t, int64_t) { sink.store(chains.run(kRounds), std::memory_order_relaxed); });
  });
  if (!(sink.load() > 0)) throw Error("the processor's multiply-adds gave nothing: its peak cannot be measured");
  return 2.0 * kChains * chains.lanes * static_cast<double>(kRounds * pieces) / s;
}

/// Bytes of an array that is far larger than the last cache, of which two can be had here.
int64_t array_bytes() {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{256} << 20;
  int64_t cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = std::max<int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
  const int64_t wanted = std::clamp(2 * cache, kLeast, kMost);
  if (available_memory() / 4 >= wanted) return wanted;
  if (available_memory() / 4 >= kLeast) return kLeast;
  throw Error(fmt::format("measuring the copy bandwidth takes two arrays of {} MiB, and the machine has {} MiB left",
                          kLeast >> 20, available_memory() >> 20),
              "Close what takes memory, and measure again.");
}

double measure_bytes() {
  const int64_t n = array_bytes();
  constexpr int64_t kPiece = int64_t{256} << 10;  // as ops cut their work
  const std::unique_ptr<char[]> from(new (std::nothrow) char[static_cast<size_t>(n)]),
      to(new (std::nothrow) char[static_cast<size_t>(n)]);
  if (!from || !to) throw Error("there is no room for the arrays that measure the copy bandwidth");
  parallel_for(n, kPiece, [&](int64_t b, int64_t e) {  // pages are the machine's once they are written
    std::memset(from.get() + b, 1, static_cast<size_t>(e - b));
    std::memset(to.get() + b, 2, static_cast<size_t>(e - b));
  });
  // One stretch after the other: each is out of the caches until its turn comes again.
  constexpr int64_t kStretch = int64_t{16} << 20;
  const auto stretches = static_cast<int>(n / kStretch);
  const double s = best_seconds(2 * stretches, 0.7, [&](int i) {
    const int64_t at = i % stretches * kStretch;
    parallel_for(kStretch, kPiece, [&](int64_t b, int64_t e) {
      std::memcpy(to.get() + at + b, from.get() + at + b, static_cast<size_t>(e - b));
    });
  });
  return 2.0 * static_cast<double>(kStretch) / s;
}

std::string place_of(const std::string& processor, int threads) {
  return fmt::format("{}/{}-{}.json", cache::folder_of("ceilings"),
                     hex(sha256(processor.data(), processor.size())).substr(0, 16), threads);
}

}  // namespace

Ceilings measure_ceilings() {
  Ceilings c;
  c.processor = processor_name();
  c.threads = num_threads();
  c.flops = measure_flops();
  c.bytes = measure_bytes();
  return c;
}

std::optional<Ceilings> kept_ceilings() {
  const std::string place = place_of(processor_name(), num_threads());
  std::error_code none;
  if (!std::filesystem::is_regular_file(place, none) || !cache::is_own(place)) return {};
  try {
    const nlohmann::json j = nlohmann::json::parse(read_file(place));
    Ceilings c;
    c.processor = j.at("processor").get<std::string>();
    c.threads = j.at("threads").get<int>();
    c.flops = j.at("flops_per_second").get<double>();
    c.bytes = j.at("bytes_per_second").get<double>();
    const bool sound = std::isfinite(c.flops) && std::isfinite(c.bytes) && c.flops > 0 && c.bytes > 0;
    if (sound && c.processor == processor_name() && c.threads == num_threads()) return c;
  } catch (const std::exception&) {  // damaged: measured again
  }
  return {};
}

void keep_ceilings(const Ceilings& c) {
  const nlohmann::json j = {
      {"processor", c.processor}, {"threads", c.threads}, {"flops_per_second", c.flops}, {"bytes_per_second", c.bytes}};
  const std::string place = place_of(c.processor, c.threads);
  try {
    std::filesystem::create_directories(std::filesystem::path(place).parent_path());
    write_file(place, j.dump(2) + "\n");
  } catch (const std::exception&) {
  }
}

Ceilings known_ceilings() {
  if (std::optional<Ceilings> kept = kept_ceilings()) return *kept;
  const Ceilings c = measure_ceilings();
  keep_ceilings(c);
  return c;
}

}  // namespace tenon::kernels
