#include "engine/spec/view_chain.h"

#include <fmt/format.h>

#include <cctype>

#include "core/error.h"
#include "core/number.h"
#include "engine/spec/text_reader.h"

namespace tenon {

namespace {
Registry<ViewFormDef>& view_form_registry() {
  static auto& all = *new Registry<ViewFormDef>("view");
  return all;
}
}  // namespace

bool register_view_form(ViewFormDef def, Place place) { return view_form_registry().add(std::move(def), place); }
const Registry<ViewFormDef>& view_forms() { return view_form_registry(); }

void ViewArgs::refuse() const { throw Error::usage("this view is written " + usage_); }

int64_t ViewArgs::number(size_t i) const {
  if (i >= args_.size() || args_[i].list) refuse();
  return args_[i].numbers[0];
}

Dims ViewArgs::dims(size_t i) const {
  if (i >= args_.size() || !args_[i].list) refuse();
  if (args_[i].numbers.size() > kMaxDims)
    throw Error::usage(
        fmt::format("{} axes are more than the {} that a tensor may have", args_[i].numbers.size(), kMaxDims));
  return Dims(args_[i].numbers);
}

Dims ViewArgs::dims() const {
  if (args_.size() == 1 && args_[0].list) return dims(0);
  expect(0, kMaxDims);
  Dims all;
  for (size_t i = 0; i < args_.size(); ++i) all.push_back(number(i));
  return all;
}

void ViewArgs::expect(size_t least, size_t most) const {
  if (args_.size() < least || args_.size() > most) refuse();
}

std::string why_no_view(const Layout& of, const Shape& to) {
  Layout out;
  if (of.view(to, out)) return {};
  int last = -1;  // the axis before, of those that are stepped along
  for (int a = 0; a < of.ndim(); ++a) {
    if (of.size[a] == 1) continue;
    if (last >= 0 && of.stride[last] != of.size[a] * of.stride[a])
      return fmt::format(
          "axes {} and {} cannot be walked as one: a step along axis {} is {} elements, and all of axis {} is {}", last,
          a, last, of.stride[last], a, of.size[a] * of.stride[a]);
    last = a;
  }
  return "no strides walk its elements in that shape";
}

namespace {

/// One place in brackets: "2", "::-1", "None", "...".
struct IndexItem {
  enum class Kind : uint8_t { number, slice, fresh, rest };
  Kind kind = Kind::slice;
  int64_t at = 0;
  std::optional<int64_t> start, end;
  int64_t step = 1;
};

Layout indexed(const Layout& of, const std::vector<IndexItem>& items) {
  using Kind = IndexItem::Kind;
  int taken = 0;
  bool rest = false;
  for (const IndexItem& i : items) {
    taken += i.kind == Kind::number || i.kind == Kind::slice;
    if (i.kind != Kind::rest) continue;
    if (rest) throw Error::usage("\"...\" stands twice");
    rest = true;
  }
  if (taken > of.ndim())
    throw Error::usage(fmt::format("{} places are more than the {} axes of {}", taken, of.ndim(), to_string(of.size)));
  Layout l = of;
  int axis = 0;
  for (const IndexItem& i : items) {
    switch (i.kind) {
      case Kind::rest:
        axis += of.ndim() - taken;
        break;
      case Kind::fresh:
        if (l.ndim() == kMaxDims) throw Error::usage(fmt::format("a tensor has at most {} axes", kMaxDims));
        l = l.unsqueeze(axis++);
        break;
      case Kind::number:
        l = l.select(axis, i.at);
        break;
      case Kind::slice: {
        const int64_t n = l.size[axis];
        const int64_t from = i.start.value_or(i.step > 0 ? 0 : n - 1), to = i.end.value_or(i.step > 0 ? n : -n - 1);
        l = l.slice(axis++, from, to, i.step);
        break;
      }
    }
  }
  return l;
}

class ChainReader : TextReader {
 public:
  ChainReader(const std::string& text, Layout of, int64_t storage)
      : TextReader("view", text), now_(of), storage_(storage) {}

