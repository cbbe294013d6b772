// Own data: what a table or an array holds that is wrong is named by file and row, by every command that meets it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

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

std::string passengers() {
  std::string text = "id;age;sex;survived;port\n";
  for (int i = 0; i < 80; ++i)
    text += std::to_string(i) + ";" + (i % 9 == 0 ? "" : std::to_string(20 + i % 30) + ",5") + ";" +
            (i % 2 ? "male" : "female") + ";" + std::to_string(i % 3 == 0) + ";" +
            (i == 7  ? ""
             : i % 2 ? "S"
                     : "C") +
            "\n";
  return text;
}

TEST(OwnData, a_table_with_holes_is_understood_trained_on_and_told) {
  Folder folder;
  std::ofstream(folder / "t.csv") << passengers();
  const std::string project = folder / "p.tenon";
  Outcome o = tenon({"new", project, "--template", "tabular", "--data", folder / "t.csv"});
  EXPECT_EQ(o.status, 1);
  for (const char* part : {"1 of 80 rows have no port", "t.csv, line 9", "data.unlabelled = leave-out",
                           "data.label = one of id, age, sex, survived, port"})
    EXPECT_TRUE(has(o.err, part)) << part << " is not in " << o.err;
  o = tenon({"new", project, "--template", "tabular", "--data", folder / "t.csv", "--set", "data.label=survived",
             "--set", "data.columns=id=out", "--set", "epochs=2"});
  ASSERT_EQ(o.status, 0) << o.err;
  for (const char* part :
       {"separated by \";\", decimal comma, UTF-8", "Predicts survived, one of 2 classes; numbers: age", "left out: id",
        "warning: age: 9 of 80 cells are missing"})
    EXPECT_TRUE(has(o.out, part)) << part << " is not in " << o.out;
  o = tenon({"recipe", project, "--json"});
  EXPECT_TRUE(has(o.out, "comma")) << o.out;
  o = tenon({"train", project});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "warning: age: 9 of 80 cells")) << o.out;
  o = tenon({"data", project, "--rows", "2"});
  EXPECT_EQ(o.status, 0) << o.err;
  for (const char* part : {"csv of t.csv", "t.csv, line 2", "training"})
    EXPECT_TRUE(has(o.out, part)) << part << " is not in " << o.out;
  o = tenon({"eval", project, "--worst", "3", "--json"});
  EXPECT_TRUE(has(o.out, "\"place\":\"line ")) << o.out;
}

TEST(OwnData, an_infinity_in_a_row_of_an_array_is_named_by_that_row) {
  Folder folder;
  Tensor x = empty({200, 8, 1}), y = empty({200, 1});
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i * 7 % 11) / 11;
  for (int64_t i = 0; i < 200; ++i) y.data<float>()[i] = static_cast<float>(i % 5) / 5;
  x.data<float>()[120 * 8 + 2] = std::numeric_limits<float>::infinity();
  formats::save_npy(folder / "x.npy", x);
  formats::save_npy(folder / "y.npy", y);
  const std::string project = folder / "p.tenon", named = "x.npy, row 120";
  Outcome o = tenon({"new", project, "--template", "series", "--data", folder / "", "--set", "epochs=1"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "1 value is no finite number (nan, inf), in 1 of 200 rows: " + named)) << o.out;
  o = tenon({"train", project});
  EXPECT_TRUE(has(o.out, named)) << o.out << o.err;
  // Number 96 of the training set, since a fifth of the rows before it went into the test split.
  o = tenon({"nan", project});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "sample 96 of the training set (" + named + ")")) << o.out;
  o = tenon({"nan", project, "--json"});
  EXPECT_TRUE(has(o.out, "\"source\":\"" + named + "\"")) << o.out;
  o = tenon({"data", project, "--json"});
  EXPECT_TRUE(has(o.out, "\"not_finite\":1")) << o.out;
  EXPECT_TRUE(has(o.out, "\"place\":\"row 120\"")) << o.out;
}

