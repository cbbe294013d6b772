#include "engine/formats/cpp/artifact.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "core/sha256.h"
#include "core/version.h"
#include "engine/formats/cpp/kernel.h"
#include "engine/formats/cpp/memory_plan.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/static_graph.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// In front of the weights of a file: what tells it from another model's.
constexpr int64_t kStamp = 16;

bool is_keyword(const std::string& s) {
  static const std::set<std::string> all = {
      "alignas", "alignof", "and",     "asm",      "auto",      "bool",     "break",     "case",    "catch",
      "char",    "class",   "compl",   "const",    "constexpr", "continue", "default",   "delete",  "do",
      "double",  "else",    "enum",    "explicit", "export",    "extern",   "false",     "float",   "for",
      "friend",  "goto",    "if",      "inline",   "int",       "long",     "main",      "mutable", "namespace",
      "new",     "not",     "nullptr", "operator", "or",        "private",  "protected", "public",  "register",
      "return",  "short",   "signed",  "sizeof",   "static",    "std",      "struct",    "switch",  "template",
      "this",    "throw",   "true",    "try",      "typedef",   "typeid",   "typename",  "union",   "unsigned",
      "using",   "virtual", "void",    "volatile", "while",     "xor"};
  return all.contains(s);
}

std::string identifier(const std::string& text) {
  std::string s;
  for (unsigned char c : text) {
    const bool fits = std::isalnum(c) && c < 128;
    // Names with two underscores belong to the compiler.
    if (fits || (!s.empty() && s.back() != '_')) s += fits ? static_cast<char>(c) : '_';
  }
  while (!s.empty() && s.back() == '_') s.pop_back();
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s = "m" + s;
  return is_keyword(s) ? s + "_" : s;
}

/// Lines of at most 110 characters of `count` words.
template <class F>
std::string wrapped(int64_t count, const F& word) {
  std::string text, line = "   ";
  for (int64_t i = 0; i < count; ++i) {
    const std::string w = word(i);
    if (line.size() + w.size() + 2 > 110) {
      text += line + "\n";
      line = "   ";
    }
    line += " " + w + ",";
  }
  return text + line + "\n";
}

/// Indented by its braces.
std::string indented(const std::string& body) {
  std::string text;
  int depth = 1;
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('\n', at), body.size());
    const std::string line = body.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    const auto count = [&](char c) { return static_cast<int>(std::count(line.begin(), line.end(), c)); };
    const bool closes = line[0] == '}';
    text += std::string(static_cast<size_t>(2 * std::max(0, depth - (closes ? 1 : 0))), ' ') + line + "\n";
    depth += count('{') - count('}');
  }
  return text;
}

class ArtifactWriter {
 public:
  ArtifactWriter(const OnnxModel& model, const StaticGraph& graph, const ArtifactOptions& options)
      : graph_(graph), options_(options), plan_(plan_memory(graph, may_be_in_place(graph))) {
    name_ends(model);
  }

  Artifact write(const std::string& file, const std::string& says) {
    Artifact a;
    a.name = artifact_name(std::filesystem::path(file).stem().string());
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (plan_.moved[i]) call(graph_.nodes[i]);
    for (size_t k = 0; k < graph_.outputs.size(); ++k) copy_output(static_cast<int>(k));
    a.calls = calls_;
    a.kernels = static_cast<int64_t>(functions_.size());
    a.arena_bytes = plan_.arena_bytes;
    a.unshared_bytes = plan_.all_bytes;
    a.weight_bytes = weight_bytes_;
    for (int v : graph_.inputs) a.input_sizes.push_back(value(v).shape.product());
    for (int v : graph_.outputs) a.output_sizes.push_back(value(v).shape.product());
    if (options_.weights_beside) a.weights = stamp() + packed_;
    const std::string from =
        fmt::format("// {}{}Written by tenon {}; it is not edited.\n", says, says.empty() ? "" : ". ", TENON_VERSION);
    a.header = from + header(a);
    a.source = from + source(a, file);
    return a;
  }

