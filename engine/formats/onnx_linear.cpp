// ONNX operators that multiply and transform.
#include "engine/formats/onnx_operator.h"
#include "engine/ops/create.h"
#include "engine/ops/linalg.h"

namespace tenon::formats {
namespace {

TENON_ONNX(Einsum) { return {einsum(c.node.text("equation", ""), c.in)}; }
TENON_ONNX(Det) { return {det(c.input(0))}; }

}  // namespace
}  // namespace tenon::formats
