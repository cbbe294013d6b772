#pragma once
#include <cstdint>
#include <memory>

namespace tenon {
class Recipe;
struct ModelSpec;
namespace data {
struct Split;
}
}  // namespace tenon

namespace tenon::projects {

/// Throws Error (usage) where a step needs more than `limit` bytes, which names the batch that would fit. What does not
/// go together at all is left to the session, which says it.
void check_memory_fits(const ModelSpec& model, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
                       int64_t limit);

}  // namespace tenon::projects
