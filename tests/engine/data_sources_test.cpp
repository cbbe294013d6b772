// A sample is found again in the files it came from, and what is wrong with it is said with that place.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <set>

#include "engine/data/loader.h"
#include "engine/data/survey.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/engine/data_files.h"

namespace tenon::data {
namespace {

using testing_data::lines_of;
using testing_data::make_files;
using testing_data::options_of;
using testing_data::picture;
using testing_data::write_tar;
using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;
using I = int64_t;

TEST(Sources, EveryKindThatLiesInFilesNamesEachSampleOnce) {
  for (const DatasetDef& kind : dataset_defs()) {
    if (!kind.files) continue;
    SCOPED_TRACE(kind.name);
    Folder dir;
    make_files(kind.name, dir);
    Options o = options_of(kind, dir);
    for (const char* transforms : {"", "normalise mean=0.1 std=2"}) {
      const Split plain = open_dataset(kind.name, o);
      if (*transforms && plain.train->input().dtype != DType::f32) continue;
      o.transforms = transforms;
      const Split split = open_dataset(kind.name, o);
      std::set<std::string> seen;
      for (const auto& set : {split.train, split.test})
        for (I row = 0; row < set->size(); ++row) {
          const Source s = set->source(row);
          EXPECT_TRUE(std::filesystem::exists(s.file)) << s.file;
          EXPECT_TRUE(seen.insert(s.file + "|" + s.place).second) << s.text() << " stands for two samples";
        }
    }
  }
}

TEST(Sources, OfATextAreTheBytesOfItsFiles) {
  Folder dir;
  std::string a, b;
  for (int i = 0; i < 400; ++i)
    a += "first " + std::to_string(i) + " words\n", b += "second " + std::to_string(i) + "\n";
  write(dir.file("texts/a.txt"), a);
  write(dir.file("texts/b.txt"), b);
  for (const char* tokenizer : {"byte", "bpe"}) {
    Options o{.dir = dir.file("texts"),
              .attrs = {{"context", I{16}},
                        {"cache", dir.file("cache")},
                        {"tokenizer", std::string(tokenizer)},
                        {"vocabulary", I{300}}}};
    const Split split = open_dataset("text", o);
    for (const auto& set : {split.train, split.test})
      for (I row = 0; row < set->size(); ++row) {
        const Source s = set->source(row);
        const Batch sample = fetch(*set, {row});
        std::string text;
        for (I t = 0; t < 16; ++t) text += set->token_text(sample.x.data<I>()[t]);
        const std::string& of = s.file == dir.file("texts/a.txt") ? a : b;
        const size_t from = std::stoul(s.place.substr(6));
        EXPECT_EQ(s.place, "bytes " + std::to_string(from) + " to " + std::to_string(from + text.size() - 1));
        const size_t here = std::min(text.size(), of.size() - from);  // the last of a file goes on in the next
        ASSERT_EQ(of.substr(from, here), text.substr(0, here)) << tokenizer << ", " << s.text();
      }
  }
}

/// Numbers from a seed, which a failure names.
struct DiceSource {
  std::mt19937 engine;
  I below(I n) { return static_cast<I>(engine() % static_cast<uint32_t>(n)); }
};

// With the cells and labels below two hundred values that are NaN or infinite.
TEST(Sources, AValueThatIsNotFiniteIsNamedWithItsRow) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    DiceSource dice{std::mt19937(seed)};
    Folder dir;
    const I rows = 40 + dice.below(60), width = 1 + dice.below(5), bad = dice.below(rows);
    const bool target = seed % 3 == 0, whole = seed % 2 == 0;
    const float value = seed % 5 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                      : (seed % 2 ? 1 : -1) * std::numeric_limits<float>::infinity();
    Tensor x = empty({rows, width}), y = empty({rows, 1});
    for (I i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(dice.below(1000));
    for (I i = 0; i < y.numel(); ++i) y.data<float>()[i] = static_cast<float>(dice.below(1000));
    (target ? y.data<float>()[bad] : x.data<float>()[bad * width + dice.below(width)]) = value;
    const char* part = seed % 4 < 2 ? "train" : "test";
    std::string file = target ? "y" : "x";
    if (whole) {
      formats::save_npy(dir.file("x.npy"), x);
      formats::save_npy(dir.file("y.npy"), y);
    } else {
      for (const char* p : {"train", "test"}) {
        Tensor other = clone(x), label = clone(y);
        if (std::string(p) != part) (target ? label.data<float>()[bad] : other.data<float>()[bad * width]) = 1;
        if (std::string(p) != part)
          for (I k = 0; k < width && !target; ++k) other.data<float>()[bad * width + k] = 1;
        formats::save_npy(dir.file(std::string("x_") + p + ".npy"), other);
        formats::save_npy(dir.file(std::string("y_") + p + ".npy"), label);
      }
      file += std::string("_") + part;
    }
    const Split split = open_dataset("npy", {.dir = dir.str()});
    ASSERT_EQ(split.remarks.size(), whole ? 2u : 1u) << "how one file was split, and what is wrong";
    const Remark& last = split.remarks.back();
    EXPECT_EQ(last.id, "not_finite");
    EXPECT_SAYS(last.line(), file + ".npy, row " + std::to_string(bad));
    EXPECT_EQ(last.count, 1);
  }
}

TEST(Sources, ACellThatIsNotFiniteIsNamedWithItsLine) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    DiceSource dice{std::mt19937(seed)};
    Folder dir;
    const I rows = 30 + dice.below(60), bad = dice.below(rows);
    const char* words[] = {"nan", "NaN", "inf", "-inf", "Infinity", "1e999"};
    auto table = [&](I from, I to) {
      std::string text = "a,b,label\n";
      for (I r = from; r < to; ++r)
        text += std::to_string(dice.below(100)) + "," + (r == bad ? words[seed % 6] : std::to_string(dice.below(100))) +
                "," + (r % 2 ? "yes" : "no") + "\n";
      return text;
    };
    const I cut = rows / 2;
    std::string place = "line " + std::to_string(bad + 2), file = "t.csv";
    if (seed % 2) {
      write(dir.file("t.csv"), table(0, rows));
    } else {
      write(dir.file("train.csv"), table(0, cut));
      write(dir.file("test.csv"), table(cut, rows));
      file = bad < cut ? "train.csv" : "test.csv";
      if (bad >= cut) place = "line " + std::to_string(bad - cut + 2);
    }
    const Split split = open_dataset("csv", {.dir = seed % 2 ? dir.file("t.csv") : dir.str()});
    EXPECT_EQ(split.train->input().shape[0], 2) << "the column stays one of numbers";
    EXPECT_SAYS(lines_of(split.remarks), "b: 1 of " + std::to_string(rows) +
                                             " cells are no finite number (nan, inf), and count as its mean: " + file +
                                             ", " + place + "\n");
    for (const auto& set : {split.train, split.test})
      for (I row = 0; row < set->size(); ++row) EXPECT_TRUE(std::isfinite(fetch(*set, {row}).x.data<float>()[1]));
  }
}

