#include "engine/kernels/conv.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/half.h"
#include "core/parallel.h"
#include "engine/kernels/conv_pass.h"
#include "engine/kernels/room.h"
#include "engine/kernels/tiled_conv.h"

namespace tenon::kernels {
namespace {

int64_t weight_count(const ConvShape& s) { return s.oc * (s.ic / s.groups) * s.kh * s.kw; }

ConvShape with_batch(const ConvShape& s, int64_t n) {
  ConvShape r = s;
  r.n = n;
  return r;
}

double image_flops(const ConvShape& s) {
  return 2.0 * static_cast<double>(weight_count(s)) * static_cast<double>(s.oh * s.ow);
}

/// Weight gradients need one partial result a piece: at most 8 pieces.
int64_t weights_cut(const ConvShape& s) {
  return std::max<int64_t>((s.n + 7) / 8, std::min<int64_t>(conv_batch_cut(s), s.n));
}

int64_t packed_bytes(const ConvShape& s, ConvPass pass) { return static_cast<int64_t>(conv_weight_bytes(s, pass)); }
int64_t gradient_count(const ConvShape& s) {
  return packed_bytes(s, ConvPass::backward_weights) / static_cast<int64_t>(sizeof(float));
}

/// Weights as a pass wants them: packed into the room, or kept from an earlier call.
class PackedWeights {
 public:
  PackedWeights(const ConvShape& s, ConvPass pass, Room& room, const WeightKeeper& keep, WeightCut cut)
      : shape_(s), pass_(pass), cut_(cut), keep_(keep), to_(keep ? nullptr : room.take<char>(packed_bytes(s, pass))) {
    if (keep) keep.take(s, pass, cut);
  }
  PackedWeights(const ConvShape& s, ConvPass pass, Room& room, const WeightKeeper& keep)
      : PackedWeights(s, pass, room, keep, {0, s.oc}) {}
  /// `w`: those of all channels.
  void pack(const void* w) {
    if (keep_) {
      kept_ = keep_.packed(shape_, pass_, cut_);
      return;
    }
    const int64_t at = cut_.first * (shape_.ic / shape_.groups) * shape_.kh * shape_.kw * (shape_.bf16 ? 2 : 4);
    conv_pack(shape_, pass_, static_cast<const char*>(w) + at, to_);
  }
  const void* data() const { return kept_ ? kept_->data : to_; }

 private:
  ConvShape shape_;
  ConvPass pass_;
  WeightCut cut_;
  WeightKeeper keep_;
  char* to_;
  Ref<Storage> kept_;
};

/// The weights in the layout of the full pieces and, where it differs, of the last, shorter one.
class Packed {
 public:
  Packed(const ConvShape& s, ConvPass pass, int64_t grain, Room& room, const WeightKeeper& keep)
      : full_(with_batch(s, std::min(grain, s.n))),
        last_(with_batch(s, s.n % grain ? s.n % grain : full_.n)),
        a_(full_, pass, room, keep) {
    if (!conv_same_weights(full_, last_, pass)) b_.emplace(last_, pass, room, WeightKeeper());
  }
  void pack(const void* w) {
    a_.pack(w);
    if (b_) b_->pack(w);
  }
  const ConvShape& shape(int64_t n) const { return n == full_.n ? full_ : last_; }
  const void* weights(int64_t n) const { return n == full_.n || !b_ ? a_.data() : b_->data(); }

 private:
  ConvShape full_, last_;
  PackedWeights a_;
  std::optional<PackedWeights> b_;
};

constexpr int64_t kFewImages = 4;

/// Few small images with many channels are cut into channels of the result: each piece reads its share of the weights,
/// which are the most of all that is read, once. A piece is computed beside the result and copied into it.
class ChannelPieces {
 public:
  explicit ChannelPieces(const ConvShape& s) : s_(s) {
    constexpr int64_t kMost = 8, kSmallImage = 8 * 8, kBlock = 64;
    if (s.n >= kFewImages || s.groups > 1 || s.oh * s.ow > kSmallImage || s.kh * s.kw == 1) return;
    const auto work = static_cast<int64_t>(image_flops(s) * static_cast<double>(s.n) / 4e6);
    const int64_t wanted = std::min({work, kMost, s.oc / kBlock});
    if (wanted <= 1) return;
    width_ = (s.oc / wanted + kBlock - 1) / kBlock * kBlock;
    count_ = (s.oc + width_ - 1) / width_;
  }
  bool cut() const { return count_ > 1; }
  int64_t count() const { return count_; }
  WeightCut cut_of(int64_t piece) const { return {piece * width_, width_}; }
  ConvShape shape(int64_t piece) const {
    ConvShape p = s_;
    p.oc = std::min(width_, s_.oc - piece * width_);
    return p;
  }

