#include "engine/train/task.h"

#include <fmt/format.h>

#include "core/dry_device.h"
#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/readings.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/train/class_balance.h"
#include "engine/train/count_right.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

bool has_classes(const std::string& task) {
  return task == "classification" || task == "segmentation" || task == "language";
}

}  // namespace

Task::Task(const Recipe& recipe, const data::Dataset& set, const Meta& input, const Meta& output)
    : loss_(recipe.text("loss.type"), loss_attrs(recipe, set)) {
  const std::string& name = recipe.text("data.dataset");
  if (!(input.shape == set.input().shape))
    throw Error(fmt::format("the model takes samples of shape {}; those of data set {} have shape {}",
                            to_string(input.shape), name, to_string(set.input().shape)),
                "set the shape of the Input layer to the data set's");
  if (input.dtype != set.input().dtype)
    throw Error(fmt::format("the model takes samples of {}; those of data set {} are {}", tenon::name(input.dtype),
                            name, tenon::name(set.input().dtype)),
                "set the dtype of the Input layer to the data set's");
  const bool itself = recipe.text("data.target") == "input";
  view_ = {itself ? "reconstruction" : set.task(), itself ? 0 : set.classes(), set.bytes_per_token()};
  const nn::Targets& takes = loss_.def().targets;
  class_loss_ = has_classes(view_.task) && takes.classes;
  probabilities_ = view_.task == "binary" && recipe.text("loss.type") == "bce";
  takes_shares_ = takes.values;
  const LayerInfo& info = loss_.def().info;
  for (const AttrDef& a : info.attrs)
    if (a.name == "reduction") {
      if (recipe.text("loss.reduction") == "none")
        throw Error::usage("loss.reduction = none gives a loss for each target; a training step needs one number",
                           "use mean or sum");
      sums_ = recipe.text("loss.reduction") == "sum";
    }
  if (info.inputs - info.optional > 2)
    throw Error::usage(fmt::format("loss.type = {} compares {} tensors; a training step has an output and a target",
                                   recipe.text("loss.type"), info.inputs - info.optional));
  Meta target = itself ? set.input() : set.target();
  if (has_classes(view_.task)) {
    if (!takes.classes && !takes.values)
      throw Error::usage(fmt::format("loss.type = {} has no use for classes", recipe.text("loss.type")));
    check_classes(name, output.shape, target.shape);
    return;
  }
  if (takes.classes)
    throw Error::usage(fmt::format("loss.type = {} needs classes; the targets of data set {} are values",
                                   recipe.text("loss.type"), name),
                       "use a loss of values, such as loss.type = mse");
  if (target.dtype != DType::f32)
    throw Error(
        fmt::format("the targets of data set {} are {}; a loss of values takes f32", name, tenon::name(target.dtype)));
  if (!(output.shape == target.shape))
    throw Error(fmt::format("the model gives {} for each sample; the targets of data set {} have shape {}",
                            to_string(output.shape), name, to_string(target.shape)));
}

void Task::check_classes(const std::string& name, const Shape& out, const Shape& target) {
  Shape want = target;
  const bool last = view_.task == "language";
  want.insert(last ? target.n : 0, view_.classes);
  class_axis_ = last ? target.n + 1 : 1;
  targets_ = target.product();
  if (!(out == want))
    throw Error(fmt::format("the model gives {} for each sample; data set {} has {} classes, which need {}",
                            to_string(out), name, view_.classes, to_string(want)),
                target.n == 0 ? "set the last layer's out_features to the number of classes"
                              : "let the last layer give one score a class for every target");
}

/// [n, classes, ...] or [n, ..., classes] as [rows, classes].
Tensor Task::rows(const Tensor& output) const {
  int n = output.ndim();
  if (n == 2) return output;
  Tensor x = output;
  if (class_axis_ != n - 1) {
    Dims axes{0};
    for (int i = 2; i < n; ++i) axes.push_back(i);
    axes.push_back(1);
    x = permute(x, axes);
  }
  return reshape(x, {-1, view_.classes});
}

Tensor Task::loss(const Tensor& output, const Tensor& target) const {
  if (!has_classes(view_.task)) return loss_(output, target);
  Tensor x = rows(output);
  // A mixture of two samples has a share of each class instead of one.
  const bool shares = target.dtype() != DType::i64;
  if (class_loss_ && !shares) return loss_(x, reshape(target, {-1}));
  if (class_loss_ && !takes_shares_) return neg(mean(sum(mul(target, log_softmax(x, -1)), {-1})));
  return loss_(
      x, shares ? target
                : one_hot(reshape(target, {-1}), view_.classes, x.dtype() == DType::f64 ? DType::f64 : DType::f32));
}

bool Task::picks_classes() const { return has_classes(view_.task); }

Tensor Task::distance(const Tensor& output, const Tensor& teacher, double temperature) const {
  const auto scaled = [&](const Tensor& t) { return log_softmax(mul(cast(rows(t), DType::f32), 1 / temperature), -1); };
  const Tensor theirs = scaled(teacher);
  const Tensor each = sum(mul(exp(theirs), sub(theirs, scaled(output))), {-1});
  return mul(sums_ ? sum(each) : mean(each), temperature * temperature);
}

std::optional<size_t> Task::right(const Tensor& output, const Tensor& target, Readings& readings) const {
  const bool binary = view_.task == "binary";
  if (!binary && (!has_classes(view_.task) || target.dtype() != DType::i64)) return std::nullopt;
  if (is_dry(output.device())) return readings.add(0.0);
  if (!counts_right(output.dtype())) return std::nullopt;
  const int axis = binary ? -1 : class_axis_;
  const double yes = binary && probabilities_ ? 0.5 : 0;
  if (output.device() == Device{}) return readings.add(static_cast<double>(count_right(output, target, axis, yes)));
  return readings.add([&](Tensor& out) { count_right(output, target, axis, yes, out); });
}

Tensor Task::scores(const Tensor& output) const {
  if (probabilities_) return cast(contiguous(sub(log(output), log(add(neg(output), 1)))), DType::f32);
  return cast(contiguous(has_classes(view_.task) ? rows(output) : output), DType::f32);
}
Tensor Task::answers(const Tensor& target) const {
  return contiguous(has_classes(view_.task) ? reshape(target, {-1}) : target);
}

}  // namespace tenon
