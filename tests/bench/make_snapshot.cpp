// Writes a memory snapshot as torch.cuda.memory._dump_snapshot does (pickle, protocol 4), of about the size asked for:
// make_snapshot BYTES FILE. Allocations and frees of a training loop from some hundred places, with shared stacks, and
// the segments that are left at the end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/bench/draw.h"

namespace {

using tenon::bench::draw;

/// The opcodes that Python's pickler writes for plain data, memo included.
class Pickle {
 public:
  explicit Pickle(std::FILE* out) : out_(out) { put("\x80\x04", 2); }
  void dict() { put("}", 1), memoize(); }
  void list() { put("]", 1), memoize(); }
  uint32_t shared_list() {
    put("]", 1);
    return memoize();
  }
  void mark() { put("(", 1); }
  void set_items() { put("u", 1); }
  void appends() { put("e", 1); }
  void none() { put("N", 1); }
  void boolean(bool v) { put(v ? "\x88" : "\x89", 1); }
  void stop() { put(".", 1); }
  void get(uint32_t i) {
    if (i < 256) {
      char b[2] = {'h', static_cast<char>(i)};
      put(b, 2);
    } else {
      char b[5] = {'j'};
      std::memcpy(b + 1, &i, 4);
      put(b, 5);
    }
  }
  void integer(int64_t v) {
    char b[16];
    if (v >= 0 && v < 256)
      b[0] = 'K', b[1] = static_cast<char>(v), put(b, 2);
    else if (v >= 0 && v < 65536)
      b[0] = 'M', std::memcpy(b + 1, &v, 2), put(b, 3);
    else if (v >= INT32_MIN && v <= INT32_MAX)
      b[0] = 'J', std::memcpy(b + 1, &v, 4), put(b, 5);
    else
      b[0] = '\x8a', b[1] = 8, std::memcpy(b + 2, &v, 8), put(b, 10);
  }
  void text(const std::string& t) {
    auto it = texts_.find(t);
    if (it != texts_.end()) return get(it->second);
    char b[5] = {'X'};
    auto n = static_cast<uint32_t>(t.size());
    std::memcpy(b + 1, &n, 4);
    put(b, 5);
    put(t.data(), t.size());
    texts_[t] = memoize();
  }
  uint64_t written() const { return written_; }

 private:
  uint32_t memoize() {
    put("\x94", 1);
    return memo_++;
  }
  void put(const char* p, size_t n) {
    std::fwrite(p, 1, n, out_);
    written_ += n;
  }
  std::FILE* out_;
  uint32_t memo_ = 0;
  uint64_t written_ = 0;
  std::unordered_map<std::string, uint32_t> texts_;
};

std::vector<uint32_t> g_stacks;

void frames(Pickle& p, size_t site) {
  if (site < g_stacks.size()) return p.get(g_stacks[site]);
  g_stacks.push_back(p.shared_list());
  p.mark();
  for (size_t depth = 0; depth < 12; ++depth) {
    p.dict();
    p.mark();
    p.text("filename");
    p.text("/train/model_" + std::to_string((site + depth) % 40) + ".py");
    p.text("line");
    p.integer(static_cast<int64_t>(10 + site * 3 + depth));
    p.text("name");
    p.text("forward_" + std::to_string((site * 7 + depth) % 60));
    p.set_items();
  }
  p.appends();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "make_snapshot BYTES FILE\n");
    return 2;
  }
  const uint64_t target = std::strtoull(argv[1], nullptr, 10);
  std::FILE* out = std::fopen(argv[2], "wb");
  if (!out) return 1;
  Pickle p(out);
  struct Block {
    uint64_t address;
    int64_t size;
    size_t site;
  };
  std::vector<Block> live;
  p.dict();
  p.mark();
  p.text("device_traces");
  p.list();
  p.mark();
  p.list();
  int64_t time = 1712195495519689;
  auto entry = [&](const char* action, const Block& b) {
    p.dict();
    p.mark();
    p.text("action");
    p.text(action);
    p.text("addr");
    p.integer(static_cast<int64_t>(b.address));
    p.text("size");
    p.integer(b.size);
    p.text("stream");
    p.integer(0);
    p.text("time_us");
    p.integer(time += 3);
    p.text("frames");
    frames(p, b.site);
    p.set_items();
  };
  uint64_t next = 0x7f0000000000;
  while (p.written() < target) {
    p.mark();
    for (int i = 0; i < 1000; ++i) {
      if (live.size() > 2000 && draw(100) < 50) {
        size_t k = draw(live.size());
        entry("free_requested", live[k]);
        entry("free_completed", live[k]);
        live[k] = live.back();
        live.pop_back();
        continue;
      }
      Block b{next += 512 * (1 + draw(4096)), static_cast<int64_t>(64 + draw(1 << 20)),
              g_stacks.size() < 400 ? g_stacks.size() : draw(400)};
      entry("alloc", b);
      live.push_back(b);
    }
    p.appends();
  }
  p.appends();
  p.text("segments");
  p.list();
  p.mark();
  for (const Block& b : live) {
    p.dict();
    p.mark();
    for (auto [key, value] : {std::pair<const char*, int64_t>{"device", 0},
                              {"address", static_cast<int64_t>(b.address)},
                              {"total_size", b.size},
                              {"allocated_size", b.size},
                              {"active_size", b.size},
                              {"requested_size", b.size},
                              {"stream", 0}}) {
      p.text(key);
      p.integer(value);
    }
    p.text("segment_type");
    p.text("large");
    p.text("blocks");
    p.list();
    p.mark();
    p.dict();
    p.mark();
    p.text("address");
    p.integer(static_cast<int64_t>(b.address));
    p.text("size");
    p.integer(b.size);
    p.text("requested_size");
    p.integer(b.size);
    p.text("state");
    p.text("active_allocated");
    p.text("frames");
    frames(p, b.site);
    p.set_items();
    p.appends();
    p.set_items();
  }
  p.appends();
  p.set_items();
  p.stop();
  return std::fclose(out) == 0 ? 0 : 1;
}
