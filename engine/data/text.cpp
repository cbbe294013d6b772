#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "core/sha256.h"
#include "engine/data/data_place.h"
#include "engine/data/dataset.h"
#include "engine/data/split_rule.h"
#include "engine/data/text_encoding.h"
#include "engine/data/tokens.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;
/// English prose that every Debian system has.
constexpr const char* kUsual = "/usr/share/common-licenses";

/// Where in a text's files the tokens of its token file begin.
class Places {
 public:
  Places(std::shared_ptr<const TokenFile> tokens, std::vector<fs::path> files) : tokens_(std::move(tokens)) {
    int64_t end = 0;
    for (const fs::path& f : files) {
      std::error_code ec;
      const auto bytes = static_cast<int64_t>(fs::file_size(f, ec));
      if (ec) continue;
      ends_.push_back(end += bytes);
      files_.push_back(f.string());
    }
  }
  /// The bytes from a token on to another, in the file where they begin.
  Source source(int64_t first, int64_t last) const {
    const int64_t from = byte(first), to = byte(last);
    const auto f = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), from) - ends_.begin());
    if (f >= files_.size()) return {};
    const int64_t begin = f > 0 ? ends_[f - 1] : 0;
    return {files_[f], "bytes " + std::to_string(from - begin) + " to " + std::to_string(to - begin - 1)};
  }

 private:
  static constexpr int64_t kStride = 4096;
  int64_t byte(int64_t token) const {
    if (tokens_->tokenizer().merges().empty()) return token;
    std::call_once(counted_, [&] {
      for (int64_t i = 0, at = 0; i < tokens_->size(); ++i) {
        if (i % kStride == 0) begins_.push_back(at);
        at += width(i);
      }
    });
    int64_t at = begins_.empty() ? 0 : begins_[std::min(begins_.size() - 1, static_cast<size_t>(token / kStride))];
    for (int64_t i = token / kStride * kStride; i < token; ++i) at += width(i);
    return at;
  }
  int64_t width(int64_t i) const { return static_cast<int64_t>(tokens_->tokenizer().text(tokens_->at(i)).size()); }

  std::shared_ptr<const TokenFile> tokens_;
  std::vector<int64_t> ends_;  ///< of each file, in all files put together
  std::vector<std::string> files_;
  mutable std::once_flag counted_;
  mutable std::vector<int64_t> begins_;  ///< of every kStride-th token
};

/// Windows of `context` tokens one behind the other, between two places of a token file; the target is each place's
/// next token.
class Text : public Dataset {
 public:
  Text(std::shared_ptr<const TokenFile> tokens, std::shared_ptr<const Places> places, int64_t begin, int64_t end,
       int64_t context, int64_t most)
      : tokens_(std::move(tokens)),
        places_(std::move(places)),
        begin_(begin),
        context_(context),
        samples_(std::max<int64_t>(0, (end - begin - 1) / context)) {
    if (most > 0 && most < samples_) samples_ = most;
    int64_t bytes = 0, seen = std::min<int64_t>(samples_ * context, 1 << 20);
    for (int64_t i = 0; i < seen; ++i)
      bytes += static_cast<int64_t>(tokens_->tokenizer().text(tokens_->at(begin + 1 + i)).size());
    bytes_per_token_ = seen ? static_cast<double>(bytes) / static_cast<double>(seen) : 1;
  }
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::i64, {}, {context_}}; }
  Meta target() const override { return {DType::i64, {}, {context_}}; }
  int64_t classes() const override { return tokens_->tokenizer().vocabulary(); }
  std::string task() const override { return "language"; }
  double bytes_per_token() const override { return bytes_per_token_; }
  std::string class_name(int64_t i) const override {
    if (i < 0 || i >= classes()) return std::to_string(i);
    const std::string& s = tokens_->tokenizer().text(i);
    bool plain = std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
    return plain ? "'" + s + "'" : "token " + std::to_string(i);
  }
  std::string token_text(int64_t token) const override {
    return token >= 0 && token < classes() ? tokens_->tokenizer().text(token) : std::string();
  }
  Source source(int64_t row) const override {
    const int64_t from = begin_ + row * context_;
    return places_->source(from, from + context_);
  }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    auto *in = static_cast<int64_t*>(x), *next = static_cast<int64_t*>(y);
    for (int64_t i = 0; i < count; ++i) {
      int64_t from = begin_ + rows[i] * context_;
      for (int64_t t = 0; t < context_; ++t) *in++ = tokens_->at(from + t);
      for (int64_t t = 0; t < context_; ++t) *next++ = tokens_->at(from + t + 1);
    }
  }

 private:
  std::shared_ptr<const TokenFile> tokens_;
  std::shared_ptr<const Places> places_;
  int64_t begin_, context_, samples_;
  double bytes_per_token_ = 1;
};

