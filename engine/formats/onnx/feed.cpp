#include "engine/formats/onnx/feed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/number.h"
#include "core/random.h"
#include "engine/formats/model_file.h"
#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/ops/create.h"
#include "engine/ops/random.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// Empty where a shape is one that the model declares.
std::string misfit(const OnnxValue& input, const std::vector<int64_t>& shape) {
  if (!input.ranked) return {};
  bool fits = shape.size() == input.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = input.shape[i].value < 0 || input.shape[i].value == shape[i];
  return fits ? std::string() : fmt::format("{} does not fit {}", shape_text(shape), type_text(input));
}

Tensor made_up(const OnnxValue& input, const OnnxFeed& feed) {
  const Shape size(feed.shape);
  const DType dtype = input.dtype;
  if (feed.from == OnnxFeed::From::zeros) return zeros(size, dtype);
  if (feed.from == OnnxFeed::From::ones) return ones(size, dtype);
  Generator from{feed.seed, stream_of(input.name.c_str())};
  if (dtype == DType::boolean) return cast(randint(0, 2, size, DType::u8, &from), dtype);
  return is_floating(dtype) ? randn(size, dtype, &from) : randint(0, 10, size, dtype, &from);
}

Tensor of_file(const std::string& path, const std::string& name) {
  if (path.ends_with(".npy")) return load_npy(path);
  if (path.ends_with(".pb")) return load_onnx_tensor(path);
  if (path.ends_with(".npz")) {
    const NamedTensors all = load_npz(path);
    for (const auto& [member, t] : all)
      if (member == name || all.size() == 1) return t;
    std::vector<std::string> names;
    for (const auto& t : all) names.push_back(t.first);
    throw Error(fmt::format("{} has no array \"{}\" {}", path, name, near_names(name, names.data(), names.size())),
                fmt::format("It has {}.", fmt::join(names, ", ")));
  }
  const auto file = ModelFile::open(path);
  return file->tensor(file->tensors.size() == 1 ? 0 : file->at(name));
}

}  // namespace

std::vector<OnnxValue> wanted_inputs(const OnnxModel& model) {
  std::vector<OnnxValue> wanted;
  for (const OnnxValue& v : model.graph.inputs)
    if (!model.graph.initializer(v.name)) wanted.push_back(v);
  return wanted;
}

const OnnxValue& find_input(const std::vector<OnnxValue>& inputs, const std::string& name) {
  std::vector<std::string> names;
  for (const OnnxValue& v : inputs) {
    if (v.name == name) return v;
    names.push_back(v.name);
  }
  throw Error::usage(
      fmt::format("the model has no input \"{}\" {}", name, near_names(name, names.data(), names.size())),
      names.empty() ? "It takes none." : fmt::format("Its inputs are {}.", fmt::join(names, ", ")));
}

std::vector<int64_t> parse_sizes(const std::string& text) {
  std::string words = text;
  for (char& c : words)
    if (c == 'x' || c == ',' || c == '[' || c == ']' || c == ';') c = ' ';
  std::vector<int64_t> shape;
  for (size_t at = 0; (at = words.find_first_not_of(' ', at)) != words.npos;) {
    const size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    const bool digits = std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || word.size() > 15)
      throw Error::usage(fmt::format("\"{}\" is no shape", text), "Write its sizes, 2, 3, 8, 8 or 2x3x8x8.");
    shape.push_back(std::stoll(word));
    at = end;
  }
  if (shape.size() > static_cast<size_t>(kMaxDims))
    throw Error::usage(fmt::format("{} has {} dimensions; at most {} are supported", text, shape.size(), kMaxDims));
  return shape;
}

std::vector<int64_t> input_shape(const OnnxValue& input, const std::string& text) {
  std::vector<int64_t> shape;
  try {
    shape = parse_sizes(text);
  } catch (const Error& e) {
    throw e.in("input " + input.name);
  }
  if (const std::string why = misfit(input, shape); !why.empty())
    throw Error::usage(fmt::format("input {}: the shape {}", input.name, why),
                       "Sizes that are numbers there are fixed; named ones and ? may be any.");
  return shape;
}