 private:
  ConvShape s_;
  int64_t width_ = 0, count_ = 1;
};

/// What its pieces work in.
struct ChannelRoom {
  struct Piece {
    ConvShape shape;
    PackedWeights weights;
    char* result;
  };
  std::vector<Piece> pieces;
  ChannelRoom(const ChannelPieces& cut, size_t item, Room& room, const WeightKeeper& keep) {
    for (int64_t p = 0; p < cut.count(); ++p) {
      const ConvShape s = cut.shape(p);
      pieces.push_back({s, PackedWeights(s, ConvPass::forward, room, keep, cut.cut_of(p)),
                        room.take<char>(s.n * s.oh * s.ow * s.oc * static_cast<int64_t>(item))});
    }
  }
};

/// Few images are cut into rows of the result, so that one keeps several threads busy.
class RowPieces {
 public:
  explicit RowPieces(const ConvShape& s) : s_(s) {
    constexpr int64_t kMost = 8;
    const int64_t reach = s.dh * (s.kh - 1) + 1;
    // A row that saw padding alone would have no image to read.
    if (s.n >= kFewImages || s.ph >= reach || s.ih < reach) return;
    const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(image_flops(s) / 4e6), 1, kMost);
    rows_ = (s.oh + wanted - 1) / wanted;
    each_ = (s.oh + rows_ - 1) / rows_;
    // All pieces share one packing of the weights.
    for (int64_t p : {int64_t{1}, each_ - 1})
      if (each_ > 1 && !conv_same_weights(shape(0), shape(p), ConvPass::forward)) each_ = 1;
  }
  bool cut() const { return each_ > 1; }
  int64_t count() const { return s_.n * each_; }
  int64_t image(int64_t piece) const { return piece / each_; }
  int64_t first_row(int64_t piece) const { return piece % each_ * rows_; }
  int64_t first_input_row(int64_t piece) const { return std::max<int64_t>(0, first_row(piece) * s_.sh - s_.ph); }
  ConvShape shape(int64_t piece) const {
    const int64_t first = first_row(piece), last = std::min(s_.oh, first + rows_), begin = first * s_.sh - s_.ph,
                  end = (last - 1) * s_.sh - s_.ph + s_.dh * (s_.kh - 1) + 1;
    ConvShape p = with_batch(s_, 1);
    p.oh = last - first;
    p.ph = std::max<int64_t>(0, -begin);
    p.pb = std::max<int64_t>(0, end - s_.ih);
    p.ih = end - begin - p.ph - p.pb;
    return p;
  }

