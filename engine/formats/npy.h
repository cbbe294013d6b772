#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/named_tensors.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// NumPy's .npy, versions 1 to 3, in C or Fortran order, little- or big-endian. bfloat16 is kept the way ml_dtypes
/// does, as '<V2'. Throws Error naming the file and what is wrong with it: never reads past the end, never allocates
/// more than the file holds.
Tensor load_npy(const std::string& path);
Tensor parse_npy(std::string_view bytes, const std::string& name);
/// The same as a window of the file, where its elements lie in it as they do in memory.
Tensor npy_tensor(const std::shared_ptr<const MappedFile>& file);

/// What stands before the elements. Throws Error as load_npy(), but for elements that cannot be read: `problem` says
/// so.
struct NpyHead {
  std::string descr;  ///< "<f4"
  std::vector<int64_t> shape;
  bool fortran = false;
  size_t begin = 0;  ///< where the elements begin
  DType dtype = DType::f32;
  bool swapped = false;
  std::string problem = {};
};
NpyHead npy_head(std::string_view bytes, const std::string& name);

/// Version 1, C order, little-endian, elements in logical order.
void save_npy(const std::string& path, const Tensor& t);
std::string npy_bytes(const Tensor& t);

/// NumPy's .npz: a zip of .npy files, by their names without that end; compressed ones too. What is no array is an
/// error.
NamedTensors load_npz(const std::string& path);
/// As numpy.savez writes it, uncompressed.
void save_npz(const std::string& path, const NamedTensors& arrays);

}  // namespace tenon::formats
