#include "engine/data/image_format.h"

#ifdef TENON_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace tenon::data {
namespace {

constexpr tmsize_t kMostPiece = tmsize_t{1} << 28;

/// A TIFF in memory, for libtiff's callbacks.
struct TiffBytes {
  std::string_view bytes;
  uint64_t at = 0;
};

tmsize_t take_tiff_bytes(thandle_t h, void* to, tmsize_t n) {
  auto& in = *static_cast<TiffBytes*>(h);
  if (n < 0 || in.at >= in.bytes.size()) return 0;
  const auto have = std::min<uint64_t>(static_cast<uint64_t>(n), in.bytes.size() - in.at);
  std::memcpy(to, in.bytes.data() + in.at, have);
  in.at += have;
  return static_cast<tmsize_t>(have);
}
toff_t seek_tiff(thandle_t h, toff_t to, int whence) {
  auto& in = *static_cast<TiffBytes*>(h);
  in.at = whence == SEEK_SET ? to : whence == SEEK_CUR ? in.at + to : in.bytes.size() + to;
  return in.at;
}

/// Keeps the first error: the others follow from it.
int keep_tiff_error(TIFF*, void* to, const char*, const char* format, va_list args) {
  char text[256];
  std::vsnprintf(text, sizeof text, format, args);
  auto& why = *static_cast<std::string*>(to);
  if (why.empty()) why = text;
  return 1;
}

struct FreeTiffOptions {
  void operator()(TIFFOpenOptions* o) const { TIFFOpenOptionsFree(o); }
};
struct CloseTiff {
  void operator()(TIFF* t) const { TIFFClose(t); }
};

}  // namespace

Image read_tiff(std::string_view bytes, const std::string& name, int64_t channels) {
  TiffBytes in{bytes};
  std::string why;
  const auto damaged = [&] { return Error(name + " is damaged: " + (why.empty() ? "no reason given" : why)); };
  const std::unique_ptr<TIFFOpenOptions, FreeTiffOptions> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostPiece);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_tiff_error, &why);
  TIFFOpenOptionsSetWarningHandlerExtR(
      options.get(), [](TIFF*, void*, const char*, const char*, va_list) { return 1; }, nullptr);
  const std::unique_ptr<TIFF, CloseTiff> tiff(TIFFClientOpenExt(
      name.c_str(), "rm", &in, take_tiff_bytes, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; }, seek_tiff,
      [](thandle_t) { return 0; }, [](thandle_t h) -> toff_t { return static_cast<TiffBytes*>(h)->bytes.size(); },
      nullptr, nullptr, options.get()));
  if (!tiff) throw damaged();
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  check_image_size(height, width, name);
  char reason[1024] = "";
  if (!TIFFRGBAImageOK(tiff.get(), reason))
    throw Error(name + " is a TIFF of a kind that is not read: " + reason, "save it as PNG");
  std::vector<uint32_t> pixels(static_cast<size_t>(height) * width);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1)) throw damaged();
  std::vector<uint8_t> rgba(4 * pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    // libtiff has multiplied colours by their opacity: they lie on black as they are.
    rgba[4 * i] = static_cast<uint8_t>(TIFFGetR(pixels[i]));
    rgba[4 * i + 1] = static_cast<uint8_t>(TIFFGetG(pixels[i]));
    rgba[4 * i + 2] = static_cast<uint8_t>(TIFFGetB(pixels[i]));
    rgba[4 * i + 3] = 255;
  }
  return from_rgba(rgba.data(), height, width, channels);
}

}  // namespace tenon::data
#endif
