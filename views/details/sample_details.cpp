#include "views/details/sample_details.h"

#include <fmt/format.h>

#include "engine/data/dataset.h"
#include "projects/results.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

Details::Row sample_row(std::string name, std::string value, std::string exact = {}) {
  return {std::move(name), std::move(value), std::move(exact), {}, Ink::none};
}

}  // namespace

void sample_details(Details& d, int64_t row_number, const projects::Results& r) {
  if (row_number < 0 || row_number >= static_cast<int64_t>(r.predictions.size())) return;
  const projects::Prediction& p = r.predictions[static_cast<size_t>(row_number)];
  d.title = tr("sample {}", format_grouped(row_number));
  d.subtitle = tr("test split, {} at step {}", r.run, format_grouped(r.step));
  Details::Section about{"", {}};
  auto class_name = [&](int64_t c) {
    return c >= 0 && c < static_cast<int64_t>(r.classes.size()) ? r.classes[static_cast<size_t>(c)]
           : c < 0                                              ? tr("none")
                                                                : std::to_string(c);
  };
  if (p.truth >= 0) {
    about.rows.push_back(sample_row(tr("truth"), class_name(p.truth)));
    about.rows.push_back({tr("guess"), class_name(p.guess), {}, {}, p.guess == p.truth ? Ink::good : Ink::bad});
    about.rows.push_back(
        sample_row(tr("sure"), fmt::format("{:.2f} %", 100 * p.confidence), format_exact(p.confidence)));
  }
  about.rows.push_back(sample_row(tr("loss"), format_value(p.loss), format_exact(p.loss)));
  if (const data::Source source = r.data ? r.data->source(row_number) : data::Source(); !source.file.empty()) {
    about.rows.push_back(sample_row(tr("file"), source.file));
    if (!source.place.empty()) about.rows.push_back(sample_row(tr("place"), source.place));
  }
  d.sections.push_back(std::move(about));
  d.bad = p.truth >= 0 && p.guess != p.truth;
}

}  // namespace tenon::views
