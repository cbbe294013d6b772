#include "views/frame/view_def.h"

#include <cstdio>

namespace tenon::views {

static Registry<ViewDef>& registry() {
  static auto& all = *new Registry<ViewDef>("view", [](const ViewDef& d) -> std::string {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08d", d.order);
    return digits;
  });
  return all;
}

const Registry<ViewDef>& view_defs() { return registry(); }
bool add_view(ViewDef def, Place place) { return registry().add(std::move(def), place); }

}  // namespace tenon::views
