#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/parallel.h"
#include "core/random.h"
#include "engine/data/csv.h"
#include "engine/data/data_place.h"
#include "engine/data/dataset.h"
#include "engine/data/split_rule.h"
#include "engine/data/table_columns.h"
#include "engine/data/tabular.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

class Tabular : public Dataset {
 public:
  Tabular(const TableRows& t, const std::vector<Column>& columns, size_t label, std::vector<int64_t> rows)
      : places_(t.places()), rows_(std::move(rows)), label_(columns[label]) {
    std::vector<int64_t> begins;
    for (size_t c = 0; c < columns.size(); ++c) {
      begins.push_back(width_);
      if (c != label) width_ += columns[c].width();
    }
    x_.resize(rows_.size() * static_cast<size_t>(width_));
    y_.resize(rows_.size());
    parallel_for(size(), 4096, [&](int64_t begin, int64_t end) {
      for (size_t c = 0; c < columns.size(); ++c)
        for (int64_t i = begin; i < end && c != label; ++i)
          put(t, columns[c], rows_[static_cast<size_t>(i)], c, x_.data() + i * width_ + begins[c]);
      for (int64_t i = begin; i < end; ++i)
        y_[static_cast<size_t>(i)] = label_of(t, rows_[static_cast<size_t>(i)], label);
    });
  }
  int64_t size() const override { return static_cast<int64_t>(y_.size()); }
  Meta input() const override { return {DType::f32, {}, {width_}}; }
  Meta target() const override { return by_class() ? Meta{DType::i64, {}, {}} : Meta{DType::f32, {}, {1}}; }
  int64_t classes() const override { return by_class() ? static_cast<int64_t>(label_.words.size()) : 0; }
  std::string class_name(int64_t i) const override {
    return i >= 0 && i < classes() ? label_.words[static_cast<size_t>(i)] : std::to_string(i);
  }
  Source source(int64_t row) const override { return places_->source(rows_[static_cast<size_t>(row)]); }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(x_.begin() + rows[i] * width_, width_, static_cast<float*>(x) + i * width_);
      if (by_class())
        static_cast<int64_t*>(y)[i] = static_cast<int64_t>(y_[static_cast<size_t>(rows[i])]);
      else
        static_cast<float*>(y)[i] = y_[static_cast<size_t>(rows[i])];
    }
  }

 private:
  bool by_class() const { return label_.kind == Column::Kind::words; }
  static void put(const TableRows& t, const Column& c, int64_t row, size_t column, float* to) {
    double v = 0;
    if (c.kind == Column::Kind::number && t.read(row, column, v) == Cell::number)
      *to = static_cast<float>((v - c.mean) / c.deviation);
    if (c.kind != Column::Kind::words) return;
    if (const int64_t w = c.find(t.cell(row, column)); w >= 0) to[w] = 1;
  }
  float label_of(const TableRows& t, int64_t row, size_t label) const {
    auto refuse = [&](const char* why, const char* hint) {
      const Source at = t.source(row);
      throw Error(fmt::format("{}, {}: {} is \"{}\", {}", at.file, at.place, label_.name, t.cell(row, label), why),
                  hint);
    };
    double v = 0;
    if (by_class()) {
      const int64_t w = label_.find(t.cell(row, label));
      if (w < 0) refuse("a class that no row of the training set has", "another data.test_share draws other rows");
      return static_cast<float>(w);
    }
    if (t.read(row, label, v) != Cell::number)
      refuse("which is no number", "data.label_kind = class takes it for a class");
    return static_cast<float>((v - label_.mean) / label_.deviation);
  }

  std::shared_ptr<const RowPlaces> places_;
  std::vector<int64_t> rows_;  ///< of the table
  Column label_;
  int64_t width_ = 0;
  std::vector<float> x_, y_;
};

