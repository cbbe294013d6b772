#include "tracing/trace/column_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "core/parallel.h"
#include "core/sha256.h"

// Note [Column files]
// 16 bytes (the magic word with a version at its end, and the length of the JSON that follows), JSON with the key of
// the file that it is of and all that is small, then the columns as they lie in memory, each at a multiple of 64, and
// at the end 8 bytes that are the hash of everything before them. What is damaged by chance is known by the hash; what
// somebody made to do harm has a sound hash, so the readers of each kind hold the columns to all that they rely on, but
// for what this user's programs wrote into the cache folder. A store is thrown away rather than repaired: the file that
// it is of is still there.

namespace tenon::traces {
namespace {

using nlohmann::json;
constexpr size_t kMagicBytes = 8, kHeadBytes = 16, kHashBytes = 8;
constexpr size_t kHashedAtOnce = 1 << 20;

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}

/// Four words side by side, so that none waits for the one before it.
uint64_t piece_hash(std::string_view bytes) {
  constexpr size_t kWords = 4, kStep = kWords * sizeof(uint64_t);
  uint64_t lanes[kWords] = {1, 2, 3, 4}, words[kWords];
  const auto take = [&](const char* p) {
    std::memcpy(words, p, kStep);
    for (size_t i = 0; i < kWords; ++i) lanes[i] = mixed(lanes[i], words[i]);
  };
  size_t at = 0;
  for (; bytes.size() - at >= kStep; at += kStep) take(bytes.data() + at);
  if (at < bytes.size()) {
    char rest[kStep] = {};
    std::memcpy(rest, bytes.data() + at, bytes.size() - at);
    take(rest);
  }
  uint64_t hash = bytes.size();
  for (const uint64_t lane : lanes) hash = mixed(hash, lane);
  return hash;
}

/// Writes and hashes what is put, in pieces of kHashedAtOnce.
class HashedFile {
 public:
  explicit HashedFile(const std::string& path) : file_(path) { piece_.reserve(kHashedAtOnce); }
  void put(std::string_view bytes) {
    at_ += bytes.size();
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, kHashedAtOnce - piece_.size());
      piece_ += part;
      bytes.remove_prefix(part.size());
      if (piece_.size() == kHashedAtOnce) flush();
    }
  }
  void put(uint64_t number) { put({reinterpret_cast<const char*>(&number), sizeof number}); }
  void align(size_t to) {
    static constexpr char kZeros[64] = {};
    put({kZeros, (to - at_ % to) % to});
  }
  void commit() {
    flush();
    file_.put({reinterpret_cast<const char*>(&hash_), kHashBytes});
    file_.commit_unsynced();  // the hash tells what never reached the disk
  }

 private:
  void flush() {
    if (piece_.empty()) return;
    hash_ = mixed(hash_, piece_hash(piece_));
    file_.put(piece_);
    piece_.clear();
  }
  FileWriter file_;
  std::string piece_;
  uint64_t hash_ = 0, at_ = 0;
};

}  // namespace

uint64_t content_hash(std::string_view bytes) {
  std::vector<uint64_t> pieces((bytes.size() + kHashedAtOnce - 1) / kHashedAtOnce);
  parallel_for(static_cast<int64_t>(pieces.size()), 4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      pieces[i] = piece_hash(bytes.substr(i * kHashedAtOnce, kHashedAtOnce));
  });
  uint64_t hash = 0;
  for (const uint64_t piece : pieces) hash = mixed(hash, piece);
  return hash;
}

uint64_t ColumnWriter::bytes() const {
  uint64_t sum = 0;
  for (const std::string_view s : sections_) sum += s.size();
  return sum;
}

