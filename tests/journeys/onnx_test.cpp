// An exported model is the trained model, in the eyes of ONNX's own checker and of ONNX Runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "projects/project.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

// Runs the model in ONNX Runtime on a saved input, and prints the largest difference to a saved output, relative to the
// largest value; then once more on a single sample, to see that the batch is free.
constexpr const char* kJudge = R"py(
import sys, numpy, onnx, onnxruntime
path, given, expected = sys.argv[1], numpy.load(sys.argv[2]), numpy.load(sys.argv[3])
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
out = session.run(None, {name: given})[0]
assert out.shape == expected.shape and out.dtype == expected.dtype, (out.shape, expected.shape)
one = session.run(None, {name: given[:1]})[0]
assert one.shape == (1,) + expected.shape[1:], one.shape
print(float(numpy.abs(out - expected).max() / numpy.abs(expected).max()))
)py";

void export_and_judge(const std::string& name, const std::string& steps) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx", judge = folder / "judge.py",
                    out = folder / "out";
  ASSERT_EQ(tenon({"new", project, "--template", name, "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", steps}).status, 0);
  const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", model, "--verify", "--json"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_LE(exported.json().at(0).at("relative_difference").get<double>(), 1e-5);

  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  std::ofstream(judge) << kJudge;
  const std::string shape = name == "spirals" ? "(7, 2)" : "(7, 1, 28, 28)";
  const Outcome made = run({python(), "-c",
                            "import numpy, sys; numpy.save(sys.argv[1], numpy.random.default_rng(1).standard_normal(" +
                                shape + ").astype('float32'))",
                            folder / "x.npy"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Outcome ours = tenon({"exec", model, "--input", folder / "x.npy", "--output", out});
  ASSERT_EQ(ours.status, 0) << ours.err;
  const Outcome judged = run({python(), judge, model, folder / "x.npy", out + "/output_0.npy"});
  ASSERT_EQ(judged.status, 0) << judged.err;
  EXPECT_LE(std::stod(judged.out), 1e-5) << "relative difference to ONNX Runtime";
}

TEST(OnnxJourney, spirals) { export_and_judge("spirals", "100"); }

TEST(OnnxJourney, the_convolutional_network) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  export_and_judge("fashion-cnn", "30");
}

TEST(OnnxJourney, the_dense_network) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  export_and_judge("fashion-mlp", "30");
}

// Sequences with lengths of their own, padded to six steps: trained, exported, and the same in ONNX Runtime.
TEST(OnnxJourney, padded_sequences) {
  for (const std::string type : {"LSTM", "GRU", "RNN"}) {
    SCOPED_TRACE(type);
    Folder folder;
    const std::string project = folder / "p.tenon", model = folder / "m.onnx", out = folder / "out";
    const Tensor x = zeros({40, 13}), y = zeros({40}, DType::i64);
    for (int64_t i = 0; i < 40; ++i) {
      const int64_t length = 1 + i % 6;
      for (int64_t k = 0; k < 2 * length; ++k) x.data<float>()[13 * i + k] = static_cast<float>(std::sin(3 * i + k));
      x.data<float>()[13 * i + 12] = static_cast<float>(length);
      y.data<int64_t>()[i] = i % 2;
    }
    formats::save_npy(folder / "x.npy", x);
    formats::save_npy(folder / "y.npy", y);
    ModelSpec spec;
    spec.name = "padded";
    spec.layers = {
        {"input", "Input", {{"shape", std::vector<int64_t>{13}}}},
        {"values", "Narrow", {{"start", int64_t{0}}, {"length", int64_t{12}}}},
        {"steps", "Reshape", {{"shape", std::vector<int64_t>{6, 2}}}},
        {"length", "Select", {{"dim", int64_t{1}}, {"index", int64_t{12}}}},
        {"whole", "Cast", {{"dtype", std::string("i64")}}},
        {"cells", type, {{"hidden_size", int64_t{5}}, {"output", std::string("last")}, {"bidirectional", true}}},
        {"head", "Linear", {{"out_features", int64_t{2}}}},
        {"output", "Output", {}}};
    spec.wires = {{"input", 0, "values", 0}, {"values", 0, "steps", 0}, {"input", 0, "length", 0},
                  {"length", 0, "whole", 0}, {"steps", 0, "cells", 0},  {"whole", 0, "cells", type == "LSTM" ? 3 : 2},
                  {"cells", 0, "head", 0},   {"head", 0, "output", 0}};
    projects::Project::create(project, spec,
                              {{"data", {{"dataset", "npy"}, {"dir", folder.path()}, {"batch_size", 8}}}});
    const Outcome trained = tenon({"train", project, "--run", "r", "--max-steps", "20"});
    ASSERT_EQ(trained.status, 0) << trained.err;
    const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", model, "--verify"});
    ASSERT_EQ(exported.status, 0) << exported.err;
    const Outcome ours = tenon({"exec", model, "--input", folder / "x.npy", "--output", out});
    ASSERT_EQ(ours.status, 0) << ours.err;
    if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
    std::ofstream(folder / "judge.py") << kJudge;
    const Outcome judged = run({python(), folder / "judge.py", model, folder / "x.npy", out + "/output_0.npy"});
    ASSERT_EQ(judged.status, 0) << judged.err;
    EXPECT_LE(std::stod(judged.out), 1e-5) << "relative difference to ONNX Runtime";
  }
}

