#include "core/error.h"
#include "engine/formats/onnx.h"
#include "engine/formats/onnx_run.h"
#include "engine/ops/create.h"

// A model that can be read and takes small inputs is also run, on zeros.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  try {
    formats::OnnxModel model = formats::parse_onnx({reinterpret_cast<const char*>(data), size}, "input");
    std::vector<Tensor> inputs;
    for (const formats::OnnxValue& v : model.graph.inputs) {
      Shape shape;
      int64_t count = 1;
      for (const formats::OnnxDim& d : v.shape) {
        int64_t n = d.value < 0 ? 1 : d.value;
        if (n > 4096 || (count *= n > 0 ? n : 1) > 4096) return 0;
        shape.push_back(n);
      }
      inputs.push_back(zeros(shape, v.dtype));
    }
    formats::run_onnx(model, inputs);
  } catch (const Error&) {
  }
  return 0;
}
