#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::tracing {

/// The plain values a pickle may hold here: what PyTorch's memory snapshots are made of. Points into the Pickle it came from.
struct PickleValue {
  using List = std::vector<PickleValue>;                         ///< lists and tuples
  using Dict = std::vector<std::pair<PickleValue, PickleValue>>;
  std::variant<std::monostate, bool, int64_t, double, const std::string*, List*, Dict*> v;

  const List* list() const;
  const Dict* dict() const;
  /// The value of a key; null where this is no dictionary or has no such key.
  const PickleValue* find(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback = 0) const;
  std::string text(std::string_view key, const std::string& fallback = {}) const;
};

/// A pickle that was read. Values are shared, as in the file; owning them in one place makes sharing, cycles and any depth harmless.
struct Pickle {
  PickleValue root;
  std::deque<std::string> strings;
  std::deque<PickleValue::List> lists;
  std::deque<PickleValue::Dict> dicts;
};

/// Reads protocols 2 to 5 with the opcodes of plain values only; nothing is ever called or imported.
/// Throws Error naming `name` and the byte for anything else, and for data that is damaged or cut short.
std::unique_ptr<Pickle> read_pickle(std::string_view bytes, const std::string& name);

/// Writes protocol 4; equal strings are written once.
class PickleWriter {
 public:
  PickleWriter();
  void begin_dict();
  void begin_list();
  void end_dict();
  void end_list();
  void text(const std::string& s);
  void key(const std::string& s) { text(s); }
  void integer(int64_t n);
  void real(double v);
  void boolean(bool b);
  void pair(int64_t a, int64_t b);       ///< a tuple
  /// Remembers the value just written; again() writes it anew, shared.
  uint32_t remember();
  void again(uint32_t remembered);
  std::string finish();

 private:
  std::string out_;
  std::vector<std::pair<std::string, uint32_t>> strings_;  ///< sorted
  uint32_t memo_ = 0;
};

}  // namespace tenon::tracing
