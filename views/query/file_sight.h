#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "projects/query/query_base.h"
#include "views/shared/document.h"
#include "views/shared/selection.h"

namespace tenon::views {

/// What the values of a result lead to in a memory snapshot or a model file. What it takes to find them is worked out
/// where the first value asks for it. The document must outlive it.
class FileSight {
 public:
  explicit FileSight(const Document& document) : d_(document) {}
  /// None where the value leads nowhere, or the file has no such thing.
  Selection led_to(projects::QueryColumn::Leads leads, const projects::QueryValue& value);

 private:
  Selection allocation(int64_t row) const;
  Selection block(int64_t id);
  Selection segment(int64_t id);
  Selection place(const std::string& name);
  void look_through();

  const Document& d_;
  bool looked_ = false, places_found_ = false;
  std::vector<std::unordered_map<uint64_t, uint32_t>> alive_;  ///< elements at the end, by trace and address
  std::vector<std::unordered_map<uint64_t, int64_t>> taken_;   ///< the last event that took the address, by trace
  std::vector<size_t> segment_of_;                             ///< by block
  std::unordered_set<std::string> places_;
};

}  // namespace tenon::views
