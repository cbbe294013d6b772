#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/sampler.h"
#include "engine/spec/attr.h"

namespace tenon {

class Recipe;
namespace data {
class Dataset;
struct Split;
}  // namespace data

/// How often each class is the target of a sample (of a pixel, a token); of a binary task how many are 0 and 1. Empty
/// where the targets are no classes.
std::vector<int64_t> class_counts(const data::Dataset& set);
/// One class of a data set.
struct ClassCount {
  std::string name;
  int64_t train = 0, test = 0;  ///< how often it is a target of each split
  double weight = 1;            ///< balanced_weights() of the training split
};
/// Empty where the targets are no classes.
std::vector<ClassCount> count_classes(const data::Split& split);
/// "10 classes in 60,000 training samples, 6,000 each", "2 classes in 320 training samples: rare 32, usual 288".
std::string class_counts_text(const std::vector<ClassCount>& classes);

/// samples / (classes * count), over the classes that occur: scikit-learn's "balanced". 1 for one that does not occur.
std::vector<double> balanced_weights(const std::vector<int64_t>& counts);

/// The attributes of the recipe's loss, with the numbers that "balanced" stands for in loss.weight (of classes) and in
/// loss.pos_weight (zeros for each one). Throws Error (usage) where there are no classes to balance.
std::vector<Attr> loss_attrs(const Recipe& recipe, const data::Dataset& train);
/// The rows of an epoch under data.sampling = balanced: as many as there are samples; null: it is uniform.
data::Samplers sampler_of(const Recipe& recipe, const data::Dataset& train);

}  // namespace tenon
