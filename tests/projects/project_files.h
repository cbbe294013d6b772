#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "projects/project.h"

namespace tenon::projects::testing_files {

/// A folder that goes with the test.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;  ///< of the files in it, sorted

 private:
  std::string path_;
};

ModelSpec small_model();
nlohmann::json small_recipe();
std::string read(const std::string& path);
void write(const std::string& path, const std::string& bytes);
/// The error of a call on a full disk; the test fails where there is none, or one of another kind.
Error no_space_of(const std::function<void()>& call);

}  // namespace tenon::projects::testing_files
