#include "projects/spikes/inquiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/model/graph_module.h"
#include "engine/train/freeze.h"
#include "engine/train/open_data.h"

namespace tenon::projects {
namespace {

Spike spike_in(const RunInfo& run, const std::vector<MetricPoint>& loss, int64_t step) {
  if (step >= 0) return spike_at(loss, step);
  if (const auto found = find_spike(loss)) return *found;
  throw Error(fmt::format("no loss of run {} stands out from those before it", run.name),
              "Name the step that you mean: on the curve, or --step N.");
}

constexpr size_t kLeastOwn = 5, kMostOwn = 20;

double median_of_last(std::vector<double> losses) {
  if (losses.size() > kMostOwn) losses.erase(losses.begin(), losses.end() - kMostOwn);
  const auto mid = losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2);
  std::nth_element(losses.begin(), mid, losses.end());
  return *mid;
}

}  // namespace

Inquiry::Inquiry(std::shared_ptr<Project> project, const std::string& run, int64_t step, Progress progress)
    : project_(std::move(project)), run_(project_->run(run)), progress_(std::move(progress)) {
  spike_ = spike_in(run_, metric("loss"), step);
  first_ = std::max(run_.branch.step + 1, spike_.step - kWindow + 1);
}

Inquiry::~Inquiry() = default;

Recipe Inquiry::recipe_after(int64_t step) const {
  Recipe recipe = Recipe::from_json(run_.recipe_after(step));
  recipe.reset("init.anew");  // it held where the run began, if it is a branch
  return recipe;
}

const std::vector<MetricPoint>& Inquiry::metric(const std::string& name) {
  const auto [at, fresh] = metrics_.try_emplace(name);
  if (fresh) at->second = project_->metric(run_.id, name);
  return at->second;
}

const std::vector<std::string>& Inquiry::layers() {
  if (!layers_.empty()) return layers_;
  const GraphModule model(run_.model, {DeviceType::meta});
  const Freeze frozen(recipe_after(first_ - 1).text("init.freeze"));
  for (const nn::Named& p : model.parameters()) {
    const size_t dot = p.name.rfind('.');
    const std::string layer = dot == p.name.npos ? p.name : p.name.substr(0, dot);
    if (!frozen.holds(p.name) && (layers_.empty() || layers_.back() != layer)) layers_.push_back(layer);
  }
  return layers_;
}

int64_t Inquiry::kept_before(int64_t step) const {
  int64_t kept = run_.branch.step;
  for (const CheckpointInfo& c : project_->checkpoints(run_.id))
    if (c.step <= step) kept = c.step;
  return kept;
}

double Inquiry::seconds_a_step() {
  const std::vector<MetricPoint>& loss = metric("loss");
  if (loss.size() < 2 || loss.back().step <= loss.front().step) return 0;
  return (loss.back().wall - loss.front().wall) / static_cast<double>(loss.back().step - loss.front().step);
}

const data::Dataset& Inquiry::train() {
  if (!data_) data_ = std::make_shared<const data::Split>(open_data(recipe_after(first_ - 1)));
  return *data_->train;
}

const std::vector<int64_t>& Inquiry::rows_of(int64_t step) {
  look();
  return rows_.at(step);
}

void Inquiry::count(int64_t steps) {
  steps_ += steps;
  if (progress_ && !progress_(std::min(steps_, total_), total_)) throw Error("cancelled");
}

std::unique_ptr<TrainingSession> Inquiry::reach(int64_t step) {
  auto session = replay_to(*project_, run_.id, step, [&](int64_t done, int64_t) {
    return !progress_ || progress_(std::min(steps_ + done, total_), total_);
  });
  count(step - kept_before(step));
  return session;
}

const Checkpoint& Inquiry::state(int64_t after) {
  if (after >= first_ - 1) look();
  if (const auto known = states_.find(after); known != states_.end()) return known->second;
  return states_.emplace(after, reach(after)->save()).first->second;
}

void Inquiry::look() {
  if (std::exchange(looked_, true)) return;
  train();
  const auto session = reach(first_ - 1);
  const std::vector<MetricPoint>& recorded = metric("loss");
  while (session->steps_done() < last()) {
    if (session->steps_done() < spike_.step) states_.emplace(session->steps_done(), session->save());
    const StepResult r = replay_step(*session);
    count(1);
    rows_[r.step] = r.rows;
    const auto was = std::find_if(recorded.begin(), recorded.end(), [&](const auto& p) { return p.step == r.step; });
    const bool same = was == recorded.end() || was->value == r.loss || (std::isnan(was->value) && std::isnan(r.loss));
    if (r.step <= spike_.step && !same)
      throw Error(fmt::format("step {} of run {} does not replay as it was: its loss is {:.9g}, and was {:.9g}", r.step,
                              run_.name, r.loss, was->value),
                  "The data or the program has changed since the run.");
    if (const RecipeChange* c = run_.change_after(r.step)) session->change(Recipe::from_json(c->recipe));
  }
}

const Tried& Inquiry::replay(const Counterfactual& trial) {
  for (const auto& t : tried_)
    if (t->trial.from == trial.from && t->trial.set == trial.set) return *t;
  const Recipe before = recipe_after(trial.from);
  Recipe recipe = before;
  for (const auto& [key, value] : trial.set) recipe.set(key, value);
  for (const auto& [key, value] : trial.set) recipe.check_used(key);
  train();
  const Checkpoint& begin = state(trial.from);
  TrainingSession session(run_.model, recipe, {.data = data_});
  session.branch(begin, before);
  auto made = std::make_unique<Tried>();
  made->trial = trial;
  made->highest = -std::numeric_limits<double>::infinity();
  bool judged = false;
  std::vector<double> before_it;
  while (session.steps_done() < last()) {
    const StepResult r = replay_step(session);
    count(1);
    ++made->steps;
    if (r.step >= spike_.step) made->losses.push_back(r.loss);
    if (r.step < spike_.step && std::isfinite(r.loss)) before_it.push_back(r.loss);
    if (r.step >= spike_.step && r.samples > 0) {
      judged = true;
      made->highest = std::max(made->highest, std::isfinite(r.loss) ? r.loss : std::numeric_limits<double>::infinity());
    }
    if (!r.finite) {  // nothing good comes behind it
      made->highest = std::numeric_limits<double>::infinity();
      judged = true;
      break;
    }
    // What the run was told on the way, it is told here, but for what is other here.
    if (const RecipeChange* c = run_.change_after(r.step))
      session.change(merged(recipe_after(r.step - 1), session.recipe(), Recipe::from_json(c->recipe)));
  }
  double limit = spike_.limit;
  if (trial.long_way && before_it.size() >= kLeastOwn) limit = std::max(limit, 1.5 * median_of_last(before_it));
  made->gone = judged && made->highest < limit;
  tried_.push_back(std::move(made));
  return *tried_.back();
}

}  // namespace tenon::projects
