#include "core/memory_image.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace tenon {
namespace {

constexpr uint64_t kPage = 4096, kArena = 64 << 20;
// Of the size that stands in front of a block: whether the one before it is in use, and where it came from.
constexpr uint64_t kBeforeInUse = 1, kMapped = 2, kSizeMask = ~uint64_t{7};
constexpr uint64_t kHeader = 16, kLeast = 32;

struct Mapping {
  MemorySpan span;
  std::string name;
};

/// The words of a span of a process's memory, given as the system opens it, from the first whole one on, as many as
/// could be read.
std::vector<uint64_t> words_of(int memory, MemorySpan span) {
  span.begin = (span.begin + 7) & ~uint64_t{7};
  std::vector<uint64_t> all(span.end > span.begin ? span.bytes() / 8 : 0);
  size_t got = 0;
  while (got < all.size() * 8) {
    const ssize_t n = pread(memory, reinterpret_cast<char*>(all.data()) + got, all.size() * 8 - got,
                            static_cast<off_t>(span.begin + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  all.resize(got / 8);
  return all;
}

/// What a process may read and write, as the system lists it; neighbours that it lists apart are one, since a heap that
/// has grown may be several of them.
std::vector<Mapping> writable_mappings(int process) {
  std::vector<Mapping> all;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream in(line);
    std::string range, rights, offset, device, inode, name;
    in >> range >> rights >> offset >> device >> inode >> name;
    if (!rights.starts_with("rw")) continue;
    const size_t dash = range.find('-');
    const MemorySpan span{std::stoull(range.substr(0, dash), nullptr, 16),
                          std::stoull(range.substr(dash + 1), nullptr, 16)};
    if (!all.empty() && all.back().span.end == span.begin && all.back().name == name)
      all.back().span.end = span.end;
    else
      all.push_back({span, name});
  }
  return all;
}

/// The word that the C library writes into a block which lies in a thread's cache, so that a second free() is noticed.
uint64_t thread_cache_key() {
  void* p = std::malloc(40);
  const auto at = reinterpret_cast<uint64_t>(p);
  std::free(p);
  const std::vector<uint64_t> head = MemoryImage::words_now({at, at + 16});  // the C library's by now
  return head.size() == 2 ? head[1] : 0;
}

/// Those of the C library and of the dynamic linker hold the heap itself, free blocks and all.
bool is_the_heaps(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("ld-linux") || name.starts_with("linux-vdso");
}

int add_statics(dl_phdr_info* info, size_t, void* to) {
  auto& all = *static_cast<std::vector<StaticMemory>*>(to);
  std::string file = info->dlpi_name ? info->dlpi_name : "";
  if (file.empty()) {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n > 0) file.assign(path, static_cast<size_t>(n));
  }
  if (is_the_heaps(file)) return 0;
  uint64_t constant_from = 0, constant_to = 0;  // written once, by the dynamic linker
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
      constant_from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      constant_to = (constant_from + info->dlpi_phdr[i].p_memsz) & ~(kPage - 1);
    }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& p = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + p.p_vaddr;
    if (p.p_type == PT_LOAD && (p.p_flags & PF_W)) {
      MemorySpan span{begin, begin + p.p_memsz};
      if (span.holds(constant_from)) span.begin = std::min(span.end, constant_to);
      if (span.begin < span.end) all.push_back({span, file, info->dlpi_addr, false});
    }
    if (p.p_type == PT_TLS && info->dlpi_tls_data) {
      const auto tls = reinterpret_cast<uint64_t>(info->dlpi_tls_data);
      all.push_back({{tls, tls + p.p_memsz}, file, tls, true});
    }
  }
  return 0;
}

}  // namespace

CleanMemory::CleanMemory() {
  malloc_trim(0);
  constexpr size_t kMost = 16 << 10, kFew = 2 << 10, kOfEach = 64;
  constexpr int kFilling = 0x5a;
  std::vector<void*> taken;
  for (size_t bytes = 24; bytes < kMost; bytes += bytes < kFew ? 16 : 256)
    for (size_t i = 0; i < (bytes < kFew ? kOfEach : kOfEach / 8); ++i)
      if (void* p = std::malloc(bytes)) {
        std::memset(p, 0, bytes);
        asm volatile("" : : "r"(p) : "memory");  // it is read by who gets it next
        taken.push_back(p);
      }
  for (void* p : taken) std::free(p);
  mallopt(M_PERTURB, kFilling);
}
CleanMemory::~CleanMemory() { mallopt(M_PERTURB, 0); }

