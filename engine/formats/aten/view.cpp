// Operators of PyTorch that move elements about.
#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/formats/aten/rule.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// Other sizes of the same elements.

/// Sizes as arguments: -1 is what is left, a name is known at a run.
void sized_anew(AtenCall& c, const char* name) {
  std::vector<AtenInt> to = c.sizes(name);
  const std::vector<OnnxDim>& from = c.shape("self");
  size_t open = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].name.empty() && to[i].value == 0) c.refuse("it makes a tensor without elements");
    if (to[i].name.empty()) {
      open += to[i].value < 0;
    } else if (i < from.size() && from[i].value < 0 && from[i].name == c.expression(to[i].name)) {
      to[i] = {0, {}};
    }
  }
  // One that only a run knows is what the others leave.
  const auto at_run = [](const AtenInt& n) { return !n.name.empty(); };
  if (open == 0 && std::count_if(to.begin(), to.end(), at_run) == 1)
    *std::find_if(to.begin(), to.end(), at_run) = {-1, {}};
  c.result(c.add("Reshape", {c.in("self"), c.whole(to)}));
}
TENON_ATEN(reshape) { sized_anew(c, "shape"); }
TENON_ATEN(view) { sized_anew(c, "size"); }
TENON_ATEN(_unsafe_view) { sized_anew(c, "size"); }
TENON_ATEN(view_as) { c.result(c.reshaped(c.in("self"), c.shape("self"), c.shape("other"))); }
TENON_ATEN(reshape_as) { c.result(c.reshaped(c.in("self"), c.shape("self"), c.shape("other"))); }
TENON_ATEN(flatten) {
  const int64_t n = c.rank("self");
  const int64_t first = c.axis("self", c.integer("start_dim")), last = c.axis("self", c.integer("end_dim"));
  if (n == 0) return c.result(c.add("Reshape", {c.in("self"), c.whole(AtenInts{1})}));
  if (first == last) return c.result(c.in("self"));
  if (first == 1 && last == n - 1) return c.result(c.add("Flatten", {c.in("self")}, {{"axis", int64_t{1}}}));
  AtenInts to(static_cast<size_t>(first), 0);
  to.push_back(-1);
  for (int64_t i = last + 1; i < n; ++i) to.push_back(c.size("self", i));
  c.result(c.add("Reshape", {c.in("self"), c.whole(to)}));
}
TENON_ATEN(unflatten) {
  const int64_t at = c.axis("self", c.integer("dim"));
  AtenInts to(static_cast<size_t>(at), 0);
  const AtenInts sizes = c.integers("sizes");
  to.insert(to.end(), sizes.begin(), sizes.end());
  for (int64_t i = at + 1; i < c.rank("self"); ++i) to.push_back(c.size("self", i));
  c.result(c.add("Reshape", {c.in("self"), c.whole(to)}));
}
void without_axes(AtenCall& c, AtenInts axes) {
  const std::vector<OnnxDim>& from = c.shape("self");
  for (int64_t& a : axes) a = c.axis("self", a);
  std::erase_if(axes, [&](int64_t a) { return from.at(static_cast<size_t>(a)).value != 1; });
  c.result(axes.empty() ? c.in("self") : c.add("Squeeze", {c.in("self"), c.whole(axes)}));
}
TENON_ATEN(squeeze) {
  if (c.knows("dim")) return without_axes(c, c.overload() == "dim" ? AtenInts{c.integer("dim")} : c.integers("dim"));
  AtenInts all(static_cast<size_t>(c.rank("self")));
  std::iota(all.begin(), all.end(), 0);
  without_axes(c, all);
}
TENON_ATEN(unsqueeze) {
  c.result(c.add("Unsqueeze", {c.in("self"), c.whole(AtenInts{c.axis("self", c.integer("dim"), 1)})}));
}
void in_order(AtenCall& c, AtenInts order) {
  AtenInts seen(order.size(), 0);
  for (int64_t& a : order) {
    a = c.axis("self", a);
    ++seen.at(static_cast<size_t>(a));
  }
  if (static_cast<int64_t>(order.size()) != c.rank("self") ||
      std::count(seen.begin(), seen.end(), 1) != std::ssize(seen))
    throw Error("its axes are not those of its input");
  if (std::is_sorted(order.begin(), order.end())) return c.result(c.in("self"));
  c.result(c.add("Transpose", {c.in("self")}, {{"perm", order}}));
}
void swapped_axes(AtenCall& c, int64_t a, int64_t b) {
  AtenInts order(static_cast<size_t>(c.rank("self")));
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty())
    std::swap(order.at(static_cast<size_t>(c.axis("self", a))), order.at(static_cast<size_t>(c.axis("self", b))));
  in_order(c, order);
}
TENON_ATEN(permute) { in_order(c, c.integers("dims")); }
TENON_ATEN(transpose) { swapped_axes(c, c.integer("dim0"), c.integer("dim1")); }
TENON_ATEN(swapaxes) { swapped_axes(c, c.integer("axis0"), c.integer("axis1")); }
TENON_ATEN(t) {
  if (c.rank("self") < 2) return c.result(c.in("self"));
  swapped_axes(c, 0, 1);
}
TENON_ATEN(numpy_T) {
  AtenInts order(static_cast<size_t>(c.rank("self")));
  std::iota(order.rbegin(), order.rend(), 0);
  in_order(c, order);
}
TENON_ATEN(movedim) {
  const bool one = c.overload() == "int";
  AtenInts from = one ? AtenInts{c.integer("source")} : c.integers("source"),
           to = one ? AtenInts{c.integer("destination")} : c.integers("destination");
  if (from.size() != to.size()) throw Error("as many axes leave as come");
  const auto n = static_cast<size_t>(c.rank("self"));
  AtenInts order(n, -1);
  std::vector<bool> moved(n, false);
  for (size_t i = 0; i < from.size(); ++i) {
    const auto source = static_cast<size_t>(c.axis("self", from[i])), goal = static_cast<size_t>(c.axis("self", to[i]));
    moved.at(source) = true;
    order.at(goal) = static_cast<int64_t>(source);
  }
  size_t next = 0;
  for (int64_t& o : order) {
    if (o >= 0) continue;
    while (next < n && moved[next]) ++next;
    o = static_cast<int64_t>(next++);
  }
  in_order(c, order);
}
void spread_to(AtenCall& c, const std::vector<AtenInt>& to) {
  // An axis that stays as it is has 1 there.
  std::vector<AtenInt> sizes = to;
  const std::vector<OnnxDim>& from = c.shape("self");
  if (sizes.size() < from.size()) throw Error("it names less axes than there are");
  const size_t more = sizes.size() - from.size();
  for (size_t i = more; i < sizes.size(); ++i) {
    const OnnxDim& d = from[i - more];
    if (sizes[i].name.empty() ? sizes[i].value < 0 || sizes[i].value == d.value
                              : d.value < 0 && d.name == c.expression(sizes[i].name))
      sizes[i] = {1, {}};
  }
  c.result(c.add("Expand", {c.in("self"), c.whole(sizes)}));
}
TENON_ATEN(expand) { spread_to(c, c.sizes("size")); }
TENON_ATEN(expand_as) { c.result(c.add("Expand", {c.in("self"), c.add("Shape", {c.in("other")})})); }
void repeated(AtenCall& c, std::vector<AtenInt> times) {
  std::string x = c.in("self");
  const int64_t more = static_cast<int64_t>(times.size()) - c.rank("self");
  if (more > 0) {
    AtenInts axes(static_cast<size_t>(more));
    std::iota(axes.begin(), axes.end(), 0);
    x = c.add("Unsqueeze", {x, c.whole(axes)});
  }
  for (int64_t k = more; k < 0; ++k) times.insert(times.begin(), {1, {}});
  c.result(c.add("Tile", {x, c.whole(times)}));
}
TENON_ATEN(repeat) {
  if (static_cast<int64_t>(c.sizes("repeats").size()) < c.rank("self"))
    throw Error("it repeats less axes than there are");
  repeated(c, c.sizes("repeats"));
}
TENON_ATEN(tile) { repeated(c, c.sizes("dims")); }

