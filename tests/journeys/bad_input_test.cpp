// Whatever is wrong is named, the exit status says which side it was on, and nothing is lost.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "projects/project.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

void expect_says(const Outcome& o, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(o.status, status) << o.out << o.err;
  for (const std::string& part : parts)
    EXPECT_NE(o.err.find(part), std::string::npos) << "\"" << part << "\" is not in: " << o.err;
}

struct BadInput : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override { ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
};

TEST_F(BadInput, words) {
  expect_says(tenon({"tran", project}), 2, {"tran", "train"});
  expect_says(tenon({"train"}), 2, {"usage"});
  expect_says(tenon({"train", project, "--epoch", "3"}), 2, {"--epoch", "--epochs"});
  expect_says(tenon({"train", project, "--epochs", "many"}), 2, {"--epochs", "many"});
  expect_says(tenon({"train", project, "--epochs"}), 2, {"--epochs"});
  expect_says(tenon({"train", project, "--epochs", "0"}), 2, {"at least 1"});
  expect_says(tenon({"memory"}), 2, {"memory record"});
  expect_says(tenon({"new", folder / "x.tenon", "--template", "fashion-cn"}), 2, {"fashion-cnn"});
  expect_says(tenon({"digest", project, "run"}), 2, {"--step"});
  EXPECT_EQ(tenon({"--help"}).status, 0);
  EXPECT_EQ(tenon({"train", "--help"}).status, 0);
  EXPECT_EQ(tenon({"help", "train"}).out, tenon({"train", "--help"}).out);
  EXPECT_EQ(tenon({"help", "trace", "steps"}).out, tenon({"trace", "steps", "--help"}).out);
  EXPECT_EQ(tenon({"help", "memory"}).out, tenon({"memory", "--help"}).out);
  EXPECT_NE(tenon({"help", "trian"}).status, 0);
}

TEST_F(BadInput, recipe) {
  expect_says(tenon({"train", project, "--set", "optimizer.lrr=1"}), 2, {"optimizer.lrr", "optimizer.lr"});
  expect_says(tenon({"recipe", project, "--as", "nobody"}), 2, {"nobody"});
  expect_says(tenon({"recipe", project, "--as-template", "spiral"}), 2, {"spiral"});
  expect_says(tenon({"train", project, "--set", "optimizer.lr=fast"}), 2, {"optimizer.lr", "fast"});
  expect_says(tenon({"train", project, "--set", "optimizer.lr"}), 2, {"KEY=VALUE"});
  expect_says(tenon({"train", project, "--set", "data.batch_size=0"}), 2, {"data.batch_size", "0"});
  expect_says(tenon({"train", project, "--set", "data.dataset=nothing"}), 2, {"nothing"});
  EXPECT_TRUE(tenon({"runs", project, "--json"}).json().empty()) << "no run was begun";
}

TEST_F(BadInput, a_batch_larger_than_the_data_or_the_memory) {
  const Outcome o = tenon({"train", project, "--set", "data.batch_size=4000000000000"});
  EXPECT_TRUE(o.status == 1 || o.status == 2) << o.status << o.err;
  EXPECT_NE(o.err.find("batch"), std::string::npos) << o.err;
}

TEST_F(BadInput, a_model_whose_shapes_do_not_fit) {
  {
    auto p = projects::Project::open(project);
    ModelSpec m = p->model();
    for (LayerSpec& l : m.layers)
      if (l.type == "Linear") {
        l.attrs.push_back({"in_features", int64_t{77}});
        break;
      }
    p->set_model(m);
  }
  const Outcome o = tenon({"train", project});
  EXPECT_TRUE(o.status == 1 || o.status == 2) << o.status;
  EXPECT_NE(o.err.find("77"), std::string::npos) << o.err;
}

