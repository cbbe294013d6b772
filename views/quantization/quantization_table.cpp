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

}  // namespace tenon::views
