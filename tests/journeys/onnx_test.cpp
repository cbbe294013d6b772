// An exported model is the trained model, in the eyes of ONNX's own checker and of ONNX Runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

// Runs the model in ONNX Runtime on a saved input, and prints the largest difference to a saved output, relative to the largest value;
// then once more on a single sample, to see that the batch is free.
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
  const std::string project = folder / "p.tenon", model = folder / "m.onnx", judge = folder / "judge.py", out = folder / "out";
  ASSERT_EQ(tenon({"new", project, "--template", name, "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", steps}).status, 0);
  const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", model, "--verify", "--json"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_LE(exported.json().at(0).at("relative_difference").get<double>(), 1e-5);

  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  std::ofstream(judge) << kJudge;
  const std::string shape = name == "spirals" ? "(7, 2)" : "(7, 1, 28, 28)";
  const Outcome made =
      run({python(), "-c",
           "import numpy, sys; numpy.save(sys.argv[1], numpy.random.default_rng(1).standard_normal(" + shape + ").astype('float32'))",
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

}  // namespace
}  // namespace tenon::journeys
