// Data sets that need no files: pictures of shapes (to classify, or with a mask to segment), time series, clicks. Row i
// of each is a pure function of (seed, split, i).
#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "engine/data/dataset.h"

namespace tenon::data {
namespace {

/// Numbers of one row.
class Row {
 public:
  Row(uint64_t seed, uint64_t stream, int64_t row) : random_{seed, stream}, next_(static_cast<uint64_t>(row) << 20) {}
  double uniform(double low, double high) { return low + (high - low) * random_.uniform_double(next_++); }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(next_++, static_cast<uint64_t>(n))); }
  double normal() {
    next_ += next_ % 2;
    double x = random_.normal(next_);
    next_ += 2;
    return x;
  }

 private:
  Philox random_;
  uint64_t next_;
};

/// One shape: whether a point of the unit square is in it. Kinds: disc, square, triangle, ring, cross.
struct Figure {
  int64_t kind;
  double x, y, r, turn;
  bool holds(double px, double py) const {
    double c = std::cos(turn), s = std::sin(turn), dx = px - x, dy = py - y, u = (c * dx + s * dy) / r,
           v = (c * dy - s * dx) / r;
    double d2 = u * u + v * v;
    switch (kind) {
      case 0:
        return d2 < 1;
      case 1:
        return std::abs(u) < 0.85 && std::abs(v) < 0.85;
      case 2:
        return v > -0.6 && v < 1.1 - 1.9 * std::abs(u);
      case 3:
        return d2 < 1 && d2 > 0.35;
      default:
        return std::max(std::abs(u), std::abs(v)) < 1 && std::min(std::abs(u), std::abs(v)) < 0.3;
    }
  }
};
constexpr const char* kFigures[] = {"disc", "square", "triangle", "ring", "cross"};

/// Figures of any colour on a background of any colour, with noise. As classes, 10 of them: the five figures, filled or
/// striped.
class Shapes : public Dataset {
 public:
  Shapes(uint64_t seed, const char* stream, int64_t samples, int64_t channels, int64_t side, double noise, bool masks)
      : seed_(seed),
        stream_(stream_of(stream)),
        samples_(samples),
        channels_(channels),
        side_(side),
        noise_(noise),
        masks_(masks) {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::f32, {}, {channels_, side_, side_}}; }
  Meta target() const override { return {DType::i64, {}, masks_ ? Shape{side_, side_} : Shape{}}; }
  int64_t classes() const override { return masks_ ? 4 : 10; }
  std::string class_name(int64_t i) const override {
    if (i < 0 || i >= classes()) return std::to_string(i);
    if (masks_) return i == 0 ? "background" : kFigures[i - 1];
    return std::string(i < 5 ? "" : "striped ") + kFigures[i % 5];
  }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    const int64_t pixels = side_ * side_;
    for (int64_t i = 0; i < count; ++i) {
      int64_t* mask = static_cast<int64_t*>(y) + i * (masks_ ? pixels : 1);
      draw(rows[i], static_cast<float*>(x) + i * channels_ * pixels, mask);
    }
  }

 private:
  void draw(int64_t row, float* x, int64_t* target) const {
    Row random(seed_, stream_, row);
    double back[3], fore[3];
    for (double& b : back) b = random.uniform(-1, 1);
    const int64_t label = masks_ ? 0 : random.below(10), figures = masks_ ? 1 + random.below(3) : 1,
                  pixels = side_ * side_;
    for (int64_t c = 0; c < channels_; ++c)
      std::fill(x + c * pixels, x + (c + 1) * pixels, static_cast<float>(back[c]));
    if (masks_)
      std::fill(target, target + pixels, int64_t{0});
    else
      *target = label;
    for (int64_t f = 0; f < figures; ++f) {
      // A colour far enough from the background to be seen.
      for (int c = 0; c < 3; ++c) fore[c] = back[c] + (random.below(2) ? 1 : -1) * random.uniform(0.5, 1.2);
      Figure figure{masks_ ? random.below(3) : label % 5, random.uniform(0.25, 0.75), random.uniform(0.25, 0.75),
                    random.uniform(0.14, 0.3), random.uniform(-0.5, 0.5)};
      const bool striped = !masks_ && label >= 5;
      for (int64_t i = 0; i < side_; ++i)
        for (int64_t j = 0; j < side_; ++j) {
          if (!figure.holds((static_cast<double>(j) + 0.5) / static_cast<double>(side_),
                            (static_cast<double>(i) + 0.5) / static_cast<double>(side_)))
            continue;
          if (masks_) target[i * side_ + j] = figure.kind + 1;
          if (striped && (i + j) / 2 % 2) continue;
          for (int64_t c = 0; c < channels_; ++c) x[c * pixels + i * side_ + j] = static_cast<float>(fore[c]);
        }
    }
    for (int64_t k = 0; k < channels_ * pixels; ++k) x[k] += static_cast<float>(noise_ * random.normal());
  }

  uint64_t seed_, stream_;
  int64_t samples_, channels_, side_;
  double noise_;
  bool masks_;
};

