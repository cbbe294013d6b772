// Traces and snapshots as they are packed to be sent: gzip and zstd, in several frames, and cut off.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_reader.h"

namespace tenon {
namespace {

/// The bytes as one frame of the packer: "zstd", "gzip".
std::string packed(const std::string& text, const char* packer) {
  archive* a = archive_write_new();
  archive_write_set_format_raw(a);
  EXPECT_EQ(archive_write_add_filter_by_name(a, packer), ARCHIVE_OK) << archive_error_string(a);
  std::string out(text.size() * 2 + (1 << 16), '\0');
  size_t used = 0;
  EXPECT_EQ(archive_write_open_memory(a, out.data(), out.size(), &used), ARCHIVE_OK);
  archive_write_set_bytes_in_last_block(a, 1);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK) << archive_error_string(a);
  EXPECT_EQ(archive_write_data(a, text.data(), text.size()), static_cast<la_ssize_t>(text.size()));
  archive_entry_free(entry);
  EXPECT_EQ(archive_write_close(a), ARCHIVE_OK) << archive_error_string(a);
  archive_write_free(a);
  out.resize(used);
  return out;
}

/// A file that is there while the test runs; its name says nothing of what it is.
class PackedFile {
 public:
  explicit PackedFile(const std::string& bytes)
      : path_(::testing::TempDir() + "tenon-packed-" + std::to_string(getpid()) + "-" + std::to_string(++count_)) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ~PackedFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_;
};

/// Texts that do not pack away to nothing, so that a cut leaves some events and takes others.
std::string trace_text(int events) {
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
  uint64_t state = 1;
  for (int i = 0; i < events; ++i) {
    std::string noise;
    for (int k = 0; k < 24; ++k)
      state = state * 6364136223846793005ull + 1442695040888963407ull,
      noise += static_cast<char>('a' + (state >> 40) % 26);
    text += (i ? ",\n" : "") + ("{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" + noise +
                                "\", \"pid\": 1, \"tid\": 2, \"ts\": " + std::to_string(10 * i) + ", \"dur\": 5}");
  }
  return text + "\n]}";
}
std::string snapshot_text(int events) {
  std::string text = R"({"segments": [], "device_traces": [[)";
  uint64_t state = 1;
  for (int i = 0; i < events; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    text += (i ? ", " : "") + (R"({"action": "alloc", "addr": )" + std::to_string(state >> 16) +
                               R"(, "size": 512, "stream": 0, "time_us": )" + std::to_string(i) + R"(, "frames": []})");
  }
  return text + "]]}";
}

traces::ReadOptions fresh() {
  traces::ReadOptions o;
  o.read_cache = o.write_cache = false;
  return o;
}

class Packed : public testing::TestWithParam<const char*> {};

TEST_P(Packed, TracesOpenWhole) {
  const std::string text = trace_text(5000);
  for (const std::string& bytes :
       {packed(text, GetParam()), packed(text.substr(0, 100001), GetParam()) + packed(text.substr(100001), GetParam()),
        packed(packed(text, GetParam()), "gzip")}) {
    PackedFile file(bytes);
    auto t = traces::read_trace(file.path(), fresh());
    EXPECT_EQ(t->size(), 5000u);
    EXPECT_FALSE(t->truncated());
    EXPECT_EQ(t->source_bytes(), text.size());
    EXPECT_EQ(traces::argument(*t, 0, "none"), "");
    EXPECT_TRUE(t->event_text(4999).ends_with("\"ts\": 49990, \"dur\": 5}"));
  }
}

TEST_P(Packed, TracesCutOffOpenWithWhatTheyHold) {
  const std::string text = trace_text(20000), one = packed(text, GetParam()),
                    two = packed(text.substr(0, 700001), GetParam()) + packed(text.substr(700001), GetParam());
  ASSERT_GT(one.size(), size_t{200000});
  for (const std::string& bytes : {one, two}) {
    size_t before = 0;
    for (size_t eighth = 1; eighth < 8; ++eighth) {
      PackedFile file(bytes.substr(0, bytes.size() * eighth / 8));
      std::shared_ptr<const traces::Trace> t;
      try {
        t = traces::read_trace(file.path(), fresh());
      } catch (const Error& e) {  // not one block is whole: nothing to open, and it says so
        EXPECT_EQ(before, 0u) << e.what();
        continue;
      }
      EXPECT_TRUE(t->truncated());
      EXPECT_GE(t->size(), before);
      EXPECT_LT(t->size(), 20000u);
      before = t->size();
    }
    EXPECT_GT(before, 15500u);  // seven eighths, but for the block that the cut broke
  }
  // Between two frames.
  PackedFile first(packed(text.substr(0, 700001), GetParam()));
  auto t = traces::read_trace(first.path(), fresh());
  EXPECT_TRUE(t->truncated());
  EXPECT_GT(t->size(), 5000u);
}

// What is seen of a large trace before it is read is its beginning, also of one that is packed.
TEST_P(Packed, ABeginningIsTheFirstEventsOfTheWhole) {
  const std::string text = trace_text(20000);
  for (const std::string& bytes : {text, packed(text, GetParam())}) {
    PackedFile file(bytes);
    const auto whole = traces::read_trace(file.path(), fresh()), begun = traces::read_beginning(file.path(), 500000);
    ASSERT_TRUE(begun);
    ASSERT_GT(begun->size(), 3000u);
    ASSERT_LT(begun->size(), 5000u);
    EXPECT_TRUE(begun->truncated());
    for (traces::EventId e = 0; e < begun->size(); ++e) {
      ASSERT_EQ(begun->event_name(e), whole->event_name(e)) << e;
      ASSERT_EQ(begun->columns().start[e], whole->columns().start[e]) << e;
    }
  }
  PackedFile none(packed("no trace at all, but words enough to be packed", GetParam()));
  EXPECT_THROW(traces::read_beginning(none.path(), 500000), Error);
}

TEST_P(Packed, AStoreIsKeptAfterTheTraceWasRead) {
  PackedFile file(packed(trace_text(60000), GetParam()));
  traces::ReadOptions o;
  o.write_cache = false;
  const auto t = traces::read_trace(file.path(), o);
  EXPECT_FALSE(t->from_cache());
  EXPECT_FALSE(traces::read_trace(file.path(), o)->from_cache()) << "nothing was kept so far";
  traces::keep_store(*t);
  const auto again = traces::read_trace(file.path(), o);
  EXPECT_TRUE(again->from_cache());
  EXPECT_EQ(again->size(), t->size());
  EXPECT_FALSE(traces::read_beginning(file.path(), 500000)) << "the store opens at once";
  traces::keep_store(*again);
  std::filesystem::remove(traces::cache_path(file.path()));
}

TEST_P(Packed, SnapshotsOpenWholeAndCutOff) {
  const std::string text = snapshot_text(20000), one = packed(text, GetParam()),
                    two = packed(text.substr(0, 700001), GetParam()) + packed(text.substr(700001), GetParam());
  for (const std::string& bytes : {one, two}) {
    PackedFile whole(bytes);
    auto s = snapshot::read_snapshot(whole.path());
    EXPECT_EQ(s->events.size_(), 20000u);
    EXPECT_FALSE(s->truncated);
    PackedFile cut(bytes.substr(0, bytes.size() * 3 / 4));
    auto part = snapshot::read_snapshot(cut.path());
    EXPECT_TRUE(part->truncated);
    EXPECT_GT(part->events.size_(), 5000u);
    EXPECT_LT(part->events.size_(), 20000u);
  }
}

INSTANTIATE_TEST_SUITE_P(Zstd, Packed, testing::Values("zstd"));
INSTANTIATE_TEST_SUITE_P(Gzip, Packed, testing::Values("gzip"));

TEST(PackedFiles, ThatAreNoneSaySo) {
  for (const std::string& bytes :
       {std::string("\x28\xb5\x2f\xfd"), std::string("\x28\xb5\x2f\xfd garbage that is no frame"),
        packed("hello", "zstd"), packed("", "zstd")}) {
    PackedFile file(bytes);
    EXPECT_THROW(traces::read_trace(file.path(), fresh()), Error);
    EXPECT_THROW(snapshot::read_snapshot(file.path()), Error);
  }
}

}  // namespace
}  // namespace tenon
