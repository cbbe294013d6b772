#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/model/examine.h"
#include "engine/spec/model_spec.h"
#include "engine/train/recipe.h"

// A project file's model and recipe are JSON that anyone may have written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto j = nlohmann::json::parse(data, data + size, nullptr, false);
  if (j.is_discarded()) return 0;
  try {
    tenon::ModelSpec spec = tenon::ModelSpec::from_json(j);
    tenon::examine(spec, 2);
  } catch (const tenon::Error&) {
  }
  try {
    tenon::Recipe::from_json(j);
  } catch (const tenon::Error&) {
  }
  return 0;
}
