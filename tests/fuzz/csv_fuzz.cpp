#include "core/error.h"
#include "engine/data/csv.h"

// The first byte chooses separator, header and the sign of decimals; the rest is the table.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size) return 0;
  tenon::data::CsvOptions options;
  options.separator = "\0,;\t|"[data[0] % 5];
  options.header = data[0] / 5 % 3 - 1;
  options.decimal = "\0.,"[data[0] / 15 % 3];
  try {
    auto table = tenon::data::parse_csv({reinterpret_cast<const char*>(data) + 1, size - 1}, "table.csv", options);
    double v;
    if (table.cells.size() != table.lines.size() * table.columns.size()) __builtin_trap();
    for (const auto field : table.cells) tenon::data::csv_cell(field, v, table.decimal);
  } catch (const tenon::Error&) {
  }
  return 0;
}
