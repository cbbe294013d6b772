#include "engine/data/iterable.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "engine/data/loader.h"

namespace tenon::data {

IterableDataset::IterableDataset(std::vector<int64_t> sizes, int64_t window)
    : begins_{0}, window_(std::max<int64_t>(1, window)) {
  for (int64_t n : sizes) begins_.push_back(begins_.back() + n);
}

int64_t IterableDataset::size() const { return begins_.back(); }
int64_t IterableDataset::reads() const {
  std::lock_guard lock(mutex_);
  return reads_;
}

std::vector<int64_t> IterableDataset::order(uint64_t seed, int64_t epoch) const {
  std::vector<int64_t> rows, buffer;
  rows.reserve(static_cast<size_t>(size()));
  Philox random{seed, stream_of("data.window") + static_cast<uint64_t>(epoch)};
  uint64_t draws = 0;
  auto take = [&] {
    auto at = static_cast<size_t>(random.below(draws++, buffer.size()));
    rows.push_back(buffer[at]);
    buffer[at] = buffer.back();
    buffer.pop_back();
  };
  for (int64_t part : epoch_order(static_cast<int64_t>(begins_.size()) - 1, seed, epoch))
    for (int64_t row = begins_[static_cast<size_t>(part)]; row < begins_[static_cast<size_t>(part) + 1]; ++row) {
      buffer.push_back(row);
      if (static_cast<int64_t>(buffer.size()) > window_) take();
    }
  while (!buffer.empty()) take();
  return rows;
}

std::pair<int64_t, int64_t> IterableDataset::place(int64_t row) const {
  const int64_t part = std::upper_bound(begins_.begin(), begins_.end(), row) - begins_.begin() - 1;
  return {part, row - begins_[static_cast<size_t>(part)]};
}

std::string IterableDataset::raw(int64_t row) const {
  // Lambdas cannot take what a structured binding names.
  const std::pair<int64_t, int64_t> at = place(row);
  const int64_t part = at.first, number = at.second;
  std::lock_guard lock(mutex_);
  auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.part == part; });
  if (found != open_.end()) open_.splice(open_.begin(), open_, found);
  if (found == open_.end() || (number < open_.front().at && !open_.front().passed.count(number))) {
    if (found != open_.end()) open_.pop_front();
    open_.push_front({part, 0, stream(part), {}});
    // A window may reach over several small parts.
    while (open_.size() > 8) open_.pop_back();
  }
  Open& o = open_.front();
  if (auto kept = o.passed.find(number); kept != o.passed.end()) {
    std::string sample = std::move(kept->second);
    o.passed.erase(kept);
    return sample;
  }
  try {
    for (;;) {
      std::string sample = o.stream->next();
      ++reads_;
      if (o.at++ == number) return sample;
      o.passed.emplace(o.at - 1, std::move(sample));
      if (static_cast<int64_t>(o.passed.size()) > 2 * window_) o.passed.erase(o.passed.begin());
    }
  } catch (...) {
    open_.pop_front();  // wherever it stands now, it is not where we think
    throw;
  }
}

void IterableDataset::fetch(const int64_t* rows, int64_t count, void* x, void* y) const {
  Meta in = input(), out = target();
  auto x_bytes = in.shape.product() * static_cast<int64_t>(itemsize(in.dtype)),
       y_bytes = out.shape.product() * static_cast<int64_t>(itemsize(out.dtype));
  for (int64_t i = 0; i < count; ++i)
    decode(raw(rows[i]), rows[i], static_cast<char*>(x) + i * x_bytes, static_cast<char*>(y) + i * y_bytes);
}

}  // namespace tenon::data
