#include "engine/formats/zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "tests/engine/files.h"

namespace tenon::formats {
namespace {

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}

std::string deflated(const std::string& s) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  std::string out(s.size() + 100, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(s.data()));
  z.avail_in = static_cast<uInt>(s.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

/// An archive of one member; with `wide`, every size and offset stands in zip64 fields alone.
std::string archive(const std::string& packed, uint64_t size, uint16_t method, bool wide,
                    uint64_t claimed_entries = 1) {
  std::string out("PK\x03\x04");
  out.append(22, '\0');
  put<uint16_t>(out, 1);
  put<uint16_t>(out, 0);
  out += "m" + packed;
  const uint64_t start = out.size();
  std::string extra;
  if (wide) {
    put<uint16_t>(extra, 1);
    put<uint16_t>(extra, 24);
    put<uint64_t>(extra, size);
    put<uint64_t>(extra, packed.size());
    put<uint64_t>(extra, 0);
  }
  out += "PK\x01\x02";
  put<uint32_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, method);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, wide ? 0xffffffff : static_cast<uint32_t>(packed.size()));
  put<uint32_t>(out, wide ? 0xffffffff : static_cast<uint32_t>(size));
  put<uint16_t>(out, 1);
  put<uint16_t>(out, static_cast<uint16_t>(extra.size()));
  out.append(10, '\0');
  put<uint32_t>(out, wide ? 0xffffffff : 0);
  out += "m" + extra;
  const uint64_t length = out.size() - start, end = out.size();
  if (wide) {
    out += "PK\x06\x06";
    put<uint64_t>(out, 44);
    put<uint64_t>(out, 0);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, claimed_entries);
    put<uint64_t>(out, claimed_entries);
    put<uint64_t>(out, length);
    put<uint64_t>(out, start);
    out += "PK\x06\x07";
    put<uint32_t>(out, 0);
    put<uint64_t>(out, end);
    put<uint32_t>(out, 1);
  }
  out += "PK\x05\x06";
  put<uint32_t>(out, 0);
  put<uint16_t>(out, wide ? 0xffff : static_cast<uint16_t>(claimed_entries));
  put<uint16_t>(out, wide ? 0xffff : static_cast<uint16_t>(claimed_entries));
  put<uint32_t>(out, wide ? 0xffffffff : static_cast<uint32_t>(length));
  put<uint32_t>(out, wide ? 0xffffffff : static_cast<uint32_t>(start));
  put<uint16_t>(out, 0);
  return out;
}

TEST(Zip, stored_and_deflated_members_with_and_without_zip64) {
  const std::string text(100000, 'x');
  for (bool wide : {false, true}) {
    const std::string stored = archive("hello", 5, 0, wide), packed = archive(deflated(text), text.size(), 8, wide);
    std::string unpacked;
    const Zip a(stored, "a");
    ASSERT_EQ(a.members().size(), 1u);
    EXPECT_EQ(a.data(*a.find("m"), unpacked), "hello");
    EXPECT_FALSE(a.find("n"));
    const Zip b(packed, "b");
    EXPECT_EQ(b.data(*b.find("m"), unpacked), text);
    const std::string with_comment = stored + std::string(100, 'c');
    EXPECT_EQ(Zip(with_comment, "c").members().size(), 1u);
  }
}

TEST(Zip, what_is_written_holds_the_sums_that_zlib_makes) {
  const testing_files::Folder folder;
  const std::string path = folder.file("a.zip");
  std::vector<std::string> all;
  for (size_t n : {0, 1, 63, 64, 255, 256, 257, 319, 320, 511, 4096 + 17, (1 << 20) + 5}) {
    std::string bytes(n, '\0');
    for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>((i * 2654435761u + n) >> 13);
    all.push_back(bytes);
  }
  {
    FileWriter file(path);
    ZipWriter zip(file);
    for (size_t i = 0; i < all.size(); ++i) zip.add("m" + std::to_string(i), all[i]);
    zip.finish();
    file.commit();
  }
  const std::string written = read_file(path);
  const Zip z(written, "a");
  ASSERT_EQ(z.members().size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Zip::Member& m = z.members()[i];
    EXPECT_EQ(m.crc, crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(all[i].data()),
                           static_cast<uInt>(all[i].size())))
        << all[i].size();
    std::string unpacked;
    EXPECT_TRUE(z.intact(m, z.data(m, unpacked))) << all[i].size();
    std::string other = all[i] + "x";
    other[other.size() / 2] ^= 1;
    EXPECT_FALSE(z.intact(m, other)) << all[i].size();
  }
}

TEST(Zip, wrong_claims_are_refused) {
  const std::string text(100000, 'x'), packed = deflated(text);
  std::string unpacked;
  for (uint64_t size : {uint64_t{0}, uint64_t{99999}, uint64_t{100001}, uint64_t{10} << 30, UINT64_MAX}) {
    const std::string bytes = archive(packed, size, 8, true);
    const Zip z(bytes, "a");
    EXPECT_THROW(z.data(*z.find("m"), unpacked), Error) << size;
    EXPECT_LT(unpacked.capacity(), 1u << 20) << "nothing is allocated from a claim";
  }
  EXPECT_THROW(Zip(archive("hello", 6, 0, true), "a"), Error);
  for (bool wide : {false, true}) EXPECT_THROW(Zip(archive("hello", 5, 0, wide, 60000), "a"), Error);
  EXPECT_THROW(Zip(archive("hello", 5, 0, true, UINT64_MAX), "a"), Error);
  const std::string good = archive("hello", 5, 0, true);
  for (size_t keep = 0; keep < good.size(); ++keep) EXPECT_THROW(Zip(good.substr(0, keep), "a"), Error) << keep;
}

}  // namespace
}  // namespace tenon::formats
