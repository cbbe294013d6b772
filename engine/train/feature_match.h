#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/model/graph_module.h"
#include "engine/train/teacher.h"

namespace tenon {

// Note [Features]
// A student may learn from what layers inside its teacher give, too (distill.features): Romero et al.: FitNets (2015).
// Layers of one size are compared value by value. Those of different sizes are compared by which samples of the batch
// they find alike (Tung & Mori: Similarity-preserving knowledge distillation, 2019): that needs no weights that adapt
// one to the other, so the student, its checkpoints and its exports are what they are without a teacher.

/// A layer of the student and the one of the teacher that it learns from.
struct FeaturePair {
  std::string student, teacher;
};
/// "stage2; stage3=layer4.1": the key distill.features. Throws Error (usage).
std::vector<FeaturePair> feature_pairs(const Recipe& recipe);

/// What some layers of a model give in its next run, by the order of their names.
class LayerOutputs {
 public:
  /// Throws Error (usage) naming a layer that `whose` model does not have, and near names.
  LayerOutputs(std::shared_ptr<GraphModule> model, const std::vector<std::string>& layers, const char* whose);
  ~LayerOutputs();
  LayerOutputs(const LayerOutputs&) = delete;
  LayerOutputs& operator=(const LayerOutputs&) = delete;
  /// Whether runs are kept from now on: of evaluations nothing is wanted, and their outputs would stay in memory.
  void keep(bool on) { *kept_ = on; }
  /// Of the last run; undefined where a layer was not run since.
  std::vector<Tensor> take();

 private:
  std::shared_ptr<GraphModule> model_;
  std::shared_ptr<bool> kept_ = std::make_shared<bool>(false);
  std::shared_ptr<std::vector<Tensor>> outputs_;
  std::vector<std::pair<nn::Module*, int>> hooks_;
};

/// How far layers of a student are from those of its teacher.
class FeatureMatch {
 public:
  /// Throws Error (usage) for layers that are not there, and for a pair whose outputs cannot be compared as
  /// distill.features_by says.
  FeatureMatch(const Recipe& recipe, const ModelSpec& spec, std::shared_ptr<GraphModule> student,
               const Teacher& teacher);
  /// The student's next run is one that is learnt from, or compared.
  void begin();
  /// Mean over the pairs, for the batch that both models have run since begin().
  Tensor distance();

 private:
  std::vector<FeaturePair> pairs_;
  bool similarity_;
  LayerOutputs student_, teacher_;
};

}  // namespace tenon
