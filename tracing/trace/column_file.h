#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/mapped_file.h"
#include "tracing/trace/file_key.h"

// Saved stores: what was read of a large trace or snapshot as columns that are mapped the next time. See Note [Column
// files] in column_file.cpp.
namespace tenon::traces {

/// What stores are of.
struct StoreKind {
  std::string_view magic;   ///< the first eight bytes; the last of them counts the versions of what stands in a store
  std::string_view ending;  ///< of the name of one that was put beside its file: ".tenon-trace"
  std::string_view folder;  ///< in the user's cache folder: "traces"
};

/// Puts a store together. Columns are not copied: they must be there until it is written.
class ColumnWriter {
 public:
  nlohmann::json head;  ///< all that is small; "key" and "sections" are the file's own

  template <class T>
  void column(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    sections_.push_back({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  uint64_t bytes() const;  ///< of the columns
  /// Throws Error where it cannot be written: then there is the old file, or none.
  void write(const StoreKind& kind, const FileKey& key, const std::string& path) const;

 private:
  std::vector<std::string_view> sections_;
};

/// A store that is mapped. Whoever holds its columns holds file().
class ColumnFile {
 public:
  /// Null where the file is no store of that kind and version, or not that of the file of `wanted`, where one is named.
  /// Throws Error "damaged" where its beginning is; what lies behind that is looked at by whole() and column().
  static std::optional<ColumnFile> open(const StoreKind& kind, const std::string& path, const FileKey* wanted);

  const nlohmann::json& head() const { return head_; }
  const FileKey& key() const { return key_; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  /// Whether every byte is as it was written. Reads all of it, on every core.
  bool whole() const;
  /// The next one, in the order in which they were written. Throws Error "damaged" where it does not lie in the file.
  template <class T>
  std::span<const T> column() {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);
    const std::string_view bytes = next(sizeof(T));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  static constexpr size_t kAlignment = 64;
  friend class ColumnWriter;
  std::string_view next(size_t item);

  std::shared_ptr<const MappedFile> file_;
  nlohmann::json head_;
  FileKey key_;
  uint64_t at_ = 0;
  size_t section_ = 0;
};

/// What the last eight bytes of a store say of those before them: another number where any of them is another. Does
/// not depend on how many threads there are.
uint64_t content_hash(std::string_view bytes);

/// Whether a file's first bytes are those of a store of that kind, of any version.
bool is_store(const StoreKind& kind, std::string_view bytes);
/// Where the store of a file may be: in the user's cache folder, where it is saved, or beside the file, where somebody
/// put it: nothing is written beside the user's data.
std::vector<std::string> store_paths(const StoreKind& kind, const std::string& path);
/// Whether a store is there that was written for the file as it is now; what is in it is not looked at.
bool has_store(const StoreKind& kind, const std::string& path);
/// Saves a store in the cache folder; quietly not at all where none can be written, or the file has changed since.
/// In the cache folder it takes the place of what was used longest ago, within the folder's limit.
void save_store(const StoreKind& kind, const std::string& path, const FileKey& key, const ColumnWriter& store);

/// What `open(store's path, key)` makes of the saved store of a file; null where there is none, or `open` returned null
/// or threw: the file itself is still there.
template <class Open>
auto load_store(const StoreKind& kind, const std::string& path, const Open& open)
    -> decltype(open(path, std::declval<const FileKey&>())) {
  if (!has_store(kind, path)) return nullptr;
  const FileKey key = file_key(path);
  for (const std::string& stored : store_paths(kind, path)) {
    try {
      if (auto opened = open(stored, key)) return opened;
    } catch (const std::exception&) {
    }
  }
  return nullptr;
}

/// Smaller ones are read again in an instant.
inline constexpr uint64_t kWorthSaving = 4 << 20;

}  // namespace tenon::traces
