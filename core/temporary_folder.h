#pragma once
#include <string>

namespace tenon {

/// A new folder of its own among the system's temporary ones; it goes, with all in it, with its owner.
class TemporaryFolder {
 public:
  /// `name` begins the folder's name. Throws Error where none can be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

}  // namespace tenon
