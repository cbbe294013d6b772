#include "engine/formats/onnx/gate_order.h"

#include "core/error.h"
#include "engine/ops/join.h"
#include "engine/ops/view.h"

namespace tenon::formats {

const std::vector<int64_t>& onnx_gates(const std::string& op_type) {
  static const std::vector<int64_t> lstm = {0, 3, 1, 2}, gru = {1, 0, 2}, rnn = {0};
  return op_type == "LSTM" ? lstm : op_type == "GRU" ? gru : rnn;
}

Tensor gates_in_order(const Tensor& t, const std::vector<int64_t>& order) {
  const auto gates = static_cast<int64_t>(order.size());
  if (t.ndim() < 1 || t.size(0) % gates) throw Error("a weight whose rows are not of its gates");
  std::vector<Tensor> rows;
  for (int64_t g : order) rows.push_back(narrow(t, 0, g * (t.size(0) / gates), t.size(0) / gates));
  return cat(rows, 0);
}

std::vector<int64_t> gates_back(const std::vector<int64_t>& order) {
  std::vector<int64_t> back(order.size());
  for (size_t k = 0; k < order.size(); ++k) back[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  return back;
}

}  // namespace tenon::formats
