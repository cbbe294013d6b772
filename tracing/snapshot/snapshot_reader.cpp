#include "tracing/snapshot/snapshot_reader.h"

#include <fmt/format.h>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/machine_memory.h"
#include "core/parallel.h"
#include "tracing/snapshot/snapshot_store.h"
#include "tracing/snapshot/usage_division.h"
#include "tracing/trace/source_text.h"

namespace tenon::snapshot {
namespace {

using Tag = Machine::Value::Tag;

/// The opcodes of plain data. Anything that names, imports or calls is refused.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, Machine& machine, Snapshot& out) : bytes_(bytes), machine_(machine), out_(out) {}

  /// False where the bytes end before the pickle does.
  bool read(const ReadOptions& options) {
    size_t reported = 0;
    while (at_ < bytes_.size()) {
      if (at_ - reported >= (size_t{16} << 20)) {
        if (options.forget) options.forget(reported, at_);
        reported = at_;
        machine_.expect_rows(static_cast<double>(at_) / static_cast<double>(bytes_.size()));
        if (options.progress && !options.progress(at_, bytes_.size())) throw Error("cancelled");
      }
      const size_t begin = at_;
      if (bytes_[at_] == '}')
        if (const size_t n = machine_.events_at(bytes_.substr(at_, size_t{1} << 20))) {
          at_ += n;
          continue;
        }
      auto code = static_cast<unsigned char>(bytes_[at_++]);
      if (code == '.') return true;
      if (!step(code)) {
        if (at_ >= bytes_.size() || short_) return false;
        throw Error(fmt::format("byte {} is opcode 0x{:02x}, which no snapshot has: it would name or call something",
                                begin, code),
                    "nothing of it was run; ask whoever made the file for a plain snapshot");
      }
    }
    return false;
  }

 private:
  bool take(size_t n, const char*& p) {
    if (n > bytes_.size() - at_) {
      short_ = true;
      at_ = bytes_.size();
      return false;
    }
    p = bytes_.data() + at_;
    at_ += n;
    return true;
  }
  template <class T>
  bool number(T& v) {
    const char* p;
    if (!take(sizeof v, p)) return false;
    std::memcpy(&v, p, sizeof v);
    return true;
  }
  template <class Length>
  bool text() {
    Length n;
    const char* p;
    if (!number(n) || !take(static_cast<size_t>(n), p)) return false;
    machine_.push_text({p, static_cast<size_t>(n)});
    return true;
  }
  /// Two's complement, little-endian, of n bytes; what does not fit becomes the nearest that does. Addresses beyond
  /// 2^63 keep their bits.
  bool long_integer(size_t n) {
    const char* p;
    if (!take(n, p)) return false;
    uint64_t v = 0;
    bool negative = n && (p[n - 1] & 0x80);
    for (size_t i = 0; i < std::min<size_t>(n, 8); ++i)
      v |= static_cast<uint64_t>(static_cast<unsigned char>(p[i])) << (8 * i);
    if (negative && n < 8) v |= ~uint64_t{0} << (8 * n);
    bool fits = n <= 8 || (n == 9 && p[8] == 0);
    machine_.push_integer(fits ? static_cast<int64_t>(v) : negative ? INT64_MIN : INT64_MAX);
    return true;
  }

  bool step(unsigned char code) {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    int32_t i32;
    const char* p;
    switch (code) {
      case 0x80:
        if (!number(u8)) return false;
        out_.protocol = u8;
        if (u8 > 5) throw Error(fmt::format("the pickle is of protocol {}, which is not known yet", u8));
        return true;
      case 0x95:
        return take(8, p);  // FRAME: only a hint
      case '(':
        machine_.mark();
        return true;
      case '0':
        machine_.pop();
        return true;
      case '2':
        machine_.push(machine_.top());
        return true;
      case 0x94:
        machine_.memoize();
        return true;
      case 'q':
        return number(u8) && (machine_.memo_put(u8), true);
      case 'r':
        return number(u32) && (machine_.memo_put(u32), true);
      case 'h':
        return number(u8) && (machine_.memo_get(u8), true);
      case 'j':
        return number(u32) && (machine_.memo_get(u32), true);
      case '}':
        machine_.push_container(Tag::dict);
        return true;
      case ']':
        machine_.push_container(Tag::list);
        return true;
      case ')':
        machine_.tuple(0);
        return true;
      case 0x85:
        machine_.tuple(1);
        return true;
      case 0x86:
        machine_.tuple(2);
        return true;
      case 0x87:
        machine_.tuple(3);
        return true;
      case 't':
        machine_.tuple_to_mark();
        return true;
      case 's':
        machine_.set_item();
        return true;
      case 'u':
        machine_.set_items();
        return true;
      case 'a':
        machine_.append();
        return true;
      case 'e':
        machine_.appends();
        return true;
      case 'N':
        machine_.push_none();
        return true;
      case 0x88:
        machine_.push_boolean(true);
        return true;
      case 0x89:
        machine_.push_boolean(false);
        return true;
      case 'J':
        return number(i32) && (machine_.push_integer(i32), true);
      case 'K':
        return number(u8) && (machine_.push_integer(u8), true);
      case 'M':
        return number(u16) && (machine_.push_integer(u16), true);
      case 0x8a:
        return number(u8) && long_integer(u8);
      case 0x8b:
        return number(u32) && long_integer(u32);
      case 'G': {
        if (!number(u64)) return false;
        u64 = __builtin_bswap64(u64);
        double d;
        std::memcpy(&d, &u64, 8);
        machine_.push_real(d);
        return true;
      }
      case 0x8c:
        return text<uint8_t>();
      case 'X':
        return text<uint32_t>();
      case 0x8d:
        return text<uint64_t>();
      default:
        return false;
    }
  }

