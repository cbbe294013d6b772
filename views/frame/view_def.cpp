#include "views/frame/view_def.h"

#include <algorithm>
#include <deque>

#include "core/error.h"

namespace tenon::views {

namespace {
std::deque<ViewDef>& added() {
  static std::deque<ViewDef> all;
  return all;
}
}  // namespace

bool add_view(ViewDef def) {
  added().push_back(std::move(def));
  return true;
}

const std::vector<const ViewDef*>& view_defs() {
  static const std::vector<const ViewDef*> sorted = [] {
    std::vector<const ViewDef*> all;
    for (const ViewDef& d : added()) {
      for (const ViewDef* other : all)
        if (std::string(other->id) == d.id)
          throw Error(std::string("two views have the id \"") + d.id + "\"", "Give one of them another.");
      all.push_back(&d);
    }
    std::sort(all.begin(), all.end(), [](const ViewDef* a, const ViewDef* b) { return a->order < b->order; });
    return all;
  }();
  return sorted;
}

const ViewDef* find_view(const std::string& id) {
  for (const ViewDef* d : view_defs())
    if (id == d->id) return d;
  return nullptr;
}

}  // namespace tenon::views
