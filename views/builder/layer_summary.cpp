#include "views/builder/layer_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "views/shared/language.h"

namespace tenon::views {

std::string attr_summary(const LayerSpec& layer, const LayerInfo* info) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  for (const Attr& a : layer.attrs) {
    const AttrDef* def = nullptr;
    if (info)
      for (const AttrDef& d : info->attrs)
        if (d.name == a.name) def = &d;
    // What a layer is told by is always there, without its name; of the rest what differs from its default, with it.
    bool known_by = a.name == "kernel_size" || a.name.starts_with("out_") || a.name == "shape";
    if (def && def->fallback == a.value && !known_by) continue;
    std::string value = attr_text(a.value);
    if (auto* list = std::get_if<std::vector<int64_t>>(&a.value)) {
      bool equal = list->size() == 2 && (*list)[0] == (*list)[1] && !known_by;
      value = equal ? std::to_string((*list)[0]) : fmt::format("{}", fmt::join(*list, "×"));
    }
    if (auto* flag = std::get_if<bool>(&a.value))
      add(*flag ? a.name : tr("no {}", a.name));
    else
      add(known_by ? value : a.name + " " + value);
  }
  return out;
}

}  // namespace tenon::views
