#include "projects/memory_check.h"

#include <fmt/format.h>

#include "core/error.h"
#include "engine/train/memory_forecast.h"
#include "tracing/analyses/finding.h"

namespace tenon::projects {

void check_memory_fits(const ModelSpec& model, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
                       int64_t limit) {
  MemoryForecast f;
  try {
    f = forecast_memory(model, recipe, data);
  } catch (const Error&) {
    return;  // what cannot be forecast may still be trained; where it cannot, the session says why
  }
  if (f.highest_bytes() <= limit) return;
  LargestBatch largest;
  try {
    largest = largest_batch(model, recipe, data, limit);
  } catch (const Error&) {  // then none is named
  }
  const std::string fits = largest.batch > 0 ? fmt::format("data.batch_size = {} fits; ", largest.batch) : "";
  throw Error::usage(fmt::format("data.batch_size = {}: {} needs {} of memory; {} are here", f.batch,
                                 f.peak_bytes <= limit ? "an evaluation" : "a step",
                                 tracing::bytes_text(f.highest_bytes()), tracing::bytes_text(limit)),
                     fits + "the Recipe's Memory page, or tenon memory predict, lists what needs less");
}

}  // namespace tenon::projects
