#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "engine/data/data_place.h"
#include "engine/data/dataset.h"
#include "engine/data/split_rule.h"
#include "engine/formats/npy.h"
#include "engine/ops/view.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

/// x.npy and y.npy, a sample a row. Floating-point numbers become f32, integers of y classes where they count from 0.
class Arrays : public Dataset {
 public:
  Arrays(std::string path, const Tensor& x, const Tensor& y, int64_t classes)
      : path_(std::move(path)), x_(x), y_(y), classes_(classes) {}
  int64_t size() const override { return x_.size(0); }
  Meta input() const override { return meta(x_); }
  Meta target() const override { return meta(y_); }
  int64_t classes() const override { return classes_; }
  Source source(int64_t row) const override { return {path_, "row " + std::to_string(row)}; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      copy(x_, rows[i], static_cast<char*>(x), i);
      copy(y_, rows[i], static_cast<char*>(y), i);
    }
  }

 private:
  static Meta meta(const Tensor& t) {
    Shape s = t.size();
    s.erase(0);
    return {t.dtype(), {}, s};
  }
  static void copy(const Tensor& t, int64_t row, char* to, int64_t i) {
    auto bytes = static_cast<int64_t>(t.nbytes()) / t.size(0);
    std::copy_n(static_cast<const char*>(t.raw()) + row * bytes, bytes, to + i * bytes);
  }
  std::string path_;
  Tensor x_, y_;
  int64_t classes_;
};

struct NpyPair {
  Tensor x, y;
  int64_t classes = 0;
  std::string path;  ///< of x
  std::vector<Remark> remarks;
};

bool is_float(DType t) { return t == DType::f64 || t == DType::f32 || t == DType::f16 || t == DType::bf16; }

/// Names the rows of an array that hold NaN or infinities; nothing where there are none.
void look_for_bad_rows(const Tensor& t, const std::string& path, std::vector<Remark>& remarks) {
  Remark bad{Remark::Kind::warning, "not_finite", {}};
  const int64_t rows = t.size(0), width = t.numel() / rows;
  const auto* values = t.data<float>();
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t here = 0;
    for (int64_t i = 0; i < width; ++i) here += !std::isfinite(values[r * width + i]);
    if (here > 0) bad.add({path, "row " + std::to_string(r)});
    count += here;
  }
  if (count == 0) return;
  bad.text = std::to_string(count) + (count == 1 ? " value is" : " values are") + " no finite number (nan, inf), in " +
             std::to_string(bad.count) + " of " + std::to_string(rows) + " rows";
  remarks.push_back(std::move(bad));
}

NpyPair load(const fs::path& x, const fs::path& y, const AttrValues& v) {
  NpyPair p{formats::load_npy(x.string()), formats::load_npy(y.string()), 0, x.string(), {}};
  for (const auto& [t, path] : {std::pair{&p.x, &x}, {&p.y, &y}})
    if (t->ndim() < 1 || t->size(0) < 1)
      throw Error(path->string() + " holds no rows: it is of size " + to_string(t->size()));
  if (p.x.size(0) != p.y.size(0))
    throw Error(x.string() + " holds " + std::to_string(p.x.size(0)) + " rows and " + y.string() + " " +
                std::to_string(p.y.size(0)));
  const bool tokens = v.text("input") == "integers";
  if (tokens && is_float(p.x.dtype()))
    throw Error::usage("data.input = integers: " + x.string() + " holds " + name(p.x.dtype()));
  p.x = contiguous(cast(p.x, tokens ? DType::i64 : DType::f32));
  if (!tokens) look_for_bad_rows(p.x, x.string(), p.remarks);
  if (is_float(p.y.dtype())) {
    p.y = contiguous(cast(p.y, DType::f32));
    look_for_bad_rows(p.y, y.string(), p.remarks);
    return p;
  }
  p.y = contiguous(cast(p.y, DType::i64));
  if (p.y.ndim() == 2 && p.y.size(1) == 1) p.y = view(p.y, {p.y.size(0)});
  const auto* values = p.y.data<int64_t>();
  for (int64_t i = 0; i < p.y.numel(); ++i) {
    if (values[i] < 0 || values[i] > 1000000)
      throw Error(y.string() + ": value " + std::to_string(values[i]) + " at " + std::to_string(i) +
                      " is no class of 0..1000000",
                  "save values as f32");
    p.classes = std::max(p.classes, values[i] + 1);
  }
  return p;
}

