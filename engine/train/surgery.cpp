#include "engine/train/surgery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/model/channel_origins.h"
#include "engine/model/layer_sizes.h"
#include "engine/model/new_layers.h"
#include "engine/nn/init.h"
#include "engine/ops/create.h"
#include "engine/ops/index.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/train/teacher.h"

namespace tenon {
namespace {

using Deed = SurgeryRow::Deed;
using Axes = std::vector<AxisOrigin>;

/// Elements of one axis that come from the same one, where there are several.
std::vector<std::vector<int64_t>> copies_of(const AxisOrigin& axis) {
  std::map<int64_t, std::vector<int64_t>> by_source;
  for (size_t i = 0; i < axis.from.size(); ++i)
    if (axis.from[i] >= 0) by_source[axis.from[i]].push_back(static_cast<int64_t>(i));
  std::vector<std::vector<int64_t>> all;
  for (auto& [source, places] : by_source)
    if (places.size() > 1) all.push_back(std::move(places));
  return all;
}

int64_t without_source(const AxisOrigin& a) { return std::count(a.from.begin(), a.from.end(), int64_t{-1}); }

/// Writes what comes from `old` over `base`, row by row of the last axis.
class Carrier {
 public:
  Carrier(const Tensor& old, const Tensor& base, const Axes& axes)
      : old_(clone(old, Order::contiguous)), out_(clone(base, Order::contiguous)), axes_(axes) {
    size_ = static_cast<int64_t>(itemsize(out_.dtype()));
    from_ = static_cast<const char*>(old_.raw());
    to_ = static_cast<char*>(out_.raw());
    walk(0, 0, 0);
  }
  Tensor result() const { return out_; }

