#include "engine/data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "engine/data/transform.h"

namespace tenon::data {
namespace {

Registry<DatasetDef>& dataset_registry() {
  static auto& all = *new Registry<DatasetDef>("data set");
  return all;
}

/// A data set with one value of one sample replaced by NaN: something for the NaN doctor to find.
class Spoiled : public Wrapper {
 public:
  Spoiled(std::shared_ptr<const Dataset> inner, int64_t row, int64_t value)
      : Wrapper(std::move(inner)), row_(row), value_(value) {}
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    inner_->fetch(rows, count, x, y);
    int64_t values = input().shape.product();
    for (int64_t i = 0; i < count; ++i)
      if (rows[i] == row_) static_cast<float*>(x)[i * values + value_] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  int64_t row_, value_;
};

class Subset : public Wrapper {
 public:
  Subset(std::shared_ptr<const Dataset> inner, std::vector<int64_t> chosen)
      : Wrapper(std::move(inner)), chosen_(std::move(chosen)) {}
  int64_t size() const override { return static_cast<int64_t>(chosen_.size()); }
  Source source(int64_t row) const override { return inner_->source(chosen_[static_cast<size_t>(row)]); }
  std::vector<int64_t> labels() const override {
    const std::vector<int64_t> all = inner_->labels();
    std::vector<int64_t> mine;
    for (size_t i = 0; i < chosen_.size() && !all.empty(); ++i) mine.push_back(all[static_cast<size_t>(chosen_[i])]);
    return mine;
  }
  /// The numbers of its rows are its own: any order will do.
  std::vector<int64_t> order(uint64_t, int64_t) const override { return {}; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    std::vector<int64_t> of;
    for (int64_t i = 0; i < count; ++i) of.push_back(chosen_[static_cast<size_t>(rows[i])]);
    inner_->fetch(of.data(), count, x, y);
  }

 private:
  std::vector<int64_t> chosen_;
};

}  // namespace

std::string Source::text() const {
  const std::string name = called.empty() ? std::filesystem::path(file).filename().string() : called;
  return place.empty() ? name : name.empty() ? place : name + ", " + place;
}

void Remark::add(Source place) {
  if (places.size() < kMostPlaces) places.push_back(std::move(place));
  ++count;
}

std::string Remark::line() const {
  std::string all = text;
  for (size_t i = 0; i < places.size(); ++i) {
    const bool same = i > 0 && places[i].file == places[i - 1].file && !places[i].place.empty();
    all += (i > 0 ? ", " : ": ") + (same ? places[i].place : places[i].text());
  }
  const int64_t more = count - static_cast<int64_t>(places.size());
  return more > 0 ? all + " and " + std::to_string(more) + " more" : all;
}

std::vector<int64_t> Dataset::labels() const {
  const Meta one = target();
  const bool binary = task() == "binary" && one.dtype == DType::f32;
  if (one.shape.product() != 1 || !(binary || (classes() > 0 && one.shape.n == 0 && one.dtype == DType::i64)))
    return {};
  std::vector<int64_t> all(static_cast<size_t>(size()));
  constexpr int64_t kRows = 64;
  const size_t bytes = static_cast<size_t>(input().shape.product()) * itemsize(input().dtype);
  std::vector<char> x(bytes * kRows);
  std::vector<int64_t> rows, y(kRows);
  for (int64_t at = 0; at < size(); at += kRows) {
    const int64_t n = std::min(kRows, size() - at);
    rows.resize(static_cast<size_t>(n));
    std::iota(rows.begin(), rows.end(), at);
    fetch(rows.data(), n, x.data(), y.data());
    for (int64_t i = 0; i < n; ++i)
      all[static_cast<size_t>(at + i)] =
          binary ? reinterpret_cast<const float*>(y.data())[i] > 0.5f : y[static_cast<size_t>(i)];
  }
  return all;
}

Batch fetch(const Dataset& set, std::vector<int64_t> rows, int64_t epoch) {
  auto stacked = [&](const Meta& one) {
    Shape s = one.shape;
    s.insert(0, static_cast<int64_t>(rows.size()));
    return empty(s, one.dtype);
  };
  for (int64_t r : rows)
    if (r < 0 || r >= set.size())
      throw Error("row " + std::to_string(r) + " of a data set of " + std::to_string(set.size()) + " samples");
  Batch b;
  b.x = stacked(set.input());
  b.y = stacked(set.target());
  set.fetch_in(epoch, rows.data(), static_cast<int64_t>(rows.size()), b.x.raw(), b.y.raw());
  b.whole = static_cast<int64_t>(rows.size());
  b.rows = std::move(rows);
  return b;
}

namespace {

std::shared_ptr<const Dataset> spoiled(std::shared_ptr<const Dataset> set, const std::string& name,
                                       const Options& options) {
  int64_t values = set->input().shape.product();
  if (set->input().dtype != DType::f32)
    throw Error::usage("data.nan_sample: the inputs of data set " + name + " are not f32");
  if (options.nan_sample >= set->size())
    throw Error::usage("data.nan_sample = " + std::to_string(options.nan_sample) + ": the training set has " +
                       std::to_string(set->size()) + " samples");
  if (options.nan_value_index < 0 || options.nan_value_index >= values)
    throw Error::usage("data.nan_value_index = " + std::to_string(options.nan_value_index) + ": a sample has " +
                       std::to_string(values) + " values");
  return std::make_shared<Spoiled>(std::move(set), options.nan_sample, options.nan_value_index);
}

}  // namespace

bool register_dataset(DatasetDef kind, Place place) { return dataset_registry().add(std::move(kind), place); }
const Registry<DatasetDef>& dataset_defs() { return dataset_registry(); }

std::string recognised_dataset(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) throw Error(path + " does not exist", "name a file or folder of data");
  const DatasetDef* best = nullptr;
  Recognised most = Recognised::no;
  std::string kinds;
  for (const DatasetDef& def : dataset_defs()) {
    if (!def.recognises) continue;
    kinds += (kinds.empty() ? "" : "; ") + def.help;
    const Recognised sure = def.recognises(path);
    if (sure <= most) continue;
    best = &def;
    most = sure;
  }
  if (!best) throw Error("no kind of data set reads " + path, "what is read: " + kinds);
  return best->name;
}

Split open_dataset(const std::string& name, const Options& options) {
  const DatasetDef& kind = dataset_defs().at(name);
  Split split = kind.open(options, AttrValues(kind.attrs, options.attrs, name));
  if (options.nan_sample >= 0) split.train = spoiled(split.train, name, options);
  if (options.transforms.empty()) return split;
  const std::string list = with_rate(options.transforms, split, &split.remarks);
  Split changed = transformed(split, list, options.transform_seed.value_or(options.seed));
  changed.remarks = std::move(split.remarks);
  changed.found = std::move(split.found);
  return changed;
}

Parts split_rows(int64_t n, double share) {
  Parts parts;
  double owed = 0.5;
  for (int64_t i = 0; i < n; ++i) {
    owed += share;
    (owed >= 1 ? parts.test : parts.train).push_back(i);
    if (owed >= 1) owed -= 1;
  }
  return parts;
}
AttrDef test_share_attr() {
  return {"test_share", 0.2, 0, 0.9,
          "share of the samples kept for the test, where the files have no split of their own"};
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> set, std::vector<int64_t> chosen) {
  return std::make_shared<Subset>(std::move(set), std::move(chosen));
}

}  // namespace tenon::data
