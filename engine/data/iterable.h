#pragma once
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "engine/data/dataset.h"

namespace tenon::data {

// Note [Streams that can be resumed]
// Samples that come one after the other (shards of an archive, a generator) are rows all the same: numbered through,
// part by part. A fetch reads on from where the stream stands and keeps what it passes until someone asks for it; asked
// for what is gone it begins again. The shuffled order is that of a buffer of `window` samples, worked out on numbers
// alone, so it never asks for more than a window back, and (seed, epoch, index) is the whole state of a loader here
// too.

/// Samples in parts, each of which is read from its beginning. May be used from several threads.
class IterableDataset : public Dataset {
 public:
  int64_t size() const override;
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override;
  /// Samples read from streams so far, those passed over too: for tests of how little is read twice.
  int64_t reads() const;

 protected:
  /// Sizes of the parts and of the buffer that order() shuffles through.
  IterableDataset(std::vector<int64_t> sizes, int64_t window);
  /// The part that a row lies in, and its number there.
  std::pair<int64_t, int64_t> place(int64_t row) const;
  class Stream {
   public:
    virtual ~Stream() = default;
    /// The next sample as it lies there; throws Error where there is none.
    virtual std::string next() = 0;
  };
  virtual std::unique_ptr<Stream> stream(int64_t part) const = 0;
  /// Writes one sample. Called without a lock.
  virtual void decode(const std::string& raw, int64_t row, void* x, void* y) const = 0;

 private:
  struct Open {
    int64_t part, at = 0;
    std::unique_ptr<Stream> stream;
    std::map<int64_t, std::string> passed;  ///< by number within the part
  };
  std::string raw(int64_t row) const;
  std::vector<int64_t> begins_;  ///< of the parts, and the end
  int64_t window_;
  mutable std::mutex mutex_;
  mutable std::list<Open> open_;  ///< the latest used first
  mutable int64_t reads_ = 0;
};

}  // namespace tenon::data
