#include "engine/formats/onnx/conform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

namespace fs = std::filesystem;

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};
struct Mismatch {
  std::string text;
};

/// Throws Mismatch where two values are not alike.
void compare(const Tensor& got, const Tensor& wanted, const Tolerance& t, const std::string& what) {
  if (got.dtype() != wanted.dtype())
    throw Mismatch{fmt::format("{} is {}, expected {}", what, tenon::name(got.dtype()), tenon::name(wanted.dtype()))};
  if (!(got.size() == wanted.size()))
    throw Mismatch{fmt::format("{} has size {}, expected {}", what, to_string(got.size()), to_string(wanted.size()))};
  const Tensor a = contiguous(got), b = contiguous(wanted);
  const bool exact = !is_floating(got.dtype());
  // Sums that cancel leave what their largest element was rounded by: that much of it is no difference.
  double rounding = 0;
  if (!exact) {
    const double half_unit = got.dtype() == DType::f64   ? 0x1p-53
                             : got.dtype() == DType::f32 ? 0x1p-24
                             : got.dtype() == DType::f16 ? 0x1p-11
                                                         : 0x1p-8;
    for (int64_t i = 0; i < b.numel(); ++i)
      if (const double y = std::abs(storage_value(b, b.offset() + i)); std::isfinite(y))
        rounding = std::max(rounding, half_unit * y);
  }
  int64_t wrong = 0, worst_at = -1;
  double worst = -1;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = storage_value(a, a.offset() + i), y = storage_value(b, b.offset() + i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double d = std::abs(x - y);
    if (!exact && d <= std::max(rounding, t.absolute + t.relative * std::abs(y))) continue;
    if (std::isnan(d)) d = INFINITY;
    ++wrong;
    if (d > worst) worst = d, worst_at = i;
  }
  if (wrong)
    throw Mismatch{fmt::format("{}: {} of {} elements differ, most at element {}: {} for {}", what, wrong, a.numel(),
                               worst_at, storage_value(a, a.offset() + worst_at),
                               storage_value(b, b.offset() + worst_at))};
}
void compare(const OnnxItem& got, const OnnxItem& wanted, const Tolerance& t, const std::string& what) {
  auto kind = [](const OnnxItem& i) { return i.tensor ? "a tensor" : i.sequence ? "a sequence" : "empty"; };
  if (kind(got) != std::string(kind(wanted)))
    throw Mismatch{fmt::format("{} is {}, expected {}", what, kind(got), kind(wanted))};
  if (wanted.tensor) return compare(got.tensor, wanted.tensor, t, what);
  if (!wanted.sequence) return;
  if (got.sequence->size() != wanted.sequence->size())
    throw Mismatch{fmt::format("{} has {} elements, expected {}", what, got.sequence->size(), wanted.sequence->size())};
  for (size_t i = 0; i < wanted.sequence->size(); ++i)
    compare((*got.sequence)[i], (*wanted.sequence)[i], t, fmt::format("{}[{}]", what, i));
}

void collect(const OnnxGraph& g, std::set<std::string>& out) {
  for (const OnnxNode& n : g.nodes) {
    out.insert(n.op_type);
    for (const OnnxAttribute& a : n.attributes)
      if (const auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value)) collect(**body, out);
  }
}

std::vector<OnnxItem> load_items(const fs::path& folder, const char* prefix, const std::vector<OnnxValue>& declared) {
  std::vector<OnnxItem> items;
  for (size_t k = 0; k < declared.size(); ++k) {
    const fs::path file = folder / fmt::format("{}_{}.pb", prefix, k);
    if (!fs::exists(file)) break;
    if (!declared[k].unsupported.empty())
      throw OnnxUnsupported(
          fmt::format("{} \"{}\" is {}, which is not supported", prefix, declared[k].name, declared[k].unsupported));
    OnnxValue value = declared[k];
    const bool expected_bf16 = prefix == std::string_view("output") && value.typed && value.dtype == DType::bf16;
    if (expected_bf16) value.typed = false;
    try {
      items.push_back(load_onnx_item(file.string(), value));
    } catch (const OnnxUnsupported&) {
      if (!expected_bf16) throw;
      // Editions that hold bf16 as uint16 made the values by cutting off bits; Cast rounds to nearest, as their
      // successors do.
      throw OnnxUnsupported("its expected bf16 values are cut off, not rounded (later editions have it corrected)");
    }
  }
  return items;
}

