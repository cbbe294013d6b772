#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "engine/train/principal_plane.h"

namespace tenon::nn {
class Module;
}

namespace tenon::projects {

/// How the model sees the samples of the test split: the numbers that its last layer with weights reads, one row a
/// sample, seen along the two directions in which they differ most.
struct Embedding {
  std::string module;                              ///< whose input it is; empty: there is none
  int64_t width = 0;                               ///< numbers a sample
  PrincipalPlane plane;                            ///< of the first samples of the split, by row
  std::shared_ptr<const std::vector<float>> rows;  ///< what it is of: [samples, width]; null without a module
  static constexpr int64_t kMostSamples = 4000, kMostValues = int64_t{1} << 22;
};

/// A way to place samples in the plane so that those that the model sees alike stand together, other than along the two
/// directions of the principal plane.
struct Placement {
  using Places = std::vector<std::array<double, 2>>;
  const char* name;   ///< "tsne": of its option on the command line and of its button
  const char* title;  ///< "t-SNE"
  const char* reads;  ///< how near and far are to be read
  /// By row; nothing of an embedding without rows. A function of the rows alone. `progress` returning false throws
  /// Error "cancelled".
  Places (*place)(const Embedding& embedding, const std::function<bool(int64_t, int64_t)>& progress);
};
const std::vector<Placement>& placements();
/// Null where none has the name.
const Placement* find_placement(const std::string& name);

/// Listens to a model while the test split goes through it, batch by batch in the order of its rows.
class EmbeddingListener {
 public:
  explicit EmbeddingListener(nn::Module& model);
  ~EmbeddingListener();
  EmbeddingListener(const EmbeddingListener&) = delete;
  /// After a batch of so many samples.
  void take(int64_t samples);
  /// Of what was heard; without a module where the samples could not be told apart in it.
  Embedding finish() const;

 private:
  std::vector<std::pair<nn::Module*, int>> hooks_;
  nn::Module* last_ = nullptr;  ///< with weights, of the batch that goes through
  Tensor input_;
  std::string module_;
  int64_t width_ = 0;
  std::vector<float> rows_;
  bool full_ = false;  ///< as many samples as are wanted
  bool torn_ = false;  ///< a batch came without, or with another shape
};

}  // namespace tenon::projects
