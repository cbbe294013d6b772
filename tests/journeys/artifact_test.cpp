// Every template as C++, as TorchScript and as .pt2: what the system's compiler and PyTorch make of it is what we make
// of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

/// A template in small, and inputs for it in the words of NumPy.
struct Exported {
  const char* name;
  std::vector<std::string> settings;
  const char* input;
};
const std::vector<Exported>& exported_templates() {
  static const std::vector<Exported> all = {
      {"spirals", {}, "standard_normal((7, 2))"},
      {"tabular", {}, "standard_normal((7, 10))"},
      {"recommender", {"data.samples=2000"}, "integers(0, 4, (7, 12))"},
      {"series", {"data.samples=200"}, "standard_normal((7, 64, 1))"},
      {"sounds", {}, "standard_normal((5, 1, 40, 98))"},
      {"u-net", {"data.samples=40", "data.batch_size=4"}, "standard_normal((3, 1, 32, 32))"},
      {"resnet18", {"data.samples=16", "data.batch_size=4", "data.transforms="}, "standard_normal((2, 3, 32, 32))"},
      {"byte-gpt", {"data.context=16", "data.batch_size=4"}, "integers(0, 256, (3, 16))"},
      {"byte-gpt", {"data.context=40", "data.batch_size=2"}, "integers(0, 256, (2, 40))"},
      {"byte-lstm", {"data.context=12", "data.batch_size=4"}, "integers(0, 256, (3, 12))"},
      {"fashion-mlp", {}, "standard_normal((7, 1, 28, 28))"},
      {"fashion-cnn", {}, "standard_normal((7, 1, 28, 28))"},
      {"autoencoder", {}, "standard_normal((7, 1, 28, 28))"},
  };
  return all;
}

