#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon::formats {

/// Of an LSTM, GRU or RNN of ONNX: which gate of PyTorch (i f g o; r z n), whose order the layers have, comes where.
const std::vector<int64_t>& onnx_gates(const std::string& op_type);
/// Rows of gates in another order: those of gate order[k] come as the k-th. Throws Error where the rows are not those
/// of so many gates.
Tensor gates_in_order(const Tensor& rows, const std::vector<int64_t>& order);
/// The order that undoes one.
std::vector<int64_t> gates_back(const std::vector<int64_t>& order);

}  // namespace tenon::formats
