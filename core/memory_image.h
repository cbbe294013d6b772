#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// Note [A memory image]
// Who holds a tensor is found by looking for its address in memory. Memory that changes meanwhile would tell of holders
// that are none, so what is looked at is a copy of the process that stands still: a child made by fork(), which shares
// its pages until they are written and does nothing. fork() takes the locks of the C library's heap, so every block in
// the copy is whole. The blocks are read off the headers that the C library keeps in front of them: a stretch of heap
// is a row of them without gaps, so one that does not end exactly where the heap ends was misread, and is left out
// rather than guessed. What the C library itself keeps for reuse is no block that anyone has: malloc_trim() before the
// copy merges what lies in its fast lists, and what a thread's cache lists is read from that cache.
// Where another heap took the place of the C library's, a block that was just taken is not found, and the image says so
// instead of telling of half a heap.
// An address that was read may lead anywhere, and what it led to may be gone while other threads run. So nothing that
// was only found is ever followed as a pointer: what stands at an address is read through the system, which answers
// "nothing" where nothing is.
// Nothing of this is there until someone takes an image, and nothing stays of it afterwards.
namespace tenon {

/// A stretch of addresses, without its end.
struct MemorySpan {
  uint64_t begin = 0, end = 0;
  uint64_t bytes() const { return end - begin; }
  bool holds(uint64_t address) const { return address >= begin && address < end; }
};

/// Variables that a program or shared library keeps for its whole life.
struct StaticMemory {
  MemorySpan span;
  std::string file;        ///< of the library; of the program its own path
  uint64_t base = 0;       ///< an address in it is a symbol's value plus this
  bool of_thread = false;  ///< thread_local ones, of the calling thread
};

/// The memory of the process as it was at one moment.
class MemoryImage {
 public:
  /// Whether this build's heap can be read: not under a sanitizer, which has a heap of its own.
  static bool available();
  /// Throws Error where it is not, where the program has another heap, or where the system does not allow it.
  MemoryImage();
  ~MemoryImage();
  MemoryImage(const MemoryImage&) = delete;

  /// The block of the heap that an address lies in; an empty span where it lies in none that is in use.
  MemorySpan block_of(uint64_t address) const;
  const std::vector<StaticMemory>& statics() const { return statics_; }
  /// The words from the first whole one on, as many as could be read; of the image, not of the process as it is now.
  std::vector<uint64_t> words(MemorySpan span) const;
  /// Those of the process as it is now.
  static std::vector<uint64_t> words_now(MemorySpan span);
  size_t blocks() const { return blocks_.size(); }

 private:
  struct Copy;

  void find_blocks();
  void find_blocks_of_main_heap(MemorySpan heap);
  uint64_t find_blocks_at(uint64_t at, MemorySpan mapping);
  void leave_out_cached();
  bool read_blocks(MemorySpan heap, uint64_t first);

  uint64_t cache_key_ = 0;
  std::unique_ptr<const Copy> copy_;
  std::vector<StaticMemory> statics_;
  std::vector<MemorySpan> blocks_;  ///< sorted
};

/// While it lives, blocks that are taken from the heap have no words of what stood in them before, which could be
/// mistaken for theirs: what a thread's cache had is overwritten when it begins, and the C library fills whatever else
/// it gives.
class CleanMemory {
 public:
  CleanMemory();
  ~CleanMemory();
  CleanMemory(const CleanMemory&) = delete;
};

}  // namespace tenon
