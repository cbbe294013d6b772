#include "engine/formats/aten/rule.h"

#include <algorithm>

#include "engine/formats/torch/exported_archive.h"
#include "engine/formats/torch/types.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

using Kind = AtenArgument::Kind;

Registry<AtenRule>& rules_of_aten() {
  static auto& all = *new Registry<AtenRule>("ATen rule");
  return all;
}

int64_t onnx_type_number(DType t) {
  static constexpr int64_t numbers[kDTypes] = {9, 2, 3, 5, 6, 7, 10, 16, 1, 11};
  return numbers[static_cast<size_t>(t)];
}

[[noreturn]] void of_another_form(const char* name) {
  throw OnnxUnsupported(fmt::format("its argument {} is of a form that is not supported", name));
}

}  // namespace

bool register_aten(const std::string& op, std::function<void(AtenCall&)> convert, Place place) {
  return rules_of_aten().add({op, std::move(convert)}, place);
}
const Registry<AtenRule>& aten_rules() { return rules_of_aten(); }

const AtenArgument& AtenCall::argument(const char* name) const {
  for (const auto& [n, a] : node_.inputs)
    if (n == name) return a;
  const AtenParameter* p = schema_.find(name);
  if (!p || (!p->has_default && !p->optional)) throw Error(fmt::format("its argument {} is missing", name));
  return p->fallback;
}

std::string AtenCall::in(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind == Kind::none) return {};
  if (a.kind != Kind::tensor) of_another_form(name);
  return to_.value(a.names[0]);
}
std::vector<std::string> AtenCall::in_list(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind != Kind::tensors) of_another_form(name);
  std::vector<std::string> all;
  for (const std::string& n : a.names) all.push_back(n.empty() ? n : to_.value(n));
  return all;
}
int64_t AtenCall::integer(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind == Kind::truth) return a.truth;
  if (a.kind != Kind::integer) of_another_form(name);
  if (!a.ints[0].name.empty()) throw OnnxUnsupported(fmt::format("its argument {} is known only at a run", name));
  return a.ints[0].value;
}
const std::vector<AtenInt>& AtenCall::sizes(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind != Kind::integers && a.kind != Kind::integer) of_another_form(name);
  return a.ints;
}
AtenInts AtenCall::integers(const char* name) const {
  AtenInts all;
  if (!has(name)) return all;
  if (argument(name).kind == Kind::reals && argument(name).reals.empty()) return all;
  if (argument(name).kind == Kind::tensors && argument(name).names.empty()) return all;
  for (const AtenInt& n : sizes(name)) {
    if (!n.name.empty()) throw OnnxUnsupported(fmt::format("its argument {} is known only at a run", name));
    all.push_back(n.value);
  }
  return all;
}
AtenInts AtenCall::window(const char* name, size_t axes) const {
  AtenInts all = integers(name);
  if (all.size() == 1) all.assign(axes, all[0]);
  if (all.size() != axes)
    throw Error(fmt::format("its argument {} has {} numbers for {} axes", name, all.size(), axes));
  return all;
}
double AtenCall::number(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind == Kind::real) return a.reals[0];
  return static_cast<double>(integer(name));
}
std::vector<double> AtenCall::numbers(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind == Kind::reals) return a.reals;
  const AtenInts whole = integers(name);
  return {whole.begin(), whole.end()};
}
bool AtenCall::truth(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind == Kind::none) return false;
  if (a.kind == Kind::integer) return integer(name) != 0;
  if (a.kind != Kind::truth) of_another_form(name);
  return a.truth;
}
std::string AtenCall::text(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind != Kind::text) of_another_form(name);
  return a.text;
}
std::optional<DType> AtenCall::type(const char* name) const {
  if (!has(name)) return {};
  const AtenArgument& a = argument(name);
  if (a.kind != Kind::type) of_another_form(name);
  const std::string word = exported_type(a.ints[0].value);
  const TorchType* t = torch_dtype(word);
  if (!t || t->engine < 0) throw OnnxUnsupported("the type " + word + " is not supported");
  return static_cast<DType>(t->engine);
}

