#include "tracing/record/nan_seeker.h"

#include <fmt/format.h>
#include <cmath>
#include <string_view>

#include "core/state.h"
#include "engine/op/strided_loop.h"
#include "tracing/record/numbers.h"

namespace tenon::tracing {
namespace {

std::string type_text(const Tensor& t) { return fmt::format("{} {}", name(t.dtype()), to_string(t.size())); }

std::string value_text(double v) {
  return std::isnan(v) ? "nan" : std::isinf(v) ? (v > 0 ? "inf" : "-inf") : fmt::format("{:.4g}", v);
}

// The element of an operand that went into element `index` of the output. Pointwise: the broadcast index. Products:
// along the row and the column that met there. Else the value most likely to blame: a bad one, or the largest, of the
// same sample where the operand has samples.
void operand_element(const Call& call, int operand, const Dims& index, NanOrigin::Operand& o) {
  const Tensor& t = call.in[operand];
  const Tensor& out = call.out[0];
  if (call.op->info.kind == OpKind::pointwise) {
    Dims at;
    int lead = index.n - t.ndim();
    for (int i = 0; i < t.ndim(); ++i) at.push_back(t.size(i) == 1 ? 0 : index[i + lead]);
    o.index = at;
    o.value = value_at(t, at);
    return;
  }
  if (call.op->info.kind == OpKind::matmul && out.ndim() == 2) {
    bool weight_rows = std::string_view(call.op->info.name) == "linear";  // [out, in]; matmul's right side is [k, n]
    bool found = t.ndim() == 1  ? largest(t, 0, index[1], o.index, o.value)
                 : operand == 0 ? largest(t, 0, index[0], o.index, o.value)
                                : largest(t, weight_rows ? 0 : 1, index[1], o.index, o.value);
    if (found) return;
  }
  int axis = t.ndim() > 0 && out.ndim() > 0 && index.n > 0 && t.size(0) == out.size(0) && operand == 0 ? 0 : -1;
  largest(t, axis, axis == 0 ? index[0] : 0, o.index, o.value);
}

// How many different samples are bad; the only one, or -1.
int64_t only_row(const Tensor& t) {
  int64_t row = -1;
  each_value(t, [&](int64_t k, double v) {
    if (std::isfinite(v)) return true;
    int64_t r = index_of(t.size(), k)[0];
    if (row >= 0 && row != r) {
      row = -2;
      return false;
    }
    row = r;
    return true;
  });
  return row < 0 ? -1 : row;
}

}  // namespace

void NanSeeker::blame(NanOrigin& o, int64_t row) const {
  o.sample = row;
  o.source = samples_.source(row).text();
}

std::string NanSeeker::sentence(const NanOrigin& o) const {
  const std::string sample = o.sample < 0 ? ""
                                          : fmt::format("sample {} of the {}{}", o.sample, split_,
                                                        o.source.empty() ? "" : " (" + o.source + ")");
  std::string where = o.module.empty() ? "" : fmt::format(" of module '{}'", o.module);
  if (o.seq == 0) {
    if (o.phase == "data")
      return fmt::format(
          "Step {}: the data itself was not finite: {} at {} of {}{}; every op after it only passed it on.", o.step,
          value_text(o.value), to_string(o.index), o.operands.empty() ? "the batch" : o.operands[0].name,
          sample.empty() ? "" : ", which is " + sample);
    return fmt::format("Step {}: {} already held {} at {} before the step began.", o.step,
                       o.operands.empty() ? "a parameter" : o.operands[0].name, value_text(o.value),
                       to_string(o.index));
  }
  std::string text = fmt::format(
      "Step {}: {} #{}{} ({}) was the first to give {}, at element {} of its output ({} of {} elements are not "
      "finite).",
      o.step, o.op, o.seq, where, o.phase, value_text(o.value), to_string(o.index), o.bad, o.total);
  std::string parts;
  for (const auto& p : o.operands)
    parts += fmt::format("{}{} {} had {} at {} (it spans {:.4g} to {:.4g})", parts.empty() ? "" : "; ", p.name, p.type,
                         value_text(p.value), to_string(p.index), p.min, p.max);
  if (!parts.empty()) text += " Its inputs were finite: " + parts + ".";
  if (!sample.empty()) text += fmt::format(" Only {} is affected.", sample);
  return text;
}

void NanSeeker::given(const std::string& name, const Tensor& t, const std::vector<int64_t>& rows) {
  Dims index;
  double value;
  if (origin_ || !first_bad(t, index, value)) return;
  auto o = std::make_shared<NanOrigin>();
  o->index = index;
  o->value = value;
  Statistics s = statistics(t);
  o->bad = s.bad();
  o->total = s.count;
  o->phase = rows.empty() ? "build" : "data";
  NanOrigin::Operand p;
  p.name = name;
  p.type = type_text(t);
  p.index = index;
  p.value = value;
  p.min = s.min;
  p.max = s.max;
  p.mean = s.mean;
  p.bad = s.bad();
  o->operands.push_back(p);
  if (!rows.empty() && index.n > 0 && index[0] < static_cast<int64_t>(rows.size()))
    blame(*o, rows[static_cast<size_t>(index[0])]);
  origin_ = o;
}

void NanSeeker::after(const Call& call, const Origin& op, const std::vector<std::string>& names,
                      const std::vector<int64_t>& rows) {
  for (int k = 0; k < call.outputs; ++k) {
    Dims index;
    double value;
    if (!call.out[k].defined() || !first_bad(call.out[k], index, value)) continue;
    if (origin_) {
      origin_->spread.push_back(op.seq);
      return;
    }
    auto o = std::make_shared<NanOrigin>();
    o->seq = op.seq;
    o->op = call.op->info.name;
    o->module = module_path(op.module);
    o->phase = name(op.phase);
    o->index = index;
    o->value = value;
    const Tensor& out = call.out[k];
    Statistics s = statistics(out);
    o->bad = s.bad();
    o->total = s.count;
    for (int i = 0; i < call.inputs; ++i) {
      if (!call.in[i].defined() || call.in[i].same(out))
        continue;  // what an in-place op wrote into is no longer what it read
      NanOrigin::Operand p;
      p.name = static_cast<size_t>(i) < names.size() ? names[static_cast<size_t>(i)] : fmt::format("input {}", i);
      p.type = type_text(call.in[i]);
      Statistics is = statistics(call.in[i]);
      p.min = is.min;
      p.max = is.max;
      p.mean = is.mean;
      p.bad = is.bad();
      operand_element(call, i, index, p);
      o->operands.push_back(p);
    }
    // Only what the forward pass makes of the batch has samples along its first axis.
    bool by_sample = op.phase == Phase::forward && call.inputs > 0 && call.in[0].defined() && call.in[0].ndim() > 0 &&
                     call.in[0].size(0) == static_cast<int64_t>(rows.size());
    if (by_sample && out.ndim() > 1 && out.size(0) == static_cast<int64_t>(rows.size()) && out.size(0) > 1)
      if (int64_t row = only_row(out); row >= 0) blame(*o, rows[static_cast<size_t>(row)]);
    origin_ = o;
    return;
  }
}

std::shared_ptr<NanOrigin> NanSeeker::result(int64_t step) const {
  if (!origin_) return nullptr;
  origin_->step = step;
  origin_->sentence = sentence(*origin_);
  return origin_;
}

}  // namespace tenon::tracing
