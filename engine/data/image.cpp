#include "engine/data/image.h"

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/file.h"
#include "core/parallel.h"
#include "core/sha256.h"
#include "engine/data/image_format.h"

namespace tenon::data {
namespace {

constexpr int64_t kMost = int64_t{1} << 26;

/// Rec. 601, as libjpeg weighs colours.
uint8_t grey_of(int red, int green, int blue) {
  return static_cast<uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

struct JpegFailure {
  jpeg_error_mgr manager;
  jmp_buf back;
  char text[JMSG_LENGTH_MAX] = "";
};

/// Four inks a pixel as three colours or one grey. Programs of Adobe write inks upside down, 255 for none.
void from_inks(Image& image, const std::vector<uint8_t>& inks, int64_t channels, bool upside_down) {
  image.channels = channels;
  image.pixels.resize(static_cast<size_t>(image.height * image.width * channels));
  for (size_t p = 0; p < inks.size() / 4; ++p) {
    int light[4];
    for (size_t k = 0; k < 4; ++k) light[k] = upside_down ? inks[4 * p + k] : 255 - inks[4 * p + k];
    int rgb[3];
    for (size_t k = 0; k < 3; ++k) rgb[k] = (light[k] * light[3] + 127) / 255;
    if (channels == 1)
      image.pixels[p] = grey_of(rgb[0], rgb[1], rgb[2]);
    else
      for (size_t k = 0; k < 3; ++k) image.pixels[3 * p + k] = static_cast<uint8_t>(rgb[k]);
  }
}

/// libjpeg leaves by longjmp: nothing with a destructor may live between setjmp and there but what the caller owns.
/// Of no channels only the size is read.
bool decode_jpeg(std::string_view bytes, int64_t channels, Image& image, std::vector<uint8_t>& inks, bool& upside_down,
                 JpegFailure& failure, bool& too_large) {
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = [](j_common_ptr c) {
    auto* f = reinterpret_cast<JpegFailure*>(c->err);
    c->err->format_message(c, f->text);
    longjmp(f->back, 1);
  };
  // A warning means damaged data, for which libjpeg would invent pixels.
  failure.manager.emit_message = [](j_common_ptr c, int level) {
    if (level < 0) c->err->error_exit(c);
  };
  failure.manager.output_message = [](j_common_ptr) {};
  if (setjmp(failure.back)) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg.mem->max_memory_to_use = 1L << 28;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  image.height = jpeg.image_height;
  image.width = jpeg.image_width;
  too_large = image.height > kMost / std::max<int64_t>(1, image.width);
  if (too_large || channels == 0) {
    jpeg_destroy_decompress(&jpeg);
    return !too_large;
  }
  const bool four = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  upside_down = jpeg.saw_Adobe_marker;
  jpeg.out_color_space = four ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  image.channels = channels;
  std::vector<uint8_t>& to = four ? inks : image.pixels;
  const int64_t line = image.width * (four ? 4 : channels);
  to.resize(static_cast<size_t>(image.height * line));
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = to.data() + static_cast<int64_t>(jpeg.output_scanline) * line;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

/// Of no channels only the size is read.
Image read_png(std::string_view bytes, const std::string& name, int64_t channels) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  struct Free {
    png_image* p;
    ~Free() { png_image_free(p); }
  } free{&png};
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()))
    throw Error(name + " is damaged: " + png.message);
  check_image_size(png.height, png.width, name);
  if (channels == 0) return {png.height, png.width, 0, {}};
  // libpng would lay colours on black as light, where every other format is laid on it by its numbers.
  const bool clear = png.format & PNG_FORMAT_FLAG_ALPHA;
  png.format = clear ? PNG_FORMAT_RGBA : channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // of 16 bits the upper 8, as for files that have only these
  Image image{png.height, png.width, channels, std::vector<uint8_t>(PNG_IMAGE_SIZE(png))};
  if (!png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr))
    throw Error(name + " is damaged: " + png.message);
  return clear ? from_rgba(image.pixels.data(), image.height, image.width, channels) : image;
}

Image read_jpeg(std::string_view bytes, const std::string& name, int64_t channels) {
  Image image;
  JpegFailure failure;
  std::vector<uint8_t> inks;
  bool too_large = false, upside_down = false;
  if (!decode_jpeg(bytes, channels, image, inks, upside_down, failure, too_large)) {
    if (too_large) check_image_size(image.height, image.width, name);
    throw Error(name + " is damaged: " + failure.text);
  }
  if (!inks.empty()) from_inks(image, inks, channels, upside_down);
  return image;
}

