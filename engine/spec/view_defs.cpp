// The views that a chain may hold, as PyTorch names them.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "engine/spec/view_chain.h"

namespace tenon {
namespace {

ViewResult reshaped(const Layout& of, const Shape& to) {
  const Shape size = infer_view_size(of.size, to);
  Layout out;
  if (of.view(size, out)) return {out};
  return {Layout::contiguous(size), why_no_view(of, size)};
}

ViewResult packed(const Layout& of, const Layout& as, bool there) {
  if (there) return {of};
  return {as, "its elements do not lie in that order"};
}

int axis_of(const Layout& of, const ViewArgs& args, size_t i) { return wrap_axis(args.number(i), of.ndim()); }

/// Any strides over the memory, as far as they stay in it.
ViewResult any_strides(const Layout& of, const ViewArgs& args, int64_t storage) {
  args.expect(2, 3);
  Layout l{args.dims(0), args.dims(1), args.number(2, of.offset)};
  if (l.size.n != l.stride.n)
    throw Error::usage(fmt::format("{} sizes and {} strides do not go together", l.size.n, l.stride.n));
  if (std::any_of(l.size.begin(), l.size.end(), [](int64_t n) { return n < 0; }))
    throw Error::usage(fmt::format("a size below 0 in {}", to_string(l.size)));
  int64_t count = 1, low = l.offset, high = l.offset, reach = 0;
  bool counted = true;
  for (int i = 0; i < l.ndim(); ++i) {
    counted &= !__builtin_mul_overflow(count, l.size[i], &count);
    counted &= !__builtin_mul_overflow(l.size[i] - 1, l.stride[i], &reach);
    counted &= !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
  }
  if (!counted) throw Error::usage(fmt::format("{} has more elements than can be counted", to_string(l.size)));
  if (l.numel() > 0 && (low < 0 || high >= storage))
    throw Error::usage(fmt::format("it reads elements {} to {} of a memory of {}", low, high, storage));
  return {l};
}

const bool registered_view_forms =
    register_view_form({"view", ".view(6, -1)", "another shape of the same elements in their order; never copies",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          ViewResult r = reshaped(of, args.dims());
                          if (!r.copies.empty()) throw Error::usage(r.copies, "reshape copies where a view cannot be");
                          return r;
                        }}) &&
    register_view_form({"reshape", ".reshape(6, -1)", "the same, and copies where no strides do it",
                        [](const Layout& of, const ViewArgs& args, int64_t) { return reshaped(of, args.dims()); }}) &&
    register_view_form({"flatten", ".flatten(1)", "axes from one on, to one, as one",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(0, 2);
                          if (of.ndim() == 0) return reshaped(of, Shape{1});
                          const int from = wrap_axis(args.number(0, 0), of.ndim()),
                                    to = wrap_axis(args.number(1, -1), of.ndim());
                          if (from > to) throw Error::usage(fmt::format("axis {} stands behind axis {}", from, to));
                          Shape size;
                          for (int a = 0; a < of.ndim(); ++a) {
                            if (a > from && a <= to)
                              size[size.n - 1] *= of.size[a];
                            else
                              size.push_back(of.size[a]);
                          }
                          return reshaped(of, size);
                        }}) &&
    register_view_form({"permute", ".permute(1, 0)", "the axes in another order",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          const Dims axes = args.dims();
                          if (axes.n != of.ndim())
                            throw Error::usage(
                                fmt::format("{} axes for the {} of {}", axes.n, of.ndim(), to_string(of.size)));
                          return ViewResult{of.permute(axes)};
                        }}) &&
    register_view_form({"transpose", ".transpose(0, 1)", "two axes change places",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(2, 2);
                          return ViewResult{of.transpose(axis_of(of, args, 0), axis_of(of, args, 1))};
                        }}) &&
    register_view_form({"T", ".T", "the axes in the opposite order",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(0, 0);
                          Dims axes;
                          for (int a = of.ndim(); a-- > 0;) axes.push_back(a);
                          return ViewResult{of.permute(axes)};
                        }}) &&
    register_view_form(
        {"expand", ".expand(4, -1, 3)", "axes of size 1 as often as said, by strides of 0",
         [](const Layout& of, const ViewArgs& args, int64_t) { return ViewResult{of.expand(args.dims())}; }}) &&
    register_view_form({"unsqueeze", ".unsqueeze(0)", "an axis of size 1 more",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(1, 1);
                          if (of.ndim() == kMaxDims)
                            throw Error::usage(fmt::format("a tensor has at most {} axes", kMaxDims));
                          return ViewResult{of.unsqueeze(wrap_axis(args.number(0), of.ndim() + 1))};
                        }}) &&
    register_view_form({"squeeze", ".squeeze(0)", "without an axis of size 1, or without all of them",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(0, 1);
                          if (args.count()) return ViewResult{of.squeeze(axis_of(of, args, 0))};
                          Layout l = of;
                          for (int a = of.ndim(); a-- > 0;) l = l.squeeze(a);
                          return ViewResult{l};
                        }}) &&
    register_view_form({"flip", ".flip(0)", "axes backwards, by negative strides (PyTorch copies here)",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          Layout l = of;
                          for (const int64_t axis : args.dims()) l = l.flip(wrap_axis(axis, of.ndim()));
                          return ViewResult{l};
                        }}) &&
    register_view_form({"select", ".select(0, 2)", "one index of an axis, which is gone then",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(2, 2);
                          return ViewResult{of.select(axis_of(of, args, 0), args.number(1))};
                        }}) &&
    register_view_form({"narrow", ".narrow(0, 1, 2)", "of an axis, from an index on so many",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(3, 3);
                          const int axis = axis_of(of, args, 0);
                          const int64_t from = args.number(1), n = args.number(2);
                          if (from < 0 || n < 0 || from + n > of.size[axis])
                            throw Error::usage(fmt::format("{} from {} on are not in axis {} of size {}", n, from, axis,
                                                           of.size[axis]));
                          return ViewResult{of.slice(axis, from, from + n)};
                        }}) &&
    register_view_form({"unfold", ".unfold(0, 3, 1)", "windows over an axis: which, how wide, how far apart",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(3, 3);
                          if (of.ndim() == kMaxDims)
                            throw Error::usage(fmt::format("a tensor has at most {} axes", kMaxDims));
                          return ViewResult{of.unfold(axis_of(of, args, 0), args.number(1), args.number(2))};
                        }}) &&
    register_view_form({"diagonal", ".diagonal(0, 0, 1)", "a diagonal: its shift, and the two axes",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(0, 3);
                          return ViewResult{of.diagonal(args.number(0, 0), wrap_axis(args.number(1, 0), of.ndim()),
                                                        wrap_axis(args.number(2, 1), of.ndim()))};
                        }}) &&
    register_view_form({"as_strided", ".as_strided([2, 3], [3, 1], 0)", "any size, strides and offset", any_strides}) &&
    register_view_form({"contiguous", ".contiguous()", "side by side in the order of the axes; copies where it is not",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(0, 0);
                          return packed(of, Layout::contiguous(of.size), of.is_contiguous());
                        }}) &&
    register_view_form({"channels_last", ".channels_last()", "with axis 1 innermost; copies where it is not",
                        [](const Layout& of, const ViewArgs& args, int64_t) {
                          args.expect(0, 0);
                          if (of.ndim() != 4) throw Error::usage("it takes 4 axes: batch, channels, height, width");
                          return packed(of, Layout::channels_last(of.size), of.is_channels_last());
                        }});

}  // namespace
}  // namespace tenon
