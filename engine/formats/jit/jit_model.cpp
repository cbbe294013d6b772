#include "engine/formats/jit/jit_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/state.h"
#include "engine/formats/aten/conversion.h"
#include "engine/formats/jit/interpreter.h"
#include "engine/formats/torch/types.h"
#include "engine/ops/create.h"

namespace tenon::formats {
namespace {

using Weights = std::map<std::string, Tensor>;

/// Inputs of a program, in one or several sizes.
struct JitInputs {
  std::vector<DType> types;
  std::vector<std::vector<Shape>> tried;
  std::vector<int> open = {};  ///< axes that may have any size: of an image its height and width, of a text its length
};

/// How far a program was read before it was refused.
struct JitReach {
  size_t nodes = 0;
  std::string why;
};

OnnxModel converted_as(const JitArchive& archive, const Weights& weights, const JitInputs& inputs, JitReach& reach) {
  JitGraph graph(weights, inputs.types, inputs.tried);
  std::vector<std::string> outputs;
  try {
    outputs = JitInterpreter(archive, graph).forward(inputs.types.size());
  } catch (const Error& e) {
    if (reach.why.empty() || graph.nodes() > reach.nodes)
      reach = {graph.nodes(), fmt::format(" With {}: {}", to_string(inputs.tried[0][0]), e.message())};
    throw;
  }
  const AtenProgram& program = graph.finish(outputs);
  // Once more, now that what reads each value is known: what is written in place asks for it.
  AtenConversion conversion(program, weights);
  for (const AtenNode& n : program.nodes) conversion.step(n);
  OnnxModel model = conversion.finish();
  validate(model.graph, "the program");
  return model;
}

/// With the first axes of all inputs in several sizes, and the open ones where they are wanted.
JitInputs in_several_sizes(JitInputs inputs, bool open) {
  for (Shape& s : inputs.tried.at(0))
    if (s.n > 0) s[0] = 3;
  const std::vector<Shape> given = inputs.tried[0];
  const auto another = [&](int axis, int64_t more) {
    std::vector<Shape> sizes = given;
    bool any = false;
    for (Shape& s : sizes)
      if (axis < s.n) s[axis] += more, any = true;
    if (any) inputs.tried.push_back(std::move(sizes));
  };
  another(0, 2);
  constexpr int64_t kMore = 32;  // what networks of images make smaller by two, five times, stays whole
  for (const int axis : inputs.open)
    if (open) another(axis, inputs.types[0] == DType::f32 ? kMore : 1);
  return inputs;
}

/// In any size where that can be; else in any batch, else in the sizes that were given.
OnnxModel converted_for(const JitArchive& archive, const Weights& weights, const JitInputs& inputs, JitReach& reach) {
  for (const bool open : {true, false}) {
    if (open && inputs.open.empty()) continue;
    try {
      return converted_as(archive, weights, in_several_sizes(inputs, open), reach);
    } catch (const Error&) {
    }
  }
  return converted_as(archive, weights, inputs, reach);
}

/// Inputs that the first weights could be for, the likeliest first.
std::vector<JitInputs> guessed_inputs(const JitArchive& archive) {
  std::vector<JitInputs> all;
  const auto add = [&](Shape size, DType t, std::vector<int> open) {
    all.push_back({{t}, {{std::move(size)}}, std::move(open)});
  };
  for (const auto& [name, t] : archive.weights()) {
    constexpr size_t kMostGuesses = 16;
    if (all.size() >= kMostGuesses) break;
    if (t.ndim() == 4)
      for (int64_t size : {224, 64, 32, 28, 8}) add({1, t.size(1), size, size}, DType::f32, {2, 3});
    if (t.ndim() == 3)
      for (int64_t size : {1024, 64}) add({1, t.size(1), size}, DType::f32, {2});
    if (t.ndim() != 2) continue;
    add({1, t.size(1)}, DType::f32, {});
    add({1, 8, t.size(1)}, DType::f32, {1});
    add({1, 8}, DType::i64, {1});
  }
  return all;
}

/// What is said of them; of which type they are is tried where that is not.
std::vector<JitInputs> hinted_inputs(const std::vector<InputHint>& given) {
  std::vector<JitInputs> all;
  for (const DType otherwise : {DType::f32, DType::i64}) {
    JitInputs inputs{{}, {{}}};
    for (const InputHint& hint : given) {
      inputs.types.push_back(hint.type.value_or(otherwise));
      inputs.tried[0].push_back(hint.size);
    }
    all.push_back(std::move(inputs));
  }
  return all;
}

OnnxModel converted_program(const JitArchive& archive, const std::vector<InputHint>& given) {
  const NoGrad off;
  Weights weights = archive.weights();
  for (size_t i = 0; i < archive.constants().size(); ++i)
    if (archive.constants()[i]) weights.insert_or_assign(fmt::format("constants.{}", i), archive.constants()[i]);
  if (!archive.traced().empty()) {
    JitInputs example{{}, {{}}};
    for (const JitArchive::Traced& t : archive.traced()) {
      const TorchType* type = torch_dtype(t.dtype);
      if (!type || type->engine < 0)
        throw OnnxUnsupported("it was traced with a tensor of a type that is not supported");
      example.types.push_back(static_cast<DType>(type->engine));
      example.tried[0].push_back(t.size);
    }
    JitReach reach;
    return converted_for(archive, weights, example, reach);
  }
  JitGraph none(weights, {}, {{}});
  if (const auto others = JitInterpreter(archive, none).inputs_that_are_no_tensors(); !others.empty())
    throw OnnxUnsupported(fmt::format("its forward takes what is no tensor: {}", fmt::join(others, ", ")),
                          "Give these inputs values in its code, or trace it with them: torch.jit.trace().");
  JitReach reach;
  for (const JitInputs& guess : given.empty() ? guessed_inputs(archive) : hinted_inputs(given)) try {
      return converted_for(archive, weights, guess, reach);
    } catch (const Error&) {  // reach knows
    }
  if (!given.empty()) throw OnnxUnsupported("it cannot be run." + reach.why);
  throw OnnxUnsupported(
      "it does not say what its inputs are, and none that its weights suggest goes through it." + reach.why,
      "Say their sizes: --shape input=1x3x224x224. A program of torch.jit.trace() has them itself.");
}

const bool registered_jit = register_runnable({"torchscript", FileKind::torchscript, load_jit});

}  // namespace

OnnxModel parse_jit(const std::shared_ptr<const MappedFile>& file, const std::vector<InputHint>& inputs) {
  const JitArchive archive(file);
  try {
    return converted_program(archive, inputs);
  } catch (const OnnxUnsupported& e) {
    throw OnnxUnsupported(file->name() + ": " + e.message(), e.hint());
  } catch (const Error& e) {
    throw e.in(file->name());
  }
}

OnnxModel load_jit(const std::string& path, const std::vector<InputHint>& inputs) {
  return parse_jit(MappedFile::open(path), inputs);
}

}  // namespace tenon::formats
