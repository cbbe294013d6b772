#include "engine/formats/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/tensor_bytes.h"
#include "engine/formats/model_file.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

using testing_words::message_of;

template <class T>
std::string gguf_le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
std::string gguf_text(const std::string& s) { return gguf_le<uint64_t>(s.size()) + s; }
std::string key_value(const std::string& key, uint32_t type, const std::string& value) {
  return gguf_text(key) + gguf_le(type) + value;
}
std::string text_value(const std::string& key, const std::string& value) { return key_value(key, 8, gguf_text(value)); }
std::string gguf_info(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  std::string out = gguf_text(name) + gguf_le(static_cast<uint32_t>(dims.size()));
  for (uint64_t d : dims) out += gguf_le(d);
  return out + gguf_le(type) + gguf_le(offset);
}

/// A file by hand: what it counts is what it has, unless a test says otherwise.
struct HandMade {
  uint32_t version = 3;
  std::vector<std::string> values = {text_value("general.architecture", "tenon")};
  std::vector<std::string> infos = {};
  std::string data = {};
  size_t alignment = 32;
  std::string bytes() const {
    std::string out = "GGUF" + gguf_le(version) + gguf_le<uint64_t>(infos.size()) + gguf_le<uint64_t>(values.size());
    for (const std::string& v : values) out += v;
    for (const std::string& i : infos) out += i;
    out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
    return out + data;
  }
  Gguf parsed() const { return Gguf::parse(MappedFile::of(bytes(), "m.gguf")); }
  std::string refusal() const {
    return message_of([&] { parsed(); });
  }
};

void expect_refused(const HandMade& file, const std::string& part) {
  const std::string said = file.refusal();
  EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_NE(said.find("m.gguf"), std::string::npos) << said;
}

std::string gguf_floats(std::initializer_list<float> v) {
  return {reinterpret_cast<const char*>(v.begin()), v.size() * sizeof(float)};
}

TEST(GgufFile, metadata_of_every_type_is_said_and_long_lists_are_short) {
  std::string numbers = gguf_le<uint32_t>(5) + gguf_le<uint64_t>(1000),
              words = gguf_le<uint32_t>(8) + gguf_le<uint64_t>(9);
  for (int32_t i = 0; i < 1000; ++i) numbers += gguf_le(i);
  for (int i = 0; i < 9; ++i) words += gguf_text("w" + std::to_string(i));
  HandMade file;
  file.values = {key_value("a", 0, gguf_le<uint8_t>(200)),
                 key_value("b", 1, gguf_le<int8_t>(-3)),
                 key_value("c", 2, gguf_le<uint16_t>(60000)),
                 key_value("d", 3, gguf_le<int16_t>(-300)),
                 key_value("e", 4, gguf_le<uint32_t>(4000000000u)),
                 key_value("f", 5, gguf_le<int32_t>(-70000)),
                 key_value("g", 6, gguf_le(0.25f)),
                 key_value("h", 7, gguf_le<uint8_t>(1)),
                 text_value("i", "words"),
                 key_value("j", 9, numbers),
                 key_value("k", 9, words),
                 key_value("l", 10, gguf_le<uint64_t>(1)),
                 key_value("m", 11, gguf_le<int64_t>(-5000000000)),
                 key_value("n", 12, gguf_le(1e300)),
                 key_value("o", 9, gguf_le<uint32_t>(6) + gguf_le<uint64_t>(0))};
  const Gguf g = file.parsed();
  const std::vector<std::pair<std::string, std::string>> want = {
      {"a", "200"},
      {"b", "-3"},
      {"c", "60000"},
      {"d", "-300"},
      {"e", "4000000000"},
      {"f", "-70000"},
      {"g", "0.25"},
      {"h", "true"},
      {"i", "words"},
      {"j", "[0, 1, 2, 3, 4, 5, 6, 7, ... 1000 in all]"},
      {"k", "[w0, w1, w2, w3, w4, w5, w6, w7, ... 9 in all]"},
      {"l", "1"},
      {"m", "-5000000000"},
      {"n", "1e+300"},
      {"o", "[]"}};
  EXPECT_EQ(g.metadata(), want);
  EXPECT_EQ(g.version(), 3u);
  EXPECT_EQ(g.alignment(), 32u);
}

