// Own data: what a table or an array holds that is wrong is named by file and row, by every command that meets it.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

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

}  // namespace
}  // namespace tenon::journeys
