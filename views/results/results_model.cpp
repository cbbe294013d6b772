#include "views/results/results_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/data/dataset.h"
#include "projects/finish.h"
#include "views/results/sample_sight.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using projects::ClassResult;
using projects::Prediction;

namespace {
std::string share(double v) { return std::isnan(v) ? "–" : fmt::format("{:.2f} %", 100 * v); }
Table::Cell share_cell(double v) {
  Table::Cell c = Table::Cell::number(std::isnan(v) ? -1 : v, share(v));
  c.tip = std::isnan(v) ? tr("nothing was counted") : format_exact(v);
  return c;
}
Table::Cell area_cell(double v) {
  Table::Cell c = Table::Cell::number(std::isnan(v) ? -1 : v, format_area(v));
  c.tip = std::isnan(v) ? tr("the class, or any other, does not occur") : format_exact(v);
  return c;
}
constexpr const char* kAurocTip =
    tr_later("area under the ROC curve, the class against the rest: 1 is perfect, 0.5 is chance");
constexpr const char* kPrecisionTip = tr_later("average precision: the area under the precision-recall curve");
}  // namespace

std::string format_area(double area) { return std::isnan(area) ? "–" : fmt::format("{:.4f}", area); }

void ResultsModel::set_results(Shared results) {
  results_ = std::move(results);
  order_ = results_ ? results_->worst_first() : std::vector<size_t>();
  chosen_.reset();
  ranked_.reset();
  hovered_ = none;
  under_ = -1;
  placed_.clear();
  changed();
}

void ResultsModel::set_page(Page page) {
  if (page_ == page) return;
  page_ = page;
  hovered_ = none;
  under_ = -1;
  changed();
}

void ResultsModel::choose(std::optional<std::pair<size_t, size_t>> cell) {
  if (chosen_ == cell) return;
  chosen_ = cell;
  changed();
  if (on_choose) on_choose();
}

bool ResultsModel::fits(const Prediction& p) const {
  return !chosen_ ||
         (p.truth == static_cast<int64_t>(chosen_->first) && p.guess == static_cast<int64_t>(chosen_->second));
}

Table ResultsModel::samples() const {
  Table t;
  if (!results_) return t;
  const bool single = results_->predictions.empty() || results_->predictions.front().truth >= 0;
  t.columns = {{tr("Sample"), true, tr("row of the test split")}};
  if (single) t.columns.insert(t.columns.end(), {{tr("Truth")}, {tr("Guess")}, {tr("Sure"), true}});
  t.columns.push_back({tr("Loss"), true,
                       results_->classes.empty() && !single ? tr("mean squared error of its values")
                                                            : tr("-log of the share of the right class")});
  const bool from_files = results_->data && results_->data->size() > 0 && !results_->data->source(0).file.empty();
  if (from_files) t.columns.push_back({tr("From"), false, tr("the file it comes from, and where in it")});
  for (size_t i : order_) {
    const Prediction& p = results_->predictions[i];
    if (!fits(p)) continue;
    Table::Row row;
    row.selection = Selection::sample(p.row, "results");
    row.cells.push_back(Table::Cell::number(static_cast<double>(p.row), format_grouped(p.row)));
    if (single) {
      row.cells.push_back({class_text(*results_, p.truth), 0, {}, Ink::none});
      row.cells.push_back({class_text(*results_, p.guess), 0, {}, p.guess == p.truth ? Ink::good : Ink::bad});
      row.cells.push_back(share_cell(p.confidence));
    }
    Table::Cell loss = Table::Cell::number(std::isfinite(p.loss) ? p.loss : 1e308, format_value(p.loss));
    loss.tip = format_exact(p.loss);
    row.cells.push_back(std::move(loss));
    if (from_files) {
      const data::Source source = results_->data->source(p.row);
      row.cells.push_back({source.text(), 0, source.file, Ink::none});
    }
    t.rows.push_back(std::move(row));
    if (t.rows.size() == kListed) break;
  }
  return t;
}

