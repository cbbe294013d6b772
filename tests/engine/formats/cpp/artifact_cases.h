#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/formats/onnx/model.h"

// What tests of C++ artifacts share: many models are compiled as one program and run beside our own runner.
namespace tenon::testing_artifacts {

struct ArtifactCase {
  std::string name;
  formats::OnnxModel model;
  std::vector<Tensor> inputs;
};

/// A model of one node, or of several. Float inputs are `x`, `x1`, ...; what is constant is an initializer.
struct ModelText {
  formats::OnnxModel model;
  ModelText& input(const std::string& name, DType t, const Shape& size);
  ModelText& constant(const std::string& name, const Tensor& t);
  ModelText& node(const std::string& op, const std::vector<std::string>& in, const std::string& out,
                  std::vector<formats::OnnxAttribute> attributes = {});
  ModelText& output(const std::string& name);
};

/// Normal numbers of a seed; whole ones below `below` where that is given.
Tensor numbers(const Shape& size, uint64_t seed, int64_t below = 0);

/// Writes, compiles and runs every case, on memory full of NaN, and compares it with run_onnx(): 1e-5 of the largest
/// value. Fails naming the case. `flags` are the compiler's further words.
void expect_same(const std::vector<ArtifactCase>& cases, const std::vector<std::string>& flags,
                 bool weights_beside = false);

}  // namespace tenon::testing_artifacts
