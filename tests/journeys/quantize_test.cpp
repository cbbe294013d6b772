// A model in fewer bits, in the eyes of ONNX's own checker and of ONNX Runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

// Runs the model in ONNX Runtime on a saved input, as it stands and with every optimization, and prints of both the
// largest difference to a saved output, relative to the largest value, and the share of rows with the same best class.
constexpr const char* kQuantJudge = R"py(
import sys, numpy, onnx, onnxruntime as ort
path, given, expected = sys.argv[1], numpy.load(sys.argv[2]), numpy.load(sys.argv[3])
onnx.checker.check_model(path, full_check=True)
for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    out = session.run(None, {session.get_inputs()[0].name: given})[0]
    assert out.shape == expected.shape and out.dtype == expected.dtype, (out.shape, expected.shape)
    far = float(numpy.abs(out - expected).max() / numpy.abs(expected).max())
    same = float((out.argmax(-1) == expected.argmax(-1)).mean())
    print(far, same)
)py";

using Forms = std::vector<std::string>;

/// Without VNNI, ONNX Runtime's kernels of u8 x i8, to which it fuses int8-static, add pairs of products in 16 bits,
/// which saturate: what they give then says nothing of the file.
bool exact_integer_kernels() {
  std::ifstream info("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(info), {}};
  return text.find("avx512_vnni") != std::string::npos || text.find("avx_vnni") != std::string::npos;
}

/// What ONNX Runtime and `tenon exec` make of each form, as it was exported before, on random input of this kind.
/// `classes`: rows have a best class that a step of a grid does not change, as those of a model that has learnt.
void judge_forms(const Folder& folder, const Forms& forms, const std::string& made, bool classes) {
  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  const std::string judge = folder / "judge.py", x = folder / "x.npy";
  std::ofstream(judge) << kQuantJudge;
  const Outcome input = run(
      {python(), "-c", "import numpy, sys; g = numpy.random.default_rng(1); numpy.save(sys.argv[1], " + made + ")", x});
  ASSERT_EQ(input.status, 0) << input.err;
  for (const std::string& form : forms) {
    const std::string model = folder / (form + ".onnx"), out = folder / form;
    ASSERT_TRUE(std::filesystem::exists(model));
    const Outcome ours = tenon({"exec", model, "--input", x, "--output", out});
    ASSERT_EQ(ours.status, 0) << ours.err;
    const Outcome judged = run({python(), judge, model, x, out + "/output_0.npy"});
    ASSERT_EQ(judged.status, 0) << form << ": " << judged.err;
    std::istringstream lines(judged.out);
    double far = 1, same = 0, fast_far = 1, fast_same = 0;
    lines >> far >> same >> fast_far >> fast_same;
    // A sum that falls on the other side of a half moves by a step of its grid, and with it what comes of it.
    EXPECT_LE(far, 0.02) << form << " as it stands";
    if (classes) {
      EXPECT_GE(same, 0.97) << form;
    }
    if (form == "int8-static" && !exact_integer_kernels()) continue;
    EXPECT_LE(fast_far, 0.05) << form << " with integer kernels";
    if (classes) {
      EXPECT_GE(fast_same, 0.95) << form;
    }
  }
}

TEST(QuantizeJourney, the_convolutional_network) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "fashion-cnn", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "150"}).status, 0);
  const Forms forms{"int8-static", "int8-dynamic", "int4-weights"};
  for (const std::string& form : forms) {
    const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", folder / (form + ".onnx"),
                                    "--quantize", form, "--verify", "--json"});
    ASSERT_EQ(exported.status, 0) << exported.err;
    const auto j = exported.json().at(0);
    EXPECT_LE(j.at("lost_points").get<double>(), form == "int4-weights" ? 2 : 0.5) << j;
    EXPECT_GE(j.at("bytes_f32").get<double>() / j.at("bytes").get<double>(), form == "int4-weights" ? 5.5 : 3.9) << j;
    EXPECT_EQ(j.at("layers").size(), 4u);
    EXPECT_EQ(j.at("verified"), true);
  }
  judge_forms(folder, forms, "g.standard_normal((64, 1, 28, 28)).astype('float32')", true);
}

/// Figures of `tenon bench onnx`, by their names.
std::map<std::string, double> measured(const std::string& model) {
  std::map<std::string, double> figures;
  const Outcome o = tenon({"bench", "onnx", model, "--seconds", "0.05", "--json"});
  EXPECT_EQ(o.status, 0) << o.err;
  for (const auto& j : o.json()) figures[j.at("metric")] = j.at("value").get<double>();
  return figures;
}

