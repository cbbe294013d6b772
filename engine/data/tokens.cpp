#include "engine/data/tokens.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"

namespace tenon::data {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;
uint64_t key(const Pair& p) { return uint64_t{p.first} << 32 | p.second; }
bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Calls f with each word: blanks up to the last one before it, then a blank and what follows up to the next.
template <class F>
void words(std::string_view text, const F& f) {
  size_t begin = 0;
  for (size_t i = 1; i <= text.size(); ++i) {
    bool cut = i == text.size() || (blank(text[i]) && !blank(text[i - 1])) || (blank(text[i]) && blank(text[i - 1]));
    if (!cut) continue;
    f(text.substr(begin, i - begin));
    begin = i;
  }
}

struct Word {
  std::vector<uint32_t> tokens;
  int64_t count;
};

void join(std::vector<uint32_t>& t, const Pair& pair, uint32_t by) {
  size_t to = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    bool here = i + 1 < t.size() && t[i] == pair.first && t[i + 1] == pair.second;
    t[to++] = here ? by : t[i];
    i += here;
  }
  t.resize(to);
}

}  // namespace

Tokenizer::Tokenizer(std::vector<Pair> merges) : merges_(std::move(merges)) {
  for (int i = 0; i < 256; ++i) texts_.emplace_back(1, static_cast<char>(i));
  for (const Pair& m : merges_) {
    if (m.first >= texts_.size() || m.second >= texts_.size())
      throw Error("merge " + std::to_string(texts_.size() - 256) + " of a tokenizer joins a token that does not exist");
    if (texts_[m.first].size() + texts_[m.second].size() > 65536)
      throw Error("a token of a tokenizer is longer than 65,536 bytes");
    texts_.push_back(texts_[m.first] + texts_[m.second]);
  }
}

Tokenizer Tokenizer::train(std::string_view text, int64_t vocabulary) {
  std::map<std::string_view, int64_t> counts;  // sorted: the order of what follows is the text's alone
  words(text.substr(0, size_t{32} << 20), [&](std::string_view w) { ++counts[w]; });
  std::vector<Word> list;
  std::unordered_map<uint64_t, int64_t> pairs;
  std::unordered_map<uint64_t, std::vector<uint32_t>> where;  // words a pair was seen in
  for (const auto& [w, n] : counts) {
    Word word{{}, n};
    for (char c : w) word.tokens.push_back(static_cast<uint8_t>(c));
    for (size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      uint64_t k = key({word.tokens[i], word.tokens[i + 1]});
      pairs[k] += n;
      auto& places = where[k];
      if (places.empty() || places.back() != list.size()) places.push_back(static_cast<uint32_t>(list.size()));
    }
    list.push_back(std::move(word));
  }
  std::vector<Pair> merges;
  while (256 + static_cast<int64_t>(merges.size()) < vocabulary) {
    uint64_t best = 0;
    int64_t most = 1;
    for (const auto& [k, n] : pairs)
      if (n > most || (n == most && most > 1 && k < best)) best = k, most = n;
    if (most < 2) break;
    Pair pair{static_cast<uint32_t>(best >> 32), static_cast<uint32_t>(best)};
    auto by = static_cast<uint32_t>(256 + merges.size());
    merges.push_back(pair);
    std::vector<uint32_t> places = std::move(where[best]);
    for (uint32_t w : places) {
      Word& word = list[w];
      for (size_t i = 0; i + 1 < word.tokens.size(); ++i)
        pairs[key({word.tokens[i], word.tokens[i + 1]})] -= word.count;
      join(word.tokens, pair, by);
      for (size_t i = 0; i + 1 < word.tokens.size(); ++i) {
        uint64_t k = key({word.tokens[i], word.tokens[i + 1]});
        pairs[k] += word.count;
        auto& at = where[k];
        if (at.empty() || at.back() != w) at.push_back(w);
      }
    }
    pairs.erase(best);
    where.erase(best);
  }
  return Tokenizer(std::move(merges));
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<uint32_t> out;
  if (merges_.empty()) {
    out.reserve(text.size());
    for (char c : text) out.push_back(static_cast<uint8_t>(c));
    return out;
  }
  std::unordered_map<uint64_t, uint32_t> rank;
  for (size_t i = 0; i < merges_.size(); ++i) rank.try_emplace(key(merges_[i]), static_cast<uint32_t>(i));
  std::unordered_map<std::string_view, std::vector<uint32_t>> known;
  words(text, [&](std::string_view w) {
    auto found = known.find(w);
    if (found == known.end()) {
      std::vector<uint32_t> t;
      for (char c : w) t.push_back(static_cast<uint8_t>(c));
      while (t.size() > 1) {
        uint32_t best = UINT32_MAX;
        for (size_t i = 0; i + 1 < t.size(); ++i)
          if (auto r = rank.find(key({t[i], t[i + 1]})); r != rank.end()) best = std::min(best, r->second);
        if (best == UINT32_MAX) break;
        join(t, merges_[best], 256 + best);
      }
      found = known.emplace(w, std::move(t)).first;
    }
    out.insert(out.end(), found->second.begin(), found->second.end());
  });
  return out;
}

