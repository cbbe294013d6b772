// Runs that begin with the weights of a file, or of another run.
#include "projects/weights_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "core/sha256.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/file.h"
#include "engine/ops/create.h"
#include "engine/templates/templates.h"
#include "projects/finish.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using testing_files::TempDir;
using testing_words::error_of;
using State = RunStatus::State;
using Settings = std::vector<std::pair<std::string, std::string>>;

#define EXPECT_WORDS(text, part)                           \
  do {                                                     \
    const std::string said = (text);                       \
    EXPECT_NE(said.find(part), std::string::npos) << said; \
  } while (false)

struct BegunWith : testing_files::SpiralsTest {
  void SetUp() override {
    SpiralsTest::SetUp();
    train("base", {}, 40);
  }
  std::string written(const std::string& name, ExportFormat format) {
    export_run(*project, project->run("base"), 40, format, dir / name, false);
    return dir / name;
  }
  Recipe recipe(const Settings& set) {
    Recipe r = Recipe::from_json(project->recipe());
    for (const auto& [key, value] : set) r.set(key, value);
    return r;
  }
  /// Bytes of the model alone, after a step.
  std::string model_at(const std::string& run, int64_t step) {
    std::string all;
    for (const auto& [name, t] : state_at(*project, project->run(run).id, step).tensors)
      if (name.starts_with("model/")) all += name + std::string(static_cast<const char*>(t.raw()), t.nbytes());
    return all;
  }
};

TEST_F(BegunWith, every_kind_of_file_gives_the_same_weights) {
  const std::string want = model_at("base", 40);
  int n = 0;
  for (const auto& [file, format] : {std::pair{"w.safetensors", ExportFormat::safetensors},
                                     {"w.pt", ExportFormat::torch},
                                     {"w.pt2", ExportFormat::pt2},
                                     {"w.onnx", ExportFormat::onnx}}) {
    const std::string run = "from-" + std::to_string(++n);
    train(run, {{"init.from", written(file, format)}}, 5);
    EXPECT_EQ(model_at(run, 0), want) << file;
    EXPECT_NE(model_at(run, 5), want) << file;
    const std::string bytes = testing_files::read(dir / file);
    EXPECT_EQ(Recipe::from_json(project->run(run).recipe).text("init.sha256"), hex(sha256(bytes.data(), bytes.size())));
  }
  // A run of this project, and one of another file.
  train("own", {{"init.run", "base@last"}}, 5);
  EXPECT_EQ(model_at("own", 0), want);
  EXPECT_EQ(Recipe::from_json(project->run("own").recipe).text("init.sha256"),
            digest_at(*project, project->run("base").id, 40));
  const Template& t = find_template("spirals");
  auto other = Project::create(dir / "b.tenon", t.model, t.recipe.to_json());
  std::swap(project, other);
  train("far", {{"init.from", dir / "a.tenon"}, {"init.run", "base@40"}}, 5);
  EXPECT_EQ(model_at("far", 0), want);
}

TEST_F(BegunWith, nothing_later_needs_the_file) {
  const std::string file = written("w.pt", ExportFormat::torch);
  const Settings set = {{"init.from", file}, {"init.freeze", "layers.0.*"}};
  train("through", set, 60);
  const RunInfo through = project->run("through");
  const std::string digest = digest_at(*project, through.id, 60);
  // Stopped on the way, and gone on with when the file is gone.
  TrainOptions o;
  o.run_name = "stopped";
  o.max_steps = 60;
  o.start_paused = true;
  o.set = set;
  auto d = RunDriver::start(project, o);
  for (int i = 0; i < 7; ++i) d->step_once();
  while (d->status().step < 7) std::this_thread::yield();
  d->stop();
  d->wait();
  EXPECT_EQ(project->run("stopped").status, "stopped");
  d.reset();
  std::filesystem::remove(file);
  train("", {}, 0, "stopped");
  EXPECT_EQ(digest_at(*project, project->run("stopped").id, 60), digest);
  for (const CheckpointInfo& c : project->checkpoints(through.id))
    if (c.step > 0) project->delete_checkpoint(c.id);
  EXPECT_EQ(digest_at(*project, through.id, 60), digest) << "replayed from step 0";
  // A new run needs it, and says so.
  EXPECT_WORDS(error_of([&] { train("again", set, 5); }), "w.pt");
  for (const RunInfo& r : project->runs()) EXPECT_NE(r.name, "again") << "no run was begun";
}