// Runs the model in ONNX Runtime on saved inputs of several sizes, and prints each largest difference to what was
// saved.
constexpr const char* kSizesJudge = R"py(
import sys, numpy, onnx, onnxruntime
onnx.checker.check_model(sys.argv[1], full_check=True)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
for given, expected in zip(sys.argv[2::2], sys.argv[3::2]):
    expected = numpy.load(expected)
    out = session.run(None, {session.get_inputs()[0].name: numpy.load(given)})[0]
    assert out.shape == expected.shape, (out.shape, expected.shape)
    print(float(numpy.abs(out - expected).max() / numpy.abs(expected).max()))
)py";

/// What ONNX Runtime makes of a model is what `tenon exec` does, at inputs of these sizes, drawn by numpy.
void judge_sizes(const Folder& folder, const std::string& model, const std::vector<std::string>& drawn) {
  std::ofstream(folder / "sizes.py") << kSizesJudge;
  std::vector<std::string> judged{python(), folder / "sizes.py", model};
  for (size_t i = 0; i < drawn.size(); ++i) {
    const std::string x = folder / ("x" + std::to_string(i) + ".npy"), out = folder / ("out" + std::to_string(i));
    const Outcome made =
        run({python(), "-c",
             "import numpy, sys; g = numpy.random.default_rng(1); numpy.save(sys.argv[1], " + drawn[i] + ")", x});
    ASSERT_EQ(made.status, 0) << made.err;
    const Outcome ours = tenon({"exec", model, "--input", x, "--output", out});
    ASSERT_EQ(ours.status, 0) << ours.err;
    judged.insert(judged.end(), {x, out + "/output_0.npy"});
  }
  const Outcome o = run(judged);
  ASSERT_EQ(o.status, 0) << o.err;
  std::istringstream lines(o.out);
  size_t count = 0;
  for (double far; lines >> far; ++count) EXPECT_LE(far, 1e-5) << drawn[count];
  EXPECT_EQ(count, drawn.size());
}

TEST(OnnxJourney, a_text_model_of_any_length) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx", text = folder / "t.txt";
  std::ofstream letters(text);
  for (int i = 0; i < 2000; ++i) letters << (i % 7 ? "the quick brown fox " : "jumps over it\n");
  letters.close();
  ASSERT_EQ(tenon({"new", project, "--template", "byte-lstm", "--data", text, "--set", "eval_every=0", "--set",
                   "data.context=12", "--set", "data.test_samples=8", "--set", "data.batch_size=4"})
                .status,
            0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "5"}).status, 0);
  const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", model, "--verify"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  const Outcome back = tenon({"new", folder / "back.tenon", "--from", model, "--shape", "12"});
  ASSERT_EQ(back.status, 0) << back.err;
  const ModelSpec made = projects::Project::open(folder / "back.tenon", true)->model();
  EXPECT_EQ(std::ranges::count_if(made.layers, [](const LayerSpec& l) { return l.type == "LSTM"; }), 1);
  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  judge_sizes(folder, model, {"g.integers(0, 16, (3, 12))", "g.integers(0, 16, (1, 1))", "g.integers(0, 16, (5, 40))"});
}