  std::string_view bytes_;
  Machine& machine_;
  Snapshot& out_;
  size_t at_ = 0;
  bool short_ = false;
};

/// JSON of the same structure, through the same machine.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonReader(Machine& m) : machine_(m) {}
  bool null() override { return machine_.push_none(), done(); }
  bool boolean(bool v) override { return machine_.push_boolean(v), done(); }
  bool number_integer(number_integer_t v) override { return machine_.push_integer(v), done(); }
  bool number_unsigned(number_unsigned_t v) override { return machine_.push_integer(static_cast<int64_t>(v)), done(); }
  bool number_float(number_float_t v, const string_t&) override { return machine_.push_real(v), done(); }
  bool string(string_t& v) override { return machine_.push_text(v), done(); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Tag::dict); }
  bool key(string_t& v) override { return machine_.push_text(v), true; }
  bool end_object() override { return in_.pop_back(), done(); }
  bool start_array(size_t) override { return open(Tag::list); }
  bool end_array() override { return in_.pop_back(), done(); }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    error_at_ = at;
    return false;
  }
  size_t error_at() const { return error_at_; }

 private:
  bool open(Tag tag) {
    machine_.push_container(tag);
    in_.push_back(tag);
    if (in_.size() > 1000) throw Error("the file nests its values deeper than any snapshot");
    return true;
  }
  bool done() {
    if (in_.empty()) return true;
    if (in_.back() == Tag::dict)
      machine_.set_item();
    else
      machine_.append();
    return true;
  }
  Machine& machine_;
  std::vector<Tag> in_;
  size_t error_at_ = 0;
};

std::shared_ptr<Snapshot> read(std::string_view bytes, const std::string& name, bool cut_short,
                               const ReadOptions& options) {
  auto s = std::make_shared<Snapshot>();
  s->path = name;
  s->source_bytes = bytes.size();
  Machine machine(*s);
  bool complete = false;
  size_t first = bytes.find_first_not_of(" \t\r\n");
  try {
    if (first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[') &&
        !(bytes[first] == '[' && bytes.size() == 1)) {
      JsonReader reader(machine);
      complete = nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &reader);
    } else {
      complete = PickleReader(bytes, machine, *s).read(options);
    }
    machine.finish(complete && !cut_short);
  } catch (const Error& e) {
    throw e.in(name);
  }
  if (s->segments.empty() && s->traces.empty() && s->blocks.empty() && s->events.size_() == 0)
    throw Error(fmt::format("{} is no memory snapshot: it has neither segments nor recorded events", name),
                "a snapshot is what torch.cuda.memory._dump_snapshot() writes");
  return s;
}

}  // namespace

std::shared_ptr<const Snapshot> read_snapshot(const std::string& path, const ReadOptions& options) {
  if (traces::is_store(kSnapshotStore, traces::unpacked_head(path, 8))) return open_given_store(path);
  if (options.read_cache)
    if (auto stored = traces::load_store(kSnapshotStore, path, open_store)) return stored;
  const traces::FileKey key = traces::file_key(path);
  auto source = traces::SourceText::open(path);
  ReadOptions forgetting = options;
  forgetting.forget = [&](uint64_t from, uint64_t to) { source->forget(from, to); };
  auto s = read(source->bytes(), path, source->cut_short(), forgetting);
  source.reset();
  s->key = std::make_shared<traces::FileKey>(key);
  std::vector<std::shared_ptr<const Lives>> lives(s->traces.size());
  parallel_for(static_cast<int64_t>(lives.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) lives[i] = find_lives(*s, i);
  });
  s->lives = std::move(lives);
  if (s->source_bytes >= traces::kWorthSaving) {
    for (size_t i = 0; i < s->traces.size(); ++i) s->divisions.push_back(divide_usage(*s, Timeline(*s, i), {}));
    give_back_freed_memory();
  }
  if (options.write_cache) keep_store(*s);
  return s;
}

std::shared_ptr<const Snapshot> read_beginning(const std::string& path, size_t bytes) {
  if (traces::is_store(kSnapshotStore, traces::unpacked_head(path, 8)) || traces::has_store(kSnapshotStore, path))
    return nullptr;
  const auto source = traces::SourceText::open_head(path, bytes);
  auto s = read(source->bytes(), path, true, {.forget = [&](uint64_t from, uint64_t to) { source->forget(from, to); }});
  if (s->events.size_() == 0) return nullptr;
  std::vector<Segment>().swap(s->segments);
  std::vector<Block>().swap(s->blocks);
  return s;
}

std::shared_ptr<const Snapshot> parse_snapshot(std::string bytes, const ReadOptions& options) {
  return read(bytes, "the snapshot", false, options);
}

}  // namespace tenon::snapshot
