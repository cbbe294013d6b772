#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/graph_module.h"
#include "engine/train/checkpoint.h"

namespace tenon {

class Recipe;

// Note [A teacher]
// A run whose recipe names a teacher (distill.from) learns from the outputs of another model beside its targets:
// Hinton, Vinyals & Dean: Distilling the knowledge in a neural network (2015). The teacher sees the batch that the
// student sees, in evaluation mode and without gradients, and nothing of it changes. Whoever begins the run gives the
// teacher to the session; from then on every checkpoint has its layers and weights, which a project file keeps once.
// So a replay, a branch or a run that goes on needs no other file, and cannot have another teacher.

/// A model that a student learns from.
class Teacher {
 public:
  /// Throws Error where the tensors are not those of the model.
  Teacher(const ModelSpec& model, std::vector<std::pair<std::string, Tensor>> tensors, Device device);
  /// Its outputs for a batch.
  Tensor operator()(const Tensor& x) const;
  const Meta& input() const { return module_->input(); }
  const Meta& output() const { return module_->output(); }
  const ModelSpec& spec() const { return spec_; }
  const std::shared_ptr<GraphModule>& model() const { return module_; }
  /// Adds it to a checkpoint; the tensors are shared.
  void keep(Checkpoint& checkpoint) const;
  /// Takes the teacher out of what a checkpoint has; null where it has none.
  static std::unique_ptr<Teacher> kept(const Checkpoint& checkpoint, Device device);
  /// Whether a tensor of a checkpoint is a teacher's.
  static bool owns(const std::string& tensor) { return tensor.starts_with("teacher/"); }

 private:
  ModelSpec spec_;
  std::vector<std::pair<std::string, Tensor>> tensors_;  ///< on the host
  std::shared_ptr<GraphModule> module_;
};

/// Whether a recipe names a teacher.
bool learns_from_teacher(const Recipe& recipe);

}  // namespace tenon
