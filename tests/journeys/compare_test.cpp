// tenon diff: two files of any one kind on the command line.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/safetensors.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

Tensor ramp(const Shape& shape, float step) {
  Tensor t = empty(shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i) * step;
  return t;
}

TEST(Diff, models_by_content_whatever_their_names) {
  Folder dir;
  const std::string a = dir / "a.bin", b = dir / "b.weights";
  formats::save_safetensors(a, {{"fc.weight", ramp({3, 4}, 1)}, {"fc.bias", ramp({3}, 1)}});
  formats::save_safetensors(b, {{"fc.weight", ramp({3, 4}, 2)}, {"fc.bias", ramp({3}, 1)}, {"new", ramp({2}, 1)}});
  const Outcome o = tenon({"diff", a, b, "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const nlohmann::json j = o.json().at(0);
  EXPECT_EQ(j.at("changed"), 1);
  EXPECT_EQ(j.at("same"), 1);
  EXPECT_EQ(j.at("only_b"), 1);
  EXPECT_EQ(j.at("weights").at(0).at("name"), "fc.weight");
  EXPECT_EQ(j.at("weights").at(0).at("largest"), 11);
  EXPECT_EQ(j.at("weights").at(0).at("at"), "[2, 3]");
  EXPECT_EQ(j.at("tensors").at(0).at("what"), "only in B");
  EXPECT_EQ(tenon({"diff", a, b, "--json", "--threads", "1"}).out, o.out);
  const Outcome words = tenon({"diff", a, b});
  EXPECT_NE(words.out.find("COSINE"), std::string::npos) << words.out;
  EXPECT_EQ(tenon({"diff", a, b, "--folded"}).status, 2);
}

TEST(Diff, traces_add_up_and_fold_and_two_kinds_are_refused) {
  Folder dir;
  auto trace = [&](const char* name, int us) {
    const std::string path = dir / name;
    std::ofstream(path)
        << R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 0, "dur": )" << us
        << "}]}";
    return path;
  };
  const std::string a = trace("a.json", 100), b = trace("b.json", 150), m = dir / "m.safetensors";
  const Outcome o = tenon({"diff", a, b, "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const nlohmann::json j = o.json().at(0);
  EXPECT_EQ(j.at("change_ns"), 50'000);
  EXPECT_EQ(j.at("stacks").at(0).at("change"), 50'000);
  const Outcome folded = tenon({"diff", a, b, "--folded"});
  EXPECT_NE(folded.out.find(";mm 100000 150000\n"), std::string::npos) << folded.out;
  formats::save_safetensors(m, {{"w", ramp({2}, 1)}});
  const Outcome mixed = tenon({"diff", a, m});
  EXPECT_EQ(mixed.status, 1);
  EXPECT_NE(mixed.err.find("A is a trace and B is a model"), std::string::npos) << mixed.err;
  const Outcome gone = tenon({"diff", a, dir / "none.json"});
  EXPECT_EQ(gone.status, 1);
  EXPECT_NE(gone.err.find("none.json"), std::string::npos) << gone.err;
  EXPECT_EQ(tenon({"diff", a}).status, 2);
}

TEST(Diff, checkpoints_of_a_project_by_run_and_step) {
  Folder dir;
  const std::string p = dir / "p.tenon";
  ASSERT_EQ(tenon({"new", p, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", p, "--run", "one", "--max-steps", "4"}).status, 0);
  const Outcome o = tenon({"diff", p + "@one@2", p + "@one@4", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_GT(o.json().at(0).at("changed"), 0);
  const Outcome same = tenon({"diff", p + "@one", p, "--json"});
  ASSERT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.json().at(0).at("changed"), 0) << "the last state of the last run, however it is called";
  EXPECT_EQ(tenon({"diff", p + "@two", p}).status, 2) << "there is no such run";
  EXPECT_EQ(tenon({"diff", p + "@one@x", p}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