CsvOptions csv_options(const AttrValues& v) {
  CsvOptions o;
  const std::string &s = v.text("separator"), &h = v.text("header"), &d = v.text("decimal"), &e = v.text("encoding");
  if (s == "tab" || s == "\\t")
    o.separator = '\t';
  else if (s.size() == 1)
    o.separator = s[0];
  else if (!s.empty())
    throw Error::usage("data.separator = \"" + s + "\": it is one character, or tab");
  o.header = h == "yes" ? 1 : h == "no" ? 0 : -1;
  o.decimal = d == "comma" ? ',' : d == "point" ? '.' : '\0';
  if (e != "auto") o.encoding = e == "utf-8" ? Encoding::utf8 : e == "latin-1" ? Encoding::latin1 : Encoding::utf16;
  return o;
}

/// The column that a key of the recipe names.
size_t column_named(const TableRows& t, const std::string& key, const std::string& wanted) {
  const std::vector<std::string>& columns = t.table().columns;
  const auto found = std::find(columns.begin(), columns.end(), wanted);
  if (found != columns.end()) return static_cast<size_t>(found - columns.begin());
  const std::string near = near_names(wanted, columns.data(), columns.size());
  throw Error::usage(
      fmt::format("{} = \"{}\": {} has no such column{}", key, wanted, t.name(), near.empty() ? "" : " (" + near + ")"),
      fmt::format("it has {}", fmt::join(columns, ", ")));
}

size_t label_column(const TableRows& t, const AttrValues& v) {
  return v.text("label").empty() ? t.table().columns.size() - 1 : column_named(t, "data.label", v.text("label"));
}

/// Divides these rows as the recipe asks for. A column that says group or time is left out of the inputs unless
/// data.columns says what it is: a group has no sample in the other part.
Parts divided(const TableRows& t, const std::vector<int64_t>& rows, size_t label, const AttrValues& v,
              std::vector<int>& kinds, Split& split) {
  const SplitRule rule = split_rule(v);
  SplitWords words;
  if (rule.by_words()) {
    if (rule.by.empty() && rule.way != SplitRule::Way::stratified)
      throw Error::usage(fmt::format("data.split = {}: data.split_by names no column", v.text("split")),
                         fmt::format("{} has {}", t.name(), fmt::join(t.table().columns, ", ")));
    const size_t column = rule.by.empty() ? label : column_named(t, "data.split_by", rule.by);
    if (rule.way != SplitRule::Way::stratified && column != label && kinds[column] < 0)
      kinds[column] = static_cast<int>(Column::Kind::out);
    words.what = "column " + t.table().columns[column];
    double value = 0;
    for (int64_t r : rows) {
      const Cell cell = t.read(r, column, value);
      words.of.emplace_back(cell == Cell::missing ? "" : t.cell(r, column));
      if (cell == Cell::number && t.table().decimal == ',')
        std::replace(words.of.back().begin(), words.of.back().end(), ',', '.');
    }
  }
  Remark told;
  auto source = [&](int64_t i) { return t.source(rows[static_cast<size_t>(i)]); };
  Parts parts = divide(rule, static_cast<int64_t>(rows.size()), words, source, told);
  split.remarks.push_back(std::move(told));
  for (auto* part : {&parts.train, &parts.test})
    for (int64_t& i : *part) i = rows[static_cast<size_t>(i)];
  return parts;
}

/// Takes rows without a label out of the parts, or refuses them.
void see_to_unlabelled(const TableRows& t, size_t label, const AttrValues& v, Parts& parts, Split& split) {
  Remark without{Remark::Kind::warning, "unlabelled", {}};
  double value = 0;
  auto unlabelled = [&](int64_t r) {
    const Cell cell = t.read(r, label, value);
    if (cell != Cell::missing && cell != Cell::not_finite) return false;
    t.add_to(without, r);
    return true;
  };
  for (auto* rows : {&parts.train, &parts.test})
    rows->erase(std::remove_if(rows->begin(), rows->end(), unlabelled), rows->end());
  if (without.count == 0) return;
  const std::string& name = t.table().columns[label];
  if (v.text("unlabelled") == "stop") {
    without.text = fmt::format("{} of {} rows have no {}, which is to be predicted", without.count, t.rows(), name);
    throw Error(without.line(),
                fmt::format("{}leave such rows out with data.unlabelled = leave-out, or name the column to predict: "
                            "data.label = one of {}",
                            v.text("label").empty() ? "the last column is taken where none is named: " : "",
                            fmt::join(t.table().columns, ", ")));
  }
  without.text = fmt::format("{} of {} rows have no {} and are left out", without.count, t.rows(), name);
  split.remarks.push_back(std::move(without));
}

