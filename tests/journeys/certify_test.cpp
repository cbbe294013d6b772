// An exported model is certified, checked, and checked again by a program that is not Tenon.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct CertifyJourney : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon", model = folder / "m.onnx", checker = folder / "check.py",
              key = folder / "key";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "30"}).status, 0);
    ASSERT_EQ(tenon({"export", project, "r", "--format", "onnx", "-o", model}).status, 0);
    std::ofstream(key) << "a secret";
    const Outcome o = tenon({"certify", model, project, "r", "--key", key});
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_NE(o.out.find("from the trained model"), std::string::npos) << o.out;
  }
  void damage() {
    std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-20, std::ios::end);
    const char c = static_cast<char>(file.peek() ^ 1);
    file.seekp(-20, std::ios::end);
    file.put(c);
  }
};

TEST_F(CertifyJourney, a_file_is_verified_until_a_byte_of_it_changes) {
  const Outcome good = tenon({"verify", model, "--key", key});
  EXPECT_EQ(good.status, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("is what was certified: run r of p.tenon, step 30"), std::string::npos) << good.out;
  damage();
  const Outcome bad = tenon({"verify", model, "--json"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_FALSE(bad.json().at(0).at("ok").get<bool>());
  EXPECT_EQ(tenon({"verify"}).status, 2);
  EXPECT_EQ(tenon({"verify", folder / "none.onnx"}).status, 1);
}

TEST_F(CertifyJourney, a_file_of_another_state_is_not_certified) {
  ASSERT_EQ(tenon({"train", project, "--resume", "r", "--set", "max_steps=60"}).status, 0);
  const Outcome other = tenon({"certify", model, project, "r"});
  EXPECT_EQ(other.status, 2) << other.out;
  EXPECT_NE(other.err.find("is no export of step 60 of run r: it says of itself \"run r of p.tenon, step 30\""),
            std::string::npos)
      << other.err;
  EXPECT_EQ(tenon({"certify", model, project, "r", "--checkpoint", "30"}).status, 0);
}

TEST_F(CertifyJourney, a_program_of_torch_export_too) {
  const std::string program = folder / "m.pt2";
  ASSERT_EQ(tenon({"export", project, "r", "--format", "pt2", "-o", program}).status, 0);
  const Outcome o = tenon({"certify", program, project, "r"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(tenon({"verify", program}).status, 0);
  EXPECT_EQ(tenon({"audit", project, "r", "--against", program}).status, 0);
  ASSERT_EQ(tenon({"verify", "--checker", checker}).status, 0);
  const std::string with = python().empty() ? "python3" : python();
  const bool torch = run({with, "-c", "import numpy, torch.export; torch.export.load"}).status == 0;
  const Outcome checked = run({with, checker, program});
  EXPECT_EQ(checked.status, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find(torch ? "ok      canaries: 8 samples" : "canaries: not run"), std::string::npos)
      << checked.out;
}

TEST_F(CertifyJourney, the_checker_needs_python_alone) {
  ASSERT_EQ(tenon({"verify", "--checker", checker}).status, 0);
  const std::string with = python().empty() ? "python3" : python();
  const Outcome good = run({with, checker, model, "--key", key});
  EXPECT_EQ(good.status, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("ok      bytes"), std::string::npos) << good.out;
  if (!python().empty()) {
    EXPECT_NE(good.out.find("ok      canaries: 8 samples"), std::string::npos) << good.out;
  }
  std::ofstream(key) << "another";
  EXPECT_EQ(run({with, checker, model, "--key", key}).status, 1);
  damage();
  const Outcome bad = run({with, checker, model});
  EXPECT_NE(bad.status, 0);
  EXPECT_NE(bad.out.find("FAILED  bytes"), std::string::npos) << bad.out << bad.err;
}

}  // namespace
}  // namespace tenon::journeys
