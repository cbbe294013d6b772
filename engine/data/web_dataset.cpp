#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "engine/data/image.h"
#include "engine/data/iterable.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMostBytes = int64_t{1} << 28;  // of one member

/// The members of a tar archive, packed or plain, one after the other.
class Tar {
 public:
  explicit Tar(const std::string& path) : path_(path), a_(archive_read_new()) {
    archive_read_support_format_tar(a_);
    archive_read_support_format_gnutar(a_);
    archive_read_support_filter_all(a_);
    if (archive_read_open_filename(a_, path.c_str(), 1 << 18) != ARCHIVE_OK) {
      std::string why = text();
      archive_read_free(a_);
      throw Error("cannot open " + path + ": " + why, "name a folder with .tar files: --data DIR");
    }
  }
  ~Tar() { archive_read_free(a_); }
  Tar(const Tar&) = delete;
  /// The next file's name; false at the end.
  bool next(std::string& name) {
    for (;;) {
      archive_entry* e = nullptr;
      int r = archive_read_next_header(a_, &e);
      if (r == ARCHIVE_EOF) return false;
      if (r != ARCHIVE_OK) throw Error(path_ + " is damaged: " + text());
      if (archive_entry_filetype(e) != AE_IFREG) continue;
      name = archive_entry_pathname(e) ? archive_entry_pathname(e) : "";
      size_ = archive_entry_size(e);
      return true;
    }
  }
  std::string read() {
    if (size_ > kMostBytes)
      throw Error(path_ + ": a member of " + std::to_string(size_) + " bytes is more than a sample may have");
    std::string bytes;
    char block[1 << 16];
    for (;;) {
      la_ssize_t n = archive_read_data(a_, block, sizeof block);
      if (n < 0) throw Error(path_ + " is damaged: " + text());
      if (n == 0) return bytes;
      bytes.append(block, static_cast<size_t>(n));
      if (static_cast<int64_t>(bytes.size()) > kMostBytes)
        throw Error(path_ + ": a member is larger than a sample may be");
    }
  }

 private:
  std::string text() const { return archive_error_string(a_) ? archive_error_string(a_) : "no reason given"; }
  std::string path_;
  archive* a_;
  int64_t size_ = 0;
};

/// "dir/000012.seg.png" -> key "dir/000012", kind "seg.png".
void split_name(const std::string& name, std::string& key, std::string& kind) {
  size_t slash = name.rfind('/'), dot = name.find('.', slash == name.npos ? 0 : slash + 1);
  key = name.substr(0, dot);
  kind = dot == name.npos ? "" : name.substr(dot + 1);
}

/// Shards of samples, each an image and a class that follow one another under one key (the layout of the WebDataset
/// library).
class WebDataset : public IterableDataset {
 public:
  /// One shard, as the pass over its headers found it.
  struct Shard {
    std::string path;
    std::vector<std::string> keys;  ///< of its samples, in order
  };
  WebDataset(std::vector<Shard> shards, Shape size, int64_t classes, int64_t window)
      : IterableDataset(sizes(shards), window), shards_(std::move(shards)), size_(size), classes_(classes) {}
  Meta input() const override { return {DType::f32, {}, size_}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return classes_; }
  Source source(int64_t row) const override {
    const auto [part, number] = place(row);
    const Shard& shard = shards_[static_cast<size_t>(part)];
    return {shard.path, "sample " + shard.keys[static_cast<size_t>(number)]};
  }

  struct Sample {
    std::string key, image, label;
  };
  /// Samples of one shard, in order.
  class Reader : public Stream {
   public:
    explicit Reader(const std::string& path) : path_(path), tar_(path) { more_ = tar_.next(name_); }
    bool read(Sample& s, bool images) {
      s = {};
      std::string key, kind;
      while (more_) {
        split_name(name_, key, kind);
        if (s.key.empty()) s.key = key;
        if (key != s.key) break;
        if (kind == "cls") s.label = tar_.read();
        if (is_image_name("x." + kind)) s.image = images ? tar_.read() : "image";
        more_ = tar_.next(name_);
      }
      if (s.key.empty()) return false;
      if (s.image.empty() || s.label.empty())
        throw Error(path_ + ": sample " + s.key + " has no " + (s.image.empty() ? "image" : "class") +
                        " beside its other files",
                    "a sample is KEY.png or KEY.jpg and KEY.cls, one behind the other");
      return true;
    }
    std::string next() override {
      Sample s;
      if (!read(s, true)) throw Error(path_ + " holds fewer samples than when it was opened");
      return s.label + '\0' + s.key + '\0' + s.image;
    }

