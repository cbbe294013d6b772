#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/mapped_pages.h"
#include "core/tensor.h"

namespace tenon {

/// The bytes of a file, or of a string, that tensors may be windows of. A file is mapped: its pages are read when they
/// are touched, and a write goes to a private copy of the page, never to the file. Of a file that is cut short
/// meanwhile see mapped_pages.h. One of the cache folder is held while it is open: see cache_folder.h.
class MappedFile {
 public:
  /// Throws Error naming the file. What cannot be mapped (a pipe) is read.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  static std::shared_ptr<const MappedFile> of(std::string bytes, std::string name);
  /// A stretch of another one, which lives as long; it must lie inside.
  static std::shared_ptr<const MappedFile> part(std::shared_ptr<const MappedFile> whole, size_t offset, size_t bytes);
  MappedFile(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  /// Lets go of the pages of a part, which are read again when they are touched. No tensor may be a window of it: what
  /// was written there would be lost.
  void forget(std::string_view part) const;
  const std::string& name() const { return name_; }

 private:
  MappedFile() = default;
  std::string name_, owned_;
  std::string_view bytes_;
  MappedPages pages_;
  std::shared_ptr<const MappedFile> whole_;  ///< whose bytes these are
  std::shared_ptr<const void> held_;
};

/// A flat tensor over `bytes` bytes at `offset`, which must lie inside the file and hold whole elements. It is a window
/// of the file where the elements are aligned there, and a copy where they are not, where their byte order is
/// `swapped`, or where a bool is neither 0 nor 1.
Tensor tensor_of(const std::shared_ptr<const MappedFile>& file, size_t offset, size_t bytes, DType dtype,
                 bool swapped = false);
/// Lets go of the pages of a tensor that is a window of a file: they are read again when they are touched. What was
/// written to it is lost, so it is for values that are only looked at. Does nothing to any other tensor.
void forget_pages(const Tensor& t);

}  // namespace tenon
