#pragma once
#include <functional>
#include <string>

#include "core/tensor.h"
#include "engine/formats/named_tensors.h"
#include "engine/formats/onnx/model.h"

// What ONNX Runtime makes of a model, run by a Python interpreter that has it. `go_on` is run_process()'s.
namespace tenon::projects {

struct RuntimeValues {
  std::string version;           ///< "1.20.0"
  formats::NamedTensors values;  ///< the first output of every node, by name
};
/// An interpreter that imports onnxruntime and numpy: `wanted` where it is one, or the first such on the path where
/// that is empty. Throws Error saying what it lacks.
std::string python_with_onnxruntime(const std::string& wanted, const std::function<bool()>& go_on = {});
/// `python`: as python_with_onnxruntime() found it. Throws Error with the runtime's words where it refuses the model.
RuntimeValues run_in_onnxruntime(const std::string& python, const formats::OnnxModel& model, const Tensor& input,
                                 const std::function<bool()>& go_on = {});

}  // namespace tenon::projects
