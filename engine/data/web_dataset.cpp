#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "engine/data/data_place.h"
#include "engine/data/image.h"
#include "engine/data/iterable.h"
#include "engine/data/split_rule.h"

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
      throw Error("cannot open " + path + ": " + why, data_place("a folder with .tar files"));
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
    std::vector<std::string> keys;     ///< of its samples, in order
    std::vector<int64_t> classes;      ///< of them
    std::vector<int64_t> places = {};  ///< their numbers in the shard, where it holds others too; else empty
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
    explicit Reader(const std::string& path, std::vector<int64_t> places = {})
        : path_(path), tar_(path), places_(std::move(places)) {
      more_ = tar_.next(name_);
    }
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
      const int64_t want = places_.empty() ? at_ : places_.at(given_++);
      for (; at_ <= want; ++at_)
        if (!read(s, at_ == want)) throw Error(path_ + " holds fewer samples than when it was opened");
      return s.label + '\0' + s.key + '\0' + s.image;
    }

   private:
    std::string path_;
    Tar tar_;
    std::string name_;
    std::vector<int64_t> places_;
    size_t given_ = 0;
    int64_t at_ = 0;
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
    const Shard& shard = shards_[static_cast<size_t>(part)];
    return std::make_unique<Reader>(shard.path, shard.places);
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

using Shards = std::vector<WebDataset::Shard>;
/// The shards with those of their samples that a rule keeps for training, and for the test.
std::pair<Shards, Shards> divide_samples(const Shards& shards, const SplitRule& rule, std::vector<Remark>& remarks) {
  using Way = SplitRule::Way;
  const bool by_class = rule.way == Way::stratified && rule.by.empty();
  const bool by_shard = rule.way == Way::group && rule.by.empty();
  if (rule.by_words() && rule.by.empty() && !by_class && !by_shard)
    throw Error::usage("data.split = time: data.split_by names no pattern of the samples' keys",
                       "as ([0-9]{4}-[0-9]{2}-[0-9]{2}), which takes 2024-03-01 of cam/2024-03-01_12");
  SplitWords words{{}, by_class ? "the class" : by_shard ? "the shard" : "the part of the key " + rule.by};
  const auto part = rule.by.empty() ? nullptr : name_pattern(rule.by, "data.split_by");
  std::vector<std::pair<size_t, size_t>> all;
  for (size_t s = 0; s < shards.size(); ++s)
    for (size_t i = 0; i < shards[s].keys.size(); ++i) {
      all.emplace_back(s, i);
      if (!rule.by_words()) continue;
      words.of.push_back(by_class   ? std::to_string(shards[s].classes[i])
                         : by_shard ? shards[s].path
                                    : part(shards[s].keys[i]));
    }
  const auto source = [&](int64_t row) -> Source {
    const auto& [s, i] = all[static_cast<size_t>(row)];
    return {shards[s].path, "sample " + shards[s].keys[i]};
  };
  Remark told;
  const Parts parts = divide(rule, static_cast<int64_t>(all.size()), words, source, told);
  remarks.push_back(std::move(told));
  const auto chosen = [&](const std::vector<int64_t>& rows) {
    Shards some;
    for (const int64_t row : rows) {
      const auto& [s, i] = all[static_cast<size_t>(row)];
      if (some.empty() || some.back().path != shards[s].path) some.push_back({shards[s].path, {}, {}});
      some.back().keys.push_back(shards[s].keys[i]);
      some.back().classes.push_back(shards[s].classes[i]);
      some.back().places.push_back(static_cast<int64_t>(i));
    }
    return some;
  };
  if (parts.train.empty() || parts.test.empty())
    throw Error("there are too few samples to train with and to test with: " + std::to_string(all.size()));
  return {chosen(parts.train), chosen(parts.test)};
}

Split open_web_dataset(const Options& o, const AttrValues& v) {
  if (o.dir.empty())
    throw Error("the data set webdataset is read from a folder", data_place("a folder with .tar files"));
  std::error_code ec;
  std::vector<std::string> shards;
  for (const auto& e : fs::directory_iterator(o.dir, ec))
    if (is_shard(e.path().filename().string())) shards.push_back(e.path().string());
  if (ec)
    throw Error("the folder " + o.dir + " cannot be read: " + ec.message(), data_place("a folder with .tar files"));
  std::sort(shards.begin(), shards.end());
  if (shards.empty())
    throw Error("the folder " + o.dir + " holds no .tar files", data_place("a folder with .tar files"));
  // Whole shards are kept for the test: those called so, or the last ones.
  auto middle = std::stable_partition(shards.begin(), shards.end(), [](const std::string& p) {
    std::string name = fs::path(p).filename().string();
    return !name.starts_with("test") && !name.starts_with("val");
  });
  auto train = static_cast<size_t>(middle - shards.begin());
  const SplitRule rule = split_rule(v);
  if (train < shards.size()) refuse_rule(rule, o.dir);
  const bool divides = rule.way != SplitRule::Way::own && train == shards.size();
  if (train == shards.size() && !divides) {
    if (train < 2)
      throw Error(o.dir + " holds one shard: there is none left to test with",
                  "write several, or call one test-0.tar, or data.split = random");
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
    WebDataset::Shard shard{path, {}, {}};
    while (reader.read(s, false)) {
      shard.classes.push_back(WebDataset::label_of(s.label, path + ": sample " + s.key));
      classes = std::max(classes, shard.classes.back() + 1);
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
  if (!divides) return {make(0, train), make(train, shards.size())};
  Split split;
  auto [first, second] = divide_samples(read, rule, split.remarks);
  split.train = std::make_shared<WebDataset>(std::move(first), size, classes, v.integer("window"));
  split.test = std::make_shared<WebDataset>(std::move(second), size, classes, v.integer("window"));
  return split;
}

std::vector<AttrDef> web_dataset_attrs() {
  std::vector<AttrDef> list = {{"channels", int64_t{3}, 1, 3, "1: grey, 3: colours"},
                               {"height", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                               {"width", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                               {"window", int64_t{1000}, 1, 1e7, "samples the order is shuffled among", {}, "samples"}};
  const std::vector<AttrDef> split = split_attrs("shards", "the last of them as a whole");
  list.insert(list.end(), split.begin(), split.end());
  return list;
}

const bool registered_web_dataset =
    register_dataset({"webdataset", "shards of images and classes in tar archives, read as streams",
                      web_dataset_attrs(), open_web_dataset, true, [](const std::string& path) {
                        std::error_code ec;
                        for (const auto& e : fs::directory_iterator(path, ec))
                          if (is_shard(e.path().filename().string())) return Recognised::yes;
                        return Recognised::no;
                      }});

}  // namespace
}  // namespace tenon::data
