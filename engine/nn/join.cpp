// Layers that join several inputs, and those that only move elements about.
#include <fmt/format.h>

#include "core/error.h"
#include "engine/nn/functional.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

using Ints = std::vector<int64_t>;
using Made = std::shared_ptr<Module>;

template <Tensor (*F)(const Tensor&, const Tensor&)>
bool pair(const char* type, const char* help, std::vector<LayerExample> examples = {}) {
  return register_layer(
      {{.type = type, .group = "Shape", .help = help, .inputs = 2, .attrs = {}, .examples = std::move(examples)},
       [](const LayerArgs& a) -> Made {
         return nary(a.spec.type, 2, [](std::span<const Tensor> in) { return F(in[0], in[1]); });
       }});
}
/// Distances and likenesses of the rows of two tensors, along the last axis but for eps PyTorch's.
Tensor cosine_similarity(const Tensor& a, const Tensor& b) {
  Tensor dot = sum(mul(a, b), {1}), na = sqrt(sum(square(a), {1})), nb = sqrt(sum(square(b), {1}));
  return div(dot, mul(maximum(na, scalar_like(1e-8, na)), maximum(nb, scalar_like(1e-8, nb))));
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b) { return sqrt(sum(square(add(sub(a, b), 1e-6)), {-1})); }

const bool registered_join[] = {
    pair<tenon::add>("Add", "Adds two tensors of the same size."),
    pair<tenon::sub>("Sub", "The first input minus the second."),
    pair<tenon::mul>("Mul", "Multiplies two tensors, element by element."),
    pair<tenon::matmul>("MatMul", "The matrix product of the last two axes.", {{{2, 3, 4}}, {{2, 4, 5}}}),
    pair<cosine_similarity>("CosineSimilarity", "The cosine of the angle between two inputs along axis 1.",
                            {{{2, 5}}, {{2, 5}}}),
    pair<pairwise_distance>("PairwiseDistance", "The distance between two inputs along the last axis.",
                            {{{2, 5}}, {{2, 5}}}),
};

const bool concat =
    register_layer({{.type = "Concat",
                     .group = "Shape",
                     .help = "Puts tensors behind each other along an axis.",
                     .inputs = 4,
                     .attrs = {{"dim", int64_t{1}, -8, 7, "the axis"}},
                     .optional = 2,
                     .examples = {{{2, 3, 8, 8}}, {{2, 3, 8, 8}}}},
                    [](const LayerArgs& a) -> Made {
                      int dim = static_cast<int>(a.integer("dim"));
                      return nary(fmt::format("Concat(dim {})", dim), 4, [dim](std::span<const Tensor> in) {
                        std::vector<Tensor> parts;
                        for (const Tensor& t : in)
                          if (t) parts.push_back(t);
                        return cat(parts, dim);
                      });
                    }});

const bool permute_layer = register_layer(
    {{.type = "Permute",
      .group = "Shape",
      .help = "The axes in another order.",
      .attrs = {{"dims", Ints{0, 2, 1}, -8, 7, "which axis comes where; 0 is the batch"}},
      .examples = {{{2, 3, 8}}}},
     [](const LayerArgs& a) -> Made {
       Dims dims(a.ints("dims"));
       return unary(fmt::format("Permute({})", to_string(dims)), [dims](const Tensor& x) { return permute(x, dims); });
     }});
const bool reshape_layer =
    register_layer({{.type = "Reshape",
                     .group = "Shape",
                     .help = "The same elements in another size; the batch stays.",
                     .attrs = {{"shape", Ints{-1}, -1, 1e9, "sizes behind the batch; -1: the rest"}}},
                    [](const LayerArgs& a) -> Made {
                      Ints to = a.ints("shape");
                      return unary(fmt::format("Reshape({})", to_string(Dims(to))), [to](const Tensor& x) {
                        if (x.ndim() == 0) throw Error("its input has no batch axis");
                        Shape size{x.size(0)};
                        for (int64_t s : to) size.push_back(s);
                        return reshape(x, size);
                      });
                    }});
const bool select_layer = register_layer({{.type = "Select",
                                           .group = "Shape",
                                           .help = "One slice of an axis, such as the last step of a sequence.",
                                           .attrs = {{"dim", int64_t{1}, -8, 7, "the axis"},
                                                     {"index", int64_t{-1}, -1e9, 1e9, "which slice; -1 is the last"}}},
                                          [](const LayerArgs& a) -> Made {
                                            int dim = static_cast<int>(a.integer("dim"));
                                            int64_t index = a.integer("index");
                                            return unary(fmt::format("Select(dim {}, {})", dim, index),
                                                         [=](const Tensor& x) { return select(x, dim, index); });
                                          }});
const bool mean_layer = register_layer(
    {{.type = "Mean",
      .group = "Shape",
      .help = "The mean over axes.",
      .attrs = {{"dims", Ints{1}, -8, 7, "the axes"}, {"keepdim", false, 0, 0, "keep them with size 1"}}},
     [](const LayerArgs& a) -> Made {
       Dims dims(a.ints("dims"));
       bool keep = a.flag("keepdim");
       return unary(fmt::format("Mean({})", to_string(dims)), [=](const Tensor& x) { return mean(x, dims, keep); });
     }});

}  // namespace
}  // namespace tenon::nn
