#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/registry.h"
#include "tracing/analyses/finding.h"

namespace tenon::traces {
class Trace;
}
namespace tenon::snapshot {
struct Snapshot;
}
namespace tenon::formats {
struct ModelFile;
}

// What a query may ask of a document: tables that are views of what the document holds, never copies of it.
namespace tenon::projects {

class Project;

/// What is asked: one of these is set.
struct QuerySubject {
  std::shared_ptr<const traces::Trace> trace = {};
  std::shared_ptr<const snapshot::Snapshot> snapshot = {};
  std::shared_ptr<const Project> project = {};
  std::shared_ptr<const formats::ModelFile> model = {};
};
enum class QueryKind : uint8_t { trace, snapshot, project, model };
constexpr std::initializer_list<QueryKind> kQueryKinds = {QueryKind::trace, QueryKind::snapshot, QueryKind::project,
                                                          QueryKind::model};
/// "trace", "snapshot", "project", "model file"
const char* name(QueryKind kind);
QueryKind kind_of(const QuerySubject& subject);

using QueryValue = std::variant<std::monostate, int64_t, double, std::string>;

/// One value of a row. Begins as NULL.
class QueryCell {
 public:
  enum class Kind : uint8_t { null, integer, real, text };
  void clear() { kind_ = Kind::null; }
  void put(int64_t v) { kind_ = Kind::integer, integer_ = v; }
  /// What is no number stays NULL, as SQL has none.
  void put(double v) {
    if (!std::isnan(v)) kind_ = Kind::real, real_ = v;
  }
  /// Text that stands as long as the rows do: it is not copied.
  void put_standing(std::string_view v) { kind_ = Kind::text, stands_ = true, text_ = v; }
  void put(std::string v) {
    kind_ = Kind::text, stands_ = false;
    own_ = std::move(v);
    text_ = own_;
  }

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  double real() const { return real_; }
  std::string_view text() const { return text_; }
  bool stands() const { return stands_; }
  QueryValue value() const;

 private:
  Kind kind_ = Kind::null;
  bool stands_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string_view text_;
  std::string own_;
};

/// A condition of a query on a column: `dur > 1000`.
struct QueryTest {
  enum class Op : uint8_t { equal, less, less_equal, greater, greater_equal };
  std::string_view column;
  Op op = Op::equal;
  QueryValue value;

  /// Narrows [low, high] so that it still holds every integer that may satisfy it.
  void narrow(int64_t& low, int64_t& high) const;
};

/// The rows of one table of one document, by number from 0. Used by one thread at a time.
class QueryRows {
 public:
  virtual ~QueryRows() = default;
  /// One past the last row's number.
  virtual int64_t end() const = 0;
  /// How many there are, where numbers have gaps.
  virtual double count() const { return static_cast<double>(end()); }
  /// The first row at or after `from` that may satisfy the tests; end() where none does.
  using Scan = std::function<int64_t(int64_t from)>;
  /// Told of tests on columns that are `scanned`. Rows that do not satisfy them may be among those it finds: SQLite
  /// looks at each again. Null: every number is a row.
  virtual Scan scan(const std::vector<QueryTest>&) const { return {}; }
};

/// Rows that are a list.
template <class Item>
class QueryList : public QueryRows {
 public:
  explicit QueryList(std::vector<Item> items) : items_(std::move(items)) {}
  int64_t end() const override { return static_cast<int64_t>(items_.size()); }
  const Item& operator[](int64_t row) const { return items_[static_cast<size_t>(row)]; }

 private:
  std::vector<Item> items_;
};

struct QueryColumn {
  /// How rows are found by it: `sorted` columns hold integers that never go down from row to row, `unique` ones go up;
  /// of `scanned` ones the rows know a quicker way, see QueryRows::scan.
  enum class Found : uint8_t { by_looking, sorted, unique, scanned };
  /// What a row that has it leads to in the window.
  enum class Leads : uint8_t {
    nowhere,
    event,  ///< of a trace or snapshot, by its number, as all that follow
    run,    ///< also by its name
    step,
    checkpoint,
    allocation,  ///< a row of that table of a snapshot, as the two that follow
    segment,
    block,
    place,   ///< a line of code of a snapshot, by its words
    tensor,  ///< of a model file
    node
  };

  std::string name;
  tracing::Unit unit = tracing::Unit::text;
  std::string help;
  void (*cell)(const QueryRows& rows, int64_t row, QueryCell& out) = nullptr;
  Found found = Found::by_looking;
  Leads leads = Leads::nowhere;

  bool is_text() const { return unit == tracing::Unit::text; }
  /// "TEXT", "INTEGER", "REAL"
  const char* type() const;
};

/// The columns of a table whose rows are of the class `Rows`: each with a function without captures,
/// [](const Rows& rows, int64_t row, QueryCell& out).
template <class Rows>
class QueryColumns {
 public:
  template <class Get>
  QueryColumns& add(std::string name, tracing::Unit unit, std::string help, Get,
                    QueryColumn::Found found = QueryColumn::Found::by_looking,
                    QueryColumn::Leads leads = QueryColumn::Leads::nowhere) {
    all_.push_back(
        {std::move(name), unit, std::move(help),
         [](const QueryRows& rows, int64_t row, QueryCell& out) { Get()(static_cast<const Rows&>(rows), row, out); },
         found, leads});
    return *this;
  }
  operator std::vector<QueryColumn>() { return std::move(all_); }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<QueryColumn> all_;
};

/// A query that is worth beginning with.
struct QueryExample {
  std::string title, sql;
};

/// A table, registered in the file that defines it; `tenon query --tables`, the window's list of tables and its
/// completion walk these.
struct QueryTable {
  std::string name;
  int order = 0;  ///< among the tables of a kind: what most ask for comes first
  std::string help;
  std::vector<QueryColumn> columns;
  /// Of a subject of its kind; called where a query first names the table. May throw Error.
  std::unique_ptr<QueryRows> (*rows)(const QuerySubject& subject) = nullptr;
  std::vector<QueryExample> examples = {};

  const QueryColumn* column(std::string_view name) const;  ///< in any case of letters; null where it has none
};
bool register_query_table(QueryKind of, QueryTable table, Place place = Place::current());
/// By their order.
const Registry<QueryTable>& query_tables(QueryKind of);
/// Of all tables of a kind.
std::vector<QueryExample> query_examples(QueryKind of);

}  // namespace tenon::projects
