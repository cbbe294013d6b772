#pragma once
// The generated schema is slow to parse and noisy: only this folder's files include it.
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/mapped_file.h"
#include "core/tensor.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// What is declared of an input, an output or a value within.
OnnxValue read_value(const onnx::ValueInfoProto& proto);

/// The files beside a model that hold values of its tensors. Each is mapped once: a tensor is a window of it.
class ExternalData {
 public:
  /// Of a model in `folder`; of one that lies in no folder where that is empty.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}
  static ExternalData beside(const std::string& model);
  /// The bytes that a tensor says are its own, of which there must be `expected`. Throws Error where they are not
  /// there, or not inside the model's folder, links followed.
  std::shared_ptr<const MappedFile> bytes_of(const onnx::TensorProto& proto, const std::string& where, size_t expected);

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  ///< by path
};

/// Reads one tensor; `where` names it in errors.
Tensor read_tensor(const onnx::TensorProto& proto, const std::string& where, ExternalData& external);
/// An initializer of the file `name`, with its name, out of its message: values are copied once, from where they stand,
/// or are a window of external data. `four_bit` is told whether they have 4 bits there.
std::pair<std::string, Tensor> read_initializer_bytes(std::string_view message, const std::string& name,
                                                      ExternalData& external, bool* four_bit = nullptr);
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