std::vector<fs::path> files_of(const std::string& where) {
  std::error_code ec;
  std::vector<fs::path> files;
  if (fs::is_directory(where, ec)) {
    for (auto it = fs::recursive_directory_iterator(where, fs::directory_options::skip_permission_denied, ec);
         it != fs::recursive_directory_iterator(); it.increment(ec)) {
      std::error_code ignored;
      if (!it->is_symlink(ignored) && it->is_regular_file(ignored) && !it->path().filename().string().starts_with("."))
        files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty())
      throw Error("the folder " + where + " holds no files", data_place("a text file or a folder of them", "PATH"));
  } else {
    if (!fs::exists(where, ec))
      throw Error("the text " + where + " does not exist", data_place("a text file or a folder of them", "PATH"));
    files.push_back(where);
  }
  return files;
}

std::string cache_folder(const std::string& given) {
  if (!given.empty()) return given;
  return cache::folder_of("tokens");
}

/// The token file of a text, made where it is not there yet. Its name is made of what decides its content.
std::shared_ptr<const TokenFile> tokens_of(const std::string& where, const AttrValues& v) {
  const bool bpe = v.text("tokenizer") == "bpe";
  auto files = files_of(where);
  Sha256 hash;
  std::string what = bpe ? "bpe " + std::to_string(v.integer("vocabulary")) : "byte";
  hash.update(what.data(), what.size());
  for (const fs::path& f : files) {
    std::error_code ec;
    std::string entry = fs::weakly_canonical(f, ec).string() + "|" + std::to_string(fs::file_size(f, ec)) + "|" +
                        std::to_string(fs::last_write_time(f, ec).time_since_epoch().count()) + "\n";
    hash.update(entry.data(), entry.size());
  }
  fs::path folder = cache_folder(v.text("cache"));
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec)
    throw Error("the folder " + folder.string() + " for files of tokens cannot be made: " + ec.message(),
                "name another: data.cache");
  fs::path path = folder / (fs::path(where).filename().string() + "-" + hex(hash.finish()).substr(0, 16) + ".tokens");
  if (fs::exists(path, ec)) {
    try {
      return TokenFile::open(path.string());
    } catch (const Error&) {
      fs::remove(path, ec);  // it is ours, and made anew
    }
  }
  std::string text;
  for (const fs::path& f : files) text += read_file(f.string());
  TokenFile::write(path.string(), bpe ? Tokenizer::train(text, v.integer("vocabulary")) : Tokenizer(), text);
  auto written = TokenFile::open(path.string());
  if (v.text("cache").empty()) cache::make_room();
  return written;
}

/// Windows of all files, divided by a rule. By files, or what their names say, those that reach from one group into
/// another are left out: neither part sees what the other one has.
Split divide_windows(const std::shared_ptr<const Text>& all, const SplitRule& rule, int64_t context, int64_t most) {
  SplitWords words{{}, rule.by.empty() || rule.by == "file" ? "the file" : "the part of the file's name " + rule.by};
  if (rule.way == SplitRule::Way::time && rule.by.empty())
    throw Error::usage("data.split = time: data.split_by names no pattern of files' names",
                       "as ([0-9]{4}-[0-9]{2}), which takes 2024-03 of letters_2024-03.txt");
  std::vector<int64_t> rows;
  if (rule.by_words()) {
    const auto part = words.what == "the file" ? nullptr : name_pattern(rule.by, "data.split_by");
    const auto word = [&](int64_t row) {
      const std::string file = all->source(row).file;
      return part ? part(fs::path(file).filename().string()) : file;
    };
    std::string next = all->size() > 0 ? word(0) : "";
    for (int64_t row = 0; row < all->size(); ++row) {
      const std::string own = std::move(next);
      next = row + 1 < all->size() ? word(row + 1) : own;
      if (own != next) continue;
      rows.push_back(row);
      words.of.push_back(own);
    }
  } else {
    rows.resize(static_cast<size_t>(all->size()));
    std::iota(rows.begin(), rows.end(), int64_t{0});
  }
  Remark told;
  Parts parts = divide(
      rule, static_cast<int64_t>(rows.size()), words,
      [&](int64_t r) { return all->source(rows[static_cast<size_t>(r)]); }, told);
  if (most > 0 && static_cast<int64_t>(parts.test.size()) > most) parts.test.resize(static_cast<size_t>(most));
  for (auto* part : {&parts.train, &parts.test})
    for (int64_t& r : *part) r = rows[static_cast<size_t>(r)];
  if (parts.train.empty() || parts.test.empty())
    throw Error(fmt::format("{} windows of {} tokens are too few to train with and to test with", rows.size(), context),
                data_place("a longer text", "PATH") + "; or set data.context to a smaller number");
  return {subset(all, parts.train), subset(all, parts.test), {std::move(told)}};
}

