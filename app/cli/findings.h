#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tracing/analyses/finding.h"

namespace tenon::app {

/// What a finding is about, where there are several: ("rank", "3"), ("file", "rank3.json").
using About = std::vector<std::pair<std::string, std::string>>;
/// Prints what an analysis found: the sentence, the figures and the tables for people; for programs the
/// object of finding_json() with the keys of `about`. The exit status: 1 where the file did not hold what was asked
/// for.
int show_finding(const tracing::Finding& finding, bool json, const About& about = {});

}  // namespace tenon::app