TEST(Sources, ALabelThatIsNoneIsNamedWithItsSample) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    DiceSource dice{std::mt19937(seed)};
    Folder dir;
    const char* words[] = {"nan", "inf", "", "-1"};
    const I shards = 3, samples = 4, bad = dice.below(shards * samples);
    for (I shard = 0; shard < shards; ++shard) {
      std::vector<std::pair<std::string, std::string>> members;
      for (I i = 0; i < samples; ++i) {
        const I number = shard * samples + i;
        const std::string key = "s" + std::to_string(number);
        members.push_back({key + ".png", png_bytes(picture(static_cast<int>(number)))});
        members.push_back({key + ".cls", number == bad ? words[seed % 4] : std::to_string(number % 2)});
      }
      write_tar(dir.file((shard == 2 ? "test-" : "part-") + std::to_string(shard) + ".tar"), members, seed % 3 == 0);
    }
    const std::string e = error_of([&] { open_dataset("webdataset", {.dir = dir.str()}); });
    EXPECT_SAYS(e, "-" + std::to_string(bad / samples) + ".tar");
    EXPECT_SAYS(e, "sample s" + std::to_string(bad));
  }
}

TEST(Sources, AnImageThatIsDamagedIsNamedOrLeftOut) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    DiceSource dice{std::mt19937(seed)};
    Folder dir;
    const int images = 20, bad = static_cast<int>(dice.below(images));
    std::string name;
    for (int i = 0; i < images; ++i) {
      const std::string file = std::string(i % 2 ? "cats" : "dogs") + "/" + std::to_string(i) + ".png";
      const std::string png = png_bytes(picture(i));
      write(dir.file(file), i == bad ? png.substr(0, 20 + static_cast<size_t>(dice.below(20))) : png);
      if (i == bad) name = file;
    }
    Options o{.dir = dir.str()};
    const Split split = open_dataset("image-folder", o);
    const std::string e = error_of([&] {
      for (const auto& set : {split.train, split.test}) {
        Loader l(set, {.batch = 2, .workers = 0, .shuffle = false});
        for (I i = 0; i < l.batches_per_epoch(); ++i) l.next();
      }
    });
    EXPECT_SAYS(e, dir.file(name));
    o.attrs = {{"unreadable", std::string("leave-out")}};
    const Split rest = open_dataset("image-folder", o);
    EXPECT_EQ(rest.train->size() + rest.test->size(), images - 1);
    EXPECT_SAYS(lines_of(rest.remarks), "1 of 20 images");
    EXPECT_SAYS(lines_of(rest.remarks), std::to_string(bad) + ".png");
    for (const auto& set : {rest.train, rest.test})
      for (I row = 0; row < set->size(); ++row) EXPECT_NE(set->source(row).file, dir.file(name));
  }
}