TEST(OnnxJourney, stacked_recurrent_layers_of_any_length) {
  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  for (const std::string type : {"LSTM", "GRU", "RNN"}) {
    SCOPED_TRACE(type);
    Folder folder;
    const std::string project = folder / "p.tenon", model = folder / "m.onnx";
    const Tensor x = zeros({24, 6, 3}), y = zeros({24}, DType::i64);
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(std::sin(7 * i));
    for (int64_t i = 0; i < 24; ++i) y.data<int64_t>()[i] = i % 2;
    formats::save_npy(folder / "x.npy", x);
    formats::save_npy(folder / "y.npy", y);
    ModelSpec spec;
    spec.name = "stacked";
    const Attr hidden{"hidden_size", int64_t{5}}, both{"bidirectional", true}, two{"num_layers", int64_t{2}};
    spec.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{6, 3}}}},
                   {"first", type, {hidden, both, two}},
                   {"last", type, {hidden, both, {"output", std::string("last")}}},
                   {"head", "Linear", {{"out_features", int64_t{2}}}},
                   {"output", "Output", {}}};
    spec.wires = {{"input", 0, "first", 0}, {"first", 0, "last", 0}, {"last", 0, "head", 0}, {"head", 0, "output", 0}};
    projects::Project::create(project, spec,
                              {{"data", {{"dataset", "npy"}, {"dir", folder.path()}, {"batch_size", 8}}}});
    ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "5"}).status, 0);
    const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", model, "--verify"});
    ASSERT_EQ(exported.status, 0) << exported.err;
    judge_sizes(folder, model,
                {"g.standard_normal((4, 6, 3)).astype('float32')", "g.standard_normal((1, 1, 3)).astype('float32')",
                 "g.standard_normal((9, 17, 3)).astype('float32')"});
  }
}

TEST(OnnxJourney, bad_models_and_inputs) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--max-steps", "5"}).status, 0);
  EXPECT_EQ(tenon({"export", project, "--format", "foo", "-o", model}).status, 2);
  EXPECT_EQ(tenon({"export", project, "--format", "onnx", "-o", "/no/such/folder/m.onnx"}).status, 1);
  ASSERT_EQ(tenon({"export", project, "--format", "onnx", "-o", model}).status, 0);
  EXPECT_EQ(tenon({"exec", model, "--output", folder / "o"}).status, 1) << "no input";
  EXPECT_EQ(tenon({"exec", folder / "none.onnx", "--output", folder / "o"}).status, 1);
  std::ofstream(folder / "bad.onnx") << "this is no model";
  const Outcome bad = tenon({"exec", folder / "bad.onnx", "--output", folder / "o"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.err.find("bad.onnx is not an ONNX model"), std::string::npos) << bad.err;
}

/// Cases of the ONNX project copied under names of our own.
struct Cases {
  const std::filesystem::path from = "/usr/share/libonnx-testdata/data/node";
  Folder folder;
  void copy(const std::string& name, const std::string& as) {
    std::filesystem::copy(from / name, folder / as, std::filesystem::copy_options::recursive);
  }
};

