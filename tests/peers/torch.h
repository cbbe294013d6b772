#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/tensor.h"
#include "engine/formats/named_tensors.h"

// What PyTorch computes, for comparison. Each <name>.py of this folder is a program that reads JSON from standard input
// and writes a dictionary of tensors with torch.save to the path in its last argument; a comparison runs it once and
// reads its tensors by name.
namespace tenon::peers {

/// Whether a Python with PyTorch was found (Debian's python3-torch, or the one in TENON_TORCH_PYTHON). Looked for once.
bool has_torch();
/// Whether it opens programs of torch.export in the form of ours: PyTorch 2.9 or later.
bool exports_programs();

/// Runs tests/peers/<program> and reads back what it saved. Throws Error with what it said where it failed.
formats::NamedTensors run_torch(const std::string& program, const nlohmann::json& input);

/// Throws Error naming what is there where `name` is not.
const Tensor& find(const formats::NamedTensors& tensors, const std::string& name);

/// Largest |a - b| / (floor + |b|), NaN where one of them is not finite and the other is; infinite for different sizes.
double difference(const Tensor& a, const Tensor& b, double floor = 1e-3);

}  // namespace tenon::peers

#define TENON_NEEDS_TORCH() \
  if (!tenon::peers::has_torch()) GTEST_SKIP() << "PyTorch is not installed (Debian: python3-torch)"
#define TENON_NEEDS_TORCH_EXPORT() \
  if (!tenon::peers::exports_programs()) GTEST_SKIP() << "no PyTorch 2.9 or later is there (TENON_TORCH_PYTHON)"
