#include "engine/formats/aten/writer.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/state.h"
#include "core/tensor_bytes.h"
#include "engine/formats/aten/call_writer.h"
#include "engine/formats/aten/conversion.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/static_graph.h"
#include "engine/formats/torch/exported_archive.h"
#include "engine/formats/torchscript/rule.h"
#include "engine/formats/zip.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// The oldest PyTorch whose archives have this form.
constexpr const char* kWrittenAs = "2.9.0";

/// What sizes depend on is found by running at two batches; of a graph that serves but one, both are that one.
using TriedBatches = std::array<int64_t, 2>;
TriedBatches tried_batches(const OnnxModel& model, int64_t batch) {
  constexpr TriedBatches kTried = {2, 3};
  try {
    for (int64_t b : kTried) static_graph(model, sizes_at_batch(model, b), Folded::no);
  } catch (const Error&) {
    return {batch, batch};
  }
  return kTried;
}

/// Sizes of a program's tensors: what its nodes mean in ONNX is run as they are converted.
class AtenSizes {
 public:
  AtenSizes(AtenProgram& program, const std::map<std::string, Tensor>& held, const OnnxModel& model,
            const TriedBatches& batches)
      : program_(program), batches_(batches), conversion_(program, held) {
    for (size_t b = 0; b < batches.size(); ++b) {
      const std::vector<Shape> sizes = sizes_at_batch(model, batches[b]);
      for (size_t i = 0; i < program.inputs.size(); ++i)
        values_[b][conversion_.value(program.inputs[i])] =
            zeros(sizes.at(i), program.tensors.at(program.inputs[i]).dtype);
    }
  }

  void step(const AtenNode& node) {
    conversion_.step(node);
    const OnnxGraph& g = conversion_.graph();
    for (; initializers_ < g.initializers.size(); ++initializers_)
      for (auto& values : values_) values[g.initializers[initializers_].first] = g.initializers[initializers_].second;
    for (; nodes_ < g.nodes.size(); ++nodes_)
      for (auto& values : values_) run(g.nodes[nodes_], values);
    const std::string& made = conversion_.value(node.outputs.at(0));
    const Tensor &one = values_[0].at(made), &other = values_[1].at(made);
    if (node.whole) {
      number_ = size_of(static_cast<int64_t>(item(one)), static_cast<int64_t>(item(other)));
      program_.numbers[node.outputs[0]] = number_.name;
      return;
    }
    AtenTensor& t = program_.tensors[node.outputs[0]];
    t = {one.dtype(), true, {}};
    if (one.ndim() != other.ndim()) throw OnnxUnsupported("its axes depend on the batch");
    for (int i = 0; i < one.ndim(); ++i) t.sizes.push_back(size_of(one.size(i), other.size(i)));
  }
  /// Of the number that was made last.
  const OnnxDim& number() const { return number_; }

 private:
  static void run(const OnnxNode& n, std::map<std::string, Tensor>& values) {
    std::vector<Tensor> in;
    for (const std::string& name : n.inputs) in.push_back(name.empty() ? Tensor() : values.at(name));
    const std::vector<Tensor> out = run_onnx_node(n, in, AtenConversion::kOpset);
    for (size_t k = 0; k < n.outputs.size() && k < out.size(); ++k) values[n.outputs[k]] = out[k];
  }
  /// "4*s0 + 2"
  OnnxDim size_of(int64_t one, int64_t other) const {
    if (one == other) return {one, ""};
    const int64_t times = (other - one) / (batches_[1] - batches_[0]), more = one - times * batches_[0];
    std::string text = times == 1 ? "s0" : fmt::format("{}*s0", times);
    if (more != 0) text += fmt::format(" + {}", more);
    return {-1, text};
  }

  AtenProgram& program_;
  const TriedBatches batches_;
  AtenConversion conversion_;
  std::array<std::map<std::string, Tensor>, 2> values_;
  size_t initializers_ = 0, nodes_ = 0;
  OnnxDim number_;
};

class ProgramWriter {
 public:
  ProgramWriter(const OnnxModel& model, const ScriptState& state, int64_t batch)
      : model_(model),
        batch_(batch),
        batches_(tried_batches(model, batch)),
        graph_(static_graph(model, sizes_at_batch(model, batch), Folded::no)) {
    program_.torch_version = kWrittenAs;
    std::map<std::string, std::string> given;
    for (const auto& [name, t] : state.parameters) given[name] = hold(name, t, AtenProgram::Holds::parameter);
    for (const auto& [name, t] : state.buffers) given[name] = hold(name, t, AtenProgram::Holds::buffer);
    words_ = script_words(graph_, given);
    for (size_t i = 0; i < words_.size(); ++i) {
      const StaticValue& v = graph_.values[i];
      if (v.constant && !given.contains(v.name)) constants_[words_[i]] = v.constant;
      names_.insert(words_[i]);
    }
    for (int v : graph_.inputs) {
      const auto& declared = declared_input(graph_.values[static_cast<size_t>(v)].name);
      program_.inputs.push_back(word(v));
      AtenTensor t{declared.dtype, true, declared.shape};
      for (OnnxDim& d : t.sizes)
        if (d.value < 0) d = batches_[0] == batches_[1] ? OnnxDim{batch, ""} : OnnxDim{-1, "s0"};
      program_.tensors[word(v)] = t;
    }
  }