// The file: "TENONTK1", u32 bytes a token, u32 merges, u64 tokens, the merges as pairs of u32, zeros up to a multiple
// of 64, the tokens. All little-endian.
namespace {

constexpr char kMagic[] = "TENONTK1";
constexpr size_t kHead = 24;

template <class T>
T read_at(std::string_view bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}
template <class T>
void append_raw(std::string& s, T v) {
  s.append(reinterpret_cast<const char*>(&v), sizeof v);
}
size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

}  // namespace

std::shared_ptr<const TokenFile> TokenFile::open(const std::string& path) { return parse(MappedFile::open(path)); }

std::shared_ptr<const TokenFile> TokenFile::parse(std::shared_ptr<const MappedFile> file) {
  std::string_view bytes = file->bytes();
  const std::string& name = file->name();
  if (bytes.size() < kHead || bytes.substr(0, 8) != kMagic)
    throw Error(name + " is no file of tokens", "delete it: it is made again from the text");
  auto width = read_at<uint32_t>(bytes, 8), merges = read_at<uint32_t>(bytes, 12);
  auto count = read_at<uint64_t>(bytes, 16);
  auto damaged = [&](const std::string& why) {
    return Error(name + " is damaged: " + why, "delete it: it is made again from the text");
  };
  if (width != 1 && width != 2 && width != 4) throw damaged("tokens of " + std::to_string(width) + " bytes");
  if (merges > (bytes.size() - kHead) / 8)
    throw damaged("it is cut short within its " + std::to_string(merges) + " merges");
  size_t begin = aligned(kHead + size_t{merges} * 8);
  if (begin > bytes.size() || count != (bytes.size() - begin) / width || (bytes.size() - begin) % width)
    throw damaged("it holds " + std::to_string(bytes.size()) + " bytes, which are not " + std::to_string(count) +
                  " tokens of " + std::to_string(width));
  auto out = std::make_shared<TokenFile>();
  std::vector<Pair> list;
  for (uint32_t i = 0; i < merges; ++i)
    list.emplace_back(read_at<uint32_t>(bytes, kHead + i * 8), read_at<uint32_t>(bytes, kHead + i * 8 + 4));
  try {
    out->tokenizer_ = Tokenizer(std::move(list));
  } catch (const Error& e) {
    throw damaged(e.message());
  }
  out->file_ = file;
  out->tokens_ = bytes.data() + begin;
  out->count_ = static_cast<int64_t>(count);
  out->width_ = static_cast<int>(width);
  return out;
}

void TokenFile::write(const std::string& path, const Tokenizer& tokenizer, std::string_view text) {
  const int width = tokenizer.vocabulary() <= 256 ? 1 : tokenizer.vocabulary() <= 65536 ? 2 : 4;
  std::vector<uint32_t> tokens = tokenizer.encode(text);
  std::string head = kMagic;
  append_raw(head, static_cast<uint32_t>(width));
  append_raw(head, static_cast<uint32_t>(tokenizer.merges().size()));
  append_raw(head, static_cast<uint64_t>(tokens.size()));
  for (const Pair& m : tokenizer.merges()) append_raw(head, m.first), append_raw(head, m.second);
  head.resize(aligned(head.size()));
  FileWriter file(path);
  file.put(head);
  std::string piece;
  for (size_t i = 0; i < tokens.size(); ++i) {
    piece.append(reinterpret_cast<const char*>(&tokens[i]), static_cast<size_t>(width));
    if (piece.size() >= size_t{1} << 20 || i + 1 == tokens.size()) {
      file.put(piece);
      piece.clear();
    }
  }
  file.commit();
}

int64_t TokenFile::at(int64_t i) const {
  uint32_t t = 0;
  std::memcpy(&t, tokens_ + i * width_, static_cast<size_t>(width_));
  if (t >= static_cast<uint32_t>(tokenizer_.vocabulary()))
    throw Error(file_->name() + " is damaged: token " + std::to_string(i) + " is " + std::to_string(t) +
                    " of a vocabulary of " + std::to_string(tokenizer_.vocabulary()),
                "delete it: it is made again from the text");
  return t;
}

}  // namespace tenon::data
