#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace tenon::views {

/// One plot of curves.
struct Chart {
  std::string title;     ///< as a person named it, else the quantity
  std::string quantity;  ///< what all its metrics measure ("loss" of loss and test_loss); empty: not the same
  std::vector<std::string> metrics;
};

/// Which metrics stand together in one chart, which charts are seen, and which have a logarithmic axis. By default the
/// metrics of one quantity share a chart, and all are seen.
class Charts {
 public:
  /// The chart of a metric: a title; empty: that of its quantity again.
  void place(const std::string& metric, const std::string& title);
  /// The title of the chart that a metric stands in.
  std::string of(const std::string& metric) const;
  void hide(const std::string& title, bool hidden);
  bool hidden(const std::string& title) const { return hidden_.count(title) > 0; }
  void set_log(const std::string& title, bool log);
  bool log(const std::string& title) const { return log_.count(title) > 0; }
  /// As if nothing had been chosen.
  void reset() { *this = {}; }
  bool is_default() const { return placed_.empty() && hidden_.empty() && log_.empty(); }

  /// The charts of these metrics, the most telling first; those that are hidden only where asked for.
  std::vector<Chart> arrange(const std::vector<std::string>& metrics, bool with_hidden = false) const;

  nlohmann::json to_json() const;
  /// What does not fit is left out.
  static Charts from_json(const nlohmann::json& j);
  bool operator==(const Charts&) const = default;

 private:
  std::map<std::string, std::string> placed_;
  std::set<std::string> hidden_, log_;
};

/// The quantity that a metric measures: the last part of its name, without a split's prefix ("eval/loss", "test_loss"
/// -> "loss").
std::string quantity_of(const std::string& metric);
/// "Learning rate" of lr: a quantity as the title of a chart.
std::string quantity_title(const std::string& quantity);

}  // namespace tenon::views
