#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Pages of an open file, read when they are touched.
///
/// Note [A file that is cut short while it is mapped]
/// Who overwrites a file begins by cutting it short: a script that saves its weights once more, a download begun anew.
/// The system answers a look at a page that the file has lost with SIGBUS, which ends a program. Here such a page, and
/// those behind it, become zeros, and the file is noted: whoever shows or writes what was worked out of it asks
/// cut_files() and says so. That holds for the first thousand mappings that are there at one time.
class MappedPages {
 public:
  enum class Writes { none, to_copies };  ///< a write goes to a private copy of its page, never to the file

  MappedPages() = default;
  /// The first `bytes` of an open file, which may be closed afterwards. `name`: of the file, for people. Empty where
  /// the system refuses, with the reason in errno, and where there are no bytes.
  MappedPages(int file, size_t bytes, const std::string& name, Writes writes = Writes::none);
  ~MappedPages();
  MappedPages(MappedPages&& other) noexcept;
  MappedPages& operator=(MappedPages&& other) noexcept;

  explicit operator bool() const { return data_ != nullptr; }
  std::string_view bytes() const { return {static_cast<const char*>(data_), bytes_}; }
  /// They are read from the first to the last: the system reads on ahead.
  void expect_in_order() const;
  /// Lets go of the pages that lie inside [from, to): they are read again when they are touched, and count as nobody's
  /// memory until then. What was written to them is lost.
  void forget(size_t from, size_t to) const;

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  int slot_ = -1;
};

/// The names of the files that a look found cut short since the last call, each once.
std::vector<std::string> cut_files();

}  // namespace tenon