 private:
  static std::vector<bool> may_be_in_place(const StaticGraph& g) {
    std::vector<bool> may;
    for (const StaticNode& n : g.nodes) {
      const CppKernel* k = cpp_kernels().find(n.node->op_type);
      may.push_back(!n.view && k && k->in_place);
    }
    return may;
  }
  const StaticValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }

  /// The caller's names of what goes in and out: "input", "output", or the model's where there are several.
  void name_ends(const OnnxModel& model) {
    std::set<std::string> taken = {"workspace", "weights", "arena", "bytes", "at", "run", "arena_size", "weights_size"};
    auto name = [&](const std::string& wanted, bool one, const char* plain) {
      std::string n = one ? plain : identifier(wanted);
      if (std::isdigit(static_cast<unsigned char>(n.back()))) n += "_";  // kernels are named with a number behind
      while (!taken.insert(n).second) n += "_";
      return n;
    };
    for (int v : graph_.inputs) input_names_.push_back(name(value(v).name, graph_.inputs.size() == 1, "input"));
    for (const OnnxValue& v : model.graph.outputs)
      output_names_.push_back(name(v.name, graph_.outputs.size() == 1, "output"));
  }

  /// The kernel's text; throws OnnxUnsupported naming the node.
  std::string body_of(const StaticNode& n, CppCall& c) {
    const std::string node = fmt::format("{} '{}'", n.node->op_type, n.node->name);
    const CppKernel* kernel =
        n.node->domain.empty() || n.node->domain == "ai.onnx" ? cpp_kernels().find(n.node->op_type) : nullptr;
    try {
      if (c.out().shape.product() > INT32_MAX) throw OnnxUnsupported("its result has more than 2^31 elements");
      if (n.view)
        return cpp_loops(c.out().shape, {{"y", Layout::contiguous(c.out().shape)}, {"x0", *n.view}}, "$y = $x0;\n");
      if (!kernel) throw OnnxUnsupported("there is no C++ kernel for this operator");
      return kernel->body(c);
    } catch (const OnnxUnsupported& e) {
      throw OnnxUnsupported(
          fmt::format("{} cannot be written as C++: {}", node, e.message()),
          "Export the model as ONNX, or write its kernel: engine/formats/cpp, TENON_CPP(" + n.node->op_type + ").");
    } catch (const Error& e) {
      throw e.in(node);
    }
  }

  void call(const StaticNode& n) {
    CppCall c(graph_, n);
    std::string body = body_of(n, c), parameters, arguments, aliases;
    for (const char* f : c.used())
      if (std::find(helpers_.begin(), helpers_.end(), f) == helpers_.end()) helpers_.push_back(f);
    const PlannedPlace& to = plan_.places[static_cast<size_t>(n.output)];
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const std::string x = fmt::format("x{}", i);
      if (n.inputs[i] < 0 || !cpp_has_word(body, x)) continue;
      const StaticValue& v = value(n.inputs[i]);
      const PlannedPlace& from = plan_.places[static_cast<size_t>(n.inputs[i])];
      const auto held = std::find_if(c.held().begin(), c.held().end(), [&](const auto& h) { return h.input == i; });
      if (from.in == to.in && from.in == PlannedPlace::In::arena && from.offset == to.offset && v.bytes() > 0 &&
          c.out().bytes() > 0) {
        aliases += fmt::format("const {}* const {} = y;\n", cpp_type(v.dtype), x);
        continue;
      }
      const DType t = held == c.held().end() ? v.dtype : held->values.dtype();
      parameters += fmt::format("const {}* __restrict {}, ", cpp_type(t), x);
      arguments +=
          (held == c.held().end() ? pointer(n.inputs[i]) : weight(v.name + "." + held->how, held->values)) + ", ";
    }
    parameters += fmt::format("{}* __restrict y", cpp_type(c.out().dtype));
    const std::string text = "(" + parameters + ") {\n" + indented(aliases + body) + "}\n";
    auto [at, fresh] = functions_.try_emplace(text);
    if (fresh) {
      std::string word;
      for (unsigned char ch : n.node->op_type) word += static_cast<char>(std::tolower(ch));
      at->second = fmt::format("{}_{}", identifier(word), functions_.size());
      text_of_functions_ += fmt::format("/// {}: {}\nvoid {}{}\n", n.node->op_type, sizes_text(n), at->second, text);
    }
    run_ += fmt::format("  {}({}{});\n", at->second, arguments, pointer(n.output));
    ++calls_;
  }
  std::string sizes_text(const StaticNode& n) const {
    std::string text;
    for (int v : n.inputs)
      if (v >= 0) text += (text.empty() ? "" : ", ") + to_string(value(v).shape);
    return text + " to " + to_string(value(n.output).shape);
  }

  /// An output that is not computed where the caller wants it.
  void copy_output(int k) {
    const int v = graph_.outputs[static_cast<size_t>(k)];
    const PlannedPlace& p = plan_.places[static_cast<size_t>(v)];
    if (p.in == PlannedPlace::In::output && p.number == k && p.offset == 0) return;
    run_ += fmt::format("  for (int i = 0; i < {}; ++i) {}[i] = {}[i];\n", value(v).shape.product(),
                        output_names_[static_cast<size_t>(k)], pointer(v));
  }

  /// The address of a value, in the words of run().
  std::string pointer(int v) {
    const PlannedPlace& p = plan_.places[static_cast<size_t>(v)];
    const DType t = value(v).dtype;
    auto behind = [&](const std::string& name, DType of) {
      if (of != t) return fmt::format("reinterpret_cast<const {}*>({})", cpp_type(t), name);
      return p.offset ? fmt::format("({} + {})", name, p.offset / static_cast<int64_t>(itemsize(t))) : name;
    };
    switch (p.in) {
      case PlannedPlace::In::input:
        return behind(input_names_[static_cast<size_t>(p.number)],
                      value(graph_.inputs[static_cast<size_t>(p.number)]).dtype);
      case PlannedPlace::In::output:
        return behind(output_names_[static_cast<size_t>(p.number)],
                      value(graph_.outputs[static_cast<size_t>(p.number)]).dtype);
      case PlannedPlace::In::constant:
        return weight(value(v).name, value(v).constant);
      case PlannedPlace::In::arena:
        break;
    }
    return fmt::format("at<{}>(arena, {})", cpp_type(t), p.offset);
  }

  /// A constant's address; it is written once.
  std::string weight(const std::string& name, const Tensor& t) {
    const auto [at, fresh] = weights_.try_emplace(name);
    if (!fresh) return at->second;
    const char* type = cpp_type(t.dtype());
    const auto bytes = static_cast<int64_t>(t.nbytes());
    // Blocks of one kind have masks of the same numbers under many names.
    const auto [same, first] = by_content_.try_emplace(name_of_content(t), name);
    if (!first) return at->second = weights_.at(same->second);
    weight_bytes_ += bytes;
    if (options_.weights_beside) {
      packed_.resize((packed_.size() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment);
      at->second = fmt::format("at<const {}>(weights, {})", type, kStamp + static_cast<int64_t>(packed_.size()));
      packed_.append(static_cast<const char*>(t.raw()), static_cast<size_t>(bytes));
      return at->second;
    }
    std::string word = "w_" + identifier(name);
    while (!weight_names_.insert(word).second) word += "_";
    at->second = word;
    text_of_weights_ += fmt::format("alignas({}) const {} {}[] = {{\n", kArenaAlignment, type, word);
    text_of_weights_ += wrapped(t.numel(), [&](int64_t i) { return element_text(t, i); }) + "};\n";
    return word;
  }
  static std::string name_of_content(const Tensor& t) {
    return tenon::name(t.dtype()) + (" " + hex(sha256(t.raw(), t.nbytes())));
  }
  static std::string element_text(const Tensor& t, int64_t i) {
    if (t.dtype() == DType::f32) return cpp_number(static_cast<double>(t.data<float>()[i]), t.dtype());
    if (t.dtype() == DType::i64) return whole_number(t.data<int64_t>()[i]);
    return cpp_number(storage_value(t, t.offset() + i), t.dtype());
  }
  static std::string whole_number(int64_t v) { return v == INT64_MIN ? "INT64_MIN" : std::to_string(v); }

  std::string stamp() const {
    const Sha256Digest d = sha256(packed_.data(), packed_.size());
    return {reinterpret_cast<const char*>(d.data()), static_cast<size_t>(kStamp)};
  }

  std::string parameters() const {
    std::string p;
    for (size_t k = 0; k < graph_.inputs.size(); ++k)
      p += fmt::format("const {}* {}, ", cpp_type(value(graph_.inputs[k]).dtype), input_names_[k]);
    for (size_t k = 0; k < graph_.outputs.size(); ++k)
      p += fmt::format("{}* {}, ", cpp_type(value(graph_.outputs[k]).dtype), output_names_[k]);
    p += "Workspace& workspace";
    return options_.weights_beside ? p + ", const void* weights" : p;
  }
  std::string ends_text(const std::vector<int>& values, const std::vector<std::string>& names) const {
    std::string text;
    for (size_t k = 0; k < values.size(); ++k) {
      const StaticValue& v = value(values[k]);
      std::string sizes;
      for (int64_t n : v.shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
      if (v.shape.n) text += fmt::format("constexpr int {}_shape[] = {{{}}};\n", names[k], sizes);
      text += fmt::format("constexpr std::size_t {}_size = {};  // elements, in rows\n", names[k], v.shape.product());
    }
    return text;
  }

  std::string header(const Artifact& a) const {
    std::string text = "#pragma once\n#include <cstddef>\n#include <cstdint>\n\nnamespace " + a.name + " {\n\n";
    text += ends_text(graph_.inputs, input_names_) + ends_text(graph_.outputs, output_names_);
    text += fmt::format("constexpr std::size_t arena_size = {};  // bytes that a run computes in\n",
                        std::max<int64_t>(a.arena_bytes, 1));
    text += fmt::format("constexpr std::size_t weights_size = {};  // bytes{}\n\n",
                        options_.weights_beside ? static_cast<int64_t>(a.weights.size()) : a.weight_bytes,
                        options_.weights_beside ? fmt::format(" of {}.bin", a.name) : "");
    text += fmt::format(
        "/// What a run computes in. Two runs at a time need two; nothing in it lasts from run to run.\nstruct "
        "Workspace {{\n  alignas({}) unsigned char arena[arena_size];\n}};\n\n",
        kArenaAlignment);
    if (options_.weights_beside)
      text += fmt::format(
          "/// Whether these bytes are the weights of this model: the file as it was written, in memory at an address "
          "that is a\n/// multiple of {}.\nbool are_weights(const void* weights, std::size_t bytes) noexcept;\n\n",
          kArenaAlignment);
    text +=
        "/// Reads the inputs and fills the outputs, which lie elsewhere. It takes no memory, throws nothing and keeps "
        "nothing.\n";
    text += "void run(" + parameters() + ") noexcept;\n\n}  // namespace " + a.name + "\n";
    return text;
  }

  std::string source(const Artifact& a, const std::string& file) const {
    std::string text = "#include \"" + std::filesystem::path(file).filename().string() + "\"\n\n#include <cmath>\n\n";
    text += "#if !defined(__GNUC__) && !defined(__clang__)\n#define __restrict\n#endif\n\n";
    text += "namespace " + a.name + " {\nnamespace {\n\n";
    text += text_of_weights_;
    text += R"(
template <class T, class Byte>
inline T* at(Byte* from, std::size_t offset) {
  return reinterpret_cast<T*>(from + offset);
}
)";
    for (const char* h : helpers_) text += h;
    text += "\n" + text_of_functions_ + "}  // namespace\n\n";
    if (options_.weights_beside) text += match_text(a);
    text += "void run(" + parameters() +
            ") noexcept {\n  unsigned char* const arena = workspace.arena;\n  static_cast<void>(arena);\n";
    std::string run = run_;
    if (options_.weights_beside) {
      text +=
          "  const unsigned char* const bytes = static_cast<const unsigned char*>(weights);\n  "
          "static_cast<void>(bytes);\n";
      for (size_t at = run.find(">(weights, "); at != run.npos; at = run.find(">(weights, ", at))
        run.replace(at, 11, ">(bytes, ");
    }
    return text + run + "}\n\n}  // namespace " + a.name + "\n";
  }
  std::string match_text(const Artifact& a) const {
    const std::string bytes = stamp();
    return fmt::format(
        R"(bool are_weights(const void* weights, std::size_t bytes) noexcept {{
  static const unsigned char stamp[] = {{
{}  }};
  bool same = bytes == {} && reinterpret_cast<std::uintptr_t>(weights) % {} == 0;
  for (int i = 0; same && i < {}; ++i) same = static_cast<const unsigned char*>(weights)[i] == stamp[i];
  return same;
}}

)",
        wrapped(kStamp,
                [&](int64_t i) { return std::to_string(static_cast<unsigned char>(bytes[static_cast<size_t>(i)])); }),
        a.weights.size(), kArenaAlignment, kStamp);
  }

  const StaticGraph& graph_;
  const ArtifactOptions& options_;
  MemoryPlan plan_;
  std::vector<std::string> input_names_, output_names_;
  std::vector<const char*> helpers_;
  std::unordered_map<std::string, std::string> functions_;   ///< the name by the text: nodes of one kind share one
  std::unordered_map<std::string, std::string> weights_;     ///< the address by the name
  std::unordered_map<std::string, std::string> by_content_;  ///< the first name of the same numbers
  std::set<std::string> weight_names_;
  std::string text_of_weights_, text_of_functions_, run_, packed_;
  int64_t calls_ = 0, weight_bytes_ = 0;
};

}  // namespace

std::string artifact_name(const std::string& file_stem) { return identifier(file_stem); }

Artifact write_artifact(const OnnxModel& model, const std::string& file, const ArtifactOptions& options,
                        const std::string& says) {
  if (options.batch < 1) throw Error::usage(fmt::format("a batch of {}", options.batch), "Give 1 or more.");
  std::vector<Shape> sizes;
  for (const OnnxValue& v : model.graph.inputs) {
    if (model.graph.initializer(v.name)) continue;
    Shape s;
    for (size_t i = 0; i < v.shape.size(); ++i) {
      if (v.shape[i].value < 0 && i > 0)
        throw OnnxUnsupported(fmt::format("its input {} {} leaves a size open", v.name, type_text(v)),
                              "Only the first may be: it is the batch.");
      s.push_back(v.shape[i].value < 0 ? options.batch : v.shape[i].value);
    }
    sizes.push_back(s);
  }
  const StaticGraph graph = static_graph(model, sizes);
  return ArtifactWriter(model, graph, options).write(file, says);
}

}  // namespace tenon::formats