bool MemoryImage::available() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__) || !defined(__x86_64__)
  return false;
#else
  return true;
#endif
}

/// A child that stands still, and its memory.
struct MemoryImage::Copy {
  Copy();
  ~Copy();
  Copy(const Copy&) = delete;
  static void end(int process);

  int process = -1, memory = -1;
};

MemoryImage::Copy::Copy() {
  const int of = getpid();
  process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive who looks at it
    if (getppid() != of) _exit(0);     // who was gone before that
    while (true) pause();
  }
  if (process < 0)
    throw Error("no copy of the process can be made, in which to look for what holds a tensor: " +
                    std::string(std::strerror(errno)),
                "close what takes memory beside it, or raise the limit of processes (ulimit -u)");
  memory = open(("/proc/" + std::to_string(process) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (memory >= 0) return;
  const int code = errno;
  end(process);
  throw Error(
      "the system does not let the program look at a copy of its own memory: " + std::string(std::strerror(code)),
      "it does where kernel.yama.ptrace_scope is 0 or 1");
}

MemoryImage::Copy::~Copy() {
  close(memory);
  end(process);
}

void MemoryImage::Copy::end(int process) {
  kill(process, SIGKILL);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) continue;
}

MemoryImage::MemoryImage() {
  if (!available()) throw Error("the heap of this build cannot be read, so nobody can tell what holds a tensor");
  malloc_trim(0);
  cache_key_ = thread_cache_key();
  dl_iterate_phdr(add_statics, &statics_);
  // Two that are known to be there: one among others, and one that has pages of its own.
  const std::vector<char> small(100), large(4 << 20);
  copy_ = std::make_unique<const Copy>();
  find_blocks();
  for (const char* known : {small.data(), large.data()})
    if (const auto at = reinterpret_cast<uint64_t>(known); block_of(at).begin != at)
      throw Error("the heap of this process is not the C library's, so nobody can tell what holds a tensor",
                  "start it without what puts another one in its place, as LD_PRELOAD does");
}

MemoryImage::~MemoryImage() = default;

std::vector<uint64_t> MemoryImage::words(MemorySpan span) const { return words_of(copy_->memory, span); }

std::vector<uint64_t> MemoryImage::words_now(MemorySpan span) {
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (memory < 0) return {};
  std::vector<uint64_t> all = words_of(memory, span);
  close(memory);
  return all;
}

/// Follows the blocks from `first`, and keeps those that are in use; false, and none kept, where they do not fill the
/// heap to its end.
bool MemoryImage::read_blocks(MemorySpan heap, uint64_t first) {
  std::vector<MemorySpan> found;
  // A window of the copy, so that few calls read many headers; most tries at a beginning end within the first ones.
  constexpr uint64_t kLargest = 1 << 20;
  uint64_t length = kPage;
  std::vector<uint64_t> window;
  uint64_t window_at = 0;
  const auto at = [&](uint64_t address) -> uint64_t {
    if (address < window_at || address + 8 > window_at + window.size() * 8) {
      window_at = address;
      window = words({address, std::min(address + length, heap.end)});
      length = std::min(2 * length, kLargest);
      if (window.empty()) return 0;
    }
    return window[(address - window_at) / 8];
  };
  uint64_t p = first;
  while (p + kHeader <= heap.end) {
    const uint64_t head = at(p + 8), size = head & kSizeMask;
    // What fences the end of a heap that its arena has outgrown: blocks of a header alone, or of nothing.
    if (size <= kHeader && heap.end - p < kPage) break;
    if (size < kLeast || size % 16 != 0 || size > heap.end - p || (head & kMapped)) return false;
    const uint64_t next = p + size;
    if (next == heap.end) break;  // the top: nobody's
    const bool used = next + kHeader <= heap.end && (at(next + 8) & kBeforeInUse);
    if (used) found.push_back({p + kHeader, next + 8});
    p = next;
  }
  blocks_.insert(blocks_.end(), found.begin(), found.end());
  return true;
}

