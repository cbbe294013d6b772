#include "engine/op/cuda_graph.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/pool.h"

namespace tenon {
namespace {

struct Recordings {
  std::mutex mutex;         ///< held while memory goes back: nobody begins to record then
  std::vector<bool> turns;  ///< which are taken
  int count = 0;
};
Recordings& recordings() {
  static auto* r = new Recordings;  // leaked: tensors in statics give back after it
  return *r;
}

uint16_t take_turn() {
  Recordings& r = recordings();
  std::lock_guard lock(r.mutex);
  size_t turn = 0;
  while (turn < r.turns.size() && r.turns[turn]) ++turn;
  if (turn == r.turns.size()) r.turns.push_back(false);
  r.turns[turn] = true;
  ++r.count;
  return static_cast<uint16_t>(turn);
}
void end_turn(uint16_t turn) {
  Recordings& r = recordings();
  std::lock_guard lock(r.mutex);
  r.turns[turn] = false;
  --r.count;
}

void check_graph(cuda::Outcome outcome, const cuda::Why& why, Device device) {
  if (outcome != cuda::done) throw Error(fmt::format("{}: {}", to_string(device), why.text));
}

}  // namespace

bool CudaGraph::unless_recording(const std::function<void()>& give) {
  Recordings& r = recordings();
  std::lock_guard lock(r.mutex);
  if (r.count > 0) return false;
  give();
  return true;
}

void CudaGraph::begin(Device device, const std::function<void*(uint16_t)>& stream_of) {
  if (recording_) throw Error("a graph is recorded on this thread already");
  auto graph = std::make_unique<CudaGraph>(device, take_turn());
  try {
    graph->recorded_on_ = stream_of(graph->turn_);
    cuda::Why why;
    const cuda::Outcome outcome = cuda_module()->graph_begin(device.index, graph->recorded_on_, &why);
    check_graph(outcome, why, device);
  } catch (...) {
    end_turn(graph->turn_);
    throw;
  }
  recording_ = graph.release();
}

std::unique_ptr<CudaGraph> CudaGraph::end() {
  std::unique_ptr<CudaGraph> graph(std::exchange(recording_, nullptr));
  if (!graph) throw Error("no graph is recorded on this thread");
  cuda::Why why;
  const cuda::Outcome outcome =
      cuda_module()->graph_end(graph->device_.index, graph->recorded_on_, &graph->graph_, &why);
  end_turn(graph->turn_);
  if (!graph->refused_.empty()) throw Error(graph->refused_);
  check_graph(outcome, why, graph->device_);
  return graph;
}

void CudaGraph::replay(void* stream) {
  cuda::Why why;
  done_on_ = stream;
  check_graph(cuda_module()->graph_replay(device_.index, graph_, stream, &why), why, device_);
}

CudaGraph::~CudaGraph() {
  if (graph_) cuda_module()->graph_drop(device_.index, graph_, done_on_);
}

void* CudaGraph::take(size_t bytes) {
  Block* fits = nullptr;
  for (Block& b : blocks_)
    if (!b.taken && b.memory->bytes >= bytes && (!fits || b.memory->bytes < fits->memory->bytes)) fits = &b;
  if (!fits) {
    CategoryScope category(Category::workspace);
    blocks_.push_back({backend_take(bytes, device_)});
    fits = &blocks_.back();
  }
  fits->taken = true;
  return fits->memory->data;
}

void CudaGraph::kernel_called() {
  for (Block& b : blocks_) b.taken = false;
}

void CudaGraph::refuse(const std::string& what) {
  if (refused_.empty()) refused_ = what;
  throw Error(what);
}

}  // namespace tenon
