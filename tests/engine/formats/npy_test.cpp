#include "engine/formats/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

std::string npy_file(const std::string& header, const std::string& data, char version = 1) {
  std::string out = std::string("\x93NUMPY") + version + '\0' + static_cast<char>(header.size() & 0xff) +
                    static_cast<char>(header.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + header + data;
}
std::string message(const std::string& bytes) {
  return testing_words::message_of([&] { parse_npy(bytes, "a.npy"); });
}
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

TEST(Npy, every_dtype_and_shape_survives) {
  for (int k = 0; k < kDTypes; ++k)
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 5}, Shape{1, 2, 3, 4, 5}}) {
      Tensor t = empty(shape, static_cast<DType>(k));
      for (size_t i = 0; i < t.nbytes(); ++i)
        static_cast<unsigned char*>(t.raw())[i] = static_cast<unsigned char>(i % 2);
      const Tensor back = parse_npy(npy_bytes(t), "x");
      ASSERT_EQ(back.dtype(), t.dtype());
      ASSERT_EQ(back.size(), t.size());
      ASSERT_EQ(std::memcmp(back.raw(), t.raw(), t.nbytes()), 0);
    }
}

TEST(Npy, strided_tensors_are_written_in_logical_order) {
  Tensor t = empty({2, 3}, DType::i32);
  for (int i = 0; i < 6; ++i) t.data<int32_t>()[i] = i;
  const Tensor back = parse_npy(npy_bytes(view_of(t, t.layout().transpose(0, 1))), "x");
  EXPECT_EQ(value_at(back, {0, 1}), 3);
  EXPECT_EQ(value_at(back, {2, 0}), 2);
}

TEST(Npy, header_as_numpy_writes_it) {
  Tensor t = empty({4}, DType::f32);
  const std::string s = npy_bytes(t);
  EXPECT_NE(s.find("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"), std::string::npos) << s;
  EXPECT_EQ((s.size() - 16) % 64, 0u);
}

TEST(Npy, reads_fortran_order_big_endian_and_version_2) {
  const Tensor f = parse_npy(
      npy_file("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3)}\n", raw<int32_t>({1, 4, 2, 5, 3, 6})), "x");
  EXPECT_EQ(f.size(), (Shape{2, 3}));
  EXPECT_EQ(value_at(f, {0, 2}), 3);
  EXPECT_EQ(value_at(f, {1, 0}), 4);
  const Tensor b =
      parse_npy(npy_file("{'descr': '>i2', 'shape': (2,), 'fortran_order': False}", std::string("\0\1\1\0", 4)), "x");
  EXPECT_EQ(value_at(b, {0}), 1);
  EXPECT_EQ(value_at(b, {1}), 256);
  const Tensor two = parse_npy(npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "\7", 2), "x");
  EXPECT_EQ(value_at(two, {}), 7);
}

TEST(Npy, bad_files_are_named_not_crashed_on) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_NE(message("").find("is not a .npy file"), std::string::npos);
  EXPECT_NE(message(npy_file(good, "1234567")).find("cut short"), std::string::npos);
  EXPECT_NE(message(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "1234"))
                .find("cut short"),
            std::string::npos);
  EXPECT_NE(message(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "1234"))
                .find("damaged shape"),
            std::string::npos);
  EXPECT_NE(
      message(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234")).find("damaged shape"),
      std::string::npos);
  EXPECT_NE(message(npy_file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678")).find("'<c8'"),
            std::string::npos);
  EXPECT_NE(message(npy_file("{'descr': [('a', '<f4')], 'shape': (1,), }", "1234")).find("records"), std::string::npos);
  EXPECT_NE(message(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "1234"))
                .find("9 dimensions"),
            std::string::npos);
  EXPECT_NE(message(npy_file(good, "12345678").substr(0, 20)).find("cut short"), std::string::npos);
  EXPECT_NE(message(std::string("\x93NUMPY\x09\0\0\0", 10)).find("version 9"), std::string::npos);
  const std::string whole = npy_file(good, "12345678");
  for (size_t keep = 0; keep < whole.size(); ++keep) EXPECT_NE(message(whole.substr(0, keep)), "no error") << keep;
  for (size_t at = 6; at < whole.size() - 8; ++at)
    for (char c : {'\0', '\xff', '(', '\'', '9'}) {
      std::string bad = whole;
      bad[at] = c;
      message(bad);  // may be read or refused; must not crash
    }
}

}  // namespace
}  // namespace tenon::formats
