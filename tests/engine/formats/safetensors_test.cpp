#include "engine/formats/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

std::string safetensors_file(const std::string& header, size_t data, uint64_t claimed = 0) {
  const uint64_t n = claimed ? claimed : header.size();
  std::string out(reinterpret_cast<const char*>(&n), 8);
  out += header;
  for (size_t i = 0; i < data; ++i) out += static_cast<char>(i);
  return out;
}
Safetensors parse(const std::string& bytes) { return Safetensors::parse(MappedFile::of(bytes, "a.safetensors")); }
std::string refusal(const std::string& bytes) {
  return testing_words::message_of([&] { parse(bytes); });
}
void expect_says(const std::string& bytes, const std::string& part) {
  EXPECT_NE(refusal(bytes).find(part), std::string::npos) << "\"" << part << "\" is not in: " << refusal(bytes);
}
struct Path {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tenon-safetensors-" + std::to_string(::getpid()))).string();
  ~Path() { std::filesystem::remove(path); }
};

TEST(Safetensors, every_dtype_and_shape_survives) {
  Path at;
  NamedTensors all;
  for (int k = 0; k < kDTypes; ++k)
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 5}, Shape{1, 2, 3, 4, 5}}) {
      Tensor t = empty(shape, static_cast<DType>(k));
      for (size_t i = 0; i < t.nbytes(); ++i)
        static_cast<unsigned char*>(t.raw())[i] = static_cast<unsigned char>(k == 0 ? i % 2 : i * 7 + 1);
      all.emplace_back(std::string(name(t.dtype())) + to_string(shape), t);
    }
  save_safetensors(at.path, all, {{"format", "pt"}, {"made \"by\"", "me\n"}});
  const Safetensors s = Safetensors::open(at.path);
  ASSERT_EQ(s.entries().size(), all.size());
  EXPECT_EQ(s.metadata(),
            (std::vector<std::pair<std::string, std::string>>{{"format", "pt"}, {"made \"by\"", "me\n"}}));
  for (const auto& [name, t] : all) {
    const Tensor back = s.tensor(name);
    ASSERT_EQ(back.dtype(), t.dtype()) << name;
    ASSERT_EQ(back.size(), t.size()) << name;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(back.raw()) % itemsize(t.dtype()), 0u);
    if (t.nbytes()) {
      ASSERT_EQ(std::memcmp(back.raw(), t.raw(), t.nbytes()), 0) << name;
    }
  }
}

TEST(Safetensors, the_bytes_are_the_references) {
  Path at;
  Tensor a = empty({4}), z = empty({2, 2}, DType::f16);
  std::memset(a.raw(), 0, 16);
  std::memset(z.raw(), 0, 8);
  save_safetensors(at.path, {{"z", z}, {"a", a}});
  const std::string bytes = read_file(at.path);
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"z":{"dtype":"F16","shape":[2,2],"data_offsets":[16,24]}})";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.size() % 8, 0u);
}

TEST(Safetensors, views_are_written_in_logical_order_and_a_name_twice_is_refused) {
  Path at;
  Tensor t = empty({2, 3}, DType::i32);
  for (int i = 0; i < 6; ++i) t.data<int32_t>()[i] = i;
  save_safetensors(at.path, {{"t", view_of(t, t.layout().transpose(0, 1))}});
  const Tensor back = Safetensors::open(at.path).tensor("t");
  EXPECT_EQ(back.size(), (Shape{3, 2}));
  EXPECT_EQ(value_at(back, {2, 0}), 2);
  EXPECT_EQ(value_at(back, {0, 1}), 3);
  EXPECT_THROW(save_safetensors(at.path, {{"t", t}, {"t", t}}), Error);
  EXPECT_EQ(Safetensors::open(at.path).entries().size(), 1u) << "the old file is still there";
}

TEST(Safetensors, tensors_are_windows_that_outlive_the_reader_and_never_write_to_the_file) {
  Path at;
  Tensor t = empty({1000});
  for (int i = 0; i < 1000; ++i) t.data<float>()[i] = static_cast<float>(i);
  save_safetensors(at.path, {{"t", t}});
  const std::string before = read_file(at.path);
  Tensor back = Safetensors::open(at.path).tensor("t");
  EXPECT_EQ(value_at(back, {999}), 999);
  back.data<float>()[0] = -1;
  EXPECT_EQ(value_at(back, {0}), -1);
  EXPECT_EQ(read_file(at.path), before);
}

