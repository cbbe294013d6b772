#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/tensor.h"
#include "engine/spec/attr.h"

namespace tenon::data {

/// Where a sample comes from, so that a person finds it again: in the files as they were given, before any split,
/// shuffle or transform.
struct Source {
  std::string file;   ///< its path; empty: the sample was generated
  std::string place;  ///< within it: "row 120" (arrays and images count from 0), "line 7" (from 1); empty: all of it
  /// What the file is called among those that were given: "cat/1.png"; empty: its name alone.
  std::string called = {};
  /// "x.npy, row 120"; empty for a sample that was generated.
  std::string text() const;
};

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
  /// Of samples that are pictures: their first row is the lowest, as the frequencies of a spectrogram are, and is drawn
  /// at the bottom.
  virtual bool bottom_first() const { return false; }
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
  /// Where a row comes from.
  virtual Source source(int64_t /*row*/) const { return {}; }
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

/// Another data set's samples, but for what a derived class says otherwise.
class Wrapper : public Dataset {
 public:
  explicit Wrapper(std::shared_ptr<const Dataset> inner) : inner_(std::move(inner)) {}
  int64_t size() const override { return inner_->size(); }
  Meta input() const override { return inner_->input(); }
  Meta target() const override { return inner_->target(); }
  int64_t classes() const override { return inner_->classes(); }
  bool bottom_first() const override { return inner_->bottom_first(); }
  std::string task() const override { return inner_->task(); }
  double bytes_per_token() const override { return inner_->bytes_per_token(); }
  std::string class_name(int64_t index) const override { return inner_->class_name(index); }
  std::string token_text(int64_t token) const override { return inner_->token_text(token); }
  Source source(int64_t row) const override { return inner_->source(row); }
  std::vector<int64_t> labels() const override { return inner_->labels(); }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override { return inner_->order(seed, epoch); }

 protected:
  std::shared_ptr<const Dataset> inner_;
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
  std::string dir;    ///< of the files; empty: the kind's default
  uint64_t seed = 0;  ///< of generated samples
  /// Of transforms that change samples at random; none: `seed`.
  std::optional<uint64_t> transform_seed = {};
  std::vector<Attr> attrs = {};  ///< of the kind's own
  std::string transforms =
      {};  ///< what is done to samples, as in "random_crop padding=4; flip"; random ones in training only
  int64_t nan_sample = -1;      ///< a training row to spoil with a NaN, to try the NaN doctor on; -1: none
  int64_t nan_value_index = 0;  ///< which value of that row
};
/// What a person should know of data that were opened: something taken for granted, or something that looks wrong.
struct Remark {
  enum class Kind : uint8_t { assumed, warning };
  Kind kind = Kind::assumed;
  std::string id;                   ///< for programs: "not_finite"
  std::string text;                 ///< a sentence without its full stop, places left out
  std::vector<Source> places = {};  ///< what it is about, the first kMostPlaces of them
  int64_t count = 0;                ///< of all such places
  static constexpr size_t kMostPlaces = 8;
  /// Keeps the place where there is room, and counts it.
  void add(Source place);
  /// The whole in one line: "fare: 2 cells are not finite: table.csv, line 12, line 90".
  std::string line() const;
};

struct Split {
  std::shared_ptr<const Dataset> train, test;
  std::vector<Remark> remarks = {};
  /// Attributes of the kind that were left to the data ("separator"), with what was found there: given as options they
  /// make the same of these files, and of others of their making.
  std::vector<Attr> found = {};
};
/// How sure a kind of data set is that a file or folder is of it.
enum class Recognised : uint8_t { no, perhaps, yes };

/// One kind of data set, registered where it is defined. Its attributes are keys of the recipe ("data.<name>").
struct DatasetDef {
  std::string name, help;
  std::vector<AttrDef> attrs;
  std::function<Split(const Options&, const AttrValues&)> open;
  bool files = false;  ///< it lies in files (Options::dir), which may be missing
  /// By names and first bytes, of a file or folder that exists. Null: it is chosen by its own name alone.
  std::function<Recognised(const std::string& path)> recognises = {};
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

/// The name of the kind that a file or folder is of. Throws Error for a path that does not exist, and where no kind
/// takes it for its own, with what each would take.
std::string recognised_dataset(const std::string& path);

/// Throws Error naming file and bytes for bad files.
Split open_dataset(const std::string& name, const Options& options);

}  // namespace tenon::data
