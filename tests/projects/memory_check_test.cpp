// A run that memory cannot hold is refused before it begins, with what would fit.
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/templates/templates.h"
#include "engine/train/memory_forecast.h"
#include "engine/train/open_data.h"
#include "projects/memory_check.h"

namespace tenon::projects {
namespace {

TEST(MemoryCheck, RefusesAStepThatDoesNotFitAndNamesTheBatchThatDoes) {
  const Template& t = find_template("spirals");
  Recipe recipe = t.recipe;
  recipe.set("data.batch_size", "500");
  const auto data = std::make_shared<const data::Split>(open_data(recipe));
  const int64_t peak = forecast_memory(t.model, recipe, data).peak_bytes;
  EXPECT_NO_THROW(check_memory_fits(t.model, recipe, data, peak));
  const LargestBatch largest = largest_batch(t.model, recipe, data, peak - 1);
  ASSERT_GT(largest.batch, 0);
  ASSERT_LT(largest.batch, 500);
  try {
    check_memory_fits(t.model, recipe, data, peak - 1);
    FAIL() << "a step that does not fit was let pass";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::usage);
    EXPECT_NE(e.message().find("data.batch_size = 500"), std::string::npos) << e.message();
    EXPECT_NE(e.hint().find("data.batch_size = " + std::to_string(largest.batch) + " fits"), std::string::npos)
        << e.hint();
  }
  // What does not go together is the session's to say.
  recipe.set("data.batch_size", "1000000");  // the data set has fewer samples
  EXPECT_NO_THROW(check_memory_fits(t.model, recipe, data, 1));
}

}  // namespace
}  // namespace tenon::projects
