#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::views {

/// Values by key, in the order of the keys. Thousands of rows have the same keys: they keep one list of them, so that a
/// value is found in memory that was just read for the row before.
template <class T>
class KeyedValues {
 public:
  using Keys = std::vector<std::string>;

  KeyedValues() = default;
  explicit KeyedValues(std::map<std::string, T> from) {
    Keys keys;
    keys.reserve(from.size());
    values_.reserve(from.size());
    for (auto& [key, value] : from) {
      keys.push_back(key);
      values_.push_back(std::move(value));
    }
    keys_ = std::make_shared<const Keys>(std::move(keys));
  }

  size_t size() const { return values_.size(); }
  const Keys& keys() const { return *keys_; }
  const T& value(size_t place) const { return values_[place]; }
  /// Null where the key has none.
  const T* find(const std::string& key) const {
    const auto at = std::lower_bound(keys_->begin(), keys_->end(), key);
    return at != keys_->end() && *at == key ? &values_[static_cast<size_t>(at - keys_->begin())] : nullptr;
  }
  /// The value of a key, which has an empty one from now on where it had none.
  T& operator[](const std::string& key) {
    const auto at = static_cast<size_t>(std::lower_bound(keys_->begin(), keys_->end(), key) - keys_->begin());
    if (at == keys_->size() || (*keys_)[at] != key) {
      auto more = std::make_shared<Keys>(*keys_);
      more->insert(more->begin() + static_cast<int64_t>(at), key);
      keys_ = std::move(more);
      values_.emplace(values_.begin() + static_cast<int64_t>(at));
    }
    return values_[at];
  }
  /// The same keys; quick where the list is one.
  bool same_keys(const KeyedValues& other) const { return keys_ == other.keys_ || *keys_ == *other.keys_; }
  /// Keeps the other's list where it is the same.
  void share_keys(const KeyedValues& other) {
    if (*keys_ == *other.keys_) keys_ = other.keys_;
  }

 private:
  static const std::shared_ptr<const Keys>& no_keys() {
    static const auto none = std::make_shared<const Keys>();
    return none;
  }
  std::shared_ptr<const Keys> keys_ = no_keys();
  std::vector<T> values_;
};

}  // namespace tenon::views
