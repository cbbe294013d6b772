// Images of every format against values that are known: what is written here by hand, or by another library.
#include <png.h>

#include <cstring>

#include "engine/data/image_format.h"
#include "tests/engine/data_files.h"

namespace tenon::data {
namespace {

using testing_data::make_files;
using testing_data::write_tar;
using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;
using Bytes = std::vector<uint8_t>;

std::string little(uint64_t v, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(v >> (8 * i));
  return s;
}

/// A BMP of a header of 40 bytes; `after` stands between header and pixels.
std::string bmp(int64_t width, int64_t height, int bits, int packing, const std::string& after,
                const std::string& pixels, int colours = 0) {
  return "BM" + little(54 + after.size() + pixels.size(), 4) + little(0, 4) + little(54 + after.size(), 4) +
         little(40, 4) + little(static_cast<uint64_t>(width), 4) + little(static_cast<uint64_t>(height), 4) +
         little(1, 2) + little(static_cast<uint64_t>(bits), 2) + little(static_cast<uint64_t>(packing), 4) +
         little(pixels.size(), 4) + little(0, 8) + little(static_cast<uint64_t>(colours), 4) + little(0, 4) + after +
         pixels;
}

/// Red, green / blue, white.
const Bytes kFour = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
std::string line24(const Bytes& rgb, size_t row) {
  std::string s;
  for (size_t x = 0; x < 2; ++x)
    for (size_t k = 3; k > 0; --k) s += static_cast<char>(rgb[(row * 2 + x) * 3 + k - 1]);
  return s + std::string(2, '\0');
}

TEST(Bmp, IsReadInEveryDepthAndBothDirections) {
  const std::string up = line24(kFour, 1) + line24(kFour, 0), down = line24(kFour, 0) + line24(kFour, 1);
  EXPECT_EQ(parse_image(bmp(2, 2, 24, 0, "", up), "a.bmp", 3).pixels, kFour);
  EXPECT_EQ(parse_image(bmp(2, -2, 24, 0, "", down), "a.bmp", 3).pixels, kFour);
  EXPECT_EQ(parse_image(bmp(2, 2, 24, 0, "", up), "a.bmp", 1).pixels, (Bytes{76, 150, 29, 255}));
  const std::string palette = std::string("\0\0\xff\0\0\xff\0\0\xff\0\0\0\xff\xff\xff\0", 16);
  EXPECT_EQ(parse_image(bmp(2, 2, 8, 0, palette, std::string("\2\3\0\0\0\1\0\0", 8), 4), "a.bmp", 3).pixels, kFour);
  EXPECT_EQ(parse_image(bmp(2, 2, 4, 0, palette, std::string("\x23\0\0\0\x01\0\0\0", 8), 4), "a.bmp", 3).pixels, kFour);
  // Runs: two lines, the lower first, and the end.
  EXPECT_EQ(parse_image(bmp(2, 2, 8, 1, palette, std::string("\1\2\1\3\0\0\1\0\1\1\0\1", 12), 4), "a.bmp", 3).pixels,
            kFour);
  EXPECT_EQ(parse_image(bmp(2, 1, 8, 1, palette, std::string("\2\2\0\1", 4), 4), "a.bmp", 3).pixels,
            (Bytes{0, 0, 255, 0, 0, 255}));
  EXPECT_EQ(parse_image(bmp(1, 1, 16, 0, "", std::string("\x00\x7c\0\0", 4)), "a.bmp", 3).pixels, (Bytes{255, 0, 0}));
  EXPECT_EQ(parse_image(bmp(1, 1, 32, 0, "", "\x01\x02\x03\x04"), "a.bmp", 3).pixels, (Bytes{3, 2, 1}));
}

TEST(Bmp, RefusesDamageBeforeItTakesMemory) {
  const std::string good = bmp(2, 2, 24, 0, "", line24(kFour, 1) + line24(kFour, 0));
  for (size_t n = 2; n + 2 < good.size(); ++n)  // the last two bytes fill up a line
    EXPECT_SAYS(error_of([&] { parse_image(good.substr(0, n), "a.bmp", 3); }), "a.bmp is ");
  EXPECT_SAYS(error_of([] { parse_image(bmp(60000, 60000, 24, 0, "", ""), "a.bmp", 3); }), "more than 2^26");
  EXPECT_SAYS(error_of([] { parse_image(bmp(0, 4, 24, 0, "", ""), "a.bmp", 3); }), "0 x 4 pixels");
  EXPECT_SAYS(error_of([] { parse_image(bmp(2, 2, 24, 4, "", ""), "a.bmp", 3); }), "packing 4");
  EXPECT_SAYS(error_of([] { parse_image(bmp(2, 2, 7, 0, "", ""), "a.bmp", 3); }), "7 bits a pixel");
}

/// A PNG of any depth by libpng's low level: rows of samples as they stand in the file.
std::string png_of(int width, int height, int depth, int type, const std::vector<uint16_t>& values) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string out;
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep b, png_size_t n) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(b), n);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth, type,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const size_t per_row = values.size() / static_cast<size_t>(height);
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    Bytes row;
    for (size_t i = 0; i < per_row; ++i) {
      const uint16_t v = values[y * per_row + i];
      if (depth == 16) row.push_back(static_cast<uint8_t>(v >> 8));
      row.push_back(static_cast<uint8_t>(v));
    }
    png_write_row(png, row.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

TEST(Png, Of16BitsKeepsTheUpperEight) {
  const std::string grey = png_of(4, 1, 16, PNG_COLOR_TYPE_GRAY, {0, 0x8080, 0x4040, 0xffff});
  EXPECT_EQ(parse_image(grey, "a.png", 1).pixels, (Bytes{0, 128, 64, 255}));
  EXPECT_EQ(parse_image(grey, "a.png", 3).pixels, (Bytes{0, 0, 0, 128, 128, 128, 64, 64, 64, 255, 255, 255}));
  const std::string colours = png_of(2, 1, 16, PNG_COLOR_TYPE_RGB, {0x1010, 0x2020, 0x3030, 0xffff, 0, 0x7f7f});
  EXPECT_EQ(parse_image(colours, "a.png", 3).pixels, (Bytes{16, 32, 48, 255, 0, 127}));
}

TEST(Png, WhatIsClearLiesOnBlackByItsShare) {
  const std::string grey = png_of(4, 1, 8, PNG_COLOR_TYPE_GRAY_ALPHA, {200, 255, 200, 0, 200, 128, 51, 255});
  EXPECT_EQ(parse_image(grey, "a.png", 1).pixels, (Bytes{200, 0, 100, 51}));
  EXPECT_EQ(parse_image(grey, "a.png", 3).pixels, (Bytes{200, 200, 200, 0, 0, 0, 100, 100, 100, 51, 51, 51}));
  const std::string deep = png_of(2, 1, 16, PNG_COLOR_TYPE_GRAY_ALPHA, {0xc8c8, 0xffff, 0xc8c8, 0x8080});
  EXPECT_EQ(parse_image(deep, "a.png", 1).pixels, (Bytes{200, 100}));
  const std::string colours = png_of(1, 1, 8, PNG_COLOR_TYPE_RGB_ALPHA, {255, 100, 0, 51});
  EXPECT_EQ(parse_image(colours, "a.png", 3).pixels, (Bytes{51, 20, 0}));
}

const ImageFormat& format_of(const std::string& name) {
  for (const ImageFormat& f : image_formats())
    if (f.name == name) return f;
  throw Error("no format " + name);
}

std::string seed(const char* name) {
  std::ifstream in(std::string(TENON_SOURCE_DIR) + "/tests/fuzz/seeds/image/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {}).substr(1);
}

/// The seeds were written by Pillow: a gradient of 8 x 6 pixels, (30 x, 40 y, 10 (x + y)).
TEST(ImageFormats, OtherLibrariesFilesComeOutAsTheyWentIn) {
  for (const auto& [format, file] :
       {std::pair{"GIF", "gif"}, {"WebP", "webp"}, {"TIFF", "tiff"}, {"TIFF", "tiff-lzw"}, {"BMP", "bmp"}}) {
    if (!format_of(format).read) continue;  // the test below says what is told then
    const Image image = parse_image(seed(file), file, 3);
    ASSERT_EQ(image.height, 6) << file;
    ASSERT_EQ(image.width, 8) << file;
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 8; ++x) {
        const uint8_t* p = image.pixels.data() + (y * 8 + x) * 3;
        EXPECT_EQ(p[0], 30 * x) << file;
        EXPECT_EQ(p[1], 40 * y) << file;
        EXPECT_EQ(p[2], 10 * (x + y)) << file;
      }
    EXPECT_EQ(parse_image(seed(file), file, 1).channels, 1);
  }
}

TEST(ImageFormats, ABuildWithoutALibraryNamesThePackage) {
  std::vector<ImageFormat> without = image_formats();
  for (ImageFormat& f : without)
    if (f.name == std::string("WebP")) f.read = nullptr;
  const std::string e = error_of([&] { parse_image(seed("webp"), "cats/1.webp", 3, without); });
  EXPECT_SAYS(e, "cats/1.webp is a WebP image");
  EXPECT_SAYS(e, "install libwebp-dev");
  for (const char* name : {"a.bmp", "A.GIF", "b.WebP", "c.tif", "c.tiff", "d.JPEG"}) EXPECT_TRUE(is_image_name(name));
  EXPECT_FALSE(is_image_name("notes.txt"));
}

TEST(ImageFormats, FoldersAndShardsHoldThemAll) {
  Folder dir, shards;
  std::vector<std::pair<std::string, std::string>> members;
  int n = 0;
  for (const char* file : {"bmp", "gif", "webp", "tiff"}) {
    if (!image_formats()[0].read) continue;
    for (int i = 0; i < 5; ++i) {
      const std::string key = std::to_string(n++);
      write(dir.file(std::string(i % 2 ? "a/" : "b/") + key + "." + file), seed(file));
      members.push_back({key + "." + file, seed(file)});
      members.push_back({key + ".cls", std::to_string(i % 2)});
    }
  }
  write(dir.file("a/notes.txt"), "no image");
  Split split = open_dataset("image-folder", {.dir = dir.str()});
  EXPECT_EQ(split.train->size() + split.test->size(), 20);
  EXPECT_SAYS(testing_data::lines_of(split.remarks), "1 files are passed over, since only JPEG, PNG, BMP, GIF");
  write_tar(shards.file("train-0.tar"), members, false);
  write_tar(shards.file("test-0.tar"), members, false);
  const Split stream = open_dataset("webdataset", {.dir = shards.str()});
  EXPECT_EQ(stream.train->size(), 20);
  bool all = true;
  for (const ImageFormat& f : image_formats()) all &= f.read != nullptr;
  for (int64_t row = 0; all && row < 20; ++row) {
    const Batch one = fetch(*stream.train, {row});
    EXPECT_GT(one.x.data<float>()[3 * 32 * 32 - 1], 0) << "blue in the corner of sample " << row;
  }
}

}  // namespace
}  // namespace tenon::data
