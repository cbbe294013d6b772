#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::views {

/// What layers are coloured by in the builder.
enum class Heat : uint8_t { none, parameters, flops, activations, memory };
inline constexpr Heat kHeats[] = {Heat::none, Heat::parameters, Heat::flops, Heat::activations, Heat::memory};
/// "FLOP", to be given to tr(); of none what a list of choices says.
const char* heat_title(Heat h);
/// "12.3 MiB", "2.42 GFLOP"
std::string heat_text(Heat h, double value);

/// One figure of every layer of a model.
struct HeatMap {
  Heat what = Heat::none;
  std::vector<double> layers;  ///< by the layer's index
  double total = 0, most = 0;  ///< most: of one layer or folded group
  void set(Heat h, std::vector<double> values);
  bool shown() const { return what != Heat::none && total > 0; }
  double of(const std::vector<int>& some) const;
  /// How strongly a value is coloured beside the most: 0 to 1. Its root, so that what is a tenth is seen.
  float strength(double value) const;
  /// "2.42 GFLOP · 38 %"
  std::string text(double value) const;
};

}  // namespace tenon::views
