// A checkpoint looked at on the command line: its tensors, the statistics of one and of all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "core/file.h"
#include "engine/formats/safetensors.h"
#include "tests/journeys/tenon_process.h"
#include "tests/torchscript.h"

namespace tenon::journeys {
namespace {

TEST(ModelFilesInspected, one_tensor_and_all_of_them) {
  Folder dir;
  Tensor weight = empty({2, 3}), odd = empty({4});
  for (int i = 0; i < 6; ++i) weight.data<float>()[i] = static_cast<float>(i);
  for (int i = 0; i < 4; ++i) odd.data<float>()[i] = i == 1 ? NAN : 0;
  const std::string file = dir / "m.safetensors";
  formats::save_safetensors(file, {{"fc.weight", weight}, {"odd", odd}}, {{"made", "by hand"}});
  const Outcome listed = tenon({"inspect", file, "--json"});
  ASSERT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(listed.json().at(0).at("tensors").size(), 2u);
  EXPECT_EQ(listed.json().at(0).at("metadata").at("made"), "by hand");
  const Outcome one = tenon({"inspect", file, "--tensor", "fc.weight", "--json"});
  ASSERT_EQ(one.status, 0) << one.err;
  const nlohmann::json j = one.json().at(0);
  EXPECT_EQ(j.at("shape"), (nlohmann::json{2, 3}));
  EXPECT_EQ(j.at("min"), 0);
  EXPECT_EQ(j.at("max"), 5);
  EXPECT_EQ(j.at("mean"), 2.5);
  EXPECT_EQ(j.at("zeros"), 1);
  EXPECT_EQ(j.at("bins").size(), 64u);
  const Outcome all = tenon({"inspect", file, "--stats", "--json"});
  ASSERT_EQ(all.json().size(), 2u) << all.err;
  for (const auto& row : all.json()) EXPECT_EQ(row.at("nan"), row.at("name") == "odd" ? 1 : 0);
  const Outcome words = tenon({"inspect", file, "--stats"});
  EXPECT_NE(words.out.find("fc.weight"), std::string::npos) << words.out;
  EXPECT_NE(words.out.find("STD"), std::string::npos) << words.out;
  EXPECT_EQ(tenon({"inspect", file, "--stats", "--threads", "1", "--json"}).out, all.out);
  const Outcome wrong = tenon({"inspect", file, "--tensor", "fc.wieght"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("fc.weight"), std::string::npos) << wrong.err;
  EXPECT_EQ(tenon({"inspect", file, "--tensor", "odd", "--stats"}).status, 2);
  std::ofstream(dir / "a.json") << "{}";
  const Outcome none = tenon({"inspect", dir / "a.json", "--stats"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("a JSON text"), std::string::npos) << none.err;
}

TEST(ModelFilesInspected, the_code_of_a_torchscript_program_is_listed_and_never_run) {
  Folder dir;
  const std::string file = dir / "net.pt";
  write_file(file, torchscript_program());
  const Outcome told = tenon({"inspect", file});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find("2 listings: --code prints it; shown, never run"), std::string::npos) << told.out;
  const Outcome code = tenon({"inspect", file, "--code"});
  ASSERT_EQ(code.status, 0) << code.err;
  EXPECT_TRUE(code.out.starts_with("# __torch__.py\nclass Net(Module):\n")) << code.out;
  EXPECT_NE(code.out.find("\n\n# __torch__/block.py\n"), std::string::npos) << code.out;
  EXPECT_EQ(code.out.find('\x1b'), std::string::npos) << "nothing in it moves the terminal's cursor";
  const auto json = tenon({"inspect", file, "--code", "--json"}).json();
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].at("source"), "__torch__.py");
  EXPECT_EQ(json[0].at("text").get<std::string>().size(), json[0].at("bytes").get<size_t>());
  EXPECT_EQ(tenon({"inspect", file, "--code", "--stats"}).status, 2);
  const std::string weights = dir / "w.safetensors";
  formats::save_safetensors(weights, {{"w", empty({1})}}, {});
  const Outcome none = tenon({"inspect", weights, "--code"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("brings no code"), std::string::npos) << none.err;
}

/// Whether a process has this file mapped.
bool is_mapped_somewhere(const std::string& file) {
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc", gone)) try {
      if (slurp(process.path() / "maps").find(file) != std::string::npos) return true;
    } catch (const std::exception&) {
      continue;  // it has ended meanwhile
    }
  return false;
}

TEST(ModelFilesInspected, one_that_is_cut_short_meanwhile_is_told_of) {
  Folder dir;
  const std::string file = dir / "m.safetensors";
  constexpr uint64_t kBytes = uint64_t{3} << 29;  // of zeros that take no room on the disk
  const std::string header = "{\"w\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(kBytes) +
                             "],\"data_offsets\":[0," + std::to_string(kBytes) + "]}}";
  const uint64_t length = header.size();
  std::ofstream(file, std::ios::binary) << std::string(reinterpret_cast<const char*>(&length), 8) << header;
  std::filesystem::resize_file(file, 8 + length + kBytes);
  auto reading = std::async(std::launch::async, [&] { return tenon({"inspect", file, "--stats"}); });
  while (!is_mapped_somewhere(file) && reading.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
    continue;
  std::filesystem::resize_file(file, 4096);
  const Outcome read = reading.get();
  EXPECT_EQ(read.status, 1) << read.out;
  EXPECT_NE(read.err.find(file + " was cut short by another program"), std::string::npos) << read.err;
}

}  // namespace
}  // namespace tenon::journeys
