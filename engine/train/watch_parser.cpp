// Reads the text of watches.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "core/name_pattern.h"
#include "engine/spec/text_reader.h"
#include "engine/train/watch.h"

namespace tenon {
namespace {

constexpr int64_t kLongestMedian = 100000;

std::string choices_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  return all;
}

/// condition := quantity relation; quantity := METRIC | MEASURE "(" subject ")"; subject := METRIC | KIND "(" PATTERN
/// ")" relation := (">" | ">=" | "<" | "<=") bound | ("outside" | "inside") NUMBER ".." NUMBER bound := NUMBER |
/// [NUMBER "*"] "median" "(" METRIC "," COUNT ")"
class WatchReader final : TextReader {
 public:
  /// `of_ops`: the one subject is output(...), see parse_op_condition().
  explicit WatchReader(std::string_view text, bool of_ops = false)
      : TextReader(of_ops ? "break" : "watches", text), of_ops_(of_ops) {}

  Watch watch() {
    Watch w = condition();
    if (word_is("every")) w.every = whole("the number of steps behind \"every\"", 1, int64_t{1} << 40);
    w.condition = trimmed(text_.substr(0, at_));
    if (w.every > 1 && w.of_evaluations())
      fail(fmt::format("\"every\" counts steps, and {} comes with evaluations", w.of), "leave it out");
    if (sign(":")) w.action = action();
    end();
    return w;
  }
  Watch only_condition() {
    Watch w = condition();
    w.condition = trimmed(text_.substr(0, at_));
    skip();
    if (at_ < text_.size()) fail("a condition ends here", "neither \"every\" nor what is to be done belongs to it");
    return w;
  }