Table ResultsModel::table() const {
  Table t;
  if (!results_) return t;
  if (results_->classes.empty()) {
    t.columns = {{tr("Measure")}, {tr("Value"), true}};
    t.rows.push_back({{{"loss", 0, {}, Ink::none},
                       Table::Cell::number(results_->evaluation.loss, format_value(results_->evaluation.loss))},
                      {}});
    for (const Judgement& j : results_->evaluation.judgements)
      t.rows.push_back(
          {{{j.name, 0, {}, Ink::none}, Table::Cell::number(j.value, format_metric(j.name, j.value))}, {}});
    return t;
  }
  t.columns = {{tr("Class")},
               {tr("Samples"), true, tr("whose truth it is")},
               {tr("Guessed"), true, tr("for how many it was the guess")},
               {tr("Right"), true},
               {tr("Precision"), true, tr("right / guessed")},
               {tr("Recall"), true, tr("right / samples")},
               {"F1", true, tr("harmonic mean of precision and recall")}};
  const bool ranked = !results_->rankings.empty();
  if (ranked) t.columns.insert(t.columns.end(), {{"AUROC", true, tr(kAurocTip)}, {"AP", true, tr(kPrecisionTip)}});
  const std::vector<ClassResult> all = results_->per_class();
  for (size_t c = 0; c < all.size(); ++c) {
    t.rows.push_back({{{results_->classes[c], 0, {}, Ink::none},
                       Table::Cell::number(static_cast<double>(all[c].samples), format_grouped(all[c].samples)),
                       Table::Cell::number(static_cast<double>(all[c].guessed), format_grouped(all[c].guessed)),
                       Table::Cell::number(static_cast<double>(all[c].right), format_grouped(all[c].right)),
                       share_cell(all[c].precision()),
                       share_cell(all[c].recall()),
                       share_cell(all[c].f1())},
                      {}});
    if (!ranked) continue;
    t.rows.back().cells.push_back(area_cell(results_->rankings[c].auroc));
    t.rows.back().cells.push_back(area_cell(results_->rankings[c].average_precision));
  }
  return t;
}

Table ResultsModel::ranking() const {
  Table t;
  if (!results_ || results_->rankings.empty()) return t;
  t.columns = {{tr("Class")},
               {"AUROC", true, tr(kAurocTip)},
               {tr("Average precision"), true, tr(kPrecisionTip)},
               {tr("Samples"), true, tr("whose truth it is")},
               {tr("Others"), true}};
  auto count = [](int64_t n) { return Table::Cell::number(static_cast<double>(n), format_grouped(n)); };
  for (size_t c : ranked_classes()) {
    const Ranking& r = results_->rankings[c];
    t.rows.push_back({{{results_->classes[c], 0, {}, Ink::none},
                       area_cell(r.auroc),
                       area_cell(r.average_precision),
                       count(r.positives),
                       count(r.negatives)},
                      {}});
  }
  if (t.rows.size() > 1)
    t.rows.push_back({{{tr("mean of the classes"), 0, {}, Ink::none},
                       area_cell(results_->auroc()),
                       area_cell(results_->average_precision()),
                       {"", -1, {}, Ink::none},
                       {"", -1, {}, Ink::none}},
                      {}});
  return t;
}

std::vector<size_t> ResultsModel::ranked_classes() const {
  std::vector<size_t> out;
  if (!results_) return out;
  for (size_t c = results_->task == "binary" ? 1 : 0; c < results_->rankings.size(); ++c) out.push_back(c);
  return out;
}

size_t ResultsModel::ranked_class() const {
  const std::vector<size_t> all = ranked_classes();
  if (all.empty()) return 0;
  if (ranked_) return *ranked_;
  auto area = [&](size_t c) {
    const double a = results_->rankings[c].auroc;
    return std::isnan(a) ? 2 : a;
  };
  return *std::min_element(all.begin(), all.end(), [&](size_t a, size_t b) { return area(a) < area(b); });
}

void ResultsModel::choose_ranked(size_t c) {
  const std::vector<size_t> all = ranked_classes();
  if (std::find(all.begin(), all.end(), c) == all.end() || ranked_ == c) return;
  ranked_ = c;
  changed();
}

