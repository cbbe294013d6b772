#include "engine/formats/jit/jit_model.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/state.h"
#include "engine/formats/aten/conversion.h"
#include "engine/formats/jit/interpreter.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/formats/torch/types.h"
#include "engine/ops/create.h"

namespace tenon::formats {
namespace {

using Weights = std::map<std::string, Tensor>;

/// Inputs of a program, in one or several sizes.
struct JitInputs {
  std::vector<DType> types;
  std::vector<std::vector<Shape>> tried;
};

OnnxModel converted_as(const JitArchive& archive, const Weights& weights, const JitInputs& inputs) {
  JitGraph graph(weights, inputs.types, inputs.tried);
  JitInterpreter reading(archive, graph);
  const AtenProgram& program = graph.finish(reading.forward(inputs.types.size()));
  // Once more, now that what reads each value is known: what is written in place asks for it.
  AtenConversion conversion(program, weights);
  for (const AtenNode& n : program.nodes) conversion.step(n);
  OnnxModel model = conversion.finish();
  validate(model.graph, "the program");
  return model;
}

/// With the first axes of all inputs in several sizes, and those of an image where they are `open`.
JitInputs in_several_sizes(JitInputs inputs, bool open) {
  for (Shape& s : inputs.tried.at(0))
    if (s.n > 0) s[0] = 3;
  const std::vector<Shape> given = inputs.tried[0];
  const auto another = [&](int axis, int64_t (*size)(int64_t)) {
    std::vector<Shape> sizes = given;
    bool any = false;
    for (Shape& s : sizes)
      if (axis < s.n) s[axis] = size(s[axis]), any = true;
    if (any) inputs.tried.push_back(std::move(sizes));
  };
  another(0, [](int64_t n) { return n + 2; });
  for (int axis = 2; open && axis < 4; ++axis) another(axis, [](int64_t n) { return n + 64; });
  return inputs;
}

/// In any size where that can be; else in any batch, else in the sizes that were given. An example says what the others
/// are but the batch.
OnnxModel converted_for(const JitArchive& archive, const Weights& weights, const JitInputs& inputs, bool example) {
  if (!example) try {
      return converted_as(archive, weights, in_several_sizes(inputs, true));
    } catch (const Error&) {
    }
  try {
    return converted_as(archive, weights, in_several_sizes(inputs, false));
  } catch (const Error&) {
    return converted_as(archive, weights, inputs);
  }
}

/// Inputs that the first weights could be for, the likeliest first.
std::vector<JitInputs> guessed_inputs(const JitArchive& archive) {
  std::vector<JitInputs> all;
  const auto add = [&](Shape size, DType t) { all.push_back({{t}, {{std::move(size)}}}); };
  for (const auto& [name, t] : archive.weights()) {
    constexpr size_t kMostGuesses = 16;
    if (all.size() >= kMostGuesses) break;
    if (t.ndim() == 4)
      for (int64_t size : {224, 64, 32, 28, 8}) add({1, t.size(1), size, size}, DType::f32);
    if (t.ndim() == 3)
      for (int64_t size : {1024, 64}) add({1, t.size(1), size}, DType::f32);
    if (t.ndim() != 2) continue;
    add({1, t.size(1)}, DType::f32);
    add({1, 8, t.size(1)}, DType::f32);
    add({1, 8}, DType::i64);
  }
  return all;
}

OnnxModel converted_program(const JitArchive& archive) {
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
    return converted_for(archive, weights, example, true);
  }
  std::string why;
  for (const JitInputs& guess : guessed_inputs(archive)) try {
      return converted_for(archive, weights, guess, false);
    } catch (const Error& e) {
      if (why.empty()) why = fmt::format(" With {}: {}", to_string(guess.tried[0][0]), e.message());
    }
  throw OnnxUnsupported("it does not say what its inputs are, and none that its weights suggest goes through it." + why,
                        "torch.jit.trace() with an example writes the inputs' sizes into the file.");
}

const bool registered_jit = register_runnable({"torchscript", FileKind::torchscript, load_jit});

}  // namespace

OnnxModel parse_jit(const std::shared_ptr<const MappedFile>& file) {
  const JitArchive archive(file);
  try {
    return converted_program(archive);
  } catch (const OnnxUnsupported& e) {
    throw OnnxUnsupported(file->name() + ": " + e.message(), e.hint());
  } catch (const Error& e) {
    throw e.in(file->name());
  }
}

OnnxModel load_jit(const std::string& path) { return parse_jit(MappedFile::open(path)); }

}  // namespace tenon::formats
