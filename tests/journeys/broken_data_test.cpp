// Data as they come from people, each broken in its own way: every fault is named with its file and place, by the
// command that looks at data, and nothing is ended by any of them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/file.h"
#include "engine/data/image.h"
#include "engine/data/wav.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "tests/journeys/tenon_process.h"
#include "tests/messages.h"

namespace tenon::journeys {
namespace {

using testing_words::has;

/// One kind of broken data: how it is made, and what has to be said of it.
struct Broken {
  const char* name;
  std::function<void(const std::string& path)> make;
  std::vector<std::string> said;
};

std::vector<std::string> rows(int n) {
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i)
    all.push_back(std::to_string(i) + "," + std::to_string(i * 7 % 13) + "," + (i % 2 ? "odd" : "even"));
  return all;
}
void write_rows(const std::string& path, const std::vector<std::string>& all, const char* head = "a,b,kind") {
  std::ofstream out(path);
  out << head << "\n";
  for (const std::string& row : all) out << row << "\n";
}
void write_table_with(const std::string& path, size_t row, const char* text) {
  std::vector<std::string> all = rows(60);
  all[row] = text;
  write_rows(path, all);
}
void write_image(const std::string& path, int which) {
  data::Image image{12, 12, 3, std::vector<uint8_t>(12 * 12 * 3)};
  for (size_t k = 0; k < image.pixels.size(); ++k) image.pixels[k] = static_cast<uint8_t>(k * (which + 3) + 5 * which);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, data::png_bytes(image));
}
void write_images(const std::string& folder, const std::vector<std::string>& classes) {
  int which = 0;
  for (const std::string& c : classes)
    for (int i = 0; i < 10; ++i) write_image(folder + "/" + c + "/" + std::to_string(i) + ".png", which++);
}
void write_arrays(const std::string& folder, Tensor x, int64_t targets) {
  std::filesystem::create_directories(folder);
  Tensor y = zeros({targets}, DType::i64);
  for (int64_t i = 0; i < targets; ++i) y.data<int64_t>()[i] = i % 3;
  formats::save_npy(folder + "/x.npy", x);
  formats::save_npy(folder + "/y.npy", y);
}
Tensor numbers() {
  Tensor x = zeros({40, 8});
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i % 31) / 7;
  return x;
}
void cut(const std::string& path, size_t bytes) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - bytes);
}

