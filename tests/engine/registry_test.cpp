// Walks the registry: adding an op adds no code here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/gradcheck.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/run.h"
#include "engine/graph/graph.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/engine/op_samples.h"

namespace tenon {
namespace {

std::vector<Tensor> run_op(const OpDef& op, const Sample& s, std::vector<Tensor> in) {
  std::vector<Tensor> out(static_cast<size_t>(op.info.outputs));
  dispatch(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
  return out;
}

std::vector<double> values_of(const Tensor& t) {
  Tensor c = contiguous(detach(t));
  std::vector<double> v;
  for (int64_t i = 0; i < c.numel(); ++i) v.push_back(storage_value(c, c.offset() + i));
  return v;
}

bool same(double a, double b, double tolerance) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

void expect_close(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(to_string(a[o].size()), to_string(b[o].size())) << what;
    auto x = values_of(a[o]), y = values_of(b[o]);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(same(x[i], y[i], tolerance))
          << what << " output " << o << " element " << i << ": " << x[i] << " and " << y[i];
  }
}

// The same values behind another layout.
Tensor transposed(const Tensor& t) {
  if (t.ndim() < 2) return t;
  return transpose(clone(transpose(t, -1, -2), Order::contiguous), -1, -2);
}
Tensor every_other(const Tensor& t) {
  if (t.ndim() == 0 || t.numel() == 0) return t;
  Shape wide = t.size();
  wide[wide.n - 1] *= 2;
  Tensor room = full(wide, 77, t.dtype());
  Tensor view = slice(room, -1, 0, wide.back(), 2);
  copy_(view, t);
  return view;
}
Tensor backwards(const Tensor& t) {
  if (t.ndim() == 0 || t.numel() == 0) return t;
  return flip(clone(flip(t, -1), Order::contiguous), -1);
}

TEST(Registry, HasOpsWithUniqueNames) {
  ASSERT_GT(all_ops().size(), 50u);
  for (const OpDef& op : all_ops()) EXPECT_EQ(all_ops().find(op.info.name), &op);
}

TEST(Registry, EveryDifferentiableOpHasSamples) {
  for (const OpDef& op : all_ops())
    if (op.backward) {
      EXPECT_TRUE(op.samples) << op.info.name;
    }
}

TEST(Registry, SinglePrecisionFollowsDouble) {
  each_sample([](const OpDef& op, const Sample& s) {
    std::vector<Tensor> narrow;
    for (const Tensor& t : s.inputs) narrow.push_back(t.defined() && t.dtype() == DType::f64 ? cast(t, DType::f32) : t);
    expect_close(run_op(op, s, narrow), run_op(op, s, s.inputs), 2e-5, "f32 against f64");
  });
}

TEST(Registry, LayoutDoesNotMatter) {
  each_sample([](const OpDef& op, const Sample& s) {
    auto dense = run_op(op, s, s.inputs);
    for (auto layout : {transposed, every_other, backwards}) {
      std::vector<Tensor> in;
      for (const Tensor& t : s.inputs) in.push_back(t.defined() ? layout(t) : t);
      if (op.info.reads_strides) continue;  // another layout is another input to these
      expect_close(run_op(op, s, in), dense, 1e-12, "strided against dense");
    }
  });
}

TEST(Registry, InPlaceIsTheFunctionalForm) {
  each_sample([](const OpDef& op, const Sample& s) {
    if (op.info.kind != OpKind::pointwise || op.info.outputs != 1 || op.info.name == std::string("where")) return;
    auto expected = run_op(op, s, s.inputs);
    if (!(expected[0].size() == s.inputs[0].size()) || expected[0].dtype() != s.inputs[0].dtype()) return;
    std::vector<Tensor> in = s.inputs;
    in[0] = every_other(in[0]);
    uint32_t version = in[0].version();
    dispatch_in_place(op, s.attrs.get(), in.data(), static_cast<int>(in.size()));
    expect_close({in[0]}, expected, 0, "in place against functional");
    EXPECT_EQ(in[0].version(), version + 1);
  });
}

// Every output is given a buffer between two guards.
TEST(Registry, NoOpWritesBeyondItsOutputs) {
  constexpr int64_t kGuard = 256;
  each_sample([](const OpDef& op, const Sample& s) {
    if (op.info.kind == OpKind::view) return;
    auto expected = run_op(op, s, s.inputs);
    for (const Tensor& o : expected)
      for (const Tensor& i : s.inputs)
        if (i.defined() && o.storage() == i.storage())
          return;  // an op that writes into its input has no output of its own
    std::vector<Tensor> rooms, out;
    for (const Tensor& o : expected) {
      int64_t lo, hi, item = static_cast<int64_t>(itemsize(o.dtype()));
      o.layout().extent(lo, hi);
      Tensor room = full({(hi - lo + 1) * item + 2 * kGuard}, 0xA5, DType::u8);
      rooms.push_back(room);
      Tensor t = view_of(room, Layout::contiguous({1}));
      t.impl()->meta.dtype = o.dtype();
      t.impl()->meta.shape = o.size();
      t.impl()->stride = o.stride();
      t.impl()->offset = kGuard / item;
      out.push_back(t);
    }
    std::vector<Tensor> in = s.inputs;
    dispatch(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
    expect_close(out, expected, 0, "into a given buffer");
    for (const Tensor& room : rooms)
      for (int64_t i = 0; i < kGuard; ++i) {
        ASSERT_EQ(room.data<uint8_t>()[i], 0xA5) << "before the output";
        ASSERT_EQ(room.data<uint8_t>()[room.numel() - 1 - i], 0xA5) << "behind the output";
      }
  });
}

// What an op says of itself to ONNX, run again by the operators of the same names.
TEST(Registry, OnnxRoundTrip) {
  int done = 0;
  each_sample([&](const OpDef& op, const Sample& s) {
    if (!*op.info.onnx) return;
    std::vector<Tensor> in, given;
    for (const Tensor& t : s.inputs) {
      in.push_back(t.defined() && t.dtype() == DType::f64 ? cast(t, DType::f32) : t);
      if (t.defined()) given.push_back(in.back());
    }
    auto f = [&](const std::vector<Tensor>& args) {
      std::vector<Tensor> all = in;
      size_t k = 0;
      for (Tensor& t : all)
        if (t.defined()) t = args[k++];
      auto out = run_op(op, s, all);
      return std::vector<Tensor>{out[0]};
    };
    formats::OnnxModel model;
    try {
      model = formats::to_onnx(trace_graph(f, given), op.info.name);
    } catch (const Error& e) {
      ASSERT_NE(std::string(e.what()).find("cannot be exported"), std::string::npos) << e.what();
      return;
    }
    formats::OnnxModel read = formats::parse_onnx(formats::onnx_bytes(model), op.info.name);
    expect_close(formats::run_onnx(read, given), f(given), 1e-6, "through ONNX");
    ++done;
  });
  EXPECT_GT(done, 40);
}

// Small inputs are never split over threads: the samples again with so many rows in front that every loop is.
TEST(Registry, ThreadsDoNotChangeABitOfLargeTensors) {
  int compared = 0;
  each_sample([&](const OpDef& op, const Sample& s) {
    // Convolutions and pooling keep sizes in their attributes, and have large cases of their own beside their kernels.
    OpKind k = op.info.kind;
    if (k != OpKind::pointwise && k != OpKind::reduce && k != OpKind::matmul && k != OpKind::norm &&
        k != OpKind::random && k != OpKind::other)
      return;
    int64_t most = 1;
    for (const Tensor& t : s.inputs)
      if (t.defined()) most = std::max(most, t.numel());
    std::vector<Tensor> in;
    for (const Tensor& t : s.inputs) {
      if (!t.defined() || t.ndim() == 0) {
        in.push_back(t);
        continue;
      }
      Shape wide = t.size();
      wide.insert(0, 70000 / most + 1);
      Tensor big = t.dtype() == DType::f64 ? cast(t, DType::f32) : t;
      in.push_back(clone(expand(big, wide), Order::contiguous));
    }
    std::vector<Tensor> one, two;
    try {
      set_num_threads(1);
      one = run_op(op, s, in);
      set_num_threads(2);
      two = run_op(op, s, in);
    } catch (const Error&) {  // an op of a fixed number of axes
      set_num_threads(0);
      return;
    }
    set_num_threads(0);
    for (size_t o = 0; o < one.size(); ++o) {
      Tensor a = contiguous(detach(one[o])), b = contiguous(detach(two[o]));
      ASSERT_EQ(std::memcmp(a.raw(), b.raw(), a.nbytes()), 0) << "output " << o;
    }
    ++compared;
  });
  EXPECT_GT(compared, 80);
}

TEST(Registry, ThreadsDoNotChangeABit) {
  each_sample([](const OpDef& op, const Sample& s) {
    set_num_threads(1);
    auto one = run_op(op, s, s.inputs);
    set_num_threads(2);
    auto two = run_op(op, s, s.inputs);
    set_num_threads(0);
    expect_close(one, two, 0, "1 against 2 threads");
  });
}

Function function_of(const OpDef& op, const Sample& s) {
  return [&op, s](const std::vector<Tensor>& in) { return run_op(op, s, in); };
}
std::vector<Tensor> leaves_of(const Sample& s) {
  std::vector<Tensor> in;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    Tensor t = s.inputs[i].defined() ? clone(s.inputs[i]) : Tensor();
    if (t.defined() && s.differentiable[i] && t.dtype() == DType::f64) set_requires_grad(t);
    in.push_back(t);
  }
  return in;
}
bool checks(const OpDef& op, const std::vector<Tensor>& in) {
  if (!op.backward) return false;
  for (const Tensor& t : in)
    if (t.defined() && t.requires_grad() && t.numel() > 0) return true;
  return false;
}

TEST(Registry, GradientsFollowDifferences) {
  each_sample([](const OpDef& op, const Sample& s) {
    auto in = leaves_of(s);
    if (checks(op, in)) {
      ASSERT_EQ(gradcheck(function_of(op, s), in), "");
    }
  });
}

TEST(Registry, SecondGradientsFollowDifferences) {
  each_sample([](const OpDef& op, const Sample& s) {
    auto in = leaves_of(s);
    if (checks(op, in)) {
      ASSERT_EQ(gradgradcheck(function_of(op, s), in), "");
    }
  });
}

TEST(Registry, FusedGradientIsTheComposite) {
  each_sample([](const OpDef& op, const Sample& s) {
    auto in = leaves_of(s);
    if (!checks(op, in)) return;
    std::vector<Tensor> leaves;
    for (auto& t : in)
      if (t.defined() && t.requires_grad()) leaves.push_back(t);
    auto out = run_op(op, s, in);
    BackwardOptions retain;
    retain.retain_graph = true;
    std::vector<Tensor> g;
    for (auto& o : out) g.push_back(full(o.size(), 0.75, o.dtype()));
    auto fused = grad({out[0]}, leaves, {g[0]}, retain, true);
    BackwardOptions create;
    create.create_graph = true;
    auto composite = grad({out[0]}, leaves, {g[0]}, create, true);
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSERT_EQ(fused[i].defined(), composite[i].defined());
      if (!fused[i]) continue;
      expect_close({fused[i]}, {composite[i]}, 1e-12, "fused against composite");
      // One leaf's alone: the others' have a part in its own gradient nevertheless.
      const Tensor alone = grad({out[0]}, {leaves[i]}, {g[0]}, create, true)[0];
      expect_close({alone}, {composite[i]}, 1e-12, "one gradient alone");
      ASSERT_EQ(alone.requires_grad(), composite[i].requires_grad());
      if (!alone.requires_grad()) continue;
      const Tensor along = full(alone.size(), 0.5, alone.dtype());
      const auto of_alone = grad({alone}, leaves, {along}, retain, true),
                 of_all = grad({composite[i]}, leaves, {along}, retain, true);
      for (size_t k = 0; k < leaves.size(); ++k) {
        ASSERT_EQ(of_alone[k].defined(), of_all[k].defined());
        if (of_all[k]) expect_close({of_alone[k]}, {of_all[k]}, 1e-12, "its own gradients");
      }
    }
  });
}

TEST(Registry, MetaTensorsInferTheSameSizes) {
  each_sample([](const OpDef& op, const Sample& s) {
    std::vector<Tensor> shadows;
    for (const Tensor& t : s.inputs)
      shadows.push_back(t.defined() ? empty(t.size(), t.dtype(), {DeviceType::meta}) : t);
    auto real = run_op(op, s, s.inputs), shadow = run_op(op, s, shadows);
    for (size_t i = 0; i < real.size(); ++i) {
      EXPECT_EQ(to_string(real[i].size()), to_string(shadow[i].size()));
      EXPECT_EQ(real[i].dtype(), shadow[i].dtype());
      EXPECT_EQ(shadow[i].is_meta(), !s.inputs.empty());
    }
  });
}

TEST(Registry, NanAndInfinityPassThroughPointwiseOps) {
  for (const OpDef& op : all_ops()) {
    if (op.info.kind != OpKind::pointwise || !op.samples || op.info.name == std::string("where")) continue;
    Samples samples;
    op.samples(samples);
    Sample s = samples.all()[0];
    if (s.inputs[0].dtype() != DType::f64) continue;
    std::vector<Tensor> in;
    for (auto& t : s.inputs) in.push_back(clone(t));
    in[0].data<double>()[2] = NAN;
    auto out = run_op(op, s, in);
    if (is_floating(out[0].dtype())) {
      EXPECT_TRUE(std::isnan(values_of(out[0])[2])) << op.info.name;
    }
    for (auto& t : in) t = cast(t, DType::f32);
    out = run_op(op, s, in);
    if (is_floating(out[0].dtype())) {
      EXPECT_TRUE(std::isnan(values_of(out[0])[2])) << op.info.name << " f32";
    }
  }
}

}  // namespace
}  // namespace tenon
