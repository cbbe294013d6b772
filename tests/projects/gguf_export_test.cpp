// Transformers as GGUF files, and runs that begin with what such a file holds.
#include "projects/gguf_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <tuple>

#include "engine/formats/gguf.h"
#include "engine/formats/model_file.h"
#include "projects/weights_file.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using testing_files::KeyValues;
using testing_files::TempDir;
using testing_words::error_of;

std::string attr_of(const formats::Gguf& file, const std::string& key) {
  for (const auto& [k, text] : file.metadata())
    if (k == key) return text;
  return "none";
}

struct GgufExport : ::testing::Test {
  TempDir dir;
  std::shared_ptr<Project> project;

  /// A text to train on, and a run of a few steps of byte-gpt's layers, changed by `change`.
  void train(const std::function<void(ModelSpec&)>& change = {}) {
    std::ofstream text(dir / "text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i << " of a text that nobody reads\n";
    text.close();
    const Template& t = find_template("byte-gpt");
    Recipe recipe = t.recipe;
    const KeyValues set = {{"data.dir", dir / "text.txt"}, {"data.context", "128"},    {"data.batch_size", "2"},
                           {"data.cache", dir / "cache"},  {"data.test_samples", "2"}, {"schedule.warmup_steps", "1"}};
    for (const auto& [key, value] : set) recipe.set(key, value);
    ModelSpec model = t.model;
    if (change) change(model);
    project = Project::create(dir / "p.tenon", model, recipe.to_json());
    TrainOptions o;
    o.run_name = "r";
    o.max_steps = 2;
    auto d = RunDriver::start(project, o);
    d->wait();
    ASSERT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
  }
  ExportReport written() {
    return export_run(*project, project->run("r"), 2, ExportFormat::gguf, dir / "m.gguf", true);
  }
};

void set_attr(ModelSpec& m, const std::string& layer, const std::string& name, AttrValue value) {
  LayerSpec* l = m.find(layer);
  ASSERT_NE(l, nullptr) << layer;
  for (Attr& a : l->attrs)
    if (a.name == name) {
      a.value = std::move(value);
      return;
    }
  l->attrs.push_back({name, std::move(value)});
}
void like_gpt2(ModelSpec& m) {
  for (LayerSpec& l : m.layers)
    if (l.type == "ReLU") l.type = "GELU", l.attrs = {{"approximate", std::string("tanh")}};
  set_attr(m, "head", "bias", false);
}

TEST_F(GgufExport, byte_gpt_keeps_its_names_and_says_what_it_is) {
  train();
  const ExportReport e = written();
  EXPECT_TRUE(e.verified);
  const auto file = formats::Gguf::open(dir / "m.gguf");
  EXPECT_EQ(attr_of(file, "general.architecture"), "tenon");
  EXPECT_EQ(attr_of(file, "tenon.block_count"), "4");
  EXPECT_EQ(attr_of(file, "tenon.context_length"), "128");
  EXPECT_EQ(attr_of(file, "tenon.embedding_length"), "128");
  EXPECT_EQ(attr_of(file, "tenon.feed_forward_length"), "512");
  EXPECT_EQ(attr_of(file, "tenon.attention.head_count"), "4");
  EXPECT_EQ(attr_of(file, "tenon.activation"), "ReLU");
  EXPECT_EQ(attr_of(file, "tokenizer.ggml.merges"), "[]");
  const auto m = formats::ModelFile::open(dir / "m.gguf");
  const size_t up = m->at("blocks.3.up.weight");
  EXPECT_EQ(m->tensors[up].shape, (std::vector<int64_t>{512, 128}));
}

TEST_F(GgufExport, what_computes_as_gpt2_does_has_its_names) {
  train(like_gpt2);
  EXPECT_TRUE(written().verified);
  const auto file = formats::Gguf::open(dir / "m.gguf");
  EXPECT_EQ(attr_of(file, "general.architecture"), "gpt2");
  EXPECT_EQ(attr_of(file, "gpt2.block_count"), "4");
  const auto m = formats::ModelFile::open(dir / "m.gguf");
  EXPECT_EQ(m->tensors.size(), 4u + 4 * 12 + 1);
  EXPECT_EQ(m->tensors[m->at("token_embd.weight")].shape, (std::vector<int64_t>{256, 128}));
  EXPECT_EQ(m->tensors[m->at("blk.3.attn_qkv.weight")].shape, (std::vector<int64_t>{384, 128}));
  EXPECT_EQ(m->find_tensor("output.bias"), -1);
  // The weights are the run's own.
  const Checkpoint state = state_at(*project, project->run("r").id, 2);
  for (const auto& [ours, theirs] : gpt2_names(find_gpt(project->model()))) {
    const Tensor t = m->tensor(m->at(theirs));
    const auto it = std::find_if(state.tensors.begin(), state.tensors.end(),
                                 [&, &name = ours](const auto& s) { return s.first == "model/" + name; });
    ASSERT_NE(it, state.tensors.end()) << ours;
    ASSERT_EQ(std::memcmp(t.raw(), it->second.raw(), t.nbytes()), 0) << ours;
  }
}

TEST_F(GgufExport, a_run_begins_with_the_weights_of_such_a_file) {
  train();
  written();
  Recipe r = Recipe::from_json(project->recipe());
  r.set("init.from", dir / "m.gguf");
  const WeightMap map = weight_table(*project, project->model(), r);
  for (const WeightRow& row : map.rows) EXPECT_TRUE(row.taken()) << row.target;
  EXPECT_EQ(map.rows.size(), 6u + 4 * 12);
}

TEST_F(GgufExport, names_of_llama_cpp_are_the_models_own_when_it_begins_with_them) {
  train(like_gpt2);
  written();
  const std::vector<std::pair<std::string, std::string>> names = gpt2_names(find_gpt(project->model()));
  Recipe r = Recipe::from_json(project->recipe());
  r.set("init.from", dir / "m.gguf");
  WeightMap map = weight_table(*project, project->model(), r);
  EXPECT_EQ(map.rows.size(), names.size());
  for (const WeightRow& row : map.rows) EXPECT_EQ(row.state, WeightState::by_name) << row.target;
  // As GPT-2 itself comes: the table of the tokens is the projection at the end, too.
  const formats::Gguf file = formats::Gguf::open(dir / "m.gguf");
  formats::NamedTensors tied;
  for (const auto& e : file.entries())
    if (e.name != "output.weight") tied.emplace_back(e.name, file.tensor(e));
  formats::save_gguf(dir / "tied.gguf", tied, {{"general.architecture", std::string("gpt2")}});
  r.set("init.from", dir / "tied.gguf");
  map = weight_table(*project, project->model(), r);
  for (const WeightRow& row : map.rows) EXPECT_TRUE(row.taken()) << row.target;
  const auto given = [&](const std::string& name) {
    for (const GivenTensor& g : map.given)
      if (g.name == name) return g.tensor;
    return Tensor();
  };
  const GptLayers layers = find_gpt(project->model());
  EXPECT_EQ(given(layers.head + ".weight").raw(), given(layers.embedding + ".weight").raw());
  // Another architecture keeps its names, and so does one that rules are given for.
  formats::save_gguf(dir / "other.gguf", tied, {{"general.architecture", std::string("llama")}});
  EXPECT_EQ(read_weights(*project, project->model(),
                         [&] {
                           Recipe other = r;
                           other.set("init.from", dir / "other.gguf");
                           return other;
                         }())
                .tensors[0]
                .name,
            tied[0].first);
  r.set("init.map", "blk.0.*=blocks.0.*");
  EXPECT_EQ(read_weights(*project, project->model(), r).tensors[0].name, tied[0].first);
}

TEST(GgufLayers, what_is_no_such_transformer_is_said_and_safetensors_offered) {
  const auto refused = [](const ModelSpec& m) { return error_of([&] { find_gpt(m); }); };
  EXPECT_SAYS(refused(find_template("spirals").model), "safetensors");
  EXPECT_SAYS(refused(find_template("byte-lstm").model), "LearnedPositions");
  ModelSpec m = find_template("byte-gpt").model;
  EXPECT_EQ(refused(m), "no error");
  m.find("blocks.1.act")->type = "GELU";
  EXPECT_SAYS(refused(m), "activations");
  m = find_template("byte-gpt").model;
  m.find("blocks.2.attention")->attrs = {{"num_heads", int64_t{4}}};
  EXPECT_SAYS(refused(m), "sees what comes later");
  m = find_template("byte-gpt").model;
  m.find("blocks.2.up")->off = true;
  EXPECT_SAYS(refused(m), "switched off");
  m = find_template("byte-gpt").model;
  m.wires.push_back({"positions", 0, "blocks.0.attention", 3});
  EXPECT_NE(refused(m), "no error");
}

TEST(GgufLayers, only_what_computes_the_same_is_called_gpt2) {
  ModelSpec m = find_template("byte-gpt").model;
  EXPECT_FALSE(find_gpt(m).same_as_gpt2);
  like_gpt2(m);
  EXPECT_TRUE(find_gpt(m).same_as_gpt2);
  EXPECT_EQ(find_gpt(m).blocks.size(), 4u);
  for (const auto& [layer, attr, value] : {std::tuple<const char*, const char*, AttrValue>{"norm", "eps", 1e-3},
                                           {"head", "bias", true},
                                           {"blocks.0.attention", "bias", false},
                                           {"blocks.3.down", "bias", false},
                                           {"blocks.1.norm2", "elementwise_affine", false}}) {
    ModelSpec other = m;
    set_attr(other, layer, attr, value);
    EXPECT_FALSE(find_gpt(other).same_as_gpt2) << layer << " " << attr;
  }
}

}  // namespace
}  // namespace tenon::projects
