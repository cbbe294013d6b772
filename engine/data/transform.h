#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "engine/data/dataset.h"

namespace tenon::data {

/// One sample on its way through transforms. Images are [channels, height, width]; a mask [height, width] goes along
/// with its image.
struct Item {
  Shape size;
  bool bottom_first = false;  ///< see Dataset::bottom_first()
  std::vector<float> x;
  std::vector<int64_t> mask;  ///< classes of the pixels; empty where the target is no mask
  int64_t classes = 0;        ///< of the data set
  int64_t label = -1;         ///< class of the sample; -1 where the target is another
  std::vector<float> shares;  ///< of each class, once samples are mixed; empty: all of `label`
};

/// Random numbers of one transform for one sample: a pure function of (seed, epoch, row, the transform's place in the
/// list).
class Dice {
 public:
  Dice(uint64_t seed, int64_t epoch, int64_t row, size_t place);
  double uniform() { return random_.uniform_double(next_++); }  ///< in [0, 1)
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(next_++, static_cast<uint64_t>(n))); }
  /// A pair of numbers makes a pair of normals: neither is used for anything else.
  double normal() {
    uint64_t at = next_ + next_ % 2;
    next_ = at + 2;
    return random_.normal(at);
  }

 private:
  Philox random_;
  uint64_t next_ = 0;
};

class Transform {
 public:
  virtual ~Transform() = default;
  /// The size of what comes out. Throws Error for a size it cannot take.
  virtual Shape size(const Shape& in) const { return in; }
  /// Whether the first row of what comes out is the lowest: see Dataset::bottom_first().
  virtual bool bottom_first(bool in) const { return in; }
  /// Whether it turns classes into shares of classes.
  virtual bool mixes() const { return false; }
  /// In training. `other(row)` is another sample of the set as it came to this transform; row in [0, count).
  using Other = std::function<Item(int64_t row)>;
  virtual void train(Item& item, Dice& dice, int64_t count, const Other& other) const = 0;
  /// In evaluation: nothing random. A transform that does nothing then leaves this.
  virtual void evaluate(Item&) const {}
};

/// One transform, registered in the file that defines it.
struct TransformDef {
  std::string name, help;
  std::vector<AttrDef> attrs;
  std::unique_ptr<Transform> (*make)(const AttrValues& values);
};
bool register_transform(TransformDef def, Place place = Place::current());
/// Sorted by name.
const Registry<TransformDef>& transforms();

/// The list in which transforms of sounds that were not told their rate have that of the split, where that was left to
/// the data: a recipe that says a rate means what it always meant. What was told of sounds that are otherwise is
/// remarked.
std::string with_rate(const std::string& list, const Split& split, std::vector<Remark>* remarks = nullptr);

/// The split with a list of transforms behind it: "random_crop padding=4; flip". Throws Error (usage) for what there is
/// not.
Split transformed(const Split& split, const std::string& list, uint64_t seed);

/// A sample on its way through a list of transforms: as it is, then behind each of them.
struct TransformStep {
  std::string text;  ///< "random_crop padding=4"; empty: the sample as it is
  Item item;
};
/// As a run of this seed sees the row in an epoch, in training or in the test. Throws as transformed(), and for a row
/// that is not there.
std::vector<TransformStep> transform_steps(const std::shared_ptr<const Dataset>& set, const std::string& list,
                                           uint64_t seed, bool train, int64_t row, int64_t epoch);

}  // namespace tenon::data
