#include "engine/train/tensor_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "core/backend.h"
#include "core/error.h"
#include "core/name_pattern.h"
#include "core/number.h"
#include "engine/ops/view.h"
#include "engine/spec/text_reader.h"

namespace tenon {
namespace {

struct EditTarget {
  const char* name;
  TensorEdit::Target target;
};
constexpr EditTarget kEditTargets[] = {{"output", TensorEdit::Target::output},
                                       {"weight", TensorEdit::Target::weight},
                                       {"grad", TensorEdit::Target::gradient},
                                       {"state", TensorEdit::Target::state}};

/// edit := [STEP] ["#" OP] ":" target ["[" INDEX {"," INDEX} "]"] change
/// target := "output" ["(" NUMBER ")"] | ("weight" | "grad" | "state") "(" NAME ")"
/// change := ("=" | "*" | "+") NUMBER | "clamp" NUMBER ".." NUMBER
class EditReader final : TextReader {
 public:
  explicit EditReader(std::string_view text) : TextReader("edits", text) {}

  TensorEdit edit(int64_t step) {
    TensorEdit e;
    skip();
    e.step = step;
    const size_t begin = at_;
    if (at_digit())
      e.step = whole("the step", int64_t{1} << 40);
    else if (step < 1)
      fail("an edit begins with the number of its step", "as in \"120 #14: output = 0\"");
    if (e.step < 1) fail("steps count from 1");
    if (sign("#")) e.seq = static_cast<uint32_t>(whole("the number of an op", UINT32_MAX));
    if (at_ > begin)
      want(":", "the step");
    else
      sign(":");
    target(e);
    if (sign("[")) element(e);
    change(e);
    skip();
    if (at_ < text_.size()) fail("nothing was expected here", "edits are separated by ';'");
    return e;
  }

 private:
  bool at_digit() const { return at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); }
  int64_t whole(const std::string& what, int64_t most) {
    skip();
    if (!at_digit()) fail(fmt::format("{} is to be a whole number", what));
    int64_t n = 0;
    for (; at_digit(); ++at_) {
      n = n * 10 + (text_[at_] - '0');
      if (n > most) fail(fmt::format("{} is too large", what));
    }
    return n;
  }
  /// A number that ends before "..", a blank or the end.
  double number(const std::string& what) {
    skip();
    size_t end = at_;
    while (end < text_.size() && !std::isspace(static_cast<unsigned char>(text_[end])) &&
           !text_.substr(end).starts_with(".."))
      ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    double value = 0;
    if (word == "nan")
      value = NAN;
    else if (word == "inf" || word == "-inf")
      value = word[0] == '-' ? -INFINITY : INFINITY;
    else if (const auto read = number_of(word))
      value = *read;
    else
      fail(fmt::format("{} is to be a number", what));
    at_ = end;
    return value;
  }
  void target(TensorEdit& e) {
    skip();
    const auto found = std::find_if(std::begin(kEditTargets), std::end(kEditTargets),
                                    [&](const EditTarget& t) { return text_.substr(at_).starts_with(t.name); });
    if (found == std::end(kEditTargets))
      fail("what is changed is expected", "one of output, weight(NAME), grad(NAME), state(NAME)");
    at_ += std::string_view(found->name).size();
    e.target = found->target;
    if (e.target == TensorEdit::Target::output) {
      if (e.seq == 0) fail("an output is that of an op", "as in \"120 #14: output = 0\"");
      if (!sign("(")) return;
      e.output = static_cast<int>(whole("the number of an output", 7));
      return want(")", "the number of the output");
    }
    want("(", found->name);
    e.name = until_bracket("the name");
    if (e.name.empty()) fail(fmt::format("{} is of a name, as in {}(fc1.weight)", found->name, found->name));
  }
  void element(TensorEdit& e) {
    Dims at;
    if (!sign("]")) {
      do {
        if (at.n == kMaxDims) fail(fmt::format("a tensor has at most {} axes", kMaxDims));
        at.push_back(whole("an index", int64_t{1} << 50));
      } while (sign(","));
      want("]", "the index");
    }
    e.element = at;
  }
  void change(TensorEdit& e) {
    using How = TensorEdit::How;
    if (sign("clamp")) {
      e.how = How::clamp;
      e.a = number("the lower bound");
      want("..", "the lower bound");
      e.b = number("the upper bound");
      if (!(e.a <= e.b)) fail("the lower bound is to be no more than the upper one");
      return;
    }
    if (sign("="))
      e.how = How::set;
    else if (sign("*"))
      e.how = How::scale;
    else if (sign("+"))
      e.how = How::add;
    else
      fail("a change is expected", "one of \"= 0.5\", \"* 0.1\", \"+ 1\", \"clamp -1..1\"");
    e.a = number("what it is changed by");
  }
};

/// The place that an edit writes.
Tensor place_of(const TensorEdit& edit, const Tensor& to) {
  if (!edit.element) return to;
  const Dims& index = *edit.element;
  bool there = index.n == to.ndim();
  for (int i = 0; there && i < index.n; ++i) there = index[i] < to.size(i);
  if (!there)
    throw Error(fmt::format("there is no element {} in a tensor of size {}", to_string(index), to_string(to.size())));
  Layout one{{}, {}, to.offset()};
  for (int i = 0; i < index.n; ++i) one.offset += index[i] * to.stride()[i];
  return view_of(to, one);
}

}  // namespace

double TensorEdit::of(double value) const {
  switch (how) {
    case How::set:
      return a;
    case How::add:
      return value + a;
    case How::scale:
      return value * a;
    case How::clamp:
      return std::isnan(value) ? value : std::clamp(value, a, b);
  }
  return value;
}

TensorEdit parse_edit(const std::string& text, int64_t step) { return EditReader(text).edit(step); }

std::vector<TensorEdit> parse_edits(const std::string& text) {
  std::vector<TensorEdit> all;
  for (const std::string& one : split_list(text)) all.push_back(parse_edit(one));
  return all;
}

std::string edit_text(const TensorEdit& e) {
  std::string text = std::to_string(e.step);
  if (e.seq) text += fmt::format(" #{}", e.seq);
  text += ": ";
  for (const EditTarget& t : kEditTargets)
    if (t.target == e.target) text += t.name;
  if (e.target != TensorEdit::Target::output)
    text += "(" + e.name + ")";
  else if (e.output)
    text += fmt::format("({})", e.output);
  if (e.element) text += to_string(*e.element);
  const char* how[] = {"=", "+", "*"};
  return text + (e.how == TensorEdit::How::clamp ? fmt::format(" clamp {}..{}", e.a, e.b)
                                                 : fmt::format(" {} {}", how[static_cast<int>(e.how)], e.a));
}

void apply_edit(const TensorEdit& edit, const Tensor& to) {
  const Tensor place = place_of(edit, to), before = to_host(place);
  // In f64, which holds whatever the tensor holds but for integers beyond 2^53.
  const Tensor after = empty(place.size(), DType::f64);
  auto* out = after.data<double>();
  Dims index = Dims::filled(place.ndim(), 0);
  for (int64_t k = 0, n = place.numel(); k < n; ++k) {
    out[k] = edit.of(value_at(before, index));
    for (int d = index.n - 1; d >= 0 && ++index[d] == place.size(d); --d) index[d] = 0;
  }
  const NoGrad off;
  copy_(place, after);
}

}  // namespace tenon
