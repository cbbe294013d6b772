#include "tracing/checks/model_file_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/tensor_values.h"
#include "engine/train/weight_map.h"

namespace tenon::tracing {
namespace {

using formats::ModelFile;
using Values = CheckedModelFile::Values;

Registry<FileCheck<CheckedModelFile>>& model_file_check_registry() {
  static auto& all = *new Registry<FileCheck<CheckedModelFile>>("check of a model file");
  return all;
}

Values values_read(const Tensor& t) {
  constexpr int64_t kPiece = int64_t{1} << 16;
  Values v;
  v.count = t.numel();
  v.low = HUGE_VAL;
  v.high = -HUGE_VAL;
  std::vector<double> piece(static_cast<size_t>(std::min(kPiece, std::max<int64_t>(1, v.count))));
  for (int64_t from = 0; from < v.count; from += kPiece) {
    const int64_t to = std::min(v.count, from + kPiece);
    read_values(t, from, to, piece.data());
    for (int64_t i = from; i < to; ++i) {
      const double x = piece[static_cast<size_t>(i - from)];
      if (std::isfinite(x)) {
        v.low = std::min(v.low, x);
        v.high = std::max(v.high, x);
        continue;
      }
      ++(std::isnan(x) ? v.nan : v.infinite);
      if (v.first_bad < 0) v.first_bad = i;
    }
  }
  v.constant = v.count > 1 && v.low == v.high && v.first_bad < 0;
  return v;
}

/// Calls f(entry, its values) for every tensor whose values were read.
template <class F>
void each_read(const CheckedModelFile& c, const F& f) {
  for (size_t i = 0; i < c.values.size(); ++i)
    if (c.values[i]) f(c.file->tensors[i], *c.values[i]);
}

Complaint of_tensor(const ModelFile::Entry& e, std::string seen, std::string remedy) {
  return {e.name, std::move(seen), std::move(remedy), {}, -1, Sight::of_tensor(e.name)};
}

std::vector<Complaint> not_finite(const CheckedModelFile& c) {
  std::vector<Complaint> all;
  each_read(c, [&](const ModelFile::Entry& e, const Values& v) {
    if (v.first_bad < 0) return;
    all.push_back(of_tensor(e,
                            fmt::format("{} of {} values are not finite ({} NaN, {} infinite), the first is element {}",
                                        count_text(v.nan + v.infinite), count_text(v.count), count_text(v.nan),
                                        count_text(v.infinite), count_text(v.first_bad)),
                            "take an earlier checkpoint, and look where the run stopped being finite"));
  });
  return all;
}

/// Weights of a layer that all have one value: it was never initialised, or nothing ever reached it. Norms begin with
/// ones and biases with zeros: only what has two axes or more is meant.
std::vector<Complaint> constant_weights(const CheckedModelFile& c) {
  std::vector<Complaint> all;
  each_read(c, [&](const ModelFile::Entry& e, const Values& v) {
    if (v.constant && e.shape.size() >= 2 && e.name.ends_with("weight"))
      all.push_back(of_tensor(e, fmt::format("all {} weights are {:g}", count_text(v.count), v.low),
                              "initialise the layer; equal units learn the same"));
  });
  return all;
}

std::vector<Complaint> wrapped_names(const CheckedModelFile& c) {
  static constexpr struct {
    const char *prefix, *by;
  } kWrappers[] = {{"module.", "DataParallel or DistributedDataParallel"}, {"_orig_mod.", "torch.compile()"}};
  for (const auto& w : kWrappers) {
    const auto& tensors = c.file->tensors;
    const auto wrapped = std::count_if(tensors.begin(), tensors.end(), [&](const ModelFile::Entry& e) {
      return e.name.find(w.prefix) == 0 || e.name.find(std::string("/") + w.prefix) != std::string::npos;
    });
    if (wrapped > 0 && wrapped * 2 > static_cast<ptrdiff_t>(tensors.size()))
      return {{{},
               fmt::format("{} of {} names begin with \"{}\": it was saved from inside {}", count_text(wrapped),
                           count_text(static_cast<int64_t>(tensors.size())), w.prefix, w.by),
               fmt::format("save model.module.state_dict() (or model._orig_mod); reading it, init.map \"*={}*\" pairs "
                           "the names",
                           w.prefix)}};
  }
  return {};
}

std::vector<Complaint> running_statistics(const CheckedModelFile& c) {
  std::vector<Complaint> all;
  each_read(c, [&](const ModelFile::Entry& e, const Values& v) {
    if (!e.name.ends_with("running_var") || v.first_bad >= 0 || v.count == 0) return;
    if (v.low < 0)
      all.push_back(of_tensor(e, fmt::format("a variance is {:g}", v.low),
                              "no training leaves that: the tensor is another's, or was written over"));
    else if (v.constant && v.low == 1)
      all.push_back(
          of_tensor(e, "its variances are all 1, as before any training",
                    "the layer never saw a batch in training mode: model.train() before, model.eval() only to "
                    "evaluate"));
    else if (v.high == 0)
      all.push_back(of_tensor(e, "its variances are all 0: every input was the same",
                              "look at what comes into the layer; a batch of one sample does this"));
  });
  return all;
}

std::vector<Complaint> extreme_halves(const CheckedModelFile& c) {
  constexpr double kLargestHalf = 65504;
  std::vector<Complaint> all;
  each_read(c, [&](const ModelFile::Entry& e, const Values& v) {
    if ((e.dtype == "F16" || e.dtype == "float16" || e.dtype == "f16") && std::max(-v.low, v.high) > kLargestHalf / 4)
      all.push_back(of_tensor(
          e, fmt::format("it reaches {:g}, where float16 ends at {:g}", std::max(-v.low, v.high), kLargestHalf),
          "bfloat16 has the range of float32; or keep this tensor in float32"));
  });
  return all;
}

std::vector<Complaint> unreadable(const CheckedModelFile& c) {
  std::vector<Complaint> all;
  for (const ModelFile::Entry& e : c.file->tensors)
    if (!e.problem.empty())
      all.push_back(of_tensor(e, "its values cannot be read: it " + e.problem, "save it as a plain tensor"));
  return all;
}

std::vector<Complaint> code_in_pickle(const CheckedModelFile& c) {
  std::vector<Complaint> all;
  for (const std::string& name : c.file->foreign)
    all.push_back({name, "the file asks for it to be called; torch.load(weights_only=False) would",
                   "ask whoever made it for a state_dict or safetensors; Tenon reads it as data and runs nothing"});
  return all;
}

std::vector<Complaint> odd_file(const CheckedModelFile& c) {
  std::vector<Complaint> all;
  for (const std::string& w : c.file->warnings) all.push_back({{}, w, "write it anew with the library of its format"});
  return all;
}

/// The plain value that a file has under a name; null where it has none.
const std::string* text_of(const ModelFile& file, const std::string& name) {
  for (const auto& [key, text] : file.texts)
    if (key == name) return &text;
  return nullptr;
}

/// Dropout and batch norm that do as they do in training, in a file that is run to get answers.
std::vector<Complaint> training_mode(const CheckedModelFile& c) {
  const char* remedy = "model.eval() before it is exported, traced or saved as a program";
  std::vector<Complaint> all;
  for (const auto& [key, text] : c.file->texts) {  // TorchScript keeps the mode of every module
    if (text != "True" || !key.ends_with(".training")) continue;
    const std::string module = key.substr(0, key.size() - std::string_view(".training").size());
    const std::string* type = text_of(*c.file, module);
    if (!type || (type->find("Dropout") == type->npos && type->find("BatchNorm") == type->npos)) continue;
    const bool dropout = type->find("Dropout") != type->npos;
    all.push_back({module,
                   dropout ? "it is in training mode: values are set to 0 by chance in every answer"
                           : "it is in training mode: each answer depends on the others of its batch",
                   remedy});
  }
  const auto constant = [&](const std::string& value) -> std::string {
    for (const ModelFile::Node& n : c.file->nodes)
      if (n.op == "Constant" && !n.outputs.empty() && n.outputs[0] == value && !n.attributes.empty())
        return n.attributes[0].second;
    return {};
  };
  const auto is_true = [&](const std::string& value) {
    if (constant(value) == "bool true") return true;
    const int tensor = c.file->find_tensor(value);
    if (tensor < 0 || !c.file->tensors[static_cast<size_t>(tensor)].problem.empty()) return false;
    const Tensor t = c.file->tensor(static_cast<size_t>(tensor));
    return t.dtype() == DType::boolean && t.numel() == 1 && *t.data<bool>();
  };
  for (const ModelFile::Node& n : c.file->nodes) {
    const auto mode = std::find_if(n.attributes.begin(), n.attributes.end(),
                                   [](const auto& a) { return a.first == "training_mode"; });
    if (n.op == "BatchNormalization" && mode != n.attributes.end() && mode->second == "1")
      all.push_back({n.name, "it is in training mode: each answer depends on the others of its batch", remedy});
    if (n.op == "Dropout" && n.inputs.size() > 2 && is_true(n.inputs[2]))
      all.push_back({n.name, "it is in training mode: values are set to 0 by chance in every answer", remedy});
  }
  return all;
}

/// A checkpoint of PyTorch with a state_dict of the optimizer beside that of the model: how many tensors it trains.
std::vector<Complaint> outside_the_optimizer(const CheckedModelFile& c) {
  std::map<std::string, int64_t> trained;  // by the optimizer's place in the file
  for (const auto& [key, text] : c.file->texts)
    if (const size_t at = key.find("/param_groups/"); at != key.npos && key.find("/params/", at) != key.npos)
      ++trained[key.substr(0, at)];
  if (trained.size() != 1) return {};  // none, or several that share the model
  int64_t parameters = 0;
  for (const ModelFile::Entry& e : c.file->tensors)
    parameters += !e.name.starts_with(trained.begin()->first + "/") && !e.name.ends_with("running_mean") &&
                  !e.name.ends_with("running_var") && !e.name.ends_with("num_batches_tracked");
  const int64_t of = trained.begin()->second;
  if (of >= parameters) return {};
  return {{trained.begin()->first,
           fmt::format("the optimizer trains {} tensors, and the model has {} beside its running statistics",
                       count_text(of), count_text(parameters)),
           "torch.optim.X(model.parameters()), made after the last layer was added or replaced; or freeze the others "
           "by requires_grad_(False), so that it is meant"}};
}

/// Weights beside the model that they are meant for.
std::vector<Complaint> keys(const CheckedModelFile& c) {
  if (!c.beside) throw Error("no model was named to hold it against");
  std::vector<GivenTensor> given;
  for (const ModelFile::Entry& e : c.file->tensors) given.push_back({e.name, e.dtype, e.shape, {}, e.problem});
  const WeightMap map =
      map_weights(model_tensors(c.beside->model, c.beside->recipe), std::move(given), WeightRules(c.beside->recipe));
  if (map.taken() == 0 && map.count(WeightState::wrong_shape) == 0)
    return {
        {{},
         fmt::format("none of its {} tensors has a name of the model of {}",
                     count_text(static_cast<int64_t>(map.given.size())), c.beside->name),
         map.rule.empty() ? "compare the lists: `tenon weights`" : "init.map \"" + map.rule + "\" would pair more"}};
  std::vector<Complaint> all;
  for (const WeightRow& row : map.rows) {
    const auto target = [&] { return map.model[static_cast<size_t>(row.target)]; };
    const auto source = [&] { return map.given[static_cast<size_t>(row.source)]; };
    if (row.state == WeightState::missing && !target().buffer)
      all.push_back({target().name, fmt::format("the model of {} has it, the file does not", c.beside->name),
                     "it would stay as it is initialised"});
    if (row.state == WeightState::wrong_shape)
      all.push_back({target().name,
                     fmt::format("{} in the file, {} in the model", to_string(Shape(source().shape)),
                                 to_string(Shape(target().shape))),
                     "another version of the model, or another number of classes: leave it out with init.map",
                     {},
                     -1,
                     Sight::of_tensor(source().name)});
    if (row.state == WeightState::left_over)
      all.push_back({source().name,
                     fmt::format("the model of {} has no such tensor", c.beside->name),
                     "it would be left alone; the file is of another version of the model",
                     {},
                     -1,
                     Sight::of_tensor(source().name)});
  }
  return all;
}

const bool registered_model_file_checks =
    register_model_file_check({"weights.not_finite", "Weights are NaN or infinite", not_finite}) &&
    register_model_file_check({"weights.constant", "All weights of a layer are the same number", constant_weights}) &&
    register_model_file_check({"weights.wrapped", "Names carry a wrapper's prefix", wrapped_names}) &&
    register_model_file_check(
        {"weights.statistics", "Statistics of a batch norm are not those of training", running_statistics}) &&
    register_model_file_check({"weights.range", "float16 is near its end", extreme_halves}) &&
    register_model_file_check({"weights.unreadable", "Tensors that cannot be read", unreadable}) &&
    register_model_file_check({"weights.code", "The file wants code to be run", code_in_pickle}) &&
    register_model_file_check({"weights.odd", "The file is odd", odd_file}) &&
    register_model_file_check({"weights.training", "It answers in training mode", training_mode}) &&
    register_model_file_check(
        {"weights.optimizer", "Parameters that the optimizer does not have", outside_the_optimizer}) &&
    register_model_file_check({"weights.keys", "Missing, unexpected or other tensors", keys});

}  // namespace

const Registry<FileCheck<CheckedModelFile>>& model_file_checks() { return model_file_check_registry(); }
bool register_model_file_check(FileCheck<CheckedModelFile> check, Place place) {
  return model_file_check_registry().add(std::move(check), place);
}
std::vector<CheckResult> check_model_file(const CheckedModelFile& checked) {
  return run_checks(model_file_checks(), checked);
}

CheckedModelFile::CheckedModelFile(std::shared_ptr<const ModelFile> given, std::optional<Beside> model,
                                   const std::function<bool(uint64_t, uint64_t)>& progress)
    : file(std::move(given)), beside(std::move(model)), values(file->tensors.size()) {
  const uint64_t total = file->bytes();
  uint64_t done = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const ModelFile::Entry& e = file->tensors[i];
    if (progress && !progress(done, total)) throw Error("cancelled");
    done += e.bytes;
    if (!e.problem.empty()) continue;
    const Tensor t = file->tensor(i);
    if (t.defined() && is_floating(t.dtype())) values[i] = values_read(t);
  }
}

}  // namespace tenon::tracing