// Parts.

std::string part_of(AtenCall& c, const std::string& x, int64_t axis, const std::string& from, const std::string& to,
                    int64_t step = 1) {
  return c.add("Slice", {x, from, to, c.whole(AtenInts{axis}), c.whole(AtenInts{step})});
}
std::string part_of(AtenCall& c, int64_t axis, int64_t from, int64_t to, int64_t step = 1) {
  return part_of(c, c.in("self"), axis, c.whole(AtenInts{from}), c.whole(AtenInts{to}), step);
}
TENON_ATEN(slice) {
  const int64_t axis = c.axis("self", c.integer("dim")), step = c.integer("step");
  if (step < 1) c.refuse(fmt::format("its step is {}", step));
  const AtenInt from = c.has("start") ? c.sizes("start").at(0) : AtenInt{0, {}},
                to = c.has("end") ? c.sizes("end").at(0) : AtenInt{kToTheEnd, {}};
  if (step == 1 && from.name.empty() && from.value == 0 && to.name.empty() && to.value == kToTheEnd)
    return c.result(c.in("self"));
  c.result(
      part_of(c, c.in("self"), axis, c.whole(std::vector<AtenInt>{from}), c.whole(std::vector<AtenInt>{to}), step));
}
TENON_ATEN(narrow) {
  const int64_t from = c.integer("start"), length = c.integer("length");
  if (from < 0 || length < 0 || length > kToTheEnd - from) throw Error("its range leaves its input");
  c.result(part_of(c, c.axis("self", c.integer("dim")), from, from + length));
}
TENON_ATEN(select) {
  const std::string at = c.scalar_of(static_cast<double>(c.integer("index")), DType::i64);
  c.result(c.add("Gather", {c.in("self"), at}, {{"axis", c.axis("self", c.integer("dim"))}}));
}
void split_at(AtenCall& c, int64_t axis, const AtenInts& sizes) {
  if (sizes.size() != c.outputs())
    throw Error(fmt::format("it has {} parts and {} results", sizes.size(), c.outputs()));
  const auto parts = c.adds("Split", {c.in("self"), c.whole(sizes)}, {{"axis", axis}}, sizes.size());
  for (size_t k = 0; k < parts.size(); ++k) c.result(parts[k], k);
}
/// As many parts of a size as there are results; the last has what is left.
void split_evenly(AtenCall& c, int64_t axis, int64_t each) {
  const int64_t n = c.size("self", axis), count = static_cast<int64_t>(c.outputs());
  if (each < 1 || count < 1 || each > n || (count - 1) > n / each)
    throw Error(fmt::format("parts of {} of a size of {}", each, n));
  AtenInts sizes(static_cast<size_t>(count), each);
  sizes.back() = n - each * (count - 1);
  if (sizes.back() < 0) throw Error(fmt::format("{} parts of {} of a size of {}", count, each, n));
  split_at(c, axis, sizes);
}
TENON_ATEN(split) { split_evenly(c, c.axis("self", c.integer("dim")), c.integer("split_size")); }
TENON_ATEN(split_with_sizes) { split_at(c, c.axis("self", c.integer("dim")), c.integers("split_sizes")); }
TENON_ATEN(chunk) {
  const int64_t axis = c.axis("self", c.integer("dim")), n = c.size("self", axis), chunks = c.integer("chunks");
  if (chunks < 1) throw Error(fmt::format("{} chunks", chunks));
  split_evenly(c, axis, n / chunks + (n % chunks != 0));
}
TENON_ATEN(unbind) {
  const int64_t axis = c.axis("self", c.integer("dim"));
  for (size_t k = 0; k < c.outputs(); ++k)
    c.result(c.add("Gather", {c.in("self"), c.scalar_of(static_cast<double>(k), DType::i64)}, {{"axis", axis}}), k);
}
TENON_ATEN(index_select) {
  c.result(c.add("Gather", {c.in("self"), c.in("index")}, {{"axis", c.axis("self", c.integer("dim"))}}));
}
TENON_ATEN(gather) {
  c.result(c.add("GatherElements", {c.in("self"), c.in("index")}, {{"axis", c.axis("self", c.integer("dim"))}}));
}
/// Places along several axes, which are spread over each other: points of the axes, of which the rest is taken.
void taken_at_points(AtenCall& c, const std::vector<std::string>& places, const AtenInts& axes) {
  const int64_t n = c.rank("self");
  size_t most = 0;
  for (const std::string& p : places)
    if (!p.empty()) most = std::max(most, c.meta_of(p).sizes.size());
  std::vector<std::string> parts, values = c.in_list("indices");
  std::string all;
  for (int64_t a : axes) {
    const std::string& v = values[static_cast<size_t>(a)];
    all = all.empty() ? v : c.add("Add", {all, v});
  }
  const std::string size = c.add("Shape", {all});
  for (int64_t a : axes) {
    const std::string wide = c.add("Expand", {values[static_cast<size_t>(a)], size});
    parts.push_back(c.add("Unsqueeze", {wide, c.whole(AtenInts{-1})}));
  }
  AtenInts order = axes, back;
  for (int64_t i = 0; i < n; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
  const std::string points = c.add("Concat", parts, {{"axis", int64_t{-1}}}),
                    turned = c.add("Transpose", {c.in("self")}, {{"perm", order}});
  const std::string y = c.add("GatherND", {turned, points});
  // The places stand where the axes were, if those lie beside each other; in front otherwise.
  const bool beside = axes.back() - axes.front() + 1 == std::ssize(axes);
  if (!beside || axes.front() == 0) return c.result(y);
  const auto k = static_cast<int64_t>(most);
  for (int64_t i = 0; i < axes.front(); ++i) back.push_back(k + i);
  for (int64_t i = 0; i < k; ++i) back.push_back(i);
  for (int64_t i = axes.front(); i < n - std::ssize(axes); ++i) back.push_back(k + i);
  c.result(c.add("Transpose", {y}, {{"perm", back}}));
}
TENON_ATEN(index) {
  const std::vector<std::string> at = c.tensor_names("indices");
  AtenInts axes;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i].empty()) continue;
    axes.push_back(c.axis("self", static_cast<int64_t>(i)));
    const AtenTensor& places = c.meta_of(at[i]);
    if (!places.typed || !is_integral(places.dtype)) c.refuse("its places are no whole numbers");
  }
  if (axes.empty()) return c.result(c.in("self"));
  if (axes.size() > 1) return taken_at_points(c, at, axes);
  c.result(c.add("Gather", {c.in("self"), c.in_list("indices")[static_cast<size_t>(axes[0])]}, {{"axis", axes[0]}}));
}
TENON_ATEN(flip) {
  std::string x = c.in("self");
  for (int64_t a : c.integers("dims"))
    x = part_of(c, x, c.axis("self", a), c.whole(AtenInts{-1}), c.whole(AtenInts{-kToTheEnd}), -1);
  c.result(x);
}
TENON_ATEN(roll) {
  const AtenInts by = c.integers("shifts"), axes = c.integers("dims");
  if (by.size() != axes.size()) c.refuse("it is over all elements");
  std::string x = c.in("self");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = c.axis("self", axes[i]), n = c.size("self", axis), shift = n < 1 ? 0 : (by[i] % n + n) % n;
    if (shift == 0) continue;
    const std::string end = part_of(c, x, axis, c.whole(AtenInts{n - shift}), c.whole(AtenInts{kToTheEnd})),
                      rest = part_of(c, x, axis, c.whole(AtenInts{0}), c.whole(AtenInts{n - shift}));
    x = c.add("Concat", {end, rest}, {{"axis", axis}});
  }
  c.result(x);
}

