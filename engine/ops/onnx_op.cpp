#include "engine/ops/onnx_op.h"

namespace tenon {

int onnx_data_type(DType t) {
  switch (t) {
    case DType::boolean:
      return 9;
    case DType::u8:
      return 2;
    case DType::i8:
      return 3;
    case DType::i16:
      return 5;
    case DType::i32:
      return 6;
    case DType::i64:
      return 7;
    case DType::f16:
      return 10;
    case DType::bf16:
      return 16;
    case DType::f32:
      return 1;
    case DType::f64:
      break;
  }
  return 11;
}

void OnnxOp::set_type(std::string name, DType t) {
  set(std::move(name), Value(static_cast<int64_t>(onnx_data_type(t))));
}

}  // namespace tenon