TEST(Safetensors, what_the_reference_accepts) {
  EXPECT_TRUE(parse(safetensors_file("{}", 0)).entries().empty());
  EXPECT_TRUE(parse(safetensors_file("{\"__metadata__\":{}}   ", 0)).entries().empty());
  // Unaligned data, a further key, offsets in another order than the names.
  const Safetensors s = parse(safetensors_file(
      R"({"b":{"data_offsets":[1,9],"shape":[2],"dtype":"F32","note":"x"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      9));
  EXPECT_EQ(s.entries()[0].name, "a");
  const Tensor b = s.tensor("b");
  const unsigned char* bytes = static_cast<const unsigned char*>(b.raw());
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[7], 8);
  // A bool that is neither 0 nor 1 is one that holds.
  EXPECT_EQ(
      value_at(parse(safetensors_file(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3)).tensor("a"),
               {2}),
      1);
  // Types the engine lacks are listed, and only reading one is an error.
  const Safetensors u = parse(safetensors_file(
      R"({"a":{"dtype":"U32","shape":[2],"data_offsets":[0,8]},"f":{"dtype":"F4","shape":[4],"data_offsets":[8,10]}})",
      10));
  EXPECT_EQ(u.entries()[1].dtype, "F4");
  EXPECT_THROW(u.tensor("a"), Error);
  EXPECT_THROW(u.tensor("nothing"), Error);
}

TEST(Safetensors, bad_files_are_named_not_crashed_on) {
  auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]}}";
  };
  const std::string good = safetensors_file(entry("F32", "2", "0,8"), 8);
  EXPECT_EQ(refusal(good), "no error");
  for (size_t keep = 0; keep < good.size(); ++keep) EXPECT_NE(refusal(good.substr(0, keep)), "no error") << keep;
  expect_says(good + "x", "1 bytes after its last tensor");
  expect_says(safetensors_file("{}", 0, uint64_t{10} << 30), "at most 100000000");
  expect_says(safetensors_file("{}", 0, 99'000'000), "cut short");
  expect_says(safetensors_file("{}", 0, UINT64_MAX), "at most");
  expect_says(safetensors_file(" {}", 0), "does not begin with {");
  expect_says(safetensors_file("{]", 0), "no JSON");
  expect_says(safetensors_file("{\"\xff\":1}", 0), "no JSON");
  expect_says(safetensors_file(entry("F33", "2", "0,8"), 8), "F33");
  expect_says(safetensors_file(entry("F32", "3", "0,8"), 8), "needs 12 bytes");
  expect_says(safetensors_file(entry("F32", "2", "0,80"), 8), "there are 8 bytes of data");
  expect_says(safetensors_file(entry("F32", "2", "8,0"), 8), "before it begins");
  expect_says(safetensors_file(entry("F32", "2", "8,16"), 16), "hole of 8");
  expect_says(safetensors_file(entry("F32", "2", "0"), 8), "not 2");
  expect_says(safetensors_file(entry("F32", "2", "0,8,8"), 8), "not 2");
  expect_says(safetensors_file(entry("F32", "-2", "0,8"), 8), "negative");
  expect_says(safetensors_file(entry("F32", "2.0", "0,8"), 8), "fraction");
  expect_says(safetensors_file(entry("F32", "99999999999999999999", "0,8"), 8), "too large");
  expect_says(safetensors_file(entry("F32", "4611686018427387904,4611686018427387904", "0,8"), 8), "no whole number");
  expect_says(safetensors_file(entry("F32", "4294967296,4294967296,4", "0,0"), 0), "no whole number");
  expect_says(safetensors_file(entry("F4", "1", "0,1"), 1), "no whole number");
  expect_says(safetensors_file(entry("F32", "[2]", "0,8"), 8), "a list where none belongs");
  expect_says(safetensors_file("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 0), "lacks");
  expect_says(safetensors_file("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0), "twice");
  expect_says(safetensors_file("{\"a\":{\"x\":{}}}", 0), "an object");
  expect_says(safetensors_file("{\"a\":3}", 0), "a number where none belongs");
  expect_says(safetensors_file("{\"__metadata__\":{\"a\":3}}", 0), "a number");
  expect_says(safetensors_file("{\"__metadata__\":{\"a\":[]}}", 0), "a list");
  const std::string u8 = R"({"dtype":"U8","shape":[4],"data_offsets":)";
  expect_says(safetensors_file("{\"a\":" + u8 + "[0,4]},\"b\":" + u8 + "[2,6]}}", 6), "inside another's");
  expect_says(safetensors_file("{\"a\":" + u8 + "[0,4]},\"b\":" + u8 + "[0,4]}}", 4), "inside another's");
  expect_says(safetensors_file("{\"a\":" + u8 + "[0,4]},\"a\":" + u8 + "[4,8]}}", 8), "twice");
  expect_says(safetensors_file(std::string(3'000'000, '['), 0), "does not begin");
  expect_says(safetensors_file("{\"a\":" + std::string(3'000'000, '['), 0), "a list");
  // Nine dimensions are listed; the tensor cannot be had.
  EXPECT_THROW(parse(safetensors_file(entry("U8", "1,1,1,1,1,1,1,1,1", "0,1"), 1)).tensor("a"), Error);
  for (size_t at = 0; at < good.size() - 8; ++at)
    for (char c : {'\0', '\xff', '[', '"', '9'}) {
      std::string bad = good;
      bad[at] = c;
      refusal(bad);  // may be read or refused; must not crash
    }
}

}  // namespace
}  // namespace tenon::formats
