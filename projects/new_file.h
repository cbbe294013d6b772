#pragma once
#include <string>

#include "core/error.h"

namespace tenon::projects {

/// A database with its log and index; what is not there is not missed.
void remove_database(const std::string& path);

/// A project file that comes to be: made beside its place under another name and put there whole, so that a kill or a
/// full disk leaves no half a project under the name. What was not put goes with the object.
class NewFile {
 public:
  /// Throws where the name is taken; with `replaces` only where the file there may not go: it is a folder, or has a log
  /// beside it, which is another program's work.
  explicit NewFile(const std::string& path, bool replaces = false);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  /// The file to write, closed before put().
  const std::string& half() const { return half_; }
  /// Throws Error where the name was taken meanwhile, or the disk is full.
  void put();
  /// An error of the half-made file, as one of the file it was to become.
  Error named(const Error& e) const;

 private:
  std::string path_, half_;
  bool replaces_;
};

}  // namespace tenon::projects
