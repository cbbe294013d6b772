#include "views/training/charts.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "engine/train/metric.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
int importance_of(const std::string& quantity) {
  static const std::vector<std::string> order{"loss",
                                              "accuracy",
                                              "lr",
                                              "learning_rate",
                                              "grad_norm",
                                              "gradient_norm",
                                              "samples_per_second",
                                              "memory_bytes",
                                              "live_bytes",
                                              "peak_bytes",
                                              "gpu_utilization",
                                              "gpu_memory_bytes",
                                              "gpu_watts",
                                              "gpu_celsius"};
  return static_cast<int>(std::find(order.begin(), order.end(), quantity) - order.begin());
}
}  // namespace

std::string quantity_of(const std::string& metric) {
  std::string q = metric.substr(metric.find_last_of("/.") == std::string::npos ? 0 : metric.find_last_of("/.") + 1);
  for (const char* split : {"train_", "test_", "eval_", "val_", "validation_"})
    if (q.starts_with(split)) return q.substr(std::string(split).size());
  return q;
}

std::string quantity_title(const std::string& q) {
  if (q == "lr") return tr("Learning rate");
  if (q == "grad_norm") return tr("Gradient norm");
  if (q == "samples_per_second" || q == "tokens_per_second") return tr("Throughput");
  if (q == "live_bytes" || q == "memory_bytes") return tr("Live memory");
  if (q == "peak_bytes") return tr("Peak memory");
  if (q == "gpu_utilization") return tr("GPU utilization");
  if (q == "gpu_memory_bytes") return tr("GPU memory, all programs");
  if (q == "gpu_watts") return tr("GPU power");
  if (q == "gpu_celsius") return tr("GPU temperature");
  std::string t = metric_words(q);
  if (!t.empty()) t[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(t[0])));
  return t;
}

void Charts::place(const std::string& metric, const std::string& title) {
  if (title.empty() || title == quantity_of(metric))
    placed_.erase(metric);
  else
    placed_[metric] = title;
}

std::string Charts::of(const std::string& metric) const {
  const auto at = placed_.find(metric);
  return at == placed_.end() ? quantity_of(metric) : at->second;
}

void Charts::hide(const std::string& title, bool hidden) {
  if (hidden)
    hidden_.insert(title);
  else
    hidden_.erase(title);
}

void Charts::set_log(const std::string& title, bool log) {
  if (log)
    log_.insert(title);
  else
    log_.erase(title);
}

std::vector<Chart> Charts::arrange(const std::vector<std::string>& metrics, bool with_hidden) const {
  std::vector<Chart> out;
  for (const std::string& m : metrics) {
    const std::string title = of(m), quantity = quantity_of(m);
    if (hidden(title) && !with_hidden) continue;
    auto at = std::find_if(out.begin(), out.end(), [&](const Chart& c) { return c.title == title; });
    if (at == out.end()) at = out.insert(out.end(), {title, quantity, {}});
    if (at->quantity != quantity) at->quantity.clear();
    at->metrics.push_back(m);
  }
  // A chart stands where the most telling of its metrics would.
  const auto first = [](const Chart& c) {
    int best = importance_of(c.title);
    for (const std::string& m : c.metrics) best = std::min(best, importance_of(quantity_of(m)));
    return best;
  };
  std::stable_sort(out.begin(), out.end(), [&](const Chart& a, const Chart& b) { return first(a) < first(b); });
  return out;
}

nlohmann::json Charts::to_json() const { return {{"placed", placed_}, {"hidden", hidden_}, {"log", log_}}; }

Charts Charts::from_json(const nlohmann::json& j) {
  Charts c;
  if (!j.is_object()) return c;
  if (const auto placed = j.find("placed"); placed != j.end() && placed->is_object())
    for (const auto& [metric, title] : placed->items())
      if (title.is_string()) c.place(metric, title.get<std::string>());
  for (auto [key, set] : {std::pair{"hidden", &c.hidden_}, std::pair{"log", &c.log_}})
    if (const auto list = j.find(key); list != j.end() && list->is_array())
      for (const auto& title : *list)
        if (title.is_string()) set->insert(title.get<std::string>());
  return c;
}

}  // namespace tenon::views
