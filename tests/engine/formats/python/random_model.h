#pragma once
#include <algorithm>
#include <random>
#include <set>

#include "engine/spec/model_spec.h"

namespace tenon::python {

/// Makes a model that fits together: groups within groups, wires over them, names of every kind, attributes at and off
/// their defaults, comments, layers that are off.
/// Every value is [batch, 4, 6, 6], so that any layer can read any other.
class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed) {}

  ModelSpec make(int layers) {
    model_.name = "random model";
    model_.layers.push_back({"input", "Input", {{"shape", std::vector<int64_t>{4, 6, 6}}}});
    values_ = {"input"};
    for (int i = 0; i < layers; ++i) step();
    const std::string last = values_.back();
    add("flat", "Flatten", {}, {last});
    add("head", "Linear", {{"out_features", int64_t{3}}}, {"flat"});
    model_.layers.push_back({"output", "Output", {}});
    model_.wires.push_back({"head", 0, "output", 0});
    return model_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  /// Mostly the last value, sometimes an older one.
  std::string value() {
    return one_in(4) ? values_[static_cast<size_t>(below(static_cast<int>(values_.size())))] : values_.back();
  }
  std::string name() {
    static const char* kGroups[] = {"", "", "stem.", "blocks.0.", "blocks.1.", "blocks.1.inner.", "tail."};
    static const char* kWords[] = {"conv",    "act", "norm", "x",     "forward", "y",
                                   "layer 1", "0",   "1",    "class", "add",     "Proj"};
    if (one_in(6)) group_ = kGroups[below(7)];
    for (;;) {
      std::string n = group_ + kWords[below(12)];
      if (one_in(2)) n += std::to_string(below(40));
      if (n == group_ + "forward") n += "_";
      if (names_.insert(n).second && free(n)) return n;
    }
  }
  /// Not a group where another is a layer, nor the other way round.
  bool free(const std::string& n) const {
    return std::none_of(names_.begin(), names_.end(),
                        [&](const std::string& o) { return o.starts_with(n + ".") || n.starts_with(o + "."); }) &&
           n != "stem" && n != "blocks" && n != "tail";
  }
  void add(const std::string& n, const std::string& type, std::vector<Attr> attrs, std::vector<std::string> from) {
    LayerSpec l{n, type, std::move(attrs)};
    if (one_in(12)) l.comment = one_in(2) ? "why: \"it\" helps" : "two\nlines";
    for (size_t i = 0; i < from.size(); ++i) model_.wires.push_back({from[i], 0, n, static_cast<int>(i)});
    l.off = type != "Flatten" && type != "Linear" && from.size() == 1 && one_in(10);
    model_.layers.push_back(std::move(l));
    values_.push_back(n);
  }
  void step() {
    const std::string n = name();
    const std::vector<int64_t> size{3, 3}, one{1, 1}, around{1, 1};
    switch (below(11)) {
      case 0:
        add(n, "Conv2d", {{"out_channels", int64_t{4}}, {"padding", around}, {"bias", one_in(2)}}, {value()});
        break;
      case 1:
        add(n, "Conv2d", {{"in_channels", int64_t{4}}, {"out_channels", int64_t{4}}, {"kernel_size", one}}, {value()});
        break;
      case 2:
        add(n, "Conv2d", {{"out_channels", int64_t{4}}, {"auto_padding", std::string("same")}}, {value()});
        break;
      case 3:
        add(n, "BatchNorm2d", {{"eps", one_in(2) ? 1e-5 : 0.001}}, {value()});
        break;
      case 4:
        add(n, "ReLU", {}, {value()});
        break;
      case 5:
        add(n, "LeakyReLU", {{"negative_slope", 0.25 * below(4)}}, {value()});
        break;
      case 6:
        add(n, "Dropout", {{"p", 0.125 * below(5)}}, {value()});
        break;
      case 7:
        add(n, one_in(2) ? "Add" : "Mul", {}, {value(), value()});
        break;
      case 8:
        add(n, "Permute", {{"dims", std::vector<int64_t>{0, 1, 3, 2}}}, {value()});
        break;
      case 9: {
        add(n, "Concat", {}, {value(), value()});
        const std::string joined = values_.back();
        values_.pop_back();
        add(name(), "Conv2d", {{"out_channels", int64_t{4}}, {"kernel_size", one}, {"groups", int64_t{2}}}, {joined});
        model_.layers.back().off = false;  // without it the channels do not fit
        break;
      }
      default:
        add(n, "GELU", {{"approximate", std::string(one_in(2) ? "tanh" : "none")}}, {value()});
    }
  }

  std::mt19937 random_;
  ModelSpec model_;
  std::vector<std::string> values_;
  std::set<std::string> names_;
  std::string group_;
};

/// About `layers` layers; the same for the same seed.
inline ModelSpec random_model(uint32_t seed, int layers) { return RandomModel(seed).make(layers); }

}  // namespace tenon::python
