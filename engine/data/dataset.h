#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/tensor.h"
#include "engine/spec/attr.h"

namespace tenon::data {

/// Numbered samples, each an input and a target. Immutable, so every function may be called from any thread at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// dtype and shape of one sample, without the batch axis.
  virtual Meta input() const = 0;
  virtual Meta target() const = 0;
  /// Number of classes of a target that is a class index; 0 where the target is a value.
  virtual int64_t classes() const { return 0; }
  /// What is to be learnt: "classification" (a class), "segmentation" (a class a pixel), "language" (the next token at
  /// every place), "binary" (0 or 1 as f32), "regression" (values).
  virtual std::string task() const {
    return classes() == 0 ? "regression" : target().shape.n == 0 ? "classification" : "segmentation";
  }
  /// Of text: how many bytes a token of the targets stands for, on average.
  virtual double bytes_per_token() const { return 1; }
  /// What a class is called ("Sneaker"); its number where it has no name.
  virtual std::string class_name(int64_t index) const { return std::to_string(index); }
  /// What a token of a text stands for, as UTF-8 where the text is that; empty: samples are no text.
  virtual std::string token_text(int64_t /*token*/) const { return {}; }
  /// The class of every row, of a binary task 0 or 1; empty where a row has none, or several. What is not at hand is
  /// fetched, with its inputs.
  virtual std::vector<int64_t> labels() const;
  /// Writes the inputs and targets of `count` rows one after the other to dense memory. Throws Error naming the row.
  virtual void fetch(const int64_t* rows, int64_t count, void* x, void* y) const = 0;
  /// The same as seen in an epoch: other than fetch() where samples are changed at random.
  virtual void fetch_in(int64_t /*epoch*/, const int64_t* rows, int64_t count, void* x, void* y) const {
    fetch(rows, count, x, y);
  }
  /// The rows in the order of an epoch; empty: any order will do, and a permutation is drawn. For samples that lie in a
  /// stream.
  virtual std::vector<int64_t> order(uint64_t /*seed*/, int64_t /*epoch*/) const { return {}; }
};

/// Some rows stacked along a new first axis.
struct Batch {
  Tensor x, y;
  std::vector<int64_t> rows;  ///< rows of the data set, in the order of the batch
  int64_t epoch = 0;          ///< from 0
  int64_t index = 0;          ///< number of the batch within its epoch, from 0
  int64_t whole = 0;          ///< rows of the batch that these are a replica's share of; all of them for one alone
};
Batch fetch(const Dataset& set, std::vector<int64_t> rows, int64_t epoch = 0);

/// What a data set is made from.
struct Options {
  std::string dir;               ///< of the files; empty: the kind's default
  uint64_t seed = 0;             ///< of generated samples
  std::vector<Attr> attrs = {};  ///< of the kind's own
  std::string transforms =
      {};  ///< what is done to samples, as in "random_crop padding=4; flip"; random ones in training only
  int64_t nan_sample = -1;      ///< a training row to spoil with a NaN, to try the NaN doctor on; -1: none
  int64_t nan_value_index = 0;  ///< which value of that row
};
struct Split {
  std::shared_ptr<const Dataset> train, test;
};
/// One kind of data set, registered where it is defined. Its attributes are keys of the recipe ("data.<name>").
struct DatasetDef {
  std::string name, help;
  std::vector<AttrDef> attrs;
  std::function<Split(const Options&, const AttrValues&)> open;
  bool files = false;  ///< it lies in files (Options::dir), which may be missing
};
bool register_dataset(DatasetDef kind, Place place = Place::current());
/// Sorted by name.
const Registry<DatasetDef>& dataset_defs();
/// Which rows of `n` are kept for the test: about `share` of them, spread evenly, a function of the arguments alone.
struct Parts {
  std::vector<int64_t> train, test;
};
Parts split_rows(int64_t n, double share);
AttrDef test_share_attr();
/// The rows `chosen` of another data set.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> set, std::vector<int64_t> chosen);

/// Throws Error naming file and bytes for bad files.
Split open_dataset(const std::string& name, const Options& options);

}  // namespace tenon::data
