#include "tests/views/step_fixture.h"

#include "core/profile.h"

namespace tenon::views::testing {

using namespace tracing;

std::shared_ptr<StepRecord> small_step() {
  auto r = std::make_shared<StepRecord>();
  r->run = "hand-01";
  r->step = 120;
  r->epoch = 1;
  r->loss = 0.214;
  r->duration_ns = 1'000'000;
  uint16_t conv = intern_module("features.0"), head = intern_module("head"), root = 0;
  std::vector<Tick> ticks;
  auto op = [&](const char* name, uint16_t module, Phase phase, int64_t start, int64_t duration, std::vector<int> in,
                std::vector<int> out, uint32_t forward = 0) {
    OpRecord o;
    o.seq = static_cast<uint32_t>(r->ops.size()) + 1;
    o.name = name;
    o.origin = {o.seq, module, phase, Category::activation};
    o.forward_seq = forward;
    o.inputs = std::move(in);
    o.outputs = std::move(out);
    o.start_ns = start;
    o.duration_ns = duration;
    o.flops = static_cast<double>(duration) * 10;
    ticks.push_back({start, duration, {o.seq, module, phase, Category::activation}, intern_name(name), 0, 0});
    r->ops.push_back(std::move(o));
  };
  auto tensor = [&](const char* name, Shape size, uint32_t producer, Category c, uint32_t storage) {
    TensorRecord t;
    t.name = name;
    t.layout = Layout::contiguous(size);
    t.producer = producer;
    t.category = c;
    t.storage = storage;
    r->tensors.push_back(std::move(t));
    return static_cast<int>(r->tensors.size()) - 1;
  };
  tensor("batch", {2, 3, 4, 4}, 0, Category::data, 1);                          // 0
  tensor("features.0.weight", {8, 3, 3, 3}, 0, Category::parameter, 2);         // 1
  tensor("conv2d #1 output 0", {2, 8, 4, 4}, 1, Category::activation, 3);       // 2
  tensor("relu #2 output 0", {2, 8, 4, 4}, 2, Category::activation, 4);         // 3
  tensor("view #3 output 0", {2, 128}, 3, Category::activation, 4);             // 4: the same memory as 3
  tensor("head.weight", {10, 128}, 0, Category::parameter, 5);                  // 5
  tensor("linear #4 output 0", {2, 10}, 4, Category::activation, 6);            // 6
  tensor("cross_entropy #5 output 0", {}, 5, Category::activation, 7);          // 7
  tensor("grad of head.weight", {10, 128}, 7, Category::gradient, 8);           // 8
  tensor("grad of features.0.weight", {8, 3, 3, 3}, 9, Category::gradient, 9);  // 9
  for (int t : {1, 6}) {
    auto& record = r->tensors[t];
    record.value = empty(record.layout.size);
    float* p = record.value.data<float>();
    for (int64_t i = 0; i < record.value.numel(); ++i) p[i] = static_cast<float>(i) * 0.5f - 5;
  }
  op("conv2d", conv, Phase::forward, 50'000, 200'000, {0, 1}, {2});
  op("relu", conv, Phase::forward, 250'000, 40'000, {2}, {3});
  op("view", root, Phase::forward, 290'000, 1'000, {3}, {4});
  op("linear", head, Phase::forward, 291'000, 60'000, {4, 5}, {6});
  op("cross_entropy", root, Phase::forward, 351'000, 30'000, {6}, {7});
  op("cross_entropy backward", root, Phase::backward, 400'000, 20'000, {6, 7}, {}, 5);
  op("linear backward", head, Phase::backward, 420'000, 100'000, {4, 5}, {8}, 4);
  op("relu backward", conv, Phase::backward, 520'000, 40'000, {3}, {}, 2);
  op("conv2d backward", conv, Phase::backward, 560'000, 300'000, {0, 1}, {9}, 1);
  op("adamw", root, Phase::optimizer, 870'000, 100'000, {1, 5, 8, 9}, {});
  ticks.push_back({0, 30'000, {0, 0, Phase::data, Category::other}, intern_name("load batch"), 1, 0});  // no op
  r->timeline = own_trace(ticks, 0, {}, r->run);

  // Backward: loss -> linear -> view -> relu -> conv, with the two weights as leaves.
  auto node = [&](const char* name, uint32_t forward, uint16_t module, bool leaf, int64_t saved, double norm,
                  std::vector<int> next) {
    GradNode g;
    g.name = name;
    g.forward_seq = forward;
    g.module = module;
    g.leaf = leaf;
    g.saved_bytes = saved;
    g.grad_norm = norm;
    for (int n : next) g.next.push_back({n, 0});
    r->grad_nodes.push_back(std::move(g));
  };
  node("cross_entropy backward", 5, root, false, 80, 1, {1});
  node("linear backward", 4, head, false, 6144, 0.5, {2, 5});
  node("view backward", 3, root, false, 0, 0.4, {3});
  node("relu backward", 2, conv, false, 1024, 0.3, {4});
  node("conv2d backward", 1, conv, false, 1248, 0.25, {6});
  node("head.weight", 0, head, true, 0, 0.125, {});
  node("features.0.weight", 0, conv, true, 0, 2, {});

  auto alloc = [&](int64_t time, uint32_t block, int64_t bytes, uint32_t seq, Category c) {
    AllocEvent a;
    a.time_ns = time;
    a.block = block;
    a.bytes = bytes;
    a.address = 0x1000 + block * 0x10000;
    a.origin = {seq, seq ? r->ops[seq - 1].origin.module : uint16_t{0}, Phase::none, c};
    r->allocs.push_back(a);
  };
  alloc(0, 1, 6000, 0, Category::parameter);
  alloc(0, 2, 12000, 0, Category::optimizer);
  alloc(50'000, 3, 1024, 1, Category::activation);
  alloc(250'000, 4, 1024, 2, Category::activation);
  alloc(420'000, 5, 5120, 7, Category::gradient);
  alloc(500'000, 4, -1024, 0, Category::other);
  alloc(560'000, 6, 864, 9, Category::gradient);
  alloc(860'000, 3, -1024, 0, Category::other);
  r->samples = {17, 4};
  return r;
}

}  // namespace tenon::views::testing
