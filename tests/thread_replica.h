#pragma once
#include <condition_variable>
#include <mutex>
#include <vector>

#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/train/replica.h"

namespace tenon::testing_replicas {

/// Replicas that are threads of this process: what they give is put side by side and added up in the order of ranks.
class Group {
 public:
  explicit Group(int world) : world_(world), given_(static_cast<size_t>(world)) {}

  /// Every rank gives one; all get all of them. Comes back when every rank has seen them.
  std::vector<const void*> exchange(int rank, const void* mine) {
    std::unique_lock lock(mutex_);
    given_[static_cast<size_t>(rank)] = mine;
    wait_for_all(lock);
    return given_;
  }
  void meet() {
    std::unique_lock lock(mutex_);
    wait_for_all(lock);
  }
  int world() const { return world_; }

 private:
  void wait_for_all(std::unique_lock<std::mutex>& lock) {
    const int64_t round = round_;
    if (++here_ == world_) {
      here_ = 0;
      ++round_;
      all_.notify_all();
    }
    all_.wait(lock, [&] { return round_ != round; });
  }
  const int world_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<const void*> given_;
  int here_ = 0;
  int64_t round_ = 0;
};

class ThreadReplica : public Replica {
 public:
  ThreadReplica(Group& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int world() const override { return group_.world(); }
  void broadcast(const std::vector<Tensor>& tensors) override {
    const auto all = group_.exchange(rank_, &tensors);
    if (rank_ > 0)
      for (size_t i = 0; i < tensors.size(); ++i)
        copy_(tensors[i], (*static_cast<const std::vector<Tensor>*>(all[0]))[i]);
    group_.meet();
  }
  void gradient_ready(const Tensor& leaf) override { ready.push_back(leaf); }
  void finish(const std::vector<Tensor>& leaves) override {
    NoGrad off;
    std::vector<Tensor> mine, sums;
    for (const Tensor& l : leaves) mine.push_back(grad_of(l));
    const auto all = group_.exchange(rank_, &mine);
    for (size_t i = 0; i < mine.size(); ++i) {
      Tensor total;
      for (const void* rank : all)
        if (const Tensor& g = (*static_cast<const std::vector<Tensor>*>(rank))[i])
          total = total ? add(total, g) : clone(g);
      sums.push_back(total);
    }
    group_.meet();
    for (size_t i = 0; i < leaves.size(); ++i) set_grad(leaves[i], sums[i]);
    ++finished;
  }
  double sum(double mine) override {
    double total = 0;
    for (const void* p : group_.exchange(rank_, &mine)) total += *static_cast<const double*>(p);
    group_.meet();
    return total;
  }
  bool all_of(bool mine) override {
    bool all = true;
    for (const void* p : group_.exchange(rank_, &mine)) all &= *static_cast<const bool*>(p);
    group_.meet();
    return all;
  }

  std::vector<Tensor> ready;
  int finished = 0;

 private:
  Group& group_;
  int rank_;
};

}  // namespace tenon::testing_replicas
