#include "engine/train/nearest_rows.h"

#include <algorithm>

#include "core/parallel.h"
#include "engine/kernels/neighbours.h"

namespace tenon {

std::vector<std::vector<Beside>> nearest_rows(const std::vector<const float*>& rows, int64_t width, int64_t count) {
  constexpr int64_t kRowsOfPart = 32;
  const auto n = static_cast<int64_t>(rows.size());
  std::vector<std::vector<Beside>> all(rows.size());
  parallel_for(n, kRowsOfPart, [&](int64_t begin, int64_t end) {
    std::vector<Beside> others;
    for (int64_t i = begin; i < end; ++i) {
      others.clear();
      for (int64_t j = 0; j < n; ++j)
        if (j != i) others.push_back({kernels::squared_distance(rows[i], rows[j], width), static_cast<int32_t>(j)});
      std::nth_element(others.begin(), others.begin() + (count - 1), others.end());
      std::sort(others.begin(), others.begin() + count);
      all[i].assign(others.begin(), others.begin() + count);
    }
  });
  return all;
}

}  // namespace tenon
