// Writes a trace as PyTorch's profiler lays it out, of about the size asked for: make_trace BYTES FILE [--ops N]
// [--stacks]. Steps of a training loop with modules, ops with shapes, launches, kernels on two streams, copies, flows
// and memory events; every number is a function of the place in the file. A step has 24 blocks of N (40) ops; with
// stacks, frames of Python lie around the blocks and the ops.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/draw.h"

namespace {

using tenon::bench::draw;

std::FILE* g_out;
uint64_t g_written = 0, g_events = 0, g_correlation = 1;
template <class... A>
void put(const char* format, A... a) {
  int n = std::fprintf(g_out, format, a...);
  if (n > 0) g_written += static_cast<uint64_t>(n);
}

std::string us(int64_t ns) {
  char text[48];
  std::snprintf(text, sizeof text, "%" PRId64 ".%03d", ns / 1000, static_cast<int>(ns % 1000));
  return text;
}

void slice(const char* cat, const std::string& name, const char* pid, const char* tid, int64_t start, int64_t duration,
           const std::string& args) {
  put("%s  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %s, \"tid\": %s,\n    \"ts\": %s, "
      "\"dur\": %s",
      g_events++ ? ",\n" : "", cat, name.c_str(), pid, tid, us(start).c_str(), us(duration).c_str());
  if (!args.empty()) put(",\n    \"args\": {\n      %s\n    }", args.c_str());
  put("\n  }");
}

const char* kOps[] = {"aten::linear",
                      "aten::addmm",
                      "aten::conv2d",
                      "aten::convolution",
                      "aten::relu_",
                      "aten::layer_norm",
                      "aten::native_layer_norm",
                      "aten::matmul",
                      "aten::bmm",
                      "aten::_softmax",
                      "aten::add",
                      "aten::mul",
                      "aten::copy_",
                      "aten::empty_strided",
                      "aten::gelu"};
const char* kKernels[] = {
    "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_cublas",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> "
    ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, float "
    "const*, int, int, int)"};

void op(int64_t& cpu, int64_t& gpu, uint64_t id) {
  const std::string name = kOps[draw(15)];
  int64_t start = cpu, length = 8000 + static_cast<int64_t>(draw(20000));
  std::string ids = "\"External id\": " + std::to_string(id) + ",\"Ev Idx\": " + std::to_string(id);
  slice("cpu_op", name, "4242", "4242", start, length,
        ids + ", \"Input Dims\": [[" + std::to_string(1 + draw(64)) +
            ", 512], [512, 512], []], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Sequence number\": " +
            std::to_string(id) + ", \"Fwd thread id\": 0");
  if (draw(3)) {
    uint64_t c = g_correlation++;
    int64_t launch = start + length / 3;
    slice("cuda_runtime", "cudaLaunchKernel", "4242", "4242", launch, 3000 + static_cast<int64_t>(draw(2000)),
          "\"External id\": " + std::to_string(id) + ",\"cbid\": 211, \"correlation\": " + std::to_string(c));
    int64_t at = std::max(gpu, launch + 5000), busy = 4000 + static_cast<int64_t>(draw(40000));
    const char* stream = draw(16) ? "7" : "20";
    slice("kernel", kKernels[draw(5)], "0", stream, at, busy,
          "\"External id\": " + std::to_string(id) + ",\"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": " +
              stream + ", \"correlation\": " + std::to_string(c) +
              ",\"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": 1.5, \"warps per SM\": 12.0, "
              "\"grid\": [162, 1, 1], \"block\": [256, 1, 1], \"est. achieved occupancy %%\": 19");
    if (stream[0] == '7') gpu = at + busy;
    put(",\n  {\n    \"ph\": \"f\", \"id\": %" PRIu64
        ", \"pid\": 0, \"tid\": %s, \"ts\": %s, \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }",
        c, stream, us(at).c_str());
    put(",\n  {\n    \"ph\": \"s\", \"id\": %" PRIu64
        ", \"pid\": 4242, \"tid\": 4242, \"ts\": %s, \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }",
        c, us(launch).c_str());
  }
  if (draw(4) == 0)
    put(",\n  {\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": "
        "4242, \"tid\": 4242, \"ts\": %s,\n    \"args\": {\n      \"Total Reserved\": 1073741824, \"Total Allocated\": "
        "%" PRIu64 ", \"Bytes\": %d, \"Addr\": 140000000000000, \"Device Id\": 0, \"Device Type\": 1\n    }\n  }",
        us(start + 100).c_str(), 1000000 + draw(1000000), draw(2) ? 512 : -512);
  cpu = start + length + 500;
}

void frame(const std::string& name, int64_t start, int64_t end, uint64_t id) {
  slice("python_function", name, "4242", "4242", start, end - start,
        "\"Python id\": " + std::to_string(id) + ", \"Python parent id\": 1, \"Ev Idx\": " + std::to_string(id));
}

}  // namespace

