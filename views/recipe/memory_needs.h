#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"
#include "engine/train/memory_proposals.h"
#include "engine/train/recipe.h"
#include "views/shared/table.h"

namespace tenon::views {

/// What the next run of a model and recipe needs of the memory that is here, and what would need less.
struct MemoryNeeds {
  MemoryForecast now;
  LargestBatch largest;
  int64_t limit = 0;  ///< bytes that a run may take here
  bool fits() const { return now.needed_bytes() <= limit; }
};
/// Takes as long as a few dozen forecasts.
MemoryNeeds memory_needs(const ModelSpec& spec, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
                         int64_t limit, const Cancelled& cancelled = {});

/// "about 412 MiB of 24 GiB at batch 64 · fits up to batch 3,800"
std::string memory_line(const MemoryNeeds& needs);
/// Sentences on what is counted, and when it is most.
std::string memory_moment(const MemoryNeeds& needs);
/// A row a layer and one for what belongs to none, by what the memory is for at the step's highest moment; the sum
/// last.
Table memory_layers(const MemoryForecast& f);
/// What a proposal does, in a few words, and what to bear in mind.
std::string proposal_title(const MemoryProposal& p);
std::string proposal_caution(const MemoryProposal& p);
/// "1.32 x": of a sample, as a multiple of what it takes now.
std::string proposal_time(const MemoryProposal& p);
/// "--set recompute=4"
std::string proposal_settings(const MemoryProposal& p);
/// A row a proposal.
Table memory_proposals_table(const std::vector<MemoryProposal>& all, int64_t limit);

}  // namespace tenon::views