std::string ResultsModel::headline() const {
  if (!results_) return {};
  std::string text = tr("{} at step {} · {} test samples", results_->run, format_grouped(results_->step),
                        format_grouped(results_->evaluation.samples));
  for (const Judgement& j : results_->evaluation.judgements) text += " · " + projects::metric_text(j.name, j.value);
  if (const double ece = results_->calibration_error(); !std::isnan(ece))
    text += " · " + tr("calibration error {}", share(ece));
  if (const double area = results_->auroc(); !std::isnan(area)) text += " · AUROC " + format_area(area);
  return text;
}

void ResultsModel::set_selection(const Selection& s) {
  const int64_t row = s.kind == Selection::Kind::sample ? s.id : -1;
  if (row == row_) return;
  row_ = row;
  if (page_ == Page::embedding) changed();
}

bool ResultsModel::pointer(const PointerEvent& e) {
  if (!results_) return false;
  const Scene::Target* at = last().target_at(e.x, e.y);
  const Hit hit = at ? at->hit : Hit{};
  if (page_ == Page::embedding) return pointer_on_embedding(e);
  if (page_ == Page::curves) {
    const int before = hovered_;
    hovered_ = e.type != PointerEvent::Type::leave && (hit.kind == roc || hit.kind == precision_recall) ? hit.kind : 0;
    if (hovered_) hover_ = {(e.x - at->box.x) / at->box.w, (at->box.bottom() - e.y) / at->box.h};
    if (e.type == PointerEvent::Type::press && hit.kind == ranked)
      return choose_ranked(static_cast<size_t>(hit.id)), true;
    return hovered_ || before;
  }
  if (e.type != PointerEvent::Type::press || e.button != Button::left) return false;
  if (hit.kind != cell) {
    choose({});
    return true;
  }
  const auto n = static_cast<int64_t>(results_->classes.size());
  const std::pair<size_t, size_t> on{static_cast<size_t>(hit.id / n), static_cast<size_t>(hit.id % n)};
  choose(chosen_ == on ? std::nullopt : std::optional(on));
  return true;
}

/// The arrows go from cell to cell, or from curve to curve.
bool ResultsModel::key(const KeyEvent& e) {
  if (page_ == Page::curves) return key_of_curves(e);
  if (page_ == Page::embedding) return key_of_embedding(e);
  if (!results_ || results_->classes.empty()) return false;
  if (e.key == "Esc" && chosen_) return choose({}), true;
  const size_t n = results_->classes.size();
  auto [truth, guess] = chosen_.value_or(std::pair<size_t, size_t>{0, 0});
  if (chosen_) {
    if (e.key == "Left" && guess > 0) --guess;
    if (e.key == "Right" && guess + 1 < n) ++guess;
    if (e.key == "Up" && truth > 0) --truth;
    if (e.key == "Down" && truth + 1 < n) ++truth;
  }
  if (e.key != "Left" && e.key != "Right" && e.key != "Up" && e.key != "Down") return false;
  choose(std::pair{truth, guess});
  return true;
}

std::string ResultsModel::summary() const {
  if (!results_) return tr("No results: nothing was evaluated yet");
  std::string text = headline();
  if (page_ == Page::embedding) {
    if (results_->embedding.module.empty()) return text + "; " + results_->why_unembedded();
    return text + "; " +
           tr("what {} reads of each sample, along its two principal components", results_->embedding.module) +
           (row_ >= 0 ? "; " + words_of(row_) : "");
  }
  if (page_ == Page::curves) {
    if (results_->rankings.empty()) return text + "; " + results_->why_unranked();
    const size_t c = ranked_class();
    const Ranking& r = results_->rankings[c];
    return text + "; " +
           tr("{} against the rest: AUROC {}, average precision {}", results_->classes[c], format_area(r.auroc),
              format_area(r.average_precision));
  }
  if (chosen_)
    text += "; " + tr("{} taken for {}", results_->classes[chosen_->first], results_->classes[chosen_->second]) +
            fmt::format(": {}", results_->count(chosen_->first, chosen_->second));
  return text;
}

}  // namespace tenon::views
