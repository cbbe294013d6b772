#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/data/image.h"
#include "engine/data/transform.h"

namespace tenon::data {
namespace {

void need_image(const Shape& in, const char* who) {
  if (in.n != 3)
    throw Error::usage(std::string(who) + " works on images of [channels, height, width], not on samples of shape " +
                       to_string(in));
}

/// A window of height x width from (top, left), which may reach beyond the image: there is `fill`, and class 0 in a
/// mask.
void crop(Item& item, int64_t top, int64_t left, int64_t height, int64_t width, float fill = 0) {
  const int64_t c = item.size[0], h = item.size[1], w = item.size[2];
  std::vector<float> x(static_cast<size_t>(c * height * width), fill);
  std::vector<int64_t> mask(item.mask.empty() ? 0 : static_cast<size_t>(height * width));
  for (int64_t i = std::max<int64_t>(0, -top); i < std::min(height, h - top); ++i)
    for (int64_t j = std::max<int64_t>(0, -left); j < std::min(width, w - left); ++j) {
      for (int64_t k = 0; k < c; ++k)
        x[static_cast<size_t>((k * height + i) * width + j)] =
            item.x[static_cast<size_t>((k * h + i + top) * w + j + left)];
      if (!mask.empty())
        mask[static_cast<size_t>(i * width + j)] = item.mask[static_cast<size_t>((i + top) * w + j + left)];
    }
  item.x = std::move(x);
  item.mask = std::move(mask);
  item.size = {c, height, width};
}

void centre(Item& item, int64_t height, int64_t width) {
  crop(item, (item.size[1] - height) / 2, (item.size[2] - width) / 2, height, width);
}

/// "size" 0 keeps a side.
struct Window {
  int64_t height, width;
  Shape of(const Shape& in, const char* who) const {
    need_image(in, who);
    return {in[0], height > 0 ? height : in[1], width > 0 ? width : in[2]};
  }
};
std::vector<AttrDef> window_attrs() {
  return {{"height", int64_t{0}, 0, 1 << 14, "of the result; 0: as it is", {}, "pixels"},
          {"width", int64_t{0}, 0, 1 << 14, "of the result; 0: as it is", {}, "pixels"}};
}

class Crop : public Transform {
 public:
  explicit Crop(const AttrValues& v) : window_{v.integer("height"), v.integer("width")} {}
  Shape size(const Shape& in) const override { return window_.of(in, "crop"); }
  void train(Item& item, Dice&, int64_t, const Other&) const override { evaluate(item); }
  void evaluate(Item& item) const override {
    Shape to = window_.of(item.size, "crop");
    centre(item, to[1], to[2]);
  }

 private:
  Window window_;
};

class RandomCrop : public Transform {
 public:
  explicit RandomCrop(const AttrValues& v)
      : window_{v.integer("height"), v.integer("width")}, padding_(v.integer("padding")) {}
  Shape size(const Shape& in) const override {
    Shape to = window_.of(in, "random_crop");
    if (to[1] > in[1] + 2 * padding_ || to[2] > in[2] + 2 * padding_)
      throw Error::usage("random_crop: a window of " + to_string(to) + " does not fit into " + to_string(in) +
                         " with a padding of " + std::to_string(padding_));
    return to;
  }
  void train(Item& item, Dice& dice, int64_t, const Other&) const override {
    Shape to = window_.of(item.size, "random_crop");
    int64_t top = dice.below(item.size[1] + 2 * padding_ - to[1] + 1) - padding_;
    int64_t left = dice.below(item.size[2] + 2 * padding_ - to[2] + 1) - padding_;
    crop(item, top, left, to[1], to[2]);
  }
  void evaluate(Item& item) const override {
    Shape to = window_.of(item.size, "random_crop");
    centre(item, to[1], to[2]);
  }

 private:
  Window window_;
  int64_t padding_;
};

class Flip : public Transform {
 public:
  explicit Flip(const AttrValues& v) : p_(v.number("p")), vertical_(v.flag("vertical")) {}
  Shape size(const Shape& in) const override {
    need_image(in, "flip");
    return in;
  }
  void train(Item& item, Dice& dice, int64_t, const Other&) const override {
    if (dice.uniform() >= p_) return;
    const int64_t h = item.size[1], w = item.size[2];
    flip(item.x.data(), item.size[0], h, w);
    if (!item.mask.empty()) flip(item.mask.data(), 1, h, w);
  }

