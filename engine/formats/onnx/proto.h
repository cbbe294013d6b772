#pragma once
// The generated schema is slow to parse and noisy: only this folder's files include it.
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include <string>
#include <string_view>
#include <utility>

#include "core/tensor.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// What is declared of an input, an output or a value within.
OnnxValue read_value(const onnx::ValueInfoProto& proto);

/// Reads one tensor; `where` names it in errors, `folder` is where external data lies.
Tensor read_tensor(const onnx::TensorProto& proto, const std::string& where, const std::string& folder);
/// An initializer of the file `name`, with its name, out of its message: values are copied once, from where they stand.
/// `four_bit` is told whether they have 4 bits there.
std::pair<std::string, Tensor> read_initializer_bytes(std::string_view message, const std::string& name,
                                                      const std::string& folder, bool* four_bit = nullptr);
void write_tensor(const Tensor& t, const std::string& name, onnx::TensorProto& proto);
/// The same in 4 bits an element, of i8 as INT4 and of u8 as UINT4; throws Error for an element that has more.
void write_four_bit(const Tensor& t, const std::string& name, onnx::TensorProto& proto);
onnx::TensorProto::DataType onnx_type(DType t);
/// False for types Tenon does not have.
bool dtype_from_onnx(int type, DType& out);
/// INT4 and UINT4, which are read as i8 and u8.
bool four_bit_from_onnx(int type, DType& out);
/// "uint16", "string", ...
std::string onnx_type_name(int type);

}  // namespace tenon::formats
