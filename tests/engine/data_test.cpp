#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "core/error.h"
#include "engine/data/idx.h"
#include "engine/data/loader.h"
#include "tests/engine/files.h"

namespace tenon::data {
namespace {

using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;

std::string idx_bytes(std::vector<uint32_t> sizes, const std::string& values, uint8_t type = 8) {
  std::string s = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (uint32_t n : sizes)
    for (int shift : {24, 16, 8, 0}) s += static_cast<char>(n >> shift);
  return s + values;
}
void write_gz(const std::string& path, const std::string& bytes) {
  gzFile f = gzopen(path.c_str(), "wb");
  gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(f);
}

TEST(Idx, ReadsPlainAndGzipped) {
  Folder dir;
  write(dir.file("a"), idx_bytes({2, 3}, "abcdef"));
  write_gz(dir.file("b.gz"), idx_bytes({2, 3}, "abcdef"));
  for (const char* name : {"a", "b.gz", "a.gz", "b"}) {  // either name finds either form
    Idx idx = read_idx(dir.file(name), 2);
    EXPECT_EQ(to_string(idx.shape), "[2, 3]");
    EXPECT_EQ(std::string(idx.values.begin(), idx.values.end()), "abcdef");
  }
}

TEST(Idx, AHeaderOfAnyTypeIsRead) {
  const IdxHeader h = idx_header(idx_bytes({2, 3}, std::string(24, 'x'), 0x0d), "floats");
  EXPECT_EQ(h.dtype, "f32");
  EXPECT_EQ(h.shape, (std::vector<int64_t>{2, 3}));
  for (const std::string& bad : {std::string("\0\0\x0d", 3), idx_bytes({2, 3}, "short", 0x0d), idx_bytes({2}, "ab", 10),
                                 idx_bytes({~0u, ~0u, ~0u}, "ab", 14), idx_bytes({2}, "ab", 7)})
    EXPECT_TRUE(error_of([&] { idx_header(bad, "floats"); }).starts_with("floats is ")) << bad.size();
}

TEST(Idx, ErrorsNameTheFileAndTheBytes) {
  Folder dir;
  std::string e = error_of([&] { read_idx(dir.file("none.gz"), 1); });
  EXPECT_SAYS(e, "cannot open " + dir.file("none.gz"));
  write(dir.file("short"), idx_bytes({10}, "abc"));
  e = error_of([&] { read_idx(dir.file("short"), 1); });
  EXPECT_SAYS(e, dir.file("short") + " is cut short: it holds 11 of 18 bytes");
  write(dir.file("long"), idx_bytes({2}, "abc"));
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("long"), 1); }), "more than the 10 bytes");
  write(dir.file("header"), std::string("\0\0\x08\x01\0", 5));
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("header"), 1); }), "ends after 5 bytes");
  write(dir.file("axes"), idx_bytes({2, 2}, "abcd"));
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("axes"), 3); }), "0x00000802");
  write(dir.file("text"), "hello, this is no data set");
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("text"), 3); }), "is no IDX file");
  write(dir.file("empty"), "");
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("empty"), 1); }), "ends after 0 bytes");
  write(dir.file("huge"), idx_bytes({4000000000u, 4000000000u, 1}, "abcd"));
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("huge"), 3); }), "damaged");
  write(dir.file("claims"), idx_bytes({1000000000u, 900}, "abcd"));  // 900 GB are claimed, not allocated
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("claims"), 2); }), "cut short");
  EXPECT_SAYS(error_of([&] { read_idx(dir.str(), 1); }), "folder");
  // A gzip stream cut in its middle, and one with a flipped byte.
  std::string big(100000, 'x');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * i % 251);
  write_gz(dir.file("whole.gz"), idx_bytes({100000}, big));
  std::ifstream in(dir.file("whole.gz"), std::ios::binary);
  std::string packed((std::istreambuf_iterator<char>(in)), {});
  write(dir.file("cut.gz"), packed.substr(0, packed.size() / 2));
  EXPECT_SAYS(error_of([&] { read_idx(dir.file("cut.gz"), 1); }), "cut short");
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
  write(dir.file("flipped.gz"), packed);
  e = error_of([&] { read_idx(dir.file("flipped.gz"), 1); });
  EXPECT_NE(e, "no error");
  EXPECT_SAYS(e, dir.file("flipped.gz"));
}

