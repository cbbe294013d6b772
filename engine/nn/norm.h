#pragma once
#include "engine/nn/module.h"

namespace tenon::nn {

/// What norms over channels (axis 1) have in common: a scale and a shift a channel, and running statistics where they
/// are tracked.
class ChannelNorm : public Module {
 public:
  struct Options {
    double eps = 1e-5, momentum = 0.1;
    bool affine = true, track = true;
  };

 protected:
  ChannelNorm(int axes, int64_t channels, const Options& options, Device device, DType dtype);
  void reset(uint64_t seed) override;
  /// Moves the running statistics towards those of `values` values; the variance becomes the unbiased one, as in
  /// PyTorch. Throws Error where a single value has none.
  void track(const Tensor& mean, const Tensor& var, int64_t values);

  int axes_;
  int64_t channels_;
  Options options_;
  Tensor weight_, bias_, running_mean_, running_var_;
};

/// Normalises every channel: by the batch's statistics in training, by their running means in evaluation (where
/// `track`).
class BatchNorm : public ChannelNorm {
 public:
  /// axes: spatial ones behind the channels (1: [n, c] or [n, c, l]).
  BatchNorm(int axes, int64_t channels, const Options& options, Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
};

/// Normalises every channel of [n, c, h, w] or [n, c].
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(int64_t channels, double eps = 1e-5, double momentum = 0.1, bool affine = true,
                       Device device = {}, DType dtype = DType::f32)
      : BatchNorm(2, channels, {eps, momentum, affine, true}, device, dtype) {}
};

/// Normalises every channel of every sample by itself. With `track`, evaluation uses running statistics.
class InstanceNorm : public ChannelNorm {
 public:
  InstanceNorm(int axes, int64_t channels, const Options& options, Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
};

/// Normalises the last axes of every sample; with `rms` without taking off the mean (RMSNorm, which has no bias).
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, double eps = 1e-5, bool affine = true, bool rms = false,
                     Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
  void reset(uint64_t seed) override;

 private:
  Shape shape_;
  double eps_;
  bool rms_;
  Tensor weight_, bias_;
};

class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true, Device device = {},
            DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
  void reset(uint64_t seed) override;

 private:
  int64_t groups_, channels_;
  double eps_;
  Tensor weight_, bias_;
};

}  // namespace tenon::nn
