#include "projects/certificate.h"

#include <filesystem>

#include "core/error.h"
#include "core/pool.h"
#include "core/temporary_folder.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/model.h"
#include "engine/ops/create.h"

namespace {

/// A model y = x + x of two numbers a sample, and new inputs of it.
struct Certified {
  tenon::TemporaryFolder folder{"tenon-fuzz-certificate"};
  std::string model = folder / "m.onnx", inputs = folder / "x.npy";
  Certified() {
    using namespace tenon;
    formats::OnnxModel m;
    m.graph.name = "double";
    m.graph.inputs = {{"x", true, DType::f32, true, {{-1, "N"}, {2, ""}}}};
    m.graph.outputs = {{"y", true, DType::f32, true, {{-1, "N"}, {2, ""}}}};
    m.graph.nodes = {{"add", "Add", "", {"x", "x"}, {"y"}, {}}};
    formats::save_onnx(model, m);
    formats::save_npy(inputs, full({4, 2}, 0.5));
  }
};

}  // namespace

// A certificate beside a model that is as it should be: it fits, does not fit, or is an error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  static const Certified certified;
  try {
    const AllocationLimit bound(64 << 20);
    projects::verify_with({reinterpret_cast<const char*>(data), size}, "input", certified.model,
                          {.key = "a key", .inputs = certified.inputs});
  } catch (const Error&) {
  }
  return 0;
}
