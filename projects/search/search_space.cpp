#include "projects/search/search_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/number.h"
#include "engine/train/recipe.h"

namespace tenon::projects {
namespace {

constexpr int64_t kMostGrid = 1'000'000;

/// Four digits are enough to search with, and can be read.
std::string number_text(double v) { return attr_text(*number_of(fmt::format("{:.4g}", v))); }

/// The same within limits, which it keeps to the last digit.
std::string number_text(double v, double lo, double hi) {
  const std::string text = number_text(std::clamp(v, lo, hi));
  const double rounded = *number_of(text);
  return rounded < lo ? attr_text(lo) : rounded > hi ? attr_text(hi) : text;
}

std::vector<std::string> split(const std::string& text) {
  const char by = text.find('|') == text.npos ? ',' : '|';
  std::vector<std::string> out;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t to = std::min(text.find(by, from), text.size());
    std::string part = text.substr(from, to - from);
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    out.push_back(first == part.npos ? "" : part.substr(first, last - first + 1));
    from = to + 1;
  }
  return out;
}

Error wrong_range(const std::string& key, const std::string& text, const std::string& why) {
  return Error::usage(fmt::format("{}: \"{}\" is no range: {}", key, text, why),
                      "A range is lin:0..0.5, log:1e-4..1e-1 or int:1..8, and log:1e-4..1e-1:4 for 4 points in a grid; "
                      "a list is adam,sgd.");
}

/// LO..HI with an optional :N; nothing where the text has no two dots between two numbers and needs none.
bool read_range(SearchKey& k, const std::string& whole, std::string text, bool must) {
  if (const size_t at = text.rfind(':'); at != text.npos) {
    const auto n = number_of(text.substr(at + 1));
    if (!n || *n != std::floor(*n) || *n < 2 || *n > 1000) {
      if (!must) return false;
      throw wrong_range(k.key, whole, "behind the second colon stands how many points a grid has, 2 to 1000");
    }
    k.points = static_cast<int>(*n);
    text.resize(at);
  }
  const size_t dots = text.find("..");
  const auto lo = dots == text.npos ? std::nullopt : number_of(text.substr(0, dots));
  const auto hi = dots == text.npos ? std::nullopt : number_of(text.substr(dots + 2));
  if (!lo || !hi || !std::isfinite(*lo) || !std::isfinite(*hi)) {
    if (!must) return false;
    throw wrong_range(k.key, whole, "it wants two numbers with two dots between them");
  }
  if (!(*lo < *hi)) throw wrong_range(k.key, whole, "its end is not above its beginning");
  k.lo = *lo;
  k.hi = *hi;
  return true;
}

SearchKey read_key(const std::string& key, const std::string& text, const Recipe& base) {
  SearchKey k;
  k.key = key;
  const AttrValue& usual = base.fallback(key);  // throws where there is no such key
  const bool whole = std::holds_alternative<int64_t>(usual), real = std::holds_alternative<double>(usual);
  const std::string kind = text.substr(0, std::min<size_t>(4, text.size()));
  const bool named = kind == "lin:" || kind == "log:" || kind == "int:";
  if (named && !whole && !real)
    throw Error::usage(fmt::format("{} is {}: it has no range", key, attr_kind(usual)),
                       "List what it may be: --key " + key + "=A,B");
  if ((whole || real) && read_range(k, text, named ? text.substr(4) : text, named)) {
    k.kind = kind == "log:" ? SearchKey::Kind::log : kind == "int:" ? SearchKey::Kind::whole : SearchKey::Kind::linear;
    k.rounds = whole || k.kind == SearchKey::Kind::whole;
    if (k.kind == SearchKey::Kind::log && !(k.lo > 0))
      throw wrong_range(key, text, "a logarithmic range begins above 0");
    if (k.rounds && (k.lo != std::floor(k.lo) || k.hi != std::floor(k.hi)))
      throw wrong_range(key, text, "its ends are no whole numbers");
    k.values = {attr_text(k.lo), attr_text(k.hi)};
  } else {
    k.values = split(text);
    k.numbers = whole || real;
  }
  // Every value goes through what `--set` goes through.
  for (const std::string& value : k.values) Recipe(base).set(key, value);
  if (k.kind != SearchKey::Kind::values) k.values.clear();
  for (size_t i = 0; i < k.values.size(); ++i)
    if (std::find(k.values.begin(), k.values.begin() + static_cast<int64_t>(i), k.values[i]) !=
        k.values.begin() + static_cast<int64_t>(i))
      throw Error::usage(fmt::format("{}: the value {} is listed twice", key, k.values[i]));
  return k;
}

/// Whether a key says anything, in the recipe itself or under one of the definitions that the sweep chooses.
void check_means_something(const std::string& key, const std::vector<SearchKey>& all, const Recipe& base) {
  for (const SearchKey& other : all)
    for (const std::string& value : other.values) {
      Recipe r = base;
      r.set(other.key, value);
      try {
        return r.check_used(key);
      } catch (const Error&) {  // under another one, perhaps
      }
    }
  base.check_used(key);
}

}  // namespace

