#include "tracing/record/step_recorder.h"

#include <fmt/format.h>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/profile.h"
#include "core/quiet.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/node.h"
#include "engine/data/loader.h"
#include "engine/nn/module.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/train/session.h"
#include "tracing/record/memory_history.h"
#include "tracing/record/nan_seeker.h"
#include "tracing/record/numbers.h"
#include "tracing/record/tensor_versions.h"

// Note [Two passes]
// To keep values a recorder must hold tensors, and held tensors change what the memory history shows. Steps are
// deterministic, so the step runs twice from the same state: first with clocks and the memory history on and nothing
// held, then with every op observed and its tensors kept. Op numbers are the same in both, and join them.

namespace tenon::tracing {
namespace {

std::string describe_origin(const Tensor& t) { return fmt::format("{} {}", name(t.dtype()), to_string(t.size())); }

struct Clocks : TrainingObserver {
  MemoryHistory* memory = nullptr;
  void on_batch(const data::Batch& b) override {
    memory->alive_before(b.x, Category::data, 0);
    memory->alive_before(b.y, Category::data, 0);
  }
};

class Watcher : public OpObserver, public TrainingObserver {
 public:
  Watcher(StepRecord& record, int64_t keep, const data::Dataset& samples, const char* split)
      : r_(record), room_(keep), versions_(record, room_), seeker_(samples, split) {}

  void begin(TrainingSession& session) {
    Quiet quiet;
    for (const auto& p : session.model().parameters()) {
      know(p.tensor, p.name, Category::parameter, true);
      seeker_.given(p.name, p.tensor, {});
      parameters_.push_back(p);
      if (const Node* leaf = edge_of(p.tensor).fn.get()) leaf_names_[leaf] = p.name;  // a frozen one has none
    }
    for (const auto& b : session.model().buffers()) {
      know(b.tensor, b.name, Category::buffer, true);
      seeker_.given(b.name, b.tensor, {});
    }
    for (const auto& s : session.optimizer().state()) know(s.tensor, s.name, Category::optimizer, true);
  }

  void on_batch(const data::Batch& b) override {
    Quiet quiet;
    rows_ = b.rows;
    know(b.x, "batch input", Category::data, false);
    know(b.y, "batch target", Category::data, false);
    seeker_.given("the batch's input", b.x, b.rows);
    seeker_.given("the batch's target", b.y, b.rows);
  }

  void before(const Call& call) override {
    open_.push_back(t_state.origin.seq);
    versions_.before(call, t_state.origin.seq);
  }

  void after(const Call& call, int64_t start_ns, int64_t end_ns) override {
    OpRecord o;
    o.seq = open_.back();  // ops inside this one have taken numbers since
    open_.pop_back();
    o.origin = t_state.origin;
    o.origin.seq = o.seq;
    Quiet quiet;
    o.name = call.op->info.name;
    if (call.attrs) o.attrs = call.op->attrs.text(call.attrs);
    o.forward_seq = t_forward_seq;
    o.start_ns = start_ns;
    o.duration_ns = end_ns - start_ns;
    Cost cost = cost_of(call);
    o.flops = cost.flops;
    o.bytes = cost.bytes;
    std::vector<std::string> names;
    for (int i = 0; i < call.inputs; ++i) {
      if (!call.in[i].defined()) {
        names.emplace_back();
        continue;
      }
      int t = know(call.in[i], "", category_of(call.in[i], o.origin), false);
      o.inputs.push_back(t);
      names.push_back(r_.tensors[static_cast<size_t>(t)].name);
    }
    for (int k = 0; k < call.outputs; ++k) {
      if (!call.out[k].defined()) continue;
      std::string text = fmt::format("{} #{}", o.name, o.seq) + (call.outputs > 1 ? fmt::format(" output {}", k) : "");
      o.outputs.push_back(know(call.out[k], text, o.origin.category, false, o.seq));
    }
    seeker_.after(call, o.origin, names, rows_);
    size_t at = o.seq - 1;
    if (r_.ops.size() <= at) r_.ops.resize(at + 1);
    r_.ops[at] = std::move(o);
  }

  void on_forward(const Tensor&, const Tensor& loss) override {
    Quiet quiet;
    walk(edge_of(loss).fn.get());
  }

