#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::snapshot {

/// Values of its own, which grow at their end, or a stretch of a mapped store, which must outlive the column.
template <class T>
class Column {
 public:
  Column() = default;
  explicit Column(std::vector<T> values) : own_(std::move(values)), seen_(own_) {}
  explicit Column(std::span<const T> mapped) : seen_(mapped) {}
  Column(const Column& other) : own_(other.own_), seen_(own_.empty() ? other.seen_ : std::span<const T>(own_)) {}
  Column(Column&& other) noexcept : own_(std::move(other.own_)), seen_(std::exchange(other.seen_, {})) {}
  Column& operator=(Column other) noexcept {
    own_.swap(other.own_);
    std::swap(seen_, other.seen_);
    return *this;
  }

  const T& operator[](size_t i) const { return seen_[i]; }
  const T& back() const { return seen_.back(); }
  size_t size() const { return seen_.size(); }
  bool empty() const { return seen_.empty(); }
  auto begin() const { return seen_.begin(); }
  auto end() const { return seen_.end(); }
  const T* data() const { return seen_.data(); }
  std::span<const T> span() const { return seen_; }

  // Only of one with values of its own.
  void push_back(const T& value) { own_.push_back(value), seen_ = own_; }
  void resize(size_t size, const T& value) { own_.resize(size, value), seen_ = own_; }
  void reserve(size_t size) { own_.reserve(size), seen_ = own_; }
  template <class From>
  void append(const From& from) {
    own_.insert(own_.end(), from.begin(), from.end());
    seen_ = own_;
  }

 private:
  std::vector<T> own_;
  std::span<const T> seen_;
};

/// Texts one behind the other.
class TextColumn {
 public:
  size_t size() const { return ends_.size(); }
  /// Empty where there is none of that number.
  std::string_view operator[](size_t i) const {
    if (i >= ends_.size()) return {};
    const size_t begin = i ? ends_[i - 1] : 0;
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  void push_back(std::string_view text) {
    bytes_.append(text);
    ends_.push_back(bytes_.size());
  }
  /// Whether each ends where it may: what is mapped is to be asked before any other call.
  bool sound() const {
    for (size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i] > bytes_.size() || (i && ends_[i] < ends_[i - 1])) return false;
    return true;
  }
  template <class Self, class F>
  static void each_part(Self& self, const F& f) {
    f(self.ends_);
    f(self.bytes_);
  }

 private:
  Column<uint64_t> ends_;
  Column<char> bytes_;
};

}  // namespace tenon::snapshot
