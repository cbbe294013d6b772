#include "engine/op/cuda_graph.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/pool.h"

namespace tenon {
namespace {

void check_graph(cuda::Outcome outcome, const cuda::Why& why, Device device) {
  if (outcome != cuda::done) throw Error(fmt::format("{}: {}", to_string(device), why.text));
}

}  // namespace

void CudaGraph::begin(Stream where, void* stream) {
  if (recording_) throw Error("a graph is recorded on this thread already");
  cuda::Why why;
  check_graph(cuda_module()->graph_begin(where.device.index, stream, &why), why, where.device);
  recording_ = new CudaGraph;
}

CudaGraph* CudaGraph::end(Stream where, void* stream) {
  std::unique_ptr<CudaGraph> graph(std::exchange(recording_, nullptr));
  cuda::Why why;
  const cuda::Outcome outcome = cuda_module()->graph_end(where.device.index, stream, &graph->graph_, &why);
  if (!graph->refused_.empty()) {
    const std::string refused = graph->refused_;
    drop(graph.release(), where, stream);
    throw Error(refused);
  }
  check_graph(outcome, why, where.device);
  return graph.release();
}

void CudaGraph::replay(Stream where, void* stream) {
  cuda::Why why;
  check_graph(cuda_module()->graph_replay(where.device.index, graph_, stream, &why), why, where.device);
}

void CudaGraph::drop(CudaGraph* graph, Stream where, void* stream) {
  if (graph->graph_) cuda_module()->graph_drop(where.device.index, graph->graph_, stream);
  delete graph;
}

void* CudaGraph::take(size_t bytes, Device device) {
  Block* fits = nullptr;
  for (Block& b : blocks_)
    if (!b.taken && b.memory->bytes >= bytes && (!fits || b.memory->bytes < fits->memory->bytes)) fits = &b;
  if (!fits) {
    CategoryScope category(Category::workspace);
    blocks_.push_back({backend_take(bytes, device)});
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
