#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::formats {

/// A Python value as data. Whatever a pickle shares stays shared, so values may also contain each other in a circle.
struct PyValue;
using PyRef = PyValue*;  ///< owned by the Pickle that it was read from
struct PyValue {
  using List = std::vector<PyRef>;
  using Dict = std::vector<std::pair<PyRef, PyRef>>;
  struct Bytes {
    std::string bytes;
  };
  /// The name of a class or function. Nothing looks for what it names.
  struct Global {
    std::string module, name;
    std::string full() const { return module + "." + name; }
  };
  /// What the pickle asks to be made by calling something. Nothing is called: it stays a note of what was asked.
  struct Object {
    enum class Way : uint8_t {
      call,
      create,
      persistent
    };  ///< f(*args), class.__new__(class, *args), an id that the container of the pickle explains
    Way way = Way::call;
    PyRef what = nullptr;   ///< usually a Global; null for a persistent id
    PyRef args = nullptr;   ///< a tuple; whatever it is for a persistent id
    PyRef state = nullptr;  ///< set on it afterwards; null where none
    List appended;
    Dict items;
    const Global* global() const;                                      ///< of `what`; null where it is something else
    bool calls(std::string_view module, std::string_view name) const;  ///< this way, and this global
  };
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Dict, Bytes, Global, std::unique_ptr<Object>>
      value;
  bool tuple = false;  ///< of a list: it is one

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  const Object* object() const;
  /// Of a dict with string keys; null where it has none of that name.
  const PyValue* find(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback = 0) const;
  std::string text(std::string_view key, const std::string& fallback = {}) const;
  const List* list(std::string_view key) const;
};

/// A pickle that was read, with all its values.
class Pickle {
 public:
  const PyValue& operator*() const { return *root_; }
  const PyValue* operator->() const { return root_; }
  /// Every value that was made on the way, in the order of the file.
  const std::deque<PyValue>& values() const { return *values_; }
  size_t bytes() const { return bytes_; }  ///< that it took; others may follow

 private:
  friend class PickleReader;
  std::shared_ptr<std::deque<PyValue>> values_ = std::make_shared<std::deque<PyValue>>();
  const PyValue* root_ = nullptr;
  size_t bytes_ = 0;
};

enum class PickleOf : uint8_t {
  plain_values,  ///< an opcode that names or makes anything else (GLOBAL, REDUCE, BUILD, ...) is an error
  objects,       ///< those are kept as Global and Object
};
/// Reads protocols 0x80 02 to 05 without ever running anything. Memory is bounded by the size of the bytes whatever
/// lengths they claim. Throws Error with the position.
Pickle read_pickle(std::string_view bytes, PickleOf what = PickleOf::plain_values);

/// Writes protocol 2 or 4.
class PickleWriter {
 public:
  explicit PickleWriter(int protocol = 4);
  void none() { out_ += 'N'; }
  void boolean(bool b) { out_ += b ? '\x88' : '\x89'; }
  void integer(int64_t v);
  void number(double v);
  void text(std::string_view s);
  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void begin_tuple() { out_ += '('; }
  void end_tuple() { out_ += 't'; }
  void global(std::string_view module, std::string_view name);  ///< protocol 2
  void begin_items() { out_ += '('; }  ///< of what was just made by a call; end_dict() sets them
  void call() { out_ += 'R'; }         ///< of a global and a tuple
  void persistent() { out_ += 'Q'; }   ///< of a tuple
  void create() { out_ += ")\x81"; }   ///< an object of a global, a class; set_state() follows its dict
  void set_state() { out_ += 'b'; }
  std::string finish() { return std::move(out_ += '.'); }

 private:
  int protocol_;
  std::string out_;
};

}  // namespace tenon::formats
