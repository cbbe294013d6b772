// Structure and weights of two models, as a finding.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/formats/model_difference.h"
#include "projects/compare.h"

namespace tenon::projects {
namespace {

using formats::ModelDifference;
using formats::ModelFile;
using formats::NodePair;
using formats::TensorDifference;
using formats::TensorPair;
using tracing::Cell;
using tracing::Finding;
using tracing::Sight;
using tracing::Table;
using tracing::Unit;

/// "f32 [64, 3, 7, 7]"; nothing where there is none.
std::string type_of(const ModelFile& m, int tensor) {
  if (tensor < 0) return {};
  const auto& e = m.tensors[static_cast<size_t>(tensor)];
  return fmt::format("{} [{}]", e.dtype, fmt::join(e.shape, ", "));
}
const std::string& name_of(const ModelFile& a, const ModelFile& b, const TensorPair& p) {
  return p.a >= 0 ? a.tensors[static_cast<size_t>(p.a)].name : b.tensors[static_cast<size_t>(p.b)].name;
}
Sight tensor_sight(const ModelFile& m, int tensor) {
  return tensor < 0 ? Sight() : Sight::of_tensor(m.tensors[static_cast<size_t>(tensor)].name);
}

/// "[3, 0, 1]": the place of an element that is counted row by row.
std::string place_text(const std::vector<int64_t>& shape, int64_t element) {
  if (element < 0) return {};
  std::vector<int64_t> at(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    at[axis] = element % std::max<int64_t>(1, shape[axis]);
    element /= std::max<int64_t>(1, shape[axis]);
  }
  return fmt::format("[{}]", fmt::join(at, ", "));
}

/// How much a pair has changed, for the order of rows: what became NaN, then by the norm of the difference as a share
/// of the larger norm, which is finite where A holds zeros.
double weight_of(const TensorPair& p) {
  if (p.difference.first_not_finite >= 0) return std::numeric_limits<double>::infinity();
  const double larger = std::max(p.difference.norm_a(), p.difference.norm_b());
  return p.difference.changed ? (larger > 0 ? p.difference.norm() / larger : 0) : -1;
}

Table difference_table(const ModelFile& a, const ModelFile& b, const ModelDifference& d, size_t top) {
  Table t{"weights",
          {{"name", "TENSOR", Unit::text},
           {"relative", "RELATIVE NORM", Unit::number},
           {"norm", "NORM OF B - A", Unit::number},
           {"cosine", "COSINE", Unit::number},
           {"largest", "LARGEST |CHANGE|", Unit::number},
           {"at", "AT", Unit::text},
           {"a_there", "IN A", Unit::number},
           {"b_there", "IN B", Unit::number},
           {"changed", "ELEMENTS CHANGED", Unit::count},
           {"elements", "OF", Unit::count},
           {"not_finite", "NOT FINITE", Unit::count},
           {"bits", "BITS", Unit::text},
           {"type", "TYPE", Unit::text, true}},
          {}};
  std::vector<const TensorPair*> order;
  for (const TensorPair& p : d.tensors)
    if (p.compared()) order.push_back(&p);
  std::stable_sort(order.begin(), order.end(),
                   [](const TensorPair* x, const TensorPair* y) { return weight_of(*x) > weight_of(*y); });
  for (const TensorPair* p : order) {
    if (t.rows.size() == top) break;
    const TensorDifference& x = p->difference;
    const auto& shape = a.tensors[static_cast<size_t>(p->a)].shape;
    const bool odd = x.largest_at < 0 && x.first_not_finite >= 0, somewhere = odd || x.changed > 0;
    const auto there = [&](double v) { return somewhere ? Cell(v) : Cell(std::string()); };
    t.add({name_of(a, b, *p), x.relative(), x.norm(), x.cosine(), x.largest,
           somewhere ? place_text(shape, odd ? x.first_not_finite : x.largest_at) : "", there(x.a_there),
           there(x.b_there), x.changed, x.count, x.not_finite, std::string(x.same_bits ? "equal" : "differ"),
           type_of(a, p->a)},
          tensor_sight(a, p->a), tensor_sight(b, p->b));
  }
  return t;
}

Table tensor_table(const ModelFile& a, const ModelFile& b, const ModelDifference& d, size_t top) {
  Table t{"tensors",
          {{"name", "TENSOR", Unit::text},
           {"what", "WHAT", Unit::text},
           {"a", "IN A", Unit::text},
           {"b", "IN B", Unit::text}},
          {}};
  for (const TensorPair& p : d.tensors) {
    if (p.state == TensorPair::State::same || p.state == TensorPair::State::changed) continue;
    if (t.rows.size() == top) break;
    t.add({name_of(a, b, p), p.problem.empty() ? name(p.state) : fmt::format("{}: {}", name(p.state), p.problem),
           type_of(a, p.a), type_of(b, p.b)},
          tensor_sight(a, p.a), tensor_sight(b, p.b));
  }
  return t;
}

Table node_table(const ModelFile& a, const ModelFile& b, const ModelDifference& d, size_t top) {
  Table t{"nodes", {{"name", "NODE", Unit::text}, {"op", "OP", Unit::text}, {"what", "WHAT", Unit::text}}, {}};
  for (const NodePair& p : d.nodes) {
    if (p.same()) continue;
    if (t.rows.size() == top) break;
    const auto& node = p.a >= 0 ? a.nodes[static_cast<size_t>(p.a)] : b.nodes[static_cast<size_t>(p.b)];
    const std::string place = !node.name.empty()      ? node.name
                              : !node.outputs.empty() ? "gives " + node.outputs[0]
                                                      : std::string();
    t.add({place, node.op,
           p.a < 0   ? "only in B"
           : p.b < 0 ? "only in A"
                     : p.change},
          p.a < 0 ? Sight() : Sight::of_node(p.a), p.b < 0 ? Sight() : Sight::of_node(p.b));
  }
  return t;
}

struct NodeCounts {
  int64_t same = 0, changed = 0, only_a = 0, only_b = 0;
  explicit NodeCounts(const ModelDifference& d) {
    for (const NodePair& p : d.nodes) ++(p.a < 0 ? only_b : p.b < 0 ? only_a : p.same() ? same : changed);
  }
  bool any() const { return changed + only_a + only_b > 0; }
};

/// "3.1 %"; what is less than a thousandth as a number.
std::string relative_text(double v) { return v >= 1e-3 ? tracing::share_text(v) : fmt::format("{:.2g}", v); }

std::string of_tensors(size_t n) {
  return fmt::format("{} tensor{}", tracing::count_text(static_cast<int64_t>(n)), n == 1 ? "" : "s");
}

std::string sentence(const ModelFile& a, const ModelFile& b, const ModelDifference& d, const NodeCounts& nodes) {
  const size_t same = d.count(TensorPair::State::same), compared = same + d.count(TensorPair::State::changed) +
                                                                   d.count(TensorPair::State::other_type) +
                                                                   d.count(TensorPair::State::transposed);
  std::string text;
  if (compared == 0) {
    text = d.tensors.empty() ? "Neither A nor B holds a tensor."
                             : "A and B have no tensor in common: no two have one name and shape.";
  } else if (same == compared) {
    text = compared == 1 ? "The one tensor that both have holds the same bits in A and B."
                         : fmt::format("All {} that both have hold the same bits in A and B.", of_tensors(compared));
  } else {
    const TensorDifference all = d.all();
    const TensorPair* most = nullptr;
    for (const TensorPair& p : d.tensors)
      if (p.compared() && (!most || weight_of(p) > weight_of(*most))) most = &p;
    text = fmt::format("{} of {} differ; all together by {} of their norm", compared - same, of_tensors(compared),
                       relative_text(all.relative()));
    const std::string& name = name_of(a, b, *most);
    if (most->difference.first_not_finite >= 0)
      text += fmt::format(". {} holds {} value{} that {} not finite in A or in B, the first that changed at {}.", name,
                          tracing::count_text(most->difference.not_finite), most->difference.not_finite == 1 ? "" : "s",
                          most->difference.not_finite == 1 ? "is" : "are",
                          place_text(a.tensors[static_cast<size_t>(most->a)].shape, most->difference.first_not_finite));
    else if (most->difference.square_a == 0)
      text += fmt::format(", most {}, which holds zeros in A.", name);
    else
      text += fmt::format(", most {} by {}.", name, relative_text(most->difference.relative()));
  }
  std::string others;
  for (const TensorPair::State s : {TensorPair::State::only_a, TensorPair::State::only_b,
                                    TensorPair::State::other_shape, TensorPair::State::unread})
    if (const size_t n = d.count(s))
      others += fmt::format("{}{} {}", others.empty() ? " " : ", ", tracing::count_text(static_cast<int64_t>(n)),
                            s == TensorPair::State::other_shape ? "of another shape" : formats::name(s));
  if (!others.empty()) text += others + ".";
  for (const auto& [dropped, side] : {std::pair{&d.dropped_a, "A"}, std::pair{&d.dropped_b, "B"}})
    if (!dropped->empty()) text += fmt::format(" Names of {} were taken without \"{}\".", side, *dropped);
  if (nodes.any())
    text += fmt::format(" Of the graph {} nodes changed, {} are only in A, {} only in B.", nodes.changed, nodes.only_a,
                        nodes.only_b);
  else if (nodes.same)
    text += " The graphs are the same.";
  return text;
}

}  // namespace

Finding compare_models(const ModelFile& a, const ModelFile& b, size_t top, const Progress& progress) {
  const ModelDifference d = formats::model_difference(a, b, progress);
  const TensorDifference all = d.all();
  const NodeCounts nodes(d);
  Finding f;
  f.sentence = sentence(a, b, d, nodes);
  auto count = [&](TensorPair::State s) { return static_cast<int64_t>(d.count(s)); };
  f.facts = {{"same", "the same bits", Unit::count, count(TensorPair::State::same)},
             {"changed", "changed", Unit::count, count(TensorPair::State::changed)},
             {"other_type", "of another type", Unit::count, count(TensorPair::State::other_type)},
             {"transposed", "transposed", Unit::count, count(TensorPair::State::transposed)},
             {"other_shape", "of another shape", Unit::count, count(TensorPair::State::other_shape)},
             {"only_a", "only in A", Unit::count, count(TensorPair::State::only_a)},
             {"only_b", "only in B", Unit::count, count(TensorPair::State::only_b)},
             {"unread", "not compared", Unit::count, count(TensorPair::State::unread)},
             {"norm_a", "norm of A", Unit::number, all.norm_a()},
             {"norm_b", "norm of B", Unit::number, all.norm_b()},
             {"norm", "norm of B - A", Unit::number, all.norm()},
             {"relative", "of the norm of A", Unit::number, all.relative()},
             {"cosine", "cosine", Unit::number, all.cosine()},
             {"elements_changed", "elements changed", Unit::count, all.changed},
             {"elements", "elements compared", Unit::count, all.count}};
  if (!d.nodes.empty()) {
    f.facts.push_back({"nodes_same", "nodes the same", Unit::count, nodes.same});
    f.facts.push_back({"nodes_changed", "nodes changed", Unit::count, nodes.changed});
    f.facts.push_back({"nodes_only_a", "nodes only in A", Unit::count, nodes.only_a});
    f.facts.push_back({"nodes_only_b", "nodes only in B", Unit::count, nodes.only_b});
  }
  f.tables.push_back(difference_table(a, b, d, top));
  if (Table t = tensor_table(a, b, d, top); !t.rows.empty()) f.tables.push_back(std::move(t));
  if (Table t = node_table(a, b, d, top); !t.rows.empty()) f.tables.push_back(std::move(t));
  return f;
}

}  // namespace tenon::projects
