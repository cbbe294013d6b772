#include "engine/formats/python/class_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/formats/python/print.h"

namespace tenon::python {

void Text::words(const std::string& w) {
  if (!pieces.empty() && pieces.back().kind < 0 && pieces.back().slot < 0)
    pieces.back().words += w;
  else
    pieces.push_back({-1, w, -1});
}
void Text::value(Slot s) {
  pieces.push_back({-1, {}, static_cast<int>(slots.size())});
  slots.push_back(std::move(s));
}
void Text::append(const Text& t) {
  const int first = static_cast<int>(slots.size());
  for (Piece p : t.pieces) {
    if (p.kind < 0 && p.slot < 0) {
      words(p.words);
      continue;
    }
    p.slot += first;
    pieces.push_back(std::move(p));
  }
  slots.insert(slots.end(), t.slots.begin(), t.slots.end());
}
void Text::instance(int kind, const std::vector<Slot>& values) {
  pieces.push_back({kind, {}, static_cast<int>(slots.size())});
  slots.insert(slots.end(), values.begin(), values.end());
}
std::string Text::key() const {
  std::string out;
  for (const Piece& p : pieces) {
    if (p.kind >= 0)
      out += "\1" + std::to_string(p.kind);
    else
      out += p.slot < 0 ? p.words : "\2" + slots[static_cast<size_t>(p.slot)].name;
  }
  return out;
}

std::string Classes::unused(const std::string& name) {
  std::string out = name;
  for (int n = 2; std::find(names_.begin(), names_.end(), out) != names_.end(); ++n) out = name + std::to_string(n);
  names_.push_back(out);
  return out;
}

int Classes::of(const Text& body, const std::string& wanted_name, const std::string& comment) {
  std::string key = body.key();
  auto found = std::find_if(classes_.begin(), classes_.end(),
                            [&](const Class& c) { return c.key == key && c.comment == comment; });
  if (found == classes_.end()) {
    classes_.emplace_back();
    found = classes_.end() - 1;
    found->key = std::move(key);
    found->name = unused(wanted_name);
    found->comment = comment;
    found->body = body;
  }
  found->instances.push_back(body.slots);
  return static_cast<int>(found - classes_.begin());
}

void Classes::settle() {
  for (Class& c : classes_) {
    const size_t slots = c.body.slots.size();
    c.parameter_of.assign(slots, -1);
    auto same = [&](size_t a, size_t b) {
      return std::all_of(c.instances.begin(), c.instances.end(),
                         [&](const auto& values) { return values[a].value == values[b].value; });
    };
    for (size_t s = 0; s < slots; ++s) {
      const std::string& first = c.instances[0][s].value;
      if (std::all_of(c.instances.begin(), c.instances.end(),
                      [&](const auto& values) { return values[s].value == first; }))
        continue;
      for (size_t p = 0; p < c.parameters.size() && c.parameter_of[s] < 0; ++p)
        if (same(static_cast<size_t>(c.parameters[p].slot), s)) c.parameter_of[s] = static_cast<int>(p);
      if (c.parameter_of[s] >= 0) continue;
      auto taken = [&](const std::string& n) {
        return std::any_of(c.parameters.begin(), c.parameters.end(), [&](const auto& p) { return p.name == n; });
      };
      std::string name = c.body.slots[s].name;
      if (taken(name)) name = identifier(c.body.slots[s].of) + "_" + name;
      const std::string wanted = name;
      for (int n = 2; taken(name); ++n) name = wanted + std::to_string(n);
      c.parameter_of[s] = static_cast<int>(c.parameters.size());
      c.parameters.push_back({name, static_cast<int>(s)});
    }
  }
}

std::string Classes::printed(const Text& t, const std::function<std::string(int)>& value) const {
  std::string out;
  for (const Text::Piece& p : t.pieces) {
    if (p.kind < 0) {
      out += p.slot < 0 ? p.words : value(p.slot);
      continue;
    }
    const Class& c = classes_[static_cast<size_t>(p.kind)];
    std::vector<std::string> args;
    for (const Class::Parameter& q : c.parameters) {
      std::string v = value(p.slot + q.slot);
      args.push_back(c.parameters.size() > 2 && v != q.name ? q.name + "=" + v : v);
    }
    // By place up to the first that is given by name.
    bool named = false;
    for (size_t i = 0; i < args.size(); ++i) {
      if (named && args[i].find('=') == std::string::npos) args[i] = c.parameters[i].name + "=" + args[i];
      named = named || args[i].find('=') != std::string::npos;
    }
    out += fmt::format("{}({})", c.name, fmt::join(args, ", "));
  }
  return out;
}

std::string Classes::definition(const std::string& name, const std::string& comment,
                                const std::vector<Class::Parameter>& told, const std::string& body) const {
  std::string names;
  for (const auto& p : told) names += ", " + p.name;
  return fmt::format("class {}(nn.Module):\n{}    def __init__(self{}):\n        super().__init__()\n{}", name,
                     comment.empty() ? "" : fmt::format("    \"\"\"{}\"\"\"\n\n", comment), names, body);
}

std::string Classes::source(const Text& root, const std::string& name, const std::string& comment) const {
  std::string out;
  for (const Class& c : classes_) {
    auto value = [&](int slot) {
      const int p = c.parameter_of[static_cast<size_t>(slot)];
      return p < 0 ? c.instances[0][static_cast<size_t>(slot)].value : c.parameters[static_cast<size_t>(p)].name;
    };
    out += definition(c.name, c.comment, c.parameters, printed(c.body, value)) + "\n\n";
  }
  return out + definition(name, comment, {},
                          printed(root, [&](int slot) { return root.slots[static_cast<size_t>(slot)].value; }));
}

}  // namespace tenon::python
