#include "core/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/tensor_bytes.h"

namespace tenon {
namespace {

struct FileTest : ::testing::Test {
  std::string dir = (std::filesystem::temp_directory_path() / ("tenon-file-test-" + std::to_string(getpid())))
                        .string();  // tests run side by side
  void SetUp() override { std::filesystem::create_directories(dir); }
  void TearDown() override { std::filesystem::remove_all(dir); }
  size_t count() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir), {})); }
};

TEST_F(FileTest, what_is_written_is_read) {
  const std::string bytes("a\0b\xff", 4);
  write_file(dir + "/f", bytes);
  EXPECT_EQ(read_file(dir + "/f"), bytes);
  write_file(dir + "/f", "");
  EXPECT_EQ(read_file(dir + "/f"), "");
  EXPECT_EQ(count(), 1u) << "nothing is left beside it";
}

TEST_F(FileTest, what_is_larger_than_a_part_is_written_whole) {
  std::string bytes((9 << 20) + 3, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 11);
  FileWriter file(dir + "/f");
  file.put("head");
  file.put(bytes);
  file.put("tail");
  file.commit();
  EXPECT_TRUE(read_file(dir + "/f") == "head" + bytes + "tail");
}

TEST_F(FileTest, what_is_not_committed_leaves_the_old_file) {
  write_file(dir + "/f", "old");
  {
    FileWriter half(dir + "/f");
    half.put("ne");
    half.put("w");
  }
  EXPECT_EQ(read_file(dir + "/f"), "old");
  EXPECT_EQ(count(), 1u);
  FileWriter whole(dir + "/f");
  whole.put("ne");
  whole.put("w");
  whole.commit();
  EXPECT_EQ(read_file(dir + "/f"), "new");
  EXPECT_EQ(count(), 1u);
}

TEST_F(FileTest, tensors_are_windows_of_a_mapped_file) {
  const int32_t values[] = {1, 2, 3, 4};
  write_file(dir + "/f", {reinterpret_cast<const char*>(values), sizeof values});
  auto file = MappedFile::open(dir + "/f");
  const Tensor window = tensor_of(file, 4, 8, DType::i32), odd = tensor_of(file, 2, 8, DType::i32),
               swapped = tensor_of(file, 0, 4, DType::i32, true);
  EXPECT_EQ(static_cast<const void*>(window.raw()), file->bytes().data() + 4);
  EXPECT_EQ(odd.size(0), 2) << "a copy, for no element may lie across its alignment";
  EXPECT_EQ(storage_value(odd, 0), 2 << 16);
  EXPECT_EQ(storage_value(swapped, 0), 1 << 24);
  EXPECT_THROW(tensor_of(file, 12, 8, DType::i32), Error);
  EXPECT_THROW(tensor_of(file, SIZE_MAX, 8, DType::i32), Error);
  EXPECT_THROW(tensor_of(file, 0, 6, DType::i32), Error);
  file.reset();
  EXPECT_EQ(storage_value(window, 1), 3) << "the mapping lives as long as its last window";
  write_file(dir + "/empty", "");
  EXPECT_TRUE(MappedFile::open(dir + "/empty")->bytes().empty());
  EXPECT_THROW(MappedFile::open(dir + "/none"), Error);
  EXPECT_THROW(MappedFile::open(dir), Error);
}

TEST_F(FileTest, errors_name_the_file) {
  for (const std::string& path : std::vector<std::string>{dir + "/none", dir}) {
    try {
      read_file(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(path), std::string::npos);
    }
  }
  EXPECT_THROW(write_file(dir + "/no/such/folder", "x"), Error);
  EXPECT_EQ(read_file("/dev/null"), "");
  write_file("/dev/null", "gone");
}

TEST_F(FileTest, a_full_device_leaves_the_old_file) {
  write_file(dir + "/f", "old");
  try {
    write_file("/dev/full", "x");
    ADD_FAILURE() << "it was written";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::no_space) << e.what();
  }
  EXPECT_EQ(read_file(dir + "/f"), "old");
}

TEST(LogicalBytes, gathers_views_in_row_major_order) {
  Tensor t = empty({2, 3}, DType::u8);
  for (int i = 0; i < 6; ++i) t.data<uint8_t>()[i] = static_cast<uint8_t>('a' + i);
  std::vector<char> copy;
  EXPECT_EQ(logical_bytes(t, copy), "abcdef");
  EXPECT_TRUE(copy.empty()) << "its own memory";
  EXPECT_EQ(logical_bytes(view_of(t, t.layout().transpose(0, 1)), copy), "adbecf");
  EXPECT_EQ(logical_bytes(view_of(t, t.layout().flip(1)), copy), "cbafed");
  EXPECT_EQ(logical_bytes(view_of(t, t.layout().slice(1, 0, 1).expand({2, 2})), copy), "aadd");
  EXPECT_EQ(logical_bytes(empty({0, 3}), copy), "");
}

}  // namespace
}  // namespace tenon
