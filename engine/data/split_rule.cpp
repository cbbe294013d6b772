#include "engine/data/split_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <regex>

#include "core/error.h"
#include "engine/data/sampler.h"
#include "engine/data/time_text.h"

namespace tenon::data {
namespace {

using Way = SplitRule::Way;
using Rows = std::vector<int64_t>;
constexpr const char* kWays[] = {"", "spread", "random", "stratified", "group", "time"};

int64_t part_of(int64_t n, double share) { return std::llround(share * static_cast<double>(n)); }

/// The rows of each word, in the order of the words.
std::map<std::string, Rows> by_word(const SplitWords& words) {
  std::map<std::string, Rows> all;
  for (size_t i = 0; i < words.of.size(); ++i) all[words.of[i]].push_back(static_cast<int64_t>(i));
  return all;
}

Parts sorted_parts(Parts parts) {
  std::sort(parts.train.begin(), parts.train.end());
  std::sort(parts.test.begin(), parts.test.end());
  return parts;
}

Parts divide_at_random(const SplitRule& rule, int64_t samples) {
  const Rows all = random(samples)->order(rule.seed, 0);
  const auto cut = all.begin() + part_of(samples, rule.share);
  return sorted_parts({Rows(cut, all.end()), Rows(all.begin(), cut)});
}

Parts divide_classes(const SplitRule& rule, const SplitWords& words) {
  const auto classes = by_word(words);
  if (2 * classes.size() > words.of.size())
    throw Error(fmt::format("data.split = stratified: {} has {} different values in {} samples, too many for classes",
                            words.what, classes.size(), words.of.size()),
                "data.split = random takes them as they come");
  Parts parts;
  int64_t drawn = 0;
  for (const auto& [word, rows] : classes) {
    const auto n = static_cast<int64_t>(rows.size());
    // A class of two has one sample in each part.
    int64_t test = part_of(n, rule.share);
    if (n > 1 && rule.share > 0) test = std::clamp<int64_t>(test, 1, n - 1);
    for (int64_t place : random(n)->order(rule.seed, drawn++))
      (test-- > 0 ? parts.test : parts.train).push_back(rows[static_cast<size_t>(place)]);
  }
  return sorted_parts(std::move(parts));
}

Parts divide_groups(const SplitRule& rule, const SplitWords& words, Remark& told) {
  const auto groups = by_word(words);
  if (groups.size() < 2)
    throw Error(fmt::format("data.split = group: every sample is of the same group by {}", words.what),
                "data.split_by names another one");
  std::vector<const Rows*> lists;
  for (const auto& [word, rows] : groups) lists.push_back(&rows);
  const Rows order = random(static_cast<int64_t>(lists.size()))->order(rule.seed, 0);
  const auto samples = static_cast<int64_t>(words.of.size()), wanted = part_of(samples, rule.share);
  // A group goes to the test where that brings it nearer to its share; the smallest one where none does.
  std::vector<char> test(lists.size(), 0);
  int64_t have = 0, taken = 0;
  for (int64_t g : order) {
    const auto n = static_cast<int64_t>(lists[static_cast<size_t>(g)]->size());
    if (have + n - wanted >= wanted - have) continue;
    test[static_cast<size_t>(g)] = 1, have += n, ++taken;
  }
  if (taken == 0 && rule.share > 0) {
    const auto least = *std::min_element(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return lists[static_cast<size_t>(a)]->size() < lists[static_cast<size_t>(b)]->size();
    });
    test[static_cast<size_t>(least)] = 1, taken = 1;
  }
  Parts parts;
  for (size_t g = 0; g < lists.size(); ++g) {
    Rows& to = test[g] ? parts.test : parts.train;
    to.insert(to.end(), lists[g]->begin(), lists[g]->end());
  }
  told.text = fmt::format("Split by group, {}: {} of {} groups are kept for the test", words.what, taken, lists.size());
  return sorted_parts(std::move(parts));
}

Parts divide_times(const SplitRule& rule, const SplitWords& words, const std::function<Source(int64_t)>& source,
                   Remark& told) {
  std::vector<double> times;
  TimeText::Kind kind = TimeText::Kind::none;
  for (size_t i = 0; i < words.of.size(); ++i) {
    const TimeText t = parse_time(words.of[i]);
    const bool mixed = t.kind != TimeText::Kind::none && kind != TimeText::Kind::none && t.kind != kind;
    if (t.kind == TimeText::Kind::none || mixed)
      throw Error(fmt::format("{}: {} is \"{}\", {}", source(static_cast<int64_t>(i)).text(), words.what, words.of[i],
                              !mixed                         ? "which is no time"
                              : kind == TimeText::Kind::date ? "a number, and others are dates"
                                                             : "a date, and others are numbers"),
                  "times are numbers, or dates as 2024-03-01, 2024-03-01 12:30:05 and 01.03.2024");
    kind = t.kind;
    times.push_back(t.value);
  }
  Rows order(times.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](size_t place) { return times[static_cast<size_t>(order[place])]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return times[static_cast<size_t>(a)] < times[static_cast<size_t>(b)]; });
  const size_t n = order.size();
  size_t cut = n - static_cast<size_t>(part_of(static_cast<int64_t>(n), rule.share));
  if (cut > 0 && cut < n && at(cut - 1) == at(cut)) {
    // Samples of one time stay together: the nearer end of them.
    size_t begin = cut, end = cut;
    while (begin > 0 && at(begin - 1) == at(cut)) --begin;
    while (end < n && at(end) == at(cut)) ++end;
    if (begin == 0 && end == n)
      throw Error(fmt::format("data.split = time: every sample is of the same time by {}", words.what),
                  "data.split_by names another one");
    cut = begin == 0 || (end < n && end - cut < cut - begin) ? end : begin;
  }
  Parts parts{Rows(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(cut)),
              Rows(order.begin() + static_cast<std::ptrdiff_t>(cut), order.end())};
  const auto word = [&](size_t place) { return words.of[static_cast<size_t>(order[place])]; };
  told.text = fmt::format("Split by time, {}", words.what);
  if (cut > 0 && cut < n)
    told.text += fmt::format(": the training set ends with {}, the test begins with {}", word(cut - 1), word(cut));
  return sorted_parts(std::move(parts));
}

