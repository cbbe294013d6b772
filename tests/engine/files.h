#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/error.h"
#include "tests/messages.h"

// What tests of files share.
namespace tenon::testing_files {

/// A folder that goes with its owner.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("tenon-files-" + std::to_string(::getpid()) + "-" + std::to_string(next()++))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    return (path_ / name).string();
  }
  std::string str() const { return path_.string(); }

 private:
  static int& next() {
    static int n = 0;
    return n;
  }
  std::filesystem::path path_;
};

inline void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

using testing_words::error_of;

}  // namespace tenon::testing_files
