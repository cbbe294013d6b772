#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "projects/project.h"

namespace tenon::projects {

/// Steps that led to a run: those of one run behind `after`, up to `upto`.
struct Ancestry {
  int64_t run = 0, after = 0, upto = 0;
};
/// Of the steps up to `upto` of a run: what a branch did before it was one, its parent did. The oldest first.
std::vector<Ancestry> lineage(const Project& project, int64_t run, int64_t upto);
/// The points of a metric along a lineage, in the order in which they were recorded.
std::vector<MetricPoint> metric_along(const Project& project, const std::vector<Ancestry>& lineage,
                                      const std::string& name);

}  // namespace tenon::projects
