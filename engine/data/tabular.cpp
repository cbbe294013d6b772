#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/random.h"
#include "engine/data/csv.h"
#include "engine/data/dataset.h"
#include "engine/data/tabular.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

/// How a column becomes numbers, learnt from the training rows alone: a number less its mean over its deviation
/// (missing: 0), or one place for each of its words (missing and new ones: none of them).
struct Column {
  std::string name;
  bool numeric = true;
  double mean = 0, deviation = 1;
  std::vector<std::string> words;  ///< sorted
  int64_t width() const { return numeric ? 1 : static_cast<int64_t>(words.size()); }
  int64_t find(const std::string& word) const {
    auto at = std::lower_bound(words.begin(), words.end(), word);
    return at != words.end() && *at == word ? at - words.begin() : -1;
  }
};

Column study(const Table& t, size_t c, const std::vector<int64_t>& train, int64_t most_words) {
  Column column;
  column.name = t.columns[c];
  double sum = 0, squares = 0, v = 0;
  int64_t n = 0;
  std::map<std::string, int64_t> words;
  for (int64_t r : train) {
    const std::string& f = t.rows[static_cast<size_t>(r)][c];
    if (csv_missing(f)) continue;
    ++words[f];
    if (csv_number(f, v))
      sum += v, squares += v * v, ++n;
    else
      column.numeric = false;
  }
  if (column.numeric) {
    column.mean = n ? sum / static_cast<double>(n) : 0;
    double variance = n ? squares / static_cast<double>(n) - column.mean * column.mean : 0;
    column.deviation = variance > 1e-24 * (1 + column.mean * column.mean) ? std::sqrt(variance) : 1;
    return column;
  }
  // Of too many words the frequent ones stay.
  std::vector<std::pair<int64_t, std::string>> ranked;
  for (const auto& [w, count] : words) ranked.emplace_back(-count, w);
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i < ranked.size() && static_cast<int64_t>(i) < most_words; ++i)
    column.words.push_back(ranked[i].second);
  std::sort(column.words.begin(), column.words.end());
  return column;
}

class Tabular : public Dataset {
 public:
  Tabular(const Table& t, const std::vector<Column>& columns, size_t label, const std::vector<int64_t>& rows,
          bool classes, const std::string& name)
      : label_(columns[label]), classes_(classes) {
    for (size_t c = 0; c < columns.size(); ++c)
      if (c != label) width_ += columns[c].width();
    for (int64_t r : rows) {
      const auto& row = t.rows[static_cast<size_t>(r)];
      for (size_t c = 0; c < columns.size(); ++c) {
        if (c == label) continue;
        double v = 0;
        if (columns[c].numeric) {
          x_.push_back(csv_number(row[c], v) ? static_cast<float>((v - columns[c].mean) / columns[c].deviation) : 0.0f);
        } else {
          size_t at = x_.size();
          x_.resize(at + columns[c].words.size());
          if (int64_t w = columns[c].find(row[c]); w >= 0) x_[at + static_cast<size_t>(w)] = 1;
        }
      }
      double v = 0;
      auto refuse = [&](const char* why) {
        throw Error(fmt::format("{}: {} of row {} is \"{}\", {}", name, label_.name, r + 1, row[label], why),
                    "every row needs its label");
      };
      if (classes_) {
        int64_t w = label_.find(row[label]);
        if (w < 0) refuse("a class that no training row has");
        y_.push_back(static_cast<float>(w));
      } else {
        if (!csv_number(row[label], v)) refuse("which is no number");
        y_.push_back(static_cast<float>((v - label_.mean) / label_.deviation));
      }
    }
  }
  int64_t size() const override { return static_cast<int64_t>(y_.size()); }
  Meta input() const override { return {DType::f32, {}, {width_}}; }
  Meta target() const override { return classes_ ? Meta{DType::i64, {}, {}} : Meta{DType::f32, {}, {1}}; }
  int64_t classes() const override { return classes_ ? static_cast<int64_t>(label_.words.size()) : 0; }
  std::string class_name(int64_t i) const override {
    return i >= 0 && i < classes() ? label_.words[static_cast<size_t>(i)] : std::to_string(i);
  }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(x_.begin() + rows[i] * width_, width_, static_cast<float*>(x) + i * width_);
      if (classes_)
        static_cast<int64_t*>(y)[i] = static_cast<int64_t>(y_[static_cast<size_t>(rows[i])]);
      else
        static_cast<float*>(y)[i] = y_[static_cast<size_t>(rows[i])];
    }
  }

 private:
  Column label_;
  bool classes_;
  int64_t width_ = 0;
  std::vector<float> x_, y_;
};

CsvOptions csv_options(const AttrValues& v) {
  CsvOptions o;
  const std::string &s = v.text("separator"), &h = v.text("header");
  if (s == "tab" || s == "\\t")
    o.separator = '\t';
  else if (s.size() == 1)
    o.separator = s[0];
  else if (!s.empty())
    throw Error::usage("data.separator = \"" + s + "\": it is one character, or tab");
  o.header = h == "yes" ? 1 : h == "no" ? 0 : -1;
  return o;
}

