#include "engine/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "engine/data/loader.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::data {
namespace {

class Sequential : public Sampler {
 public:
  explicit Sequential(int64_t n) : n_(n) {}
  int64_t size() const override { return n_; }
  std::vector<int64_t> order(uint64_t, int64_t) const override {
    std::vector<int64_t> rows(static_cast<size_t>(n_));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    return rows;
  }

 private:
  int64_t n_;
};

class Random : public Sampler {
 public:
  explicit Random(int64_t n) : n_(n) {}
  int64_t size() const override { return n_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override { return epoch_order(n_, seed, epoch); }

 private:
  int64_t n_;
};

/// Draws by the running sum of the weights.
class Weighted : public Sampler {
 public:
  Weighted(std::vector<double> weights, int64_t draws) : sums_(std::move(weights)), draws_(draws) {
    double sum = 0;
    for (double& w : sums_) {
      if (!(w >= 0) || !std::isfinite(w))
        throw Error("a weight of a sampler is " + std::to_string(w) + "; weights are numbers of at least 0");
      w = sum += w;
    }
    if (!(sum > 0)) throw Error("the weights of a sampler are all 0: no row could be drawn");
  }
  int64_t size() const override { return draws_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override {
    Philox random{seed, stream_of("data.weighted") + static_cast<uint64_t>(epoch)};
    std::vector<int64_t> rows(static_cast<size_t>(draws_));
    for (size_t i = 0; i < rows.size(); ++i) {
      double at = random.uniform_double(i) * sums_.back();
      rows[i] = std::upper_bound(sums_.begin(), sums_.end() - 1, at) - sums_.begin();
    }
    return rows;
  }

 private:
  std::vector<double> sums_;
  int64_t draws_;
};

class Distributed : public Sampler {
 public:
  Distributed(Samplers inner, int64_t rank, int64_t world, bool drop_last)
      : inner_(std::move(inner)), rank_(rank), world_(world) {
    if (world < 1 || rank < 0 || rank >= world)
      throw Error("rank " + std::to_string(rank) + " of " + std::to_string(world) + " does not exist");
    size_ = drop_last ? inner_->size() / world : (inner_->size() + world - 1) / world;
  }
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override {
    std::vector<int64_t> all = inner_->order(seed, epoch), mine;
    for (int64_t i = 0; i < size_; ++i) mine.push_back(all[static_cast<size_t>(i * world_ + rank_) % all.size()]);
    return mine;
  }

 private:
  Samplers inner_;
  int64_t rank_, world_, size_ = 0;
};

}  // namespace

Samplers sequential(int64_t n) { return std::make_shared<Sequential>(n); }
Samplers random(int64_t n) { return std::make_shared<Random>(n); }
Samplers random_with_replacement(int64_t n, int64_t draws) {
  return weighted(std::vector<double>(static_cast<size_t>(n), 1), draws);
}
Samplers weighted(std::vector<double> weights, int64_t draws) {
  return std::make_shared<Weighted>(std::move(weights), draws);
}
Samplers distributed(Samplers inner, int64_t rank, int64_t world, bool drop_last) {
  return std::make_shared<Distributed>(std::move(inner), rank, world, drop_last);
}

std::vector<std::vector<int64_t>> batches(const std::vector<int64_t>& order, int64_t size, bool drop_last) {
  if (size < 1) throw Error("a batch of " + std::to_string(size) + " rows");
  std::vector<std::vector<int64_t>> list;
  for (size_t i = 0; i < order.size(); i += static_cast<size_t>(size)) {
    size_t end = std::min(order.size(), i + static_cast<size_t>(size));
    if (drop_last && end - i < static_cast<size_t>(size)) break;
    list.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(i), order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return list;
}

Padded pad(const std::vector<Tensor>& parts, double value, int axis) {
  if (parts.empty()) throw Error("there is nothing to pad: no tensors were given");
  const Tensor& first = parts[0];
  if (axis < 0 || axis >= first.ndim())
    throw Error("axis " + std::to_string(axis) + " of a tensor of size " + to_string(first.size()) + " to pad");
  Shape size = first.size();
  for (const Tensor& t : parts) {
    Shape like = t.size();
    if (like.n == size.n) like[axis] = size[axis];
    if (!(like == size) || t.dtype() != first.dtype())
      throw Error(std::string("tensors to pad along axis ") + std::to_string(axis) + " are " + name(first.dtype()) +
                  " " + to_string(first.size()) + " and " + name(t.dtype()) + " " + to_string(t.size()) +
                  "; only that axis may differ");
    size[axis] = std::max(size[axis], t.size(axis));
  }
  Shape all = size;
  all.insert(0, static_cast<int64_t>(parts.size()));
  Padded p{full(all, value, first.dtype()), empty({static_cast<int64_t>(parts.size())}, DType::i64)};
  for (size_t i = 0; i < parts.size(); ++i) {
    int64_t n = parts[i].size(axis);
    p.lengths.data<int64_t>()[i] = n;
    if (n > 0) copy_(narrow(select(p.values, 0, static_cast<int64_t>(i)), axis, 0, n), parts[i]);
  }
  return p;
}

}  // namespace tenon::data