 private:
  template <class T>
  void flip(T* x, int64_t planes, int64_t h, int64_t w) const {
    for (int64_t k = 0; k < planes; ++k, x += h * w)
      if (vertical_)
        for (int64_t i = 0; i < h / 2; ++i) std::swap_ranges(x + i * w, x + (i + 1) * w, x + (h - 1 - i) * w);
      else
        for (int64_t i = 0; i < h; ++i) std::reverse(x + i * w, x + (i + 1) * w);
  }
  double p_;
  bool vertical_;
};

class Resize : public Transform {
 public:
  explicit Resize(const AttrValues& v) : window_{v.integer("height"), v.integer("width")} {}
  Shape size(const Shape& in) const override { return window_.of(in, "resize"); }
  void train(Item& item, Dice&, int64_t, const Other&) const override { evaluate(item); }
  void evaluate(Item& item) const override {
    Shape to = window_.of(item.size, "resize");
    const int64_t c = item.size[0], h = item.size[1], w = item.size[2];
    std::vector<float> x(static_cast<size_t>(to.product()));
    for (int64_t k = 0; k < c; ++k)
      resize_plane(item.x.data() + k * h * w, h, w, x.data() + k * to[1] * to[2], to[1], to[2]);
    std::vector<int64_t> mask;
    if (!item.mask.empty())
      for (int64_t i = 0; i < to[1]; ++i)
        for (int64_t j = 0; j < to[2]; ++j)
          mask.push_back(item.mask[static_cast<size_t>(i * h / to[1] * w + j * w / to[2])]);
    item.x = std::move(x);
    item.mask = std::move(mask);
    item.size = to;
  }

 private:
  Window window_;
};

class Normalise : public Transform {
 public:
  explicit Normalise(const AttrValues& v) : mean_(v.number("mean")), by_(1 / v.number("std")) {}
  void train(Item& item, Dice&, int64_t, const Other&) const override { evaluate(item); }
  void evaluate(Item& item) const override {
    for (float& x : item.x) x = static_cast<float>((static_cast<double>(x) - mean_) * by_);
  }

 private:
  double mean_, by_;
};

/// Brightness, contrast and saturation by factors in [1 - s, 1 + s] each.
class ColourJitter : public Transform {
 public:
  explicit ColourJitter(const AttrValues& v)
      : brightness_(v.number("brightness")), contrast_(v.number("contrast")), saturation_(v.number("saturation")) {}
  Shape size(const Shape& in) const override {
    need_image(in, "colour_jitter");
    return in;
  }
  void train(Item& item, Dice& dice, int64_t, const Other&) const override {
    auto factor = [&](double s) { return static_cast<float>(1 + s * (2 * dice.uniform() - 1)); };
    const float bright = factor(brightness_), contrast = factor(contrast_), colour = factor(saturation_);
    double sum = 0;
    for (float& x : item.x) sum += x *= bright;
    const auto mean = static_cast<float>(sum / static_cast<double>(std::max<size_t>(1, item.x.size())));
    for (float& x : item.x) x = mean + (x - mean) * contrast;
    const int64_t c = item.size[0], n = item.size[1] * item.size[2];
    if (c < 2) return;
    for (int64_t i = 0; i < n; ++i) {
      float grey = 0;
      for (int64_t k = 0; k < c; ++k) grey += item.x[static_cast<size_t>(k * n + i)];
      grey /= static_cast<float>(c);
      for (int64_t k = 0; k < c; ++k) {
        float& x = item.x[static_cast<size_t>(k * n + i)];
        x = grey + (x - grey) * colour;
      }
    }
  }

 private:
  double brightness_, contrast_, saturation_;
};

/// A square of zeros somewhere. DeVries and Taylor (2017).
class Cutout : public Transform {
 public:
  explicit Cutout(const AttrValues& v) : side_(v.integer("size")) {}
  Shape size(const Shape& in) const override {
    need_image(in, "cutout");
    return in;
  }
  void train(Item& item, Dice& dice, int64_t, const Other&) const override {
    const int64_t c = item.size[0], h = item.size[1], w = item.size[2], y = dice.below(h), x = dice.below(w);
    for (int64_t k = 0; k < c; ++k)
      for (int64_t i = std::max<int64_t>(0, y - side_ / 2); i < std::min(h, y - side_ / 2 + side_); ++i)
        for (int64_t j = std::max<int64_t>(0, x - side_ / 2); j < std::min(w, x - side_ / 2 + side_); ++j)
          item.x[static_cast<size_t>((k * h + i) * w + j)] = 0;
  }

