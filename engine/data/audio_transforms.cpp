#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <numbers>

#include "core/error.h"
#include "engine/data/transform.h"

namespace tenon::data {
namespace {

constexpr int64_t kUsualRate = 16000;

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// A sound [1, n] as a picture [1, bands, frames]: the logarithm of the power in bands of the mel scale (HTK's), over
/// windows (Hann) that begin a hop apart and lie whole in the sound.
class LogMel : public Transform {
 public:
  explicit LogMel(const AttrValues& v)
      : rate_(v.integer("rate") ? v.integer("rate") : kUsualRate),
        window_(v.integer("window")),
        hop_(v.integer("hop")),
        bands_(v.integer("bands")) {
    if (window_ % 2) throw Error::usage("log_mel: window = " + std::to_string(window_) + " is odd");
    const int64_t bins = window_ / 2 + 1;
    hann_.resize(static_cast<size_t>(window_));
    for (int64_t i = 0; i < window_; ++i)
      hann_[static_cast<size_t>(i)] = static_cast<float>(
          0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window_)));
    // A triangle a band, from the middle of the band below to that of the band above.
    const double most = mel_of(static_cast<double>(rate_) / 2);
    const auto middle = [&](int64_t k) {
      return hertz_of(most * static_cast<double>(k) / static_cast<double>(bands_ + 1));
    };
    weights_.resize(static_cast<size_t>(bands_ * bins));
    for (int64_t k = 0; k < bands_; ++k)
      for (int64_t i = 0; i < bins; ++i) {
        const double f = static_cast<double>(i * rate_) / static_cast<double>(window_);
        const double up = (f - middle(k)) / (middle(k + 1) - middle(k)),
                     down = (middle(k + 2) - f) / (middle(k + 2) - middle(k + 1));
        weights_[static_cast<size_t>(k * bins + i)] = static_cast<float>(std::max(0.0, std::min(up, down)));
      }
  }
  Shape size(const Shape& in) const override {
    if (in.n != 2 || in[0] != 1)
      throw Error::usage("log_mel works on sounds of [1, samples], not on samples of shape " + to_string(in));
    if (in[1] < window_)
      throw Error::usage("log_mel: a window of " + std::to_string(window_) + " is longer than a sound of " +
                         std::to_string(in[1]) + " samples");
    return {1, bands_, 1 + (in[1] - window_) / hop_};
  }
  bool bottom_first(bool) const override { return true; }
  void train(Item& item, Dice&, int64_t, const Other&) const override { evaluate(item); }
  void evaluate(Item& item) const override {
    const Shape to = size(item.size);
    const int64_t frames = to[2], bins = window_ / 2 + 1;
    std::vector<float> out(static_cast<size_t>(to.product())), power(static_cast<size_t>(bins));
    std::vector<std::complex<float>> in(hann_.size()), spectrum(hann_.size());
    kissfft<float> plan(hann_.size(), false);
    for (int64_t t = 0; t < frames; ++t) {
      for (size_t i = 0; i < hann_.size(); ++i) in[i] = item.x[static_cast<size_t>(t * hop_) + i] * hann_[i];
      plan.transform(in.data(), spectrum.data());
      for (size_t i = 0; i < power.size(); ++i) power[i] = std::norm(spectrum[i]);
      for (int64_t k = 0; k < bands_; ++k) {
        double sum = 0;
        const float* w = weights_.data() + k * bins;
        for (int64_t i = 0; i < bins; ++i)
          sum += static_cast<double>(w[i]) * static_cast<double>(power[static_cast<size_t>(i)]);
        out[static_cast<size_t>(k * frames + t)] = static_cast<float>(std::log(sum + 1e-6));
      }
    }
    item.x = std::move(out);
    item.size = to;
  }

 private:
  int64_t rate_, window_, hop_, bands_;
  std::vector<float> hann_, weights_;
};

/// A stretch of silence before or behind, and what goes beyond the other end is lost.
class Shift : public Transform {
 public:
  explicit Shift(const AttrValues& v) : most_(v.integer("most")) {}
  Shape size(const Shape& in) const override {
    if (in.n != 2) throw Error::usage("shift works on [channels, samples], not on samples of shape " + to_string(in));
    return in;
  }
  void train(Item& item, Dice& dice, int64_t, const Other&) const override {
    const int64_t by = dice.below(2 * most_ + 1) - most_, n = item.size[1];
    std::vector<float> out(item.x.size(), 0.0f);
    for (int64_t c = 0; c < item.size[0]; ++c)
      for (int64_t i = std::max<int64_t>(0, by); i < std::min(n, n + by); ++i)
        out[static_cast<size_t>(c * n + i)] = item.x[static_cast<size_t>(c * n + i - by)];
    item.x = std::move(out);
  }

 private:
  int64_t most_;
};

const bool registered_audio_transforms[] = {
    register_transform(
        {"log_mel",
         "a sound as a picture: the logarithm of its power by mel band and time",
         {{"rate", int64_t{0}, 0, 384000, "of the sound; 0: as the data have it, or 16000", {}, "samples a second"},
          {"window", int64_t{400}, 16, 1 << 16, "of one column of the picture, even", {}, "samples"},
          {"hop", int64_t{160}, 1, 1 << 16, "from one column to the next", {}, "samples"},
          {"bands", int64_t{40}, 1, 1024, "rows of the picture"}},
         [](const AttrValues& v) -> std::unique_ptr<Transform> { return std::make_unique<LogMel>(v); }}),
    register_transform({"shift",
                        "a sound earlier or later",
                        {{"most", int64_t{1600}, 0, 1 << 24, "by how much at most", {}, "samples"}},
                        [](const AttrValues& v) -> std::unique_ptr<Transform> { return std::make_unique<Shift>(v); }}),
};

}  // namespace
}  // namespace tenon::data
