// What the checks of a model file say of files that PyTorch wrote.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/temporary_folder.h"
#include "tests/peers/torch.h"
#include "tracing/checks/model_file_checks.h"

namespace tenon::peers {
namespace {

std::vector<std::string> said_of_file(const std::string& path, const std::string& check) {
  std::vector<std::string> about;
  for (const tracing::CheckResult& r :
       tracing::check_model_file(tracing::CheckedModelFile(formats::ModelFile::open(path), {})))
    for (const tracing::Complaint& c : r.complaints)
      if (r.name == check) about.push_back(c.about);
  std::sort(about.begin(), about.end());
  return about;
}

TEST(CheckedFiles, a_program_in_training_mode_and_a_layer_that_nobody_trains_are_named) {
  TENON_NEEDS_TORCH();
  const TemporaryFolder folder("tenon-checked");
  run_torch("checked_files.py", {{"folder", folder / ""}});
  const std::vector<std::string> none, layers = {"1", "3"}, optimizer = {"optimizer"};
  for (const char* form : {".script.pt", ".trace.pt"}) {
    EXPECT_EQ(said_of_file(folder / (std::string("training") + form), "weights.training"), layers) << form;
    EXPECT_EQ(said_of_file(folder / (std::string("evaluation") + form), "weights.training"), none) << form;
  }
  EXPECT_EQ(said_of_file(folder / "some.pt", "weights.optimizer"), optimizer);
  EXPECT_EQ(said_of_file(folder / "all.pt", "weights.optimizer"), none);
}

}  // namespace
}  // namespace tenon::peers
