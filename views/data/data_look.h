#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/survey.h"
#include "engine/train/class_balance.h"
#include "views/shared/table.h"

namespace tenon {
class Recipe;
}

namespace tenon::views {

/// What a recipe's data are, as a person looks at them before training: how the files were read, what looks wrong,
/// classes, and the first samples with where they come from. Transforms are left out: it is about the files.
struct DataLook {
  std::string dataset, dir, task;
  std::string input, target;  ///< "f32 [3, 32, 32]"
  int64_t train_samples = 0, test_samples = 0;
  std::vector<data::Remark> remarks;
  std::vector<ClassCount> classes;  ///< empty where targets are no classes, or without a survey
  std::optional<data::Survey> survey;
  struct Sample {
    bool train = true;
    int64_t row = 0;
    std::string target;
    data::Source source;
  };
  std::vector<Sample> samples;
};

/// Whether every sample is read.
enum class Reading : uint8_t { opened, all, if_small };
/// Values in all samples up to which Reading::if_small reads them: about a second.
inline constexpr int64_t kSmallData = int64_t{1} << 27;

/// Opens the data of a recipe and looks at them. Throws Error as opening them does, and "cancelled". The first
/// `samples` of each split are listed; with `rows` those of the training set before them.
DataLook look_at(const Recipe& recipe, Reading reading, int64_t samples, const data::SurveyProgress& progress = {},
                 const std::vector<int64_t>& rows = {});

/// "csv of titanic.csv: classification, inputs f32 [12], targets i64 []".
std::string data_text(const DataLook& look);
/// A row a split: samples, and of a survey the range, mean and deviation of the inputs' values.
Table splits_table(const DataLook& look);
/// Warnings first, each with its places.
Table remarks_table(const DataLook& look);
Table classes_table(const DataLook& look);
Table samples_table(const DataLook& look);

}  // namespace tenon::views