/// A word a row: its class, or the value of an array beside x.npy that is named without its ending.
SplitWords words_of(const SplitRule& rule, const fs::path& dir, const NpyPair& all) {
  SplitWords words;
  if (!rule.by_words()) return words;
  const bool classes = rule.by.empty() && rule.way == SplitRule::Way::stratified;
  if (rule.by.empty() && !classes)
    throw Error::usage("data.split: data.split_by names no array",
                       "as groups, which is groups.npy beside x.npy, a number a row");
  if (classes && (all.classes == 0 || all.y.ndim() != 1))
    throw Error::usage("data.split = stratified: " + dir.string() + " holds no class a row",
                       "data.split_by names an array of classes");
  const fs::path path = dir / (rule.by + ".npy");
  words.what = classes ? "y.npy" : path.filename().string();
  const Tensor of = contiguous(cast(classes ? all.y : formats::load_npy(path.string()), DType::f64));
  if (of.numel() != all.x.size(0) || of.ndim() < 1 || of.size(0) != all.x.size(0))
    throw Error(path.string() + " is of size " + to_string(of.size()) + ": it has one value for each of " +
                std::to_string(all.x.size(0)) + " rows");
  for (int64_t i = 0; i < of.numel(); ++i) {
    const double value = of.data<double>()[i];
    words.of.push_back(std::isfinite(value) ? fmt::format("{}", value) : "");
  }
  return words;
}

Split open_npy_pairs(const Options& o, const AttrValues& v) {
  if (o.dir.empty())
    throw Error("the data set npy is read from a folder", data_place("the folder with x.npy and y.npy"));
  fs::path dir = o.dir;
  std::error_code ec;
  const SplitRule rule = split_rule(v);
  if (fs::exists(dir / "x_train.npy", ec)) {
    refuse_rule(rule, o.dir);
    NpyPair a = load(dir / "x_train.npy", dir / "y_train.npy", v), b = load(dir / "x_test.npy", dir / "y_test.npy", v);
    int64_t classes = std::max(a.classes, b.classes);
    auto train = std::make_shared<Arrays>(a.path, a.x, a.y, classes),
         test = std::make_shared<Arrays>(b.path, b.x, b.y, classes);
    if (!(train->input().shape == test->input().shape) || !(train->target().shape == test->target().shape) ||
        a.y.dtype() != b.y.dtype())
      throw Error("the arrays for training and for the test in " + o.dir + " are not alike");
    a.remarks.insert(a.remarks.end(), b.remarks.begin(), b.remarks.end());
    return {train, test, a.remarks};
  }
  NpyPair all = load(dir / "x.npy", dir / "y.npy", v);
  auto set = std::make_shared<Arrays>(all.path, all.x, all.y, all.classes);
  Remark told;
  Parts parts = divide(
      rule, set->size(), words_of(rule, dir, all), [&](int64_t r) { return set->source(r); }, told);
  all.remarks.insert(all.remarks.begin(), std::move(told));
  if (parts.train.empty() || parts.test.empty())
    throw Error(o.dir + " holds too few rows to train with and to test with");
  return {subset(set, parts.train), subset(set, parts.test), all.remarks};
}

std::vector<AttrDef> npy_attrs() {
  std::vector<AttrDef> list = split_attrs();
  list.insert(list.begin(), {"input",
                             std::string("numbers"),
                             0,
                             0,
                             "what x becomes: f32 numbers, or integers such as tokens",
                             {"numbers", "integers"}});
  return list;
}

const bool registered_npy_pairs = register_dataset(
    {"npy", "arrays of NumPy, a sample a row: x.npy and y.npy, or x_train.npy, y_train.npy, x_test.npy and y_test.npy",
     npy_attrs(), open_npy_pairs, true, [](const std::string& path) {
       std::error_code ec;
       const fs::path dir = path;
       return fs::exists(dir / "x.npy", ec) || fs::exists(dir / "x_train.npy", ec) ? Recognised::yes : Recognised::no;
     }});

}  // namespace
}  // namespace tenon::data
