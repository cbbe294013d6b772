#include "projects/embedding.h"

#include <algorithm>

#include "core/backend.h"
#include "engine/nn/module.h"
#include "engine/ops/dense.h"
#include "engine/ops/view.h"
#include "engine/train/tsne.h"
#include "engine/train/umap.h"

namespace tenon::projects {

EmbeddingListener::EmbeddingListener(nn::Module& model) {
  for (auto& [path, m] : model.named_modules()) {
    // A norm's weights are one number a channel: what it reads, the layer after it reads too.
    const Tensor weight = m->own("weight");
    if (!weight || weight.ndim() < 2) continue;
    hooks_.emplace_back(m, m->add_forward_pre_hook([this](nn::Module& of, std::vector<Tensor>& inputs) {
      last_ = &of;
      input_ = inputs.empty() ? Tensor() : inputs.front();
    }));
  }
}

EmbeddingListener::~EmbeddingListener() {
  for (auto& [m, id] : hooks_) m->remove_hook(id);
}

void EmbeddingListener::take(int64_t samples) {
  const Tensor input = std::exchange(input_, Tensor());
  if (torn_ || full_) return;
  torn_ = !last_ || !input || !is_floating(input.dtype()) || input.ndim() < 2 || input.size(0) != samples ||
          (width_ && (input.numel() / samples != width_ || last_->path() != module_));
  if (torn_) return;
  module_ = last_->path();
  width_ = input.numel() / samples;
  const int64_t most = std::min(Embedding::kMostSamples, Embedding::kMostValues / width_);
  const int64_t taken = std::min(samples, most - static_cast<int64_t>(rows_.size()) / width_);
  const Tensor host = ops::dense(cast(to_host(input), DType::f32));
  rows_.insert(rows_.end(), host.data<float>(), host.data<float>() + taken * width_);
  full_ = static_cast<int64_t>(rows_.size()) / width_ == most;
}

Embedding EmbeddingListener::finish() const {
  if (torn_ || rows_.empty()) return {};
  return {module_, width_, principal_plane(rows_, width_), std::make_shared<const std::vector<float>>(rows_)};
}

const std::vector<Placement>& placements() {
  static const std::vector<Placement> all = {
      {"tsne", "t-SNE", "near is alike, far says little",
       [](const Embedding& e, const std::function<bool(int64_t, int64_t)>& progress) {
         return e.rows ? tsne(*e.rows, e.width, e.plane, {}, progress) : Placement::Places();
       }},
      {"umap", "UMAP", "near is alike, far says a little",
       [](const Embedding& e, const std::function<bool(int64_t, int64_t)>& progress) {
         return e.rows ? umap(*e.rows, e.width, e.plane, {}, progress) : Placement::Places();
       }}};
  return all;
}

const Placement* find_placement(const std::string& name) {
  for (const Placement& p : placements())
    if (name == p.name) return &p;
  return nullptr;
}

}  // namespace tenon::projects
