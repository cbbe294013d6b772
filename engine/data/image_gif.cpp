#include "engine/data/image_format.h"

#ifdef TENON_GIF
#include <gif_lib.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tenon::data {
namespace {

struct GifBytes {
  std::string_view rest;
};

int take_gif_bytes(GifFileType* gif, GifByteType* to, int n) {
  auto& in = *static_cast<GifBytes*>(gif->UserData);
  const size_t have = std::min(in.rest.size(), static_cast<size_t>(std::max(0, n)));
  std::memcpy(to, in.rest.data(), have);
  in.rest.remove_prefix(have);
  return static_cast<int>(have);
}

/// Record by record: DGifSlurp would unpack every picture of a film, however large.
class Gif {
 public:
  Gif(std::string_view bytes, const std::string& name) : in_{bytes}, name_(name) {
    int why = 0;
    gif_ = DGifOpen(&in_, take_gif_bytes, &why);
    if (!gif_) throw Error(name + " is damaged: " + words(why));
  }
  ~Gif() { DGifCloseFile(gif_, nullptr); }
  Gif(const Gif&) = delete;

  Image read(int64_t channels) {
    const int64_t height = gif_->SHeight, width = gif_->SWidth;
    check_image_size(height, width, name_);
    for (;;) {
      GifRecordType record = UNDEFINED_RECORD_TYPE;
      check(DGifGetRecordType(gif_, &record));
      if (record == EXTENSION_RECORD_TYPE) take_extension();
      if (record == TERMINATE_RECORD_TYPE) throw Error(name_ + " is damaged: it holds no picture");
      if (record != IMAGE_DESC_RECORD_TYPE) continue;
      check(DGifGetImageDesc(gif_));
      return picture(height, width, channels);
    }
  }

 private:
  static std::string words(int why) {
    const char* text = GifErrorString(why);
    return text ? text : "no reason given";
  }
  void check(int status) const {
    if (status != GIF_OK) throw Error(name_ + " is damaged: " + words(gif_->Error));
  }

  void take_extension() {
    int code = 0;
    GifByteType* block = nullptr;
    check(DGifGetExtension(gif_, &code, &block));
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
      clear_ = control.TransparentColor;
    while (block) check(DGifGetExtensionNext(gif_, &block));
  }

  /// The first picture in its place on the screen; what it leaves free is clear.
  Image picture(int64_t height, int64_t width, int64_t channels) {
    const GifImageDesc& at = gif_->Image;
    const ColorMapObject* colours = at.ColorMap ? at.ColorMap : gif_->SColorMap;
    if (!colours || colours->ColorCount < 1) throw Error(name_ + " is damaged: it holds no colours");
    check_image_size(at.Height, at.Width, name_);
    std::vector<uint8_t> rgba(static_cast<size_t>(4 * height * width), 0);
    std::vector<GifPixelType> line(static_cast<size_t>(at.Width));
    const auto put_line = [&](int64_t y) {
      check(DGifGetLine(gif_, line.data(), at.Width));
      if (y + at.Top >= height) return;
      for (int64_t x = 0; x < at.Width && x + at.Left < width; ++x) {
        const int index = line[static_cast<size_t>(x)];
        if (index == clear_ || index >= colours->ColorCount) continue;
        const GifColorType& c = colours->Colors[index];
        const uint8_t four[] = {c.Red, c.Green, c.Blue, 255};
        std::copy_n(four, 4, rgba.begin() + 4 * ((y + at.Top) * width + x + at.Left));
      }
    };
    if (at.Interlace) {
      const int64_t first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
      for (size_t pass = 0; pass < 4; ++pass)
        for (int64_t y = first[pass]; y < at.Height; y += step[pass]) put_line(y);
    } else {
      for (int64_t y = 0; y < at.Height; ++y) put_line(y);
    }
    return from_rgba(rgba.data(), height, width, channels);
  }

  GifBytes in_;
  const std::string& name_;
  GifFileType* gif_ = nullptr;
  int clear_ = NO_TRANSPARENT_COLOR;
};

}  // namespace

Image read_gif(std::string_view bytes, const std::string& name, int64_t channels) {
  return Gif(bytes, name).read(channels);
}

}  // namespace tenon::data
#endif
