#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon {

/// What is known of one layer after trying the model on tensors without memory.
struct LayerReport {
  std::string layer;
  std::vector<std::string> inputs, outputs;  ///< "f32 [64, 32, 28, 28]" a port
  int64_t parameters = 0;                    ///< none where it has those of another layer
  std::vector<std::string> parameter_names;  ///< of the whole model: "conv1.weight"
  bool has_weights = false;                  ///< parameters or buffers, its own or another layer's
  double flops = 0;                          ///< one forward pass at the given batch
  int64_t output_bytes = 0;
  std::vector<Attr> resolved;  ///< attributes whose values come from what arrives: in_channels = 32
  std::string error, hint;     ///< empty where the layer fits
};

/// Builds the model on the meta device and runs it: shapes, counts and the errors of each layer. Never throws for a bad
/// model.
std::vector<LayerReport> examine(const ModelSpec& spec, int64_t batch);

/// A layer that came into an instance of a sub-model shares weights only where it has any (mirror_edits).
void forget_idle_shares(ModelSpec& spec, const std::vector<LayerReport>& reports);

/// The same, of a model that is edited: a layer that was tried with the same inputs before is not tried again, so that
/// an edit costs what it changes, and blocks that are alike cost one.
class Examiner {
 public:
  Examiner();
  ~Examiner();
  std::vector<LayerReport> examine(const ModelSpec& spec, int64_t batch);
  struct Known;

 private:
  std::unique_ptr<Known> known_;
};

}  // namespace tenon