void refuse_missing(const SplitRule& rule, const SplitWords& words, const std::function<Source(int64_t)>& source) {
  Remark without;
  for (size_t i = 0; i < words.of.size(); ++i)
    if (words.of[i].empty()) without.add(source(static_cast<int64_t>(i)));
  if (without.count == 0) return;
  without.text = fmt::format("data.split = {}: {} of {} samples have no {}", kWays[static_cast<size_t>(rule.way)],
                             without.count, words.of.size(), words.what);
  throw Error(without.line(), "fill them in, or data.split = random");
}

}  // namespace

std::vector<AttrDef> split_attrs(const std::string& own, const std::string& how) {
  std::vector<std::string> ways(std::begin(kWays) + 1, std::end(kWays));
  std::string help =
      "how samples are kept for the test: spread evenly, at random, so of each class, whole groups, or the latest";
  if (!own.empty()) {
    ways.insert(ways.begin(), own);
    help += "; " + own + ": " + how;
  }
  const std::string usual = ways.front();
  return {
      test_share_attr(),
      {"split", usual, 0, 0, std::move(help), std::move(ways)},
      {"split_by", std::string(), 0, 0,
       "what group, time or class of a sample is for data.split: a column of a table; a pattern of files' names, "
       "as (p[0-9]+)_, or folder; an array beside x.npy; of texts the files, or a pattern of their names"},
      {"split_seed", int64_t{0}, 0, 1e15, "of what data.split draws; runs of other seeds have the same test split"}};
}

SplitRule split_rule(const AttrValues& v) {
  SplitRule rule;
  const std::string& way = v.text("split");
  const auto at = std::find(std::begin(kWays), std::end(kWays), way);
  rule.way = at == std::end(kWays) ? Way::own : static_cast<Way>(at - std::begin(kWays));
  rule.share = v.number("test_share");
  rule.by = v.text("split_by");
  rule.seed = static_cast<uint64_t>(v.integer("split_seed"));
  if (!rule.by.empty() && !rule.by_words())
    throw Error::usage(fmt::format("data.split_by = {}: data.split = {} has no use for it", rule.by, way),
                       "data.split = group, time or stratified divides by it");
  return rule;
}

void refuse_rule(const SplitRule& rule, const std::string& where) {
  if (rule.way <= Way::spread) return;
  throw Error::usage(fmt::format("data.split = {}: {} is divided into training and test already",
                                 kWays[static_cast<size_t>(rule.way)], where),
                     "leave data.split as it is, or put all samples in one place");
}

Parts divide(const SplitRule& rule, int64_t samples, const SplitWords& words,
             const std::function<Source(int64_t)>& source, Remark& told) {
  told.id = "split";
  if (rule.by_words()) refuse_missing(rule, words, source);
  Parts parts;
  switch (rule.way) {
    case Way::own:
    case Way::spread:
      parts = split_rows(samples, rule.share);
      told.text = "Split evenly: the samples for the test are spread over all";
      break;
    case Way::random:
      parts = divide_at_random(rule, samples);
      told.text = "Split at random";
      break;
    case Way::stratified:
      parts = divide_classes(rule, words);
      told.text = fmt::format("Split at random, the same share of each class ({})", words.what);
      break;
    case Way::group:
      parts = divide_groups(rule, words, told);
      break;
    case Way::time:
      parts = divide_times(rule, words, source, told);
      break;
  }
  told.text += fmt::format("; {} of {} samples are for the test", parts.test.size(), samples);
  return parts;
}

std::function<std::string(const std::string&)> name_pattern(const std::string& text, const std::string& key) {
  std::shared_ptr<const std::regex> pattern;
  try {
    pattern = std::make_shared<const std::regex>(text);
  } catch (const std::regex_error& e) {
    throw Error::usage(fmt::format("{} = {}: it is no regular expression: {}", key, text, e.what()),
                       "as (p[0-9]+)_ takes p12 of p12_left.png");
  }
  return [pattern](const std::string& name) -> std::string {
    constexpr size_t kLongest = 1024;  // std::regex goes deeper with every character
    std::smatch found;
    if (name.size() > kLongest || !std::regex_search(name, found, *pattern)) return {};
    return found.size() > 1 ? found[1].str() : found[0].str();
  };
}

}  // namespace tenon::data