   private:
    std::string path_;
    Tar tar_;
    std::string name_;
    bool more_ = false;
  };
  static int64_t label_of(const std::string& text, const std::string& where) {
    int64_t label = -1;
    size_t end = text.find_last_not_of(" \n\r\t");
    const char* last = text.data() + (end == text.npos ? 0 : end + 1);
    auto [rest, error] = std::from_chars(text.data(), last, label);
    if (error != std::errc{} || rest != last || label < 0 || label > 1000000)
      throw Error(where + ": its class \"" + text.substr(0, 20) + "\" is no number of 0..1000000");
    return label;
  }

 protected:
  std::unique_ptr<Stream> stream(int64_t part) const override {
    return std::make_unique<Reader>(shards_[static_cast<size_t>(part)].path);
  }
  void decode(const std::string& raw, int64_t, void* x, void* y) const override {
    size_t a = raw.find('\0'), b = raw.find('\0', a + 1);
    std::string key = raw.substr(a + 1, b - a - 1);
    int64_t label = label_of(raw.substr(0, a), "sample " + key);
    if (label >= classes_)
      throw Error("sample " + key + ": class " + std::to_string(label) + " was not there when the shards were opened");
    *static_cast<int64_t*>(y) = label;
    to_planes(parse_image(std::string_view(raw).substr(b + 1), "image " + key, size_[0]), size_[1], size_[2],
              static_cast<float*>(x));
  }

 private:
  static std::vector<int64_t> sizes(const std::vector<Shard>& shards) {
    std::vector<int64_t> n;
    for (const Shard& s : shards) n.push_back(static_cast<int64_t>(s.keys.size()));
    return n;
  }
  std::vector<Shard> shards_;
  Shape size_;
  int64_t classes_;
};

bool is_shard(const std::string& name) { return name.find(".tar") != name.npos || name.ends_with(".tgz"); }

Split open_web_dataset(const Options& o, const AttrValues& v) {
  if (o.dir.empty())
    throw Error("the data set webdataset is read from a folder", "name a folder with .tar files: --data DIR");
  std::error_code ec;
  std::vector<std::string> shards;
  for (const auto& e : fs::directory_iterator(o.dir, ec))
    if (is_shard(e.path().filename().string())) shards.push_back(e.path().string());
  if (ec)
    throw Error("the folder " + o.dir + " cannot be read: " + ec.message(),
                "name a folder with .tar files: --data DIR");
  std::sort(shards.begin(), shards.end());
  if (shards.empty())
    throw Error("the folder " + o.dir + " holds no .tar files", "name a folder with .tar files: --data DIR");
  // Whole shards are kept for the test: those called so, or the last ones.
  auto middle = std::stable_partition(shards.begin(), shards.end(), [](const std::string& p) {
    std::string name = fs::path(p).filename().string();
    return !name.starts_with("test") && !name.starts_with("val");
  });
  auto train = static_cast<size_t>(middle - shards.begin());
  if (train == shards.size()) {
    if (train < 2)
      throw Error(o.dir + " holds one shard: there is none left to test with", "write several, or call one test-0.tar");
    train -= std::clamp<size_t>(static_cast<size_t>(static_cast<double>(train) * v.number("test_share")), 1, train - 1);
  }
  if (train == 0)
    throw Error(o.dir + " holds only shards to test with", "shards to train with have other names than test and val");
  // One pass over the headers and the classes: which samples there are, and how many classes.
  std::vector<WebDataset::Shard> read;
  int64_t classes = 0;
  for (const std::string& path : shards) {
    WebDataset::Reader reader(path);
    WebDataset::Sample s;
    WebDataset::Shard shard{path, {}};
    while (reader.read(s, false)) {
      classes = std::max(classes, WebDataset::label_of(s.label, path + ": sample " + s.key) + 1);
      shard.keys.push_back(s.key);
    }
    read.push_back(std::move(shard));
  }
  Shape size{v.integer("channels"), v.integer("height"), v.integer("width")};
  auto make = [&](size_t begin, size_t end) {
    return std::make_shared<WebDataset>(
        std::vector(read.begin() + static_cast<std::ptrdiff_t>(begin), read.begin() + static_cast<std::ptrdiff_t>(end)),
        size, classes, v.integer("window"));
  };
  return {make(0, train), make(train, shards.size())};
}

const bool registered_web_dataset =
    register_dataset({"webdataset",
                      "shards of images and classes in tar archives, read as streams",
                      {{"channels", int64_t{3}, 1, 3, "1: grey, 3: colours"},
                       {"height", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                       {"width", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                       {"window", int64_t{1000}, 1, 1e7, "samples the order is shuffled among", {}, "samples"},
                       test_share_attr()},
                      open_web_dataset,
                      true,
                      [](const std::string& path) {
                        std::error_code ec;
                        for (const auto& e : fs::directory_iterator(path, ec))
                          if (is_shard(e.path().filename().string())) return Recognised::yes;
                        return Recognised::no;
                      }});

}  // namespace
}  // namespace tenon::data
