#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tracing/analyses/overview.h"

// The overview of a whole trace, which everybody who opens one sees first: worked out once and kept in its store.
namespace tenon::tracing {

struct WholeOverview {
  static constexpr size_t kRows = 200;  ///< of a table at most

  std::optional<Overview> overview;  ///< nothing where the trace holds no events
  Finding finding;
};
/// One a trace for all who hold it: taken from its store, where that keeps one, or worked out for the first who asks.
std::shared_ptr<const WholeOverview> whole_overview(const std::shared_ptr<const traces::Trace>& trace);

/// Note [What a store keeps of an overview]
/// All of it, as text that traces::Trace::kept() has: values in the order of all_of(), so that what was worked out and
/// what was kept are the same to the last bit. It begins with the version of this program and of this form: another
/// one's is worked out anew, as it may say something else of the same events. A store may be made to do harm: what is
/// taken points to events that are there, has as many cells as columns, and numbers that can be added up.
std::string kept_text(const WholeOverview& o);
/// Nothing where the text is another version's, or is not of that trace.
std::optional<WholeOverview> read_kept(std::string_view text, const traces::Trace& of);

/// Saves the store of a trace with its overview, where traces::keep_store() would, and where the store that there is
/// keeps none.
void keep_with_overview(const std::shared_ptr<const traces::Trace>& trace);

}  // namespace tenon::tracing
