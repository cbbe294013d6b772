#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon::formats {
struct ModelFile;
}

namespace tenon::views {

std::string format_tensors(size_t n);  ///< "1 tensor", "1,240 tensors"

/// What the values of a whole tensor look like. Exact: every element is read.
struct TensorStats {
  int64_t count = 0, nan = 0, inf = 0, zeros = 0, negative = 0, denormal = 0;
  double min = 0, max = 0, mean = 0, std = 0, l2 = 0;  ///< over the finite values
  std::vector<int64_t> bins;                           ///< equal shares of [min, max]
  int64_t finite() const { return count - nan - inf; }
};

/// Read in pieces on all threads; the same bits at any number of them. `go_on` is told how many elements of how many
/// were read, each being read twice; empty (count 0) once it returned false.
TensorStats tensor_stats(const Tensor& t, int bins = 48,
                         const std::function<bool(int64_t done, int64_t total)>& go_on = {});
/// Of the values of an entry of a file, whose pages are let go of as they were read: the memory that a file takes does
/// not grow with it. Throws as ModelFile::tensor does.
TensorStats file_tensor_stats(const formats::ModelFile& file, size_t entry, int bins,
                              const std::function<bool(int64_t done, int64_t total)>& go_on = {});

}  // namespace tenon::views