 private:
  ConvShape s_;
  int64_t rows_ = 1, each_ = 1;
};

/// Gradients of the weights (and of the bias) of every piece of the batch, and the last one's in plain order where its
/// layout is another.
struct PartialWeights {
  int64_t grain, pieces;
  ConvShape full, last;
  bool differs;
  int64_t each;
  float *partial, *bias, *plain;
  PartialWeights(const ConvShape& s, Room& room)
      : grain(weights_cut(s)),
        pieces((s.n + grain - 1) / grain),
        full(with_batch(s, std::min(grain, s.n))),
        last(with_batch(s, s.n - (pieces - 1) * grain)),
        differs(!conv_same_weights(full, last, ConvPass::backward_weights)),
        each(std::max(gradient_count(full), gradient_count(last))),
        partial(room.take<float>(pieces * each)),
        bias(room.take<float>(s.bias ? pieces * s.oc : 0)),
        plain(room.take<float>(differs ? weight_count(s) : 0)) {}
};

/// Calls f(oy, ox, ky, kx, iy, ix) for every tap of the window that lies inside the image.
template <class F>
void each_conv_tap(const ConvShape& s, const F& f) {
  for (int64_t oy = 0; oy < s.oh; ++oy)
    for (int64_t ox = 0; ox < s.ow; ++ox)
      for (int64_t ky = 0; ky < s.kh; ++ky) {
        int64_t iy = oy * s.sh - s.ph + ky * s.dh;
        if (iy < 0 || iy >= s.ih) continue;
        for (int64_t kx = 0; kx < s.kw; ++kx) {
          int64_t ix = ox * s.sw - s.pw + kx * s.dw;
          if (ix >= 0 && ix < s.iw) f(oy, ox, ky, kx, iy, ix);
        }
      }
}

/// Where one image, one output channel and one tap meet: calls f(output, first input channel, first weight) of its
/// group.
template <class F>
void each_product(const ConvShape& s, const F& f) {
  int64_t gi = s.ic / s.groups, go = s.oc / s.groups;
  each_conv_tap(s, [&](int64_t oy, int64_t ox, int64_t ky, int64_t kx, int64_t iy, int64_t ix) {
    for (int64_t o = 0; o < s.oc; ++o)
      f((oy * s.ow + ox) * s.oc + o, (iy * s.iw + ix) * s.ic + o / go * gi, ((o * gi) * s.kh + ky) * s.kw + kx);
  });
}

/// Gradients of a bf16 convolution in f32, before they are rounded.
struct WideGradients {
  float *w, *b;
  WideGradients(const ConvShape& s, Room& room) : w(room.take<float>(weight_count(s))), b(room.take<float>(s.oc)) {}
};

void forward_by_library(const ConvShape& s, size_t item, const void* x, const void* w, const void* b, void* y,
                        void* memory, const WeightKeeper& keep) {
  if (s.n == 0) return;
  const int64_t grain = conv_batch_cut(s), image_x = s.ih * s.iw * s.ic * static_cast<int64_t>(item),
                image_y = s.oh * s.ow * s.oc * static_cast<int64_t>(item);
  Room room(memory);
  if (const ChannelPieces channels(s); channels.cut()) {
    ChannelRoom work(channels, item, room, keep);
    return parallel_for(channels.count(), 1, [&](int64_t p, int64_t e) {
      for (; p < e; ++p) {
        auto& [shape, weights, result] = work.pieces[static_cast<size_t>(p)];
        const int64_t first = channels.cut_of(p).first, bytes = static_cast<int64_t>(item);
        weights.pack(w);
        conv_forward(shape, x, weights.data(), b ? static_cast<const char*>(b) + first * bytes : nullptr, result);
        for (int64_t i = 0; i < s.n * s.oh * s.ow; ++i)
          std::memcpy(static_cast<char*>(y) + (i * s.oc + first) * bytes, result + i * shape.oc * bytes,
                      static_cast<size_t>(shape.oc * bytes));
      }
    });
  }
  if (const RowPieces rows(s); rows.cut()) {
    PackedWeights packed(rows.shape(0), ConvPass::forward, room, keep);
    packed.pack(w);
    return parallel_for(rows.count(), 1, [&](int64_t p, int64_t e) {
      for (; p < e; ++p) {
        const int64_t from = rows.first_input_row(p) * s.iw * s.ic * static_cast<int64_t>(item),
                      to = rows.first_row(p) * s.ow * s.oc * static_cast<int64_t>(item);
        conv_forward(rows.shape(p), static_cast<const char*>(x) + rows.image(p) * image_x + from, packed.data(), b,
                     static_cast<char*>(y) + rows.image(p) * image_y + to);
      }
    });
  }
  Packed packed(s, ConvPass::forward, grain, room, keep);
  packed.pack(w);
  parallel_for(s.n, grain, [&](int64_t i, int64_t e) {
    conv_forward(packed.shape(e - i), static_cast<const char*>(x) + i * image_x, packed.weights(e - i), b,
                 static_cast<char*>(y) + i * image_y);
  });
}

void backward_data_by_library(const ConvShape& s, size_t item, const void* gy, const void* w, void* gx, void* memory,
                              const WeightKeeper& keep) {
  if (s.n == 0) return;
  const int64_t grain = conv_batch_cut(s), image_x = s.ih * s.iw * s.ic * static_cast<int64_t>(item),
                image_y = s.oh * s.ow * s.oc * static_cast<int64_t>(item);
  Room room(memory);
  Packed packed(s, ConvPass::backward_data, grain, room, keep);
  packed.pack(w);
  parallel_for(s.n, grain, [&](int64_t i, int64_t e) {
    conv_backward_data(packed.shape(e - i), static_cast<const char*>(gy) + i * image_y, packed.weights(e - i),
                       static_cast<char*>(gx) + i * image_x);
  });
}

void backward_weights_by_library(const ConvShape& s, size_t item, const void* x, const void* gy, float* gw, float* gb,
                                 Room& room) {
  if (s.n == 0) {
    std::fill_n(gw, weight_count(s), 0.0f);
    if (s.bias) std::fill_n(gb, s.oc, 0.0f);
    return;
  }
  const PartialWeights work(s, room);
  const int64_t image_x = s.ih * s.iw * s.ic * static_cast<int64_t>(item),
                image_y = s.oh * s.ow * s.oc * static_cast<int64_t>(item), pieces = work.pieces, each = work.each;
  parallel_for(s.n, work.grain, [&](int64_t i, int64_t) {
    int64_t p = i / work.grain;
    dnnl_conv_backward_weights(p + 1 < pieces ? work.full : work.last, static_cast<const char*>(x) + i * image_x,
                               static_cast<const char*>(gy) + i * image_y, work.partial + p * each,
                               work.bias + (s.bias ? p * s.oc : 0));
  });
  int64_t alike = work.differs ? pieces - 1 : pieces, count = gradient_count(work.full);
  parallel_for(count, 16 * 1024, [&](int64_t i, int64_t e) {
    float* sum = work.partial;
    for (int64_t p = 1; p < alike; ++p) {
      const float* add = work.partial + p * each;
      for (int64_t j = i; j < e; ++j) sum[j] += add[j];
    }
  });
  dnnl_conv_unpack(work.full, ConvPass::backward_weights, work.partial, gw);
  if (work.differs) {
    dnnl_conv_unpack(work.last, ConvPass::backward_weights, work.partial + (pieces - 1) * each, work.plain);
    for (int64_t j = 0; j < weight_count(s); ++j) gw[j] += work.plain[j];
  }
  if (!s.bias) return;
  std::memcpy(gb, work.bias, static_cast<size_t>(s.oc) * sizeof(float));
  for (int64_t p = 1; p < pieces; ++p)
    for (int64_t j = 0; j < s.oc; ++j) gb[j] += work.bias[p * s.oc + j];
}

}  // namespace