void write_images(const Folder& dir, const char* prefix, int n, int side) {
  std::string pixels, labels;
  for (int i = 0; i < n; ++i) {
    labels += static_cast<char>(i % 10);
    for (int p = 0; p < side * side; ++p) pixels += static_cast<char>((i * 31 + p) % 256);
  }
  write_gz(dir.file(std::string(prefix) + "-images-idx3-ubyte.gz"),
           idx_bytes({static_cast<uint32_t>(n), static_cast<uint32_t>(side), static_cast<uint32_t>(side)}, pixels));
  write_gz(dir.file(std::string(prefix) + "-labels-idx1-ubyte.gz"), idx_bytes({static_cast<uint32_t>(n)}, labels));
}

TEST(FashionMnist, ReadsFourFilesAndNormalises) {
  Folder dir;
  write_images(dir, "train", 12, 4);
  write_images(dir, "t10k", 5, 4);
  Options o;
  o.dir = dir.str();
  Split s = open_dataset("fashion-mnist", o);
  EXPECT_EQ(s.train->size(), 12);
  EXPECT_EQ(s.test->size(), 5);
  EXPECT_EQ(s.train->classes(), 10);
  EXPECT_EQ(s.train->class_name(7), "Sneaker");
  Batch b = fetch(*s.train, {11, 3});
  EXPECT_EQ(to_string(b.x.size()), "[2, 1, 4, 4]");
  EXPECT_EQ(b.y.data<int64_t>()[0], 1);
  EXPECT_NEAR(b.x.data<float>()[5], ((11 * 31 + 5) % 256 / 255.0 - 0.2860) / 0.3530, 1e-6);
  EXPECT_NEAR(b.x.data<float>()[16], (3 * 31 / 255.0 - 0.2860) / 0.3530, 1e-6);
  EXPECT_SAYS(error_of([&] { fetch(*s.train, {12}); }), "row 12");
  std::filesystem::remove(dir.file("t10k-labels-idx1-ubyte.gz"));
  EXPECT_SAYS(error_of([&] { open_dataset("fashion-mnist", o); }), dir.file("t10k-labels-idx1-ubyte.gz"));
  write_gz(dir.file("t10k-labels-idx1-ubyte.gz"), idx_bytes({5}, std::string("\0\1\2\3\x0b", 5)));
  EXPECT_SAYS(error_of([&] { open_dataset("fashion-mnist", o); }), "label 11 of row 4");
  write_gz(dir.file("t10k-labels-idx1-ubyte.gz"), idx_bytes({4}, std::string("\0\1\2\3", 4)));
  EXPECT_SAYS(error_of([&] { open_dataset("fashion-mnist", o); }), "4 labels for 5 images");
  o.dir = dir.file("nowhere");
  EXPECT_SAYS(error_of([&] { open_dataset("fashion-mnist", o); }), dir.file("nowhere"));
  EXPECT_SAYS(error_of([&] { open_dataset("fashion-mnst", o); }), "fashion-mnist");
}

TEST(Spirals, ArePureAndCanBeSpoilt) {
  Options o;
  o.seed = 3;
  o.attrs = {{"samples", int64_t{50}}, {"noise", 0.05}};
  Split a = open_dataset("spirals", o), b = open_dataset("spirals", o);
  EXPECT_EQ(a.train->size(), 50);
  Batch x = fetch(*a.train, {7, 8}), y = fetch(*b.train, {7, 8});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(x.x.data<float>()[i], y.x.data<float>()[i]);
  EXPECT_NE(x.y.data<int64_t>()[0], x.y.data<int64_t>()[1]);
  o.nan_sample = 7;
  o.nan_value_index = 1;
  Split bad = open_dataset("spirals", o);
  Batch z = fetch(*bad.train, {8, 7});
  EXPECT_FALSE(std::isnan(z.x.data<float>()[0]) || std::isnan(z.x.data<float>()[1]) ||
               std::isnan(z.x.data<float>()[2]));
  EXPECT_TRUE(std::isnan(z.x.data<float>()[3]));
  EXPECT_EQ(z.x.data<float>()[2], x.x.data<float>()[0]);
  o.nan_sample = 50;
  EXPECT_SAYS(error_of([&] { open_dataset("spirals", o); }), "data.nan_sample = 50");
  o.nan_sample = 1;
  o.nan_value_index = 2;
  EXPECT_SAYS(error_of([&] { open_dataset("spirals", o); }), "data.nan_value_index = 2");
}

