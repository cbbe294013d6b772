#include "engine/formats/python/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "engine/formats/python/class_text.h"
#include "engine/formats/python/constructor.h"
#include "engine/formats/python/forms.h"
#include "engine/formats/python/outline.h"
#include "engine/formats/python/print.h"
#include "engine/formats/python/value.h"
#include "engine/model/examine.h"
#include "engine/spec/submodel.h"

namespace tenon::python {
namespace {

std::string indented(int depth) { return std::string(static_cast<size_t>(depth) * 4, ' '); }
/// A comment of the model as one line of source.
std::string one_line(const std::string& s) {
  std::string out;
  for (char c : s) out += c == '\n' ? "\\n" : std::string(1, c);
  return out;
}
std::string noted(const std::vector<std::string>& notes) {
  return notes.empty() ? "" : fmt::format("  # {}", fmt::join(notes, " | "));
}

class Writer {
 public:
  Writer(const ModelSpec& model, const std::string& weights)
      : model_(model), weights_(weights), reports_(fitting(model)), flow_(model) {
    for (size_t i = 0; i < flow_.layers.size(); ++i)
      report_.push_back(&reports_[static_cast<size_t>(flow_.layers[i] - model.layers.data())]);
  }

  std::string run() {
    const std::string name = class_name(model_.name);
    for (const char* taken : {"nn", "F", "torch"}) classes_.reserve(taken);
    classes_.reserve(name);
    for (const LayerSpec* l : flow_.layers) classes_.reserve(l->type);
    auto tree = outline(flow_);
    Text body = scope(*tree, true);
    classes_.settle();
    const std::string classes = classes_.source(body, name, one_line(model_.name));
    std::string out = "import torch\nfrom torch import nn\n";
    if (classes.find("F.") != std::string::npos) out += "import torch.nn.functional as F\n";
    for (const std::string& h : helpers_) out += "\n\n" + h;
    return out + "\n\n" + classes + example(name);
  }

 private:
  static std::vector<LayerReport> fitting(const ModelSpec& model) {
    std::vector<LayerReport> reports = examine(model, 2);
    for (const LayerReport& r : reports)
      if (!r.error.empty()) throw Error(r.layer.empty() ? r.error : r.layer + ": " + r.error, r.hint);
    return reports;
  }
  const LayerSpec& spec(int l) const { return *flow_.layers[static_cast<size_t>(l)]; }
  const LayerInfo& info(int l) const { return *find_layer_type(spec(l).type); }
  const PythonForm& form(int l) const { return form_of(info(l)); }
  bool has_module(const Unit& u) const { return u.kind != Unit::Kind::layer || form(u.layer).module; }

