#pragma once
#include <cstdint>

namespace tenon {

/// What a process may take here: the machine's memory, or the limit of the control group it runs in where that is less.
int64_t memory_limit();
/// What a process can still take, in bytes, before the system ends one: what the machine has left, its swap and what it
/// keeps of files included, or what is left below the limits of the control group where that is less. INT64_MAX where
/// the system does not say. Takes some microseconds.
int64_t available_memory();
/// The most memory, in bytes, that this program has had since it was started. getrusage() would tell that of the
/// process that started it, where it was larger. 0 where the system does not say.
int64_t peak_memory();
/// Gives the system back what was freed and is held for what may come next. For after work of a second or more that
/// left little of what it took; the next of that kind takes it anew.
void give_back_freed_memory();

}  // namespace tenon