TEST(Survey, CountsWhatIsDoubledTornLeakedAndNotFinite) {
  Folder dir;
  Tensor x = empty({6, 2}), y = empty({6}, DType::i64), xt = empty({3, 2}), yt = empty({3}, DType::i64);
  const float train[] = {1, 2, 3, 4, 1, 2, 5, 6, 1, 2, 7, 8}, test[] = {9, 9, 3, 4, 0, 0};
  std::copy_n(train, 12, x.data<float>());
  std::copy_n(test, 6, xt.data<float>());
  for (I i = 0; i < 6; ++i) y.data<I>()[i] = i == 4;
  for (I i = 0; i < 3; ++i) yt.data<I>()[i] = 0;
  xt.data<float>()[5] = std::numeric_limits<float>::infinity();
  formats::save_npy(dir.file("x_train.npy"), x);
  formats::save_npy(dir.file("y_train.npy"), y);
  formats::save_npy(dir.file("x_test.npy"), xt);
  formats::save_npy(dir.file("y_test.npy"), yt);
  I done = 0;
  const Split split = open_dataset("npy", {.dir = dir.str()});
  const Survey s = survey(split, [&](I d, I total) {
    EXPECT_EQ(total, 9);
    return done = d, true;
  });
  EXPECT_EQ(done, 9);
  EXPECT_EQ(s.train.samples, 6);
  EXPECT_EQ(s.test.samples, 3);
  EXPECT_EQ(s.duplicates, 2);
  EXPECT_EQ(s.conflicts, 1);
  EXPECT_EQ(s.leaks, 1);
  EXPECT_EQ(s.test.not_finite, 1);
  EXPECT_EQ(s.train.min, 1);
  EXPECT_EQ(s.train.max, 8);
  EXPECT_DOUBLE_EQ(s.train.mean, 42.0 / 12);
  EXPECT_NEAR(s.train.deviation, std::sqrt(214.0 / 12 - 3.5 * 3.5), 1e-9);
  const std::string lines = lines_of(s.remarks);
  EXPECT_SAYS(lines, "row 2, row 4");
  EXPECT_SAYS(lines, "their targets are not: x_train.npy, row 4");
  EXPECT_SAYS(lines, "what they measure is memory: x_test.npy, row 1");
  EXPECT_EQ(std::count_if(s.remarks.begin(), s.remarks.end(), [](const Remark& r) { return r.id == "not_finite"; }), 1)
      << lines;
  EXPECT_EQ(error_of([&] { survey(split, [](I, I) { return false; }); }), "cancelled");
}

}  // namespace
}  // namespace tenon::data
