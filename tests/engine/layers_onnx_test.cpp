// Every registered layer through ONNX: what can be exported gives the same numbers when it is run again; what cannot is
// refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/prepared.h"
#include "engine/formats/onnx/run.h"
#include "engine/graph/graph.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon {
namespace {

TEST(LayersOnnx, AreExportedOrRefusedByName) {
  int exported = 0;
  std::map<std::string, std::string> refused;
  for (const LayerDef& def : layers()) {
    const LayerInfo& info = def.info;
    if (info.inputs == 0 || info.outputs == 0) continue;
    SCOPED_TRACE(info.type);
    std::vector<Tensor> in, given;
    std::vector<Meta> metas;
    for (int i = 0; i < info.inputs; ++i) {
      auto k = static_cast<size_t>(i);
      bool left_out = i >= info.inputs - info.optional && k >= info.examples.size();
      LayerExample e = k < info.examples.size() ? info.examples[k] : LayerExample{{2, 3, 8, 8}};
      Tensor t = left_out ? Tensor() : empty(Shape(e.shape), e.dtype);
      Philox random{3, k};
      for (int64_t j = 0; t && j < t.numel(); ++j) {
        if (e.dtype == DType::i64)
          t.data<int64_t>()[j] =
              static_cast<int64_t>(random.below(static_cast<uint64_t>(j), static_cast<uint64_t>(e.below)));
        else
          t.data<float>()[j] = static_cast<float>(random.normal(static_cast<uint64_t>(j)));
      }
      in.push_back(t);
      metas.push_back(t ? t.meta() : Meta{});
      if (t) given.push_back(t);
    }
    auto module = make_layer({"layer", info.type, {}}, metas, {});
    module->initialize(1, "layer");
    module->eval();
    NoGrad no_grad;
    auto f = [&](const std::vector<Tensor>& args) {
      std::vector<Tensor> all = in;
      size_t k = 0;
      for (Tensor& t : all)
        if (t) t = args[k++];
      return std::vector<Tensor>{(*module)(all)};
    };
    formats::OnnxModel model;
    try {
      model = formats::to_onnx(trace_graph(f, given), info.type);
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("cannot be exported"), std::string::npos) << e.what();
      refused[info.type] = e.message();
      continue;
    }
    const formats::OnnxModel read = formats::parse_onnx(formats::onnx_bytes(model), info.type);
    const Tensor here = contiguous(f(given)[0]);
    for (const Tensor& back : {formats::run_onnx(read, given)[0], formats::PreparedModel(read).run_tensors(given)[0]}) {
      ASSERT_EQ(to_string(back.size()), to_string(here.size()));
      const Tensor a = contiguous(back);
      for (int64_t j = 0; j < a.numel(); ++j) {
        double p = storage_value(a, a.offset() + j), q = storage_value(here, here.offset() + j);
        ASSERT_TRUE((std::isnan(p) && std::isnan(q)) || std::abs(p - q) < 1e-4)
            << "element " << j << ": " << p << " and " << q;
      }
    }
    ++exported;
  }
  std::string list;
  for (const auto& [type, why] : refused) list += "\n  " + type + ": " + why;
  RecordProperty("refused", list);
  if (std::getenv("TENON_LIST_REFUSED"))
    std::printf("%d exported, %zu refused:%s\n", exported, refused.size(), list.c_str());
  EXPECT_GT(exported, 100);
}

}  // namespace
}  // namespace tenon
