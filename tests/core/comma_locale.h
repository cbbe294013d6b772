#pragma once
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace tenon::testing_locale {

/// While it lives, the C library reads and writes 0,5, as under a desktop in German or French. False where no such
/// locale is installed and none can be made.
class CommaLocale {
 public:
  CommaLocale() {
    for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "it_IT.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8"})
      if (set(name)) return;
    std::filesystem::create_directories(folder_);
    const std::string make = "localedef -i de_DE -f UTF-8 '" + folder_ + "/de_DE.UTF-8' >/dev/null 2>&1";
    if (std::system(make.c_str()) < 0) return;
    ::setenv("LOCPATH", folder_.c_str(), 1);
    set("de_DE.UTF-8");
    ::unsetenv("LOCPATH");
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    std::filesystem::remove_all(folder_);
  }
  CommaLocale(const CommaLocale&) = delete;
  explicit operator bool() const { return on_; }
  static constexpr const char* kMissing =
      "no locale with a comma in its numbers is installed, and localedef makes none";

 private:
  bool set(const char* name) {
    on_ = std::setlocale(LC_ALL, name) && *std::localeconv()->decimal_point == ',';
    return on_;
  }
  std::string folder_ =
      (std::filesystem::temp_directory_path() / ("tenon-locale-" + std::to_string(::getpid()))).string();
  bool on_ = false;
};

}  // namespace tenon::testing_locale