void MemoryImage::find_blocks() {
  for (const Mapping& m : writable_mappings(copy_->process)) {
    if (m.name == "[heap]") find_blocks_of_main_heap(m.span);
    if (!m.name.empty()) continue;
    for (uint64_t at = m.span.begin; at < m.span.end;) at += find_blocks_at(at, m.span);
  }
  std::sort(blocks_.begin(), blocks_.end(), [](const MemorySpan& a, const MemorySpan& b) { return a.begin < b.begin; });
  leave_out_cached();
}

/// Whoever asked for memory of the system before the C library did has the beginning.
void MemoryImage::find_blocks_of_main_heap(MemorySpan heap) {
  constexpr uint64_t kMostBefore = 16 * kPage;
  for (uint64_t first = heap.begin; first < std::min(heap.end, heap.begin + kMostBefore); first += 16)
    if (read_blocks(heap, first)) return;
}

/// What stands at the beginning of a page of a mapping: the heap of a thread, a large block, or neither. Returns how
/// many bytes that is.
uint64_t MemoryImage::find_blocks_at(uint64_t at, MemorySpan mapping) {
  const std::vector<uint64_t> first = words({at, at + 24});
  if (first.size() < 3) return mapping.end - at;
  // The heap of a thread begins at a multiple of its greatest size, with what it knows of itself, its length among
  // that.
  const uint64_t length = at % kArena == 0 ? first[2] : 0;
  if (length >= kPage && length <= mapping.end - at && length % kPage == 0)
    for (uint64_t block = at + 32; block < std::min(at + length, at + kPage); block += 16)
      if (read_blocks({at, at + length}, block)) return length;
  // A large block has pages of its own.
  const uint64_t size = first[1] & kSizeMask;
  if ((first[1] & ~kSizeMask) != kMapped || first[0] != 0) return kPage;
  if (size < kPage || size % kPage != 0 || size > mapping.end - at) return kPage;
  blocks_.push_back({at + kHeader, at + size});
  return size;
}

/// What a thread's cache lists is nobody's. A cache is a block of its own: how many blocks it has of each of 64 sizes,
/// and the first of each; a block leads to the next by an address that is mixed with its own.
void MemoryImage::leave_out_cached() {
  constexpr size_t kSizes = 64, kWords = kSizes / 4 + kSizes;
  constexpr uint64_t kMostOfSize = 127;
  std::vector<uint64_t> cached;
  for (const MemorySpan& b : blocks_) {
    if (b.bytes() != kWords * 8 + 8) continue;
    const std::vector<uint64_t> all = words(b);
    if (all.size() < kWords) continue;
    std::vector<uint64_t> found;
    bool is_cache = true;
    for (size_t k = 0; k < kSizes && is_cache; ++k) {
      uint64_t count = all[k / 4] >> (16 * (k % 4)) & 0xffff, at = all[kSizes / 4 + k];
      is_cache = count <= kMostOfSize && (count > 0) == (at != 0);
      for (; is_cache && count > 0; --count) {
        const std::vector<uint64_t> head = words({at, at + 16});
        is_cache = at % 16 == 0 && head.size() == 2 && head[1] == cache_key_;
        if (!is_cache) break;
        found.push_back(at);
        at = head[0] ^ (at >> 12);
      }
    }
    if (is_cache) cached.insert(cached.end(), found.begin(), found.end());
  }
  std::sort(cached.begin(), cached.end());
  std::erase_if(blocks_,
                [&](const MemorySpan& b) { return std::binary_search(cached.begin(), cached.end(), b.begin); });
}

MemorySpan MemoryImage::block_of(uint64_t address) const {
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), address,
                                [](uint64_t a, const MemorySpan& s) { return a < s.begin; });
  if (after == blocks_.begin() || !(--after)->holds(address)) return {};
  return *after;
}

}  // namespace tenon
