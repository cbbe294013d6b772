#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

// What was worked out of files and can be made again: in the user's cache folder, a folder within it for each kind.
namespace tenon::cache {

/// $XDG_CACHE_HOME/tenon, or ~/.cache/tenon; it may not be there yet.
std::string folder();
/// That of a kind: "traces", "snapshots", "tokens".
std::string folder_of(const std::string& kind);

inline constexpr int64_t kUsualLimit = int64_t{10} << 30;
/// Bytes that all of it may take.
void set_limit(int64_t bytes);
int64_t limit();

struct Held {
  int64_t files = 0, bytes = 0;
};
/// What is there, by kind.
std::map<std::string, Held> held();
Held held_in_all();

/// Removes what was used longest ago until the rest, and `more` bytes that shall be written, are within the limit.
/// What any process has open is left. False where they still are not.
bool make_room(int64_t more = 0);
/// Removes all that no process has open. Returns what went.
Held empty();

/// Marks a file there as used now; make_room() and empty() of every process leave it while what is returned lives. Null
/// of a file elsewhere. MappedFile::open() does so.
std::shared_ptr<const void> hold(const std::string& path);

/// Whether a file of the cache folder can have been written by this user's programs alone: it and the folder that it is
/// in belong to the user, and nobody else may write there.
bool is_own(const std::string& path);

}  // namespace tenon::cache
