#include "engine/formats/onnx/prepared.h"

#include "engine/formats/onnx/batch_norm_fold.h"
#include "engine/formats/onnx/fold_constants.h"
#include "engine/formats/onnx/fuse_nodes.h"
#include "engine/ops/view.h"

namespace tenon::formats {
PreparedModel::PreparedModel(const OnnxModel& model, Arithmetic how)
    : given_(model), plan_(how == Arithmetic::integers ? integer_plan(model) : IntegerPlan{.model = model}) {
  const KnownSizes sizes = fold_constants(plan_.model);
  fold_batch_norms(plan_.model.graph);
  fuse_nodes(plan_.model, sizes);
}

OnnxResult PreparedModel::run(const std::vector<OnnxItem>& inputs, const OnnxLimits& limits) const {
  OnnxResult r = run_onnx_items(as_declared(given_, inputs) ? plan_.model : given_, inputs, limits);
  for (OnnxItem& i : r.outputs)
    if (i.tensor && !i.tensor.is_meta()) i.tensor = contiguous(i.tensor);
  return r;
}

std::vector<Tensor> PreparedModel::run_tensors(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> out;
  for (const OnnxItem& i : run(std::vector<OnnxItem>(inputs.begin(), inputs.end())).outputs) {
    if (!i.tensor) throw Error("an output of the model is no tensor");
    out.push_back(i.tensor);
  }
  return out;
}

}  // namespace tenon::formats
