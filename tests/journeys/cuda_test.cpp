// The command line with a GPU (the emulated one of tests/simt), with none, and with nothing that could drive one.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

const std::string kEmulated = TENON_BINARY_DIR "/lib/tests/cuda_emulated.so";

const std::string kLibraries = TENON_BINARY_DIR "/lib/tests/cuda";

/// `tenon` on a machine with so many emulated GPUs; -1: without a driver.
Outcome with_gpus(int devices, std::vector<std::string> words, const std::string& libraries = "") {
  std::vector<std::string> all = {"env", "TENON_CUDA_FILE=" + kEmulated, "TENON_CUDA_LIBRARIES=" + libraries,
                                  "TENON_SIMT_DEVICES=" + std::to_string(devices), TENON_BINARY_DIR "/bin/tenon"};
  all.insert(all.end(), words.begin(), words.end());
  return run(all);
}

struct Cuda : testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    if (!std::filesystem::exists(kEmulated)) GTEST_SKIP() << "built without the emulated GPU";
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  }
  std::string digest_of(const std::string& run, const std::string& step) {
    const Outcome o = with_gpus(1, {"digest", project, run, "--step", step});
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  }
};

TEST_F(Cuda, DoctorSaysWhatIsThereAndWhatIsMissing) {
  const std::string two = with_gpus(2, {"doctor"}).out;
  for (const char* part : {"cuda:0", "cuda:1", "Emulated GPU, compute capability 9.0", "kernels of"})
    EXPECT_NE(two.find(part), std::string::npos) << part << " is not in\n" << two;
  const std::string none = with_gpus(0, {"doctor"}).out;
  EXPECT_NE(none.find("the driver finds no GPU"), std::string::npos) << none;
  const std::string undriven = with_gpus(-1, {"doctor"}).out;
  EXPECT_NE(undriven.find("no NVIDIA driver was found"), std::string::npos) << undriven;
  EXPECT_NE(undriven.find("Install the NVIDIA driver"), std::string::npos) << undriven;
  const Outcome unbuilt = run({"env", "TENON_CUDA_FILE=/nowhere/cuda.so", TENON_BINARY_DIR "/bin/tenon", "doctor"});
  EXPECT_NE(unbuilt.out.find("/nowhere/cuda.so, which TENON_CUDA_FILE names, is not there"), std::string::npos)
      << unbuilt.out;
  const Outcome foreign = run({"env", "TENON_CUDA_FILE=/bin/true", TENON_BINARY_DIR "/bin/tenon", "doctor"});
  EXPECT_EQ(foreign.status, 0) << foreign.err;
  EXPECT_NE(foreign.out.find("/bin/true"), std::string::npos) << foreign.out;
}

TEST_F(Cuda, DoctorSaysWhichLibrariesAreThere) {
  const std::string none = with_gpus(1, {"doctor"}).out, all = with_gpus(1, {"doctor"}, kLibraries).out;
  EXPECT_NE(none.find("libcublasLt.so.13 was not found; kernels of Tenon's own compute"), std::string::npos) << none;
  EXPECT_NE(none.find("pip install nvidia-cublas"), std::string::npos) << none;
  EXPECT_NE(all.find("13.1.0, " + kLibraries + "/libcublasLt.so.13"), std::string::npos) << all;
  EXPECT_EQ(all.find("was not found"), std::string::npos) << all;
}

TEST_F(Cuda, ARunOnAGpuHasItsLoad) {
  const auto trained = [&](const std::string& run, const std::string& device, const std::string& libraries) {
    const Outcome o =
        with_gpus(2, {"train", project, "--run", run, "--max-steps", "120", "--device", device}, libraries);
    EXPECT_EQ(o.status, 0) << o.err;
  };
  const auto last = [&](const std::string& run, const std::string& metric) {
    return tenon({"metrics", project, run, metric}).out;
  };
  trained("first", "cuda:0", kLibraries);
  EXPECT_NE(last("first", "gpu_utilization").find("87"), std::string::npos) << last("first", "gpu_utilization");
  EXPECT_NE(last("first", "gpu_watts").find("312.5"), std::string::npos) << last("first", "gpu_watts");
  EXPECT_NE(last("first", "gpu_celsius").find("54"), std::string::npos);
  EXPECT_NE(last("first", "gpu_memory_bytes").find("5.36871e+09"), std::string::npos)
      << last("first", "gpu_memory_bytes");
  trained("second", "cuda:1", kLibraries);
  EXPECT_NE(last("second", "gpu_celsius").find("31"), std::string::npos) << last("second", "gpu_celsius");
  EXPECT_NE(tenon({"metrics", project, "second", "gpu_watts"}).status, 0) << "that GPU has no such sensor";
  trained("none", "cuda:0", "");
  EXPECT_NE(tenon({"metrics", project, "none", "gpu_celsius"}).status, 0);
}

