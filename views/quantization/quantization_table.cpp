#include "views/quantization/quantization_table.h"

#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

std::string decibels_text(double db) {
  if (std::isinf(db) && db > 0) return tr("exact");
  return std::isfinite(db) ? fmt::format("{:.1f} dB", db) : format_value(db);
}

Table quantization_table(const projects::QuantizeReport& report) {
  Table t;
  t.columns = {{tr("Layer")},
               {tr("Operator")},
               {tr("Weights"), true},
               {tr("Precision")},
               {tr("SNR"), true, tr("Signal to noise of what the layer gives, in the model as it was written")},
               {tr("Alone"), true,
                tr("Signal to noise of what the model gives, were this layer alone quantized: the least is the most "
                   "sensitive")}};
  auto text = [](std::string s, Ink mark = Ink::none) { return Table::Cell{std::move(s), 0, {}, mark}; };
  for (const projects::QuantizedLayer& l : report.layers) {
    const bool kept = l.precision == formats::Precision::f32;
    t.rows.push_back(
        {{text(l.module), text(l.op), Table::Cell::number(static_cast<double>(l.weights), format_grouped(l.weights)),
          text(formats::name(l.precision), kept ? Ink::warning : Ink::none),
          Table::Cell::number(l.snr, decibels_text(l.snr)), Table::Cell::number(l.alone, decibels_text(l.alone))},
         Selection::module(l.module, "quantization")});
  }
  return t;
}

std::string sample_time_text(double ms) { return format_ns(ms * 1e6); }

Table plan_table(const projects::QuantizePlan& plan) {
  Table t;
  t.columns = {{tr("Export")},
               {tr("Front"), false, tr("No other is as good, as small and as fast, and better in one of these")},
               {plan.metric, true},
               {tr("Lost"), true},
               {tr("Size"), true},
               {tr("Of a sample"), true, tr("The median of runs in turns with f32, in batches of 32")},
               {tr("Speed"), true, tr("How many times as fast as f32")}};
  const auto text = [](std::string s, Ink mark = Ink::none) { return Table::Cell{std::move(s), 0, {}, mark}; };
  for (const projects::PlanPoint& p : plan.points) {
    Table::Row row;
    row.cells = {text(p.title()),
                 text(p.front ? "*" : ""),
                 Table::Cell::number(p.metric.value, format_value(p.metric.value)),
                 Table::Cell::number(p.lost, projects::lost_text(p.lost, plan.in_points)),
                 Table::Cell::number(static_cast<double>(p.bytes), format_bytes(static_cast<double>(p.bytes))),
                 Table::Cell::number(plan.ms(p), sample_time_text(plan.ms(p))),
                 Table::Cell::number(1 / p.time, fmt::format("{:.2f} x", 1 / p.time))};
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