TEST(OwnData, a_table_is_divided_by_its_patients_and_says_so) {
  Folder folder;
  std::string text = "patient,day,dose,ill\n";
  for (int i = 0; i < 90; ++i)
    text += "p" + std::to_string(i % 18) + ",2024-01-" + (i / 4 < 9 ? "0" : "") + std::to_string(i / 4 + 1) + "," +
            std::to_string(i * 7 % 31) + "," + (i % 3 ? "no" : "yes") + "\n";
  std::ofstream(folder / "t.csv") << text;
  const std::string project = folder / "p.tenon";
  Outcome o = tenon({"new", project, "--template", "tabular", "--data", folder / "t.csv", "--set", "data.split=group",
                     "--set", "data.split_by=patient", "--set", "epochs=1"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "Split by group, column patient: 4 of 18 groups are kept for the test; 20 of 90")) << o.out;
  o = tenon({"train", project});
  EXPECT_EQ(o.status, 0) << o.err;
  o = tenon({"data", project, "--set", "data.split=time", "--set", "data.split_by=day"});
  EXPECT_TRUE(has(o.out, "the training set ends with 2024-01-18, the test begins with 2024-01-19")) << o.out << o.err;
  o = tenon({"data", project, "--set", "data.split_by=pateint"});
  EXPECT_EQ(o.status, 2);
  EXPECT_TRUE(has(o.err, "data.split_by = \"pateint\"")) << o.err;
  EXPECT_TRUE(has(o.err, "did you mean patient")) << o.err;
}

TEST(OwnData, a_project_is_begun_with_data_alone) {
  Folder folder;
  std::ofstream(folder / "t.csv") << passengers();
  const std::string project = folder / "p.tenon";
  Outcome o = tenon({"new", project, "--data", folder / "t.csv", "--set", "data.unlabelled=leave-out", "--set",
                     "epochs=2", "--set", "optimizer.lr=0.03"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "Predicts port")) << o.out;
  EXPECT_TRUE(has(o.out, "made from the template tabular, which suits these data")) << o.out;
  EXPECT_TRUE(has(tenon({"recipe", project, "--json"}).out, "0.03"));
  o = tenon({"train", project});
  EXPECT_EQ(o.status, 0) << o.err;
  write_file(folder / "book.txt", std::string(20000, 'a') + std::string(20000, 'b'));
  o = tenon({"new", folder / "text.tenon", "--data", folder / "book.txt", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.json().at(0).at("template"), "byte-gpt");
  EXPECT_EQ(o.json().at(0).at("begin_with"), nlohmann::json({"byte-gpt", "byte-lstm"}));
  // What cannot be read leaves no project.
  for (const char* bad : {"nothing.csv", "."}) {
    o = tenon({"new", folder / "bad.tenon", "--data", folder / bad});
    EXPECT_EQ(o.status, 1) << bad;
    EXPECT_NE(o.err, "") << bad;
    EXPECT_FALSE(std::filesystem::exists(folder / "bad.tenon")) << bad;
  }
}

TEST(OwnData, a_folder_of_sounds_is_trained_on_and_each_transform_is_seen) {
  Folder folder;
  for (int i = 0; i < 24; ++i) {
    data::Sound sound{8000, {}};
    for (int t = 0; t < 6000; ++t)
      sound.samples.push_back(static_cast<float>(0.4 * std::sin((i % 2 ? 0.8 : 0.2) * (t + i))));
    const std::string dir = folder / (i % 2 ? "high" : "low");
    std::filesystem::create_directories(dir);
    write_file(dir + "/" + std::to_string(i) + ".wav", data::wav_bytes(sound));
  }
  const std::string project = folder / "p.tenon";
  Outcome o =
      tenon({"new", project, "--template", "sounds", "--data", folder / "", "--set", "data.rate=8000", "--set",
             "data.length=6000", "--set", "data.transforms=shift most=200; log_mel rate=8000", "--set", "epochs=6"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "Sounds are read at 8000 samples a second and 6000 samples long")) << o.out;
  o = tenon({"train", project});
  ASSERT_EQ(o.status, 0) << o.err;
  o = tenon({"eval", project, "--json"});
  EXPECT_TRUE(has(o.out, "accuracy")) << o.out << o.err;
  o = tenon({"data", project, "--transforms", "3", "--epoch", "1", "-o", folder / "steps", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto steps = o.json();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].at("shape"), nlohmann::json({1, 6000}));
  EXPECT_EQ(steps[2].at("shape"), nlohmann::json({1, 40, 36}));
  for (const char* name : {"0-as-it-is.png", "1-shift.png", "2-log_mel.png"})
    EXPECT_GT(data::read_image(folder / (std::string("steps/") + name), 1).width, 8) << name;
  const Outcome again = tenon({"data", project, "--transforms", "3", "--epoch", "1", "--json"}),
                other = tenon({"data", project, "--transforms", "3", "--epoch", "2", "--json"});
  EXPECT_EQ(again.out, o.out);
  EXPECT_NE(other.out, o.out) << "another epoch shifts otherwise";
}

TEST(OwnData, the_batch_of_any_step_is_found_again) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  Outcome o = tenon({"new", project, "--template", "spirals", "--set", "data.samples=96", "--set", "data.batch_size=32",
                     "--set", "epochs=3"});
  ASSERT_EQ(o.status, 0) << o.err;
  ASSERT_EQ(tenon({"train", project, "--run", "r"}).status, 0);
  // An epoch of three steps sees every sample once, and each epoch in another order.
  std::vector<std::vector<int64_t>> batches;
  std::set<int64_t> first;
  for (int step = 1; step <= 6; ++step) {
    o = tenon({"data", project, "--step", std::to_string(step), "--json"});
    ASSERT_EQ(o.status, 0) << o.err;
    batches.emplace_back();
    for (const auto& line : o.json()) {
      EXPECT_EQ(line.at("epoch"), (step - 1) / 3);
      batches.back().push_back(line.at("sample"));
    }
    if (step <= 3) first.insert(batches.back().begin(), batches.back().end());
  }
  size_t seen = 0;
  for (int i = 0; i < 3; ++i) seen += batches[static_cast<size_t>(i)].size();
  EXPECT_EQ(seen, first.size());
  EXPECT_NE(batches[0], batches[3]);
  o = tenon({"data", project, "--step", "4000"});
  EXPECT_NE(o.status, 0);
}