 private:
  int64_t side_;
};

/// A number of the gamma distribution of shape a. Marsaglia and Tsang (2000).
double gamma(Dice& dice, double a) {
  if (a < 1) return gamma(dice, a + 1) * std::pow(1 - dice.uniform(), 1 / a);
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (int tries = 0; tries < 1000; ++tries) {
    double x = dice.normal(), v = 1 + c * x;
    v = v * v * v;
    if (v > 0 && std::log(1 - dice.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
  return a;
}
/// Of Beta(a, a).
double beta(Dice& dice, double a) {
  double x = gamma(dice, a), y = gamma(dice, a);
  return x + y > 0 ? x / (x + y) : 0.5;
}

void mix_shares(Item& item, const Item& with, double mine) {
  if (item.shares.empty()) {
    item.shares.assign(static_cast<size_t>(item.classes), 0.0f);
    item.shares[static_cast<size_t>(item.label)] = 1;
  }
  for (float& s : item.shares) s *= static_cast<float>(mine);
  if (with.shares.empty())
    item.shares[static_cast<size_t>(with.label)] += static_cast<float>(1 - mine);
  else
    for (size_t i = 0; i < item.shares.size(); ++i) item.shares[i] += static_cast<float>(1 - mine) * with.shares[i];
}

/// A sample and another, added in shares. Zhang et al. (2017). The partner, too, is a function of seed, epoch and row.
class Mixup : public Transform {
 public:
  explicit Mixup(const AttrValues& v) : alpha_(v.number("alpha")) {}
  bool mixes() const override { return true; }
  void train(Item& item, Dice& dice, int64_t count, const Other& other) const override {
    Item with = other(dice.below(count));
    double mine = beta(dice, alpha_);
    for (size_t i = 0; i < item.x.size(); ++i)
      item.x[i] = static_cast<float>(mine) * item.x[i] + static_cast<float>(1 - mine) * with.x[i];
    mix_shares(item, with, mine);
  }

 private:
  double alpha_;
};

/// A rectangle of another sample put into this one; the classes share by area. Yun et al. (2019).
class CutMix : public Transform {
 public:
  explicit CutMix(const AttrValues& v) : alpha_(v.number("alpha")) {}
  Shape size(const Shape& in) const override {
    need_image(in, "cutmix");
    return in;
  }
  bool mixes() const override { return true; }
  void train(Item& item, Dice& dice, int64_t count, const Other& other) const override {
    Item with = other(dice.below(count));
    const int64_t c = item.size[0], h = item.size[1], w = item.size[2];
    double side = std::sqrt(1 - beta(dice, alpha_));
    int64_t y = dice.below(h), x = dice.below(w), rh = std::llround(side * static_cast<double>(h)),
            rw = std::llround(side * static_cast<double>(w));
    int64_t top = std::clamp<int64_t>(y - rh / 2, 0, h), bottom = std::clamp<int64_t>(y - rh / 2 + rh, 0, h);
    int64_t left = std::clamp<int64_t>(x - rw / 2, 0, w), right = std::clamp<int64_t>(x - rw / 2 + rw, 0, w);
    for (int64_t k = 0; k < c; ++k)
      for (int64_t i = top; i < bottom; ++i)
        for (int64_t j = left; j < right; ++j) {
          auto at = static_cast<size_t>((k * h + i) * w + j);
          item.x[at] = with.x[at];
        }
    mix_shares(item, with, 1 - static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(h * w));
  }

 private:
  double alpha_;
};

template <class T>
std::unique_ptr<Transform> make(const AttrValues& v) {
  return std::make_unique<T>(v);
}
std::vector<AttrDef> mix_attrs() { return {{"alpha", 1.0, 1e-3, 1e3, "the share is drawn from Beta(alpha, alpha)"}}; }
std::vector<AttrDef> random_crop_attrs() {
  auto list = window_attrs();
  list.push_back({"padding", int64_t{0}, 0, 1 << 12, "zeros on every side before the window is chosen", {}, "pixels"});
  return list;
}

const bool registered_image_transforms[] = {
    register_transform({"crop", "the middle of an image", window_attrs(), make<Crop>}),
    register_transform(
        {"random_crop", "a window of an image; its middle in evaluation", random_crop_attrs(), make<RandomCrop>}),
    register_transform({"flip",
                        "left becomes right now and then",
                        {{"p", 0.5, 0, 1, "how often"}, {"vertical", false, 0, 0, "upside down instead"}},
                        make<Flip>}),
    register_transform({"resize", "an image in another size", window_attrs(), make<Resize>}),
    register_transform(
        {"normalise",
         "(x - mean) / std",
         {{"mean", 0.0, -1e30, 1e30, "what is taken away"}, {"std", 1.0, 1e-30, 1e30, "what is divided by"}},
         make<Normalise>}),
    register_transform({"colour_jitter",
                        "other light",
                        {{"brightness", 0.2, 0, 1, "largest change"},
                         {"contrast", 0.2, 0, 1, "largest change"},
                         {"saturation", 0.2, 0, 1, "largest change"}},
                        make<ColourJitter>}),
    register_transform({"cutout",
                        "a square of zeros somewhere",
                        {{"size", int64_t{8}, 1, 1 << 12, "side of the square", {}, "pixels"}},
                        make<Cutout>}),
    register_transform({"mixup", "two samples added in shares, their classes too", mix_attrs(), make<Mixup>}),
    register_transform({"cutmix", "a rectangle of another sample, its class by area", mix_attrs(), make<CutMix>}),
};

}  // namespace
}  // namespace tenon::data
