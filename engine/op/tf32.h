#pragma once

namespace tenon {

/// Whether products and convolutions of f32 on this thread may be multiplied by a GPU's tensor cores in TF32: each
/// factor rounded to 10 bits of mantissa, sums in f32. What PyTorch calls allow_tf32. Other devices compute as ever.
inline thread_local bool t_tf32 = false;

class Tf32Scope {
 public:
  explicit Tf32Scope(bool on) : outer_(t_tf32) { t_tf32 = on; }
  ~Tf32Scope() { t_tf32 = outer_; }
  Tf32Scope(const Tf32Scope&) = delete;

 private:
  bool outer_;
};

}  // namespace tenon
