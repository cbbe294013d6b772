#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/state.h"

namespace tenon {

/// Nanoseconds of the monotonic clock.
int64_t now_ns();

/// One span on a thread's timeline, as it is recorded: 32 bytes.
struct Tick {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  Origin origin;
  uint16_t name = 0;    ///< interned_name()
  uint16_t thread = 0;  ///< numbered in order of first span; 0 is the thread that called profile_start()
  uint32_t depth : 8 = 0;
  uint32_t forward_seq : 24 = 0;  ///< of the op whose gradient this one is part of; 0: of none
};
static_assert(sizeof(Tick) == 32);

uint16_t intern_name(const std::string& text);
const std::string& interned_name(uint16_t id);

/// Clears what was recorded and sets mode::profile in the process word. One recording at a time. Spans of threads that
/// work for another group are left out; group 0 records all.
void profile_start(uint32_t group = 0);
/// Clears the bit and returns the spans of all threads, sorted by start.
std::vector<Tick> profile_stop();
void profile_add(uint16_t name, int64_t start_ns, int64_t end_ns, const Origin& origin, uint32_t forward_seq = 0);

/// A named span while profiling, nothing otherwise.
class ProfileScope {
 public:
  explicit ProfileScope(const char* name);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;

 private:
  const char* name_;
  int64_t start_;
};

/// Nesting of spans on this thread.
extern thread_local uint8_t t_profile_depth;

}  // namespace tenon
