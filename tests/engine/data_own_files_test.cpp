// Files as people have them: tables of another country, labels with holes, images of other makers.
#include <jpeglib.h>

#include <cstdlib>

#include "engine/data/csv.h"
#include "engine/data/image.h"
#include "engine/templates/templates.h"
#include "tests/engine/data_files.h"

namespace tenon::data {
namespace {

using testing_data::lines_of;
using testing_data::picture;
using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;
using I = int64_t;

/// Passengers, with the holes that such tables have.
std::string passengers() {
  std::string text = "PassengerId,Survived,Age,Sex,Name,Embarked\n";
  for (int i = 0; i < 60; ++i)
    text += std::to_string(i + 1) + "," + std::to_string(i % 3 == 0) + "," +
            (i % 7 == 0 ? "" : std::to_string(20 + i % 40)) + "," + (i % 2 ? "male" : "female") + ",\"Doe, " +
            std::to_string(i * 7) + "\"," +
            (i == 10 || i == 31 ? ""
             : i % 2            ? "S"
                                : "C") +
            "\n";
  return text;
}

TEST(OwnTable, ALabelWithHolesSaysWhatCanBeDone) {
  Folder dir;
  write(dir.file("t.csv"), passengers());
  Options o{.dir = dir.file("t.csv")};
  const std::string e = error_of([&] { open_dataset("csv", o); });
  EXPECT_SAYS(e, "2 of 60 rows have no Embarked");
  EXPECT_SAYS(e, "t.csv, line 12, line 33");
  EXPECT_SAYS(e, "data.unlabelled = leave-out");
  EXPECT_SAYS(e, "data.label = one of PassengerId, Survived, Age");
  o.attrs = {{"unlabelled", std::string("leave-out")}};
  const Split rest = open_dataset("csv", o);
  EXPECT_EQ(rest.train->size() + rest.test->size(), 58);
  EXPECT_SAYS(lines_of(rest.remarks), "2 of 60 rows have no Embarked and are left out");
  o.attrs = {{"label", std::string("Survived")}, {"columns", std::string("Name=out; PassengerId=out")}};
  const Split split = open_dataset("csv", o);
  EXPECT_EQ(split.train->classes(), 2);
  EXPECT_EQ(split.train->input().shape[0], 1 + 2 + 2) << "age, sex and port";
  const std::string lines = lines_of(split.remarks);
  EXPECT_SAYS(lines, "Read as 6 columns of 60 rows, separated by \",\", decimal point, UTF-8, names in the first line");
  EXPECT_SAYS(lines,
              "Predicts Survived, one of 2 classes; numbers: Age; words: Sex (2), Embarked (2); left out: "
              "PassengerId, Name");
  EXPECT_SAYS(lines, "Age: 9 of 60 cells are missing, and count as its mean: t.csv, line 2, line 9");
  EXPECT_SAYS(lines, "Embarked: 2 of 60 cells are missing, and count as none of its words");
}

TEST(OwnTable, ColumnsThatTellNothingAreNamed) {
  Folder dir;
  write(dir.file("t.csv"), passengers());
  const Split split = open_dataset("csv", {.dir = dir.file("t.csv"), .attrs = {{"label", std::string("Survived")}}});
  EXPECT_SAYS(lines_of(split.remarks), "Name is another word in nearly every row");
  EXPECT_SAYS(lines_of(split.remarks), "data.columns = Name=out");
  write(dir.file("u.csv"), "a,b,y\n1,5,p\n2,5,q\n3,5,p\n4,5,q\n5,5,p\n6,5,q\n7,5,p\n8,5,q\n9,5,p\n10,5,q\n");
  EXPECT_SAYS(lines_of(open_dataset("csv", {.dir = dir.file("u.csv")}).remarks), "b is the same in every row");
  std::string one = "a,y\n";
  for (int i = 0; i < 20; ++i) one += std::to_string(i) + ",same\n";
  write(dir.file("v.csv"), one);
  EXPECT_SAYS(lines_of(open_dataset("csv", {.dir = dir.file("v.csv")}).remarks), "there is nothing to tell apart");
}

TEST(OwnTable, DecimalCommasLatin1AndSemicolonsAreFoundAndTold) {
  Folder dir;
  std::string text =
      "H\xf6he;Gewicht;Stra\xdf"
      "e;Sorte\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i) + ",5;" + std::to_string(100 - i) + ",25;" + (i % 2 ? "M\xfcller" : "B\xe4rg\x80") + ";" +
            (i % 3 ? "s\xfc\xdf" : "sauer") + "\n";
  write(dir.file("t.csv"), text);
  const Split split = open_dataset("csv", {.dir = dir.file("t.csv")});
  const std::string lines = lines_of(split.remarks);
  EXPECT_SAYS(lines, "separated by \";\", decimal comma, Latin-1, names in the first line");
  EXPECT_SAYS(lines, "Predicts Sorte, one of 2 classes; numbers: Höhe, Gewicht; words: Straße (2)");
  EXPECT_EQ(split.train->class_name(1), "süß");
  auto utf16 = [](const std::string& ascii) {
    std::string s = "\xff\xfe";
    for (char c : ascii) s += c, s += '\0';
    return s;
  };
  std::string plain = "a\tb\ty\n";
  for (int i = 0; i < 20; ++i)
    plain += std::to_string(i) + "\t" + std::to_string(i % 4) + "\t" + (i % 2 ? "p" : "q") + "\n";
  write(dir.file("u.tsv"), utf16(plain));
  EXPECT_SAYS(lines_of(open_dataset("csv", {.dir = dir.file("u.tsv")}).remarks),
              "separated by tabs, decimal point, UTF-16");
  EXPECT_SAYS(error_of([&] {
                open_dataset("csv", {.dir = dir.file("t.csv"), .attrs = {{"encoding", std::string("utf-8")}}});
              }),
              "line 1: it is no UTF-8");
}

TEST(OwnTable, WhatWasFoundMakesTheSameOfItAgain) {
  Folder dir;
  write(dir.file("t.csv"), passengers());
  Options o{.dir = dir.file("t.csv"), .attrs = {{"label", std::string("Survived")}}};
  const Split found = open_dataset("csv", o);
  o.attrs = found.found;
  const Split again = open_dataset("csv", o);
  ASSERT_EQ(again.train->size(), found.train->size());
  for (I row = 0; row < found.train->size(); ++row) {
    const Batch a = fetch(*found.train, {row}), b = fetch(*again.train, {row});
    ASSERT_EQ(std::string(static_cast<const char*>(a.x.raw()), a.x.nbytes()),
              std::string(static_cast<const char*>(b.x.raw()), b.x.nbytes()));
  }
  for (const auto& [text, says] : {std::pair{"Nme=out", "did you mean Name"},
                                   {"Age=big", "it is number, words or out"},
                                   {"Sex=number", "says that it is a number"}})
    EXPECT_SAYS(error_of([&, words = text] {
                  open_dataset("csv", {.dir = dir.file("t.csv"),
                                       .attrs = {{"label", std::string("Survived")}, {"columns", std::string(words)}}});
                }),
                says);
  // A new project's recipe says it.
  const Beginning b = begin(find_template("tabular"), dir.file("t.csv"), dir.file("p.tenon"),
                            {{"data.label", "Survived"}, {"data.columns", "Name=out"}});
  EXPECT_EQ(b.recipe.text("data.separator"), ",");
  EXPECT_EQ(b.recipe.text("data.encoding"), "utf-8");
  EXPECT_EQ(b.recipe.text("data.label_kind"), "class");
  EXPECT_EQ(b.recipe.text("data.columns"), "PassengerId=number; Age=number; Sex=words; Name=out; Embarked=words");
  EXPECT_SAYS(lines_of(b.remarks), "Predicts Survived");
}

TEST(OwnTable, CellsAreWhatTheyAre) {
  double v = 0;
  EXPECT_EQ(csv_cell("", v), Cell::missing);
  EXPECT_EQ(csv_cell("NA", v), Cell::missing);
  EXPECT_EQ(csv_cell("nan", v), Cell::not_finite);
  EXPECT_EQ(csv_cell("-Infinity", v), Cell::not_finite);
  EXPECT_EQ(csv_cell("1e400", v), Cell::not_finite);
  EXPECT_EQ(csv_cell("1e-400", v), Cell::number);
  EXPECT_EQ(v, 0);
  EXPECT_EQ(csv_cell(" +1.5 ", v), Cell::number);
  EXPECT_EQ(v, 1.5);
  EXPECT_EQ(csv_cell("1,5", v), Cell::word);
  EXPECT_EQ(csv_cell("1,5", v, ','), Cell::number);
  EXPECT_EQ(v, 1.5);
  EXPECT_EQ(csv_cell("1.5", v, ','), Cell::word);
  EXPECT_EQ(csv_cell("infantry", v), Cell::word);
}

/// A JPEG of four inks of one colour; with Adobe's mark, as its programs write them, upside down.
std::string inks_jpeg(const uint8_t (&inks)[4], bool adobe) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = jpeg.image_height = 16;
  jpeg.input_components = 4;
  jpeg.in_color_space = JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg.write_Adobe_marker = adobe;
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<uint8_t> line;
  for (int i = 0; i < 16; ++i) line.insert(line.end(), std::begin(inks), std::end(inks));
  while (jpeg.next_scanline < 16) {
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string out(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  return out;
}

TEST(OwnImages, FourInksBecomeColours) {
  // Half of cyan, no other ink but a fifth of black.
  const uint8_t inks[] = {128, 0, 0, 51}, upside_down[] = {127, 255, 255, 204};
  for (const auto& [jpeg, name] :
       {std::pair{inks_jpeg(inks, false), "plain"}, {inks_jpeg(upside_down, true), "Adobe"}}) {
    const Image image = parse_image(jpeg, "inks.jpg", 3);
    ASSERT_EQ(image.pixels.size(), 16u * 16 * 3) << name;
    EXPECT_NEAR(image.pixels[0], 102, 3) << name;
    EXPECT_NEAR(image.pixels[1], 204, 3) << name;
    EXPECT_NEAR(image.pixels[2], 204, 3) << name;
    EXPECT_NEAR(parse_image(jpeg, "inks.jpg", 1).pixels[0], 173, 4) << name;
  }
}

TEST(OwnImages, WhatIsPassedOverAndOneClassAreTold) {
  Folder dir;
  for (int i = 0; i < 12; ++i) write(dir.file("cats/" + std::to_string(i) + ".png"), png_bytes(picture(i)));
  write(dir.file("cats/a.heic"), "ftyp");
  write(dir.file("cats/b.txt"), "of b");
  write(dir.file("cats/c.txt"), "of c");
  const Split split = open_dataset("image-folder", {.dir = dir.str()});
  const std::string lines = lines_of(split.remarks);
  EXPECT_SAYS(lines,
              "3 files are passed over, since only JPEG, PNG, BMP, GIF, WebP and TIFF are read (.heic 1, .txt 2)");
  EXPECT_SAYS(lines, "cats/a.heic, cats/b.txt");
  EXPECT_SAYS(lines, "there is one folder, so one class (cats)");
  EXPECT_TRUE(split.train->source(0).text().starts_with("cats/")) << "two classes may have files of one name";
}

TEST(OwnImages, HowTheyAreScaledIsTold) {
  Folder dir;
  const auto image = [](int64_t h, int64_t w) {
    return png_bytes({h, w, 3, std::vector<uint8_t>(static_cast<size_t>(3 * h * w), 90)});
  };
  for (int i = 0; i < 6; ++i) write(dir.file("a/" + std::to_string(i) + ".png"), image(32, 32));
  for (int i = 0; i < 6; ++i) write(dir.file("b/" + std::to_string(i) + ".png"), image(32, 32));
  EXPECT_EQ(lines_of(open_dataset("image-folder", {.dir = dir.str()}).remarks).find("scaled"), std::string::npos);
  write(dir.file("b/7.png"), image(16, 20));
  write(dir.file("b/8.png"), image(64, 300));
  EXPECT_SAYS(lines_of(open_dataset("image-folder", {.dir = dir.str()}).remarks),
              "Images are scaled to cover 32x32 (height x width) and cut in the middle; the 14 that were looked at are "
              "16x20 to 64x300, 1 are enlarged, more than half of 1 is cut off");
}

}  // namespace
}  // namespace tenon::data
