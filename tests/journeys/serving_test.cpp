// Models as servers take them: a repository of Triton and an archive of TorchServe, read as those servers read them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Serving : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project(), "--template", "spirals", "--set", "eval_every=0"}).status, 0);
    ASSERT_EQ(tenon({"train", project(), "--run", "r", "--max-steps", "40"}).status, 0);
  }
  std::string project() { return folder_ / "p.tenon"; }
  Outcome exported(const std::string& format, const std::string& path) {
    return tenon({"export", project(), "r", "--format", format, "-o", path, "--verify", "--json"});
  }
  Folder folder_;
};

TEST_F(Serving, a_repository_of_triton_grows_by_versions) {
  const std::string repository = folder_ / "models";
  const Outcome first = exported("triton", repository);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.json().at(0).at("version"), 1);
  const Outcome second = exported("triton", repository);
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.json().at(0).at("version"), 2);
  std::vector<std::string> models;
  for (const auto& entry : std::filesystem::directory_iterator(repository))
    models.push_back(entry.path().filename().string());
  ASSERT_EQ(models, std::vector<std::string>{"spirals"}) << "nothing else lies in the repository";
  const std::string model = repository + "/spirals", config = text_of(model + "/config.pbtxt");
  for (const char* line :
       {"name: \"spirals\"", "backend: \"onnxruntime\"", "max_batch_size: 64", "data_type: TYPE_FP32", "dims: [ 2 ]"})
    EXPECT_NE(config.find(line), std::string::npos) << line << "\n" << config;
  EXPECT_NE(config.find("label_filename: \"labels.txt\""), std::string::npos) << config;
  EXPECT_EQ(text_of(model + "/labels.txt"), "first arm\nsecond arm\n");
  for (const char* version : {"/1/model.onnx", "/2/model.onnx"})
    EXPECT_EQ(tenon({"audit", project(), "r", "--against", model + version}).status, 0) << version;
  for (const auto& entry : std::filesystem::directory_iterator(model))
    EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
}

// What TorchServe does with an archive: it unpacks it, imports the handler that the manifest names, and calls it with
// requests and a context.
constexpr const char* kServe = R"py(
import importlib.util, io, json, sys, types, zipfile, numpy
archive, folder, given, expected = sys.argv[1:5]
zipfile.ZipFile(archive).extractall(folder)
manifest = json.load(open(folder + "/MAR-INF/MANIFEST.json"))
spec = importlib.util.spec_from_file_location("handler", folder + "/" + manifest["model"]["handler"])
handler = importlib.util.module_from_spec(spec)
spec.loader.exec_module(handler)
context = types.SimpleNamespace(system_properties={"model_dir": folder}, manifest=manifest)
x, y = numpy.load(given), numpy.load(expected)
packed = io.BytesIO()
numpy.save(packed, x[3:])
requests = [{"body": json.dumps({"instances": x[:3].tolist()}).encode()}, {"data": packed.getvalue()}]
answers = handler.handle(requests, context)
assert [len(a) for a in answers] == [3, len(x) - 3], answers
shares = numpy.array([[row["first arm"], row["second arm"]] for a in answers for row in a])
e = numpy.exp(y - y.max(1, keepdims=True))
print(float(numpy.abs(shares - e / e.sum(1, keepdims=True)).max()))
)py";

TEST_F(Serving, an_archive_of_torchserve_answers_requests) {
  const std::string archive = folder_ / "m.mar";
  const Outcome made = exported("torchserve", archive);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(made.json().at(0).at("verified").get<bool>());
  std::string judge;
  for (const std::string& p : {std::string("/usr/bin/python3"), python()})
    if (!p.empty() && run({p, "-c", "import torch, numpy; torch.inference_mode"}).status == 0) judge = p;
  if (judge.empty()) GTEST_SKIP() << "PyTorch is not installed: nothing can answer for the server";
  ASSERT_EQ(tenon({"export", project(), "r", "--format", "onnx", "-o", folder_ / "m.onnx"}).status, 0);
  const std::string x = folder_ / "x.npy";
  ASSERT_EQ(run({judge, "-c",
                 "import numpy, sys; numpy.save(sys.argv[1], "
                 "numpy.random.default_rng(1).standard_normal((8, 2)).astype('float32'))",
                 x})
                .status,
            0);
  ASSERT_EQ(tenon({"exec", folder_ / "m.onnx", "--input", x, "--output", folder_ / "out"}).status, 0);
  std::ofstream(folder_ / "serve.py") << kServe;
  const Outcome served =
      run({judge, folder_ / "serve.py", archive, folder_ / "unpacked", x, folder_ / "out/output_0.npy"});
  ASSERT_EQ(served.status, 0) << served.err;
  EXPECT_LE(std::stod(served.out), 1e-5);
}

TEST_F(Serving, what_cannot_be_written_is_said) {
  std::ofstream(folder_ / "file") << "no folder";
  const Outcome o = exported("triton", folder_ / "file");
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("file"), std::string::npos);
  EXPECT_EQ(exported("torchserve", "/no/such/folder/m.mar").status, 1);
}

}  // namespace
}  // namespace tenon::journeys
