#include "engine/formats/torch/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/torch/storage.h"
#include "engine/formats/torch/types.h"

namespace tenon::formats {
namespace {

using List = PyValue::List;
using Dict = PyValue::Dict;
using Object = PyValue::Object;

constexpr int kMaxDepth = 100;
constexpr size_t kMaxText = 60;

std::string shortened(const std::string& s) {
  std::string out;
  for (char c : s.substr(0, kMaxText)) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return s.size() > kMaxText ? out + "..." : out;
}

/// The class or function that is to make an object. The legacy format gives a module's class as an id that carries its
/// source.
const PyValue::Global* maker(const Object& o) {
  const Object* id = o.what ? o.what->object() : nullptr;
  const List* of = id && id->way == Object::Way::persistent ? id->args->as<List>() : nullptr;
  const auto* kind = of && of->size() > 1 ? (*of)[0]->as<std::string>() : nullptr;
  return kind && *kind == "module" ? (*of)[1]->as<PyValue::Global>() : o.global();
}

}  // namespace

/// Walks over the value of a file and lists what is in it.
class TorchReader {
 public:
  TorchReader(TorchFile& out, TorchTensors& tensors) : out_(out), tensors_(tensors) {}

  void run() {
    std::set<std::string> foreign;
    for (const PyValue& v : out_.pickle_.values()) {
      if (const auto* g = v.as<PyValue::Global>(); g && !is_data(*g)) foreign.insert(shortened(g->full()));
      if (const Object* o = v.object(); o && o->way != Object::Way::persistent && !maker(*o))
        foreign.insert("a call of what is no name");
    }
    // Values may be shared, so that a small file unfolds to any number of paths: no honest one to many more than it has
    // values.
    max_visits_ = 10'000 + 4 * out_.pickle_.values().size();
    max_name_bytes_ = (size_t{16} << 20) + 64 * out_.pickle_.bytes();
    out_.foreign_.assign(foreign.begin(), foreign.end());
    visit(*out_.pickle_, {}, 0);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{} {}", out_.name_, what)); }

  void visit(const PyValue& v, const std::string& name, int depth) {
    if (depth > kMaxDepth) fail(fmt::format("nests values more than {} deep, at \"{}\"", kMaxDepth, shortened(name)));
    if (++visits_ > max_visits_ || (name_bytes_ += name.size()) > max_name_bytes_) fail("unfolds to too many values");
    TorchFile::Entry entry;
    if (tensors_.read(v, name.empty() ? "value" : name, entry)) {
      out_.entries_.push_back(std::move(entry));
    } else if (const auto* dict = v.as<Dict>()) {
      items(*dict, name, depth);
    } else if (const auto* list = v.as<List>()) {
      if (v.tuple && !list->empty() &&
          std::all_of(list->begin(), list->end(), [](PyRef e) { return !text(*e).empty(); })) {
        std::string all;
        for (size_t i = 0; i < list->size() && i < 8; ++i) all += (i ? ", " : "") + text(*(*list)[i]);
        out_.values_.emplace_back(name, fmt::format("({}{})", all, list->size() > 8 ? ", ..." : ""));
      } else {
        for (size_t i = 0; i < list->size(); ++i) visit(*(*list)[i], join(name, std::to_string(i)), depth + 1);
      }
    } else if (const Object* o = v.object()) {
      object(*o, name, depth);
    } else {
      out_.values_.emplace_back(name, text(v));
    }
  }

  void items(const Dict& dict, const std::string& name, int depth) {
    for (const auto& [key, value] : dict) visit(*value, join(name, text(*key)), depth + 1);
  }

  void object(const Object& o, const std::string& name, int depth) {
    const PyValue::Global* g = maker(o);
    const List* args = o.args->as<List>();
    if (g && g->module == "collections") {
      // The state of a state_dict holds the versions of its layers, which say nothing about its values.
      if (g->name != "defaultdict" && args)
        for (const PyRef a : *args) pairs(*a, name, depth);
      items(o.items, name, depth);
      return;
    }
    if (o.state && o.state->find("_parameters") && o.state->find("_modules")) {
      module(o, name, depth);
      return;
    }
    out_.values_.emplace_back(name, g ? object_text(*g, args) : "what another value was asked to make");
    if (args && !(g && is_data(*g)))
      for (size_t i = 0; i < args->size(); ++i)
        visit(*(*args)[i], join(name, fmt::format("argument {}", i)), depth + 1);
    if (o.state && o.state->as<Dict>()) items(*o.state->as<Dict>(), name, depth);
    for (size_t i = 0; i < o.appended.size(); ++i) visit(*o.appended[i], join(name, std::to_string(i)), depth + 1);
    items(o.items, name, depth);
  }

  /// OrderedDict([("a", 1), ...]) of old files, and Counter({...}).
  void pairs(const PyValue& v, const std::string& name, int depth) {
    if (const auto* dict = v.as<Dict>()) items(*dict, name, depth);
    if (const auto* list = v.as<List>())
      for (const PyRef e : *list)
        if (const auto* pair = e->as<List>(); pair && pair->size() == 2)
          visit(*(*pair)[1], join(name, text(*(*pair)[0])), depth + 1);
  }

  /// A module that was saved whole: its parameters, buffers and parts under the names they have in its state_dict.
  void module(const Object& o, const std::string& name, int depth) {
    if (depth > kMaxDepth) fail(fmt::format("nests modules more than {} deep, at \"{}\"", kMaxDepth, shortened(name)));
    ++visits_;
    for (const char* what : {"_parameters", "_buffers", "_modules"}) {
      const PyValue* members = o.state->find(what);
      const Dict* dict = members ? members->as<Dict>() : nullptr;
      if (members && members->object()) dict = &members->object()->items;
      if (!dict) continue;
      for (const auto& [key, value] : *dict) {
        const std::string path = name.empty() ? text(*key) : name + "." + text(*key);
        const Object* part = value->object();
        if (part && part->state && part->state->find("_parameters") && part->state->find("_modules")) {
          if (visits_ > max_visits_ || (name_bytes_ += path.size()) > max_name_bytes_)
            fail("unfolds to too many values");
          module(*part, path, depth + 1);
        } else if (!value->as<std::monostate>()) {
          visit(*value, path, depth + 1);
        }
      }
    }
  }

  static std::string join(const std::string& name, const std::string& key) {
    return name.empty() ? key : name + "/" + key;
  }

  /// A plain value as text; empty for what holds others.
  static std::string text(const PyValue& v) {
    if (v.as<std::monostate>()) return "None";
    if (const auto* b = v.as<bool>()) return *b ? "True" : "False";
    if (const auto* i = v.as<int64_t>()) return std::to_string(*i);
    if (const auto* d = v.as<double>()) return fmt::format("{}", *d);
    if (const auto* s = v.as<std::string>()) return *s;
    if (const auto* b = v.as<PyValue::Bytes>()) return fmt::format("{} bytes", b->bytes.size());
    if (const auto* g = v.as<PyValue::Global>()) return g->full();
    return {};
  }
  static std::string object_text(const PyValue::Global& g, const List* args) {
    std::string out = g.full() + "(";
    for (size_t i = 0; args && i < args->size() && i < 4; ++i) {
      const std::string one = shortened(text(*(*args)[i]));
      out += (i ? ", " : "") + (one.empty() ? "..." : one);
    }
    return out + ")";
  }

  TorchFile& out_;
  TorchTensors& tensors_;
  size_t visits_ = 0, name_bytes_ = 0, max_visits_ = 0, max_name_bytes_ = 0;
};

TorchFile TorchFile::open(const std::string& path) { return parse(MappedFile::open(path)); }

TorchFile TorchFile::parse(const std::shared_ptr<const MappedFile>& file) { return read(file, false); }
TorchFile TorchFile::parse_program(const std::shared_ptr<const MappedFile>& file) {
  TorchFile out = read(file, true);
  std::erase_if(out.foreign_, [](const std::string& f) {
    return f.starts_with("__torch__.") || f.starts_with("torch.jit._pickle.");
  });
  return out;
}

TorchFile TorchFile::read(const std::shared_ptr<const MappedFile>& file, bool program) {
  TorchFile out;
  out.name_ = file->name();
  TorchStorages storages(file, program);
  try {
    out.pickle_ = storages.open(out.legacy_, out.warnings_);
  } catch (const Error& e) {
    if (e.message().starts_with("not a pickle"))
      throw Error(fmt::format("{}: {}", file->name(), e.message()), e.hint());
    throw;
  }
  TorchTensors tensors(storages, file->name());
  TorchReader(out, tensors).run();
  return out;
}

NamedTensors TorchFile::tensors() const {
  if (!foreign_.empty())
    throw Error(fmt::format("{} asks for {}{}, which is no data", name_, foreign_[0],
                            foreign_.size() > 1 ? fmt::format(" and {} more", foreign_.size() - 1) : ""),
                "Nothing in it was run. tenon inspect shows what it holds.");
  NamedTensors out;
  for (const Entry& e : entries_) {
    if (!e.problem.empty()) throw Error(fmt::format("{}: tensor \"{}\" {}", name_, e.name, e.problem));
    out.emplace_back(e.name, e.tensor);
  }
  return out;
}

}  // namespace tenon::formats
