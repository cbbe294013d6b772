#pragma once
#include <cstdint>

#include "engine/nn/module.h"
#include "engine/nn/norm.h"
#include "engine/ops/conv.h"
#include "engine/ops/conv_nd.h"
#include "engine/ops/pool.h"

namespace tenon::nn {

/// y = x w^T + b over the last axis.
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true, Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
  void reset(uint64_t seed) override;

 private:
  Tensor weight_, bias_;
};

/// y[o] = x1 weight[o] x2 + b[o] over the last axes. Inputs: x1 [.., in1], x2 [.., in2] -> [.., out].
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1, int64_t in2, int64_t out, bool bias = true, Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;
  void reset(uint64_t seed) override;

 private:
  Tensor weight_, bias_;
};

/// A convolution over 1 to 3 axes. Padding other than zeros is put round the input first.
class Conv : public Module {
 public:
  struct Options : ConvOptions {
    PadMode padding_mode = PadMode::constant;
    std::string
        auto_padding;  ///< "same": the output is as large as the input (stride 1); "valid": none; empty: as given
    bool bias = true, transposed = false;
  };
  /// axes: of the image; kernel: one number an axis.
  Conv(int64_t in, int64_t out, const Dims& kernel, const Options& options, Device device = {},
       DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
  void reset(uint64_t seed) override;

 private:
  Options options_;
  std::vector<int64_t> around_;  ///< padding put round the input beforehand
  Tensor weight_, bias_;
};

class Conv2d : public Conv {
 public:
  Conv2d(int64_t in, int64_t out, const Dims& kernel, const Conv2dOptions& options = {}, bool bias = true,
         Device device = {}, DType dtype = DType::f32);
};

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(const Pool2dOptions& options) : options_(options) {}
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Pool2dOptions options_;
};

/// Sets each element to 0 with probability p in training. Which ones depends on the generator's seed, its step and the
/// module's path.
class Dropout : public Module {
 public:
  struct Kind {
    int axes = 0;           ///< behind the channels that the input must have; 0: any
    bool features = false;  ///< whole channels (axis 1) at once
    bool alpha = false;     ///< Klambauer et al. (2017): keeps mean 0 and variance 1
  };
  explicit Dropout(double p) : Dropout(p, Kind{}) {}
  Dropout(double p, Kind kind);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
  Kind kind_;
};

/// x where it is positive, else a trained slope times x: one for all, or one a channel.
class PReLU : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  Tensor forward(const Tensor& x) override;
  void reset(uint64_t seed) override;

 private:
  double init_;
  Tensor weight_;
};

class Flatten : public Module {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}
  std::string describe() const override { return "Flatten"; }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  int first_, last_;
};

std::shared_ptr<Module> relu();
std::shared_ptr<Module> tanh();
std::shared_ptr<Module> sigmoid();
std::shared_ptr<Module> softmax();

/// Its children one after the other, named "0", "1", ...
class Sequential : public Module {
 public:
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules);
  std::string describe() const override { return "Sequential"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

}  // namespace tenon::nn
