#include "projects/lineage.h"

#include <algorithm>

namespace tenon::projects {

std::vector<Ancestry> lineage(const Project& project, int64_t run, int64_t upto) {
  std::vector<Ancestry> parts;
  for (Ancestry part{run, 0, upto};;) {
    const BranchOf of = project.run(part.run).branch;
    if (of) part.after = of.step;
    parts.push_back(part);
    if (!of) break;
    part = {of.run, 0, std::min(part.upto, of.step)};
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<MetricPoint> metric_along(const Project& project, const std::vector<Ancestry>& lineage,
                                      const std::string& name) {
  std::vector<MetricPoint> all;
  for (const Ancestry& part : lineage)
    for (const MetricPoint& p : project.metric(part.run, name))
      if (p.step > part.after && p.step <= part.upto) all.push_back(p);
  return all;
}

}  // namespace tenon::projects