/// Two waves, a slope and noise; the target is how they go on after the window: [horizon] values.
class Series : public Dataset {
 public:
  Series(uint64_t seed, const char* stream, int64_t samples, int64_t length, int64_t horizon, double noise)
      : seed_(seed), stream_(stream_of(stream)), samples_(samples), length_(length), horizon_(horizon), noise_(noise) {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::f32, {}, {length_, 1}}; }
  Meta target() const override { return {DType::f32, {}, {horizon_}}; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      Row random(seed_, stream_, rows[i]);
      double f1 = random.uniform(0.02, 0.08), f2 = random.uniform(0.1, 0.25), p1 = random.uniform(0, 2 * M_PI),
             p2 = random.uniform(0, 2 * M_PI);
      double a = random.uniform(0.3, 0.8), b = random.uniform(0.1, 0.4), slope = random.uniform(-0.01, 0.01);
      auto wave = [&](int64_t t) {
        auto at = static_cast<double>(t);
        return a * std::sin(2 * M_PI * f1 * at + p1) + b * std::sin(2 * M_PI * f2 * at + p2) + slope * at;
      };
      for (int64_t t = 0; t < length_; ++t)
        static_cast<float*>(x)[i * length_ + t] = static_cast<float>(wave(t) + noise_ * random.normal());
      for (int64_t t = 0; t < horizon_; ++t)
        static_cast<float*>(y)[i * horizon_ + t] = static_cast<float>(wave(length_ + t));
    }
  }

 private:
  uint64_t seed_, stream_;
  int64_t samples_, length_, horizon_;
  double noise_;
};

/// A log of adverts shown: 4 counts, the user's group, the item, the place, and the last 5 items the user clicked; the
/// target is whether it was clicked. Users and items have hidden tastes, so what was clicked before says what will be.
class Clicks : public Dataset {
 public:
  static constexpr int64_t kCounts = 4, kBag = 5, kWidth = kCounts + 3 + kBag;
  Clicks(uint64_t seed, const char* stream, int64_t samples, int64_t users, int64_t items)
      : seed_(seed), stream_(stream_of(stream)), samples_(samples), users_(users), items_(items) {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::i64, {}, {kWidth}}; }
  Meta target() const override { return {DType::f32, {}, {1}}; }
  std::string task() const override { return "binary"; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      Row random(seed_, stream_, rows[i]);
      int64_t* to = static_cast<int64_t*>(x) + i * kWidth;
      int64_t user = random.below(users_), item = random.below(items_), place = random.below(4);
      // What kind of thing the user is after at the moment is only to be seen in the history.
      double mood = random.uniform(-1.5, 1.5);
      for (int64_t k = 0; k < kBag; ++k) {
        int64_t best = random.below(items_);
        for (int tries = 0; tries < 3; ++tries) {
          int64_t other = random.below(items_);
          if (std::abs(taste("item mood", other) - mood) < std::abs(taste("item mood", best) - mood)) best = other;
        }
        to[kCounts + 3 + k] = best;
      }
      double seen = std::floor(std::exp(random.uniform(0, 4))), hour = static_cast<double>(random.below(24));
      to[0] = static_cast<int64_t>(seen);
      to[1] = static_cast<int64_t>(hour);
      to[2] = random.below(100);
      to[3] = random.below(10);
      to[kCounts] = user;
      to[kCounts + 1] = item;
      to[kCounts + 2] = place;
      double score = 1.2 * taste("user", user) * taste("item", item) + 1.0 * mood * taste("item mood", item) -
                     0.5 * static_cast<double>(place) - 0.4 * std::log1p(seen) + 0.3;
      static_cast<float*>(y)[i] = random.uniform(0, 1) < 1 / (1 + std::exp(-score)) ? 1.0f : 0.0f;
    }
  }

 private:
  double taste(const char* of, int64_t which) const {
    return Philox{seed_, stream_of(of)}.normal(static_cast<uint64_t>(which));
  }
  uint64_t seed_, stream_;
  int64_t samples_, users_, items_;
};