/// Decides whether the label is a class, and makes its words classes.
void settle_label(const TableRows& t, size_t label, const AttrValues& v, const std::vector<int64_t>& train, Column& y) {
  bool classes = v.text("label_kind") == "class" || y.kind == Column::Kind::words;
  if (v.text("label_kind") == "value" && y.kind == Column::Kind::words)
    throw Error::usage("data.label_kind = value: the column " + y.name + " of " + t.name() + " holds words");
  if (v.text("label_kind") == "auto" && y.kind == Column::Kind::number) {
    // A few whole numbers are classes.
    std::map<double, int64_t> seen;
    bool whole = true;
    double value = 0;
    for (int64_t r : train) {
      if (t.read(r, label, value) != Cell::number) continue;
      whole &= value == std::floor(value);
      if (seen.size() <= 20) ++seen[value];
    }
    classes = whole && seen.size() <= 20 && seen.size() * 5 <= train.size();
  }
  if (!classes) return;
  std::unordered_set<std::string_view> words;
  for (int64_t r : train) words.insert(t.cell(r, label));
  y.kind = Column::Kind::words;
  y.words.assign(words.begin(), words.end());
  std::sort(y.words.begin(), y.words.end());
}

std::string separator_text(char c) { return c == '\t' ? "tab" : std::string(1, c); }

/// How the table was read and what its columns are, in two sentences.
void tell_reading(const TableRows& t, const std::vector<Column>& columns, size_t label, Split& split) {
  const Table& table = t.table();
  split.remarks.insert(
      split.remarks.begin(),
      {Remark::Kind::assumed, "reading",
       fmt::format("Read as {} columns of {} rows, separated by {}, decimal {}, {}, {}", table.columns.size(),
                   table.rows(), table.separator == '\t' ? "tabs" : fmt::format("\"{}\"", table.separator),
                   table.decimal == ',' ? "comma" : "point", name(table.encoding),
                   table.header ? "names in the first line" : "no names in the first line")});
  std::vector<std::string> numbers, words, out;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c == label) continue;
    const Column& one = columns[c];
    if (one.kind == Column::Kind::number) numbers.push_back(one.name);
    if (one.kind == Column::Kind::words) words.push_back(fmt::format("{} ({})", one.name, one.different));
    if (one.kind == Column::Kind::out) out.push_back(one.name);
  }
  auto list = [](const char* what, const std::vector<std::string>& names) {
    return names.empty() ? "" : fmt::format("; {}: {}", what, fmt::join(names, ", "));
  };
  const Column& y = columns[label];
  split.remarks.insert(
      split.remarks.begin() + 1,
      {Remark::Kind::assumed, "columns",
       fmt::format("Predicts {}, {}{}{}{}", y.name,
                   y.kind == Column::Kind::words ? fmt::format("one of {} classes", y.words.size()) : "a value",
                   list("numbers", numbers), list("words", words), list("left out", out))});
}