TEST(OwnData, an_empty_project_learns_from_a_table_and_from_images_and_says_how) {
  Folder folder;
  std::ofstream(folder / "t.csv") << [] {
    std::string text = "a,b,kind\n";
    for (int i = 0; i < 90; ++i)
      text += std::to_string(i % 9) + "," + std::to_string(i % 5) + "," + (i % 3 ? "yes" : "no") + "\n";
    return text;
  }();
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project}).status, 0);
  Outcome o = tenon({"data", project, "--take", folder / "t.csv"});
  ASSERT_EQ(o.status, 0) << o.err;
  for (const char* part : {"read as csv", "The model has no layers yet", "--begin NAME", "tabular"})
    EXPECT_TRUE(has(o.out, part)) << part << " is not in " << o.out;
  o = tenon({"data", project, "--fit"});
  EXPECT_EQ(o.status, 1) << o.out;
  EXPECT_TRUE(has(o.err, "--begin NAME")) << o.err;
  o = tenon({"data", project, "--begin", "tabular"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "The model takes these samples")) << o.out;
  o = tenon({"train", project, "--set", "epochs=1"});
  EXPECT_EQ(o.status, 0) << o.err;
  // Other data: the same model, with other ends.
  std::ofstream(folder / "wide.csv") << [] {
    std::string text = "a,b,c,colour,kind\n";
    for (int i = 0; i < 90; ++i)
      text += std::to_string(i % 9) + ",1." + std::to_string(i) + "," + std::to_string(i % 5) + "," +
              (i % 2 ? "red" : "blue") + "," + std::string(1, static_cast<char>('p' + i % 4)) + "\n";
    return text;
  }();
  o = tenon({"data", project, "--take", folder / "wide.csv", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "\"fits\":false")) << o.out;
  o = tenon({"data", project, "--fit"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "input.shape 2 → 5")) << o.out;
  EXPECT_TRUE(has(o.out, "layers.5.out_features 2 → 4")) << o.out;
  o = tenon({"train", project, "--set", "epochs=1"});
  EXPECT_EQ(o.status, 0) << o.err;
  o = tenon({"data", project, "--take", folder / "none"});
  EXPECT_EQ(o.status, 1);
  EXPECT_TRUE(has(o.err, "does not exist")) << o.err;
}

}  // namespace
}  // namespace tenon::journeys