  // --- Where modules are made ---------------------------------------------------------------------------------------
  Text made(const Unit& u, int depth) {
    Text t;
    switch (u.kind) {
      case Unit::Kind::layer: {
        const LayerReport& r = *report_[static_cast<size_t>(u.layer)];
        t = constructor(spec(u.layer), r);
        if (form(u.layer).helper.starts_with("class ")) helper(form(u.layer).helper);
        break;
      }
      case Unit::Kind::block: {
        const Text body = scope(u, false);
        const SubModelSpec* of = submodel_of(model_, u.path);
        t.instance(classes_.of(body, of ? class_name(of->name) : block_name(u),
                               of ? kSubModelMark + one_line(of->name) : std::string()),
                   body.slots);
        break;
      }
      case Unit::Kind::sequence:
        sequence(t, u, depth);
        break;
      case Unit::Kind::loose: {
        t.words("nn.ModuleDict({\n");
        for (const auto& p : u.parts) {
          if (!has_module(*p)) continue;
          t.words(indented(depth + 1) + "\"" + p->name + "\": ");
          t.append(made(*p, depth + 1));
          t.words("," + comment(*p) + "\n");
        }
        t.words(indented(depth) + "})");
      }
    }
    return t;
  }
  void sequence(Text& t, const Unit& u, int depth) {
    std::vector<Text> parts;
    for (const auto& p : u.parts) parts.push_back(made(*p, depth + 1));
    auto alike = [&](size_t i) {
      if (parts[i].key() != parts[0].key() || !comment(*u.parts[i]).empty()) return false;
      for (size_t s = 0; s < parts[i].slots.size(); ++s)
        if (parts[i].slots[s].value != parts[0].slots[s].value) return false;
      return true;
    };
    bool all = parts.size() > 2;
    for (size_t i = 0; all && i < parts.size(); ++i) all = alike(i);
    if (all) {
      t.words("nn.Sequential(*[");
      t.append(parts[0]);
      t.words(" for _ in range(");
      t.value({"depth", u.name, std::to_string(parts.size())});
      t.words(")])");
      return;
    }
    t.words("nn.Sequential(\n");
    for (size_t i = 0; i < parts.size(); ++i) {
      t.words(indented(depth + 1));
      t.append(parts[i]);
      t.words("," + comment(*u.parts[i]) + "\n");
    }
    t.words(indented(depth) + ")");
  }
  std::string comment(const Unit& u) const {
    if (u.kind != Unit::Kind::layer || spec(u.layer).comment.empty()) return {};
    return "  # " + one_line(spec(u.layer).comment);
  }
  static std::string block_name(const Unit& u) {
    std::string word = u.name;
    if (word.find_first_not_of("0123456789") == std::string::npos) {
      const size_t dot = u.path.rfind('.', u.path.size() - u.name.size() - 2);
      const size_t end = u.path.size() - u.name.size();
      word = end < 2 ? "block" : u.path.substr(dot == std::string::npos ? 0 : dot + 1, end - 1 - (dot + 1));
      while (!word.empty() && (std::isdigit(static_cast<unsigned char>(word.back())) || word.back() == '_'))
        word.pop_back();
      if (word.size() > 3 && word.back() == 's') word.pop_back();
      if (!word.ends_with("lock")) word += "_block";
    }
    while (word.size() > 1 && std::isdigit(static_cast<unsigned char>(word.back()))) word.pop_back();
    return class_name(word);
  }

  // --- A class: its modules, then its forward -----------------------------------------------------------------------
  /// What a class calls by itself: its parts, and those of parts that only hold others.
  void units_of(const Unit& u, const std::string& access, std::vector<std::pair<const Unit*, std::string>>& out) const {
    for (const auto& p : u.parts) {
      std::string way = access + "[\"" + p->name + "\"]";
      if (access == "self")
        way = is_identifier(p->name) && !is_taken(p->name) ? "self." + p->name
                                                           : "self.get_submodule(\"" + p->name + "\")";
      if (p->kind == Unit::Kind::loose)
        units_of(*p, way, out);
      else
        out.emplace_back(p.get(), way);
    }
  }
  /// In an order in which what they read is there; of those that could be next the first in the flow.
  void sort(std::vector<std::pair<const Unit*, std::string>>& units) const {
    std::unordered_map<int, size_t> unit_of;
    for (size_t i = 0; i < units.size(); ++i)
      for (int l : units[i].first->inside) unit_of[l] = i;
    std::vector<int> waits(units.size());
    std::vector<std::vector<size_t>> feeds(units.size());
    for (size_t i = 0; i < units.size(); ++i)
      for (int s : units[i].first->in)
        if (auto from = unit_of.find(s); from != unit_of.end()) {
          ++waits[i];
          feeds[from->second].push_back(i);
        }
    std::set<std::pair<int, size_t>> ready;
    for (size_t i = 0; i < units.size(); ++i)
      if (!waits[i]) ready.insert({units[i].first->inside.front(), i});
    std::vector<std::pair<const Unit*, std::string>> sorted;
    while (!ready.empty()) {
      const size_t i = ready.begin()->second;
      ready.erase(ready.begin());
      sorted.push_back(units[i]);
      for (size_t to : feeds[i])
        if (--waits[to] == 0) ready.insert({units[to].first->inside.front(), to});
    }
    units = std::move(sorted);
  }

