#pragma once
#include <future>
#include <thread>
#include <utility>

namespace tenon {

namespace detail {
void lower_priority();
}

/// Runs `work` on a thread of lower priority and waits: what keeps every core busy for seconds gives way to whoever
/// draws. Returns what it returns and throws what it throws. Threads that it starts give way too; the workers of
/// parallel_for do not.
template <class Work>
auto giving_way(Work&& work) {
  std::packaged_task<decltype(work())()> task([&] {
    detail::lower_priority();
    return work();
  });
  auto result = task.get_future();
  std::thread(std::move(task)).join();
  return result.get();
}

}  // namespace tenon
