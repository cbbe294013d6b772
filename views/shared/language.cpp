#include "views/shared/language.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tenon::views {

namespace {
thread_local bool english_alone = false;

Catalogue& spoken() {
  static Catalogue catalogue;
  return catalogue;
}

/// The numbers and strings of a .mo file: a header of seven numbers, then two tables of {length, offset}, of the
/// originals and of the translations (https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html).
class MoFile {
 public:
  explicit MoFile(std::string_view bytes) : bytes_(bytes) {
    constexpr uint32_t kMagic = 0x950412de, kSwapped = 0xde120495;
    const uint32_t magic = number(0);
    if (magic != kMagic && magic != kSwapped) broken();
    swapped_ = magic == kSwapped;
  }
  uint32_t number(size_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < 4) broken();
    uint32_t n;
    std::memcpy(&n, bytes_.data() + at, 4);
    return swapped_ ? __builtin_bswap32(n) : n;
  }
  std::string_view string(size_t table, uint32_t i) const {
    const size_t length = number(table + size_t{8} * i), offset = number(table + size_t{8} * i + 4);
    if (offset > bytes_.size() || length > bytes_.size() - offset) broken();
    return bytes_.substr(offset, length);
  }
  [[noreturn]] static void broken() { throw Error("this is no compiled catalogue of texts (.mo), or it is cut off"); }

 private:
  std::string_view bytes_;
  bool swapped_ = false;
};
}  // namespace

Catalogue Catalogue::of_mo(std::string_view bytes) {
  const MoFile file(bytes);
  const uint32_t count = file.number(8), originals = file.number(12), translations = file.number(16);
  Catalogue all;
  for (uint32_t i = 0; i < count; ++i)
    if (const auto english = file.string(originals, i), words = file.string(translations, i);
        !english.empty() && !words.empty())
      all.texts_.emplace(english, words);
  return all;
}

const std::string* Catalogue::find(std::string_view english) const {
  const auto found = texts_.find(english);
  return found == texts_.end() ? nullptr : &found->second;
}

void set_language(Catalogue catalogue) { spoken() = std::move(catalogue); }
const std::string* translation(std::string_view english) { return english_alone ? nullptr : spoken().find(english); }
EnglishTexts::EnglishTexts() : before_(std::exchange(english_alone, true)) {}
EnglishTexts::~EnglishTexts() { english_alone = before_; }

std::string tr(const char* english) {
  const std::string* words = translation(english);
  return words ? *words : english;
}

}  // namespace tenon::views
