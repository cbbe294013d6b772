// How samples are kept for the test: at random, by class, by group and by time, of tables, images and arrays.
#include <algorithm>
#include <map>
#include <set>

#include "engine/data/image.h"
#include "engine/data/split_rule.h"
#include "engine/data/time_text.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "tests/engine/data_files.h"

namespace tenon::data {
namespace {

using testing_data::lines_of;
using testing_data::picture;
using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;
using I = int64_t;
using S = std::string;

/// 120 visits of 24 patients, in an order that says nothing, a day each; one class in four is rare.
std::string visits() {
  std::string text = "patient,day,dose,ill\n";
  for (int i = 0; i < 120; ++i) {
    const int day = (i * 37) % 120;
    text += "p" + std::to_string(i * 7 % 24) + ",2024-" + (day < 60 ? "01" : "02") + "-" +
            (day % 60 / 2 + 1 < 10 ? "0" : "") + std::to_string(day % 60 / 2 + 1 > 29 ? 29 : day % 60 / 2 + 1) + "," +
            std::to_string(i % 11) + "," + (i % 10 == 0 ? "yes" : "no") + "\n";
  }
  return text;
}

Split open_visits(const Folder& dir, std::vector<Attr> attrs) {
  attrs.push_back({"label", std::string("ill")});
  return open_dataset("csv", {.dir = dir.file("visits.csv"), .attrs = std::move(attrs)});
}

/// A column of the file as it stands, of the rows of a part.
std::vector<std::string> cells_of(const Dataset& part, const std::string& text, size_t column) {
  std::vector<std::string> lines, cells;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  for (I row = 0; row < part.size(); ++row) {
    std::string rest = lines[static_cast<size_t>(std::stoi(part.source(row).place.substr(5)) - 1)];
    for (size_t c = 0; c < column; ++c) rest = rest.substr(rest.find(',') + 1);
    cells.push_back(rest.substr(0, rest.find(',')));
  }
  return cells;
}

TEST(SplitRules, NoGroupIsInBothParts) {
  Folder dir;
  const std::string text = visits();
  write(dir.file("visits.csv"), text);
  for (I seed : {I{0}, I{1}, I{2}}) {
    const Split split =
        open_visits(dir, {{"split", std::string("group")}, {"split_by", std::string("patient")}, {"split_seed", seed}});
    const auto train = cells_of(*split.train, text, 0), test = cells_of(*split.test, text, 0);
    EXPECT_EQ(train.size() + test.size(), 120u);
    EXPECT_NEAR(static_cast<double>(test.size()), 24, 5) << "a fifth, as whole groups allow";
    for (const std::string& p : test) EXPECT_EQ(std::count(train.begin(), train.end(), p), 0) << p << " is in both";
    EXPECT_SAYS(lines_of(split.remarks), "Split by group, column patient: 5 of 24 groups are kept for the test; 25 of");
    EXPECT_SAYS(lines_of(split.remarks), "left out: patient");
  }
  const auto groups_at = [&](I seed) {
    const auto test = cells_of(
        *open_visits(dir, {{"split", std::string("group")}, {"split_by", std::string("patient")}, {"split_seed", seed}})
             .test,
        text, 0);
    return std::set<std::string>(test.begin(), test.end());
  };
  EXPECT_EQ(groups_at(3), groups_at(3));
  EXPECT_NE(groups_at(3), groups_at(4));
}

TEST(SplitRules, TheLaterPartIsTheTestAndOneDayStaysTogether) {
  Folder dir;
  const std::string text = visits();
  write(dir.file("visits.csv"), text);
  const Split split = open_visits(dir, {{"split", std::string("time")}, {"split_by", std::string("day")}});
  const auto train = cells_of(*split.train, text, 1), test = cells_of(*split.test, text, 1);
  ASSERT_FALSE(test.empty());
  const std::string last = *std::max_element(train.begin(), train.end()),
                    first = *std::min_element(test.begin(), test.end());
  EXPECT_LT(last, first);
  EXPECT_NEAR(static_cast<double>(test.size()), 24, 2);
  EXPECT_SAYS(lines_of(split.remarks),
              "Split by time, column day: the training set ends with " + last + ", the test begins with " + first);
}

TEST(SplitRules, EachClassHasItsShareInTheTest) {
  Folder dir;
  const std::string text = visits();
  write(dir.file("visits.csv"), text);
  const Split split = open_visits(dir, {{"split", std::string("stratified")}, {"test_share", 0.25}});
  const auto test = cells_of(*split.test, text, 3);
  EXPECT_EQ(std::count(test.begin(), test.end(), "yes"), 3) << "a quarter of 12";
  EXPECT_EQ(std::count(test.begin(), test.end(), "no"), 27) << "a quarter of 108";
  const Split random = open_visits(dir, {{"split", std::string("random")}, {"test_share", 0.25}});
  EXPECT_EQ(random.test->size(), 30);
  EXPECT_NE(cells_of(*random.test, text, 1), cells_of(*open_visits(dir, {{"test_share", 0.25}}).test, text, 1));
  std::string own = "name,ill\n";
  for (int i = 0; i < 20; ++i) own += std::to_string(i) + (i % 2 ? ",yes\n" : ",no\n");
  write(dir.file("visits.csv"), own);
  EXPECT_SAYS(error_of([&] {
                open_visits(dir, {{"split", std::string("stratified")}, {"split_by", std::string("name")}});
              }),
              "column name has 20 different values in 20 samples, too many for classes");
}

TEST(SplitRules, WhatCannotDivideIsNamed) {
  Folder dir;
  std::string text = visits();
  write(dir.file("visits.csv"), text);
  const auto with = [&](const char* way, const char* by) {
    return error_of([&] { open_visits(dir, {{"split", std::string(way)}, {"split_by", std::string(by)}}); });
  };
  EXPECT_SAYS(with("group", "pateint"), "data.split_by = \"pateint\"");
  EXPECT_SAYS(with("group", "pateint"), "did you mean patient");
  EXPECT_SAYS(with("group", ""), "data.split_by names no column");
  EXPECT_SAYS(with("group", ""), "patient, day, dose, ill");
  EXPECT_SAYS(with("random", "patient"), "data.split = random has no use for it");
  EXPECT_SAYS(with("time", "patient"), "line 2: column patient is \"p0\", which is no time");
  text.replace(text.find("\np7,"), 4, "\n,");
  write(dir.file("visits.csv"), text);
  EXPECT_SAYS(with("group", "patient"), "1 of 120 samples have no column patient: visits.csv, line 3");
  Folder two;
  for (const char* name : {"train.csv", "test.csv"}) write(two.file(name), visits());
  EXPECT_SAYS(error_of([&] {
                open_dataset("csv", {.dir = two.str(), .attrs = {{"split", std::string("random")}}});
              }),
              "is divided into training and test already");
}

TEST(SplitRules, ImagesAreDividedByFolderOrByAPatternOfTheirNames) {
  Folder dir;
  for (int i = 0; i < 40; ++i)
    write(dir.file(std::string(i % 2 ? "cats" : "dogs") + "/home" + std::to_string(i % 5) + "/cam" +
                   std::to_string(i / 10) + "_" + std::to_string(i) + ".png"),
          png_bytes(picture(i)));
  const auto parts_of = [&](std::vector<Attr> attrs, auto part) {
    const Split split = open_dataset("image-folder", {.dir = dir.str(), .attrs = std::move(attrs)});
    EXPECT_EQ(split.train->size() + split.test->size(), 40) << "folders below a class belong to it";
    std::map<std::string, std::set<bool>> in;
    for (const auto& [set, test] : {std::pair{split.train.get(), false}, {split.test.get(), true}})
      for (I row = 0; row < set->size(); ++row) in[part(set->source(row).file)].insert(test);
    return std::pair{in, lines_of(split.remarks)};
  };
  const auto [homes, told] = parts_of({{"split", std::string("group")}, {"split_by", std::string("folder")}},
                                      [](const std::string& f) { return f.substr(f.find("/home") + 1, 5); });
  EXPECT_EQ(homes.size(), 5u);
  for (const auto& [home, parts] : homes) EXPECT_EQ(parts.size(), 1u) << home << " is in both";
  EXPECT_SAYS(told, "Split by group, the folder below the class: 1 of 5 groups");
  const auto [cams, said] = parts_of({{"split", std::string("group")}, {"split_by", std::string("cam([0-9]+)_")}},
                                     [](const std::string& f) { return f.substr(f.find("/cam") + 4, 1); });
  EXPECT_EQ(cams.size(), 4u);
  for (const auto& [cam, parts] : cams) EXPECT_EQ(parts.size(), 1u) << cam << " is in both";
  EXPECT_SAYS(said, "cam([0-9]+)_: 1 of 4 groups");
  const auto [latest, by_time] = parts_of({{"split", std::string("time")}, {"split_by", std::string("_([0-9]+)")}},
                                          [](const std::string& f) { return f; });
  EXPECT_SAYS(by_time, "the training set ends with 31, the test begins with 32; 8 of 40");
  const auto refused = [&](const char* by) {
    return error_of([&] {
      open_dataset("image-folder",
                   {.dir = dir.str(), .attrs = {{"split", std::string("group")}, {"split_by", std::string(by)}}});
    });
  };
  EXPECT_SAYS(refused("(cam"), "it is no regular expression");
  EXPECT_SAYS(refused("dog([0-9]+)"), "40 of 40 samples have no the part of the name");
}

TEST(SplitRules, ArraysAreDividedByAnArrayBesideThem) {
  Folder dir;
  testing_data::make_files("npy", dir);
  Tensor groups = empty({40}, DType::i64);
  for (I i = 0; i < 40; ++i) groups.data<I>()[i] = i % 8;
  formats::save_npy(dir.file("who.npy"), groups);
  const Split split = open_dataset(
      "npy", {.dir = dir.str(), .attrs = {{"split", std::string("group")}, {"split_by", std::string("who")}}});
  std::map<I, std::set<bool>> in;
  for (const auto& [set, test] : {std::pair{split.train.get(), false}, {split.test.get(), true}})
    for (I row = 0; row < set->size(); ++row) in[std::stoi(set->source(row).place.substr(4)) % 8].insert(test);
  EXPECT_EQ(in.size(), 8u);
  for (const auto& [group, parts] : in) EXPECT_EQ(parts.size(), 1u) << group << " is in both";
  formats::save_npy(dir.file("who.npy"), empty({39}, DType::i64));
  EXPECT_SAYS(error_of([&] {
                open_dataset("npy", {.dir = dir.str(),
                                     .attrs = {{"split", std::string("group")}, {"split_by", std::string("who")}}});
              }),
              "who.npy is of size [39]: it has one value for each of 40 rows");
}

/// Letters of three months, in files of several windows each.
void write_letters(const Folder& dir) {
  for (const char* month : {"01", "02", "03"})
    for (int i = 0; i < 3; ++i) {
      std::string text;
      for (int k = 0; k < 40; ++k) text += std::string("word ") + month + std::to_string(i) + " ";
      write(dir.file(std::string("letter_2024-") + month + "_" + std::to_string(i) + ".txt"), text);
    }
}
std::set<std::string> files_of(const Dataset& part, size_t begin = 0, size_t length = std::string::npos) {
  std::set<std::string> files;
  for (I r = 0; r < part.size(); ++r) {
    const std::string file = part.source(r).file;
    files.insert(file.substr(file.rfind('/') + 1).substr(begin, length));
  }
  return files;
}

TEST(SplitRules, TextsAreDividedByTheirFilesOrTheirNames) {
  Folder dir, cache;
  write_letters(dir);
  const auto open = [&](std::vector<Attr> attrs) {
    attrs.push_back({"context", I{16}});
    attrs.push_back({"cache", cache.str()});
    attrs.push_back({"test_share", 0.3});
    return open_dataset("text", {.dir = dir.str(), .attrs = std::move(attrs)});
  };
  const auto apart = [](const std::set<std::string>& a, const std::set<std::string>& b) {
    return !a.empty() && !b.empty() && std::none_of(a.begin(), a.end(), [&](auto& f) { return b.contains(f); });
  };
  const Split end = open({}), random = open({{"split", S("random")}}), spread = open({{"split", S("spread")}}),
              group = open({{"split", S("group")}}),
              month = open({{"split", S("time")}, {"split_by", S("2024-[0-9]{2}")}}),
              named = open({{"split", S("group")}, {"split_by", S("_([0-9])\\.txt")}});
  EXPECT_LE(random.train->size() + random.test->size() - end.train->size() - end.test->size(), 1)
      << "where the end begins no window does";
  EXPECT_FALSE(apart(files_of(*random.train), files_of(*random.test)));
  EXPECT_NEAR(static_cast<double>(random.test->size()) / static_cast<double>(random.train->size()), 0.3 / 0.7, 0.02);
  EXPECT_NE(spread.test->source(1).text(), random.test->source(1).text());
  EXPECT_TRUE(apart(files_of(*group.train), files_of(*group.test)));
  EXPECT_SAYS(lines_of(group.remarks), "Split by group, the file: ");
  EXPECT_EQ(files_of(*month.train, 7, 7), (std::set<std::string>{"2024-01", "2024-02"}));
  EXPECT_EQ(files_of(*month.test, 7, 7), std::set<std::string>{"2024-03"});
  EXPECT_TRUE(apart(files_of(*named.train, 15, 1), files_of(*named.test, 15, 1)));
  EXPECT_EQ(named.train->task(), "language");
  // A window that begins in one file and ends in the next is in no part.
  EXPECT_LT(group.train->size() + group.test->size(), random.train->size() + random.test->size());
  EXPECT_SAYS(error_of([&] { open({{"split", S("time")}}); }), "names no pattern of files' names");
  EXPECT_SAYS(error_of([&] { open({{"split", S("stratified")}}); }), "stratified");
  EXPECT_SAYS(error_of([&] { open({{"split", S("group")}, {"split_by", S("letter")}}); }), "of the same group");
  EXPECT_EQ(open({{"split", S("random")}, {"test_samples", I{5}}}).test->size(), 5);
}

TEST(SplitRules, ShardsAreDividedSampleBySample) {
  Folder dir;
  testing_data::make_files("webdataset", dir);  // 4 shards of 9 samples "dir/SHARD_NUMBER", 3 classes
  const auto open = [&](std::vector<Attr> attrs) {
    attrs.push_back({"height", I{8}});
    attrs.push_back({"width", I{8}});
    attrs.push_back({"test_share", 0.34});
    return open_dataset("webdataset", {.dir = dir.str(), .attrs = std::move(attrs)});
  };
  const auto keys = [](const Dataset& part) {
    std::set<std::string> all;
    for (I r = 0; r < part.size(); ++r) all.insert(part.source(r).place);
    return all;
  };
  const Split own = open({});
  EXPECT_EQ(own.test->size() % 9, 0) << "whole shards";
  for (const char* way : {"random", "spread", "stratified", "group"}) {
    SCOPED_TRACE(way);
    std::vector<Attr> attrs = {{"split", S(way)}};
    if (way == S("group")) attrs.push_back({"split_by", S("_([0-9])")});
    const Split s = open(attrs);
    const std::set<std::string> train = keys(*s.train), test = keys(*s.test);
    EXPECT_EQ(s.train->size() + s.test->size(), 36);
    EXPECT_EQ(train.size() + test.size(), 36u);
    for (const std::string& key : test) EXPECT_FALSE(train.contains(key));
    EXPECT_GT(files_of(*s.test).size(), 1u);
    // Read in any order, each is the picture and the class of its key.
    const Dataset& part = *s.test;
    for (I r = part.size() - 1; r >= 0; --r) {
      const std::string place = part.source(r).place;
      const int shard = place[place.rfind('/') + 1] - '0', number = place.back() - '0';
      const Batch b = fetch(part, {r});
      EXPECT_EQ(b.y.data<I>()[0], (shard + number) % 3) << place;
      std::vector<float> planes(3 * 8 * 8);
      to_planes(parse_image(png_bytes(picture(shard * 9 + number)), place, 3), 8, 8, planes.data());
      EXPECT_TRUE(std::equal(planes.begin(), planes.end(), b.x.data<float>())) << place;
    }
  }
  EXPECT_SAYS(error_of([&] { open({{"split", S("time")}}); }), "names no pattern of the samples' keys");
  EXPECT_SAYS(error_of([&] { open({{"split", S("group")}, {"split_by", S("dir")}}); }), "of the same group");
  write(dir.file("test-0.tar"), "");
  EXPECT_SAYS(error_of([&] { open({{"split", S("random")}}); }), "divided into training and test already");
}

TEST(TimeTexts, AreReadAsPeopleWriteThem) {
  const auto seconds = [](const char* text) {
    const TimeText t = parse_time(text);
    EXPECT_EQ(t.kind, TimeText::Kind::date) << text;
    return t.value;
  };
  EXPECT_EQ(seconds("1970-01-01"), 0);
  EXPECT_EQ(seconds("2024-03-01"), 1709251200);
  EXPECT_EQ(seconds("01.03.2024"), 1709251200);
  EXPECT_EQ(seconds(" 2024/3/1 "), 1709251200);
  EXPECT_EQ(seconds("2024-03"), 1709251200);
  EXPECT_EQ(seconds("2024-03-01 12:30"), 1709251200 + 45000);
  EXPECT_EQ(seconds("2024-03-01T12:30:05.25Z"), 1709251200 + 45005.25);
  EXPECT_EQ(seconds("2024-03-01T12:30:05+01:00"), 1709251200 + 45005 - 3600);
  EXPECT_EQ(parse_time("20240301").kind, TimeText::Kind::number);
  EXPECT_EQ(parse_time("-3.5").value, -3.5);
  for (const char* none :
       {"", "soon", "2024-13-01", "2024-02-30", "03/01/2024", "2024-03-01 25:00", "2024-03-01x", "nan"})
    EXPECT_EQ(parse_time(none).kind, TimeText::Kind::none) << none;
}

}  // namespace
}  // namespace tenon::data
