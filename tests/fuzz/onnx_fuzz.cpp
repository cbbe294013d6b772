#include "core/error.h"
#include "core/mapped_file.h"
#include "core/pool.h"
#include "engine/formats/model_file.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/create.h"

// A model that can be read and takes small inputs is also run, on ones: operators meet every attribute and shape that a
// file can hold. Sizes and the number of nodes are bounded, so that a model which asks for 2^31 elements or loops for
// ever is an error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  using Form = formats::OnnxValue::Form;
  try {  // as the window shows it, whether it can be run or not
    const auto shown = formats::ModelFile::parse(MappedFile::of({reinterpret_cast<const char*>(data), size}, "input"));
    for (size_t i = 0; i < shown->tensors.size(); ++i)
      if (shown->tensors[i].problem.empty()) shown->tensor(i);
  } catch (const Error&) {
  }
  try {
    const formats::OnnxModel model = formats::parse_onnx({reinterpret_cast<const char*>(data), size}, "input");
    std::vector<formats::OnnxItem> inputs;
    for (const formats::OnnxValue& v : model.graph.inputs) {
      Shape shape;
      int64_t count = 1;
      if (v.shape.size() > static_cast<size_t>(kMaxDims)) return 0;
      for (const formats::OnnxDim& d : v.shape) {
        const int64_t n = d.value < 0 ? 1 : d.value;
        if (n > 4096 || (count *= n > 0 ? n : 1) > 4096) return 0;
        shape.push_back(n);
      }
      const Tensor t = ones(shape, v.dtype);
      if (v.form == Form::sequence || v.form == Form::optional_sequence)
        inputs.push_back(std::vector<Tensor>{t, t});
      else
        inputs.push_back(t);
    }
    formats::run_onnx_items(model, inputs, {.tensor_bytes = 1 << 20, .nodes = 500});
  } catch (const Error&) {
  }
  try {  // as layers of the builder
    const formats::OnnxModel model = formats::parse_onnx({reinterpret_cast<const char*>(data), size}, "input");
    if (model.graph.nodes.size() > 200) return 0;
    const AllocationLimit bound(1 << 20);
    formats::import_model(model, "input", {});
  } catch (const Error&) {
  }
  return 0;
}
