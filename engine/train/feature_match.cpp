#include "engine/train/feature_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/name_pattern.h"
#include "core/state.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

constexpr const char* kFeatures = "distill.features";

std::vector<std::string> names_of(const std::vector<FeaturePair>& pairs, bool teacher) {
  std::vector<std::string> names;
  for (const FeaturePair& p : pairs) names.push_back(teacher ? p.teacher : p.student);
  return names;
}

/// What layers give for a batch, as sizes alone.
std::vector<Tensor> sizes_of(const ModelSpec& spec, const std::vector<std::string>& layers, const char* whose) {
  const NoGrad off;
  const auto model = std::make_shared<GraphModule>(spec, Device{DeviceType::meta});
  model->eval();
  LayerOutputs outputs(model, layers, whose);
  outputs.keep(true);
  Shape batch = model->input().shape;
  batch.insert(0, 2);
  (*model)(empty(batch, model->input().dtype, Device{DeviceType::meta}));
  return outputs.take();
}

/// How alike the samples of a batch are, each row of length 1: [n, n].
Tensor alike(const Tensor& features) {
  const Tensor flat = reshape(cast(features, DType::f32), {features.size(0), -1}),
               all = matmul(flat, flat, false, true);
  // A batch in which a layer is silent is like nothing, and has a gradient all the same.
  constexpr double kLeast = 1e-12;
  return div(all, sqrt(add(sum(square(all), {1}, true), kLeast)));
}

}  // namespace

std::vector<FeaturePair> feature_pairs(const Recipe& recipe) {
  std::vector<FeaturePair> pairs;
  for (const std::string& part : split_list(recipe.text(kFeatures))) {
    const size_t at = part.find('=');
    const auto trimmed = [](std::string s) {
      s.erase(0, s.find_first_not_of(' '));
      return s.substr(0, s.find_last_not_of(' ') + 1);
    };
    FeaturePair p{trimmed(part.substr(0, at)), at == part.npos ? trimmed(part) : trimmed(part.substr(at + 1))};
    if (p.student.empty() || p.teacher.empty() || p.teacher.find('=') != p.teacher.npos)
      throw Error::usage(fmt::format("{}: \"{}\" is no pair of layers", kFeatures, part),
                         "a layer of the student and one of the teacher, as in \"stage2=layer3\"; one name alone is "
                         "that of both");
    pairs.push_back(std::move(p));
  }
  return pairs;
}

LayerOutputs::LayerOutputs(std::shared_ptr<GraphModule> model, const std::vector<std::string>& layers,
                           const char* whose)
    : model_(std::move(model)), outputs_(std::make_shared<std::vector<Tensor>>(layers.size())) {
  const auto modules = model_->named_modules();
  std::vector<nn::Module*> found;
  for (const std::string& layer : layers) {
    const auto at = std::find_if(modules.begin(), modules.end(), [&](const auto& m) { return m.first == layer; });
    if (at == modules.end() || layer.empty()) {
      std::vector<std::string> names;
      for (const auto& [path, module] : modules)
        if (!path.empty()) names.push_back(path);
      throw Error::usage(fmt::format("{}: {} has no layer {}", kFeatures, whose, layer),
                         near_names(layer, names.data(), names.size()));
    }
    found.push_back(at->second);
  }
  for (size_t i = 0; i < found.size(); ++i)
    hooks_.emplace_back(found[i], found[i]->add_forward_hook([kept = kept_, outputs = outputs_, i](
                                                                 nn::Module&, std::span<const Tensor>, Tensor& y) {
      if (*kept) (*outputs)[i] = y;
    }));
}

LayerOutputs::~LayerOutputs() {
  for (const auto& [module, hook] : hooks_) module->remove_hook(hook);
}

std::vector<Tensor> LayerOutputs::take() {
  std::vector<Tensor> all(outputs_->size());
  std::swap(all, *outputs_);
  return all;
}

FeatureMatch::FeatureMatch(const Recipe& recipe, const ModelSpec& spec, std::shared_ptr<GraphModule> student,
                           const Teacher& teacher)
    : pairs_(feature_pairs(recipe)),
      similarity_(recipe.text("distill.features_by") == "similarity"),
      student_(std::move(student), names_of(pairs_, false), "the model"),
      teacher_(teacher.model(), names_of(pairs_, true), "the teacher") {
  if (recipe.integer("recompute") > 1)
    throw Error::usage(
        fmt::format("{}: recompute = {} does not keep what layers give", kFeatures, recipe.integer("recompute")),
        "set recompute to 0, or leave distill.features empty");
  const std::vector<Tensor> mine = sizes_of(spec, names_of(pairs_, false), "the model"),
                            theirs = sizes_of(teacher.spec(), names_of(pairs_, true), "the teacher");
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const std::string what = fmt::format("{}: {}={}", kFeatures, pairs_[i].student, pairs_[i].teacher);
    if (!mine[i].defined() || !theirs[i].defined()) throw Error::usage(what + ": a layer of these gives nothing");
    const Shape &a = mine[i].size(), &b = theirs[i].size();
    if (similarity_ && (a.n == 0 || b.n == 0 || a[0] != b[0]))
      throw Error::usage(
          fmt::format("{}: sizes {} and {} are not of one sample each", what, to_string(a), to_string(b)),
          "choose layers whose first axis is the batch");
    if (!similarity_ && !(a == b))
      throw Error::usage(
          fmt::format("{}: for 2 samples the student gives {}, the teacher {}", what, to_string(a), to_string(b)),
          "choose layers of one size, or distill.features_by=similarity, which compares any");
  }
}

void FeatureMatch::begin() {
  student_.keep(true);
  teacher_.keep(true);
}

Tensor FeatureMatch::distance() {
  student_.keep(false);
  teacher_.keep(false);
  const std::vector<Tensor> mine = student_.take(), theirs = teacher_.take();
  Tensor all;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (!mine[i] || !theirs[i])
      throw Error(
          fmt::format("{}: {}={} gave nothing for this batch", kFeatures, pairs_[i].student, pairs_[i].teacher));
    const Tensor one = similarity_ ? mean(square(sub(alike(mine[i]), alike(theirs[i]))))
                                   : mean(square(sub(cast(mine[i], DType::f32), cast(theirs[i], DType::f32))));
    all = all ? add(all, one) : one;
  }
  return pairs_.size() == 1 ? all : mul(all, 1.0 / static_cast<double>(pairs_.size()));
}

}  // namespace tenon
