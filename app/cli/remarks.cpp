#include "app/cli/remarks.h"

#include <nlohmann/json.hpp>

namespace tenon::app {

std::vector<data::Remark> warnings_of(std::vector<data::Remark> remarks) {
  std::erase_if(remarks, [](const data::Remark& r) { return r.kind != data::Remark::Kind::warning; });
  return remarks;
}

std::string remarks_text(const std::vector<data::Remark>& remarks) {
  std::string text;
  for (const data::Remark& r : remarks)
    text += (r.kind == data::Remark::Kind::warning ? "warning: " : "") + r.line() + "\n";
  return text;
}

nlohmann::json source_json(const data::Source& s) {
  if (s.file.empty()) return nullptr;
  return {{"file", s.file}, {"place", s.place}};
}

nlohmann::json remarks_json(const std::vector<data::Remark>& remarks) {
  nlohmann::json all = nlohmann::json::array();
  for (const data::Remark& r : remarks) {
    nlohmann::json places = nlohmann::json::array();
    for (const data::Source& s : r.places) places.push_back(source_json(s));
    all.push_back({{"id", r.id},
                   {"kind", r.kind == data::Remark::Kind::warning ? "warning" : "assumed"},
                   {"text", r.text},
                   {"places", places},
                   {"count", r.count}});
  }
  return all;
}

}  // namespace tenon::app
