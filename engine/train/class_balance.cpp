#include "engine/train/class_balance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

constexpr const char* kBalanced = "balanced";

/// How many of the classes occur.
int64_t present(const std::vector<int64_t>& counts) {
  return std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n > 0; });
}

}  // namespace

std::vector<int64_t> class_counts(const data::Dataset& set) {
  const bool binary = set.task() == "binary";
  std::vector<int64_t> counts(static_cast<size_t>(binary ? 2 : set.classes()), 0);
  const auto add = [&](int64_t c) {
    if (c >= 0 && c < static_cast<int64_t>(counts.size())) ++counts[static_cast<size_t>(c)];
  };
  if (counts.empty()) return counts;
  if (const std::vector<int64_t> labels = set.labels(); !labels.empty()) {
    for (int64_t c : labels) add(c);
    return counts;
  }
  const Meta target = set.target();
  if (target.dtype != DType::i64) return {};
  constexpr int64_t kRows = 64;
  for (int64_t at = 0; at < set.size(); at += kRows) {
    std::vector<int64_t> rows;
    for (int64_t r = at; r < std::min(at + kRows, set.size()); ++r) rows.push_back(r);
    const data::Batch b = data::fetch(set, std::move(rows));
    for (int64_t i = 0; i < b.y.numel(); ++i) add(b.y.data<int64_t>()[i]);
  }
  return counts;
}

std::vector<double> balanced_weights(const std::vector<int64_t>& counts) {
  double all = 0;
  for (int64_t n : counts) all += static_cast<double>(n);
  std::vector<double> weights;
  for (int64_t n : counts)
    weights.push_back(n > 0 ? all / (static_cast<double>(present(counts)) * static_cast<double>(n)) : 1);
  return weights;
}

std::vector<ClassCount> count_classes(const data::Split& split) {
  const std::vector<int64_t> train = class_counts(*split.train), test = class_counts(*split.test);
  const std::vector<double> weights = balanced_weights(train);
  std::vector<ClassCount> all;
  for (size_t i = 0; i < train.size(); ++i) {
    ClassCount c{split.train->class_name(static_cast<int64_t>(i)), train[i], 0, weights[i]};
    if (i < test.size()) c.test = test[i];
    all.push_back(std::move(c));
  }
  return all;
}

std::string class_counts_text(const std::vector<ClassCount>& classes) {
  if (classes.empty()) return "the targets are no classes, or mixtures of several";
  constexpr size_t kNamed = 20;
  const auto grouped = [](int64_t n) {
    std::string s = std::to_string(n);
    for (auto i = static_cast<int64_t>(s.size()) - 3; i > 0; i -= 3) s.insert(static_cast<size_t>(i), ",");
    return s;
  };
  int64_t all = 0;
  for (const ClassCount& c : classes) all += c.train;
  std::string text = fmt::format("{} classes in {} training targets", classes.size(), grouped(all));
  if (std::all_of(classes.begin(), classes.end(), [&](const auto& c) { return c.train == classes[0].train; }))
    return text + fmt::format(", {} each", grouped(classes[0].train));
  for (size_t i = 0; i < std::min(kNamed, classes.size()); ++i)
    text += fmt::format("{} {} {}", i ? "," : ":", classes[i].name, grouped(classes[i].train));
  return classes.size() > kNamed ? text + fmt::format(" and {} more", classes.size() - kNamed) : text;
}

std::vector<Attr> loss_attrs(const Recipe& recipe, const data::Dataset& train) {
  std::vector<Attr> attrs = recipe.attrs("loss");
  for (Attr& a : attrs) {
    const auto* text = std::get_if<std::string>(&a.value);
    if (!text || *text != kBalanced || (a.name != "weight" && a.name != "pos_weight")) continue;
    const std::string key = "loss." + a.name + " = balanced";
    const bool binary = train.task() == "binary", positive = a.name == "pos_weight";
    if (recipe.text("data.target") == "input" || positive != binary)
      throw Error::usage(fmt::format("{}: the targets of data set {} are {}", key, recipe.text("data.dataset"),
                                     binary                 ? "zeros and ones"
                                     : train.classes() == 0 ? "no classes"
                                     : positive             ? "classes, no zeros and ones"
                                                            : "not compared as classes"),
                         binary ? "use loss.pos_weight of loss.type = bce_with_logits" : "leave it empty");
    const std::vector<int64_t> counts = class_counts(train);
    if (counts.empty())
      throw Error::usage(key + ": the samples are mixed, and none has one class",
                         "leave out the transforms that mix samples, or the weights");
    if (positive) {
      if (counts[1] == 0) throw Error::usage(key + ": no target of the training split is 1");
      a.value = fmt::format("{:.17g}", static_cast<double>(counts[0]) / static_cast<double>(counts[1]));
    } else {
      a.value = fmt::format("{:.17g}", fmt::join(balanced_weights(counts), ","));
    }
  }
  return attrs;
}

data::Samplers sampler_of(const Recipe& recipe, const data::Dataset& train) {
  if (recipe.text("data.sampling") != kBalanced) return nullptr;
  if (!recipe.flag("data.shuffle"))
    throw Error::usage("data.sampling = balanced draws samples at random, and data.shuffle is false",
                       "let data.shuffle be true, or data.sampling uniform");
  const std::vector<int64_t> labels = train.labels();
  if (labels.empty())
    throw Error::usage(fmt::format("data.sampling = balanced: the samples of data set {} have no class of their own",
                                   recipe.text("data.dataset")),
                       "it is for samples of one class each; use uniform");
  const std::vector<int64_t> counts = class_counts(train);
  std::vector<double> weights;
  for (int64_t c : labels)
    weights.push_back(c >= 0 && c < static_cast<int64_t>(counts.size())
                          ? 1 / static_cast<double>(counts[static_cast<size_t>(c)])
                          : 0);
  return data::weighted(std::move(weights), train.size());
}

}  // namespace tenon