TEST_F(BegunWith, another_file_of_the_same_name_is_noticed) {
  const std::string file = written("w.safetensors", ExportFormat::safetensors);
  const std::string sum = read_weights(*project, project->model(), recipe({{"init.from", file}})).sha256;
  EXPECT_EQ(
      read_weights(*project, project->model(), recipe({{"init.from", file}, {"init.sha256", sum}})).tensors.size(), 6u);
  export_run(*project, project->run("base"), 39, ExportFormat::safetensors, file, false);
  const std::string refusal = error_of([&] {
    read_weights(*project, project->model(), recipe({{"init.from", file}, {"init.sha256", sum}}));
  });
  EXPECT_WORDS(refusal, "is not what init.sha256 says");
  EXPECT_WORDS(refusal, sum);
}

TEST_F(BegunWith, the_table_says_what_becomes_of_each_tensor) {
  const formats::NamedTensors named = {{"module.layers.0.weight", zeros({64, 2})},
                                       {"module.layers.0.bias", zeros({64})},
                                       {"module.layers.4.weight", zeros({10, 64})},
                                       {"module.extra", zeros({3})}};
  formats::save_torch(dir / "m.pt", named);
  const Settings from = {{"init.from", dir / "m.pt"}};
  const WeightMap plain = weight_table(*project, project->model(), recipe(from));
  EXPECT_EQ(plain.taken(), 0u);
  EXPECT_EQ(plain.rule, "module.*=*");
  Settings ruled = from;
  ruled.push_back({"init.map", plain.rule});
  const WeightMap map = weight_table(*project, project->model(), recipe(ruled));
  EXPECT_EQ(map.text(),
            "2 of 6 tensors of the model are taken (2 by rule); 3 missing, 1 wrong shape; of the file 1 left over");
  EXPECT_WORDS(error_of([&] { train("x", ruled, 5); }), "m.pt, a PyTorch checkpoint: the file does not give the model");
  ruled.push_back({"init.missing", "keep"});
  train("x", ruled, 5);
}

TEST_F(BegunWith, a_weight_that_onnx_holds_the_other_way_round_is_turned) {
  formats::OnnxModel m;
  Tensor w = empty({2, 64}, DType::f32);
  for (int64_t i = 0; i < w.numel(); ++i) w.data<float>()[i] = static_cast<float>(i);
  m.graph.initializers = {{"layers.0.weight", w}};
  m.graph.inputs = {{.name = "x", .typed = true, .ranked = true, .shape = {{-1, "n"}, {2, ""}}}};
  m.graph.outputs = {{.name = "y", .typed = true, .ranked = true, .shape = {{-1, "n"}, {64, ""}}}};
  m.graph.nodes = {{"n", "MatMul", "", {"x", "layers.0.weight"}, {"y"}, {}}};
  formats::save_onnx(dir / "t.onnx", m);
  train("turned", {{"init.from", dir / "t.onnx"}, {"init.missing", "keep"}}, 1);
  for (const auto& [name, t] : state_at(*project, project->run("turned").id, 0).tensors)
    if (name == "model/layers.0.weight") {
      EXPECT_EQ(t.data<float>()[0], 0);
      EXPECT_EQ(t.data<float>()[1], 64);
      EXPECT_EQ(t.data<float>()[2], 1);
    }
}

TEST_F(BegunWith, says_what_is_no_file_of_weights) {
  const auto of = [&](const Settings& set) {
    return error_of([&] { read_weights(*project, project->model(), recipe(set)); });
  };
  EXPECT_WORDS(of({{"init.from", dir / "none.pt"}}), "none.pt");
  testing_files::write(dir / "words.txt", "just words");
  EXPECT_WORDS(of({{"init.from", dir / "words.txt"}}), "no weights are read from it");
  EXPECT_WORDS(of({{"init.from", dir / "words.txt"}, {"init.run", "base"}}), "it has no runs");
  EXPECT_WORDS(of({{"init.run", "bse@last"}}), "has no run \"bse\"");
  EXPECT_WORDS(of({{"init.run", "base@soon"}}), "\"soon\" is no step");
  EXPECT_WORDS(of({{"init.run", "base@999"}}), "there is no step 999");
  EXPECT_FALSE(begins_with_weights(recipe({})));
}

}  // namespace
}  // namespace tenon::projects
