// Every optimizer for ten steps, every schedule for twelve rates, against PyTorch. Whoever registers one adds its case
// to optim_cases.json.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

const json& cases() {
  static const json all = json::parse(std::ifstream(std::string(TENON_SOURCE_DIR) + "/tests/peers/optim_cases.json"));
  return all;
}

std::vector<Attr> attrs_of(const json& j, const std::vector<AttrDef>& defs) {
  std::vector<Attr> list;
  for (const auto& [name, v] : j.items()) {
    const AttrDef* def = nullptr;
    for (const AttrDef& d : defs)
      if (d.name == name) def = &d;
    if (!def) throw Error("no attribute " + name);
    if (v.is_boolean())
      list.push_back({name, v.get<bool>()});
    else if (v.is_string())
      list.push_back({name, v.get<std::string>()});
    else if (v.is_array())
      list.push_back({name, v.get<std::vector<int64_t>>()});
    else if (def->fallback.index() == 0)
      list.push_back({name, v.get<int64_t>()});
    else
      list.push_back({name, v.get<double>()});
  }
  return list;
}

json matrix(uint64_t stream, int64_t rows, int64_t cols, double size) {
  Philox random{7, stream};
  json j = json::array();
  for (int64_t r = 0; r < std::max<int64_t>(1, rows); ++r) {
    json row = json::array();
    for (int64_t c = 0; c < cols; ++c)
      row.push_back(static_cast<float>(size * (random.uniform_double(static_cast<uint64_t>(r * cols + c)) - 0.5)));
    if (rows == 0) return row;
    j.push_back(row);
  }
  return j;
}
Tensor tensor(const json& j, DType dtype) {
  bool flat = !j[0].is_array();
  Tensor t = flat ? empty({static_cast<int64_t>(j.size())}, DType::f64)
                  : empty({static_cast<int64_t>(j.size()), static_cast<int64_t>(j[0].size())}, DType::f64);
  double* to = t.data<double>();
  for (const json& row : j)
    if (flat)
      *to++ = row.get<double>();
    else
      for (const json& v : row) *to++ = v.get<double>();
  return cast(t, dtype);
}

json problem() {
  return {{"x", matrix(1, 16, 5, 2)},
          {"y", matrix(2, 16, 3, 2)},
          {"start",
           {{"a.weight", matrix(3, 6, 5, 1)},
            {"a.bias", matrix(4, 0, 6, 1)},
            {"b.weight", matrix(5, 3, 6, 1)},
            {"b.bias", matrix(6, 0, 3, 1)}}},
          {"losses", {1.0, 0.9, 0.9, 0.95, 0.8, 0.8, 0.79999, 0.8, 0.8, 0.2, 0.5, 0.5}}};
}

std::vector<nn::Named> trained_weights(const json& c, const json& given, DType dtype) {
  std::vector<nn::Named> w;
  for (const auto& [name, value] : given["start"].items()) {
    Tensor t = tensor(value, dtype);
    set_requires_grad(t);
    w.push_back({name, t});
  }
  auto at = [&](const char* name) {
    for (const nn::Named& p : w)
      if (p.name == name) return p.tensor;
    throw Error(name);
  };
  Tensor x = tensor(given["x"], dtype), y = tensor(given["y"], dtype);
  const std::string name = c["optimizer"];
  const optim::OptimizerDef& def = optim::optimizers().at(name);
  auto optimizer = optim::make_optimizer(name, w, attrs_of(c["attrs"], def.attrs));
  double lr = AttrValues(def.attrs, attrs_of(c["attrs"], def.attrs), name).number("lr");
  auto closure = [&] {
    optimizer->zero_grad();
    Tensor h = tenon::tanh(linear(x, at("a.weight"), at("a.bias")));
    Tensor loss = mse_loss(linear(h, at("b.weight"), at("b.bias")), y);
    backward(loss);
    return item(loss);
  };
  for (int i = 0; i < 10; ++i) {
    double loss = closure();
    optimizer->step(lr, loss, closure);
  }
  return w;
}

TEST(Optimizers, EachHasACase) {
  std::set<std::string> seen;
  for (const json& c : cases().at("optimizers")) seen.insert(c["optimizer"]);
  for (const auto& o : optim::optimizers())
    EXPECT_TRUE(seen.count(o.name)) << o.name << " has no case in tests/peers/optim_cases.json";
  for (const auto& s : seen) EXPECT_NO_THROW(optim::optimizers().at(s));
}

TEST(Schedules, EachHasACase) {
  std::set<std::string> seen;
  for (const json& c : cases().at("schedules")) seen.insert(c["schedule"]);
  for (const auto& s : optim::schedules())
    EXPECT_TRUE(seen.count(s.name)) << s.name << " has no case in tests/peers/optim_cases.json";
}

TEST(Optimizers, TenStepsAndSchedulesAreWhatPyTorchComputes) {
  TENON_NEEDS_TORCH();
  const json all = cases();
  json given = problem();
  given.update(all);
  const auto theirs = run_torch("optim.py", given);
  for (size_t n = 0; n < all["optimizers"].size(); ++n) {
    const json& c = all["optimizers"][n];
    for (DType dtype : {DType::f32, DType::f64}) {
      // f64 shows that the formula is the same, f32 that its rounding is harmless. Newton's steps from a memory divide
      // small differences: there rounding grows. PyTorch 1.13 keeps NAdam's product of momenta in f32, and has it right
      // in its foreach form only.
      const double limit = dtype == DType::f64 ? c.value("f64", 1e-9) : c.value("f32", 5e-5);
      for (const nn::Named& p : trained_weights(c, given, dtype))
        EXPECT_LT(
            difference(detach(p.tensor), find(theirs, std::to_string(n) + " " + name(dtype) + " " + p.name), 0.01),
            limit)
            << c.dump() << " " << name(dtype) << " " << p.name;
    }
  }
  for (size_t n = 0; n < all["schedules"].size(); ++n) {
    const json& c = all["schedules"][n];
    const std::string name = c["schedule"];
    const auto& def = optim::schedules().at(name);
    auto schedule = optim::make_schedule(name, attrs_of(c["attrs"], def.attrs), {12, 1, 0});
    const Tensor& want = find(theirs, "schedule " + std::to_string(n));
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(schedule->at(i, 0.1), want.data<double>()[i], 1e-12) << c.dump() << " step " << i;
      schedule->report(given["losses"][static_cast<size_t>(i)].get<double>(), i + 1);
    }
  }
}

}  // namespace
}  // namespace tenon::peers
