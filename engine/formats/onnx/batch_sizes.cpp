#include "engine/formats/onnx/batch_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"

namespace tenon::formats {
namespace {

using Ints = std::vector<int64_t>;

int64_t product_of(const Ints& sizes, size_t from, size_t to) {
  return std::accumulate(sizes.begin() + static_cast<int64_t>(from), sizes.begin() + static_cast<int64_t>(to),
                         int64_t{1}, std::multiplies<>());
}
Ints list_of(const Shape& s) { return {s.begin(), s.end()}; }

/// The sizes without a -1; nothing where they do not hold that many elements.
std::optional<Ints> with_open_filled(Ints sizes, int64_t elements) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) {
    *open = 1;
    const int64_t others = product_of(sizes, 0, sizes.size());
    if (others <= 0 || elements % others) return {};
    *open = elements / others;
  }
  if (product_of(sizes, 0, sizes.size()) != elements) return {};
  return sizes;
}

std::vector<size_t> differing(const Ints& a, const Ints& b) {
  std::vector<size_t> places;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) places.push_back(i);
  return places;
}

/// Where the samples lie in what arrives: one axis is `batch` times `inner`, behind `before` elements of other axes.
struct Samples {
  int64_t before = 1, inner = 1;
};
Samples samples_of(const AtTwoBatches<Shape>& from, const AtTwoBatches<int64_t>& batch) {
  const Ints at = list_of(from.at), again = list_of(from.again);
  const std::vector<size_t> axes = at.size() == again.size() ? differing(at, again) : std::vector<size_t>();
  if (axes.size() != 1 || at[axes[0]] % batch.at || again[axes[0]] / batch.again != at[axes[0]] / batch.at)
    throw Error("no one axis of what arrives is that of the samples");
  return {product_of(at, 0, axes[0]), at[axes[0]] / batch.at};
}

/// Sizes that are numbers, for `batch` samples that arrive: where those stand that they were written for.
BatchSizes of_numbers(Ints sizes, int64_t elements, const Samples& samples, int64_t batch,
                      std::optional<int64_t> written) {
  const int64_t one = elements / batch;  // of a sample
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open == sizes.end()) {
    const int64_t all = product_of(sizes, 0, sizes.size());
    if (one <= 0 || all <= 0 || all % one)
      throw Error(fmt::format("its sizes hold {} elements, and a sample {}", all, one));
    written = all / one;
  }
  std::vector<size_t> places, alone;
  for (size_t i = 0; i < sizes.size() && sizes[i] != -1; ++i) {
    const int64_t before = product_of(sizes, 0, i);
    if (before != samples.before && before != samples.before * samples.inner) continue;
    if (written && sizes[i] % *written) continue;
    places.push_back(i);
    if (!written || sizes[i] == *written) alone.push_back(i);
  }
  // Axes of one sample beside each other are all the same: the first is the batch's.
  const bool first = !alone.empty() && sizes[alone[0]] == 1;
  if (places.size() > 1 && (alone.size() == 1 || first)) places = {alone[0]};
  if (places.size() != 1) throw Error("which of its sizes is the number of samples does not follow from them");
  const size_t at = places[0];
  if (open != sizes.end()) {
    if (!written) written = sizes[at];
    sizes[at] /= *written;
    *open = 1;
    const int64_t others = product_of(sizes, 0, sizes.size());
    if (others <= 0 || one % others)
      throw Error(fmt::format("its sizes, of {} elements, do not divide the {} of a sample", others, one));
    *open = one / others;
  }
  sizes[at] = -1;
  return {std::move(sizes), written};
}

}  // namespace

BatchSizes reshape_of_any_batch(const AtTwoBatches<Shape>& from, const AtTwoBatches<std::vector<int64_t>>& to,
                                const AtTwoBatches<int64_t>& batch, std::optional<int64_t> written_for) {
  if (to.at.size() != to.again.size()) throw Error("how many sizes it is asked for depends on the number of samples");
  const std::optional<Ints> at = with_open_filled(to.at, from.at.product()),
                            again = with_open_filled(to.again, from.again.product());
  if (at && again) {
    const std::vector<size_t> places = differing(*at, *again);
    if (places.empty()) return {*at, {}};
    // A -1 behind more elements than lie before a sample is not what the samples are in: a number took a part of them.
    const auto behind = [&] {
      const Samples samples = samples_of(from, batch);
      return product_of(*at, 0, places[0]) <= samples.before * samples.inner;
    };
    if (places.size() == 1 && (to.at != to.again || behind())) {
      Ints sizes = *at;
      sizes[places[0]] = -1;
      return {std::move(sizes), {}};
    }
    if (to.at != to.again) throw Error("the number of samples is in several of its sizes");
  }
  if (to.at != to.again) throw Error("its sizes hold another number of elements than arrive");
  return of_numbers(to.at, from.at.product(), samples_of(from, batch), batch.at, written_for);
}

BatchSizes expand_of_any_batch(const AtTwoBatches<Shape>& from, const AtTwoBatches<std::vector<int64_t>>& to,
                               const AtTwoBatches<int64_t>& batch) {
  if (to.at.size() != to.again.size()) throw Error("how many sizes it is asked for depends on the number of samples");
  BatchSizes made{to.at, {}};
  for (size_t i = 0; i < to.at.size(); ++i) {
    const int axis = static_cast<int>(i) - static_cast<int>(to.at.size()) + from.at.n;
    const int64_t at = axis < 0 ? 1 : from.at[axis], again = axis < 0 ? 1 : from.again[axis];
    if (to.at[i] != to.again[i]) {
      if (at != to.at[i] || again != to.again[i]) throw Error("it repeats what arrives once for each sample");
      made.sizes[i] = 1;
    } else if (at != again && to.at[i] != 1) {  // a number, where the samples are
      if (at != batch.at) throw Error("a number of samples stands in a size of several rows a sample");
      made.written_for = to.at[i];
      made.sizes[i] = 1;
    }
  }
  return made;
}

}  // namespace tenon::formats