  // --- Weights that several modules have
  // ------------------------------------------------------------------------------
  int index_of(const std::string& layer) const {
    for (size_t i = 0; i < flow_.layers.size(); ++i)
      if (flow_.layers[i]->name == layer) return static_cast<int>(i);
    return -1;
  }
  static bool comes_before(const Unit& u, const Unit& a, const Unit& b) {
    for (const auto& p : u.parts)
      if (p.get() == &a || p.get() == &b) return p.get() == &a;
    return false;
  }
  /// The part of a class all of whose weights another part has; null where there is none.
  const Unit* owner_of(const Unit& u, const Unit& part) const {
    for (const auto& p : u.parts) {
      if (p.get() == &part || p->kind != part.kind) continue;
      if (p->kind == Unit::Kind::layer && spec(part.layer).shares == p->path) return p.get();
      if (p->kind != Unit::Kind::block || !same_inside(model_, p->path, part.path)) continue;
      bool any = false, all = true;
      for (int l : part.inside) {
        if (!report_[static_cast<size_t>(l)]->has_weights) continue;
        any = true;
        all = all && spec(l).shares == p->path + "." + name_within(spec(l).name, part.path);
      }
      if (any && all) return p.get();
    }
    return nullptr;
  }
  /// How a class gets at a layer inside of it, or at one of its parts.
  static std::string way_to(const Unit& u, int layer, const Unit* to = nullptr) {
    std::string way = "self";
    for (const Unit* at = &u; at != to && at->kind != Unit::Kind::layer;) {
      const Unit* next = nullptr;
      for (const auto& p : at->parts)
        if (p->holds(layer)) next = p.get();
      if (at->kind == Unit::Kind::sequence)
        way += "[" + next->name + "]";
      else if (at->kind == Unit::Kind::loose)
        way += "[\"" + next->name + "\"]";
      else if (is_identifier(next->name) && !is_taken(next->name))
        way += "." + next->name;
      else
        way += ".get_submodule(\"" + next->name + "\")";
      at = next;
    }
    return way;
  }
  /// Whether a class within this one holds both.
  static bool hold_deeper(const Unit& u, int a, int b) {
    for (const auto& p : u.parts)
      if (p->holds(a) && p->holds(b)) return p->kind == Unit::Kind::block || hold_deeper(*p, a, b);
    return false;
  }
  /// What was not made as the same module takes that module's place behind all that are made.
  void share(Text& t, const Unit& u) const {
    for (int l : u.inside) {
      const int owner = spec(l).shares.empty() ? -1 : index_of(spec(l).shares);
      if (owner < 0 || !u.holds(owner) || hold_deeper(u, l, owner)) continue;
      bool made = false;
      for (const auto& p : u.parts)
        if (const Unit* o = p->holds(l) ? owner_of(u, *p) : nullptr) made = comes_before(u, *o, *p);
      if (made) continue;
      std::string way = way_to(u, l);
      constexpr std::string_view get = ".get_submodule(";
      const std::string from = way_to(u, owner);
      if (const size_t at = way.rfind(get); at != std::string::npos && way.ends_with("\")"))
        t.words(indented(2) + way.substr(0, at) + ".add_module(" +
                way.substr(at + get.size(), way.size() - at - get.size() - 1) + ", " + from + ")\n");
      else
        t.words(indented(2) + way + " = " + from + "\n");
    }
  }

  Text scope(const Unit& u, bool root) {
    Text t;
    for (const auto& p : u.parts) {
      if (!has_module(*p)) continue;
      const bool plain = is_identifier(p->name) && !is_taken(p->name);
      if (p->kind == Unit::Kind::loose &&
          std::none_of(p->inside.begin(), p->inside.end(), [&](int l) { return form(l).module; }))
        continue;
      t.words(indented(2) + (plain ? "self." + p->name + " = " : "self.add_module(\"" + p->name + "\", "));
      const Unit* owner = owner_of(u, *p);
      if (owner && comes_before(u, *owner, *p))
        t.words(way_to(u, owner->inside[0], owner));
      else
        t.append(made(*p, 2));
      t.words((plain ? "" : ")") + comment(*p) + "\n");
    }
    share(t, u);
    forward(t, u, root);
    return t;
  }

