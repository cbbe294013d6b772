#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon::tracing {

/// What a column's numbers are, hence how they are written: 1,500,000 nanoseconds are "1.50 ms" to a reader and 1500000
/// to a program.
enum class Unit : uint8_t {
  text,
  count,
  nanoseconds,
  bytes,
  share,
  number,
  time
};  ///< share: 0..1, time: a place on the trace's axis
using Cell = std::variant<std::string, int64_t, double>;

struct Column {
  std::string name;  ///< "self_ns": as programs read it
  std::string head;  ///< "SELF": as people do
  Unit unit = Unit::text;
  bool wide = false;  ///< too long for a line of a terminal: for programs
};
/// What a row is about, for one who wants to see it: an event of the file, a stretch of a trace's time, a line of code
/// that allocated memory, or a tensor or a node of a model file.
struct Sight {
  int64_t event = -1;        ///< -1: none
  int64_t from = 0, to = 0;  ///< on the trace's axis
  std::string place = {};    ///< of a snapshot
  std::string tensor = {};   ///< of a model file
  int64_t node = -1;         ///< of a model file's graph; -1: none
  int64_t trace = -1;        ///< of several that were given, the one that `event` is of; -1: the first, or the only one
  static Sight of(int64_t event) { return {event, 0, 0, {}}; }
  static Sight at(std::string place) { return {-1, 0, 0, std::move(place)}; }
  static Sight of_tensor(std::string name) { return {-1, 0, 0, {}, std::move(name)}; }
  static Sight of_node(int64_t node) { return {-1, 0, 0, {}, {}, node}; }
  static Sight in_trace(int64_t trace, int64_t event) { return {event, 0, 0, {}, {}, -1, trace}; }
};
struct Table {
  std::string name;  ///< "kernels"
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<Sight> sights = {};  ///< one a row, or none at all; of a comparison, in A
  std::vector<Sight> others = {};  ///< of a comparison: what each row is about in B
  std::string title() const;       ///< "critical-path" to "Critical path"
  void add(std::vector<Cell> row, Sight sight) {
    rows.push_back(std::move(row));
    sights.push_back(std::move(sight));
  }
  /// Of a comparison.
  void add(std::vector<Cell> row, Sight in_a, Sight in_b) {
    add(std::move(row), std::move(in_a));
    others.push_back(std::move(in_b));
  }
};
/// A single figure with its name.
struct Fact {
  std::string name, head;
  Unit unit = Unit::text;
  Cell value;
};

/// What an analysis says: a sentence a person understands, figures, and tables to look closer.
struct Finding {
  std::string sentence;
  std::vector<Fact> facts;
  std::vector<Table> tables;
  bool ok = true;  ///< false: what was asked for is not in the file; the sentence says what is missing
};

/// That what was asked for is not in the file, and why.
Finding nothing(std::string sentence);

/// 0 where there is no whole.
double share(int64_t part, int64_t whole);
/// "1.25 ms", "830 ns", "2.1 s"
std::string nanoseconds_text(double ns);
/// "1.5 GiB"
std::string bytes_text(double bytes);
inline std::string bytes_text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }
std::string share_text(double share);  ///< "12.3 %"
std::string count_text(int64_t n);     ///< "12,345"
std::string cell_text(const Cell& cell, Unit unit);

}  // namespace tenon::tracing