  std::vector<ViewStep> read() {
    std::vector<ViewStep> steps;
    for (skip(); at_ < text_.size(); skip()) {
      const size_t from = at_;
      ViewResult made = one(from, steps.empty());
      steps.push_back({trimmed(text_.substr(from, at_ - from)), made.layout, made.copies});
      now_ = made.layout;
      if (!made.copies.empty()) storage_ = now_.numel();
    }
    return steps;
  }

 private:
  ViewResult one(size_t from, bool first) {
    try {
      if (sign("[")) return {indexed(now_, places())};
      // The first may stand without its point, and a name without brackets, as T does.
      if (!sign(".") && !first) fail("\".\" or \"[\" is expected", "As in .permute(1, 0)[::2]");
      const std::string name = word();
      const ViewFormDef* def = view_forms().find(name);
      if (!def) {
        const std::vector<std::string> all = view_forms().names();
        const std::string near = near_names(name, all.data(), all.size());
        fail(fmt::format("there is no view \"{}\"", name), near.empty() ? "tenon strides lists them" : near, from);
      }
      const std::vector<ViewArgs::Arg> args = sign("(") ? arguments() : std::vector<ViewArgs::Arg>();
      return def->apply(now_, ViewArgs(def->usage, args), storage_);
    } catch (const Error& e) {
      if (e.message().starts_with("view: ")) throw;  // says where
      fail(e.message(), e.hint(), from);
    }
  }
  std::string word() {
    const size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (from == at_) fail("a view is expected", "As in .permute(1, 0)");
    return std::string(text_.substr(from, at_ - from));
  }
  std::optional<int64_t> maybe_number() {
    skip();
    size_t end = at_;
    if (end < text_.size() && text_[end] == '-') ++end;
    const size_t digits = end;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end]))) ++end;
    if (end == digits) return {};
    constexpr size_t kMost = 15;  // sums and products of two stay far from the end of the integers
    if (end - digits > kMost) fail("a number that large means nothing here");
    const auto x = number_of(std::string(text_.substr(at_, end - at_)));
    at_ = end;
    return x ? std::optional<int64_t>(static_cast<int64_t>(*x)) : std::nullopt;
  }
  int64_t number() {
    const auto x = maybe_number();
    if (!x) fail("a whole number is expected");
    return *x;
  }
  std::vector<ViewArgs::Arg> arguments() {
    std::vector<ViewArgs::Arg> args;
    if (sign(")")) return args;
    do {
      ViewArgs::Arg a;
      const bool square = sign("[");
      a.list = square || sign("(");
      if (a.list) {
        const char* close = square ? "]" : ")";
        while (!sign(close)) {
          a.numbers.push_back(number());
          if (!sign(",")) {
            want(close, "the list");
            break;
          }
        }
      } else {
        a.numbers.push_back(number());
      }
      args.push_back(std::move(a));
    } while (sign(","));
    want(")", "what the view is given");
    return args;
  }
  std::vector<IndexItem> places() {
    std::vector<IndexItem> items;
    do {
      IndexItem i;
      if (sign("...")) {
        i.kind = IndexItem::Kind::rest;
      } else if (sign("None")) {
        i.kind = IndexItem::Kind::fresh;
      } else {
        i.start = maybe_number();
        if (sign(":")) {
          i.end = maybe_number();
          if (sign(":"))
            if (const auto step = maybe_number()) i.step = *step;
        } else if (i.start) {
          i.kind = IndexItem::Kind::number;
          i.at = *i.start;
        } else {
          fail("an index, a slice, None or ... is expected", "As in [0], [::2], [1:, None]");
        }
      }
      items.push_back(i);
    } while (sign(","));
    want("]", "the index");
    return items;
  }

  Layout now_;
  int64_t storage_;
};

}  // namespace

std::vector<ViewStep> view_chain(const std::string& text, const Layout& of, int64_t storage) {
  return ChainReader(text, of, storage).read();
}

}  // namespace tenon
