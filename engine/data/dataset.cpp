#include "engine/data/dataset.h"

#include <limits>

#include "core/error.h"

namespace tenon::data {
namespace {

std::vector<Kind>& registry() {
  static std::vector<Kind> kinds;
  return kinds;
}

/// A data set with one value of one sample replaced by NaN: something for the NaN doctor to find.
class Spoiled : public Dataset {
 public:
  Spoiled(std::shared_ptr<const Dataset> inner, int64_t row, int64_t value) : inner_(std::move(inner)), row_(row), value_(value) {}
  int64_t size() const override { return inner_->size(); }
  Meta input() const override { return inner_->input(); }
  Meta target() const override { return inner_->target(); }
  int64_t classes() const override { return inner_->classes(); }
  std::string task() const override { return inner_->task(); }
  std::string class_name(int64_t i) const override { return inner_->class_name(i); }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    inner_->fetch(rows, count, x, y);
    int64_t values = input().shape.product();
    for (int64_t i = 0; i < count; ++i)
      if (rows[i] == row_) static_cast<float*>(x)[i * values + value_] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  std::shared_ptr<const Dataset> inner_;
  int64_t row_, value_;
};

}  // namespace

Batch fetch(const Dataset& set, std::vector<int64_t> rows) {
  auto stacked = [&](const Meta& one) {
    Shape s = one.shape;
    s.insert(0, static_cast<int64_t>(rows.size()));
    return empty(s, one.dtype);
  };
  for (int64_t r : rows)
    if (r < 0 || r >= set.size()) throw Error("row " + std::to_string(r) + " of a data set of " + std::to_string(set.size()) + " samples");
  Batch b;
  b.x = stacked(set.input());
  b.y = stacked(set.target());
  set.fetch(rows.data(), static_cast<int64_t>(rows.size()), b.x.raw(), b.y.raw());
  b.rows = std::move(rows);
  return b;
}

bool register_dataset(Kind kind) { return add_named(registry(), std::move(kind)); }
const std::vector<Kind>& dataset_kinds() { return registry(); }
const Kind& find_dataset_kind(const std::string& name) { return find_named(registry(), name, "data set"); }

Split open_dataset(const std::string& name, const Options& options) {
  const Kind& kind = find_dataset_kind(name);
  Split split = kind.open(options, AttrValues(kind.attrs, options.attrs, name));
  if (options.nan_sample < 0) return split;
  int64_t values = split.train->input().shape.product();
  if (split.train->input().dtype != DType::f32) throw Error::usage("data.nan_sample: the inputs of data set " + name + " are not f32");
  if (options.nan_sample >= split.train->size())
    throw Error::usage("data.nan_sample = " + std::to_string(options.nan_sample) + ": the training set has " +
                       std::to_string(split.train->size()) + " samples");
  if (options.nan_value_index < 0 || options.nan_value_index >= values)
    throw Error::usage("data.nan_value_index = " + std::to_string(options.nan_value_index) + ": a sample has " + std::to_string(values) +
                       " values");
  split.train = std::make_shared<Spoiled>(split.train, options.nan_sample, options.nan_value_index);
  return split;
}

}  // namespace tenon::data
