#include "engine/train/weight_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/name_pattern.h"
#include "engine/model/graph_module.h"
#include "engine/train/freeze.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

constexpr const char* kMapKey = "init.map";

struct Rule {
  std::string from, to;
};

std::vector<Rule> parse_rules(const std::string& text) {
  std::vector<Rule> rules;
  for (const std::string& part : split_list(text)) {
    const size_t at = part.find('=');
    const auto stars = [](std::string_view s) { return std::count(s.begin(), s.end(), '*'); };
    if (at == part.npos || at == 0)
      throw Error::usage(fmt::format("{}: \"{}\" is no rule", kMapKey, part),
                         "a rule is NAME IN THE FILE=NAME IN THE MODEL, as in \"backbone.*=features.*\"");
    Rule r{part.substr(0, at), part.substr(at + 1)};
    if (stars(r.to) > stars(r.from))
      throw Error::usage(fmt::format("{}: \"{}\" has more stars behind the = than before it", kMapKey, part),
                         "each * behind it is what one before it stood for");
    rules.push_back(std::move(r));
  }
  return rules;
}

/// What a name becomes; nothing where no rule fits it.
std::optional<std::string> renamed(const std::string& name, const std::vector<Rule>& rules) {
  std::vector<std::string_view> stars;
  for (const Rule& r : rules) {
    if (!fits_pattern(r.from, name, &stars)) continue;
    std::string to;
    size_t star = 0;
    for (char c : r.to)
      if (c == '*')
        to += stars[star++];
      else
        to += c;
    return to;
  }
  return {};
}

/// Without the keys of the dictionaries that hold it: "state_dict/fc.weight" is "fc.weight".
std::string bare(const std::string& name) { return name.substr(name.rfind('/') + 1); }
std::string last_name(const std::string& name) {
  const size_t at = name.find_last_of("./");
  return at == name.npos ? name : name.substr(at + 1);
}
/// PyTorch's count of batches, on which nothing here depends.
bool counts_batches(const std::string& name) { return last_name(name) == "num_batches_tracked"; }

/// Names whose last part says what a tensor is to its layer: tensors of two such kinds are never paired by shape.
bool says_its_part(const std::string& part) {
  constexpr std::array kParts{"weight", "bias", "running_mean", "running_var"};
  return std::find(kParts.begin(), kParts.end(), part) != kParts.end();
}

class Mapper {
 public:
  Mapper(WeightMap& map, const WeightRules& rules) : m_(map), rules_(parse_rules(rules.map)) {
    for (size_t i = 0; i < m_.model.size(); ++i) at_[m_.model[i].name] = i;
    m_.rows.resize(m_.model.size());
    for (size_t i = 0; i < m_.rows.size(); ++i) m_.rows[i].target = static_cast<int>(i);
    left_.assign(m_.given.size(), WeightState::left_over);
    used_.assign(m_.given.size(), false);
  }

  void by_names() {
    // A rule comes before a name, and a whole name before one without its dictionary.
    for (int pass = 0; pass < 3; ++pass) {
      std::map<size_t, size_t> of_pass;
      for (size_t i = 0; i < m_.given.size(); ++i) {
        if (used_[i] || left_[i] == WeightState::left_out) continue;
        const std::string& name = m_.given[i].name;
        const auto rule = renamed(name, rules_);
        std::string to = pass == 0 ? rule.value_or("") : pass == 1 ? name : bare(name);
        if (pass == 0 && rule && rule->empty()) left_[i] = WeightState::left_out;
        if (rule.has_value() != (pass == 0) || to.empty()) continue;
        const auto found = at_.find(to);
        if (found == at_.end() || m_.rows[found->second].source >= 0) {
          if (found == at_.end() || !of_pass.contains(found->second)) continue;
          const std::string& other = m_.given[of_pass[found->second]].name;
          throw Error::usage(
              fmt::format("{}: both \"{}\" and \"{}\" of the file are to be \"{}\"", kMapKey, other, name, to),
              fmt::format("leave one out: {}=\"{}=\"", kMapKey, name));
        }
        of_pass[found->second] = i;
        pair(found->second, i, pass == 0 ? WeightState::by_rule : WeightState::by_name);
      }
    }
  }

  /// Of each shape, and first of each kind, what is left where both sides have as many: in order.
  void by_shapes(bool take) {
    using Key = std::pair<std::string, std::vector<int64_t>>;
    for (bool kinds : {true, false}) {
      std::map<Key, std::pair<std::vector<size_t>, std::vector<size_t>>> groups;
      for (size_t i = 0; i < m_.rows.size(); ++i)
        if (m_.rows[i].source < 0)
          groups[{kinds ? last_name(m_.model[i].name) : "", m_.model[i].shape}].first.push_back(i);
      for (size_t i = 0; i < m_.given.size(); ++i)
        if (!used_[i] && left_[i] == WeightState::left_over && m_.given[i].problem.empty() &&
            !counts_batches(m_.given[i].name))
          groups[{kinds ? last_name(bare(m_.given[i].name)) : "", m_.given[i].shape}].second.push_back(i);
      for (const auto& [key, both] : groups) {
        if (both.first.size() != both.second.size()) continue;
        for (size_t k = 0; k < both.first.size(); ++k) {
          const std::string one = last_name(m_.model[both.first[k]].name),
                            other = last_name(bare(m_.given[both.second[k]].name));
          if (one != other && says_its_part(one) && says_its_part(other)) continue;
          pair(both.first[k], both.second[k], take ? WeightState::by_shape : WeightState::suggested);
        }
      }
    }
  }