/// The parts of the files, or, without, such as the recipe asks for.
Split split_of(const TableRows& t, std::optional<Parts> given, const AttrValues& v) {
  const size_t label = label_column(t, v);
  if (t.table().columns.size() < 2) throw Error(t.name() + " has one column: there is nothing to learn the label from");
  Split split;
  std::vector<int> kinds = column_kinds(v.text("columns"), t.table(), "data.columns");
  // A way that asks for words divides rows that have a label; the others divide all, so that a label that is filled in
  // moves no other row.
  const bool by_words = !given && split_rule(v).by_words();
  Parts parts;
  parts.train.resize(static_cast<size_t>(t.rows()));
  std::iota(parts.train.begin(), parts.train.end(), 0);
  if (given) parts = std::move(*given);
  if (!given && !by_words) parts = divided(t, parts.train, label, v, kinds, split);
  see_to_unlabelled(t, label, v, parts, split);
  if (by_words) parts = divided(t, parts.train, label, v, kinds, split);
  if (parts.train.empty() || parts.test.empty())
    throw Error(fmt::format("{} has {} rows with a label: too few to train with and to test with", t.name(),
                            parts.train.size() + parts.test.size()));
  std::vector<Column> columns;
  for (size_t c = 0; c < t.table().columns.size(); ++c)
    columns.push_back(study_column(t, c, parts.train, v.integer("most_words"), c == label ? -1 : kinds[c]));
  settle_label(t, label, v, parts.train, columns[label]);
  const Column& y = columns[label];
  if (y.kind == Column::Kind::words && y.words.size() == 1)
    split.remarks.push_back(
        {Remark::Kind::warning, "one_class",
         fmt::format("every row of the training set has {} = {}: there is nothing to tell apart", y.name, y.words[0])});
  tell_reading(t, columns, label, split);
  std::vector<int64_t> all;
  std::merge(parts.train.begin(), parts.train.end(), parts.test.begin(), parts.test.end(), std::back_inserter(all));
  for (size_t c = 0; c < columns.size(); ++c)
    if (c != label)
      for (Remark& r : column_remarks(t, c, columns[c], all, static_cast<int64_t>(parts.train.size())))
        split.remarks.push_back(std::move(r));
  split.train = std::make_shared<Tabular>(t, columns, label, parts.train);
  split.test = std::make_shared<Tabular>(t, columns, label, parts.test);
  if (split.train->input().shape[0] == 0)
    throw Error(t.name() + ": every column but the label is left out", "change data.columns");
  const char* encodings[] = {"utf-8", "latin-1", "utf-16"};
  std::vector<Column> inputs = columns;
  inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(label));
  split.found = {{"separator", separator_text(t.table().separator)},
                 {"decimal", std::string(t.table().decimal == ',' ? "comma" : "point")},
                 {"encoding", std::string(encodings[static_cast<size_t>(t.table().encoding)])},
                 {"header", std::string(t.table().header ? "yes" : "no")},
                 {"label", y.name},
                 {"label_kind", std::string(y.kind == Column::Kind::words ? "class" : "value")},
                 {"columns", column_kinds_text(inputs)}};
  return split;
}

Table read_table(const std::string& path, const AttrValues& v) {
  return parse_csv(read_file(path), path, csv_options(v));
}

/// All rows of one table.
Split split_one(Table table, const std::string& path, const AttrValues& v) {
  const int64_t rows = table.rows();
  return split_of(TableRows(std::move(table), {{path, rows}}), {}, v);
}

Split open_tabular(const Options& o, const AttrValues& v) {
  if (o.dir.empty()) return split_one(parse_csv(example_csv(o.seed), "the generated table"), "", v);
  std::error_code ec;
  fs::path path = o.dir;
  if (!fs::is_directory(path, ec)) return split_one(read_table(o.dir, v), o.dir, v);
  // A folder with train and test.
  for (const char* end : {".csv", ".tsv"}) {
    const fs::path train = path / (std::string("train") + end), test = path / (std::string("test") + end);
    if (!fs::exists(train, ec) || !fs::exists(test, ec)) continue;
    refuse_rule(split_rule(v), o.dir);
    Table all = read_table(train.string(), v), other = read_table(test.string(), v);
    if (all.columns != other.columns) throw Error(test.string() + " has other columns than " + train.string());
    const int64_t first = all.rows();
    all.append(std::move(other));
    Parts parts;
    for (int64_t i = 0; i < all.rows(); ++i) (i < first ? parts.train : parts.test).push_back(i);
    const int64_t rows = all.rows();
    return split_of(TableRows(std::move(all), {{train.string(), first}, {test.string(), rows}}), std::move(parts), v);
  }
  throw Error("the folder " + o.dir + " holds no train.csv and test.csv", data_place("a table", "FILE.csv"));
}