TEST(QuantizeJourney, integers_are_multiplied_where_the_processor_can) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "300"}).status, 0);
  ASSERT_EQ(tenon({"export", project, "r", "-o", model, "--quantize", "int8-static"}).status, 0);
  const auto figures = measured(model);
  EXPECT_EQ(figures.at("integer_nodes"), exact_integer_kernels() ? 3 : 0);
  EXPECT_EQ(figures.contains("faster_than_run_no_integer_64"), exact_integer_kernels());
  const auto out = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"exec", model, "--fill", "seed:1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = tenon(words);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.json().at(0).at("max").get<double>();
  };
  const double integers = out({}), floats = out({"--no-integer"});
  EXPECT_NEAR(integers, floats, 0.05 * std::abs(floats) + 0.05);
  // oneDNN's own word for what it may use: without VNNI the model runs in f32, to the bit.
  ASSERT_EQ(setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 1), 0);
  const auto limited = measured(model);
  const Outcome told = tenon({"bench", "onnx", model, "--seconds", "0.05"});
  const double without = out({});
  unsetenv("ONEDNN_MAX_CPU_ISA");
  EXPECT_EQ(limited.at("integer_nodes"), 0);
  EXPECT_NE(told.out.find("integer nodes: none of 3, the processor has no VNNI"), std::string::npos) << told.out;
  EXPECT_EQ(without, floats);
}

TEST(QuantizeJourney, a_run_that_quantizes_while_it_trains) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(
      tenon({"train", project, "--run", "eight", "--max-steps", "400", "--set", "callbacks=quantize after=200"}).status,
      0);
  const Outcome exported = tenon({"export", project, "eight", "-o", folder / "int8-static.onnx", "--quantize",
                                  "int8-static", "--verify", "--json"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  const auto j = exported.json().at(0);
  EXPECT_EQ(j.at("trained_grids").at("weight_bits"), 8) << j;
  EXPECT_FALSE(j.contains("calibration")) << "nothing was calibrated";
  EXPECT_LE(j.at("lost_points").get<double>(), 1) << j;
  // A run that was killed, gone on with and replayed has the ranges of one that went through.
  const std::vector<std::string> few = {"--max-steps", "400", "--set",
                                        "callbacks=quantize weight_bits=3 activation_bits=3 after=50"};
  std::vector<std::string> words{"train", project, "--run", "through"};
  words.insert(words.end(), few.begin(), few.end());
  ASSERT_EQ(tenon(words).status, 0);
  train_through_a_kill(project, "killed", few, 300'000);
  for (const char* step : {"400", "137"})
    EXPECT_EQ(digest(project, "killed", step, 1), digest(project, "through", step, 2)) << step;
  judge_forms(folder, {"int8-static"}, "g.standard_normal((64, 2)).astype('float32')", true);
}

TEST(QuantizeJourney, a_plan_of_every_precision) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "300"}).status, 0);
  const Outcome plan = tenon({"export", project, "r", "--quantize", "plan", "--keep", "1", "--json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  ASSERT_EQ(plan.json().size(), 1u + 4 * 2);
  EXPECT_EQ(plan.json().at(0).at("precision"), "f32");
  const auto last = plan.json().back();
  // The command of a row writes the file that the row tells of.
  std::istringstream command(last.at("command").get<std::string>());
  std::vector<std::string> words;
  for (std::string w; command >> w;) words.push_back(w == "model.onnx" ? model : w);
  ASSERT_EQ(words.at(0), "tenon");
  words.erase(words.begin());
  ASSERT_EQ(tenon(words).status, 0);
  EXPECT_EQ(std::filesystem::file_size(model), last.at("bytes").get<size_t>());
  const Outcome told = tenon({"export", project, "r", "--quantize", "plan", "--keep", "0"});
  EXPECT_NE(told.out.find("int4-weights"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("  tenon export "), std::string::npos) << told.out;
  EXPECT_EQ(tenon({"export", project, "r", "--quantize", "plan", "-o", model}).status, 2) << "nothing is written";
}

TEST(QuantizeJourney, a_text_model) {
  Folder folder;
  const std::string project = folder / "p.tenon", text = folder / "t.txt";
  std::ofstream letters(text);
  for (int i = 0; i < 20000; ++i) letters << (i % 7 ? "the quick brown fox " : "jumps over it\n");
  letters.close();
  ASSERT_EQ(tenon({"new", project, "--template", "byte-gpt", "--data", text, "--set", "eval_every=0", "--set",
                   "data.test_samples=20"})
                .status,
            0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "6"}).status, 0);
  const Forms forms{"int8-static", "int8-dynamic", "int8-weights", "int4-weights"};
  for (const std::string& form : forms) {
    const Outcome exported = tenon({"export", project, "r", "--format", "onnx", "-o", folder / (form + ".onnx"),
                                    "--quantize", form, "--samples", "16", "--json"});
    ASSERT_EQ(exported.status, 0) << exported.err;
    const auto j = exported.json().at(0);
    EXPECT_EQ(j.at("metric"), "nats_per_byte");
    EXPECT_LE(j.at("lost_percent").get<double>(), 2) << j;
  }
  judge_forms(folder, forms, "g.integers(0, 16, (3, 128))", false);
}