TEST_F(Cuda, WorkloadsAreMeasuredOnAGpu) {
  const Outcome o =
      with_gpus(1, {"bench", "mlp", "tiny", "op_cost", "--device", "cuda", "--seconds", "0.05", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  std::map<std::string, double> figures;
  for (const nlohmann::json& line : o.json()) {
    EXPECT_EQ(line.at("device"), "cuda:0");
    figures[line.at("workload").get<std::string>() + " " + line.at("metric").get<std::string>()] = line.at("value");
  }
  EXPECT_EQ(figures.size(), 14u) << o.out;
  for (const char* name : {"tiny train_steps", "tiny infer_batches", "tiny infer_one_p50", "tiny peak_device_memory",
                           "op_cost add_no_grad", "op_cost mul_forward_backward"})
    EXPECT_GT(figures[name], 0) << name;
  EXPECT_LT(figures["tiny peak_device_memory"], 1 << 20)
      << "of the model and its batch, not of the process nor of the one before";
  EXPECT_GT(figures["mlp peak_device_memory"], 1 << 20);
  EXPECT_EQ(with_gpus(1, {"bench", "checkpoint", "--device", "cuda"}).status, 2);
  EXPECT_EQ(o.err.find("by cuBLASLt"), std::string::npos) << o.err;
  const Outcome by_libraries = with_gpus(1, {"bench", "tiny", "--device", "cuda", "--seconds", "0.05"}, kLibraries);
  EXPECT_NE(by_libraries.err.find("tenon: by cuBLASLt: linear, matmul\n"), std::string::npos) << by_libraries.err;
  const Outcome compiled = with_gpus(1, {"bench", "tiny", "--compile", "--device", "cuda", "--seconds", "0.05"});
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_NE(compiled.err.find("tiny: batches of f32 [16, 2]: "), std::string::npos) << compiled.err;
  EXPECT_NE(compiled.err.find("as one graph of cuda:0"), std::string::npos) << compiled.err;
  EXPECT_NE(with_gpus(-1, {"bench", "tiny", "--device", "cuda"}).err.find("no NVIDIA driver was found"),
            std::string::npos);
}

TEST_F(Cuda, ADeviceThatIsNotThereIsAnErrorThatSaysWhy) {
  const Outcome undriven = with_gpus(-1, {"train", project, "--device", "cuda:0"});
  EXPECT_EQ(undriven.status, 1);
  EXPECT_NE(undriven.err.find("there is no CUDA device: no NVIDIA driver was found"), std::string::npos)
      << undriven.err;
  const Outcome third = with_gpus(2, {"train", project, "--device", "cuda:2"});
  EXPECT_NE(third.err.find("this machine has 2 CUDA devices"), std::string::npos) << third.err;
  const Outcome word = with_gpus(1, {"train", project, "--device", "gpu"});
  EXPECT_EQ(word.status, 2);
  EXPECT_NE(word.err.find("there is no device named gpu"), std::string::npos) << word.err;
  EXPECT_TRUE(tenon({"runs", project, "--json"}).json().empty()) << "a run was begun";
}

TEST_F(Cuda, ARunKeepsItsDeviceAndGoesOnThere) {
  const auto train = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"train", project});
    const Outcome o = with_gpus(1, words);
    EXPECT_EQ(o.status, 0) << o.err;
  };
  train({"--run", "whole", "--max-steps", "30", "--set", "checkpoint_every=10", "--device", "cuda"});
  train({"--run", "twice", "--max-steps", "30", "--set", "checkpoint_every=10", "--device", "cuda"});
  EXPECT_EQ(digest_of("whole", "30"), digest_of("twice", "30"));
  EXPECT_EQ(digest_of("whole", "17"), digest_of("twice", "17")) << "steps that are done again";
  train({"--run", "parts", "--max-steps", "10", "--set", "checkpoint_every=10", "--device", "cuda"});
  train({"--resume", "parts", "--set", "max_steps=30"});
  EXPECT_EQ(digest_of("parts", "30"), digest_of("whole", "30"));
  EXPECT_NE(with_gpus(1, {"runs", project, "--json"}).out.find("\"cuda:0\""), std::string::npos)
      << "a run keeps its device";

  // Without the device: what was saved is there, what would have to be computed is not.
  EXPECT_EQ(with_gpus(-1, {"eval", project, "whole"}).status, 0);
  EXPECT_EQ(with_gpus(-1, {"digest", project, "whole", "--step", "30"}).out, digest_of("whole", "30"));
  const Outcome between = with_gpus(-1, {"digest", project, "whole", "--step", "17"});
  EXPECT_EQ(between.status, 1);
  EXPECT_NE(between.err.find("no NVIDIA driver was found"), std::string::npos) << between.err;
  const Outcome branch =
      with_gpus(-1, {"train", project, "--from", "whole@20", "--run", "here", "--max-steps", "25", "--device", "cpu"});
  EXPECT_EQ(branch.status, 0) << branch.err;
}

TEST_F(Cuda, ARunOfTheSecondOfTwoGpusOpensWhereThereIsOne) {
  const auto outcome = [&](int gpus, std::vector<std::string> words) {
    words.insert(words.begin(), {"train", project});
    return with_gpus(gpus, words);
  };
  const Outcome two = outcome(2, {"--run", "second", "--max-steps", "3", "--device", "cuda:1"});
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(with_gpus(1, {"eval", project, "second"}).status, 0);
  const Outcome one = outcome(1, {"--resume", "second", "--set", "max_steps=5"});
  EXPECT_EQ(one.status, 1);
  EXPECT_NE(one.err.find("this machine has 1 CUDA device"), std::string::npos) << one.err;
  EXPECT_EQ(outcome(2, {"--resume", "second", "--set", "max_steps=5", "--device", "cuda:1"}).status, 0)
      << "a device that it has already is no change";
  EXPECT_EQ(outcome(2, {"--resume", "second", "--set", "max_steps=7", "--device", "cpu"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