TEST(EpochOrder, IsAPermutationThatEveryEpochChanges) {
  auto a = epoch_order(1000, 1, 0), b = epoch_order(1000, 1, 1), c = epoch_order(1000, 2, 0);
  EXPECT_EQ(a, epoch_order(1000, 1, 0));
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(std::set<int64_t>(a.begin(), a.end()).size(), 1000u);
  // No row keeps a favoured place: over many epochs the first one is spread evenly (chi square of 10 bins, 9 degrees, p
  // = 0.001: 27.9).
  std::vector<double> bins(10);
  for (int64_t e = 0; e < 2000; ++e) ++bins[static_cast<size_t>(epoch_order(10, 9, e)[0])];
  double chi = 0;
  for (double n : bins) chi += (n - 200) * (n - 200) / 200;
  EXPECT_LT(chi, 27.9);
}

std::vector<std::vector<int64_t>> take(Loader& l, int n) {
  std::vector<std::vector<int64_t>> out;
  for (int i = 0; i < n; ++i) out.push_back(l.next().rows);
  return out;
}

std::shared_ptr<const Dataset> points(int64_t n) {
  Options o;
  o.attrs = {{"samples", n}};
  return open_dataset("spirals", o).train;
}

TEST(Loader, OrderDoesNotDependOnWorkersAndResumesAnywhere) {
  auto set = points(103);
  Loader plain(set, {.batch = 10, .workers = 0});
  auto want = take(plain, 30);
  EXPECT_EQ(plain.batches_per_epoch(), 11);
  EXPECT_EQ(want[10].size(), 3u);
  EXPECT_EQ(plain.epoch(), 2);
  EXPECT_EQ(plain.index(), 8);
  for (int workers : {1, 3}) {
    Loader l(set, {.batch = 10, .workers = workers, .prefetch = 5});
    EXPECT_EQ(take(l, 30), want);
    for (int from : {29, 0, 11, 10, 7, 7}) {  // forward and back, the ends of epochs too
      l.seek(from / 11, from % 11);
      EXPECT_EQ(take(l, 30 - from), std::vector(want.begin() + from, want.end()));
    }
  }
  Loader ordered(set, {.batch = 50, .workers = 1, .shuffle = false, .drop_last = true});
  EXPECT_EQ(ordered.batches_per_epoch(), 2);
  auto rows = take(ordered, 3);
  EXPECT_EQ(rows[1].front(), 50);
  EXPECT_EQ(rows[1].back(), 99);
  EXPECT_EQ(rows[2].front(), 0);
  EXPECT_SAYS(error_of([&] { Loader(set, {.batch = 0}); }), "data.batch_size = 0");
  EXPECT_SAYS(error_of([&] { Loader(set, {.batch = 104}); }), "103 samples");
}

class Faulty : public Dataset {
 public:
  mutable std::atomic<bool> broken{true};
  int64_t size() const override { return 40; }
  Meta input() const override { return {DType::f32, {}, {1}}; }
  Meta target() const override { return {DType::f32, {}, {1}}; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      if (broken && rows[i] == 23) throw std::runtime_error("the disk is gone");
      static_cast<float*>(x)[i] = static_cast<float*>(y)[i] = static_cast<float>(rows[i]);
    }
  }
};

TEST(Loader, AWorkersErrorNamesTheSampleAndCanBeTriedAgain) {
  for (int workers : {0, 2}) {
    auto set = std::make_shared<Faulty>();
    Loader l(set, {.batch = 10, .workers = workers, .shuffle = false});
    l.next();
    l.next();
    std::string e = error_of([&] { l.next(); });
    EXPECT_SAYS(e, "sample 23");
    EXPECT_SAYS(e, "batch 2 of epoch 0");
    EXPECT_SAYS(e, "the disk is gone");
    set->broken = false;
    l.seek(0, 2);
    EXPECT_EQ(l.next().rows.front(), 20);
  }
}

}  // namespace
}  // namespace tenon::data