bool is_webp(std::string_view b) { return b.starts_with("RIFF") && b.substr(0, 12).ends_with("WEBP"); }
bool is_tiff(std::string_view b) {
  return b.starts_with(std::string_view("II*\0", 4)) || b.starts_with(std::string_view("MM\0*", 4)) ||
         b.starts_with(std::string_view("II+\0", 4)) || b.starts_with(std::string_view("MM\0+", 4));
}

#ifdef TENON_GIF
constexpr auto kReadGif = read_gif;
#else
constexpr decltype(&read_gif) kReadGif = nullptr;
#endif
#ifdef TENON_WEBP
constexpr auto kReadWebp = read_webp;
#else
constexpr decltype(&read_webp) kReadWebp = nullptr;
#endif
#ifdef TENON_TIFF
constexpr auto kReadTiff = read_tiff;
#else
constexpr decltype(&read_tiff) kReadTiff = nullptr;
#endif

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

const std::vector<ImageFormat>& image_formats() {
  static const std::vector<ImageFormat> all = {
      {"JPEG",
       {".jpg", ".jpeg"},
       "libjpeg-dev",
       [](std::string_view b) { return b.starts_with("\xff\xd8"); },
       read_jpeg,
       true},
      {"PNG",
       {".png"},
       "libpng-dev",
       [](std::string_view b) { return b.starts_with("\x89PNG\r\n\x1a\n"); },
       read_png,
       true},
      {"BMP", {".bmp"}, "nothing", [](std::string_view b) { return b.starts_with("BM"); }, read_bmp},
      {"GIF", {".gif"}, "libgif-dev", [](std::string_view b) { return b.starts_with("GIF8"); }, kReadGif},
      {"WebP", {".webp"}, "libwebp-dev", is_webp, kReadWebp},
      {"TIFF", {".tif", ".tiff"}, "libtiff-dev", is_tiff, kReadTiff},
  };
  return all;
}

std::string image_kinds() {
  std::string names;
  const auto& all = image_formats();
  for (size_t i = 0; i < all.size(); ++i)
    names += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + std::string(all[i].name);
  return names;
}

void check_image_size(int64_t height, int64_t width, const std::string& name) {
  if (height < 1 || width < 1)
    throw Error(name + " is an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
  if (height > kMost / width)
    throw Error(name + " is an image of " + std::to_string(width) + " x " + std::to_string(height) +
                    " pixels; more than 2^26 are not read",
                "make it smaller");
}

Image from_rgba(const uint8_t* rgba, int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, std::vector<uint8_t>(static_cast<size_t>(height * width * channels))};
  for (int64_t i = 0; i < height * width; ++i) {
    int on_black[3];
    for (int k = 0; k < 3; ++k) on_black[k] = (rgba[4 * i + k] * rgba[4 * i + 3] + 127) / 255;
    uint8_t* to = image.pixels.data() + i * channels;
    if (channels == 1)
      *to = grey_of(on_black[0], on_black[1], on_black[2]);
    else
      for (int k = 0; k < 3; ++k) to[k] = static_cast<uint8_t>(on_black[k]);
  }
  return image;
}

Image parse_image(std::string_view bytes, const std::string& name, int64_t channels) {
  return parse_image(bytes, name, channels, image_formats());
}

Image parse_image(std::string_view bytes, const std::string& name, int64_t channels,
                  const std::vector<ImageFormat>& formats) {
  if (channels != 1 && channels != 3) throw Error::usage("images have 1 channel or 3, not " + std::to_string(channels));
  for (const ImageFormat& f : formats) {
    if (!f.is(bytes)) continue;
    if (f.read) return f.read(bytes, name, channels);
    throw Error(name + " is a " + f.name + " image, and this build reads none: " + f.package + " was not there",
                "install " + std::string(f.package) + " and build anew");
  }
  throw Error(name + " is no image of a kind that is read (" + image_kinds() +
              "): its first bytes are of another kind");
}

Image read_image(const std::string& path, int64_t channels) { return parse_image(read_file(path), path, channels); }

