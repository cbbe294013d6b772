#include "tests/projects/project_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tenon::projects::testing_files {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}
TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
  std::filesystem::remove_all(path_, ignored);
}
std::vector<std::string> TempDir::names() const {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(path_)) out.push_back(e.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

ModelSpec small_model() {
  ModelSpec m;
  m.name = "small";
  m.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{2}}}, 0, 0},
              {"fc", "Linear", {{"out_features", int64_t{4}}, {"bias", true}}, 120, 0},
              {"output", "Output", {}, 240, 0}};
  m.wires = {{"input", 0, "fc", 0}, {"fc", 0, "output", 0}};
  return m;
}

nlohmann::json small_recipe() { return {{"seed", 1}, {"optimizer", {{"name", "SGD"}, {"lr", 0.1}}}}; }

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Error no_space_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::no_space) << e.what();
    return e;
  }
  ADD_FAILURE() << "it found room";
  return Error("");
}

}  // namespace tenon::projects::testing_files
