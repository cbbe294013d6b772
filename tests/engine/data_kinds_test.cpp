// Every kind of data set, with files made here: what comes out, the same after a resume anywhere, and what damaged
// files say.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "engine/data/csv.h"
#include "engine/data/image.h"
#include "engine/data/iterable.h"
#include "engine/data/loader.h"
#include "engine/data/tabular.h"
#include "engine/data/tokens.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/engine/data_files.h"

namespace tenon::data {
namespace {

using testing_data::make_files;
using testing_data::options_of;
using testing_data::picture;
using testing_data::write_tar;
using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;
using I = int64_t;

std::string batch_bytes(const Batch& b) {
  std::string s(static_cast<const char*>(b.x.raw()), b.x.nbytes());
  s.append(static_cast<const char*>(b.y.raw()), b.y.nbytes());
  for (I r : b.rows) s += " " + std::to_string(r);
  return s;
}

TEST(EveryKind, GivesTheSameBatchesAfterAResumeAnywhereAndFromAnyNumberOfWorkers) {
  for (const DatasetDef& kind : dataset_defs()) {
    SCOPED_TRACE(kind.name);
    Folder dir;
    if (kind.files) make_files(kind.name, dir);
    Options o = options_of(kind, dir);
    for (const char* transforms : {"", "normalise mean=0.1 std=2"}) {
      Split split = open_dataset(kind.name, o);
      if (*transforms && split.train->input().dtype != DType::f32) continue;
      o.transforms = transforms;
      split = open_dataset(kind.name, o);
      ASSERT_GT(split.train->size(), 5);
      ASSERT_GT(split.test->size(), 0);
      LoaderOptions lo{.batch = 4, .workers = 0, .seed = 9};
      std::vector<std::string> want;
      std::set<I> seen;
      Loader plain(split.train, lo);
      const I per_epoch = plain.batches_per_epoch();
      const int total = static_cast<int>(2 * per_epoch + 1);
      for (int i = 0; i < total; ++i) {
        Batch b = plain.next();
        for (I r : b.rows)
          EXPECT_EQ(seen.insert(r).second, i < per_epoch) << "row " << r << ": each comes once in an epoch";
        want.push_back(batch_bytes(b));
      }
      EXPECT_EQ(static_cast<I>(seen.size()), split.train->size());
      EXPECT_NE(want[0], want[static_cast<size_t>(per_epoch)]) << "every epoch has an order of its own";
      for (int workers : {0, 3}) {
        lo.workers = workers;
        Split again = open_dataset(kind.name, o);  // nothing is remembered from before
        Loader l(again.train, lo);
        for (int from : {static_cast<int>(per_epoch) + 1, 2, 0}) {
          l.seek(from / per_epoch, from % per_epoch);
          for (int i = from; i < std::min(total, from + 4); ++i)
            EXPECT_EQ(batch_bytes(l.next()), want[static_cast<size_t>(i)]) << "batch " << i;
        }
      }
      // Targets are what the set says of them.
      Batch b = fetch(*split.test, {0});
      if (split.train->classes() > 0)
        for (I i = 0; i < b.y.numel(); ++i) {
          EXPECT_GE(b.y.data<I>()[i], 0);
          EXPECT_LT(b.y.data<I>()[i], split.train->classes());
        }
    }
  }
}

TEST(EveryKind, SaysWhatIsMissing) {
  for (const DatasetDef& kind : dataset_defs()) {
    if (!kind.files) continue;
    SCOPED_TRACE(kind.name);
    Options o;
    o.dir = "/nowhere/at/all";
    std::string e = error_of([&] { open_dataset(kind.name, o); });
    EXPECT_NE(e, "no error");
    EXPECT_SAYS(e, "/nowhere/at/all");
  }
}

TEST(Csv, ReadsQuotesSeparatorsAndHeaders) {
  Table t = parse_csv("name;size\r\n\"a;b\";1\r\n\"say \"\"hi\"\"\";2\r\n", "t");
  EXPECT_EQ(t.columns, (std::vector<std::string>{"name", "size"}));
  EXPECT_EQ(t.cell(0, 0), "a;b");
  EXPECT_EQ(t.cell(1, 0), "say \"hi\"");
  t = parse_csv("1,2\n3,4", "t");
  EXPECT_EQ(t.columns[0], "column 1");
  EXPECT_EQ(t.rows(), 2);
  t = parse_csv("a\tb\n\"two\nlines\"\t\n", "t");
  EXPECT_EQ(t.cell(0, 0), "two\nlines");
  EXPECT_EQ(t.cell(0, 1), "");
  EXPECT_SAYS(error_of([] { parse_csv("a,b\n1,2,3\n", "t.csv"); }), "t.csv, line 2: it has 3 fields");
  EXPECT_SAYS(error_of([] { parse_csv("a,b\n\"1,2\n3,4\n", "t.csv"); }), "line 2: a quoted field does not end");
  EXPECT_SAYS(error_of([] { parse_csv("a,b\n\"1\"x,2\n", "t.csv"); }), "behind a quoted field");
  EXPECT_SAYS(error_of([] { parse_csv("", "t.csv"); }), "empty");
  EXPECT_SAYS(error_of([] { parse_csv(std::string("a\0b", 3), "t.csv"); }), "zero bytes");
}

TEST(Csv, ColumnsBecomeNumbersByWhatTheTrainingRowsHold) {
  Folder dir;
  std::string text = "size,colour,price,label\n";
  for (int i = 0; i < 50; ++i)
    text += std::to_string(i) +
            (i % 3 == 0   ? ",red,"
             : i % 3 == 1 ? ",blue,"
                          : ",?,") +
            (i == 7 ? "" : std::to_string(i * 2)) + "," + (i % 2 ? "odd" : "even") + "\n";
  write(dir.file("t.csv"), text);
  Options o;
  o.dir = dir.file("t.csv");
  Split s = open_dataset("csv", o);
  EXPECT_EQ(s.train->size() + s.test->size(), 50);
  EXPECT_EQ(s.train->classes(), 2);
  EXPECT_EQ(s.train->class_name(0), "even");
  EXPECT_EQ(to_string(s.train->input().shape), "[4]");  // size, blue, red, price
  std::vector<I> all(static_cast<size_t>(s.train->size()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<I>(i);
  Batch b = fetch(*s.train, all);
  double mean = 0, square = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    double v = static_cast<double>(b.x.data<float>()[i * 4]);
    mean += v, square += v * v;
  }
  EXPECT_NEAR(mean / static_cast<double>(all.size()), 0, 1e-5);
  EXPECT_NEAR(square / static_cast<double>(all.size()), 1, 1e-4);
  o.attrs = {{"label", std::string("price")}};
  write(dir.file("t.csv"), [&] {
    std::string whole = text;
    whole.replace(whole.find("7,blue,,"), 8, "7,blue,1,");
    return whole;
  }());
  s = open_dataset("csv", o);
  EXPECT_EQ(s.train->classes(), 0);
  EXPECT_EQ(s.train->task(), "regression");
  o.attrs = {{"label", std::string("prise")}};
  EXPECT_SAYS(error_of([&] { open_dataset("csv", o); }), "did you mean price");
  write(dir.file("t.csv"), text);
  o.attrs = {{"label", std::string("price")}};
  EXPECT_SAYS(error_of([&] { open_dataset("csv", o); }), "t.csv, line 9");
}

TEST(Images, ReadBackAndRefuseDamage) {
  Image image = picture(3);
  std::string png = png_bytes(image);
  Image back = parse_image(png, "a.png", 3);
  EXPECT_EQ(back.pixels, image.pixels);
  EXPECT_EQ(parse_image(png, "a.png", 1).channels, 1);
  EXPECT_SAYS(error_of([&] { parse_image(png.substr(0, png.size() / 2), "a.png", 3); }), "a.png is damaged");
  EXPECT_SAYS(error_of([] { parse_image("hello", "a.png", 3); }), "is no image of a kind that is read (JPEG, PNG, BMP");
  EXPECT_SAYS(error_of([] { parse_image("\xff\xd8\xff garbage", "a.jpg", 3); }), "a.jpg is damaged");
  // 65500 x 65500 pixels are claimed, and not allocated.
  std::string huge = png;
  for (size_t at : {size_t{16}, size_t{20}})
    huge[at] = 0, huge[at + 1] = 0, huge[at + 2] = static_cast<char>(0xff), huge[at + 3] = static_cast<char>(0xdc);
  EXPECT_NE(error_of([&] { parse_image(huge, "a.png", 3); }), "no error");
  // Twice as large and back is nearly the same where the picture is smooth; a constant stays one.
  std::vector<float> flat(36, 0.5f), large(144), small(9);
  resize_plane(flat.data(), 6, 6, large.data(), 12, 12);
  resize_plane(large.data(), 12, 12, small.data(), 3, 3);
  for (float v : small) EXPECT_FLOAT_EQ(v, 0.5f);
}

TEST(Images, AFolderNamesTheFileThatIsDamaged) {
  Folder dir;
  make_files("image-folder", dir);
  write(dir.file("cats/3.png"), "not an image at all");
  Options o;
  o.dir = dir.str();
  Split s = open_dataset("image-folder", o);
  EXPECT_EQ(s.train->class_name(0), "cats");
  Loader l(s.train, {.batch = 4, .workers = 2, .shuffle = false});
  std::string e = error_of([&] {
    for (int i = 0; i < 10; ++i) l.next();
  });
  EXPECT_SAYS(e, "sample ");
  EXPECT_SAYS(e, "cats/3.png");
  EXPECT_SAYS(e, "data.unreadable = leave-out");
}

/// The definition, word by word: count all pairs, join the most frequent one everywhere, count again.
std::vector<std::pair<uint32_t, uint32_t>> merges_by_definition(std::vector<std::vector<uint32_t>> words,
                                                                I vocabulary) {
  std::vector<std::pair<uint32_t, uint32_t>> merges;
  while (256 + static_cast<I>(merges.size()) < vocabulary) {
    std::map<std::pair<uint32_t, uint32_t>, I> counts;
    for (const auto& w : words)
      for (size_t i = 0; i + 1 < w.size(); ++i) ++counts[{w[i], w[i + 1]}];
    std::pair<uint32_t, uint32_t> best;
    I most = 1;
    for (const auto& [pair, n] : counts)
      if (n > most) best = pair, most = n;
    if (most < 2) break;
    merges.push_back(best);
    for (auto& w : words) {
      std::vector<uint32_t> joined;
      for (size_t i = 0; i < w.size(); ++i) {
        const bool here = i + 1 < w.size() && w[i] == best.first && w[i + 1] == best.second;
        joined.push_back(here ? static_cast<uint32_t>(255 + merges.size()) : w[i]);
        i += here;
      }
      w = joined;
    }
  }
  return merges;
}

TEST(Tokens, MergesAreThoseOfTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const size_t letters = 1 + random() % 4;
    std::string text;
    std::vector<std::vector<uint32_t>> words;
    for (size_t n = random() % 40; n > 0; --n) {
      std::string word = words.empty() ? "" : " ";
      for (size_t i = 1 + random() % 12; i > 0; --i) word += static_cast<char>('a' + random() % letters);
      words.emplace_back(word.begin(), word.end());
      text += word;
    }
    const I vocabulary = 256 + static_cast<I>(random() % 60);
    const Tokenizer t = Tokenizer::train(text, vocabulary);
    ASSERT_EQ(t.merges(), merges_by_definition(words, vocabulary)) << text;
    std::string back;
    for (uint32_t id : t.encode(text)) back += t.text(id);
    ASSERT_EQ(back, text);
  }
  // Doubled again and again: the longest token that a file may have ends it, not an error.
  const Tokenizer doubled = Tokenizer::train(std::string(1 << 19, 'a'), 1000);
  EXPECT_EQ(doubled.vocabulary(), 256 + 16);
  EXPECT_EQ(doubled.encode(std::string(1 << 17, 'a')), (std::vector<uint32_t>{271, 271}));
}

TEST(Tokens, BytesAndPairsComeBack) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the cat and the dog and the bird\n";
  text += std::string("\0\xff end", 6);
  Tokenizer bytes, pairs = Tokenizer::train(text, 270);
  EXPECT_EQ(bytes.vocabulary(), 256);
  EXPECT_EQ(pairs.vocabulary(), 270);
  EXPECT_EQ(Tokenizer::train(text, 270).merges(), pairs.merges());
  for (const Tokenizer* t : {&bytes, &pairs}) {
    std::string back;
    for (uint32_t id : t->encode(text)) back += t->text(id);
    EXPECT_EQ(back, text);
  }
  EXPECT_LT(pairs.encode(text).size() * 2, text.size());
  EXPECT_EQ(Tokenizer::train("ab", 300).vocabulary(), 256);  // no pair occurs twice
  Folder dir;
  TokenFile::write(dir.file("t.tokens"), pairs, text);
  auto file = TokenFile::open(dir.file("t.tokens"));
  auto ids = pairs.encode(text);
  ASSERT_EQ(file->size(), static_cast<I>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(file->at(static_cast<I>(i)), ids[i]);
  std::ifstream in(dir.file("t.tokens"), std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  auto parsed = [](std::string s) {
    return error_of([&] {
      auto f = TokenFile::parse(MappedFile::of(s, "t.tokens"));
      for (I i = 0; i < f->size(); ++i) f->at(i);
    });
  };
  EXPECT_EQ(parsed(whole), "no error");
  EXPECT_SAYS(parsed(whole.substr(0, 10)), "no file of tokens");
  EXPECT_SAYS(parsed(whole.substr(0, whole.size() - 3)), "damaged");
  EXPECT_SAYS(parsed(whole.substr(0, 30)), "damaged");
  std::string bad = whole;
  bad[bad.size() - 1] = '\x7f';
  EXPECT_SAYS(parsed(bad), "of a vocabulary of 270");
  bad = whole;
  std::memset(bad.data() + 24, 0xff, 4);  // a merge of a token that is not there
  EXPECT_SAYS(parsed(bad), "does not exist");
}

TEST(Tokens, ATextIsCutIntoWindowsWhoseTargetsAreTheNextTokens) {
  Folder dir;
  make_files("text", dir);
  Options o;
  o.dir = dir.file("a.txt");
  o.attrs = {{"context", I{16}}, {"cache", dir.file("cache")}};
  Split s = open_dataset("text", o);
  Batch b = fetch(*s.train, {0, 3});
  for (I i = 0; i < 15; ++i) EXPECT_EQ(b.y.data<I>()[i], b.x.data<I>()[i + 1]);
  EXPECT_EQ(b.x.data<I>()[0], 'l');
  EXPECT_EQ(s.train->task(), "language");
  EXPECT_EQ(s.train->bytes_per_token(), 1);
  o.attrs.push_back({"tokenizer", std::string("bpe")});
  o.attrs.push_back({"vocabulary", I{300}});
  s = open_dataset("text", o);
  EXPECT_EQ(s.train->classes(), 300);
  EXPECT_GT(s.train->bytes_per_token(), 1.5);
  // Another text under the same name is another file of tokens.
  write(dir.file("a.txt"), std::string(5000, 'z'));
  EXPECT_EQ(
      fetch(*open_dataset("text", {.dir = o.dir, .attrs = {{"context", I{16}}, {"cache", dir.file("cache")}}}).train,
            {0})
          .x.data<I>()[0],
      'z');
  o.attrs = {{"context", I{100000}}, {"cache", dir.file("cache")}};
  EXPECT_SAYS(error_of([&] { open_dataset("text", o); }), "too few for windows of 100000");
}

TEST(WebDataset, IsReadAsAStreamAndNamesWhatIsDamaged) {
  Folder dir;
  make_files("webdataset", dir);
  Options o;
  o.dir = dir.str();
  o.attrs = {{"window", I{4}}};
  Split s = open_dataset("webdataset", o);
  EXPECT_EQ(s.train->size(), 27);
  EXPECT_EQ(s.test->size(), 9);
  EXPECT_EQ(s.train->classes(), 3);
  const auto* stream = dynamic_cast<const IterableDataset*>(s.train.get());
  ASSERT_TRUE(stream);
  Loader l(s.train, {.batch = 3, .workers = 0});
  for (int i = 0; i < 9; ++i) l.next();
  EXPECT_EQ(stream->reads(), 27) << "an epoch reads every sample once";
  EXPECT_NE(s.train->order(1, 0), s.train->order(1, 1));
  EXPECT_EQ(s.train->order(1, 1), s.train->order(1, 1));
  write_tar(dir.file("part-0.tar"), {{"a.png", png_bytes(picture(1))}, {"b.cls", "1"}}, false);
  EXPECT_SAYS(error_of([&] { open_dataset("webdataset", o); }), "sample a has no class");
  write_tar(dir.file("part-0.tar"), {{"a.png", png_bytes(picture(1))}, {"a.cls", "one"}}, false);
  EXPECT_SAYS(error_of([&] { open_dataset("webdataset", o); }), "class \"one\" is no number");
  write(dir.file("part-0.tar"), "this is no archive");
  EXPECT_SAYS(error_of([&] { open_dataset("webdataset", o); }), "part-0.tar");
}

TEST(Cifar10, RefusesWhatIsNoRecord) {
  Folder dir;
  make_files("cifar10", dir);
  Options o;
  o.dir = dir.str();
  Split s = open_dataset("cifar10", o);
  EXPECT_EQ(s.train->size(), 30);
  EXPECT_EQ(s.train->class_name(3), "cat");
  write(dir.file("data_batch_1.bin"), std::string(3073, '\x0b'));
  EXPECT_SAYS(error_of([&] { open_dataset("cifar10", o); }), "label 11 of image 0");
  write(dir.file("data_batch_1.bin"), "short");
  EXPECT_SAYS(error_of([&] { open_dataset("cifar10", o); }), "no multiple of 3073");
}

}  // namespace
}  // namespace tenon::data
