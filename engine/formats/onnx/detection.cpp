// ONNX operators of object detection, and of counting words.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

struct Box {
  double y0, x0, y1, x1;
  double area() const { return (y1 - y0) * (x1 - x0); }
};
double overlap(const Box& a, const Box& b) {
  const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (h <= 0 || w <= 0) return 0;
  return h * w / (a.area() + b.area() - h * w);
}

TENON_ONNX(NonMaxSuppression) {
  const Tensor boxes = contiguous(cast(c.input(0), DType::f64)), scores = contiguous(cast(c.input(1), DType::f64));
  if (boxes.ndim() != 3 || boxes.size(2) != 4 || scores.ndim() != 3 || scores.size(0) != boxes.size(0) ||
      scores.size(2) != boxes.size(1))
    throw Error(
        fmt::format("boxes of size {} and scores of size {}", to_string(boxes.size()), to_string(scores.size())));
  const int64_t most = c.has(2) ? c.whole(2) : 0, n = boxes.size(1);
  const double limit = c.has(3) ? item(c.in[3]) : 0, least = c.has(4) ? item(c.in[4]) : -INFINITY;
  const bool centres = c.node.integer("center_point_box", 0);
  need_work(static_cast<double>(scores.numel()) *
            static_cast<double>(std::clamp<int64_t>(most, 1, std::max<int64_t>(n, 1))));
  std::vector<int64_t> out;
  for (int64_t b = 0; b < boxes.size(0); ++b) {
    std::vector<Box> all;
    for (int64_t i = 0; i < n; ++i) {
      const double* v = boxes.data<double>() + (b * n + i) * 4;
      if (centres)
        all.push_back({v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2});
      else
        all.push_back({std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])});
    }
    for (int64_t k = 0; k < scores.size(1); ++k) {
      const double* score = scores.data<double>() + (b * scores.size(1) + k) * n;
      std::vector<int64_t> order;
      for (int64_t i = 0; i < n; ++i)
        if (score[i] > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return score[p] > score[q]; });
      std::vector<int64_t> kept;
      for (int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const bool taken = std::any_of(kept.begin(), kept.end(), [&](int64_t j) {
          return overlap(all[static_cast<size_t>(i)], all[static_cast<size_t>(j)]) > limit;
        });
        if (!taken) kept.push_back(i);
      }
      for (int64_t i : kept) out.insert(out.end(), {b, k, i});
    }
  }
  Tensor t = empty({static_cast<int64_t>(out.size() / 3), 3}, DType::i64);
  std::copy(out.begin(), out.end(), t.data<int64_t>());
  return {t};
}

/// The four corners round a point and their weights; all 0 beyond one pixel outside.
struct Corners {
  int64_t at[4] = {0, 0, 0, 0};
  double weight[4] = {0, 0, 0, 0};
  Corners(double y, double x, int64_t h, int64_t w) {
    if (!(y >= -1 && y <= static_cast<double>(h) && x >= -1 && x <= static_cast<double>(w))) return;
    auto bounds = [](double& v, int64_t n, int64_t& low, int64_t& high) {
      v = std::max(v, 0.0);
      low = static_cast<int64_t>(v);
      high = low + 1;
      if (low >= n - 1) v = static_cast<double>(high = low = n - 1);
    };
    int64_t y0, y1, x0, x1;
    bounds(y, h, y0, y1);
    bounds(x, w, x0, x1);
    const double ly = y - static_cast<double>(y0), lx = x - static_cast<double>(x0);
    const int64_t places[] = {y0 * w + x0, y0 * w + x1, y1 * w + x0, y1 * w + x1};
    const double weights[] = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
    std::copy(places, places + 4, at);
    std::copy(weights, weights + 4, weight);
  }
};

