#pragma once
#include <array>

#include "tests/tracing/made_traces.h"

// A training loop as PyTorch runs and records one: data, a copy to the GPU, blocks of modules forward, backward on
// autograd's thread with buckets of communication on a stream of their own, an optimizer, the loss read at the end; in
// every variation that traces come in.
namespace tenon::tracing {

struct Training {
  uint64_t seed = 1;     ///< of the noise
  uint64_t lengths = 1;  ///< of what varies from step to step for both of two that are compared
  int steps = 8, blocks = 8;
  double noise = 0.05;
  int64_t op = 15000, kernel = 60000, data = 200000, copy = 100000, reduce = 0;
  int buckets = 0;              ///< of all_reduce; they run while backward does
  bool overlap = true;          ///< false: the next op of backward waits for them
  bool stacks = false;          ///< frames of Python and modules
  bool item = true;             ///< the loss is read in every step
  bool pageable = true;         ///< into memory that is not pinned
  bool graph = false;           ///< blocks forward are launched as one CUDA graph
  bool wait_after_ops = false;  ///< something reads a value after every op

  /// What makes it slower, and where.
  enum class Cause {
    none,
    forward_kernel,
    backward_kernel,
    optimizer_kernel,
    reduce,
    data,
    op,
    gap,
    gap_in_backward,
    gap_before_backward,
    wait,
    twice,
    graph_kernel
  } cause = Cause::none;
  int64_t extra = 0;
  int block = 0;
};

inline std::string train(const Training& l) {
  using Cause = Training::Cause;
  MadeTrace t(-1, 0, l.noise, l.seed);
  Philox lengths{l.lengths, 3};
  auto frame = [&](const std::string& name, auto body) { l.stacks ? t.in("python_function", name, body) : body(); };
  auto more = [&](Cause c, int block = -1) { return l.cause == c && (block < 0 || block == l.block) ? l.extra : 0; };
  auto read = [&] {
    t.in("cpu_op", "aten::item", [&] {
      if (l.pageable) return t.read("aten::_local_scalar_dense");
      t.op("aten::_local_scalar_dense", 6000, "Memcpy DtoH (Device -> Pageable)", 1500, 7, "gpu_memcpy");
      t.sync(12000);
    });
  };
  frame("train.py(3): <module>", [&] {
    for (int s = 0; s < l.steps; ++s) {
      const double longer = 0.85 + 0.3 * static_cast<double>(lengths.below(static_cast<uint64_t>(s) * 2, 1000)) /
                                       1000;  // of a batch of sentences
      auto kernel = [&](double of) { return static_cast<int64_t>(static_cast<double>(l.kernel) * of * longer); };
      t.begin_step(s);
      frame("train.py(20): train_step", [&] {
        t.load_data(l.data + more(Cause::data), "_MultiProcessingDataLoaderIter");
        t.nothing(5000);
        if (l.copy) t.op("aten::to", l.op, "Memcpy HtoD (Pageable -> Device)", l.copy, 7, "gpu_memcpy");
        std::vector<std::array<MadeTrace::Place, 2>> forward(static_cast<size_t>(l.blocks));
        frame("nn.Module: Net_0", [&] {
          for (int b = 0; b < l.blocks; ++b) {
            frame("nn.Module: Block_" + std::to_string(b), [&] {
              auto& at = forward[static_cast<size_t>(b)];
              t.nothing(3000);
              at[0] = t.here();
              if (l.graph) {
                std::vector<MadeTrace::Launch> work;
                for (int k = 0; k < 12; ++k)
                  work.push_back({"graph_kernel_" + std::to_string(k % 4),
                                  kernel(0.3) + (k == 6 ? more(Cause::graph_kernel, b) : 0)});
                t.op("CUDAGraph.replay", l.op, work, "cudaGraphLaunch");
                return;
              }
              for (int twice = 0; twice < 1 + (l.cause == Cause::twice && b == l.block); ++twice)
                t.in("cpu_op", "aten::linear", [&] {
                  t.op("aten::addmm", l.op + more(Cause::op, b), "ampere_sgemm_128x64_tn",
                       kernel(1) + more(Cause::forward_kernel, b));
                });
              if (l.wait_after_ops) read();
              t.nothing(4000 + more(Cause::gap, b));
              at[1] = t.here();
              t.op("aten::gelu", l.op, "void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>",
                   kernel(0.2));
              if (l.wait_after_ops || (l.cause == Cause::wait && b % 2 == 0)) read();
              t.op("aten::native_layer_norm", l.op, "void at::native::vectorized_layer_norm_kernel<float, float>",
                   kernel(0.3));
            });
          }
        });
        t.op("aten::mse_loss", l.op, "void at::native::reduce_kernel<512, 1, MeanOps>", kernel(0.1));
        t.nothing(6000 + more(Cause::gap_before_backward));
        int64_t reduced = 0;
        frame("torch/_tensor.py(500): backward", [&] {
          t.on_thread("2", [&] {
            for (int b = l.blocks; b-- > 0;) {
              const auto& at = forward[static_cast<size_t>(b)];
              auto node = [&](const char* name, int which, auto body) {
                if (!l.graph) t.link(at[static_cast<size_t>(which)], t.here());
                t.in("cpu_op", std::string("autograd::engine::evaluate_function: ") + name, [&] {
                  t.nothing(1500);
                  t.in("cpu_op", name, body);
                });
                t.nothing(1000);
              };
              const int64_t held = l.overlap ? 0 : reduced;
              node("GeluBackward0", 1, [&] {
                t.op("aten::gelu_backward", l.op,
                     "void at::native::vectorized_elementwise_kernel<4, GeluBackwardCUDAKernelImpl>", kernel(0.3), 7,
                     "kernel", held);
              });
              t.nothing(more(Cause::gap_in_backward, b));
              node("AddmmBackward0", 0, [&] {
                t.op("aten::mm", l.op, "ampere_sgemm_64x64_nt", kernel(1) + more(Cause::backward_kernel, b), 7,
                     "kernel", held);
                t.op("aten::mm", l.op, "ampere_sgemm_128x64_nn", kernel(1), 7, "kernel", held);
              });
              if (l.buckets && b % std::max(1, l.blocks / l.buckets) == 0) {
                t.in("user_annotation", "nccl:all_reduce", [&] {
                  t.op("c10d::allreduce_", l.op, "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                       l.reduce + more(Cause::reduce), 20, "kernel", t.gpu_end());
                });
                reduced = t.gpu_end(20);
              }
            }
          });
        });
        t.nothing(5000);
        t.in("user_annotation", "Optimizer.step#AdamW.step", [&] {
          for (int k = 0; k < 4; ++k) {
            t.op("aten::_fused_adamw_", l.op, "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
                 kernel(0.5) + more(Cause::optimizer_kernel, k), 7, "kernel", reduced);
            t.nothing(4000);
          }
        });
        t.in("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", [&] { t.nothing(8000); });
        if (l.item) read();
      });
      t.nothing(2500);
      t.end_step(l.stacks);
    }
    t.sync();
  });
  return t.text();
}

}  // namespace tenon::tracing
