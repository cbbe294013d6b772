#pragma once
#include "views/details/details_model.h"

namespace tenon::views {

/// What is known of a selection that belongs to an open memory snapshot: the file, one of its events, an allocation, or
/// the line of code that allocated. Nothing is added where the snapshot has no such thing.
void snapshot_details(Details& d, const Selection& s, const Document& document);

}  // namespace tenon::views
