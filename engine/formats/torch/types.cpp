#include "engine/formats/torch/types.h"

#include <algorithm>
#include <iterator>

namespace tenon::formats {
namespace {

constexpr TorchType known(std::string_view storage, std::string_view dtype, DType t) {
  return {storage, dtype, static_cast<int>(itemsize(t)), static_cast<int>(t)};
}
// A dtype without a storage class of its own is saved over UntypedStorage.
constexpr TorchType kTypes[] = {known("FloatStorage", "float32", DType::f32),
                                known("DoubleStorage", "float64", DType::f64),
                                known("HalfStorage", "float16", DType::f16),
                                known("BFloat16Storage", "bfloat16", DType::bf16),
                                known("LongStorage", "int64", DType::i64),
                                known("IntStorage", "int32", DType::i32),
                                known("ShortStorage", "int16", DType::i16),
                                known("CharStorage", "int8", DType::i8),
                                known("ByteStorage", "uint8", DType::u8),
                                known("BoolStorage", "bool", DType::boolean),
                                {"UntypedStorage", "bytes", 1, static_cast<int>(DType::u8)},
                                {"ComplexFloatStorage", "complex64", 8},
                                {"ComplexDoubleStorage", "complex128", 16},
                                {"QInt8Storage", "qint8", 1},
                                {"QUInt8Storage", "quint8", 1},
                                {"QInt32Storage", "qint32", 4},
                                {"QUInt4x2Storage", "quint4x2", 1},
                                {"QUInt2x4Storage", "quint2x4", 1},
                                {"", "uint16", 2},
                                {"", "uint32", 4},
                                {"", "uint64", 8},
                                {"", "complex32", 4},
                                {"", "float8_e4m3fn", 1},
                                {"", "float8_e5m2", 1},
                                {"", "float8_e4m3fnuz", 1},
                                {"", "float8_e5m2fnuz", 1},
                                {"", "float8_e8m0fnu", 1},
                                {"", "float4_e2m1fn_x2", 1},
                                {"", "bits8", 1},
                                {"", "bits16", 2}};

struct Named {
  std::string_view module, names;  ///< names between spaces
};
constexpr Named kData[] = {
    {"torch",
     " Size device Tensor strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc per_tensor_affine "
     "per_channel_affine "
     "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor "
     "BoolTensor "},
    {"torch._utils",
     " _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter _rebuild_parameter_with_state "
     "_rebuild_qtensor "
     "_rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_meta_tensor_no_storage "
     "_rebuild_device_tensor_from_numpy _rebuild_device_tensor_from_cpu_tensor _rebuild_wrapper_subclass "},
    {"torch._tensor", " Tensor _rebuild_from_type_v2 "},
    {"torch.nn.parameter", " Parameter Buffer "},
    {"torch.serialization", " _get_layout "},
    {"torch.storage", " TypedStorage "},
    {"collections", " OrderedDict defaultdict Counter "},
    {"builtins", " set frozenset complex bytearray bytes list dict tuple int float str bool slice range "},
    {"_codecs", " encode "},
    {"numpy", " dtype ndarray "},
    {"numpy.core.multiarray", " scalar _reconstruct "},
    {"numpy._core.multiarray", " scalar _reconstruct "},
    {"argparse", " Namespace "},
    {"pathlib", " Path PosixPath WindowsPath PurePosixPath PureWindowsPath "},
    {"datetime", " datetime date time timedelta "},
};

}  // namespace

const TorchType* torch_storage(const PyValue::Global& g) {
  if (g.name.empty() || (g.module != "torch" && g.module != "torch.cuda" && g.module != "torch.storage"))
    return nullptr;
  const auto* t =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TorchType& k) { return k.storage == g.name; });
  return t == std::end(kTypes) ? nullptr : t;
}
const TorchType* torch_dtype(std::string_view name) {
  const auto* t =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TorchType& k) { return k.dtype == name; });
  return t == std::end(kTypes) || name == "bytes" ? nullptr : t;
}
const TorchType& torch_type(DType t) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&](const TorchType& k) { return k.engine == static_cast<int>(t); });
}

bool is_data(const PyValue::Global& g) {
  if (torch_storage(g) || (g.module == "torch" && torch_dtype(g.name))) return true;
  if (g.module.starts_with("torch.nn.modules.") && !g.name.empty() && g.name[0] >= 'A' && g.name[0] <= 'Z') return true;
  const std::string_view module = g.module == "__builtin__" ? "builtins" : std::string_view(g.module);
  if (g.name.empty() || g.name.find(' ') != g.name.npos) return false;
  for (const Named& n : kData)
    if (n.module == module && n.names.find(" " + g.name + " ") != n.names.npos) return true;
  return false;
}

}  // namespace tenon::formats