std::string SearchKey::text() const {
  if (kind == Kind::values) {
    const bool commas = std::any_of(values.begin(), values.end(), [](const auto& v) { return v.find(',') != v.npos; });
    return fmt::format("{}", fmt::join(values, commas ? "|" : ","));
  }
  const char* name = kind == Kind::log ? "log" : kind == Kind::whole ? "int" : "lin";
  return fmt::format("{}:{}..{}{}", name, attr_text(lo), attr_text(hi), points ? fmt::format(":{}", points) : "");
}

std::string SearchKey::value_at(double place) const {
  place = std::clamp(place, 0.0, std::nextafter(1.0, 0.0));
  if (kind == Kind::values) return values[static_cast<size_t>(place * static_cast<double>(values.size()))];
  if (kind == Kind::log) {
    const double v = std::exp(std::log(lo) + place * (std::log(hi) - std::log(lo)));
    return rounds ? attr_text(std::clamp(std::round(v), lo, hi)) : number_text(v, lo, hi);
  }
  if (rounds) return attr_text(std::floor(lo + place * (hi - lo + 1)));
  return number_text(lo + place * (hi - lo), lo, hi);
}

double SearchKey::place_of(const std::string& value) const {
  if (kind == Kind::values) {
    const auto at = std::find(values.begin(), values.end(), value);
    if (at == values.end()) return 0.5;
    return (static_cast<double>(at - values.begin()) + 0.5) / static_cast<double>(values.size());
  }
  const auto v = number_of(value);
  if (!v || (kind == Kind::log && !(*v > 0))) return 0.5;
  if (kind == Kind::log) return std::clamp((std::log(*v) - std::log(lo)) / (std::log(hi) - std::log(lo)), 0.0, 1.0);
  return std::clamp(rounds ? (*v - lo + 0.5) / (hi - lo + 1) : (*v - lo) / (hi - lo), 0.0, 1.0);
}

int64_t SearchKey::different(int64_t most) const {
  if (kind == Kind::values) return std::min<int64_t>(static_cast<int64_t>(values.size()), most);
  return rounds && hi - lo + 1 < static_cast<double>(most) ? static_cast<int64_t>(hi - lo + 1) : most;
}

int64_t SearchKey::grid_size() const {
  if (kind == Kind::values) return static_cast<int64_t>(values.size());
  const int64_t wanted = points ? points : kGridPoints;
  return rounds && kind != Kind::log ? different(wanted) : wanted;
}

std::string SearchKey::grid_value(int64_t at) const {
  if (kind == Kind::values) return values[static_cast<size_t>(at)];
  const double share = static_cast<double>(at) / static_cast<double>(grid_size() - 1);
  const double v =
      kind == Kind::log ? std::exp(std::log(lo) + share * (std::log(hi) - std::log(lo))) : lo + share * (hi - lo);
  return rounds ? attr_text(std::clamp(std::round(v), lo, hi)) : number_text(v, lo, hi);
}