int64_t conv_batch_cut(const ConvShape& s) {
  int64_t want = std::clamp<int64_t>(static_cast<int64_t>(1.6e7 / image_flops(s)), 1, 8);
  for (int64_t g = want; g * 2 > want; --g)
    if (s.n % g == 0) return g;
  return want;
}

template <>
size_t conv2d_workspace<float>(const ConvShape& s, ConvPass pass, const WeightKeeper& keep) {
  Room room;
  if (s.n == 0) return 0;
  if (pass == ConvPass::backward_weights) {
    if (!tiles_conv(s, pass)) PartialWeights(s, room);
  } else if (const ChannelPieces channels(s); pass == ConvPass::forward && channels.cut())
    ChannelRoom(channels, s.bf16 ? sizeof(uint16_t) : sizeof(float), room, keep);
  else if (const RowPieces rows(s); pass == ConvPass::forward && rows.cut())
    PackedWeights(rows.shape(0), pass, room, keep);
  else
    Packed(s, pass, conv_batch_cut(s), room, keep);
  return room.used();
}
template <>
size_t conv2d_workspace<uint16_t>(const ConvShape& s, ConvPass pass, const WeightKeeper& keep) {
  if (pass != ConvPass::backward_weights) return conv2d_workspace<float>(s, pass, keep);
  Room room;
  WideGradients(s, room);
  if (s.n > 0) PartialWeights(s, room);
  return room.used();
}
template <>
size_t conv2d_workspace<double>(const ConvShape&, ConvPass, const WeightKeeper&) {
  return 0;
}

template <>
void conv2d_forward<float>(const ConvShape& s, const float* x, const float* w, const float* b, float* y, void* memory,
                           const WeightKeeper& keep) {
  forward_by_library(s, sizeof(float), x, w, b, y, memory, keep);
}
template <>
void conv2d_forward<uint16_t>(const ConvShape& s, const uint16_t* x, const uint16_t* w, const uint16_t* b, uint16_t* y,
                              void* memory, const WeightKeeper& keep) {
  forward_by_library(s, sizeof(uint16_t), x, w, b, y, memory, keep);
}

