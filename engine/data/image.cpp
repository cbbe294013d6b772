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

namespace tenon::data {
namespace {

constexpr int64_t kMost = int64_t{1} << 26;

void check_size(int64_t height, int64_t width, const std::string& name) {
  if (height < 1 || width < 1)
    throw Error(name + " is an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
  if (height > kMost / width)
    throw Error(name + " is an image of " + std::to_string(width) + " x " + std::to_string(height) +
                    " pixels; more than 2^26 are not read",
                "make it smaller");
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
    if (channels == 1)  // Rec. 601, as libjpeg and libpng weigh colours
      image.pixels[p] = static_cast<uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    else
      for (size_t k = 0; k < 3; ++k) image.pixels[3 * p + k] = static_cast<uint8_t>(rgb[k]);
  }
}

/// libjpeg leaves by longjmp: nothing with a destructor may live between setjmp and there but what the caller owns.
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
  if (image.height > kMost / std::max<int64_t>(1, image.width)) {
    too_large = true;
    jpeg_destroy_decompress(&jpeg);
    return false;
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

Image parse_png(std::string_view bytes, const std::string& name, int64_t channels) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  struct Free {
    png_image* p;
    ~Free() { png_image_free(p); }
  } free{&png};
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()))
    throw Error(name + " is damaged: " + png.message);
  check_size(png.height, png.width, name);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // of 16 bits the upper 8, as for files that have only these
  Image image{png.height, png.width, channels, std::vector<uint8_t>(PNG_IMAGE_SIZE(png))};
  png_color black{0, 0, 0};
  if (!png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr))
    throw Error(name + " is damaged: " + png.message);
  return image;
}

}  // namespace

Image parse_image(std::string_view bytes, const std::string& name, int64_t channels) {
  if (channels != 1 && channels != 3) throw Error::usage("images have 1 channel or 3, not " + std::to_string(channels));
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return parse_png(bytes, name, channels);
  if (!bytes.starts_with("\xff\xd8"))
    throw Error(name + " is neither a JPEG nor a PNG image: its first bytes are of another kind");
  Image image;
  JpegFailure failure;
  std::vector<uint8_t> inks;
  bool too_large = false, upside_down = false;
  if (!decode_jpeg(bytes, channels, image, inks, upside_down, failure, too_large)) {
    if (too_large) check_size(image.height, image.width, name);
    throw Error(name + " is damaged: " + failure.text);
  }
  if (!inks.empty()) from_inks(image, inks, channels, upside_down);
  return image;
}

Image read_image(const std::string& path, int64_t channels) { return parse_image(read_file(path), path, channels); }

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
  std::string low = name;
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* end : {".png", ".jpg", ".jpeg"})
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