 private:
  void walk(int axis, int64_t from, int64_t to) {
    if (axis == out_.ndim()) {
      std::memcpy(to_ + to * size_, from_ + from * size_, static_cast<size_t>(size_));
      return;
    }
    const std::vector<int64_t>& sources = axes_[static_cast<size_t>(axis)].from;
    const int64_t n = out_.size(axis), was = old_.size(axis);
    for (int64_t i = 0; i < n; ++i)
      if (const int64_t s = sources[static_cast<size_t>(i)]; s >= 0) walk(axis + 1, from * was + s, to * n + i);
  }
  Tensor old_, out_;
  const Axes& axes_;
  int64_t size_ = 0;
  const char* from_ = nullptr;
  char* to_ = nullptr;
};

/// Copies along an axis that is read: parts whose sum is what the one had, other ones for each reader.
template <class T>
void share_out(const Tensor& t, int axis, const AxisOrigin& of, uint64_t seed) {
  const auto groups = copies_of(of);
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < t.ndim(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= t.size(i);
  const int64_t n = t.size(axis);
  T* values = t.data<T>();
  std::mt19937_64 draw(seed);
  const auto part = [&] { return 0.5 + static_cast<double>(draw() >> 11) * 0x1p-53; };
  std::vector<double> parts;
  for (int64_t o = 0; o < outer; ++o)
    for (const std::vector<int64_t>& places : groups)
      for (int64_t i = 0; i < inner; ++i) {
        const auto at = [&](size_t k) -> T& { return values[(o * n + places[k]) * inner + i]; };
        double sum = 0, left = static_cast<double>(at(0));
        parts.clear();
        for (size_t k = 0; k < places.size(); ++k) sum += parts.emplace_back(part());
        const double whole = left;
        for (size_t k = 1; k < places.size(); ++k) {
          at(k) = static_cast<T>(whole * parts[k] / sum);
          left -= static_cast<double>(at(k));
        }
        at(0) = static_cast<T>(left);
      }
}

void multiply(const Tensor& t, int axis, const std::vector<double>& times) {
  Shape along;
  for (int i = 0; i < t.ndim(); ++i) along.push_back(i == axis ? t.size(i) : 1);
  const Tensor factors = empty(along, DType::f64);
  std::copy(times.begin(), times.end(), factors.data<double>());
  copy_(t, mul(t, cast(factors, t.dtype())));
}

class Operation {
 public:
  Operation(const ModelSpec& before, const ModelSpec& after, const Checkpoint& state, const Checkpoint& fresh,
            uint64_t seed)
      : before_(before), after_(after), state_(state), fresh_(fresh), seed_(seed), was_(tensor_sizes(before)) {
    for (const auto& [name, t] : state.tensors) given_[name] = t;
    for (const auto& [name, size] : was_) check(name, size);
    new_ = new_layers(before, after);
    origins_ = channel_origins(
        before, after, new_.passes, [&](const std::string& name) { return given_.at("model/" + name); }, seed);
  }

  Surgery result() {
    for (const auto& [name, t] : fresh_.tensors)
      if (name.starts_with("model/")) out_.rows.push_back(place(name.substr(6), t));
    for (const auto& [name, size] : was_)
      if (!made_.contains("model/" + name)) out_.rows.push_back({name, size, std::nullopt, Deed::gone, ""});
    const bool alike = std::all_of(out_.rows.begin(), out_.rows.end(),
                                   [](const SurgeryRow& r) { return r.before && r.after && *r.before == *r.after; });
    for (const auto& [name, t] : fresh_.tensors) {
      if (name.starts_with("average/")) carry_average(name, t);
      if (name.starts_with("optimizer/")) carry_memory(name, t, alike);
    }
    out_.state.step = state_.step;
    out_.state.state = state_.state;
    for (const auto& [name, t] : state_.tensors)
      if (Teacher::owns(name)) made_[name] = t;
    out_.state.tensors.assign(made_.begin(), made_.end());
    out_.norms = new_.norms;
    sort_rows();
    return std::move(out_);
  }

 private:
  void check(const std::string& name, const Shape& size) const {
    const auto at = given_.find("model/" + name);
    if (at == given_.end() || !at->second)
      throw Error(fmt::format("the state of step {} has no tensor \"model/{}\"", state_.step, name),
                  "it belongs to another model");
    if (!(at->second.size() == size))
      throw Error(fmt::format("\"model/{}\" of the state of step {} is {}, and {} in the model", name, state_.step,
                              to_string(at->second.size()), to_string(size)),
                  "it belongs to another model");
  }
  const Axes* axes_of(const std::string& tensor) const {
    const auto at = origins_.tensors.find(tensor);
    return at == origins_.tensors.end() ? nullptr : &at->second;
  }
  /// The layer that a new tensor is of begins in this way.
  static bool is_of(const std::vector<std::string>& modules, const std::string& tensor) {
    return std::find(modules.begin(), modules.end(), tensor.substr(0, tensor.rfind('.'))) != modules.end();
  }

  SurgeryRow place(const std::string& name, const Tensor& fresh) {
    const auto old = was_.find(name);
    SurgeryRow row{name, old == was_.end() ? std::nullopt : std::optional(old->second), fresh.size(), Deed::begun,
                   "as the seed gives it"};
    const Axes* axes = axes_of(name);
    const Tensor from = old == was_.end() ? Tensor() : given_.at("model/" + name);
    if (old == was_.end())
      made_["model/" + name] = begin_new(name, fresh, row);
    else if (!axes || from.dtype() != fresh.dtype())
      row.how = "it has another kind of values now";
    else
      describe(*axes, *row.before, *row.after, row);
    if (old != was_.end()) made_["model/" + name] = row.deed == Deed::begun ? fresh : carried(name, from, fresh, true);
    return row;
  }

  Tensor carried(const std::string& name, const Tensor& old, const Tensor& base, bool shares) const {
    const Axes& axes = *axes_of(name);
    Tensor t = Carrier(old, base, axes).result();
    for (int axis = 0; shares && axis < t.ndim(); ++axis) {
      const AxisOrigin& a = axes[static_cast<size_t>(axis)];
      if (!a.times.empty()) multiply(t, axis, a.times);
      if (!a.read || copies_of(a).empty()) continue;
      if (t.dtype() == DType::f64)
        share_out<double>(t, axis, a, seed_of(name));
      else if (t.dtype() == DType::f32)
        share_out<float>(t, axis, a, seed_of(name));
    }
    return t;
  }
  uint64_t seed_of(const std::string& name) const {
    uint64_t hash = seed_ ^ 0xcbf29ce484222325ull;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return hash;
  }

  /// Of a layer that the old model has not.
  Tensor begin_new(const std::string& name, const Tensor& fresh, SurgeryRow& row) const {
    const bool weight = name.ends_with(".weight"), bias = name.ends_with(".bias");
    if (!weight && !bias) {
      if (!is_of(new_.norms, name)) return fresh;
      row.deed = Deed::identity;
      row.how = "that of the next batch";
      return fresh;
    }
    const Tensor t = clone(fresh, Order::contiguous);
    if (is_of(new_.silent, name)) {
      row.deed = Deed::silent;
      row.how = "zero: its branch adds nothing yet";
      nn::fill(t, 0);
      return t;
    }
    if (is_of(new_.norms, name)) {
      row.deed = Deed::identity;
      row.how = weight ? "the deviation of the next batch, which it undoes" : "the mean of the next batch";
      return t;
    }
    if (!is_of(new_.passes, name)) return fresh;
    const std::string layer = name.substr(0, name.rfind('.'));
    const auto more = origins_.passed.find(layer);
    const Shape w = sizes_in_fresh(layer + ".weight");
    // More outputs without a source would change what those who read them see.
    if (more == origins_.passed.end() && w[0] != w[1] && w[1] * groups_of(layer) != w[0]) return fresh;
    row.deed = Deed::identity;
    row.how = more == origins_.passed.end() ? "what arrives goes on" : "what arrives goes on, some of it as copies";
    nn::fill(t, 0);
    if (bias) return t;
    if (more == origins_.passed.end()) {
      if (t.ndim() == 2)
        nn::init_eye(t);
      else
        nn::init_dirac(t, groups_of(layer));
      return t;
    }
    Shape square = t.size();
    square[0] = square[1];
    const Tensor eye = empty(square, t.dtype());
    if (t.ndim() == 2)
      nn::init_eye(eye);
    else
      nn::init_dirac(eye);
    return clone(index_select(eye, 0, integers(more->second)), Order::contiguous);
  }
  int64_t groups_of(const std::string& layer) const {
    const AttrValue* groups = after_.find(layer)->find("groups");
    return groups && std::holds_alternative<int64_t>(*groups) ? std::get<int64_t>(*groups) : 1;
  }
  Shape sizes_in_fresh(const std::string& name) const {
    for (const auto& [n, t] : fresh_.tensors)
      if (n == "model/" + name) return t.size();
    return {};
  }

  /// What lies along an axis: of a table of an Embedding its rows and how wide they are.
  std::string axis_word(const Shape& s, int axis, const std::string& tensor) const {
    const LayerSpec* layer = layer_of(after_, tensor);
    const bool rows = layer && (layer->type.starts_with("Embedding") || layer->type.starts_with("Learned")) && s.n == 2;
    if (rows) return axis == 0 ? "rows" : "columns";
    if (s.n < 2) return "values";
    return axis == 0 ? "outputs" : axis == 1 ? "inputs" : "places";
  }

  void describe(const Axes& axes, const Shape& was, const Shape& is, SurgeryRow& row) const {
    std::vector<std::string> words, notes;
    bool more = false, fewer = false;
    for (int axis = 0; axis < is.n; ++axis) {
      const AxisOrigin& a = axes[static_cast<size_t>(axis)];
      const int64_t lost = without_source(a);
      if (lost == is[axis] && is[axis] > 0) {
        row.how = "as the seed gives it: " + (a.why.empty() ? "it has another size" : a.why);
        return;
      }
      if (!a.otherwise.empty()) notes.push_back(a.otherwise);
      if (a.same(was[axis])) continue;
      more |= is[axis] > was[axis];
      fewer |= is[axis] < was[axis];
      const std::string what = axis_word(is, axis, row.tensor);
      int64_t copies = 0;
      for (const auto& places : copies_of(a)) copies += static_cast<int64_t>(places.size()) - 1;
      if (copies > 0)
        words.push_back(a.read ? fmt::format("{} more {}, weights shared out", copies, what)
                               : fmt::format("{} more {}, copies of others", copies, what));
      if (is[axis] < was[axis]) words.push_back(fmt::format("{} of {} {} stay", is[axis], was[axis], what));
      if (lost > 0)
        words.push_back(
            fmt::format("{} more {} as the seed gives them{}", lost, what, a.why.empty() ? "" : " (" + a.why + ")"));
      if (words.empty()) words.push_back(fmt::format("its {} in another order", what));
    }
    row.deed = words.empty()   ? Deed::kept
               : more && fewer ? Deed::resized
               : more          ? Deed::widened
               : fewer         ? Deed::narrowed
                               : Deed::resized;
    if (row.deed == Deed::kept && !notes.empty()) row.deed = Deed::resized;
    words.insert(words.end(), notes.begin(), notes.end());
    row.how.clear();
    for (const std::string& w : words) row.how += (row.how.empty() ? "" : "; ") + w;
  }

  /// An average goes the way of what it is the average of.
  void carry_average(const std::string& name, const Tensor& fresh) {
    const std::string of = name.substr(name.find('/') + 1);
    const auto old = given_.find(name);
    const auto row = std::find_if(out_.rows.begin(), out_.rows.end(), [&](const auto& r) { return r.tensor == of; });
    const bool comes = row != out_.rows.end() && row->before && row->deed != Deed::begun && old != given_.end() &&
                       old->second && old->second.size() == *row->before && old->second.dtype() == fresh.dtype();
    if (comes)
      made_[name] = carried(of, old->second, fresh, true);
    else if (old != given_.end())
      made_[name] = made_.at("model/" + of);
  }

  /// What the optimizer remembers of a copy is what it remembers of the one.
  void carry_memory(const std::string& name, const Tensor& fresh, bool alike) {
    const auto old = given_.find(name);
    if (old == given_.end() || !old->second || old->second.dtype() != fresh.dtype()) return;
    const std::string rest = name.substr(name.find('/') + 1);
    const size_t end = rest.rfind('/');
    if (end == std::string::npos) {  // of all parameters together
      if (alike && old->second.size() == fresh.size()) made_[name] = old->second;
      return;
    }
    const std::string parameter = rest.substr(0, end);
    const Axes* axes = axes_of(parameter);
    const auto row =
        std::find_if(out_.rows.begin(), out_.rows.end(), [&](const auto& r) { return r.tensor == parameter; });
    if (!axes || row == out_.rows.end() || !row->before || row->deed == Deed::begun) return;
    const Shape &was = *row->before, &is = *row->after, &had = old->second.size(), &has = fresh.size();
    if (had.n != was.n || has.n != is.n) {
      if (had == has) made_[name] = old->second;
      return;
    }
    // Along an axis that it sums up there is one element.
    Axes own = *axes;
    for (int axis = 0; axis < has.n; ++axis) {
      if (had[axis] == was[axis] && has[axis] == is[axis]) continue;
      if (had[axis] != has[axis]) return;
      auto& from = own[static_cast<size_t>(axis)].from;
      from.resize(static_cast<size_t>(has[axis]));
      for (int64_t i = 0; i < has[axis]; ++i) from[static_cast<size_t>(i)] = i;
    }
    made_[name] = Carrier(old->second, fresh, own).result();
  }

  /// As the layers of the model stand; what is gone comes last.
  void sort_rows() {
    const auto rank = [&](const SurgeryRow& r) {
      const ModelSpec& of = r.after ? after_ : before_;
      const LayerSpec* l = layer_of(of, r.tensor);
      return std::tuple(!r.after, l ? l - of.layers.data() : static_cast<std::ptrdiff_t>(of.layers.size()),
                        !r.tensor.ends_with("weight"));
    };
    std::stable_sort(out_.rows.begin(), out_.rows.end(),
                     [&](const SurgeryRow& a, const SurgeryRow& b) { return rank(a) < rank(b); });
  }

  const ModelSpec &before_, &after_;
  const Checkpoint &state_, &fresh_;
  const uint64_t seed_;
  const Sizes was_;
  std::map<std::string, Tensor> given_, made_;
  NewLayers new_;
  ChannelOrigins origins_;
  Surgery out_;
};

}  // namespace

const char* surgery_word(Deed deed) {
  static constexpr const char* kWords[] = {"kept",     "widened", "narrowed", "resized",
                                           "identity", "silent",  "new",      "gone"};
  return kWords[static_cast<int>(deed)];
}

Surgery operate(const ModelSpec& before, const ModelSpec& after, const Checkpoint& state, const Checkpoint& fresh,
                uint64_t seed) {
  const NoGrad off;
  return Operation(before, after, state, fresh, seed).result();
}

}  // namespace tenon
