#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::tracing {

/// A Python value of builtin types only. Lists and dicts that a pickle shares stay shared.
struct PyValue;
using PyRef = std::shared_ptr<PyValue>;
struct PyValue {
  using List = std::vector<PyRef>;
  using Dict = std::vector<std::pair<PyRef, PyRef>>;
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Dict> value;  ///< tuples are lists

  PyValue() = default;
  PyValue(const PyValue&) = default;
  PyValue& operator=(const PyValue&) = default;
  ~PyValue();  ///< without recursion: a file may nest values millions deep

  /// Of a dict with string keys; null where it has none of that name.
  const PyValue* find(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback = 0) const;
  std::string text(std::string_view key, const std::string& fallback = {}) const;
  const List* list(std::string_view key) const;
};

/// Reads protocols 0x80 02 to 05 without ever running anything: an opcode that would (GLOBAL, REDUCE, BUILD, ...) is an error.
/// Memory is bounded by the size of the bytes whatever lengths they claim. Throws Error with the position.
PyRef read_pickle(std::string_view bytes);

/// Writes protocol 4.
class PickleWriter {
 public:
  PickleWriter();
  void none() { out_ += 'N'; }
  void boolean(bool b) { out_ += b ? '\x88' : '\x89'; }
  void integer(int64_t v);
  void number(double v);
  void text(std::string_view s);
  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  std::string finish() { return std::move(out_ += '.'); }

 private:
  std::string out_;
};

}  // namespace tenon::tracing
