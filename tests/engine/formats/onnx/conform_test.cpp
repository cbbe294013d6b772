#include "engine/formats/onnx/conform.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/onnx/model.h"
#include "engine/ops/create.h"

namespace tenon::formats {
namespace {

namespace fs = std::filesystem;
using Outcome = ConformCase::Outcome;

// The ONNX project's own cases, where they are installed (Debian: libonnx-testdata).
TEST(OnnxConform, TheProjectsCases) {
  const char* given = std::getenv("TENON_ONNX_TESTDATA");
  const std::string folder = given ? given : "/usr/share/libonnx-testdata/data/node";
  if (!fs::exists(folder)) GTEST_SKIP() << "the ONNX project's cases are not installed (Debian: libonnx-testdata)";
  std::map<Outcome, int> counts;
  const std::vector<ConformCase> cases = run_conform(folder, [&](const ConformCase& c) {
    ++counts[c.outcome];
    EXPECT_FALSE(c.wrong) << c.name << ": " << c.detail;
    EXPECT_NE(c.outcome, Outcome::fail) << c.name << ": " << c.detail;
    EXPECT_EQ(c.detail.empty(), c.outcome == Outcome::pass) << c.name;
  });
  EXPECT_GE(cases.size(), 900u);
  EXPECT_GE(counts[Outcome::pass], static_cast<int>(0.9 * static_cast<double>(cases.size())));
}

// Models that PyTorch wrote long ago, and a few graphs of several nodes.
TEST(OnnxConform, OlderModels) {
  for (const char* set : {"pytorch-converted", "pytorch-operator", "simple"}) {
    const std::string folder = std::string("/usr/share/libonnx-testdata/data/") + set;
    if (!fs::exists(folder)) GTEST_SKIP() << "the ONNX project's cases are not installed (Debian: libonnx-testdata)";
    run_conform(folder, [&](const ConformCase& c) {
      EXPECT_NE(c.outcome, Outcome::fail) << set << " " << c.name << ": " << c.detail;
    });
  }
}

/// A folder of cases of this test's own.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("tenon_conform_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }

  /// y = Op(x) with an expected y.
  void add(const std::string& name, const std::string& op, const Tensor& x, const Tensor& y) {
    OnnxModel m;
    m.graph.inputs = {{"x", true, x.dtype(), false, {}}};
    m.graph.outputs = {{"y", true, y.dtype(), false, {}}};
    m.graph.nodes = {{"", op, "", {"x"}, {"y"}, {}}};
    fs::create_directories(path / name / "test_data_set_0");
    save_onnx((path / name / "model.onnx").string(), m);
    save_onnx_tensor((path / name / "test_data_set_0/input_0.pb").string(), "x", x);
    save_onnx_tensor((path / name / "test_data_set_0/output_0.pb").string(), "y", y);
  }
};

TEST(OnnxConform, TellsRightFromWrongFromUnsupported) {
  Folder f;
  const Tensor x = full({2, 2}, -3), y = full({2, 2}, 3);
  f.add("a_right", "Abs", x, y);
  f.add("b_wrong_value", "Neg", x, full({2, 2}, 3.01));
  f.add("c_wrong_size", "Abs", x, full({4}, 3));
  f.add("d_wrong_type", "Abs", x, full({2, 2}, 3, DType::f64));
  f.add("e_unknown", "NoSuchOperator", x, y);
  f.add("f_within_tolerance", "Abs", x, full({2, 2}, 3.001));
  f.add("g_damaged", "Abs", x, y);
  write_file((f.path / "g_damaged/model.onnx").string(), "no model");
  f.add("h_its_own_tolerance", "Abs", x, full({2, 2}, 3.2));
  write_file((f.path / "h_its_own_tolerance/data.json").string(), R"({"rtol": 0.1, "atol": 0})");
  std::vector<std::string> seen;
  const std::vector<ConformCase> cases =
      run_conform(f.path.string(), [&](const ConformCase& c) { seen.push_back(c.name); });
  ASSERT_EQ(cases.size(), 8u);
  EXPECT_EQ(seen.back(), "h_its_own_tolerance");
  const Outcome expected[] = {Outcome::pass,        Outcome::fail, Outcome::fail, Outcome::fail,
                              Outcome::unsupported, Outcome::pass, Outcome::fail, Outcome::pass};
  const bool wrong[] = {false, true, true, true, false, false, false, false};
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases[i].outcome, expected[i]) << cases[i].name << ": " << cases[i].detail;
    EXPECT_EQ(cases[i].wrong, wrong[i]) << cases[i].name;
  }
  EXPECT_EQ(cases[0].operators, std::vector<std::string>{"Abs"});
  EXPECT_NE(cases[4].detail.find("NoSuchOperator"), std::string::npos);
  EXPECT_THROW(run_conform((f.path / "a_right/test_data_set_0").string()), Error);
}

}  // namespace
}  // namespace tenon::formats