DType AtenCall::number_type(const char* name) const {
  return argument(name).kind == Kind::real ? DType::f32 : DType::i64;
}

const AtenTensor& AtenCall::meta(const char* name) const {
  const AtenArgument& a = argument(name);
  if (a.kind != Kind::tensor) of_another_form(name);
  const AtenTensor& t = to_.meta(a.names[0]);
  if (!t.typed) throw OnnxUnsupported(fmt::format("{} has a type that is not supported", a.names[0]));
  return t;
}
int64_t AtenCall::size(const char* name, int64_t axis) const {
  const OnnxDim& d = shape(name).at(static_cast<size_t>(this->axis(name, axis)));
  if (d.value < 0) throw OnnxUnsupported(fmt::format("size {} of its input {} is known only at a run", axis, name));
  return d.value;
}
int64_t AtenCall::axis(const char* tensor, int64_t axis, int64_t more) const {
  const int64_t axes = rank(tensor) + more;
  if (axis < -axes || axis >= std::max<int64_t>(axes, 1)) throw Error(fmt::format("axis {} of {} axes", axis, axes));
  return axis < 0 ? axis + axes : axis;
}
DType AtenCall::dtype(const char* name) const { return meta(name).dtype; }

std::string AtenCall::scalar_of(double v, DType t) { return constant(scalar(v, t)); }
std::string AtenCall::whole(const AtenInts& v) { return constant(tenon::integers(v)); }
std::string AtenCall::whole(const std::vector<AtenInt>& v) {
  if (std::all_of(v.begin(), v.end(), [](const AtenInt& n) { return n.name.empty(); })) {
    AtenInts known;
    for (const AtenInt& n : v) known.push_back(n.value);
    return whole(known);
  }
  std::vector<std::string> parts;
  for (const AtenInt& n : v) parts.push_back(n.name.empty() ? whole(AtenInts{n.value}) : to_.value(n.name));
  return parts.size() == 1 ? parts[0] : add("Concat", parts, {{"axis", int64_t{0}}});
}
std::string AtenCall::cast_to(const std::string& value, DType from, DType to) {
  if (from == to) return value;
  if (const Tensor t = to_.constant_value(value)) return constant(cast(t, to));
  return add("Cast", {value}, {{"to", onnx_type_number(to)}});
}
std::string AtenCall::operand(const char* name, DType t) {
  if (!is_tensor(name)) return scalar_of(number(name), t);
  return cast_to(in(name), dtype(name), t);
}
DType AtenCall::common(const char* a, const char* b) const {
  const auto type_of = [this](const char* name) {
    if (is_tensor(name)) return dtype(name);
    const AtenArgument& n = argument(name);
    return n.kind == Kind::real ? DType::f32 : n.kind == Kind::truth ? DType::boolean : DType::i64;
  };
  const DType x = type_of(a), y = type_of(b);
  // A number, or a tensor without axes, decides only between truth values, whole numbers and fractions.
  const auto kind = [](DType t) { return is_floating(t) ? 2 : t == DType::boolean ? 0 : 1; };
  const auto bare = [this](const char* name) { return !is_tensor(name) || rank(name) == 0; };
  if (bare(a) != bare(b)) {
    const DType strong = bare(a) ? y : x, weak = bare(a) ? x : y;
    return kind(weak) > kind(strong) ? weak : strong;
  }
  return promote(x, y);
}

std::string AtenCall::reshaped(const std::string& value, const std::vector<OnnxDim>& from,
                               const std::vector<OnnxDim>& to) {
  AtenInts sizes;
  int64_t open = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].value == 0) throw OnnxUnsupported("it makes a tensor without elements");
    if (to[i].value > 0) {
      sizes.push_back(to[i].value);
    } else if (i < from.size() && from[i].value < 0 && !to[i].name.empty() && from[i].name == to[i].name) {
      sizes.push_back(0);
    } else {
      sizes.push_back(-1);
      ++open;
    }
  }
  if (open > 1) throw OnnxUnsupported("several of its sizes are known only at a run");
  return add("Reshape", {value, whole(sizes)});
}

}  // namespace tenon::formats