template <>
void conv2d_backward_data<float>(const ConvShape& s, const float* gy, const float* w, float* gx, void* memory,
                                 const WeightKeeper& keep) {
  backward_data_by_library(s, sizeof(float), gy, w, gx, memory, keep);
}
template <>
void conv2d_backward_data<uint16_t>(const ConvShape& s, const uint16_t* gy, const uint16_t* w, uint16_t* gx,
                                    void* memory, const WeightKeeper& keep) {
  backward_data_by_library(s, sizeof(uint16_t), gy, w, gx, memory, keep);
}

template <>
void conv2d_backward_weights<float>(const ConvShape& s, const float* x, const float* gy, float* gw, float* gb,
                                    void* memory) {
  if (tiles_conv(s, ConvPass::backward_weights)) return tiled_conv_backward_weights(s, x, gy, gw, gb);
  Room room(memory);
  backward_weights_by_library(s, sizeof(float), x, gy, gw, gb, room);
}
template <>
void conv2d_backward_weights<uint16_t>(const ConvShape& s, const uint16_t* x, const uint16_t* gy, uint16_t* gw,
                                       uint16_t* gb, void* memory) {
  Room room(memory);
  const WideGradients wide(s, room);
  backward_weights_by_library(s, sizeof(uint16_t), x, gy, wide.w, wide.b, room);
  std::transform(wide.w, wide.w + weight_count(s), gw, float_to_bfloat);
  if (s.bias) std::transform(wide.b, wide.b + s.oc, gb, float_to_bfloat);
}

template <>
void conv2d_forward<double>(const ConvShape& s, const double* x, const double* w, const double* b, double* y, void*,
                            const WeightKeeper&) {
  int64_t taps = s.kh * s.kw, gi = s.ic / s.groups;
  parallel_for(s.n, 1, [&](int64_t i, int64_t) {
    const double* xi = x + i * s.ih * s.iw * s.ic;
    double* yi = y + i * s.oh * s.ow * s.oc;
    for (int64_t j = 0; j < s.oh * s.ow * s.oc; ++j) yi[j] = s.bias ? b[j % s.oc] : 0;
    each_product(s, [&](int64_t out, int64_t in, int64_t at) {
      for (int64_t c = 0; c < gi; ++c) yi[out] += xi[in + c] * w[at + c * taps];
    });
  });
}

template <>
void conv2d_backward_data<double>(const ConvShape& s, const double* gy, const double* w, double* gx, void*,
                                  const WeightKeeper&) {
  int64_t taps = s.kh * s.kw, gi = s.ic / s.groups;
  parallel_for(s.n, 1, [&](int64_t i, int64_t) {
    const double* gyi = gy + i * s.oh * s.ow * s.oc;
    double* gxi = gx + i * s.ih * s.iw * s.ic;
    std::fill_n(gxi, s.ih * s.iw * s.ic, 0.0);
    each_product(s, [&](int64_t out, int64_t in, int64_t at) {
      for (int64_t c = 0; c < gi; ++c) gxi[in + c] += gyi[out] * w[at + c * taps];
    });
  });
}

template <>
void conv2d_backward_weights<double>(const ConvShape& s, const double* x, const double* gy, double* gw, double* gb,
                                     void*) {
  int64_t taps = s.kh * s.kw, gi = s.ic / s.groups;
  std::fill_n(gw, weight_count(s), 0.0);
  if (s.bias) std::fill_n(gb, s.oc, 0.0);
  for (int64_t i = 0; i < s.n; ++i) {
    const double* xi = x + i * s.ih * s.iw * s.ic;
    const double* gyi = gy + i * s.oh * s.ow * s.oc;
    each_product(s, [&](int64_t out, int64_t in, int64_t at) {
      for (int64_t c = 0; c < gi; ++c) gw[at + c * taps] += xi[in + c] * gyi[out];
    });
    if (s.bias)
      for (int64_t j = 0; j < s.oh * s.ow * s.oc; ++j) gb[j % s.oc] += gyi[j];
  }
}

}  // namespace tenon::kernels