Split split_of(const Table& t, const Parts& parts, const AttrValues& v, const std::string& name) {
  size_t label = t.columns.size() - 1;
  if (const std::string& wanted = v.text("label"); !wanted.empty()) {
    auto found = std::find(t.columns.begin(), t.columns.end(), wanted);
    if (found == t.columns.end()) {
      std::string near = near_names(wanted, t.columns.data(), t.columns.size());
      throw Error::usage(fmt::format("data.label = \"{}\": {} has no such column{}", wanted, name,
                                     near.empty() ? "" : " (" + near + ")"),
                         fmt::format("it has {}", fmt::join(t.columns, ", ")));
    }
    label = static_cast<size_t>(found - t.columns.begin());
  }
  if (t.columns.size() < 2) throw Error(name + " has one column: there is nothing to learn the label from");
  if (parts.train.empty() || parts.test.empty())
    throw Error(fmt::format("{} has {} rows: too few to train with and to test with", name, t.rows.size()));
  std::vector<Column> columns;
  for (size_t c = 0; c < t.columns.size(); ++c) columns.push_back(study(t, c, parts.train, v.integer("most_words")));
  Column& y = columns[label];
  bool classes = v.text("label_kind") == "class" || !y.numeric;
  if (v.text("label_kind") == "value" && !y.numeric)
    throw Error::usage("data.label_kind = value: the column " + y.name + " of " + name + " holds words");
  if (v.text("label_kind") == "auto" && y.numeric) {
    // A few whole numbers are classes.
    std::map<double, int64_t> seen;
    bool whole = true;
    double value = 0;
    for (int64_t r : parts.train) {
      if (!csv_number(t.rows[static_cast<size_t>(r)][label], value)) continue;
      whole &= value == std::floor(value);
      if (seen.size() <= 20) ++seen[value];
    }
    classes = whole && seen.size() <= 20 && seen.size() * 5 <= parts.train.size();
  }
  if (classes) {
    std::map<std::string, int64_t> words;
    for (int64_t r : parts.train)
      if (const std::string& f = t.rows[static_cast<size_t>(r)][label]; !csv_missing(f)) ++words[f];
    y.numeric = false;
    y.words.clear();
    for (const auto& [w, n] : words) y.words.push_back(w);
  }
  return {std::make_shared<Tabular>(t, columns, label, parts.train, classes, name),
          std::make_shared<Tabular>(t, columns, label, parts.test, classes, name)};
}

Split open_tabular(const Options& o, const AttrValues& v) {
  if (o.dir.empty()) {
    Table t = parse_csv(example_csv(o.seed), "the generated table");
    return split_of(t, split_rows(static_cast<int64_t>(t.rows.size()), v.number("test_share")), v,
                    "the generated table");
  }
  std::error_code ec;
  fs::path path = o.dir;
  if (!fs::is_directory(path, ec)) {
    Table t = parse_csv(read_file(o.dir), o.dir, csv_options(v));
    return split_of(t, split_rows(static_cast<int64_t>(t.rows.size()), v.number("test_share")), v, o.dir);
  }
  // A folder with one table, or with train and test.
  for (const char* end : {".csv", ".tsv"})
    if (fs::path train = path / (std::string("train") + end), test = path / (std::string("test") + end);
        fs::exists(train, ec) && fs::exists(test, ec)) {
      Table t = parse_csv(read_file(train.string()), train.string(), csv_options(v)),
            u = parse_csv(read_file(test.string()), test.string(), csv_options(v));
      if (t.columns != u.columns) throw Error(test.string() + " has other columns than " + train.string());
      Parts parts;
      for (size_t i = 0; i < t.rows.size() + u.rows.size(); ++i)
        (i < t.rows.size() ? parts.train : parts.test).push_back(static_cast<int64_t>(i));
      t.rows.insert(t.rows.end(), u.rows.begin(), u.rows.end());
      return split_of(t, parts, v, train.string());
    }
  throw Error("the folder " + o.dir + " holds no train.csv and test.csv", "name a table: --data FILE.csv");
}

const bool registered_tabular = register_dataset(
    {"csv",
     "a table of text, its columns numbers or words (CSV, TSV); a generated one where no file is named",
     {{"label", std::string(), 0, 0, "the column to foretell; empty: the last one"},
      {"label_kind", std::string("auto"), 0, 0, "whether the label is a class or a value", {"auto", "class", "value"}},
      {"separator", std::string(), 0, 0, "what separates fields: one character, or tab; empty: found"},
      {"header", std::string("auto"), 0, 0, "whether the first line is names", {"auto", "yes", "no"}},
      {"most_words", int64_t{64}, 1, 100000, "places for the words of one column; rarer ones have none"},
      test_share_attr()},
     open_tabular,
     true});

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