TEST(OnnxJourney, conform_tells_pass_fail_and_unsupported) {
  Cases cases;
  if (!std::filesystem::exists(cases.from))
    GTEST_SKIP() << "the ONNX project's cases are not installed (Debian: libonnx-testdata)";
  cases.copy("test_abs", "a_passes");
  cases.copy("test_cast_FLOAT_to_STRING", "b_has_strings");
  const Outcome good = tenon({"conform", cases.folder.path()});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_NE(good.out.find("pass a_passes\n"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("unsupported b_has_strings: output \"output\" is string"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("2 cases: 1 passed (50.0 %), 0 failed (0 with a wrong answer), 1 unsupported\n"),
            std::string::npos)
      << good.out;

  cases.copy("test_neg", "c_fails");  // with the answer of another operator
  std::filesystem::copy(cases.from / "test_abs/test_data_set_0/output_0.pb",
                        cases.folder / "c_fails/test_data_set_0/output_0.pb",
                        std::filesystem::copy_options::overwrite_existing);
  const Outcome bad = tenon({"conform", cases.folder.path(), "--json"});
  EXPECT_EQ(bad.status, 1);
  const auto lines = bad.json();
  EXPECT_EQ(lines.at(2).at("case"), "c_fails");
  EXPECT_EQ(lines.at(2).at("outcome"), "fail");
  EXPECT_NE(lines.at(2).at("detail").get<std::string>().find("60 elements differ"), std::string::npos) << lines.at(2);
  EXPECT_EQ(lines.back(),
            (nlohmann::json{{"cases", 3}, {"passed", 1}, {"failed", 1}, {"wrong", 1}, {"unsupported", 1}}));
  EXPECT_EQ(tenon({"conform", cases.folder / "no such folder"}).status, 1);
}

// The newer cases that the pip package carries.
TEST(OnnxJourney, the_newer_cases) {
  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX is not there (packaging/test.sh makes it)";
  const Outcome where =
      run({python(), "-c",
           "import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), 'backend/test/data/node'))"});
  ASSERT_EQ(where.status, 0) << where.err;
  const std::string path = where.out.substr(0, where.out.find('\n'));
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "this edition of the package carries no cases (those below 1.23 do)";
  const Outcome all = tenon({"conform", path, "--json"});
  const auto lines = all.json();
  ASSERT_FALSE(lines.empty()) << all.err;
  for (const auto& line : lines) {
    if (!line.contains("case")) continue;
    EXPECT_NE(line.at("outcome"), "fail") << line;
  }
  EXPECT_EQ(lines.back().at("wrong"), 0);
  EXPECT_GE(lines.back().at("passed").get<double>(), 0.8 * lines.back().at("cases").get<double>()) << lines.back();
}

// A GRU as Keras has it: the state is reset before it goes into the candidate's product.
TEST(OnnxJourney, a_gru_that_resets_before_its_product_gives_what_onnx_runtime_gives) {
  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  Folder folder;
  const std::string make = folder / "make.py", model = folder / "m.onnx", x = folder / "x.npy";
  std::ofstream(make) << R"py(
import sys, numpy, onnx, onnxruntime
from onnx import helper, numpy_helper
path, given, expected, way = sys.argv[1:]
random = numpy.random.default_rng(0)
steps, batch, features, hidden = 9, 4, 16, 24
ways = 2 if way == "bidirectional" else 1
of = lambda *size: random.normal(0, 0.2, size).astype("float32")
weights = {"w": of(ways, 3 * hidden, features), "r": of(ways, 3 * hidden, hidden), "b": of(ways, 6 * hidden)}
tensor = lambda name, *size: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size)
graph = helper.make_graph(
    [helper.make_node("GRU", ["x", "w", "r", "b"], ["y"], hidden_size=hidden, direction=way, linear_before_reset=0)],
    "g", [tensor("x", steps, batch, features)], [tensor("y", steps, ways, batch, hidden)],
    [numpy_helper.from_array(v, k) for k, v in weights.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
onnx.save(model, path)
x = random.standard_normal((steps, batch, features)).astype("float32")
numpy.save(given, x)
numpy.save(expected, onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0])
)py";
  for (const std::string way : {"forward", "reverse", "bidirectional"}) {
    SCOPED_TRACE(way);
    const Outcome made = run({python(), make, model, x, folder / "y.npy", way});
    ASSERT_EQ(made.status, 0) << made.err;
    const Outcome ours = tenon({"exec", model, "--input", x, "--output", folder / way});
    ASSERT_EQ(ours.status, 0) << ours.err;
    const Outcome apart =
        run({python(), "-c", "import numpy, sys; a, b = map(numpy.load, sys.argv[1:]); print(abs(a - b).max())",
             (folder / way) + "/output_0.npy", folder / "y.npy"});
    ASSERT_EQ(apart.status, 0) << apart.err;
    EXPECT_LE(std::stod(apart.out), 1e-5);
  }
}

}  // namespace
}  // namespace tenon::journeys