// Runs a program of torch.export on a saved input, prints the largest difference to a saved output, relative to the
// largest value, and the dtypes that what it holds has.
constexpr const char* kProgramJudge = R"py(
import sys, numpy, torch
program = torch.export.load(sys.argv[1])
out = program.module()(torch.from_numpy(numpy.load(sys.argv[2]))).detach().numpy()
expected = numpy.load(sys.argv[3])
assert out.shape == expected.shape, (out.shape, expected.shape)
print(float(numpy.abs(out - expected).max() / numpy.abs(expected).max()))
held = list(program.constants.values()) + list(program.state_dict.values())
print(sum(t.numel() for t in held if t.dtype in (torch.int8, torch.uint8)),
      sum(t.numel() for t in held if t.is_floating_point()))
)py";

// The program that PyTorch runs gives what the ONNX file of the same precision gives here.
TEST(QuantizeJourney, a_program_of_torch_export) {
  Folder folder;
  const std::string project = folder / "p.tenon", x = folder / "x.npy";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "300"}).status, 0);
  EXPECT_EQ(
      tenon({"export", project, "r", "--format", "pt2", "-o", folder / "d.pt2", "--quantize", "int8-dynamic"}).status,
      2)
      << "PyTorch has no operator for it";
  const bool torch = !python().empty() && run({python(), "-c", "import torch"}).status == 0;
  for (const std::string form : {"int8-static", "int8-weights", "int4-weights"}) {
    SCOPED_TRACE(form);
    const std::string program = folder / (form + ".pt2"), model = folder / (form + ".onnx"), out = folder / form;
    const Outcome exported =
        tenon({"export", project, "r", "--format", "pt2", "-o", program, "--quantize", form, "--verify", "--json"});
    ASSERT_EQ(exported.status, 0) << exported.err;
    EXPECT_EQ(exported.json().at(0).at("format"), "pt2");
    EXPECT_EQ(exported.json().at(0).at("verified"), true);
    ASSERT_EQ(tenon({"export", project, "r", "-o", model, "--quantize", form}).status, 0);
    if (!torch) continue;
    ASSERT_EQ(run({python(), "-c",
                   "import numpy, sys; numpy.save(sys.argv[1], "
                   "numpy.random.default_rng(1).standard_normal((64, 2)).astype('float32'))",
                   x})
                  .status,
              0);
    ASSERT_EQ(tenon({"exec", model, "--no-integer", "--input", x, "--output", out}).status, 0);
    std::ofstream(folder / "judge.py") << kProgramJudge;
    const Outcome judged = run({python(), folder / "judge.py", program, x, out + "/output_0.npy"});
    ASSERT_EQ(judged.status, 0) << judged.err;
    std::istringstream words(judged.out);
    double far = 1, whole = 0, floats = 0;
    words >> far >> whole >> floats;
    EXPECT_LE(far, 1e-5);
    EXPECT_GT(whole, floats) << "the weights are integers";
  }
  if (!torch) GTEST_SKIP() << "PyTorch is not there";
}

TEST(QuantizeJourney, words_and_budgets_of_the_command) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "300"}).status, 0);
  const auto exported = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"export", project, "r", "-o", model};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  };
  const Outcome told = exported(
      {"--format", "onnx", "--quantize", "int8-static", "--calibration", "entropy", "--samples", "100", "--keep", "1"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find("int8-static (entropy over 100 training samples)"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("1 of 3 layers stay in f32"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("layers.2  Gemm"), std::string::npos) << told.out;
  const Outcome held = exported({"--quantize", "int4-weights", "--budget", "0.2", "--json"});
  ASSERT_EQ(held.status, 0) << held.err;
  EXPECT_LE(held.json().at(0).at("lost_points").get<double>(), 0.2);
  std::filesystem::remove(model);
  EXPECT_EQ(exported({"--quantize", "int2"}).status, 2);
  EXPECT_EQ(exported({"--quantize", "int8-weights", "--calibration", "mse"}).status, 2);
  EXPECT_EQ(exported({"--quantize", "int8-static", "--group", "32"}).status, 2);
  EXPECT_EQ(exported({"--quantize", "int4-weights", "--per-tensor"}).status, 2);
  EXPECT_EQ(exported({"--quantize", "int8-static", "--format", "torch"}).status, 2);
  EXPECT_EQ(exported({"--format", "onnx", "--samples", "9"}).status, 2) << "of nothing that is quantized";
  EXPECT_FALSE(std::filesystem::exists(model));
}

}  // namespace
}  // namespace tenon::journeys