TEST(GgufFile, shapes_are_said_as_pytorch_says_them_and_values_lie_where_they_should) {
  HandMade file;
  file.version = 2;
  file.alignment = 64;
  file.values.push_back(key_value("general.alignment", 4, gguf_le<uint32_t>(64)));
  file.infos = {gguf_info("fc.weight", {3, 2}, 0, 0), gguf_info("fc.bias", {2}, 28, 64)};
  file.data = gguf_floats({1, 2, 3, 4, 5, 6}) + std::string(40, '\0') + gguf_le(0.5) + gguf_le(-0.5);
  const Gguf g = file.parsed();
  EXPECT_EQ(g.version(), 2u);
  ASSERT_EQ(g.entries().size(), 2u);
  EXPECT_EQ(g.entries()[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(g.entries()[0].dtype(), "F32");
  const Tensor weight = g.tensor(g.entries()[0]), bias = g.tensor(g.entries()[1]);
  EXPECT_EQ(value_at(weight, {0, 2}), 3);
  EXPECT_EQ(value_at(weight, {1, 0}), 4);
  EXPECT_EQ(bias.dtype(), DType::f64);
  EXPECT_EQ(value_at(bias, {1}), -0.5);
}

TEST(GgufFile, quantized_rows_become_floats_when_they_are_looked_at) {
  HandMade file;
  file.infos = {gguf_info("w", {64, 2}, 8, 0), gguf_info("x", {256}, 16, 160)};
  for (int block = 0; block < 4; ++block) {
    file.data += gguf_le<uint16_t>(0x3c00);  // 1 as a half
    for (int i = 0; i < 32; ++i) file.data += static_cast<char>(block * 32 + i - 64);
  }
  file.data += std::string(24 + 66, '\0');
  const auto m = ModelFile::parse(MappedFile::of(file.bytes(), "m.gguf"));
  EXPECT_EQ(m->kind, FileKind::gguf);
  ASSERT_EQ(m->facts.size(), 3u);
  EXPECT_EQ(m->facts[2].text(), "tenon");
  ASSERT_EQ(m->tensors.size(), 2u);
  EXPECT_EQ(m->tensors[0].dtype, "Q8_0");
  EXPECT_EQ(m->tensors[0].bytes, 136u);
  EXPECT_EQ(m->tensors[0].shape, (std::vector<int64_t>{2, 64}));
  const Tensor w = m->tensor(0);
  EXPECT_EQ(w.dtype(), DType::f32);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(value_at(w, {row, i}), static_cast<double>(row * 64 + i - 64));
  // A type without a decoder is listed, and says so.
  EXPECT_EQ(m->tensors[1].dtype, "IQ2_XXS");
  EXPECT_EQ(m->tensors[1].bytes, 66u);
  EXPECT_NE(message_of([&] { m->tensor(1); }).find("IQ2_XXS"), std::string::npos);
}

TEST(GgufFile, a_type_of_a_later_ggml_is_listed_and_hides_nothing_else) {
  HandMade file;
  file.infos = {gguf_info("new", {8}, 999, 0), gguf_info("old", {2}, 0, 32)};
  file.data = std::string(32, '\0') + gguf_floats({7, 8});
  const auto m = ModelFile::parse(MappedFile::of(file.bytes(), "m.gguf"));
  EXPECT_EQ(m->tensors[0].dtype, "type 999");
  EXPECT_NE(m->tensors[0].problem.find("999"), std::string::npos);
  EXPECT_EQ(value_at(m->tensor(1), {1}), 8);
}

TEST(GgufFile, a_part_of_a_split_model_says_that_it_is_one) {
  HandMade file;
  file.values.push_back(key_value("split.count", 2, gguf_le<uint16_t>(3)));
  const auto m = ModelFile::parse(MappedFile::of(file.bytes(), "m.gguf"));
  ASSERT_EQ(m->warnings.size(), 1u);
  EXPECT_NE(m->warnings[0].find("3 files"), std::string::npos);
}

TEST(GgufFile, what_is_damaged_is_named) {
  const std::string one = gguf_info("w", {2}, 0, 0), four = gguf_floats({1, 2});
  HandMade good;
  good.infos = {one}, good.data = four;
  EXPECT_EQ(good.refusal(), "no error");

  HandMade f = good;
  f.version = 1;
  expect_refused(f, "version 1");
  f.version = 0x03000000;
  expect_refused(f, "big-endian");
  f.version = 4;
  expect_refused(f, "version 4");
  f = good, f.data.pop_back();
  expect_refused(f, "cut short");
  f = good, f.infos = {one, one};
  expect_refused(f, "twice");
  f = good, f.values.push_back(f.values[0]);
  expect_refused(f, "twice");
  f = good, f.infos = {gguf_info("w", {2}, 0, 4)};
  expect_refused(f, "alignment");
  f = good, f.infos = {gguf_info("w", {2}, 0, uint64_t{1} << 63)};
  expect_refused(f, "cut short");
  f = good, f.infos = {one, gguf_info("v", {1}, 0, 0)};
  expect_refused(f, "inside another's");
  f = good, f.infos = {gguf_info("w", {1, 1, 1, 1, 2}, 0, 0)};
  expect_refused(f, "5 dimensions");
  f = good, f.infos = {gguf_info("w", {UINT64_MAX}, 0, 0)};
  expect_refused(f, "size");
  f = good, f.infos = {gguf_info("w", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0)};
  expect_refused(f, "cannot be counted");
  f = good, f.infos = {gguf_info("w", {33}, 8, 0)};
  expect_refused(f, "no whole blocks");
  for (uint32_t alignment : {0u, 3u, 48u}) {
    f = good, f.values.push_back(key_value("general.alignment", 4, gguf_le(alignment)));
    expect_refused(f, "alignment");
  }
  f = good, f.values.push_back(key_value("general.alignment", 8, gguf_text("32")));
  expect_refused(f, "alignment");
  f = good, f.values.push_back(key_value("x", 13, ""));
  expect_refused(f, "type 13");
  f = good, f.values.push_back(key_value("x", 9, gguf_le<uint32_t>(9) + gguf_le<uint64_t>(1)));
  expect_refused(f, "type 9");
  f = good, f.values.push_back(key_value("x", 9, gguf_le<uint32_t>(4) + gguf_le<uint64_t>(uint64_t{1} << 62)));
  expect_refused(f, "cut short");
  f = good, f.values.push_back(key_value("x", 9, gguf_le<uint32_t>(0) + gguf_le<uint64_t>(UINT64_MAX)));
  expect_refused(f, "cut short");
  f = good, f.values.push_back(key_value("x", 8, gguf_le<uint64_t>(UINT64_MAX)));
  expect_refused(f, "cut short");
  f = good, f.values.push_back(text_value(std::string(70000, 'k'), ""));
  expect_refused(f, "70000");
}

TEST(GgufFile, a_file_cut_anywhere_is_an_error) {
  HandMade file;
  file.infos = {gguf_info("w", {2}, 0, 0)};
  file.data = gguf_floats({1, 2});
  const std::string all = file.bytes();
  for (size_t n = 0; n < all.size(); ++n)
    EXPECT_THROW(Gguf::parse(MappedFile::of(all.substr(0, n), "m.gguf")), Error) << n;
}

TEST(GgufFile, counts_that_no_file_could_hold_allocate_nothing) {
  for (int which : {8, 16}) {
    std::string bytes = HandMade().bytes();
    bytes.replace(static_cast<size_t>(which), 8, gguf_le(UINT64_MAX));
    const std::string said = message_of([&] { Gguf::parse(MappedFile::of(bytes, "m.gguf")); });
    EXPECT_NE(said, "no error") << which;
  }
}

struct GgufWritten : ::testing::Test {
  std::string path = (std::filesystem::temp_directory_path() / "tenon_gguf_XXXXXX").string();
  void SetUp() override {
    const int fd = mkstemp(path.data());
    ASSERT_GE(fd, 0);
    close(fd);
  }
  void TearDown() override { std::filesystem::remove(path); }
};

TEST_F(GgufWritten, every_dtype_and_shape_comes_back_to_the_bit) {
  NamedTensors all;
  for (int k = 0; k < kDTypes; ++k) {
    const auto dtype = static_cast<DType>(k);
    if (dtype == DType::boolean || dtype == DType::u8) continue;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 5}, Shape{2, 3, 4, 5}}) {
      Tensor t = empty(shape, dtype);
      for (size_t i = 0; i < t.nbytes(); ++i) static_cast<unsigned char*>(t.raw())[i] = static_cast<uint8_t>(i * 7);
      all.emplace_back("t" + std::to_string(all.size()), t);
    }
  }
  Tensor square = empty({2, 3}, DType::i32);
  for (int i = 0; i < 6; ++i) square.data<int32_t>()[i] = i;
  all.emplace_back("turned", transpose(square, 0, 1));
  save_gguf(path, all,
            {{"general.architecture", std::string("tenon")},
             {"a.count", uint32_t{7}},
             {"a.rate", 0.5f},
             {"a.flag", true},
             {"a.words", std::vector<std::string>{"x", "y"}},
             {"a.kinds", std::vector<int32_t>{1, -2}}});
  const Gguf back = Gguf::open(path);
  ASSERT_EQ(back.entries().size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Tensor t = back.tensor(back.entries()[i]);
    std::vector<char> one, other;
    EXPECT_EQ(back.entries()[i].name, all[i].first);
    ASSERT_EQ(t.size(), all[i].second.size()) << all[i].first;
    ASSERT_EQ(t.dtype(), all[i].second.dtype()) << all[i].first;
    EXPECT_EQ(logical_bytes(t, one), logical_bytes(all[i].second, other)) << all[i].first;
  }
  const std::vector<std::pair<std::string, std::string>> want = {{"general.architecture", "tenon"},
                                                                 {"a.count", "7"},
                                                                 {"a.rate", "0.5"},
                                                                 {"a.flag", "true"},
                                                                 {"a.words", "[x, y]"},
                                                                 {"a.kinds", "[1, -2]"}};
  EXPECT_EQ(back.metadata(), want);
}

TEST_F(GgufWritten, what_ggml_has_no_place_for_is_refused_and_leaves_no_file) {
  std::filesystem::remove(path);
  auto refused = [&](const NamedTensors& all) { return message_of([&] { save_gguf(path, all, {}); }); };
  EXPECT_NE(refused({{"mask", zeros({2}, DType::boolean)}}).find("mask"), std::string::npos);
  EXPECT_NE(refused({{"deep", zeros({1, 1, 1, 1, 1})}}).find("5 dimensions"), std::string::npos);
  EXPECT_NE(refused({{std::string(64, 'n'), zeros({1})}}).find("64 bytes"), std::string::npos);
  EXPECT_NE(refused({{"a", zeros({1})}, {"a", zeros({1})}}).find("twice"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tenon::formats
