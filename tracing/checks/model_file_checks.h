#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/formats/model_file.h"
#include "engine/spec/model_spec.h"
#include "engine/train/recipe.h"
#include "tracing/checks/check.h"

namespace tenon::tracing {

/// A file of a model or of weights, with what several checks read of its values.
struct CheckedModelFile {
  struct Values {
    int64_t count = 0, nan = 0, infinite = 0, first_bad = -1;  ///< first_bad: element, counted row by row
    bool constant = false;                                     ///< every element is the same number
    double low = 0, high = 0;
  };
  /// A model that the weights are meant for, and the recipe that says which tensors it has.
  struct Beside {
    ModelSpec model;
    Recipe recipe;
    std::string name;  ///< "p.tenon"
  };
  /// Reads every tensor once. `progress` is told bytes; returning false throws Error "cancelled".
  CheckedModelFile(std::shared_ptr<const formats::ModelFile> file, std::optional<Beside> beside,
                   const std::function<bool(uint64_t done, uint64_t total)>& progress = {});
  std::shared_ptr<const formats::ModelFile> file;
  std::optional<Beside> beside;
  std::vector<std::optional<Values>> values;  ///< of each tensor; nothing: it has no floating numbers, or is not read
};

/// Sorted by name.
const Registry<FileCheck<CheckedModelFile>>& model_file_checks();
bool register_model_file_check(FileCheck<CheckedModelFile> check, Place place = Place::current());
std::vector<CheckResult> check_model_file(const CheckedModelFile& checked);

}  // namespace tenon::tracing