SearchSpace::SearchSpace(const Settings& keys, const Recipe& base) {
  if (keys.empty())
    throw Error::usage("a sweep without a key searches nothing",
                       "Say what to search: --key optimizer.lr=log:1e-4..1e-1");
  for (const auto& [key, text] : keys) {
    if (std::any_of(keys_.begin(), keys_.end(), [&key = key](const SearchKey& k) { return k.key == key; }))
      throw Error::usage(fmt::format("the key {} is given twice", key), "List all of its values in one place.");
    keys_.push_back(read_key(key, text, base));
  }
  for (const SearchKey& k : keys_) check_means_something(k.key, keys_, base);
}

Settings SearchSpace::texts() const {
  Settings out;
  for (const SearchKey& k : keys_) out.emplace_back(k.key, k.text());
  return out;
}

Settings SearchSpace::settings(const std::vector<double>& point) const {
  Settings out;
  for (size_t i = 0; i < keys_.size(); ++i) out.emplace_back(keys_[i].key, keys_[i].value_at(point[i]));
  return out;
}

std::vector<double> SearchSpace::point(const Settings& settings) const {
  std::vector<double> out(keys_.size(), 0.5);
  for (size_t i = 0; i < keys_.size(); ++i)
    for (const auto& [key, value] : settings)
      if (key == keys_[i].key) out[i] = keys_[i].place_of(value);
  return out;
}

size_t SearchSpace::features() const {
  size_t n = 0;
  for (const SearchKey& k : keys_) n += k.kind == SearchKey::Kind::values && !k.numbers ? k.values.size() : 1;
  return n;
}

std::vector<double> SearchSpace::features(const Settings& settings) const {
  const std::vector<double> places = point(settings);
  std::vector<double> out;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const SearchKey& k = keys_[i];
    if (k.kind != SearchKey::Kind::values || k.numbers) {
      out.push_back(places[i]);
      continue;
    }
    const auto at = static_cast<size_t>(places[i] * static_cast<double>(k.values.size()));
    for (size_t v = 0; v < k.values.size(); ++v) out.push_back(v == at ? std::sqrt(0.5) : 0);  // a distance of 1
  }
  return out;
}

int64_t SearchSpace::different(int64_t most) const {
  int64_t n = 1;
  for (const SearchKey& k : keys_) n = std::min(most, n * k.different(most));
  return n;
}

int64_t SearchSpace::grid_size() const {
  int64_t n = 1;
  for (const SearchKey& k : keys_) n = std::min(kMostGrid + 1, n * k.grid_size());
  return n;
}

Settings SearchSpace::grid_point(int64_t at) const {
  Settings out(keys_.size());
  for (size_t i = keys_.size(); i-- > 0;) {
    out[i] = {keys_[i].key, keys_[i].grid_value(at % keys_[i].grid_size())};
    at /= keys_[i].grid_size();
  }
  return out;
}

std::string suggested_range(const AttrDef& def, const Recipe& base) {
  if (!def.choices.empty()) return fmt::format("{}", fmt::join(def.choices, ","));
  const AttrValue& now = base.at(def.name);
  if (std::holds_alternative<bool>(now)) return "true,false";
  const bool whole = std::holds_alternative<int64_t>(now), limited = def.min != def.max;
  if (!whole && !std::holds_alternative<double>(now)) return attr_text(now);
  const double v = whole ? static_cast<double>(std::get<int64_t>(now)) : std::get<double>(now);
  const double least = limited ? def.min : std::numeric_limits<double>::lowest(),
               most = limited ? def.max : std::numeric_limits<double>::max();
  const auto range = [&](const char* kind, double lo, double hi) {
    lo = std::clamp(lo, least, most);
    hi = std::clamp(hi, least, most);
    if (!(lo < hi)) return attr_text(now);
    return fmt::format("{}:{}..{}", kind, number_text(lo, least, most), number_text(hi, least, most));
  };
  if (whole) return range("int", std::floor(v / 2), std::max(v * 2, std::floor(v / 2) + 1));
  if (v > 0.5 && limited && most <= 1) return range("lin", 1 - 2 * (1 - v), 1 - (1 - v) / 10);  // a memory
  if (v > 0.05 && limited && most <= 1) return range("lin", v / 2, v * 2);                      // a share
  if (v > 0) return range("log", v / 10, v * 10);
  return range("lin", 0, 0.1);
}

}  // namespace tenon::projects