 private:
  /// A word, and where it began.
  std::string word(size_t& from) {
    skip();
    from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  bool word_is(const char* what) {
    size_t from = 0;
    const bool it_is = word(from) == what;
    if (!it_is) at_ = from;
    return it_is;
  }
  void end() {
    skip();
    if (at_ < text_.size())
      fail("nothing was expected here", "a condition may be followed by \"every N\" and \": pause\"");
  }
  [[noreturn]] void no_such(const std::string& what, const std::string& word, const std::vector<std::string>& names,
                            size_t at) const {
    const std::string near = near_names(word, names.data(), names.size());
    fail(fmt::format("there is no {} \"{}\"", what, word),
         near + (near.empty() ? "" : " ") + "There are " + choices_of(names) + ".", at);
  }

  /// A number that ends before "..".
  double number(const std::string& what) {
    skip();
    size_t end = at_;
    const auto in_number = [&](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
    };
    while (end < text_.size() && in_number(text_[end]) && !text_.substr(end).starts_with("..")) ++end;
    double value = 0;
    const size_t from = at_ < end && text_[at_] == '+' ? at_ + 1 : at_;
    const auto [stop, code] = std::from_chars(text_.data() + from, text_.data() + end, value);
    if (from == end || code != std::errc() || stop != text_.data() + end || !std::isfinite(value))
      fail(fmt::format("{} is to be a number", what));
    at_ = end;
    return value;
  }
  int64_t whole(const std::string& what, int64_t least, int64_t most) {
    skip();
    const size_t from = at_;
    const double value = number(what);
    if (value != std::floor(value) || value < static_cast<double>(least) || value > static_cast<double>(most))
      fail(fmt::format("{} is to be a whole number from {} to {}", what, least, most), {}, from);
    return static_cast<int64_t>(value);
  }

  std::string metric() {
    size_t from = 0;
    std::string name = word(from);
    const std::vector<std::string> all = watched_metrics();
    if (std::find(all.begin(), all.end(), name) == all.end()) no_such("metric", name, all, from);
    return name;
  }

  void quantity(Watch& w) {
    size_t from = 0;
    const std::string name = word(from);
    if (name.empty())
      fail(of_ops_ ? "a measure is expected, as in max_abs(output(*))"
                   : "a metric or a measure is expected, as in loss or max_abs(grad(fc1))");
    if (of_ops_ && !watch_measures().find(name)) no_such("measure", name, watch_measures().names(), from);
    if (!sign("(")) {
      const std::vector<std::string> all = watched_numbers();
      if (std::find(all.begin(), all.end(), name) == all.end()) {
        std::vector<std::string> names = all;
        for (const std::string& m : watch_measures().names()) names.push_back(m);
        if (watch_measures().find(name))
          fail(fmt::format("{} is to be of something, as in {}(grad(*))", name, name), {}, from);
        no_such("metric or measure", name, names, from);
      }
      w.of = name;
      if (name == kMemoryGrowth) w.subject = WatchSubject::memory;
      return;
    }
    w.measure = watch_measures().find(name);
    if (!w.measure) no_such("measure", name, watch_measures().names(), from);
    subject(w);
    want(")", fmt::format("what {} is of", name));
  }

  void subject(Watch& w) {
    size_t from = 0;
    const std::string name = word(from);
    if (of_ops_) {
      if (name != "output" || !sign("("))
        fail("output(...) is expected", fmt::format("as in {}(output(*)) > 1", w.measure->name), from);
      w.subject = WatchSubject::output;
      pattern(w, name);
    } else if (!sign("(")) {
      const std::vector<std::string> all = watched_metrics();
      if (std::find(all.begin(), all.end(), name) == all.end()) {
        std::vector<std::string> names;
        for (const WatchSubjectText& s : watch_subjects()) names.push_back(std::string(s.name) + "(...)");
        names.insert(names.end(), all.begin(), all.end());
        no_such("subject", name, names, from);
      }
      w.of = name;
    } else {
      const auto& all = watch_subjects();
      const auto at = std::find_if(all.begin(), all.end(), [&](const auto& s) { return name == s.name; });
      if (at == all.end()) {
        std::vector<std::string> names;
        for (const WatchSubjectText& s : all) names.emplace_back(s.name);
        no_such("subject", name, names, from);
      }
      w.subject = at->subject;
      pattern(w, name);
    }
    if (w.measure->by_weights && w.subject != WatchSubject::update)
      fail(fmt::format("{} is of an update", w.measure->name),
           fmt::format("as in {}(update(*)) outside 1e-4..1e-2", w.measure->name), from);
  }

  /// Behind the "(" of a subject.
  void pattern(Watch& w, const std::string& of) {
    w.of = until_bracket("the pattern of " + of);
    if (w.of.empty()) fail(fmt::format("{} is of a pattern of names: {}(*) is of all", of, of));
  }

  void relation(Watch& w) {
    using R = Watch::Relation;
    const bool outside = word_is("outside");
    if (outside || word_is("inside")) {
      w.relation = outside ? R::outside : R::inside;
      skip();
      const size_t from = at_;
      w.low = number("the lower bound");
      want("..", "the lower bound");
      w.high = number("the upper bound");
      if (!(w.low < w.high)) fail("the lower bound is to be less than the upper one", {}, from);
      return;
    }
    if (sign(">="))
      w.relation = R::at_least;
    else if (sign(">"))
      w.relation = R::above;
    else if (sign("<="))
      w.relation = R::at_most;
    else if (sign("<"))
      w.relation = R::below;
    else
      fail("a comparison is expected", "one of >, >=, <, <=, outside A..B, inside A..B");
    bound(w);
  }

  void bound(Watch& w) {
    w.low = 1;
    if (of_ops_ || !word_is("median")) {
      w.low = number("the bound");
      if (of_ops_ || !sign("*")) return;
      if (!word_is("median")) fail("\"median(METRIC, N)\" is expected behind \"*\"");
    }
    want("(", "median");
    w.median_of = metric();
    want(",", "the metric of the median");
    w.median_over = whole("over how many values the median goes", 1, kLongestMedian);
    want(")", "the median");
  }

  Watch condition() {
    Watch w;
    quantity(w);
    relation(w);
    return w;
  }

  WatchAction action() {
    size_t from = 0;
    const std::string name = word(from);
    std::vector<std::string> names;
    for (const WatchAction a : kWatchActions) {
      if (name == watch_action_name(a)) return a;
      names.emplace_back(watch_action_name(a));
    }
    no_such("action", name, names, from);
  }

  bool of_ops_;
};

}  // namespace

Watch parse_watch(const std::string& text) { return WatchReader(text).watch(); }
Watch parse_condition(const std::string& text) { return WatchReader(text).only_condition(); }
Watch parse_op_condition(const std::string& text) { return WatchReader(text, true).only_condition(); }

std::vector<Watch> parse_watches(const std::string& text) {
  std::vector<Watch> all;
  for (const std::string& one : split_list(text)) {
    Watch w = parse_watch(one);
    for (const Watch& o : all)
      if (o.condition == w.condition)
        throw Error::usage(fmt::format("watches: \"{}\" is there twice", w.condition), "leave one of them out");
    all.push_back(std::move(w));
  }
  return all;
}

}  // namespace tenon
