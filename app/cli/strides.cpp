// tenon strides: what a chain of views makes of a size, whether it copies, and what it costs to walk.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/number.h"
#include "engine/spec/view_chain.h"
#include "engine/spec/walk_cost.h"

namespace tenon::app {
namespace {

/// "64x3x32x32"
Shape size_of_words(const std::string& text) {
  Shape size;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    const auto n = number_of(text.substr(at, end - at));
    constexpr double kMost = 1e12;
    if (!n || *n < 0 || *n > kMost || *n != static_cast<double>(static_cast<int64_t>(*n)))
      throw Error::usage(fmt::format("\"{}\" is no size", text), "As in 64x3x32x32");
    if (size.n == kMaxDims) throw Error::usage(fmt::format("a tensor has at most {} axes", kMaxDims));
    size.push_back(static_cast<int64_t>(*n));
    at = end + 1;
  }
  int64_t count = 1;
  for (const int64_t n : size)
    if (__builtin_mul_overflow(count, n, &count))
      throw Error::usage(fmt::format("{} has more elements than can be counted", text));
  return size;
}

nlohmann::json numbers_of(const Dims& d) { return std::vector<int64_t>(d.begin(), d.end()); }

int list_views(bool json) {
  std::vector<std::vector<std::string>> rows = {{"VIEW", "AS IN", "WHAT IT GIVES"}};
  for (const ViewFormDef& v : view_forms()) {
    if (json) print_json({{"view", v.name}, {"usage", v.usage}, {"help", v.help}});
    rows.push_back({v.name, v.usage, v.help});
  }
  rows.push_back({"[…]", "[0, ::-1, None, ...]", "an index, slices, a new axis, all axes between"});
  if (!json) print(table(rows));
  return 0;
}

int strides(const Args& args) {
  if (args.words() == 0) return list_views(args.json());
  const Layout of = Layout::contiguous(size_of_words(args.word(0)));
  DType dtype = DType::f32;
  if (const std::string name = args.text("--dtype", "f32"); !parse_dtype(name.c_str(), dtype))
    throw Error::usage(fmt::format("there is no dtype \"{}\"", name), "As in f32, bf16, i64");
  const auto item = static_cast<int64_t>(itemsize(dtype));
  std::vector<ViewStep> steps = {{"as it lies", of, {}}};
  if (args.words() > 1)
    for (ViewStep& s : view_chain(args.word(1), of, of.numel())) steps.push_back(std::move(s));
  std::vector<std::vector<std::string>> rows = {
      {"VIEW", "SIZE", "STRIDE", "OFFSET", "MEMORY", "CACHE LINES", "FETCHED", "TIMES"}};
  std::string reasons;
  for (const ViewStep& s : steps) {
    const WalkCost cost = walk_cost(s.layout, item);
    if (args.json())
      print_json({{"view", s.text},
                  {"size", numbers_of(s.layout.size)},
                  {"stride", numbers_of(s.layout.stride)},
                  {"offset", s.layout.offset},
                  {"contiguous", s.layout.is_contiguous()},
                  {"copies", !s.copies.empty()},
                  {"why", s.copies},
                  {"walked", cost.elements},
                  {"whole", cost.whole},
                  {"lines", cost.lines},
                  {"fetched", cost.fetched},
                  {"times", cost.times()}});
    rows.push_back({s.text, to_string(s.layout.size), to_string(s.layout.stride), count_text(s.layout.offset),
                    s.copies.empty() ? "the same" : "a copy, " + bytes_text(s.layout.numel() * item),
                    count_text(cost.lines), count_text(cost.fetched), fmt::format("{:.2f}", cost.times())});
    if (!s.copies.empty()) reasons += fmt::format("{} copies: {}.\n", s.text, s.copies);
    if (!cost.whole && s.text == steps.back().text)
      reasons += fmt::format("The first {} elements were walked.\n", count_text(cost.elements));
  }
  if (args.json()) return 0;
  print(table(rows, {false, false, false, true, false, true, true, true}));
  if (!reasons.empty()) print("\n" + reasons);
  return 0;
}

const bool registered_strides = register_command(
    {"strides",
     "[SIZE] [VIEWS]",
     0,
     2,
     {{"--dtype", "NAME", "of the elements (f32)"}, kJson},
     "what views make of a size (64x3x32x32 '.permute(0, 2, 3, 1)[::2]'), whether they copy, what walking them costs",
     strides});

}  // namespace
}  // namespace tenon::app
