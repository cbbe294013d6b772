#pragma once
#include <optional>
#include <string>

// What the processor reaches at most, measured: the rates of ops are held against it (tracing/ops/roofline.h).
namespace tenon::kernels {

struct Ceilings {
  std::string processor;  ///< as processor_name() has it
  int threads = 0;        ///< that were measured together
  /// Floating-point operations a second of f32 fused multiply-adds, which are two each, in the widest vectors that the
  /// processor has.
  double flops = 0;
  /// Bytes a second, read and written, of a copy between arrays that no cache holds.
  double bytes = 0;

  /// Operations a byte above which arithmetic is the limit, and below which it is memory.
  double ridge() const { return flops / bytes; }
  /// Operations a second that are possible at so many a byte: the roof.
  double at(double intensity) const { return intensity < ridge() ? intensity * bytes : flops; }
  bool operator==(const Ceilings&) const = default;
};

/// Measures with num_threads() threads; the best of several repetitions, since what runs beside it can only take away.
/// Takes about a second, and memory of up to 512 MiB for that time. Throws Error where there is no room for the arrays.
Ceilings measure_ceilings();

/// What was measured before on this processor with num_threads() threads, from the user's cache folder. Nothing where
/// there is none, or the file is damaged or of another processor.
std::optional<Ceilings> kept_ceilings();

/// Keeps them for kept_ceilings(). Where the folder cannot be written nothing is kept: they can be measured again.
void keep_ceilings(const Ceilings& c);

/// Those that are kept, or else measured now and kept.
Ceilings known_ceilings();

}  // namespace tenon::kernels