std::vector<AttrDef> tabular_attrs() {
  std::vector<AttrDef> list = {
      {"label", std::string(), 0, 0, "the column to predict; empty: the last one"},
      {"label_kind", std::string("auto"), 0, 0, "whether the label is a class or a value", {"auto", "class", "value"}},
      {"separator", std::string(), 0, 0, "what separates fields: one character, or tab; empty: found"},
      {"decimal", std::string("auto"), 0, 0, "what stands before decimals", {"auto", "point", "comma"}},
      {"encoding",
       std::string("auto"),
       0,
       0,
       "how characters are written; latin-1 is Windows-1252 too",
       {"auto", "utf-8", "latin-1", "utf-16"}},
      {"header", std::string("auto"), 0, 0, "whether the first line is names", {"auto", "yes", "no"}},
      {"columns", std::string(), 0, 0, "what columns are, as in: age=number; zip=words; id=out; the others are found"},
      {"unlabelled", std::string("stop"), 0, 0, "what is done about rows without a label", {"stop", "leave-out"}},
      {"most_words", int64_t{64}, 1, 100000, "places for the words of one column; rarer ones have none"}};
  const std::vector<AttrDef> split = split_attrs();
  list.insert(list.end(), split.begin(), split.end());
  return list;
}

/// A file that is called one, or whose beginning is one.
Recognised recognise_table(const std::string& path) {
  constexpr size_t kBeginning = 1 << 16;
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) return Recognised::no;
  const std::string ending = std::filesystem::path(path).extension().string();
  for (const char* own : {".csv", ".CSV", ".tsv", ".TSV"})
    if (ending == own) return Recognised::yes;
  std::string text(kBeginning, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (find_encoding(text) != Encoding::utf16 && text.find('\0') != text.npos) return Recognised::no;
  if (text.size() == kBeginning) text.resize(text.rfind('\n') == text.npos ? 0 : text.rfind('\n'));
  try {
    const Table t = parse_csv(std::move(text), path);
    return t.columns.size() > 1 && t.rows() > 2 ? Recognised::perhaps : Recognised::no;
  } catch (const Error&) {
    return Recognised::no;
  }
}

const bool registered_tabular = register_dataset(
    {"csv", "a table of text, its columns numbers or words (CSV, TSV); a generated one where no file is named",
     tabular_attrs(), open_tabular, true, recognise_table});

}  // namespace

std::string example_csv(uint64_t seed) {
  const char *colours[] = {"red", "green", "blue", "white"}, *places[] = {"north", "south", "east"};
  std::string text = "length,width,weight,colour,place,ripe\n";
  Philox u{seed, stream_of("example.csv")}, n{seed, stream_of("example.csv") + 1};
  for (uint64_t i = 0; i < 3000; ++i) {
    double length = 5 + 2 * n.normal(4 * i), width = 3 + 0.5 * length + 0.5 * n.normal(4 * i + 1),
           weight = 0.8 * length * width + 3 * n.normal(4 * i + 2);
    auto colour = u.below(4 * i, 4), place = u.below(4 * i + 1, 3);
    double score = 0.15 * (weight - 20) +
                   (colour == 0   ? 2
                    : colour == 1 ? -2
                                  : 0) +
                   (place == 1 ? 1 : -0.5) + 0.7 * n.normal(4 * i + 3);
    std::string w =
        u.uniform_double(4 * i + 2) < 0.03 ? "" : fmt::format("{:.2f}", weight);  // a few are missing, as in any table
    text += fmt::format("{:.2f},{:.2f},{},{},{},{}\n", length, width, w, colours[colour], places[place],
                        score > 0.5    ? "yes"
                        : score > -1.5 ? "nearly"
                                       : "no");
  }
  return text;
}

}  // namespace tenon::data
