#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/formats/onnx/importer.h"
#include "engine/ops/view.h"

// What the rules of importing (import_*.cpp) are written with.
// TENON_IMPORT(Relu) { ... }: how nodes of the operator Relu become layers; `m` is the model on its way, at the node.
#define TENON_IMPORT(TYPE)                                            \
  bool import_##TYPE(Importer& m);                                    \
  const bool imported_##TYPE = register_import(#TYPE, import_##TYPE); \
  bool import_##TYPE(Importer& m)

namespace tenon::formats::importing {

using Ints = std::vector<int64_t>;
using Value = Importer::Value;
using Weights = std::vector<Importer::Weight>;

inline bool one_layer(Importer& m, const char* type, std::vector<Attr> attrs = {}) {
  if (!m.dynamic(0)) return false;
  m.result(m.add(type, std::move(attrs), {m.in(0)}));
  return true;
}
inline bool as_it_is(Importer& m) {
  m.result(m.in(0));
  return true;
}
inline bool near(std::optional<double> x, double y) {
  return x && std::abs(*x - y) <= 1e-4 * std::max(1.0, std::abs(y));
}
/// Of nodes that read what a recurrent layer makes: where they take the axis of directions away, its layer's own output
/// is their result. False where the node is none of those.
bool read_in_one_row(Importer& m);
inline int64_t wrapped(int64_t axis, int axes) { return axis < 0 ? axis + axes : axis; }
inline Tensor flat(const Tensor& t) { return reshape(contiguous(t), {t.numel()}); }
inline const char* by_axes(const std::vector<const char*>& types, int axes) {
  if (axes < 1 || axes > static_cast<int>(types.size())) throw Error(fmt::format("{} axes behind the channels", axes));
  return types[static_cast<size_t>(axes) - 1];
}

}  // namespace tenon::formats::importing
