#include "engine/formats/model_difference.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/backend.h"
#include "core/error.h"
#include "engine/ops/view.h"

// Note [Tensors that match]
// Those of one name. Programs put words before all names of a model that is wrapped ("module.", "model."): of what is
// left over, those match whose names do without the one beginning, up to a dot or a slash, that makes most of them so.

namespace tenon::formats {
namespace {

using Names = std::unordered_map<std::string, int>;

Names names_of(const ModelFile& m, const std::vector<bool>& taken) {
  Names out;
  for (size_t i = 0; i < m.tensors.size(); ++i)
    if (!taken[i]) out.emplace(m.tensors[i].name, static_cast<int>(i));
  return out;
}

/// What stands before names of `longer` that are names of `shorter` without it, most often; empty: nothing does.
std::string common_beginning(const Names& longer, const Names& shorter) {
  std::map<std::string, size_t> votes;  // the first in order wins where several have most
  for (const auto& [name, index] : longer)
    for (size_t at = name.find_first_of("./"); at != name.npos; at = name.find_first_of("./", at + 1))
      if (shorter.contains(name.substr(at + 1))) ++votes[name.substr(0, at + 1)];
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == votes.end() ? std::string() : most->first;
}

/// The tensor of B that each of A is; -1: none.
std::vector<int> matched_tensors(const ModelFile& a, const ModelFile& b, ModelDifference& d) {
  std::vector<int> match(a.tensors.size(), -1);
  std::vector<bool> taken_a(a.tensors.size()), taken_b(b.tensors.size());
  auto pair = [&](size_t i, int k) {
    match[i] = k;
    taken_a[i] = taken_b[static_cast<size_t>(k)] = true;
  };
  const Names all_b = names_of(b, taken_b);
  for (size_t i = 0; i < match.size(); ++i)
    if (const auto at = all_b.find(a.tensors[i].name); at != all_b.end()) pair(i, at->second);
  const Names left_a = names_of(a, taken_a), left_b = names_of(b, taken_b);
  d.dropped_a = common_beginning(left_a, left_b);
  if (d.dropped_a.empty()) d.dropped_b = common_beginning(left_b, left_a);
  if (d.dropped_a.empty() && d.dropped_b.empty()) return match;
  for (size_t i = 0; i < match.size(); ++i) {
    std::string name = a.tensors[i].name;
    if (match[i] >= 0 || !name.starts_with(d.dropped_a)) continue;
    name = d.dropped_b + name.substr(d.dropped_a.size());
    if (const auto at = left_b.find(name); at != left_b.end()) pair(i, at->second);
  }
  return match;
}

bool turned(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
}

void compare_values(const ModelFile& a, const ModelFile& b, TensorPair& pair,
                    const std::function<bool(int64_t)>& go_on) {
  const ModelFile::Entry &of_a = a.tensors[static_cast<size_t>(pair.a)], &of_b = b.tensors[static_cast<size_t>(pair.b)];
  const bool flipped = of_a.shape != of_b.shape && turned(of_a.shape, of_b.shape);
  if (of_a.shape != of_b.shape && !flipped) {
    pair.state = TensorPair::State::other_shape;
    return;
  }
  for (const auto& [entry, side] : {std::pair{&of_a, "A"}, std::pair{&of_b, "B"}})
    if (!entry->problem.empty()) {
      pair.state = TensorPair::State::unread;
      pair.problem = std::string("in ") + side + " it " + entry->problem;
      return;
    }
  const Tensor x = to_host(a.tensor(static_cast<size_t>(pair.a)));
  Tensor y = to_host(b.tensor(static_cast<size_t>(pair.b)));
  if (flipped) y = transpose(y, 0, 1);
  pair.difference = tensor_difference(x, y, go_on);
  pair.state = flipped                     ? TensorPair::State::transposed
               : x.dtype() != y.dtype()    ? TensorPair::State::other_type
               : pair.difference.same_bits ? TensorPair::State::same
                                           : TensorPair::State::changed;
}

}  // namespace

const char* name(TensorPair::State state) {
  switch (state) {
    case TensorPair::State::same:
      return "same";
    case TensorPair::State::changed:
      return "changed";
    case TensorPair::State::other_type:
      return "other type";
    case TensorPair::State::transposed:
      return "transposed";
    case TensorPair::State::other_shape:
      return "other shape";
    case TensorPair::State::only_a:
      return "only in A";
    case TensorPair::State::only_b:
      return "only in B";
    case TensorPair::State::unread:
      return "not compared";
  }
  return "";
}

size_t ModelDifference::count(TensorPair::State state) const {
  return static_cast<size_t>(
      std::count_if(tensors.begin(), tensors.end(), [&](const TensorPair& p) { return p.state == state; }));
}

TensorDifference ModelDifference::all() const {
  TensorDifference sum;
  for (const TensorPair& p : tensors) {
    if (!p.compared()) continue;
    sum.count += p.difference.count;
    sum.changed += p.difference.changed;
    sum.not_finite += p.difference.not_finite;
    sum.same_bits &= p.difference.same_bits;
    sum.square_a += p.difference.square_a;
    sum.square_b += p.difference.square_b;
    sum.square += p.difference.square;
    sum.dot += p.difference.dot;
  }
  return sum;
}

ModelDifference model_difference(const ModelFile& a, const ModelFile& b,
                                 const std::function<bool(int64_t, int64_t)>& go_on) {
  ModelDifference d;
  const std::vector<int> match = matched_tensors(a, b, d);
  std::vector<bool> taken(b.tensors.size());
  for (size_t i = 0; i < match.size(); ++i) {
    d.tensors.push_back(
        {static_cast<int>(i), match[i], match[i] < 0 ? TensorPair::State::only_a : TensorPair::State::same});
    if (match[i] >= 0) taken[static_cast<size_t>(match[i])] = true;
  }
  for (size_t k = 0; k < taken.size(); ++k)
    if (!taken[k]) d.tensors.push_back({-1, static_cast<int>(k), TensorPair::State::only_b});
  int64_t total = 0, done = 0;
  for (const TensorPair& p : d.tensors)
    if (p.a >= 0 && p.b >= 0 && __builtin_add_overflow(total, a.tensors[static_cast<size_t>(p.a)].elements(), &total))
      total = INT64_MAX;
  for (TensorPair& p : d.tensors) {
    if (p.a < 0 || p.b < 0) continue;
    if (go_on && !go_on(done, total)) throw Error("cancelled");
    compare_values(a, b, p, [&](int64_t read) { return !go_on || go_on(done + read, total); });
    done += p.difference.count;
  }
  d.nodes = node_differences(a, b);
  return d;
}

}  // namespace tenon::formats