AttrDef samples_attr(const char* help) { return {"samples", int64_t{0}, 0, 1e9, help, {}, "samples"}; }
AttrDef noise_attr(double fallback) { return {"noise", fallback, 0, 1e6, "standard deviation of the noise"}; }
int64_t samples_of(const AttrValues& v, int64_t usual) {
  return v.integer("samples") > 0 ? v.integer("samples") : usual;
}

template <bool Masks>
Split open_shapes(const Options& o, const AttrValues& v) {
  auto part = [&](const char* stream, int64_t n) {
    return std::make_shared<Shapes>(o.seed, stream, n, v.integer("channels"), v.integer("side"), v.number("noise"),
                                    Masks);
  };
  int64_t n = samples_of(v, Masks ? 2000 : 10000);
  return {part(Masks ? "masks.train" : "shapes.train", n),
          part(Masks ? "masks.test" : "shapes.test", std::clamp<int64_t>(n / 5, 1, 2000))};
}
Split open_series(const Options& o, const AttrValues& v) {
  auto part = [&](const char* stream, int64_t n) {
    return std::make_shared<Series>(o.seed, stream, n, v.integer("length"), v.integer("horizon"), v.number("noise"));
  };
  int64_t n = samples_of(v, 4000);
  return {part("series.train", n), part("series.test", std::clamp<int64_t>(n / 4, 1, 1000))};
}
Split open_clicks(const Options& o, const AttrValues& v) {
  auto part = [&](const char* stream, int64_t n) {
    return std::make_shared<Clicks>(o.seed, stream, n, v.integer("users"), v.integer("items"));
  };
  int64_t n = samples_of(v, 300000);
  return {part("clicks.train", n), part("clicks.test", std::clamp<int64_t>(n / 4, 1, 10000))};
}

std::vector<AttrDef> picture_attrs(const char* samples, double noise, int64_t channels) {
  return {samples_attr(samples),
          noise_attr(noise),
          {"channels", channels, 1, 3, "1: grey, 3: colours"},
          {"side", int64_t{32}, 8, 1024, "height and width of the images", {}, "pixels"}};
}

const bool registered_generated[] = {
    register_dataset({"shapes", "generated pictures of a shape each, filled or striped, in 10 classes; needs no files",
                      picture_attrs("training samples that are generated; 0: 10,000", 0.1, 3), open_shapes<false>}),
    register_dataset({"shape-masks",
                      "generated pictures of up to three shapes, with the class of every pixel; needs no files",
                      picture_attrs("training samples that are generated; 0: 2,000", 0.1, 1), open_shapes<true>}),
    register_dataset({"series",
                      "generated time series: waves, a slope and noise, and how they go on; needs no files",
                      {samples_attr("training samples that are generated; 0: 4,000"),
                       noise_attr(0.05),
                       {"length", int64_t{64}, 2, 1e6, "values of a window", {}, "values"},
                       {"horizon", int64_t{1}, 1, 1e6, "values to foretell"}},
                      open_series}),
    register_dataset({"clicks",
                      "a generated log of adverts that were clicked or not; needs no files",
                      {samples_attr("training samples that are generated; 0: 300,000"),
                       {"users", int64_t{200}, 1, 1e9, "groups of users"},
                       {"items", int64_t{500}, 1, 1e9, "items"}},
                      open_clicks}),
};

}  // namespace
}  // namespace tenon::data
