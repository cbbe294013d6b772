// A model as PyTorch source on the command line: written, edited, taken back, trained, exported with its weights.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/journeys/tenon_process.h"
#include "tests/messages.h"

namespace tenon::journeys {
namespace {

using testing_words::has;

struct Code : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon", source = folder / "model.py";
  void SetUp() override { ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0); }
  void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  std::string replaced(std::string text, const std::string& was, const std::string& now) {
    const size_t at = text.find(was);
    EXPECT_NE(at, text.npos) << was << " is not in\n" << text;
    return at == text.npos ? text : text.replace(at, was.size(), now);
  }
};

TEST_F(Code, is_written_edited_taken_back_and_trained) {
  Outcome o = tenon({"code", project, "-o", source});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(tenon({"code", project}).out, slurp(source));
  EXPECT_EQ(tenon({"code", project, "--check", source}).status, 0);

  const std::string text = slurp(source);
  const std::string width = text.substr(text.find("nn.Linear(2, ") + 13,
                                        text.find(')', text.find("nn.Linear(2, ")) - text.find("nn.Linear(2, ") - 13);
  std::string wider = replaced(text, "nn.Linear(2, " + width, "nn.Linear(2, 17");
  wider = replaced(wider, "nn.Linear(" + width + ",", "nn.Linear(17,");
  write(source, wider);
  o = tenon({"code", project, "--check", source});
  EXPECT_EQ(o.status, 1);
  EXPECT_TRUE(has(o.out, "out_features")) << o.out;
  o = tenon({"code", project, "--take", source});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(tenon({"code", project}).out, wider);
  ASSERT_EQ(tenon({"train", project, "--epochs", "1"}).status, 0);
  // A run keeps the model it was trained with.
  EXPECT_EQ(tenon({"code", project, "spirals-01"}).out, wider);

  const std::string other = folder / "q.tenon";
  o = tenon({"new", other, "--from", source});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(tenon({"code", other, "--check", source}).status, 0);
}

TEST_F(Code, that_is_not_read_is_told_with_file_and_line_and_changes_nothing) {
  const std::string before = tenon({"code", project}).out;
  write(source, replaced(before, "return x", "while True: pass"));
  const Outcome o = tenon({"code", project, "--take", source});
  EXPECT_EQ(o.status, 1);
  EXPECT_TRUE(has(o.err, "model.py: line ")) << o.err;
  EXPECT_TRUE(has(o.err, "'while' is not in the part of Python that is read")) << o.err;
  EXPECT_EQ(tenon({"code", project}).out, before);
}

TEST_F(Code, is_exported_with_its_weights) {
  ASSERT_EQ(tenon({"train", project, "--epochs", "1"}).status, 0);
  const Outcome o = tenon({"export", project, "spirals-01", "--format", "python", "-o", source, "--verify"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "model.pt")) << o.out;
  EXPECT_TRUE(has(slurp(source), "model.load_state_dict(torch.load(\"model.pt\"))")) << slurp(source);
  EXPECT_EQ(tenon({"code", project, "--check", source}).status, 0);
  EXPECT_TRUE(has(tenon({"inspect", folder / "model.pt"}).out, ".weight"));
}

}  // namespace
}  // namespace tenon::journeys