std::vector<int64_t> least_shape(const OnnxValue& input) {
  std::vector<int64_t> shape;
  for (const OnnxDim& d : input.shape) shape.push_back(d.value >= 0 ? d.value : 1);
  return shape;
}

OnnxFeed parse_feed(const std::string& text) {
  if (text == "zeros") return {OnnxFeed::From::zeros};
  if (text == "ones") return {OnnxFeed::From::ones};
  if (text == "seed") return {};
  if (text.starts_with("seed:")) {
    const std::string digits = text.substr(5);
    if (!digits.empty() && digits.size() < 19 && digits.find_first_not_of("0123456789") == digits.npos)
      return {OnnxFeed::From::seed, std::stoull(digits)};
  }
  throw Error::usage(fmt::format("\"{}\" is nothing to fill inputs with", text), "Write seed:3, zeros or ones.");
}

Tensor fed(const OnnxValue& input, const OnnxFeed& feed) {
  if (input.form != OnnxValue::Form::tensor)
    throw Error(
        fmt::format("input {} is no tensor but a sequence or an optional, which cannot be given here", input.name));
  if (!input.unsupported.empty())
    throw OnnxUnsupported(
        fmt::format("input {} has the type {}, which is not supported", input.name, input.unsupported));
  const Tensor t = feed.from == OnnxFeed::From::file ? of_file(feed.file, input.name) : made_up(input, feed);
  const std::string where =
      feed.from == OnnxFeed::From::file ? fmt::format("input {}, of {}", input.name, feed.file) : "input " + input.name;
  if (const std::string why = misfit(input, {t.size().begin(), t.size().end()}); !why.empty())
    throw Error(fmt::format("{}: the shape {}", where, why));
  if (input.typed && t.dtype() != input.dtype)
    throw Error(fmt::format("{}: it is {}, and the model takes {}", where, name(t.dtype()), name(input.dtype)),
                "Save it as that type: nothing is converted on the way.");
  return t;
}

std::vector<OnnxItem> fed(const std::vector<OnnxValue>& inputs, const std::vector<OnnxFeed>& feeds) {
  if (inputs.size() != feeds.size())
    throw Error(fmt::format("the model takes {} inputs, {} were given", inputs.size(), feeds.size()));
  std::vector<OnnxItem> items;
  std::map<std::string, std::pair<int64_t, std::string>> sizes;  // by name: the size, and the input that has it
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor t = fed(inputs[i], feeds[i]);
    for (size_t d = 0; d < inputs[i].shape.size(); ++d) {
      const std::string& name = inputs[i].shape[d].name;
      if (name.empty()) continue;
      const int64_t size = t.size(static_cast<int>(d));
      const auto [known, fresh] = sizes.try_emplace(name, size, inputs[i].name);
      if (!fresh && known->second.first != size)
        throw Error(fmt::format("the size {} is {} in the input {} and {} in {}", name, known->second.first,
                                known->second.second, size, inputs[i].name),
                    "Give both the same.");
    }
    items.emplace_back(t);
  }
  return items;
}

NamedTensors named_outputs(const OnnxModel& model, const std::vector<OnnxItem>& outputs) {
  NamedTensors named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.graph.outputs[i].name;
    if (outputs[i].tensor) named.emplace_back(name, outputs[i].tensor);
    if (!outputs[i].sequence) continue;
    for (size_t k = 0; k < outputs[i].sequence->size(); ++k)
      named.emplace_back(fmt::format("{}[{}]", name, k), (*outputs[i].sequence)[k]);
  }
  return named;
}

void save_outputs(const std::string& path, const NamedTensors& outputs) {
  if (path.ends_with(".npz")) return save_npz(path, outputs);
  if (path.ends_with(".safetensors")) return save_safetensors(path, outputs, {});
  if (!path.ends_with(".npy"))
    throw Error::usage(fmt::format("{}: the end of the name says no kind of file", path),
                       "End it in .npz or .safetensors, or in .npy for one tensor.");
  if (outputs.size() != 1)
    throw Error::usage(fmt::format("{}: a .npy file holds one tensor, the model gave {}", path, outputs.size()),
                       "End it in .npz or .safetensors.");
  save_npy(path, outputs[0].second);
}

}  // namespace tenon::formats