// Several tensors.

TENON_ATEN(cat) {
  const std::vector<std::string> names = c.tensor_names("tensors");
  if (names.empty()) throw Error("it joins no tensors");
  DType t = DType::boolean;
  for (const std::string& n : names) t = promote(t, c.meta_of(n).dtype);
  std::vector<std::string> parts = c.in_list("tensors");
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = c.cast_to(parts[i], c.meta_of(names[i]).dtype, t);
  const auto axes = static_cast<int64_t>(c.meta_of(names[0]).sizes.size());
  const int64_t axis = c.integer("dim");
  c.result(c.add("Concat", parts, {{"axis", axis < 0 ? axis + axes : axis}}));
}
TENON_ATEN(stack) {
  const std::vector<std::string> names = c.tensor_names("tensors");
  if (names.empty()) throw Error("it joins no tensors");
  const auto axes = static_cast<int64_t>(c.meta_of(names[0]).sizes.size());
  const int64_t dim = c.integer("dim"), axis = dim < 0 ? dim + axes + 1 : dim;
  std::vector<std::string> parts;
  for (const std::string& x : c.in_list("tensors")) parts.push_back(c.add("Unsqueeze", {x, c.whole(AtenInts{axis})}));
  c.result(c.add("Concat", parts, {{"axis", axis}}));
}

