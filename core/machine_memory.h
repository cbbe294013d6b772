#pragma once
#include <cstdint>

namespace tenon {

/// What a process may take here: the machine's memory, or the limit of the control group it runs in where that is less.
int64_t memory_limit();
/// The most memory, in bytes, that this program has had since it was started. getrusage() would tell that of the
/// process that started it, where it was larger. 0 where the system does not say.
int64_t peak_memory();
/// Gives the system back what was freed and is held for what may come next. For after work of a second or more that
/// left little of what it took; the next of that kind takes it anew.
void give_back_freed_memory();

}  // namespace tenon