/// A project of the template with a run "r" of a few steps; false where its data is not installed.
bool made_and_trained(const Exported& t, const Folder& folder) {
  const bool needs_fashion = std::string(t.name).starts_with("fashion-") || std::string(t.name) == "autoencoder";
  if (needs_fashion && !has_fashion_mnist()) return false;
  std::vector<std::string> words = {"new", folder / "p.tenon", "--template", t.name, "--set", "eval_every=0"};
  for (const std::string& s : t.settings) words.insert(words.end(), {"--set", s});
  if (std::string(t.name).starts_with("byte-"))
    words.insert(words.end(), {"--set", "data.cache=" + (folder / "cache")});
  const Outcome made = tenon(words);
  EXPECT_EQ(made.status, 0) << made.err;
  const Outcome trained = tenon({"train", folder / "p.tenon", "--run", "r", "--max-steps", "3"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  return made.status == 0 && trained.status == 0;
}

TEST(ArtifactJourney, every_template_as_cpp) {
  std::map<std::string, int> seen;
  for (const Exported& t : exported_templates()) {
    SCOPED_TRACE(t.name);
    ++seen[t.name];
    const Folder folder;
    if (!made_and_trained(t, folder)) continue;
    // Both ways to keep weights with the first, then one with each in turn; where they are many, in the source.
    const bool many = std::string(t.name) == "resnet18";
    for (const char* batch : {"1", "3"}) {
      const bool beside = std::string(batch) == "3";
      if (seen.size() > 1 && beside == (many || seen.size() % 2 == 0)) continue;
      const std::string weights = folder / "weights.bin";
      std::vector<std::string> words = {"export",           folder / "p.tenon", "r",      "--format", "cpp", "-o",
                                        folder / "model.h", "--verify",         "--json", "--batch",  batch};
      if (beside) words.insert(words.end(), {"--weights", weights});
      const Outcome o = tenon(words);
      ASSERT_EQ(o.status, 0) << o.err;
      const auto j = o.json().at(0);
      if (!j.contains("relative_difference")) GTEST_SKIP() << "there is no C++ compiler";
      EXPECT_LE(j.at("relative_difference").get<double>(), 1e-5) << j;
      EXPECT_GT(j.at("code_bytes").get<int64_t>(), 0) << j;
      EXPECT_GT(j.at("weight_bytes").get<int64_t>(), 0) << j;
      EXPECT_EQ(std::filesystem::exists(weights), beside);
      // Many weights do not go into the source, which a compiler would take minutes for.
      EXPECT_EQ(std::filesystem::exists(folder / "model.bin"), many);
    }
  }
  for (const auto& t : tenon({"templates", "--json"}).json())
    EXPECT_TRUE(seen.contains(t.at("name"))) << t.at("name") << " has no case in this test";
}

// Loads the program in PyTorch, and prints the largest difference to a saved output, relative to the largest value: as
// it is, frozen, and saved again by PyTorch.
constexpr const char* kScriptJudge = R"py(
import sys, numpy, torch
path, given, expected = sys.argv[1], torch.from_numpy(numpy.load(sys.argv[2])), numpy.load(sys.argv[3])
model = torch.jit.load(path, map_location="cpu").eval()
with torch.no_grad():
    out = model(given).numpy()
    assert out.shape == expected.shape and out.dtype == expected.dtype, (out.shape, expected.shape)
    one = model(given[:1])
    assert tuple(one.shape) == (1,) + expected.shape[1:], one.shape
    worst = numpy.abs(out - expected).max()
    worst = max(worst, numpy.abs(torch.jit.freeze(model)(given).numpy() - expected).max())
    model.save(path + ".again")
    worst = max(worst, numpy.abs(torch.jit.load(path + ".again")(given).numpy() - expected).max())
print(float(worst / numpy.abs(expected).max()))
# What the state is called is what `--format torch` calls it.
missing = set(torch.load(sys.argv[4])) - set(model.state_dict())
assert not missing, missing
)py";

// The same of a program of torch.export: as it is, at another batch, and as PyTorch goes on with it.
constexpr const char* kProgramJudge = R"py(
import sys, numpy, torch
path, given, expected = sys.argv[1], torch.from_numpy(numpy.load(sys.argv[2])), numpy.load(sys.argv[3])
program = torch.export.load(path)
model = program.module()
with torch.no_grad():
    out = model(given).numpy()
    assert out.shape == expected.shape and out.dtype == expected.dtype, (out.shape, expected.shape)
    one = model(given[:1])
    assert tuple(one.shape) == (1,) + expected.shape[1:], one.shape
    worst = max(numpy.abs(out - expected).max(), numpy.abs(one.numpy() - expected[:1]).max())
    core = program.run_decompositions()
    worst = max(worst, numpy.abs(core.module()(given).numpy() - expected).max())
    torch.export.save(core, path + ".again.pt2")
    worst = max(worst, numpy.abs(torch.export.load(path + ".again.pt2").module()(given).numpy() - expected).max())
print(float(worst / numpy.abs(expected).max()))
missing = set(torch.load(sys.argv[4])) - set(program.state_dict)
assert not missing, missing
)py";

/// Those with NumPy and a PyTorch that has what is asked for, each of which judges: programs are written for old and
/// new versions alike.
std::vector<std::string> pythons_with_torch(const std::string& what) {
  std::vector<std::string> found, candidates = {"/usr/bin/python3", python()};
  if (const char* given = std::getenv("TENON_TORCH_PYTHON")) candidates.push_back(given);
  for (const std::string& p : candidates)
    if (!p.empty() && run({p, "-c", "import torch, numpy\n" + what}).status == 0) found.push_back(p);
  return found;
}

