#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon {

class Recipe;
namespace data {
class Dataset;
}

/// How a model meets the samples and the targets of data.
struct ModelFit {
  std::string problem, hint;  ///< empty: it takes these samples, and gives what the loss wants
  bool bare = false;          ///< it has no layer between its ends
  struct Change {
    std::string layer, attr, from, to;
  };
  std::vector<Change> changes;  ///< that make it fit; empty: it fits, or nothing that is known does
  ModelSpec mended;             ///< with the changes
  /// "input.shape [1, 28, 28] → [3, 32, 32], fc2.out_features 10 → 3"
  std::string changes_text() const;
};

/// What keeps a model from learning from data by a recipe, and what of its ends would have to change: the Input's shape
/// and dtype, the number of tokens of an Embedding behind it, the last layer's channels, and sizes that a layer says of
/// what arrives. Layers between them stay as they are.
ModelFit fit_model(const ModelSpec& model, const Recipe& recipe, const data::Dataset& train);

/// An edit of a model after which a layer fits that does not.
struct Mend {
  std::string words;  ///< "conv2.out_channels 32 → 64"
  ModelSpec model;
};
/// What makes a layer fit, each tried: sizes that it says of what arrives, heads and groups that divide its channels,
/// as many channels on all its inputs, padding, a Flatten in front. None brings another error about; empty where the
/// layer fits, and where nothing that is known makes it.
std::vector<Mend> mends_of(const ModelSpec& model, const std::string& layer);
/// Where an edit gave one layer another number of channels and no more: the same with all that has to go with it
/// (with_channels()), such as the other layers of a residual stream. Nothing where there is no such edit, where nothing
/// goes with it, and where a layer of that model would not fit.
std::optional<Mend> mend_of_edit(const ModelSpec& before, const ModelSpec& after);

}  // namespace tenon