TENON_ONNX(RoiAlign) {
  const Tensor x = contiguous(cast(c.input(0), DType::f64)), rois = contiguous(cast(c.input(1), DType::f64));
  const std::vector<int64_t> batch = c.list(2, "");
  const int64_t ph = c.node.integer("output_height", 1), pw = c.node.integer("output_width", 1),
                sampling = c.node.integer("sampling_ratio", 0);
  const double scale = c.node.number("spatial_scale", 1);
  const bool largest = c.node.text("mode", "avg") == "max";
  const bool half =
      c.node.text("coordinate_transformation_mode", c.opset < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  if (x.ndim() != 4 || rois.ndim() != 2 || rois.size(1) != 4 || static_cast<int64_t>(batch.size()) != rois.size(0) ||
      ph < 1 || pw < 1 || ph > 1 << 16 || pw > 1 << 16 || sampling < 0 || sampling > (1 << 20))
    throw Error(
        fmt::format("regions of size {} do not fit an input of size {}", to_string(rois.size()), to_string(x.size())));
  const int64_t channels = x.size(1), h = x.size(2), w = x.size(3);
  if (h < 1 || w < 1) throw Error("an image without pixels");
  Tensor y = empty({rois.size(0), channels, ph, pw}, DType::f64);
  for (int64_t r = 0; r < rois.size(0); ++r) {
    const int64_t image = batch[static_cast<size_t>(r)];
    if (image < 0 || image >= x.size(0))
      throw Error(fmt::format("region {} is of image {}; there are {}", r, image, x.size(0)));
    const double* v = rois.data<double>() + r * 4;
    const double offset = half ? 0.5 : 0, x0 = v[0] * scale - offset, y0 = v[1] * scale - offset;
    double rw = v[2] * scale - offset - x0, rh = v[3] * scale - offset - y0;
    if (!half) {
      rw = std::max(rw, 1.0);
      rh = std::max(rh, 1.0);
    }
    if (!(std::abs(rw) < 1e6 && std::abs(rh) < 1e6))
      throw Error(fmt::format("region {} is {} by {} pixels", r, rw, rh));
    const double bh = rh / static_cast<double>(ph), bw = rw / static_cast<double>(pw);
    const int64_t gh = sampling > 0 ? sampling : static_cast<int64_t>(std::ceil(bh)),
                  gw = sampling > 0 ? sampling : static_cast<int64_t>(std::ceil(bw));
    need_work(static_cast<double>(gh) * static_cast<double>(gw) * static_cast<double>(ph * pw) *
              static_cast<double>(rois.size(0)));
    for (int64_t py = 0; py < ph; ++py)
      for (int64_t px = 0; px < pw; ++px) {
        std::vector<Corners> samples;
        for (int64_t iy = 0; iy < gh; ++iy)
          for (int64_t ix = 0; ix < gw; ++ix)
            samples.emplace_back(
                y0 + static_cast<double>(py) * bh + (static_cast<double>(iy) + 0.5) * bh / static_cast<double>(gh),
                x0 + static_cast<double>(px) * bw + (static_cast<double>(ix) + 0.5) * bw / static_cast<double>(gw), h,
                w);
        for (int64_t ch = 0; ch < channels; ++ch) {
          const double* plane = x.data<double>() + (image * channels + ch) * h * w;
          double total = 0, top = -INFINITY;
          for (const Corners& s : samples)
            for (int k = 0; k < 4; ++k) {
              const double part = s.weight[k] * plane[s.at[k]];
              total += part;
              top = std::max(top, part);
            }
          const double count = std::max<double>(1, static_cast<double>(gh * gw));
          y.data<double>()[((r * channels + ch) * ph + py) * pw + px] =
              largest ? (samples.empty() ? 0 : top) : total / count;
        }
      }
  }
  return {cast(y, c.input(0).dtype())};
}

TENON_ONNX(MaxRoiPool) {
  const Tensor x = contiguous(cast(c.input(0), DType::f64)), rois = contiguous(cast(c.input(1), DType::f64));
  const std::vector<int64_t> pooled = c.node.integers("pooled_shape");
  const double scale = c.node.number("spatial_scale", 1);
  if (x.ndim() != 4 || rois.ndim() != 2 || rois.size(1) != 5 || pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    throw Error(
        fmt::format("regions of size {} do not fit an input of size {}", to_string(rois.size()), to_string(x.size())));
  const int64_t channels = x.size(1), h = x.size(2), w = x.size(3);
  Tensor y = zeros({rois.size(0), channels, pooled[0], pooled[1]}, DType::f64);
  for (int64_t r = 0; r < rois.size(0); ++r) {
    const double* v = rois.data<double>() + r * 5;
    int64_t corner[4];
    for (int k = 0; k < 4; ++k) {
      if (!(std::abs(v[k + 1] * scale) < 1e9)) throw Error(fmt::format("region {} is absurd", r));
      corner[k] = static_cast<int64_t>(std::round(v[k + 1] * scale));
    }
    const int64_t image = v[0] >= 0 && v[0] < 0x1p40 ? static_cast<int64_t>(v[0]) : -1;
    if (image < 0 || image >= x.size(0))
      throw Error(fmt::format("region {} is of image {}; there are {}", r, image, x.size(0)));
    const double bh =
        static_cast<double>(std::max<int64_t>(corner[3] - corner[1] + 1, 1)) / static_cast<double>(pooled[0]);
    const double bw =
        static_cast<double>(std::max<int64_t>(corner[2] - corner[0] + 1, 1)) / static_cast<double>(pooled[1]);
    auto edge = [](double at, int64_t start, int64_t n) {
      return std::clamp<int64_t>(static_cast<int64_t>(at) + start, 0, n);
    };
    for (int64_t ch = 0; ch < channels; ++ch)
      for (int64_t py = 0; py < pooled[0]; ++py)
        for (int64_t px = 0; px < pooled[1]; ++px) {
          const int64_t y0 = edge(std::floor(static_cast<double>(py) * bh), corner[1], h),
                        y1 = edge(std::ceil(static_cast<double>(py + 1) * bh), corner[1], h);
          const int64_t x0 = edge(std::floor(static_cast<double>(px) * bw), corner[0], w),
                        x1 = edge(std::ceil(static_cast<double>(px + 1) * bw), corner[0], w);
          double top = y1 <= y0 || x1 <= x0 ? 0 : -INFINITY;
          for (int64_t i = y0; i < y1; ++i)
            for (int64_t j = x0; j < x1; ++j)
              top = std::max(top, x.data<double>()[((image * channels + ch) * h + i) * w + j]);
          y.data<double>()[((r * channels + ch) * pooled[0] + py) * pooled[1] + px] = top;
        }
  }
  return {cast(y, c.input(0).dtype())};
}

// Counts n-grams, of integers (strings are not supported), skipping up to max_skip_count elements between their
// members.
TENON_ONNX(TfIdfVectorizer) {
  if (c.node.find("pool_strings")) throw OnnxUnsupported("strings are not supported");
  const std::vector<int64_t> starts = c.node.integers("ngram_counts"), places = c.node.integers("ngram_indexes"),
                             pool = c.node.integers("pool_int64s");
  const int64_t shortest = c.node.integer("min_gram_length", 1), longest = c.node.integer("max_gram_length", 1),
                skips = c.node.integer("max_skip_count", 0);
  const std::string mode = c.node.text("mode", "");
  std::vector<double> weights;
  if (const auto* v = c.node.find("weights"))
    if (const auto* list = std::get_if<std::vector<double>>(v)) weights = *list;
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") throw Error(fmt::format("there is no mode \"{}\"", mode));
  if (shortest < 1 || longest < shortest || skips < 0 || longest > static_cast<int64_t>(starts.size()))
    throw Error(fmt::format("n-grams of {} to {} elements with {} skipped", shortest, longest, skips));
  int64_t columns = 0;
  for (int64_t p : places) {
    if (p < 0 || p > 1 << 24) throw Error(fmt::format("an n-gram at place {}", p));
    columns = std::max(columns, p + 1);
  }
  const Tensor x = contiguous(cast(c.input(0), DType::i64));
  if (x.ndim() < 1 || x.ndim() > 2)
    throw Error(fmt::format("an input of size {}; it has one or two axes", to_string(x.size())));
  const int64_t rows = x.ndim() == 2 ? x.size(0) : 1, length = x.size(-1);
  const int64_t skipped = std::min(skips, length);  // more would reach beyond the end
  need_work(static_cast<double>(pool.size()) * static_cast<double>(skipped + 1) * static_cast<double>(x.numel()));
  Tensor y = zeros({rows, columns}, DType::f32);
  int64_t number = 0;  // of the first n-gram of the length at hand
  for (size_t k = 0; k < starts.size(); ++k) {
    const int64_t n = static_cast<int64_t>(k) + 1, first = starts[k],
                  last = k + 1 < starts.size() ? starts[k + 1] : static_cast<int64_t>(pool.size());
    if (first < 0 || last < first || last > static_cast<int64_t>(pool.size()))
      throw Error("ngram_counts lie outside the pool");
    const int64_t grams = (last - first) / n;
    for (int64_t g = 0; g < grams; ++g) {
      if (number + g >= static_cast<int64_t>(places.size())) throw Error("there are more n-grams than ngram_indexes");
      if (n < shortest || n > longest) continue;
      const int64_t* gram = pool.data() + first + g * n;
      const int64_t column = places[static_cast<size_t>(number + g)];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t skip = 0; skip <= (n == 1 ? 0 : skipped); ++skip)
          for (int64_t i = 0; i + (n - 1) * (skip + 1) < length; ++i) {
            bool match = true;
            for (int64_t j = 0; match && j < n; ++j)
              match = x.data<int64_t>()[r * length + i + j * (skip + 1)] == gram[j];
            if (match) y.data<float>()[r * columns + column] += 1;
          }
    }
    number += grams;
  }
  for (size_t g = 0; g < places.size(); ++g)
    for (int64_t r = 0; r < rows; ++r) {
      float& v = y.data<float>()[r * columns + places[g]];
      if (mode == "IDF" && v > 0) v = 1;
    }
  if (mode != "TF" && !weights.empty()) {
    if (weights.size() != places.size())
      throw Error(fmt::format("{} weights for {} n-grams", weights.size(), places.size()));
    for (size_t g = 0; g < places.size(); ++g)
      for (int64_t r = 0; r < rows; ++r) y.data<float>()[r * columns + places[g]] *= static_cast<float>(weights[g]);
  }
  return {x.ndim() == 1 ? reshape(y, {columns}) : y};
}

}  // namespace
}  // namespace tenon::formats
