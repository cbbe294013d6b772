#pragma once
#include <cstdint>
#include <string>

#include "core/error.h"

namespace tenon {

/// Whether a system error says that nothing more can be written: the disk, the user's share of it, or the file is full.
bool is_no_space(int code);

/// Bytes that this user may still write on the disk of `path`, which need not exist yet; -1 where that cannot be known.
int64_t free_bytes(const std::string& path);

/// "The disk of /mnt holds 0.3 MiB free; this checkpoint needs about 12.0 MiB. Free some space." `needs` is "this
/// checkpoint needs about", or empty where nobody knows; `ours` is what the failed work still holds of that disk and
/// gives back.
std::string space_hint(const std::string& path, const std::string& needs = {}, uint64_t bytes = 0, int64_t ours = 0);

/// An Error of the kind no_space: "PATH: no space is left on its disk; OUTCOME".
Error no_space(int code, const std::string& path, const std::string& outcome, std::string hint);

}  // namespace tenon