  void save(const std::string& path) {
    write_nodes();
    find_sizes();
    FileWriter file(path);
    ZipWriter zip(file);
    const std::string stem = std::filesystem::path(path).stem().string(),
                      folder = (stem.empty() ? "archive" : stem) + "/";
    for (const bool constants : {false, true}) {
      const std::string place = folder + (constants ? "data/constants/" : "data/weights/");
      std::vector<char> bytes;
      for (const auto& [name, h] : aten_payloads(program_, constants))
        zip.add(place + name, logical_bytes(held_.at(h->state), bytes));
      zip.add(place + (constants ? "model_constants_config.json" : "model_weights_config.json"),
              aten_payload_list(program_, constants).dump());
    }
    zip.add(folder + "models/model.json", aten_program_json(program_, batch_).dump());
    zip.add(folder + "data/sample_inputs/model.pt", "");
    zip.add(folder + "archive_format", "pt2");
    zip.add(folder + "archive_version", "0");
    zip.add(folder + "byteorder", "little");
    zip.add(folder + ".data/version", "6\n");
    zip.finish();
    file.commit();
  }

 private:
  const std::string& word(int value) const { return words_[static_cast<size_t>(value)]; }
  const OnnxValue& declared_input(const std::string& name) const {
    for (const OnnxValue& v : model_.graph.inputs)
      if (v.name == name) return v;
    throw Error("its input " + name + " is not declared");
  }
  std::string hold(const std::string& state, const Tensor& t, AtenProgram::Holds kind) {
    std::string name = kind == AtenProgram::Holds::parameter ? "p_" : kind == AtenProgram::Holds::buffer ? "b_" : "c_";
    for (unsigned char c : state) name += std::isalnum(c) && c < 128 ? static_cast<char>(c) : '_';
    while (!names_.insert(name).second) name += "_";
    program_.held.push_back({name, state, kind});
    held_[state] = t;
    AtenTensor meta{t.dtype(), true, {}};
    for (int64_t n : t.size()) meta.sizes.push_back({n, ""});
    program_.tensors[name] = meta;
    return name;
  }

  /// What a word of an expression is in the program. A constant that is read for the first time becomes one of it.
  std::string tensor(const std::string& w) {
    if (const auto same = same_.find(w); same != same_.end()) return same->second;
    const auto constant = constants_.find(w);
    if (constant == constants_.end()) return w;
    return same_[w] =
               hold(fmt::format("constant_{}", held_constants_++), constant->second, AtenProgram::Holds::constant);
  }

  void write_nodes() {
    AtenCallWriter calls([this](const std::string& w) { return tensor(w); },
                         [this](AtenNode n) { program_.nodes.push_back(std::move(n)); }, names_);
    const auto write = [&](const std::string& name, const std::string& expression) {
      const AtenArgument made = calls.write(parse_script_expression(expression), name);
      if (made.kind != AtenArgument::Kind::tensor) throw OnnxUnsupported("its result is no tensor");
      if (made.names[0] != name) same_[name] = made.names[0];
    };
    for (const StaticNode& n : graph_.nodes) {
      const size_t before = program_.nodes.size();
      ScriptCall c(graph_, n, words_);
      const std::string expression = script_expression(n, c, "a program of torch.export");
      try {
        for (const auto& [name, kept] : c.kept()) write(name, kept);
        write(word(n.output), expression);
      } catch (const OnnxUnsupported& e) {
        refuse(n, e);
      }
      for (size_t i = before; i < program_.nodes.size(); ++i) made_by_.push_back(&n);
    }
    for (int v : graph_.outputs) program_.outputs.push_back(tensor(word(v)));
  }
  [[noreturn]] static void refuse(const StaticNode& n, const Error& e) {
    throw OnnxUnsupported(fmt::format("{} '{}' cannot be written as a program of torch.export: {}", n.node->op_type,
                                      n.node->name, e.message()),
                          "Export the model as ONNX, or add the operator: engine/formats/aten.");
  }

  /// Numbers that turn out to be known stand where they are read.
  void find_sizes() {
    const NoGrad off;
    AtenSizes sizes(program_, held_, model_, batches_);
    std::vector<AtenNode> nodes;
    std::map<std::string, int64_t> known;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      AtenNode& n = program_.nodes[i];
      for (auto& [name, a] : n.inputs)
        for (AtenInt& number : a.ints)
          if (const auto it = known.find(number.name); it != known.end()) number = {it->second, {}};
      try {
        sizes.step(n);
      } catch (const OnnxUnsupported& e) {
        refuse(*made_by_[i], e);
      }
      if (n.whole && sizes.number().value >= 0) {
        known[n.outputs[0]] = sizes.number().value;
        program_.numbers.erase(n.outputs[0]);
      } else {
        nodes.push_back(n);
      }
    }
    program_.nodes = std::move(nodes);
  }

  const OnnxModel& model_;
  const int64_t batch_;
  const TriedBatches batches_;
  StaticGraph graph_;
  AtenProgram program_;
  std::vector<std::string> words_;
  std::set<std::string> names_;
  std::map<std::string, Tensor> constants_;  ///< by their words
  std::map<std::string, std::string> same_;  ///< words that are another tensor of the program
  std::map<std::string, Tensor> held_;       ///< by their names in the state
  std::vector<const StaticNode*> made_by_;   ///< of each node
  int held_constants_ = 0;
};

}  // namespace

void save_exported(const std::string& path, const OnnxModel& model, const ScriptState& state, int64_t batch) {
  ProgramWriter(model, state, batch).save(path);
}

}  // namespace tenon::formats