  void backward_node(const Node& n) override {
    if (const auto leaf = leaf_names_.find(&n); leaf != leaf_names_.end() && n.grads[0].defined())
      if (const auto known = known_.find(key_of(n.grads[0])); known != known_.end())
        makers_[leaf->second] = r_.tensors[static_cast<size_t>(known->second)].producer;
    auto it = nodes_.find(&n);
    if (it == nodes_.end()) return;
    double squares = 0;
    bool any = false;
    for (int i = 0; i < n.outputs; ++i) {
      if (!n.grads[i].defined()) continue;
      any = true;
      Statistics s = statistics(n.grads[i]);
      squares += s.bad() ? NAN : s.norm * s.norm;
    }
    if (any) r_.grad_nodes[static_cast<size_t>(it->second)].grad_norm = std::sqrt(squares);
  }

  void on_backward() override {
    Quiet quiet;
    for (const auto& p : parameters_)
      if (Tensor g = grad_of(p.tensor)) {
        int t = know(g, "", Category::gradient, false);
        r_.tensors[static_cast<size_t>(t)].name = "grad of " + p.name;
        r_.tensors[static_cast<size_t>(t)].category = Category::gradient;
        // Held by a recorder, what an op gave was copied to its place.
        if (uint32_t& producer = r_.tensors[static_cast<size_t>(t)].producer; producer == 0) producer = makers_[p.name];
      }
  }

  void finish(int64_t step) {
    Quiet quiet;
    versions_.finish();
    for (size_t i = 0; i < r_.tensors.size(); ++i) {
      TensorRecord& t = r_.tensors[i];
      if (!copied_[i] && t.value.defined() && t.value.version() != t.version)
        t.value.reset();  // overwritten since: not what it was
    }
    r_.nan = seeker_.result(step);
  }

 private:
  using Key = std::tuple<const void*, int64_t, DType, std::string>;
  static Key key_of(const Tensor& t) {
    return {t.storage() ? static_cast<const void*>(t.storage()) : t.impl(), t.offset(), t.dtype(),
            to_string(t.size()) + to_string(t.stride())};
  }

  Category category_of(const Tensor& t, const Origin& origin) const {
    for (const auto& p : parameters_)
      if (t.storage() && p.tensor.storage() == t.storage()) return Category::parameter;
    return origin.category;
  }

  int know(const Tensor& t, const std::string& name, Category category, bool copy, uint32_t producer = 0) {
    auto [it, fresh] = known_.try_emplace(key_of(t), static_cast<int>(r_.tensors.size()));
    if (!fresh) {
      TensorRecord& r = r_.tensors[static_cast<size_t>(it->second)];
      if (producer && !copied_[static_cast<size_t>(it->second)])
        r.version = t.version();  // written in place: the value is the new one
      return it->second;
    }
    TensorRecord r;
    r.dtype = t.dtype();
    r.layout = t.layout();
    r.version = t.version();
    r.producer = producer;
    r.category = category;
    r.storage = t.storage() ? storage_id(t.storage()) : 0;
    r.name = name.empty() ? fmt::format("{} of storage {}", describe_origin(t), r.storage) : name;
    const auto bytes = static_cast<int64_t>(t.nbytes());
    if (bytes <= room_) {
      room_ -= bytes;
      r.value = copy ? clone(detach(t)) : detach(t);
      if (copy) r.layout = t.layout();
    }
    held_.push_back(t);  // keeps the storage, so that its address names it alone
    copied_.push_back(copy);
    versions_.know(it->second, t, copy, copy && r.value.defined());
    r_.tensors.push_back(std::move(r));
    return it->second;
  }

  void walk(Node* root) {
    if (!root) return;
    std::vector<Node*> stack{root};
    auto number = [&](Node* n) {
      auto [it, fresh] = nodes_.try_emplace(n, static_cast<int>(r_.grad_nodes.size()));
      if (fresh) {
        GradNode g;
        g.leaf = !n->op;
        g.forward_seq = n->op ? n->origin.seq : 0;
        g.module = n->origin.module;
        g.saved_bytes = n->saved_bytes();
        auto leaf = leaf_names_.find(n);
        g.name = n->op                       ? std::string(n->op->info.name) + " backward"
                 : leaf != leaf_names_.end() ? leaf->second
                                             : "leaf";
        r_.grad_nodes.push_back(g);
        stack.push_back(n);
      }
      return it->second;
    };
    stack.clear();
    number(root);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      int me = nodes_[n];
      for (int i = 0; i < n->inputs; ++i)
        if (n->next[i].fn) {
          GradNode::Edge e{number(n->next[i].fn.get()), n->next[i].slot};
          r_.grad_nodes[static_cast<size_t>(me)].next.push_back(e);
        }
    }
  }

