#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "engine/data/image_format.h"

namespace tenon::data {
namespace {

/// Little-endian numbers of a file that may end anywhere.
class BmpBytes {
 public:
  BmpBytes(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  uint8_t byte(size_t at) const {
    if (at >= bytes_.size()) throw Error(name_ + " is damaged: it ends before its last pixel");
    return static_cast<uint8_t>(bytes_[at]);
  }
  uint32_t u16(size_t at) const { return byte(at) | uint32_t{byte(at + 1)} << 8; }
  uint32_t u32(size_t at) const { return u16(at) | u16(at + 2) << 16; }
  int64_t i32(size_t at) const { return static_cast<int32_t>(u32(at)); }
  size_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  const std::string& name_;
};

/// One colour of a pixel under its mask, as a byte.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const uint32_t value = (pixel & mask) >> std::countr_zero(mask), most = mask >> std::countr_zero(mask);
  return static_cast<uint8_t>((uint64_t{value} * 255 + most / 2) / most);
}

class Bmp {
 public:
  Bmp(std::string_view bytes, const std::string& name) : in_(bytes, name), name_(name) {
    pixels_ = in_.u32(10);
    header_ = in_.u32(14);
    const bool old = header_ == 12;
    if (!old && header_ < 40) refuse("a header of " + std::to_string(header_) + " bytes");
    width_ = old ? in_.u16(18) : in_.i32(18);
    height_ = old ? in_.u16(20) : in_.i32(22);
    top_down_ = height_ < 0;
    height_ = std::abs(height_);
    check_image_size(height_, width_, name);
    bits_ = in_.u16(old ? 24 : 28);
    packing_ = old ? 0 : in_.u32(30);
    if (packing_ > 3 && packing_ != 6) refuse("packing " + std::to_string(packing_));
    const bool indexed = bits_ == 1 || bits_ == 4 || bits_ == 8;
    if (!indexed && bits_ != 16 && bits_ != 24 && bits_ != 32) refuse(std::to_string(bits_) + " bits a pixel");
    if ((packing_ == 1 && bits_ != 8) || (packing_ == 2 && bits_ != 4) || (packing_ >= 3 && bits_ != 16 && bits_ != 32))
      refuse("packing " + std::to_string(packing_) + " of " + std::to_string(bits_) + " bits a pixel");
    if (indexed) read_palette(old);
    read_masks();
  }

  Image read(int64_t channels) {
    check_there_is_enough();
    std::vector<uint8_t> rgba(static_cast<size_t>(4 * height_ * width_), 0);
    if (packing_ == 1 || packing_ == 2)
      unpack(rgba);
    else
      for (int64_t y = 0; y < height_; ++y)
        for (int64_t x = 0; x < width_; ++x) put(rgba, x, y, pixel(x, y));
    return from_rgba(rgba.data(), height_, width_, channels);
  }

 private:
  using Colour = std::array<uint8_t, 4>;
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(name_ + " is a BMP of a kind that is not read: " + what, "save it as PNG");
  }

  /// A few bytes that claim a large picture are refused before there is memory for it.
  void check_there_is_enough() const {
    constexpr int64_t kMostPixelsAByte = 4096;  // of runs: 127, and more where some are left out
    const bool runs = packing_ == 1 || packing_ == 2;
    const int64_t stride = (width_ * bits_ + 31) / 32 * 4, last = (width_ * bits_ + 7) / 8;
    const auto have = static_cast<int64_t>(in_.size());
    if (runs ? width_ * height_ > kMostPixelsAByte * have
             : static_cast<int64_t>(pixels_) + stride * (height_ - 1) + last > have)
      throw Error(name_ + " is damaged: it ends before its last pixel");
  }

  void read_palette(bool old) {
    const size_t step = old ? 3 : 4, most = size_t{1} << bits_;
    size_t n = old ? most : in_.u32(46);
    if (n == 0 || n > most) n = most;
    for (size_t i = 0; i < n; ++i) {
      const size_t at = 14 + header_ + i * step;
      if (at + 3 > in_.size() || (pixels_ > 14 + header_ && at + 3 > pixels_)) break;
      palette_.push_back({in_.byte(at + 2), in_.byte(at + 1), in_.byte(at), 255});
    }
    if (palette_.empty()) refuse("no colours");
  }