  /// Names of the values in a forward.
  struct Names {
    std::map<int, std::string> of;  ///< by layer
    std::map<int, int> last_use;    ///< by layer: the unit that reads it last
    std::map<int, int> uses;        ///< by layer: units that read it
    std::set<std::string> taken{"x", "y", "self", "torch", "nn", "F"};
    int holds[2] = {-1, -1};  ///< the layers whose results are in x and y
    /// A variable for a result that one unit reads: x, y while x is needed later than `at`, else one of its own.
    std::string chain(int layer, int at, const std::string& own) {
      if (uses[layer] < 2)
        for (int v : {0, 1})
          if (holds[v] < 0 || last_use[holds[v]] <= at) {
            holds[v] = layer;
            return v == 0 ? "x" : "y";
          }
      return fresh(own);
    }
    std::string fresh(const std::string& wanted) {
      std::string name = wanted;
      for (int n = 2; !taken.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
      return name;
    }
  };

  void forward(Text& t, const Unit& u, bool root) {
    std::vector<std::pair<const Unit*, std::string>> units;
    units_of(u, "self", units);
    sort(units);
    Names names;
    std::vector<int> in = u.in, out = u.out;
    std::string notes;
    if (root) {
      in.clear(), out.clear();
      for (size_t i = 0; i < flow_.layers.size(); ++i) {
        if (spec(static_cast<int>(i)).type == "Input") in.push_back(static_cast<int>(i));
        if (spec(static_cast<int>(i)).type == "Output") out.push_back(flow_.sources[i].at(0));
      }
      notes = input_note(in.at(0));
    }
    for (size_t i = 0; i < units.size(); ++i)
      for (int s : units[i].first->in) names.last_use[s] = static_cast<int>(i), ++names.uses[s];
    for (int o : out) names.last_use[o] = static_cast<int>(units.size()), ++names.uses[o];
    std::vector<std::string> parameters;
    for (size_t i = 0; i < in.size(); ++i) {
      parameters.push_back(i == 0 ? "x" : names.fresh("x" + std::to_string(i)));
      names.of[in[i]] = parameters.back();
    }
    names.holds[0] = in[0];
    t.words(fmt::format("\n    def forward(self, {}):{}\n", fmt::join(parameters, ", "), notes));
    for (size_t i = 0; i < units.size(); ++i) line(t, u, *units[i].first, units[i].second, static_cast<int>(i), names);
    std::vector<std::string> results;
    for (int o : out) results.push_back(names.of.at(o));
    t.words(fmt::format("        return {}{}\n", fmt::join(results, ", "), root ? output_note() : ""));
  }

  /// One call, and what becomes of its result.
  void line(Text& t, const Unit& scope, const Unit& u, const std::string& access, int at, Names& names) {
    std::vector<std::string> notes;
    std::string call;
    if (u.kind == Unit::Kind::layer) {
      call = layer_call(u.layer, access, names);
    } else {
      std::vector<std::string> args;
      for (int s : u.in) args.push_back(names.of.at(s));
      call = fmt::format("{}({})", access, fmt::join(args, ", "));
    }
    const bool off = u.kind == Unit::Kind::layer && spec(u.layer).off;
    if (off) {
      notes.push_back("off: " + call);
      call = names.of.at(flow_.sources[static_cast<size_t>(u.layer)].at(0));
    }
    std::vector<std::string> targets;
    if (!has_module(u)) {  // the variable is the layer's name
      const std::string local = u.path.substr(scope.path.empty() ? 0 : scope.path.size() + 1);
      targets.push_back(names.fresh(identifier(local)));
      if (targets[0] != local) notes.push_back("layer: " + local);
      if (!spec(u.layer).comment.empty()) notes.push_back(one_line(spec(u.layer).comment));
      names.of[u.layer] = targets[0];
    } else if (u.out.size() <= 1) {
      const int result = u.out.empty() ? u.inside.back() : u.out[0];
      names.of[result] = names.chain(result, at, identifier(u.name));
      targets.push_back(names.of[result]);
    } else {
      for (int o : u.out) {
        targets.push_back(names.fresh(identifier(u.name)));
        names.of[o] = targets.back();
      }
    }
    t.words(fmt::format("        {} = {}{}\n", fmt::join(targets, ", "), call, noted(notes)));
  }