// The same elements.

void unchanged(AtenCall& c) {
  const auto wanted = c.knows("dtype") ? c.type("dtype") : std::nullopt;
  c.result(wanted ? c.cast_to(c.in("self"), c.dtype("self"), *wanted) : c.in("self"));
}
TENON_ATEN(contiguous) { unchanged(c); }
TENON_ATEN(clone) { unchanged(c); }
TENON_ATEN(detach) { unchanged(c); }
TENON_ATEN(alias) { unchanged(c); }
TENON_ATEN(lift_fresh) { unchanged(c); }
TENON_ATEN(lift_fresh_copy) { unchanged(c); }
TENON_ATEN(to) { unchanged(c); }
TENON_ATEN(_to_copy) { unchanged(c); }
TENON_ATEN(type_as) { c.result(c.cast_to(c.in("self"), c.dtype("self"), c.dtype("other"))); }

// Around and within.

/// `last_first`: of the last axis first, before and behind.
void surrounded(AtenCall& c, const AtenInts& last_first, const std::string& mode, double value) {
  const auto n = static_cast<size_t>(c.rank("self"));
  if (last_first.size() % 2 || last_first.size() / 2 > n) throw Error("its paddings are not of its axes");
  AtenInts pads(2 * n, 0);
  for (size_t k = 0; k < last_first.size() / 2; ++k) {
    pads[n - 1 - k] = last_first[2 * k];
    pads[2 * n - 1 - k] = last_first[2 * k + 1];
  }
  std::vector<std::string> in = {c.in("self"), c.whole(pads)};
  if (mode == "constant") in.push_back(c.scalar_of(value, c.dtype("self")));
  c.result(c.add("Pad", in, {{"mode", mode}}));
}
TENON_ATEN(constant_pad_nd) { surrounded(c, c.integers("pad"), "constant", c.number("value")); }
TENON_ATEN(pad) {
  const std::string mode = c.text("mode");
  const std::string in_onnx = mode == "replicate" ? "edge" : mode == "circular" ? "wrap" : mode;
  surrounded(c, c.integers("pad"), in_onnx, c.has("value") ? c.number("value") : 0);
}
TENON_ATEN(reflection_pad1d) { surrounded(c, c.integers("padding"), "reflect", 0); }
TENON_ATEN(reflection_pad2d) { surrounded(c, c.integers("padding"), "reflect", 0); }
TENON_ATEN(reflection_pad3d) { surrounded(c, c.integers("padding"), "reflect", 0); }
TENON_ATEN(replication_pad1d) { surrounded(c, c.integers("padding"), "edge", 0); }
TENON_ATEN(replication_pad2d) { surrounded(c, c.integers("padding"), "edge", 0); }
TENON_ATEN(replication_pad3d) { surrounded(c, c.integers("padding"), "edge", 0); }
TENON_ATEN(pixel_shuffle) {
  if (c.rank("self") != 4) c.refuse("its input has no axis of samples");
  c.result(c.add("DepthToSpace", {c.in("self")},
                 {{"blocksize", c.integer("upscale_factor")}, {"mode", std::string("CRD")}}));
}
TENON_ATEN(pixel_unshuffle) {
  const int64_t r = c.integer("downscale_factor");
  if (c.rank("self") != 4) c.refuse("its input has no axis of samples");
  const int64_t channels = c.size("self", 1), rows = c.size("self", 2), columns = c.size("self", 3);
  if (r < 1 || r > (1 << 20) || rows % r || columns % r) throw Error("its sizes are no multiples");
  const std::string six = c.add("Reshape", {c.in("self"), c.whole(AtenInts{0, channels, rows / r, r, columns / r, r})}),
                    turned = c.add("Transpose", {six}, {{"perm", AtenInts{0, 1, 3, 5, 2, 4}}});
  c.result(c.add("Reshape", {turned, c.whole(AtenInts{0, -1, rows / r, columns / r})}));
}
void triangle(AtenCall& c, int64_t upper) {
  const std::string diagonal = c.scalar_of(static_cast<double>(c.integer("diagonal")), DType::i64);
  c.result(c.add("Trilu", {c.in("self"), diagonal}, {{"upper", upper}}));
}
TENON_ATEN(tril) { triangle(c, 0); }
TENON_ATEN(triu) { triangle(c, 1); }

}  // namespace
}  // namespace tenon::formats