  /// The change of a beginning ("module." to nothing) by which most names that found no partner would fit.
  void suggest_rule() {
    std::map<std::pair<std::string, std::string>, int> votes;
    for (size_t i = 0; i < m_.given.size(); ++i) {
      const GivenTensor& g = m_.given[i];
      if (used_[i] || left_[i] != WeightState::left_over || counts_batches(g.name)) continue;
      for (const WeightRow& r : m_.rows) {
        const ModelTensor& t = m_.model[static_cast<size_t>(r.target)];
        if (r.source >= 0 || t.shape != g.shape) continue;
        const size_t same = common_end(g.name, t.name);
        if (same == 0) continue;
        ++votes[{g.name.substr(0, g.name.size() - same), t.name.substr(0, t.name.size() - same)}];
      }
    }
    for (const auto& [ends, n] : votes)
      if (n > m_.rule_pairs && n > 1) {
        m_.rule_pairs = n;
        m_.rule = ends.first + "*=" + ends.second + "*";
      }
  }

  void finish() {
    for (size_t i = 0; i < m_.given.size(); ++i)
      if (!used_[i]) m_.rows.push_back({left_[i], -1, static_cast<int>(i)});
  }

 private:
  /// Of how many characters the ends are the same, cut where a part of the name begins; 0 where only the last part is.
  static size_t common_end(const std::string& a, const std::string& b) {
    size_t n = 0;
    while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
    const auto begins = [](const std::string& s, size_t end) {
      return end == s.size() || s[s.size() - 1 - end] == '.' || s[s.size() - 1 - end] == '/';
    };
    while (n > 0 && !(begins(a, n) && begins(b, n))) --n;
    return std::count(a.end() - static_cast<std::ptrdiff_t>(n), a.end(), '.') > 0 ? n : 0;
  }
  void pair(size_t target, size_t source, WeightState state) {
    const GivenTensor& g = m_.given[source];
    if (g.shape != m_.model[target].shape)
      state = WeightState::wrong_shape;
    else if (!g.problem.empty())
      state = WeightState::unreadable;
    m_.rows[target].state = state;
    m_.rows[target].source = static_cast<int>(source);
    used_[source] = true;
  }

  WeightMap& m_;
  std::vector<Rule> rules_;
  std::map<std::string, size_t> at_;
  std::vector<WeightState> left_;
  std::vector<bool> used_;
};

std::vector<int64_t> shape_of(const Tensor& t) { return {t.size().begin(), t.size().end()}; }

}  // namespace

const char* name(WeightState s) {
  static constexpr const char* kWords[] = {"by name",     "by rule",    "by shape", "suggested by shape",
                                           "wrong shape", "unreadable", "missing",  "left over",
                                           "left out"};
  return kWords[static_cast<size_t>(s)];
}

std::vector<ModelTensor> model_tensors(const nn::Module& module, const Recipe& recipe) {
  const Freeze freeze(recipe.text("init.freeze"));
  std::vector<ModelTensor> all;
  std::vector<std::string> buffers;
  for (const nn::Named& b : module.buffers()) buffers.push_back(b.name);
  for (const nn::Named& n : module.state_dict()) {
    const bool buffer = std::find(buffers.begin(), buffers.end(), n.name) != buffers.end();
    all.push_back({n.name, shape_of(n.tensor), buffer, freeze.holds(n.name)});
  }
  return all;
}

std::vector<ModelTensor> model_tensors(const ModelSpec& spec, const Recipe& recipe) {
  return model_tensors(GraphModule(spec, {DeviceType::meta}), recipe);
}

size_t WeightMap::count(WeightState s) const {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& r) { return r.state == s; }));
}

size_t WeightMap::taken() const {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](const auto& r) { return r.taken(); }));
}

std::string WeightMap::text() const {
  std::string ways, rest;
  const auto add = [&](std::string& to, WeightState s, const char* between) {
    if (const size_t n = count(s)) to += fmt::format("{}{} {}", to.empty() ? "" : between, n, name(s));
  };
  for (WeightState s : {WeightState::by_name, WeightState::by_rule, WeightState::by_shape}) add(ways, s, ", ");
  for (WeightState s :
       {WeightState::missing, WeightState::suggested, WeightState::wrong_shape, WeightState::unreadable})
    add(rest, s, ", ");
  std::string text = fmt::format("{} of {} tensors of the model are taken", taken(), model.size());
  if (!ways.empty()) text += " (" + ways + ")";
  if (!rest.empty()) text += "; " + rest;
  std::string others;
  for (WeightState s : {WeightState::left_over, WeightState::left_out}) add(others, s, ", ");
  return others.empty() ? text : text + "; of the file " + others;
}

WeightRules::WeightRules(const Recipe& recipe)
    : map(recipe.text("init.map")), by_shape(recipe.text("init.match") == "shape") {}

WeightMap map_weights(std::vector<ModelTensor> model, std::vector<GivenTensor> given, const WeightRules& rules) {
  WeightMap map{std::move(model), std::move(given), {}, {}, 0};
  Mapper mapper(map, rules);
  mapper.by_names();
  mapper.suggest_rule();
  mapper.by_shapes(rules.by_shape);
  mapper.finish();
  return map;
}

std::string with_rule(const std::string& map, const std::string& source, const std::string& target) {
  std::string all = source + "=" + target;
  for (const std::string& rule : split_list(map)) {
    // Of single names; one with a star may still say something of others.
    const bool same_target = !target.empty() && rule.ends_with("=" + target) && rule.find('*') == rule.npos;
    if (!rule.starts_with(source + "=") && !same_target) all += "; " + rule;
  }
  return all;
}

}  // namespace tenon