ImageSize size_of_image(const std::string& path) {
  const std::string bytes = read_file(path);
  const auto of = [](const Image& image) { return ImageSize{image.height, image.width}; };
  for (const ImageFormat& f : image_formats())
    if (f.sizes && f.is(bytes)) return of(f.read(bytes, path, 0));
  return of(parse_image(bytes, path, 1));
}

std::vector<BadImage> bad_images(const std::vector<std::string>& paths) {
  Sha256 names;
  for (const std::string& path : paths) {
    std::error_code ec;
    names.update(path + "|" + std::to_string(std::filesystem::file_size(path, ec)) + "|" +
                 std::to_string(std::filesystem::last_write_time(path, ec).time_since_epoch().count()) + "\n");
  }
  const Sha256Digest key = names.finish();
  static std::mutex mutex;
  static std::map<Sha256Digest, std::vector<BadImage>> known;
  {
    std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  std::vector<std::string> why(paths.size());
  parallel_for(static_cast<int64_t>(paths.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) try {
        read_image(paths[static_cast<size_t>(i)], 3);
      } catch (const Error& e) {
        why[static_cast<size_t>(i)] = e.message();
      }
  });
  std::vector<BadImage> bad;
  for (size_t i = 0; i < why.size(); ++i)
    if (!why[i].empty()) bad.push_back({i, why[i]});
  std::lock_guard lock(mutex);
  return known[key] = bad;
}

bool is_image_name(const std::string& name) {
  const std::string low = lower(name);
  for (const ImageFormat& f : image_formats())
    for (const char* end : f.endings)
      if (low.ends_with(end)) return true;
  return false;
}

void resize_plane(const float* from, int64_t height, int64_t width, float* to, int64_t to_height, int64_t to_width) {
  // One axis after the other. A tent as wide as a pixel of the coarser side: bilinear where it grows, a mean where it
  // shrinks.
  auto along = [](const float* in, int64_t n, int64_t step, float* out, int64_t m, int64_t out_step) {
    const double scale = static_cast<double>(n) / static_cast<double>(m), radius = std::max(1.0, scale);
    for (int64_t i = 0; i < m; ++i) {
      const double centre = (static_cast<double>(i) + 0.5) * scale - 0.5;
      double sum = 0, weights = 0;
      for (auto k = static_cast<int64_t>(std::ceil(centre - radius));
           k <= static_cast<int64_t>(std::floor(centre + radius)); ++k) {
        double w = 1 - std::abs(static_cast<double>(k) - centre) / radius;
        if (w <= 0) continue;
        sum += w * static_cast<double>(in[std::clamp<int64_t>(k, 0, n - 1) * step]);
        weights += w;
      }
      out[i * out_step] = static_cast<float>(sum / weights);
    }
  };
  std::vector<float> narrow(static_cast<size_t>(height * to_width));
  for (int64_t i = 0; i < height; ++i) along(from + i * width, width, 1, narrow.data() + i * to_width, to_width, 1);
  for (int64_t j = 0; j < to_width; ++j) along(narrow.data() + j, height, to_width, to + j, to_height, to_width);
}

void to_planes(const Image& image, int64_t height, int64_t width, float* to) {
  const int64_t c = image.channels;
  // The largest middle part of the wanted shape.
  int64_t h = image.height, w = image.width;
  if (h * width > w * height)
    h = std::max<int64_t>(1, w * height / width);
  else
    w = std::max<int64_t>(1, h * width / height);
  const int64_t top = (image.height - h) / 2, left = (image.width - w) / 2;
  std::vector<float> plane(static_cast<size_t>(h * w));
  for (int64_t k = 0; k < c; ++k) {
    for (int64_t i = 0; i < h; ++i)
      for (int64_t j = 0; j < w; ++j)
        plane[static_cast<size_t>(i * w + j)] =
            static_cast<float>(image.pixels[static_cast<size_t>(((i + top) * image.width + j + left) * c + k)]) /
            255.0f;
    if (h == height && w == width)
      std::copy(plane.begin(), plane.end(), to + k * height * width);
    else
      resize_plane(plane.data(), h, w, to + k * height * width, height, width);
  }
}

std::string png_bytes(const Image& image) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  if (!png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr))
    throw Error(std::string("a PNG could not be made: ") + png.message);
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr))
    throw Error(std::string("a PNG could not be made: ") + png.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace tenon::data
