// Programs of torch.jit, traced and scripted: what PyTorch writes gives the same numbers here.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "engine/formats/jit/jit_model.h"
#include "engine/formats/onnx/import.h"
#include "tests/peers/layer_graphs.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

namespace fs = std::filesystem;

TEST(JitPrograms, modules_of_pytorch_give_the_same_here) {
  TENON_NEEDS_TORCH_EXPORT();
  const TemporaryFolder folder("tenon-jit");
  const auto theirs = run_torch("exported.py", {{"jit", folder / ""}});
  std::map<std::string, std::string> refused;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "")) {
    const std::string path = entry.path().string(), file = entry.path().filename().string(),
                      name = file.substr(0, file.find('.'));
    SCOPED_TRACE(file);
    ++files;
    const Tensor& given = find(theirs, name + " input");
    formats::OnnxModel model;
    try {  // a traced one knows its sizes, a scripted one is told
      model = formats::load_jit(path, {{given.size(), given.dtype()}});
    } catch (const formats::OnnxUnsupported& e) {
      refused[file] = e.message();
      continue;
    }
    const bool any_batch = model.graph.inputs.at(0).shape.at(0).value < 0;
    EXPECT_EQ(any_batch, file != "turned.scripted.pt") << "whose interpolation asks for the batch";
    expect_outputs_of_pytorch(model, theirs, name, false);
    if (any_batch) expect_outputs_of_pytorch(model, theirs, name, true);
    try {
      const formats::ImportedModel layers =
          formats::import_model(model, name, {given.size().begin() + 1, given.size().end()});
      EXPECT_GT(layers.model.layers.size(), 2u);
    } catch (const formats::OnnxUnsupported& e) {
      EXPECT_EQ(name, "cubic") << e.message();
    }
  }
  EXPECT_GE(files, 40);
  // What it asks of devices and of types of its arguments is not followed.
  for (const auto& [file, why] : refused) EXPECT_EQ(file, "encoder.scripted.pt") << why;
}

}  // namespace
}  // namespace tenon::peers
