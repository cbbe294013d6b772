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
  std::shared_ptr<const data::Split> split;  ///< what was looked at
  std::shared_ptr<const Recipe> recipe;      ///< whose data it is
};

/// Whether every sample of these is read by itself: it takes about a second.
bool is_small(const DataLook& look);

/// Opens the data of a recipe. Throws Error as opening them does. The first `samples` of each split are listed; with
/// `rows` those of the training set before them.
DataLook look_at(const Recipe& recipe, int64_t samples, const std::vector<int64_t>& rows = {});
/// Reads every sample, for the survey and the classes. Throws Error naming a sample that cannot be read, and
/// "cancelled".
void read_all(DataLook& look, const data::SurveyProgress& progress = {});

/// A key of the recipe that an error's hint names with a value, as "leave such rows out: data.unlabelled = leave-out"
/// does: of those that the recipe has, with one of the values that it may have, and has not. None: the hint says no
/// such thing.
struct OfferedKey {
  std::string key, value;
};
std::optional<OfferedKey> offered_key(const std::string& hint, const Recipe& recipe);

/// How the samples were divided into training and test; empty where the files say it.
std::string split_text(const DataLook& look);
/// The class of a row, or up to eight values; of larger targets what they are.
std::string target_text(const data::Dataset& set, int64_t row);
/// "csv of titanic.csv: classification, inputs f32 [12], targets i64 []".
std::string data_text(const DataLook& look);
/// A row a split: samples, and of a survey the range, mean and deviation of the inputs' values.
Table splits_table(const DataLook& look);
/// Warnings first, each with its places.
Table remarks_table(const DataLook& look);
Table classes_table(const DataLook& look);
Table samples_table(const DataLook& look);

}  // namespace tenon::views