/// A case whose expected values do not follow from its own model. Judged by what is wrong with it, so that a corrected
/// edition is run.
std::string defect(const std::string& name, const OnnxModel& model) {
  if (name == "test_adam_multiple" && !model.graph.nodes.empty() && !model.graph.nodes[0].find("epsilon"))
    return "the case is wrong: its values were computed with an epsilon of 0.01, which its node leaves out (ONNX 1.22 "
           "has it corrected)";
  return {};
}

Tolerance tolerance_of(const fs::path& folder) {
  Tolerance t;
  if (!fs::exists(folder / "data.json")) return t;
  const auto j = nlohmann::json::parse(read_file((folder / "data.json").string()), nullptr, false);
  if (!j.is_object()) throw Error(fmt::format("{} is damaged", (folder / "data.json").string()));
  if (j.contains("rtol") && j["rtol"].is_number()) t.relative = j["rtol"];
  if (j.contains("atol") && j["atol"].is_number()) t.absolute = j["atol"];
  return t;
}

}  // namespace

const char* name(ConformCase::Outcome o) {
  static constexpr const char* names[] = {"pass", "fail", "unsupported"};
  return names[static_cast<int>(o)];
}

ConformCase run_conform_case(const std::string& path) {
  ConformCase c;
  const fs::path folder(path);
  c.name = folder.filename().string();
  try {
    const Tolerance tolerance = tolerance_of(folder);
    const OnnxModel model = load_onnx((folder / "model.onnx").string());
    std::set<std::string> types;
    collect(model.graph, types);
    c.operators.assign(types.begin(), types.end());
    if (const std::string why = defect(c.name, model); !why.empty()) throw OnnxUnsupported(why);
    std::vector<fs::path> sets;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
        sets.push_back(entry.path());
    std::sort(sets.begin(), sets.end());
    if (sets.empty()) throw Error("it has no data");
    for (const fs::path& set : sets) {
      const std::vector<OnnxItem> inputs = load_items(set, "input", model.graph.inputs),
                                  wanted = load_items(set, "output", model.graph.outputs);
      const OnnxResult got = run_onnx_items(model, inputs);
      if (got.random) throw OnnxUnsupported("it draws random numbers, and ONNX does not say which");
      if (wanted.size() != got.outputs.size())
        throw Mismatch{fmt::format("{} outputs, expected {}", got.outputs.size(), wanted.size())};
      for (size_t k = 0; k < wanted.size(); ++k)
        compare(got.outputs[k], wanted[k], tolerance,
                fmt::format("output {} (\"{}\")", k, model.graph.outputs[k].name));
    }
  } catch (const Mismatch& m) {
    c.outcome = ConformCase::Outcome::fail;
    c.wrong = true;
    c.detail = m.text;
  } catch (const OnnxUnsupported& e) {
    c.outcome = ConformCase::Outcome::unsupported;
    c.detail = e.message();
  } catch (const Error& e) {
    c.outcome = ConformCase::Outcome::fail;
    c.detail = e.message();
  } catch (const fs::filesystem_error& e) {
    c.outcome = ConformCase::Outcome::fail;
    c.detail = e.code().message();
  }
  return c;
}

std::vector<ConformCase> run_conform(const std::string& folder, const std::function<void(const ConformCase&)>& done) {
  std::error_code code;
  std::vector<std::string> found;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (it->path().filename() == "model.onnx") found.push_back(it->path().parent_path().string());
  if (code) throw Error(fmt::format("{} cannot be read: {}", folder, code.message()));
  if (found.empty())
    throw Error(fmt::format("{} holds no test case", folder), "a case is a folder with model.onnx and test_data_set_0");
  std::sort(found.begin(), found.end());
  std::vector<ConformCase> out;
  for (const std::string& f : found) {
    out.push_back(run_conform_case(f));
    if (done) done(out.back());
  }
  return out;
}

}  // namespace tenon::formats