TEST_F(BadInput, project_files) {
  expect_says(tenon({"train", folder / "none.tenon"}), 1, {"none.tenon", "No such file"});
  write(
      "text.tenon",
      "I am not a project at all, but a text that is long enough to hold a header, were it one.......................");
  expect_says(tenon({"train", folder / "text.tenon"}), 1, {"text.tenon", "not a Tenon project"});
  expect_says(tenon({"runs", folder / "text.tenon"}), 1, {"not a Tenon project"});
  expect_says(tenon({"new", project, "--template", "spirals"}), 1, {"already exists"});
  std::filesystem::copy_file(project, folder / "newer.tenon");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder / "newer.tenon").c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  expect_says(tenon({"train", folder / "newer.tenon"}), 1, {"newer Tenon", "99"});
  const auto size = std::filesystem::file_size(project);
  std::filesystem::copy_file(project, folder / "cut.tenon");
  std::filesystem::resize_file(folder / "cut.tenon", size / 2);
  expect_says(tenon({"train", folder / "cut.tenon"}), 1, {"cut.tenon", "damaged"});
  expect_says(tenon({"train", folder.path()}), 1, {"folder"});
}

/// As another user where we are root: root may write anything.
Outcome as_nobody(const std::string& folder, const std::vector<std::string>& words) {
  if (geteuid() != 0) return tenon(words);
  std::vector<std::string> all = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                  std::string(TENON_BINARY_DIR) + "/bin/tenon"};
  all.insert(all.end(), words.begin(), words.end());
  (void)folder;
  return run(all);
}

TEST_F(BadInput, a_read_only_project) {
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "10"}).status, 0);
  chmod(project.c_str(), 0444);
  chmod(folder.path().c_str(), 0555);
  const Outcome can_run = as_nobody(folder.path(), {"--version"});
  if (can_run.status != 0) {
    chmod(folder.path().c_str(), 0755);
    GTEST_SKIP() << "the program cannot be run as another user here: " << can_run.err;
  }
  expect_says(as_nobody(folder.path(), {"train", project}), 1, {"read-only"});
  EXPECT_EQ(as_nobody(folder.path(), {"runs", project}).status, 0);
  EXPECT_EQ(as_nobody(folder.path(), {"digest", project, "r", "--step", "7"}).status, 0)
      << "looking needs no right to write";
  chmod(folder.path().c_str(), 0755);
}

TEST_F(BadInput, data_files) {
  write("train-images-idx3-ubyte", "short");
  Outcome o = tenon({"new", folder / "x.tenon", "--template", "fashion-cnn", "--data", folder / "nowhere"});
  expect_says(o, 1, {"nowhere"});
  o = tenon({"new", folder / "x.tenon", "--template", "fashion-cnn", "--data", folder.path()});
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("train-images-idx3-ubyte"), std::string::npos) << o.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "x.tenon"));
}

TEST_F(BadInput, truncated_data_files) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const std::string data = folder / "data";
  std::filesystem::create_directory(data);
  for (const char* f : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                        "t10k-labels-idx1-ubyte.gz"})
    std::filesystem::copy_file(std::string("/usr/share/datasets/fashion-mnist/") + f, data + "/" + f);
  EXPECT_EQ(tenon({"new", folder / "good.tenon", "--template", "fashion-mlp", "--data", data}).status, 0);
  std::filesystem::resize_file(data + "/t10k-images-idx3-ubyte.gz", 100000);
  expect_says(tenon({"new", folder / "x.tenon", "--template", "fashion-mlp", "--data", data}), 1,
              {"t10k-images-idx3-ubyte.gz"});
  expect_says(tenon({"train", folder / "good.tenon"}), 1, {"t10k-images-idx3-ubyte.gz"});
  std::filesystem::remove(data + "/t10k-images-idx3-ubyte.gz");
  expect_says(tenon({"train", folder / "good.tenon"}), 1, {"t10k-images-idx3-ubyte"});
}

TEST_F(BadInput, output_that_cannot_be_written) {
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "10"}).status, 0);
  expect_says(tenon({"profile", project, "-o", "/no/such/folder/t.json"}), 1, {"/no/such/folder/t.json"});
  expect_says(tenon({"memory", "record", project, "-o", "/no/such/folder/s.pickle"}), 1, {"/no/such/folder/s.pickle"});
  expect_says(tenon({"memory", "info", project}), 1, {project});
  expect_says(tenon({"memory", "info", folder / "none"}), 1, {"none"});
}

}  // namespace
}  // namespace tenon::journeys
