#include "core/mapped_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tenon {
namespace {

constexpr uintptr_t kPageBytes = 4096;

/// What the signal's handler may look at: nothing but words that are read and written at once.
struct GuardedRange {
  std::atomic<uintptr_t> begin{0}, end{0};  ///< begin: 0 where nobody has the slot
  std::atomic<bool> cut{false};
};
std::array<GuardedRange, 1024> guarded;
struct sigaction before_guard;

void page_is_gone(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (GuardedRange& r : guarded) {
    const uintptr_t begin = r.begin.load(), end = r.end.load();
    if (begin == 0 || at < begin || at >= end) continue;
    const uintptr_t from = at / kPageBytes * kPageBytes;
    if (mmap(reinterpret_cast<void*>(from), end - from, PROT_READ | PROT_WRITE,
             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      break;
    r.cut = true;
    return;  // and the look is taken once more
  }
  if (before_guard.sa_flags & SA_SIGINFO) return before_guard.sa_sigaction(signal, info, context);
  if (before_guard.sa_handler != SIG_DFL && before_guard.sa_handler != SIG_IGN) return before_guard.sa_handler(signal);
  std::signal(signal, SIG_DFL);  // the look that is taken once more ends the program
}

struct CutFiles {
  std::mutex m;
  std::array<std::string, guarded.size()> names;  ///< of the slots
  std::vector<std::string> found;                 ///< and not told yet
  static CutFiles& all() {
    static auto* const files = new CutFiles;  // mappings that are static outlive everything else
    return *files;
  }
  /// With the lock held.
  void look(size_t slot) {
    if (guarded[slot].cut.exchange(false) && std::find(found.begin(), found.end(), names[slot]) == found.end())
      found.push_back(names[slot]);
  }
};

int guard(void* data, size_t bytes, const std::string& name) {
  CutFiles& files = CutFiles::all();
  const std::lock_guard lock(files.m);
  static const bool listens = [] {
    struct sigaction action {};
    action.sa_sigaction = page_is_gone;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, &before_guard) == 0;
  }();
  if (!listens) return -1;
  for (size_t i = 0; i < guarded.size(); ++i)
    if (guarded[i].begin == 0) {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      files.names[i] = name;
      guarded[i].end = (begin + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
      guarded[i].begin = begin;
      return static_cast<int>(i);
    }
  return -1;
}

void let_go(int slot) {
  CutFiles& files = CutFiles::all();
  const std::lock_guard lock(files.m);
  guarded[static_cast<size_t>(slot)].begin = 0;
  files.look(static_cast<size_t>(slot));
}

}  // namespace

MappedPages::MappedPages(int file, size_t bytes, const std::string& name, Writes writes) {
  if (bytes == 0) return;
  // No reserve: the private copies of pages are few, whatever the file's size is.
  void* p = mmap(nullptr, bytes, writes == Writes::none ? PROT_READ : PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_NORESERVE, file, 0);
  if (p == MAP_FAILED) return;
  data_ = p;
  bytes_ = bytes;
  slot_ = guard(p, bytes, name);
}

MappedPages::~MappedPages() {
  if (slot_ >= 0) let_go(slot_);
  if (data_) munmap(data_, bytes_);
}

MappedPages::MappedPages(MappedPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      slot_(std::exchange(other.slot_, -1)) {}

MappedPages& MappedPages::operator=(MappedPages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(slot_, other.slot_);
  return *this;
}

void MappedPages::expect_in_order() const {
  if (data_) madvise(data_, bytes_, MADV_SEQUENTIAL);
}

void MappedPages::forget(size_t from, size_t to) const {
  from = (from + kPageBytes - 1) / kPageBytes * kPageBytes;
  to = to / kPageBytes * kPageBytes;
  if (data_ && from < to) madvise(static_cast<char*>(data_) + from, to - from, MADV_DONTNEED);
}

std::vector<std::string> cut_files() {
  CutFiles& files = CutFiles::all();
  const std::lock_guard lock(files.m);
  for (size_t i = 0; i < guarded.size(); ++i)
    if (guarded[i].begin != 0) files.look(i);
  return std::exchange(files.found, {});
}

}  // namespace tenon