  std::string layer_call(int l, const std::string& access, const Names& names) {
    const LayerSpec& layer = spec(l);
    const PythonForm& f = form(l);
    const std::vector<Expr> patterns = patterns_of(f, info(l));
    const auto& sources = flow_.sources[static_cast<size_t>(l)];
    std::map<std::string, Expr> known;
    for (size_t port = 0; port < sources.size(); ++port)
      if (sources[port] >= 0) known["x" + std::to_string(port)] = parse_expression(names.of.at(sources[port]));
    if (f.module) known["m"] = parse_expression(access);
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (!f.calls.empty() && !holds(f.calls[i], layer, info(l))) continue;
      if (inputs_in(patterns[i]) != known.size() - (f.module ? 1 : 0)) continue;
      const std::string text = text_of(written(patterns[i], known, layer, info(l), f));
      if (f.helper.starts_with("def ") && text.find(f.helper.substr(4, f.helper.find('(') - 3)) != std::string::npos)
        helper(f.helper);
      return text;
    }
    throw Error(layer.name + ": a " + layer.type + " wired and set like this has no form in PyTorch that is written",
                "export the model as ONNX, or take another layer in its place");
  }

  void helper(const std::string& source) {
    if (std::find(helpers_.begin(), helpers_.end(), source) == helpers_.end()) helpers_.push_back(source);
  }

  // --- The ends -----------------------------------------------------------------------------------------------------
  std::string input_note(int l) const {
    const std::string& type = report_[static_cast<size_t>(l)]->outputs.at(0);  // "f32 [2, 1, 28, 28]"
    const size_t open = type.find('['), comma = type.find(", ");
    std::vector<std::string> notes{fmt::format("{}: {}[{}", spec(l).name, type.substr(0, open),
                                               comma == std::string::npos ? "]" : type.substr(comma + 2))};
    if (!spec(l).comment.empty()) notes.push_back(one_line(spec(l).comment));
    return noted(notes);
  }
  std::string output_note() const {
    for (const LayerSpec* l : flow_.layers)
      if (l->type == "Output" && (l->name != "output" || !l->comment.empty())) {
        std::vector<std::string> notes{"layer: " + l->name};
        if (!l->comment.empty()) notes.push_back(one_line(l->comment));
        return noted(notes);
      }
    return {};
  }
  /// Makes the file one that runs.
  std::string example(const std::string& name) const {
    for (size_t i = 0; i < flow_.layers.size(); ++i) {
      if (flow_.layers[i]->type != "Input") continue;
      const std::string& type = report_[i]->outputs.at(0);
      const std::string size = type.substr(type.find('[') + 1, type.find(']') - type.find('[') - 1);
      const bool whole = type.starts_with("i");
      return fmt::format(
          "\n\nif __name__ == \"__main__\":\n    model = {}()\n{}    x = {}\n    print(model(x).shape)\n", name,
          weights_.empty() ? ""
                           : fmt::format("    model.load_state_dict(torch.load({}))\n    model.eval()\n",
                                         text_of(literal(weights_, false))),
          whole ? fmt::format("torch.zeros({}, dtype=torch.int64)", size) : fmt::format("torch.randn({})", size));
    }
    return {};
  }

  const ModelSpec& model_;
  const std::string& weights_;
  std::vector<LayerReport> reports_;
  Flow flow_;
  std::vector<const LayerReport*> report_;
  Classes classes_;
  std::vector<std::string> helpers_;
};

}  // namespace

std::string write_model(const ModelSpec& model, const std::string& weights) { return Writer(model, weights).run(); }

}  // namespace tenon::python
