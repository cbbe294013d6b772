#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace tenon::nn {

/// A parameter or buffer with its full path ("features.0.weight").
struct Named {
  std::string name;
  Tensor tensor;
};

/// A part of a model: parameters (trained), buffers (state that is not), named children, and forward().
/// Call it through operator(), which attributes everything that happens inside to the module's path.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;

  Tensor operator()(const Tensor& x) { return (*this)(std::span<const Tensor>(&x, 1)); }
  Tensor operator()(std::span<const Tensor> inputs);

  /// Every parameter (buffer) of this module and its children, in order of registration, depth first.
  std::vector<Named> parameters() const;
  std::vector<Named> buffers() const;
  int64_t parameter_count() const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const { return children_; }

  /// Training or evaluation behaviour (Dropout, BatchNorm), for the children too.
  void train(bool on = true);
  bool training() const { return training_; }

  /// Gives every module below its path, and every parameter its starting value: a pure function of (seed, the parameter's path).
  /// Parameters require gradients afterwards. Call once, on the root, when the tree is complete.
  void initialize(uint64_t seed, const std::string& path = {});
  const std::string& path() const { return path_; }

  /// "Linear(784 -> 256)": type and what distinguishes it, in one line.
  virtual std::string describe() const = 0;

 protected:
  virtual Tensor forward(const Tensor& x);
  /// For modules with several inputs; the default passes the only one on.
  virtual Tensor forward(std::span<const Tensor> inputs);
  /// Fills the module's own parameters and buffers; `seed` differs for every module path.
  virtual void reset(uint64_t seed);

  void add_parameter(std::string name, Tensor t) { parameters_.push_back({std::move(name), std::move(t)}); }
  void add_buffer(std::string name, Tensor t) { buffers_.push_back({std::move(name), std::move(t)}); }
  void add_child(std::string name, std::shared_ptr<Module> m) { children_.emplace_back(std::move(name), std::move(m)); }

 private:
  void collect(bool parameters, const std::string& prefix, std::vector<Named>& out) const;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::vector<Named> parameters_, buffers_;
  std::string path_;
  uint16_t path_id_ = 0;
  bool training_ = true;
};

}  // namespace tenon::nn