int main(int argc, char** argv) {
  int ops = 40;
  bool stacks = false, right = argc >= 3;
  for (int i = 3; i < argc; ++i) {
    if (std::string(argv[i]) == "--stacks")
      stacks = true;
    else if (std::string(argv[i]) == "--ops" && i + 1 < argc)
      ops = std::atoi(argv[++i]);
    else
      right = false;
  }
  if (!right || ops < 1) {
    std::fprintf(stderr, "make_trace BYTES FILE [--ops N] [--stacks]\n");
    return 2;
  }
  const uint64_t target = std::strtoull(argv[1], nullptr, 10);
  g_out = std::fopen(argv[2], "wb");
  if (!g_out) return 1;
  put("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100\", \"totalGlobalMem\": "
      "85000000000, \"numSms\": 132}],\n"
      "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},\n  \"record_shapes\": 1,\n  "
      "\"traceEvents\": [\n");
  int64_t cpu = 1712195495519689047, gpu = cpu;
  uint64_t id = 1;
  for (int step = 0; g_written < target; ++step) {
    int64_t begin = cpu;
    for (int layer = 0; layer < 24 && g_written < target; ++layer) {
      int64_t module = cpu;
      for (int k = 0; k < ops; ++k) {
        int64_t call = cpu;
        op(cpu, gpu, id++);
        if (!stacks) continue;
        frame("torch/nn/functional.py(" + std::to_string(1000 + k) + "): function_" + std::to_string(k), call - 150,
              cpu - 350, id);
        frame("<built-in method function_" + std::to_string(k) + " of type object at 0x7f3a5c0>", call - 100, cpu - 400,
              id);
      }
      slice("python_function", "nn.Module: Block_" + std::to_string(layer), "4242", "4242", module - 200,
            cpu - module + 200,
            "\"Python id\": " + std::to_string(id) + ", \"Python parent id\": 1, \"Python module id\": " +
                std::to_string(layer) + ", \"Ev Idx\": " + std::to_string(id));
      for (int depth = 0; stacks && depth < 8; ++depth)  // outside of the module, one around the other
        frame("torch/nn/modules/module.py(" + std::to_string(1700 + depth) + "): call_" + std::to_string(depth),
              module - 210 - 5 * depth, cpu + 10 + 5 * depth, id);
      if (stacks) cpu += 500;
    }
    slice("user_annotation", "ProfilerStep#" + std::to_string(step), "4242", "4242", begin - 400, cpu - begin + 400,
          "");
    cpu += 2000;
  }
  for (const char* meta : {"\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 4242, \"tid\": 0, \"args\": "
                           "{\"name\": \"python\"}",
                           "\"name\": \"process_labels\", \"ph\": \"M\", \"ts\": 0, \"pid\": 0, \"tid\": 0, \"args\": "
                           "{\"labels\": \"GPU 0\"}",
                           "\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 0, \"tid\": 7, \"args\": "
                           "{\"name\": \"stream 7 \"}"})
    put(",\n  {\n    %s\n  }", meta);
  put("\n  ],\n  \"traceName\": \"made.pt.trace.json\",\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": "
      "0\n}\n");
  return std::fclose(g_out) == 0 ? 0 : 1;
}