  void read_masks() {
    if (bits_ == 16) masks_ = {0x7c00, 0x3e0, 0x1f, 0};
    if (bits_ == 32) masks_ = {0xff0000, 0xff00, 0xff, 0};
    if (packing_ != 3 && packing_ != 6) return;
    for (size_t k = 0; k < 3; ++k) masks_[k] = in_.u32(54 + 4 * k);
    masks_[3] = packing_ == 6 || header_ >= 56 ? in_.u32(66) : 0;
    for (uint32_t m : masks_)
      if (m != 0 && !std::has_single_bit((uint64_t{m} >> std::countr_zero(m)) + 1)) refuse("masks with gaps");
  }

  Colour of_palette(size_t i) const { return palette_[std::min(i, palette_.size() - 1)]; }

  Colour pixel(int64_t x, int64_t y) const {
    const int64_t stride = (width_ * bits_ + 31) / 32 * 4, line = top_down_ ? y : height_ - 1 - y;
    const size_t row = pixels_ + static_cast<size_t>(line * stride), bit = static_cast<size_t>(x * bits_);
    if (bits_ <= 8) {
      const uint8_t byte = in_.byte(row + bit / 8);
      return of_palette(byte >> (8 - static_cast<size_t>(bits_) - bit % 8) & ((1u << bits_) - 1));
    }
    const size_t at = row + bit / 8;
    if (bits_ == 24) return {in_.byte(at + 2), in_.byte(at + 1), in_.byte(at), 255};
    const uint32_t p = bits_ == 16 ? in_.u16(at) : in_.u32(at);
    return {channel(p, masks_[0]), channel(p, masks_[1]), channel(p, masks_[2]),
            masks_[3] ? channel(p, masks_[3]) : uint8_t{255}};
  }

  void put(std::vector<uint8_t>& rgba, int64_t x, int64_t y, Colour c) const {
    std::copy(c.begin(), c.end(), rgba.begin() + 4 * (y * width_ + x));
  }

  /// Runs of equal pixels (BI_RLE8, BI_RLE4). What no run says has the first colour.
  void unpack(std::vector<uint8_t>& rgba) {
    for (int64_t i = 0; i < width_ * height_; ++i) put(rgba, i % width_, i / width_, of_palette(0));
    int64_t x = 0, line = 0;
    size_t at = pixels_;
    const auto put_index = [&](size_t index) {
      if (x < width_ && line < height_) put(rgba, x, top_down_ ? line : height_ - 1 - line, of_palette(index));
      ++x;
    };
    while (line < height_) {
      const size_t count = in_.byte(at), value = in_.byte(at + 1);
      at += 2;
      if (count > 0) {
        for (size_t i = 0; i < count; ++i) put_index(bits_ == 8 ? value : i % 2 ? value & 15 : value >> 4);
      } else if (value == 0) {
        x = 0, ++line;
      } else if (value == 1) {
        return;
      } else if (value == 2) {
        x += in_.byte(at), line += in_.byte(at + 1);
        at += 2;
      } else {
        for (size_t i = 0; i < value; ++i) {
          const uint8_t byte = in_.byte(at + (bits_ == 8 ? i : i / 2));
          put_index(bits_ == 8 ? byte : i % 2 ? byte & 15u : byte >> 4u);
        }
        const size_t bytes = bits_ == 8 ? value : (value + 1) / 2;
        at += bytes + bytes % 2;
      }
    }
  }

  BmpBytes in_;
  const std::string& name_;
  size_t pixels_ = 0;
  size_t header_ = 0;
  int64_t width_ = 0, height_ = 0, bits_ = 0;
  uint32_t packing_ = 0;
  bool top_down_ = false;
  std::vector<Colour> palette_;
  std::array<uint32_t, 4> masks_{};
};

}  // namespace

Image read_bmp(std::string_view bytes, const std::string& name, int64_t channels) {
  return Bmp(bytes, name).read(channels);
}

}  // namespace tenon::data
