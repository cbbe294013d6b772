#include "views/shared/watch_words.h"

#include <algorithm>
#include <cctype>

#include "engine/train/watch.h"

namespace tenon::views {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '*'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

std::string_view without_blanks(std::string_view t) {
  while (!t.empty() && is_blank(t.back())) t.remove_suffix(1);
  return t;
}
std::string_view last_word(std::string_view t) {
  t = without_blanks(t);
  size_t from = t.size();
  while (from > 0 && in_word(t[from - 1])) --from;
  return t.substr(from);
}

std::vector<std::string> metrics_and(std::vector<std::string> first) {
  for (std::string& m : watched_metrics()) first.push_back(std::move(m));
  return first;
}

/// All that may stand behind `before`, which ends where a word may begin.
std::vector<std::string> behind(std::string_view before, const std::vector<std::string>& layers) {
  before = without_blanks(before);
  std::vector<std::string> words;
  if (before.empty() || before.back() == ';') {
    for (const WatchMeasureDef& m : watch_measures()) words.push_back(m.name + "(");
    words.emplace_back(kMemoryGrowth);
    return metrics_and(std::move(words));
  }
  const char last = before.back();
  if (last == ':') {
    for (const WatchAction a : kWatchActions) words.emplace_back(watch_action_name(a));
    return words;
  }
  if (last == '(') {
    const std::string_view of = last_word(before.substr(0, before.size() - 1));
    if (of == "median") return metrics_and({});
    if (const WatchMeasureDef* m = watch_measures().find(of)) {
      for (const WatchSubjectText& s : watch_subjects())
        if (!m->by_weights || s.subject == WatchSubject::update) words.push_back(std::string(s.name) + "(");
      return m->by_weights ? words : metrics_and(std::move(words));
    }
    words = layers;
    words.emplace_back("*");
    return words;
  }
  if (last == '>' || last == '<' || last == '=' || last == '*') return {"median("};
  const bool compared = before.find_first_of("<>") != before.npos || before.find("side") != before.npos;
  if (compared) return {"every"};
  return {"outside", "inside"};
}

}  // namespace

WatchWords watch_words(std::string_view text, size_t cursor, const std::vector<std::string>& layers) {
  const std::string_view typed = text.substr(0, std::min(cursor, text.size()));
  WatchWords found;
  found.begin = typed.size() - (typed.empty() || is_blank(typed.back()) ? 0 : last_word(typed).size());
  const std::string_view word = typed.substr(found.begin);
  for (std::string& w : behind(typed.substr(0, found.begin), layers)) {
    if (!w.starts_with(word)) continue;
    found.whole |= w == word;
    found.words.push_back(std::move(w));
  }
  return found;
}

}  // namespace tenon::views