/// Exports every template, and has each judge compare what PyTorch makes of it with what the ONNX model gives here.
/// `again`: what is written is read here, too.
void judge_templates(const std::vector<std::string>& judges, const std::string& format, const char* judge_text,
                     bool again) {
  for (const Exported& t : exported_templates()) {
    SCOPED_TRACE(t.name);
    const Folder folder;
    if (!made_and_trained(t, folder)) continue;
    const std::string script = folder / ("m." + format), onnx = folder / "m.onnx", x = folder / "x.npy";
    const Outcome o =
        tenon({"export", folder / "p.tenon", "r", "--format", format, "-o", script, "--verify", "--json"});
    ASSERT_EQ(o.status, 0) << o.err;
    const auto told = o.json().at(0);
    EXPECT_TRUE(told.contains("verified") || told.at("relative_difference").get<double>() <= 1e-5) << told;
    if (judges.empty()) continue;
    ASSERT_EQ(tenon({"export", folder / "p.tenon", "r", "--format", "onnx", "-o", onnx}).status, 0);
    const Outcome made = run({judges[0], "-c",
                              "import numpy, sys\nx = numpy.random.default_rng(1)." + std::string(t.input) +
                                  "\nnumpy.save(sys.argv[1], x.astype('float32') if x.dtype.kind == 'f' else x)",
                              x});
    ASSERT_EQ(made.status, 0) << made.err;
    const Outcome ours = tenon({"exec", onnx, "--input", x, "--output", folder / "out"});
    ASSERT_EQ(ours.status, 0) << ours.err;
    std::ofstream(folder / "judge.py") << judge_text;
    ASSERT_EQ(tenon({"export", folder / "p.tenon", "r", "--format", "torch", "-o", folder / "w.pt"}).status, 0);
    for (const std::string& judge : judges) {
      SCOPED_TRACE(judge);
      const Outcome judged = run({judge, folder / "judge.py", script, x, folder / "out/output_0.npy", folder / "w.pt"});
      ASSERT_EQ(judged.status, 0) << judged.err;
      EXPECT_LE(std::stod(judged.out), 1e-5) << "relative difference to PyTorch";
    }
    if (!again) continue;
    // What PyTorch saved of it in core operators is read, too.
    const Outcome core = tenon({"exec", script + ".again.pt2", "--input", x, "--output", folder / "core", "--json"});
    ASSERT_EQ(core.status, 0) << core.err;
  }
}

TEST(ArtifactJourney, every_template_as_torchscript) {
  const std::vector<std::string> judges = pythons_with_torch("");
  judge_templates(judges, "torchscript", kScriptJudge, false);
  if (judges.empty()) GTEST_SKIP() << "PyTorch is not installed: nothing but our own reader opened the programs";
}

TEST(ArtifactJourney, every_template_as_pt2) {
  const std::vector<std::string> judges =
      pythons_with_torch("assert tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 9)");
  judge_templates(judges, "pt2", kProgramJudge, true);
  if (judges.empty())
    GTEST_SKIP() << "PyTorch 2.9 or later is not installed: nothing but our own reader opened the programs";
}

TEST(ArtifactJourney, what_is_wrong_is_said) {
  const Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--max-steps", "2"}).status, 0);
  auto told = [&](std::vector<std::string> more, int status) {
    std::vector<std::string> words = {"export", project};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = tenon(words);
    EXPECT_EQ(o.status, status) << o.err;
    return o.err;
  };
  EXPECT_NE(told({"--format", "onnx", "-o", folder / "m.onnx", "--batch", "4"}, 2).find("--format cpp alone"),
            std::string::npos);
  EXPECT_EQ(told({"--format", "cpp", "-o", folder / "m.h", "--batch", "0"}, 2).empty(), false);
  EXPECT_NE(told({"--format", "cpp", "-o", "/no/such/folder/m.h"}, 1).find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "m.h"));
  ASSERT_EQ(
      tenon({"export", project, "--format", "cpp", "-o", folder / "m.h", "--weights", folder / "w.bin", "--verify"})
          .status,
      0);
  EXPECT_GT(std::filesystem::file_size(folder / "w.bin"), 17000u);
  EXPECT_LT(std::filesystem::file_size(folder / "m.cpp"), 10000u);
}

}  // namespace
}  // namespace tenon::journeys
