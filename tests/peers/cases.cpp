#include "tests/peers/cases.h"

#include <cmath>
#include <fstream>

#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"

namespace tenon::peers {

using nlohmann::json;

json read_cases(const char* file) {
  std::ifstream in(std::string(TENON_SOURCE_DIR) + "/tests/peers/" + file);
  return json::parse(in);
}

static AttrValue attr_value(const json& j) {
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  return j.get<std::vector<int64_t>>();
}
LayerSpec spec_of(const json& c) {
  LayerSpec spec{"layer", c.contains("layer") ? c.at("layer") : c.at("loss"), {}};
  const json attrs = c.value("attrs", json::object());
  for (const auto& [name, v] : attrs.items()) spec.attrs.push_back({name, attr_value(v)});
  return spec;
}

Tensor random(const Shape& size, uint64_t stream, double scale) {
  Tensor t = empty(size);
  Philox philox{17, stream};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(scale * philox.normal(static_cast<uint64_t>(i)));
  return t;
}
Tensor input_of(const json& j, uint64_t stream) {
  if (j.is_null()) return {};
  Shape size((j.is_array() ? j : j.at("shape")).get<std::vector<int64_t>>());
  std::string dtype = j.is_array() ? "f32" : j.value("dtype", "f32");
  if (dtype == "f32") return random(size, stream);
  int64_t below = j.value("below", int64_t{2});
  Tensor t = empty(size, dtype == "bool" ? DType::boolean : DType::i64);
  Philox philox{17, stream};
  for (int64_t i = 0; i < t.numel(); ++i) {
    auto v = j.contains("values")
                 ? j.at("values").at(static_cast<size_t>(i)).get<int64_t>()
                 : static_cast<int64_t>(philox.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below)));
    if (dtype == "bool")
      t.data<bool>()[i] = v != 0;
    else
      t.data<int64_t>()[i] = v;
  }
  return t;
}

json to_json(const Tensor& t) {
  if (!t) return nullptr;
  Tensor c = contiguous(detach(t));
  json values = json::array();
  for (int64_t i = 0; i < c.numel(); ++i) {
    double v = storage_value(c, c.offset() + i);
    if (is_floating(c.dtype()))
      values.push_back(v);
    else
      values.push_back(static_cast<int64_t>(v));
  }
  return {{"shape", std::vector<int64_t>(c.size().begin(), c.size().end())},
          {"dtype", name(c.dtype())},
          {"values", values}};
}

double apart(const Tensor& a, const Tensor& b) {
  if (!(a.size() == b.size())) return INFINITY;
  Tensor x = contiguous(detach(a)), y = contiguous(detach(b));
  double worst = 0, most = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    double p = storage_value(x, x.offset() + i), q = storage_value(y, y.offset() + i);
    if (std::isnan(p) != std::isnan(q)) return INFINITY;
    if (p != q && !std::isnan(p)) worst = std::max(worst, std::abs(p - q));
    if (std::isfinite(q)) most = std::max(most, std::abs(q));
  }
  return worst / (1 + most);
}

}  // namespace tenon::peers
