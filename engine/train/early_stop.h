#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

class Recipe;
struct TaskView;

/// What an evaluation after a step found.
struct Judged {
  int64_t step = 0;
  double value = 0;
};
/// Throws Error (usage) that begins with `key` where no evaluation of a run records `metric`.
void check_recorded(const std::string& key, const std::string& metric, int64_t eval_every, const TaskView& task);
/// Throws Error (usage) where the recipe stops early by something that its run never records.
void check_early_stop(const Recipe& recipe, const TaskView& task);
/// Why a run ends before its length, given every value of stop.metric so far in the order of its steps: it did not
/// become better for stop.patience evaluations. Empty: it goes on. A function of its arguments alone, so a run that was
/// killed and resumed, whose metrics are those of one that went through, ends where that one does.
std::string reason_to_stop(const Recipe& recipe, const std::vector<Judged>& evaluations);

}  // namespace tenon
