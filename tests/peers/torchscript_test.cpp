// The layers of layers.json as programs of TorchScript, run by PyTorch: what ONNX can express gives the same numbers
// there, under the same names.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "engine/formats/torchscript/script.h"
#include "tests/peers/layer_graphs.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

TEST(TorchScript, every_layer_in_pytorch) {
  TENON_NEEDS_TORCH();
  const TemporaryFolder folder("tenon-scripts");
  const WrittenGraphs written =
      written_graphs(folder, "torchscript", [](const std::string& path, const LayerGraph& layer) {
        formats::save_torchscript(path, layer.onnx, layer.state, layer.batch);
      });
  const std::vector<LayerGraph>& programs = written.graphs;
  const auto theirs = run_torch("torchscript.py", written.cases);
  for (size_t i = 0; i < programs.size(); ++i) {
    SCOPED_TRACE(programs[i].what);
    for (const char* form : {"output", "frozen"}) {
      const Tensor& other = find(theirs, std::to_string(i) + " " + form);
      ASSERT_EQ(programs[i].output.size(), other.size());
      EXPECT_LE(apart(programs[i].output, other), 1e-5) << form;
    }
    expect_state(programs[i], theirs, std::to_string(i) + " state ");
  }
}

}  // namespace
}  // namespace tenon::peers
