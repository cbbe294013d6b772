// An ONNX model becomes a project that goes on where the file stands.
#include "projects/model_import.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/file.h"
#include "engine/formats/onnx/model.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/train/recipe.h"
#include "projects/finish.h"
#include "projects/run_driver.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

namespace fs = std::filesystem;
using testing_words::error_of;

struct FromOnnx : testing_files::SpiralsTest {
  std::string exported() {
    train("base", {}, 40);
    export_run(*project, project->run("base"), 40, ExportFormat::onnx, dir / "base.onnx", false);
    return dir / "base.onnx";
  }
};

TEST_F(FromOnnx, the_project_begins_with_the_files_weights_and_trains) {
  const std::string onnx = exported();
  std::vector<int64_t> steps;
  const ModelImport in =
      project_from_onnx(dir / "again.tenon", onnx, {}, {{"data.dataset", "spirals"}, {"epochs", "2"}},
                        [&](int64_t done, int64_t) { return steps.push_back(done), true; });
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(in.op_layers, 0);
  EXPECT_LT(in.difference, 1e-5);
  EXPECT_EQ(in.weights, (dir / "again.safetensors"));
  EXPECT_SAYS(in.text(), " nodes; the same outputs");
  auto again = Project::open(dir / "again.tenon");
  TrainOptions options;
  options.run_name = "r";
  options.max_steps = 3;
  const auto driver = RunDriver::start(again, options);
  driver->wait();
  EXPECT_EQ(driver->status().state, RunStatus::State::finished) << driver->status().error;
  // Before its first step the model is what was exported, tensor by tensor.
  std::vector<Tensor> want, have;
  for (const auto& [name, t] : state_at(*project, project->run("base").id, 40).tensors)
    if (name.starts_with("model/")) want.push_back(t);
  for (const auto& [name, t] : state_at(*again, again->run("r").id, 0).tensors)
    if (name.starts_with("model/")) have.push_back(t);
  ASSERT_EQ(want.size(), have.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(item(amax(abs(sub(want[i], have[i])))), 0) << i;
}

TEST_F(FromOnnx, a_program_of_torch_export_begins_a_project_too) {
  train("base", {}, 40);
  const ExportReport e = export_run(*project, project->run("base"), 40, ExportFormat::pt2, dir / "base.pt2", true);
  EXPECT_TRUE(e.verified);
  EXPECT_LE(e.relative_difference, 1e-5);
  const ModelImport in = project_from_onnx(dir / "again.tenon", dir / "base.pt2", {}, {{"data.dataset", "spirals"}});
  EXPECT_EQ(in.op_layers, 0);
  EXPECT_LT(in.difference, 1e-5);
  // Layers have the names that the weights have in the state_dict.
  std::set<std::string> want, have;
  for (const auto& [name, t] : state_at(*project, project->run("base").id, 40).tensors)
    if (name.starts_with("model/")) want.insert(name);
  auto again = Project::open(dir / "again.tenon");
  for (const LayerSpec& l : again->model().layers)
    for (const std::string& name : want)
      if (name.starts_with("model/" + l.name + ".")) have.insert(name);
  EXPECT_EQ(want, have);
}

TEST_F(FromOnnx, nothing_is_left_of_what_cannot_be) {
  const std::string onnx = exported();
  EXPECT_SAYS(error_of([&] { project_from_onnx(dir / "c.tenon", dir / "absent.onnx"); }), "absent.onnx");
  formats::OnnxModel m = formats::load_onnx(onnx);
  m.graph.nodes[1].op_type = "Unheard";
  formats::save_onnx(dir / "odd.onnx", m);
  EXPECT_SAYS(error_of([&] { project_from_onnx(dir / "c.tenon", dir / "odd.onnx"); }),
              "cannot be opened in the builder");
  write_file(dir / "c.safetensors", "mine");
  EXPECT_SAYS(error_of([&] { project_from_onnx(dir / "c.tenon", onnx); }), "c.safetensors is there already");
  EXPECT_EQ(read_file(dir / "c.safetensors"), "mine");
  EXPECT_SAYS(error_of([&] {
                project_from_onnx(dir / "b.tenon", onnx, {}, {{"optimizer.rate", "1"}});
              }),
              "optimizer.rate");
  EXPECT_SAYS(error_of([&] {
                project_from_onnx(dir / "b.tenon", onnx, {}, {}, [](int64_t done, int64_t) { return done < 2; });
              }),
              "cancelled");
  for (const char* name : {"c.tenon", "b.tenon", "b.safetensors"}) EXPECT_FALSE(fs::exists(dir / name)) << name;
}

}  // namespace
}  // namespace tenon::projects