Split open_text(const Options& o, const AttrValues& v) {
  std::string where = o.dir.empty() ? kUsual : o.dir;
  std::error_code ec;
  if (o.dir.empty() && !fs::is_directory(where, ec))
    throw Error("no text was named, and " + where + ", which is read instead, is not here",
                data_place("a text file or a folder of them", "PATH"));
  auto tokens = tokens_of(where, v);
  const int64_t context = v.integer("context");
  auto places = std::make_shared<const Places>(tokens, files_of(where));
  const SplitRule rule = split_rule(v);
  if (rule.way != SplitRule::Way::own)
    return divide_windows(std::make_shared<Text>(tokens, places, 0, tokens->size(), context, 0), rule, context,
                          v.integer("test_samples"));
  auto middle = static_cast<int64_t>(static_cast<double>(tokens->size()) * (1 - v.number("test_share")));
  auto train = std::make_shared<Text>(tokens, places, 0, middle, context, 0);
  auto test = std::make_shared<Text>(tokens, places, middle, tokens->size(), context, v.integer("test_samples"));
  if (train->size() < 1 || test->size() < 1)
    throw Error(where + " has " + std::to_string(tokens->size()) + " tokens: too few for windows of " +
                    std::to_string(context) + " to train with and to test with",
                data_place("a longer text", "PATH") + "; or set data.context to a smaller number");
  return {train, test};
}

std::vector<AttrDef> text_attrs() {
  std::vector<AttrDef> list = {
      {"context", int64_t{128}, 1, 1 << 20, "tokens of a sample", {}, "tokens"},
      {"tokenizer",
       std::string("byte"),
       0,
       0,
       "what a token is: a byte, or frequent sequences of them",
       {"byte", "bpe"}},
      {"vocabulary", int64_t{1024}, 257, 1 << 20, "tokens of bpe"},
      {"cache", std::string(), 0, 0, "folder for the file of tokens; empty: tenon/tokens in the user's cache folder"},
      {"test_samples", int64_t{0}, 0, 1e9, "windows of the test that are evaluated; 0: all"}};
  for (AttrDef& d : split_attrs("end", "the last part of a text")) {
    if (d.name == "test_share") d.fallback = 0.1;
    if (d.name == "split") std::erase(d.choices, "stratified");
    list.push_back(std::move(d));
  }
  return list;
}

/// Whatever is no binary file: a text is of any kind.
Recognised recognise_text(const std::string& path) {
  constexpr size_t kFiles = 20;
  try {
    std::vector<fs::path> files = files_of(path);
    files.resize(std::min(files.size(), kFiles));
    for (const fs::path& f : files) {
      std::string beginning(4096, ' ');
      std::ifstream in(f, std::ios::binary);
      in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
      beginning.resize(static_cast<size_t>(in.gcount()));
      if (find_encoding(beginning) != Encoding::utf16 && beginning.find('\0') != beginning.npos) return Recognised::no;
    }
    return Recognised::perhaps;
  } catch (const Error&) {
    return Recognised::no;
  }
}

const bool registered_text =
    register_dataset({"text", "any text, a file or a folder of them: the next token at every place", text_attrs(),
                      open_text, true, recognise_text});

}  // namespace
}  // namespace tenon::data