void ColumnWriter::write(const StoreKind& kind, const FileKey& key, const std::string& path) const {
  json all = head;
  all["key"] = {{"path", key.path}, {"bytes", key.bytes}, {"changed_ns", key.changed_ns}, {"hash", key.hash}};
  all["sections"] = json::array();
  for (std::string_view s : sections_) all["sections"].push_back(s.size());
  const std::string text = all.dump(-1, ' ', false, json::error_handler_t::replace);
  HashedFile file(path);
  file.put(kind.magic);
  file.put(text.size());
  file.put(text);
  for (std::string_view s : sections_) {
    file.align(ColumnFile::kAlignment);
    file.put(s);
  }
  file.commit();
}

std::optional<ColumnFile> ColumnFile::open(const StoreKind& kind, const std::string& path, const FileKey* wanted) {
  ColumnFile f;
  f.file_ = MappedFile::open(path);
  const std::string_view bytes = f.file_->bytes();
  if (bytes.size() < kHeadBytes + kHashBytes || !bytes.starts_with(kind.magic)) return std::nullopt;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + kMagicBytes, sizeof length);
  if (length > bytes.size() - kHeadBytes - kHashBytes) throw Error("damaged");
  // All its numbers are whole: one that is not would be no number in the types that it is read into.
  f.head_ = json::parse(bytes.substr(kHeadBytes, length), [](int, json::parse_event_t event, json& v) {
    if (event == json::parse_event_t::value && v.is_number_float()) throw Error("damaged");
    return true;
  });
  const json& k = f.head_.at("key");
  f.key_ = {k.at("path"), k.at("bytes"), k.at("changed_ns"), k.at("hash")};
  if (wanted && f.key_ != *wanted) return std::nullopt;
  f.at_ = kHeadBytes + length;
  return f;
}

bool ColumnFile::whole() const {
  const std::string_view bytes = file_->bytes();
  uint64_t hash = 0;
  std::memcpy(&hash, bytes.data() + bytes.size() - kHashBytes, kHashBytes);
  return hash == content_hash(bytes.substr(0, bytes.size() - kHashBytes));
}

std::string_view ColumnFile::next(size_t item) {
  const auto size = head_.at("sections").at(section_++).get<uint64_t>();
  const uint64_t end = file_->bytes().size() - kHashBytes;
  at_ = (at_ + kAlignment - 1) / kAlignment * kAlignment;
  if (size % item || at_ > end || size > end - at_) throw Error("damaged");
  const std::string_view bytes = file_->bytes().substr(at_, size);
  at_ += size;
  return bytes;
}

bool is_store(const StoreKind& kind, std::string_view bytes) {
  return bytes.size() >= kMagicBytes && bytes.starts_with(kind.magic.substr(0, kMagicBytes - 1));
}

std::vector<std::string> store_paths(const StoreKind& kind, const std::string& path) {
  const std::string whole = std::filesystem::absolute(path).string();
  return {cache::folder_of(std::string(kind.folder)) + "/" + hex(sha256(whole.data(), whole.size())).substr(0, 32),
          path + std::string(kind.ending)};
}

bool has_store(const StoreKind& kind, const std::string& path) {
  std::optional<FileKey> key;
  for (const std::string& stored : store_paths(kind, path)) {
    std::error_code none;
    if (!std::filesystem::is_regular_file(stored, none)) continue;
    try {
      if (!key) key = file_key(path);
      if (ColumnFile::open(kind, stored, &*key)) return true;
    } catch (const std::exception&) {  // damaged, or may not be read
    }
  }
  return false;
}

void save_store(const StoreKind& kind, const std::string& path, const FileKey& key, const ColumnWriter& store) {
  const std::string place = store_paths(kind, path).front();
  try {
    if (file_key(path) != key) return;  // changed while it was read
    if (!cache::make_room(static_cast<int64_t>(store.bytes()))) return;
    std::filesystem::create_directories(std::filesystem::path(place).parent_path());
    store.write(kind, key, place);
  } catch (const std::exception&) {  // a store is a convenience: without one the file is read again next time
  }
}

}  // namespace tenon::traces
