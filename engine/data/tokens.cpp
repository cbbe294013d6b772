#include "engine/data/tokens.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"

namespace tenon::data {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;
constexpr size_t kLongestToken = 65536;  ///< bytes
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

/// Words as rows of tokens that are joined in place: a token reaches over to the next one, what it swallowed is a gap.
class TokenRows {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void add(std::string_view word) {
    const auto begin = static_cast<uint32_t>(tokens_.size());
    for (size_t i = 0; i < word.size(); ++i) {
      tokens_.push_back(static_cast<uint8_t>(word[i]));
      before_.push_back(i == 0 ? kNone : begin + static_cast<uint32_t>(i) - 1);
      after_.push_back(i + 1 == word.size() ? kNone : begin + static_cast<uint32_t>(i) + 1);
    }
  }
  size_t size() const { return tokens_.size(); }
  uint32_t token(uint32_t at) const { return tokens_[at]; }
  uint32_t before(uint32_t at) const { return before_[at]; }
  uint32_t after(uint32_t at) const { return after_[at]; }
  /// Of the token here and the one behind it; nothing for the last of a word.
  std::optional<uint64_t> pair_at(uint32_t at) const {
    if (after_[at] == kNone) return {};
    return key({tokens_[at], tokens_[after_[at]]});
  }
  void join(uint32_t at, uint32_t by) {
    const uint32_t gone = after_[at];
    tokens_[at] = by;
    tokens_[gone] = kNone;  // of no pair that has a rank or a count
    after_[at] = after_[gone];
    if (after_[at] != kNone) before_[after_[at]] = at;
    after_[gone] = kNone;
  }

 private:
  std::vector<uint32_t> tokens_, before_, after_;
};

/// Byte pair encoding's merges: the pair that occurs most often becomes a token, again and again; of pairs as frequent
/// the one of the smaller tokens. A join touches its neighbours alone, and the most frequent pair lies on a heap.
class MergeLearner {
 public:
  void add(std::string_view word, int64_t count) {
    const auto begin = static_cast<uint32_t>(rows_.size());
    rows_.add(word);
    counts_.resize(rows_.size(), count);
    for (uint32_t at = begin; at < rows_.size(); ++at) appears(at);
    changed_.clear();
  }

  std::vector<Pair> learn(int64_t most) {
    for (const auto& [k, p] : pairs_) heap_.push({p.count, k});
    std::vector<Pair> merges;
    while (static_cast<int64_t>(merges.size()) < most && !heap_.empty()) {
      const Entry e = heap_.top();
      heap_.pop();
      const auto found = pairs_.find(e.pair);
      if (found == pairs_.end() || e.count < 2) continue;
      if (found->second.count != e.count) {  // it became rarer since; where it became more frequent, a newer entry lies
        if (found->second.count < e.count) heap_.push({found->second.count, e.pair});
        continue;
      }
      const Pair pair{static_cast<uint32_t>(e.pair >> 32), static_cast<uint32_t>(e.pair)};
      const size_t bytes = length_of(pair.first) + length_of(pair.second);
      if (bytes > kLongestToken) continue;
      const auto by = static_cast<uint32_t>(256 + merges.size());
      merges.push_back(pair);
      lengths_.push_back(bytes);
      join_all(e.pair, std::move(found->second.places), by);
    }
    return merges;
  }

 private:
  struct Found {
    int64_t count = 0;
    std::vector<uint32_t> places;  ///< where it was seen; it may have gone since
  };
  struct Entry {
    int64_t count;
    uint64_t pair;
    bool operator<(const Entry& o) const { return count != o.count ? count < o.count : pair > o.pair; }
  };

  size_t length_of(uint32_t token) const { return token < 256 ? 1 : lengths_[token - 256]; }
  void appears(uint32_t at) {
    const auto k = rows_.pair_at(at);
    if (!k) return;
    Found& p = pairs_[*k];
    p.count += counts_[at];
    p.places.push_back(at);
    changed_.push_back(*k);
  }
  void goes(uint32_t at) {
    if (const auto k = rows_.pair_at(at)) pairs_[*k].count -= counts_[at];
  }
  /// From the left to the right: of three equal tokens the first two are joined.
  void join_all(uint64_t pair, std::vector<uint32_t> places, uint32_t by) {
    std::sort(places.begin(), places.end());
    changed_.clear();
    for (const uint32_t at : places) {
      if (rows_.pair_at(at) != pair) continue;
      const uint32_t before = rows_.before(at);
      if (before != TokenRows::kNone) goes(before);
      goes(at);
      goes(rows_.after(at));
      rows_.join(at, by);
      if (before != TokenRows::kNone) appears(before);
      appears(at);
    }
    pairs_.erase(pair);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const uint64_t k : changed_)
      if (const auto found = pairs_.find(k); found != pairs_.end()) heap_.push({found->second.count, k});
  }

  TokenRows rows_;
  std::vector<size_t> lengths_;  ///< bytes of the merged tokens
  std::vector<int64_t> counts_;  ///< by place: how often the text has its word
  std::unordered_map<uint64_t, Found> pairs_;
  std::priority_queue<Entry> heap_;
  std::vector<uint64_t> changed_;  ///< pairs that became more frequent by the joins under way
};

/// The tokens of a word: what was merged first is joined first, from the left to the right.
std::vector<uint32_t> encode_word(std::string_view word, const std::unordered_map<uint64_t, uint32_t>& rank) {
  TokenRows row;
  row.add(word);
  using Entry = std::pair<uint32_t, uint32_t>;  // rank, place
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  const auto look = [&](uint32_t at) {
    const auto k = row.pair_at(at);
    if (!k) return;
    if (const auto r = rank.find(*k); r != rank.end()) heap.push({r->second, at});
  };
  for (uint32_t at = 0; at < row.size(); ++at) look(at);
  while (!heap.empty()) {
    const auto [first, at] = heap.top();
    heap.pop();
    const auto k = row.pair_at(at);
    const auto r = k ? rank.find(*k) : rank.end();
    if (r == rank.end() || r->second != first) continue;  // one of the two was joined to another one
    row.join(at, 256 + first);
    if (row.before(at) != TokenRows::kNone) look(row.before(at));
    look(at);
  }
  std::vector<uint32_t> tokens;
  for (uint32_t at = 0; at != TokenRows::kNone && at < row.size(); at = row.after(at)) tokens.push_back(row.token(at));
  return tokens;
}

}  // namespace

Tokenizer::Tokenizer(std::vector<Pair> merges) : merges_(std::move(merges)) {
  for (int i = 0; i < 256; ++i) texts_.emplace_back(1, static_cast<char>(i));
  for (const Pair& m : merges_) {
    if (m.first >= texts_.size() || m.second >= texts_.size())
      throw Error("merge " + std::to_string(texts_.size() - 256) + " of a tokenizer joins a token that does not exist");
    if (texts_[m.first].size() + texts_[m.second].size() > kLongestToken)
      throw Error("a token of a tokenizer is longer than 65,536 bytes");
    texts_.push_back(texts_[m.first] + texts_[m.second]);
  }
}

Tokenizer Tokenizer::train(std::string_view text, int64_t vocabulary) {
  std::unordered_map<std::string_view, int64_t> counts;
  words(text.substr(0, size_t{32} << 20), [&](std::string_view w) { ++counts[w]; });
  MergeLearner learner;  // what it learns does not depend on the order of the words
  for (const auto& [w, n] : counts) learner.add(w, n);
  return Tokenizer(learner.learn(vocabulary - 256));
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
    if (found == known.end()) found = known.emplace(w, encode_word(w, rank)).first;
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