std::vector<Broken> all_broken() {
  std::vector<Broken> all;
  const auto add = [&](const char* name, auto make, std::vector<std::string> said) {
    all.push_back({name, make, std::move(said)});
  };
  add("label.csv", [](const std::string& p) { write_table_with(p, 5, "3,4,"); },
      {"1 of 60 rows have no kind", "line 7", "data.unlabelled"});
  add("nan.csv", [](const std::string& p) { write_table_with(p, 7, "nan,4,odd"); },
      {"a: 1 of 60 cells are no finite number", "nan.csv, line 9"});
  add("ragged.csv", [](const std::string& p) { write_table_with(p, 11, "1,2,odd,9"); },
      {"ragged.csv, line 13", "4 fields"});
  add("quote.csv", [](const std::string& p) { write_table_with(p, 13, "1,2,\"odd"); },
      {"quote.csv, line 15", "a quoted field does not end"});
  add("latin.csv",
      [](const std::string& p) {
        std::vector<std::string> all_rows = rows(60);
        for (size_t i = 0; i < all_rows.size(); ++i)
          all_rows[i] = std::to_string(i) + (i % 2 ? ",caf\xe9" : ",th\xe9") + (i % 3 ? ",odd" : ",even");
        write_rows(p, all_rows);
      },
      {"Latin-1"});
  add("doubled.csv",
      [](const std::string& p) {
        std::vector<std::string> all_rows = rows(50);
        for (int i = 0; i < 10; ++i) all_rows.push_back("3,8,odd");
        all_rows.push_back("4,2,odd");
        write_rows(p, all_rows);
      },
      {"there more than once", "doubled.csv, line 5", "of the test split are in the training set too"});
  add("classes",
      [](const std::string& p) {
        write_images(p, {"a", "b"});
        std::filesystem::create_directories(p + "/c");
      },
      {"1 of 3 classes have no sample to learn from: c"});
  add("alone", [](const std::string& p) { write_images(p, {"a"}); }, {"one class (a)"});
  add("damaged",
      [](const std::string& p) {
        write_images(p, {"a", "b"});
        cut(p + "/a/3.png", 60);
      },
      {"a/3.png", "data.unreadable = leave-out"});
  add("leak",
      [](const std::string& p) {
        write_images(p + "/train", {"a", "b"});
        for (const char* c : {"a", "b"}) {
          std::filesystem::create_directories(p + "/test/" + c);
          std::filesystem::copy_file(p + "/train/" + c + "/1.png", p + "/test/" + c + "/seen.png");
        }
      },
      {"2 samples of the test split are in the training set too", "seen.png"});
  add("strangers",
      [](const std::string& p) {
        write_images(p, {"a", "b"});
        write_file(p + "/a/notes.docx", "PK");
      },
      {"1 files are passed over", ".docx 1", "notes.docx"});
  add("rows", [](const std::string& p) { write_arrays(p, numbers(), 39); }, {"x.npy holds 40 rows", "y.npy 39"});
  add("holes",
      [](const std::string& p) {
        Tensor x = numbers();
        x.data<float>()[12 * 8 + 3] = std::nanf("");
        write_arrays(p, x, 40);
      },
      {"1 value is no finite number", "x.npy, row 12"});
  add("short",
      [](const std::string& p) {
        write_arrays(p, numbers(), 40);
        cut(p + "/x.npy", 100);
      },
      {"x.npy is cut short"});
  add("story.txt", [](const std::string& p) { write_file(p, "hello"); }, {"story.txt has 5 tokens", "too few"});
  add("sound",
      [](const std::string& p) {
        for (const char* c : {"a", "b"})
          for (int i = 0; i < 8; ++i) {
            std::filesystem::create_directories(p + "/" + c);
            write_file(p + "/" + c + "/" + std::to_string(i) + ".wav",
                       data::wav_bytes({16000, std::vector<float>(16000, 0.01f * static_cast<float>(i))}));
          }
        write_file(p + "/b/2.wav", "RIFF, but no more");
      },
      {"b/2.wav"});
  return all;
}

TEST(BrokenData, every_kind_is_named_with_its_file_and_place) {
  Folder folder;
  for (const Broken& b : all_broken()) {
    SCOPED_TRACE(b.name);
    const std::string path = folder / b.name, project = path + ".tenon";
    b.make(path);
    ASSERT_EQ(tenon({"new", project}).status, 0);
    const Outcome o = tenon({"data", project, "--take", path});
    EXPECT_LE(o.status, 1) << o.err;
    for (const std::string& word : b.said)
      EXPECT_TRUE(has(o.out + o.err, word)) << word << " is not in " << o.out + o.err;
    EXPECT_EQ(tenon({"recipe", project}).status, 0) << "the project is as good as before";
  }
}

TEST(BrokenData, what_is_advised_mends_it) {
  Folder folder;
  const std::string table = folder / "label.csv", images = folder / "damaged", project = folder / "p.tenon";
  write_table_with(table, 5, "3,4,");
  write_images(images, {"a", "b"});
  cut(images + "/a/3.png", 60);
  ASSERT_EQ(tenon({"new", project}).status, 0);
  Outcome o = tenon({"data", project, "--take", table, "--set", "data.unlabelled=leave-out"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "1 of 60 rows have no kind and are left out")) << o.out;
  o = tenon({"data", project, "--take", images, "--set", "data.unreadable=leave-out"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "1 of 20 images cannot be read and are left out")) << o.out;
  EXPECT_EQ(tenon({"data", project, "--begin", "fashion-cnn"}).status, 0);
  o = tenon({"train", project, "--set", "epochs=1"});
  EXPECT_EQ(o.status, 0) << o.err;
}

}  // namespace
}  // namespace tenon::journeys
