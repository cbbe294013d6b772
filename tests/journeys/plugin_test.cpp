// A plug-in built outside the tree, against an installed Tenon, is where Tenon's own definitions are.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/memory_image.h"
#include "engine/formats/onnx/model.h"
#include "engine/templates/templates.h"
#include "projects/project.h"
#include "tests/journeys/tenon_process.h"
#include "tests/memory_image.h"
#include "tests/messages.h"

namespace tenon::journeys {
namespace {

namespace fs = std::filesystem;
using testing_words::has;

/// Installs Tenon into a folder and builds the example there, once for all tests here.
class Plugins : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    const Outcome installed = run({"cmake", "--install", TENON_BINARY_DIR, "--prefix", prefix()});
    ASSERT_EQ(installed.status, 0) << installed.err;
    // A copy: nothing near it leads to the sources.
    fs::copy(TENON_SOURCE_DIR "/tests/plugin", source());
    const Outcome configured = run({"cmake", "-S", source(), "-B", build(), "-G", "Ninja",
                                    "-DCMAKE_PREFIX_PATH=" + prefix(), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"});
    ASSERT_EQ(configured.status, 0) << configured.out << configured.err;
    const Outcome built = run({"cmake", "--build", build()});
    ASSERT_EQ(built.status, 0) << built.out << built.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(fs::exists(plugin("wave"))) << "the example was not built";
    settings_ = *folder_ / "settings";
    fs::create_directories(settings_ + "/Tenon/plugins");
  }
  void TearDown() override { fs::remove_all(settings_); }

  static std::string prefix() { return *folder_ / "prefix"; }
  static std::string source() { return *folder_ / "source"; }
  static std::string build() { return *folder_ / "build"; }
  static std::string plugin(const std::string& name) { return build() + "/" + name + ".so"; }
  std::string mine(const std::string& file) const { return settings_ + "/Tenon/plugins/" + file; }
  /// The installed program, with a folder of settings of its own.
  Outcome installed(std::vector<std::string> words) const {
    words.insert(words.begin(), {"env", "XDG_CONFIG_HOME=" + settings_, prefix() + "/bin/tenon"});
    return run(words);
  }
  Outcome with_wave(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--plugin", plugin("wave")});
    return installed(words);
  }
  /// The spirals' model with a layer of the plug-in in it, to be trained on the plug-in's data.
  std::string wave_project() const {
    const std::string path = *folder_ / "wave.tenon";
    fs::remove(path);
    const Beginning b = begin(find_template("spirals"), "", path);
    ModelSpec model = b.model;
    int put = 0;
    for (LayerSpec& l : model.layers)
      if (l.type != "Input" && l.type != "Output" && l.type != "Linear") {
        l.type = "Wave";
        l.attrs = {{"frequency", 1.5}};
        ++put;
      }
    EXPECT_GT(put, 0);
    nlohmann::json recipe = b.recipe.to_json();
    recipe["data"] = {{"dataset", "waves"}, {"frequency", 4.0}, {"batch_size", 64}};
    recipe["epochs"] = 10;
    projects::Project::create(path, model, recipe);
    return path;
  }

  static Folder* folder_;
  std::string settings_;
};
Folder* Plugins::folder_ = nullptr;

TEST_F(Plugins, TheExampleSeesTheInstalledTenonAlone) {
  EXPECT_FALSE(has(slurp(build() + "/compile_commands.json"), TENON_SOURCE_DIR));
  EXPECT_TRUE(has(slurp(build() + "/compile_commands.json"), prefix() + "/include/tenon"));
  for (const char* file : {"share/applications/tenon.desktop", "share/mime/packages/tenon-project.xml",
                           "share/icons/hicolor/scalable/apps/tenon.svg"})
    EXPECT_TRUE(fs::exists(prefix() + "/" + file)) << file;
}

TEST_F(Plugins, PkgConfigLeadsToTheSameLibrary) {
  std::string found;
  for (const auto& e : fs::recursive_directory_iterator(prefix()))
    if (e.path().filename() == "tenon.pc") found = e.path().parent_path().string();
  ASSERT_FALSE(found.empty());
  const Outcome o = run({"env", "PKG_CONFIG_PATH=" + found, "pkg-config", "--cflags", "--libs", "tenon"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "/include/tenon")) << o.out;
  EXPECT_TRUE(has(o.out, "-ltenon")) << o.out;
}

TEST_F(Plugins, AProgramMadeWithLibtenonLoadsItToo) {
  const Outcome o = run({build() + "/host", plugin("wave"), "wave"});
  EXPECT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_TRUE(has(o.out, "wave frequency=2: gradients as differences")) << o.out;
}

TEST_F(Plugins, WhatItBringsIsListed) {
  const Outcome o = with_wave({"plugins", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  ASSERT_EQ(o.json().size(), 1u);
  EXPECT_EQ(o.json()[0]["plugin"], "wave");
  const std::string brings = o.json()[0]["brings"].dump();
  for (const char* part :
       {R"({"name":"wave","what":"op"})", R"({"name":"Wave","what":"layer type"})",
        R"({"name":"waves","what":"data set"})", R"({"name":"longest","what":"analysis of traces"})"})
    EXPECT_TRUE(has(brings, part)) << brings;
}

TEST_F(Plugins, ItsAttributesAreKeysOfTheRecipe) {
  const Outcome o = with_wave({"keys", "data", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  bool points = false, chosen = false;
  for (const auto& line : o.json()) {
    points |= line.value("key", "") == "data.points" && line.value("unit", "") == "samples" && line["default"] == 2000;
    chosen |= line.value("choice", "") == "waves";
  }
  EXPECT_TRUE(points && chosen) << o.out;
  EXPECT_FALSE(has(installed({"keys", "data"}).out, "data.dataset=waves")) << "without the plug-in";
  const Outcome refused = with_wave({"new", *folder_ / "x.tenon", "--template", "spirals", "--set",
                                     "data.dataset=waves", "--set", "data.frequency=0"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(has(refused.err, "data.frequency = 0: it is at least 0.01")) << refused.err;
}

TEST_F(Plugins, what_a_plug_in_leaks_is_named_and_proven) {
  if (const std::string why = testing_words::why_no_image(); !why.empty()) GTEST_SKIP() << why;
  const std::string project = *folder_ / "hoard.tenon";
  const Beginning b = begin(find_template("spirals"), "", project);
  ModelSpec model = b.model;
  for (LayerSpec& l : model.layers)
    if (l.name == "layers.1") l.type = "Hoard";
  projects::Project::create(project, model, b.recipe.to_json());
  const auto with_hoard = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--plugin", plugin("hoard")});
    return installed(words);
  };
  // A step from a plan runs no code of a layer: there it would hoard nothing.
  ASSERT_EQ(with_hoard({"train", project, "--run", "r", "--max-steps", "200", "--set", "compile=false"}).status, 0);
  // The run has said so itself.
  const Outcome watches = with_hoard({"watches", project, "r", "--json"});
  ASSERT_EQ(watches.json().size(), 1u) << watches.out << watches.err;
  EXPECT_EQ(watches.json()[0].at("watch"), "memory_growth > 0");
  EXPECT_EQ(watches.json()[0].at("action"), "mark");
  EXPECT_TRUE(watches.json()[0].at("armed").get<bool>());
  const Outcome plan = with_hoard({"memory", "leaks", project, "r", "--steps", "50:90", "--plan"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_TRUE(has(plan.out, "run r: steps 50 to 90 are looked at by a replay from step ")) << plan.out;
  const Outcome found = with_hoard({"memory", "leaks", project, "r", "--steps", "50:90", "--json"});
  EXPECT_EQ(found.status, 1) << found.err;
  ASSERT_EQ(found.json().size(), 1u) << found.out;
  const nlohmann::json j = found.json()[0];
  ASSERT_EQ(j.at("leaks").size(), 1u) << found.out;
  const nlohmann::json leak = j.at("leaks")[0];
  EXPECT_EQ(leak.at("kind"), "variable");
  EXPECT_EQ(leak.at("owner"), "the variable seen_outputs of hoard.so");
  EXPECT_TRUE(leak.at("proof").at("gone").get<bool>());
  EXPECT_TRUE(leak.at("proof").at("same_losses").get<bool>());
  EXPECT_EQ(leak.at("proof").at("after"), 0);
  EXPECT_EQ(leak.at("bytes_a_step"), 100 * 64 * 4);
  const Outcome told = with_hoard({"memory", "leaks", project});
  EXPECT_EQ(told.status, 1);
  EXPECT_TRUE(has(told.out, "the variable seen_outputs of hoard.so holds 25.0 KiB a step")) << told.out;
  EXPECT_EQ(with_hoard({"memory", "leaks", project, "r", "--steps", "5"}).status, 2);
  EXPECT_EQ(with_hoard({"memory", "leaks", project, "r", "--from-step", "198"}).status, 2);

  // One that leaks nothing.
  const std::string clean = *folder_ / "clean.tenon";
  ASSERT_EQ(installed({"new", clean, "--template", "spirals"}).status, 0);
  ASSERT_EQ(installed({"train", clean, "--run", "r", "--max-steps", "200"}).status, 0);
  EXPECT_FALSE(has(installed({"watches", clean, "r"}).out, "memory_growth"));
  const Outcome none = installed({"memory", "leaks", clean});
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_TRUE(has(none.out, "leak nothing")) << none.out;
}

TEST_F(Plugins, ItsLayerLearnsItsDataAndIsProfiledAndExported) {
  const std::string project = wave_project();
  const Outcome trained = with_wave({"train", project, "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome judged = with_wave({"eval", project, "--json"});
  ASSERT_EQ(judged.status, 0) << judged.err;
  EXPECT_GT(judged.json().back().at("accuracy").get<double>(), 0.9) << judged.out;

  const std::string trace = *folder_ / "trace.json", model = *folder_ / "wave.onnx";
  ASSERT_EQ(with_wave({"profile", project, "-o", trace}).status, 0);
  EXPECT_TRUE(has(slurp(trace), "wave")) << "no event of the op";
  const Outcome longest = with_wave({"trace", "longest", trace, "--json"});
  EXPECT_EQ(longest.status, 0) << longest.err;
  EXPECT_TRUE(has(longest.out, "The longest event is")) << longest.out;
  EXPECT_EQ(installed({"trace", "longest", trace}).status, 2) << "without the plug-in there is no such command";

  const Outcome exported = with_wave({"export", project, "--format", "onnx", "-o", model, "--verify"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  const formats::OnnxModel read = formats::parse_onnx(slurp(model), model);
  int waves = 0;
  for (const auto& n : read.graph.nodes)
    if (n.domain == "org.example" && n.op_type == "Wave" && n.number("frequency", 0) == 1.5) ++waves;
  EXPECT_GT(waves, 0);
  EXPECT_EQ(read.other_opsets, (decltype(read.other_opsets){{"org.example", 1}}));

  // A project never loads a plug-in by itself.
  const Outcome without = installed({"train", project});
  EXPECT_NE(without.status, 0);
  EXPECT_TRUE(has(without.err, "--plugin")) << without.err;
}

TEST_F(Plugins, TheUsersFolderIsLoadedUnlessToldOtherwise) {
  fs::copy(plugin("wave"), mine("wave.so"));
  EXPECT_TRUE(has(installed({"keys", "data"}).out, "data.dataset=waves"));
  EXPECT_FALSE(has(installed({"keys", "data", "--no-plugins"}).out, "data.dataset=waves"));
}

TEST_F(Plugins, OnesThatFailAreRefusedAndTheProgramGoesOn) {
  // Of another version: the same file, with another number in its record.
  std::string bytes = slurp(plugin("wave"));
  const size_t record = bytes.find(std::string("tenon plug-in 1") + '\0');
  ASSERT_NE(record, std::string::npos);
  bytes.replace(record + 16, 6, std::string("0.0.9") + '\0');
  std::ofstream(mine("a-older.so"), std::ios::binary) << bytes;
  std::ofstream(mine("b-text.so")) << "no plug-in at all";
  fs::copy(plugin("throws"), mine("c-throws.so"));
  fs::copy(plugin("taken"), mine("d-taken.so"));
  fs::copy(plugin("crashes"), mine("e-crashes.so"));
  fs::copy(plugin("wave"), mine("f-wave.so"));
  const Outcome o = installed({"--plugin", mine("missing.so"), "plugins", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  for (const char* said : {"was built for Tenon 0.0.9; this is", "b-text.so is no plug-in of Tenon",
                           "was not loaded: its licence server does not answer", "try later",
                           "the layer type \"ReLU\" is defined twice, in engine/nn/activation.cpp:", "of plug-in taken",
                           "was not loaded: a table of its own is missing", "missing.so is not there"})
    EXPECT_TRUE(has(o.err, said)) << said << "\n" << o.err;
  size_t loaded = 0, refused = 0;
  for (const auto& line : o.json()) {
    loaded += line.value("plugin", "") == "wave";
    refused += line.contains("refused");
    EXPECT_FALSE(line.contains("plugin") && line["plugin"] != "wave") << line;
  }
  EXPECT_EQ(loaded, 1u);
  EXPECT_EQ(refused, 6u);
  // What they had added before they failed is gone.
  const std::string project = wave_project();
  for (const char* type : {"HalfWay", "OfItsOwn"}) {
    const std::string path = *folder_ / "other.tenon";
    fs::remove(path);
    ModelSpec model = projects::Project::open(project, true)->model();
    for (LayerSpec& l : model.layers)
      if (l.type == "Wave") l.type = type, l.attrs.clear();
    projects::Project::create(path, model, projects::Project::open(project, true)->recipe());
    const Outcome train = installed({"train", path});
    EXPECT_EQ(train.status, 1);
    EXPECT_TRUE(has(train.err, std::string("there is no layer type \"") + type)) << train.err;
  }
}

}  // namespace
}  // namespace tenon::journeys