 private:
  StepRecord& r_;
  int64_t room_;  ///< bytes that values may still take
  TensorVersions versions_;
  std::vector<uint32_t> open_;
  NanSeeker seeker_;
  std::vector<nn::Named> parameters_;
  std::vector<int64_t> rows_;
  std::map<Key, int> known_;
  std::vector<Tensor> held_;
  std::vector<bool> copied_;
  std::unordered_map<const Node*, int> nodes_;
  std::unordered_map<const Node*, std::string> leaf_names_;
  std::unordered_map<std::string, uint32_t> makers_;  ///< of the parameters' gradients: the op that gave it last
};

/// The first pass: times, and what the memory pool did. The session then stands where it stood.
void take_clocks(StepRecord& record, TrainingSession& session, const std::function<StepResult()>& pass) {
  const Checkpoint before = session.save();
  {
    MemoryHistory memory(session.group());
    for (const auto& p : session.model().parameters()) {
      memory.alive_before(p.tensor, Category::parameter, 0);
      if (Tensor g = grad_of(p.tensor)) memory.alive_before(g, Category::gradient, 0);
    }
    for (const auto& b : session.model().buffers()) memory.alive_before(b.tensor, Category::buffer, 0);
    for (const auto& s : session.optimizer().state()) memory.alive_before(s.tensor, Category::optimizer, 0);
    Clocks clocks;
    clocks.memory = &memory;
    session.add_observer(&clocks);
    struct Remove {
      TrainingSession& s;
      TrainingObserver* o;
      ~Remove() { s.remove_observer(o); }
    } remove{session, &clocks};
    profile_start(session.group());
    struct Stop {
      ~Stop() { profile_stop(); }
    } stop;
    int64_t start = now_ns();
    pass();
    record.duration_ns = now_ns() - start;
    record.timeline = own_trace(profile_stop(), start, {}, record.run);
    record.allocs = memory.events(start);
  }
  session.load(before);
}

/// `pass` runs what is recorded, the same each time from the same state, on rows of `samples`, which sentences call by
/// `split`.
std::shared_ptr<StepRecord> record(TrainingSession& session, const std::string& run, const RecordOptions& options,
                                   const data::Dataset& samples, const char* split,
                                   const std::function<StepResult()>& pass) {
  auto record = std::make_shared<StepRecord>();
  record->run = run;
  if (options.clocks) take_clocks(*record, session, pass);
  Watcher watcher(*record, options.keep_bytes, samples, split);
  watcher.begin(session);
  session.add_observer(&watcher);
  struct Remove {
    TrainingSession& s;
    TrainingObserver* o;
    ~Remove() { s.remove_observer(o); }
  } remove{session, &watcher};
  StepResult result;
  {
    ObserveScope observe(watcher);
    result = pass();
  }
  watcher.finish(result.step);
  record->step = result.step;
  record->epoch = result.epoch;
  record->loss = result.loss;
  record->samples = result.rows;
  for (int64_t row : result.rows) record->sources.push_back(samples.source(row).text());
  if (result.finite && !options.look_at_updates)
    record->nan = nullptr;  // an infinity that came to nothing (a mask) is no anomaly
  // The clocks of the first pass are the true ones: nothing watched the values then.
  if (!options.clocks) return record;
  const traces::Trace& timeline = *record->timeline.store;
  for (traces::EventId e = 0; e < timeline.size(); ++e)
    if (const uint32_t seq = record->timeline.op(e).seq; seq > 0 && seq <= record->ops.size()) {
      record->ops[seq - 1].start_ns = timeline.start(e);
      record->ops[seq - 1].duration_ns = timeline.duration(e);
    }
  return record;
}

}  // namespace

std::shared_ptr<const StepRecord> record_step(TrainingSession& session, const std::string& run,
                                              const RecordOptions& options) {
  return record(session, run, options, session.train_data(), "training set", [&] { return session.step(); });
}

std::shared_ptr<const StepRecord> record_sample(TrainingSession& session, const std::string& run, int64_t test_row,
                                                const RecordOptions& options) {
  auto made =
      record(session, run, options, session.test_data(), "test split", [&] { return session.probe({test_row}); });
  made->sample = test_row;
  return made;
}

}  // namespace tenon::tracing
