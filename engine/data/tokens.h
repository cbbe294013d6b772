#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/mapped_file.h"

namespace tenon::data {

/// Bytes become tokens: one each, or pairs joined again and again (Sennrich, Haddow and Birch, 2015; on bytes, as GPT-2
/// has it). Tokens 0..255 are the bytes; token 256 + i is merges[i], both halves joined. A merge never joins across the
/// beginning of a word.
class Tokenizer {
 public:
  /// Bytes only.
  Tokenizer() : Tokenizer(std::vector<std::pair<uint32_t, uint32_t>>{}) {}
  /// Throws Error for a merge of a token that does not exist yet.
  explicit Tokenizer(std::vector<std::pair<uint32_t, uint32_t>> merges);
  /// Merges the most frequent pair until there are `vocabulary` tokens or no pair occurs twice. A function of the text
  /// alone: of pairs equally frequent the one with the smaller tokens is taken.
  static Tokenizer train(std::string_view text, int64_t vocabulary);

  int64_t vocabulary() const { return static_cast<int64_t>(texts_.size()); }
  const std::vector<std::pair<uint32_t, uint32_t>>& merges() const { return merges_; }
  /// The bytes a token stands for.
  const std::string& text(int64_t token) const { return texts_[static_cast<size_t>(token)]; }
  std::vector<uint32_t> encode(std::string_view text) const;

 private:
  std::vector<std::pair<uint32_t, uint32_t>> merges_;
  std::vector<std::string> texts_;
};

/// A text's tokens in a file that is mapped, not read: 1, 2 or 4 bytes each.
class TokenFile {
 public:
  /// Throws Error naming the file and what is wrong with it.
  static std::shared_ptr<const TokenFile> open(const std::string& path);
  static std::shared_ptr<const TokenFile> parse(std::shared_ptr<const MappedFile> file);
  /// Writes the tokens of a text. A kill on the way leaves no file.
  static void write(const std::string& path, const Tokenizer& tokenizer, std::string_view text);

  int64_t size() const { return count_; }
  int64_t at(int64_t i) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  Tokenizer tokenizer_;
  const char* tokens_ = nullptr;
  int64_t count_ = 0;
  int width_ = 1;
};

}  // namespace tenon::data
