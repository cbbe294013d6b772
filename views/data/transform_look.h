#pragma once
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/image.h"
#include "views/shared/table.h"

namespace tenon {
class Recipe;
}

namespace tenon::views {

/// What a sample becomes on its way through the transforms of a recipe: before and after each of them.
struct TransformLook {
  bool train = true;
  int64_t row = 0, rows = 0, epoch = 0;
  std::string target;  ///< of the sample as it is in its set
  data::Source source;
  struct Step {
    std::string text;  ///< "random_crop padding=4"; empty: the sample as it is
    std::string help;  ///< what the transform does
    Shape shape;
    double min = 0, max = 0, mean = 0;  ///< of the finite values
    data::Image picture;                ///< without pixels where a sample is none
    data::Image mask;                   ///< of a segmentation
    std::string shares;                 ///< of a sample that was mixed: "Shirt 0.7, Bag 0.3"
  };
  std::vector<Step> steps;
};

/// `raw`: the recipe's data without its transforms. As the run that begins next sees the row in an epoch (from 0); in
/// the test nothing is random. Throws Error for a row that is not there, and as the transforms do.
TransformLook look_through(const Recipe& recipe, const data::Split& raw, bool train, int64_t row, int64_t epoch);

/// "training sample 12 · cats/12.png · cats · epoch 3".
std::string sample_text(const TransformLook& look);
/// "random_crop padding=4", or what the first step is called.
std::string step_name(const TransformLook::Step& step);
/// "[3, 32, 32] · 0 … 1 · mean 0.48".
std::string step_text(const TransformLook::Step& step);
Table steps_table(const TransformLook& look);

}  // namespace tenon::views
