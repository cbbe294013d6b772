#include "engine/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/error.h"
#include "core/profile.h"
#include "core/random.h"
#include "core/state.h"

namespace tenon::data {

std::vector<int64_t> epoch_order(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  Philox random{seed, stream_of("data.order") + static_cast<uint64_t>(epoch)};
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(rows[static_cast<size_t>(i)], rows[random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(i) + 1)]);
  return rows;
}

struct Loader::Impl {
  struct Result {
    Batch batch;
    std::exception_ptr error;
  };
  using Order = std::shared_ptr<const std::vector<int64_t>>;

  std::shared_ptr<const Dataset> set;
  LoaderOptions options;
  int64_t per_epoch = 0, total = 0;  ///< batches and rows of an epoch

  // Batches are numbered through: epoch * per_epoch + index. Guarded by mutex: everything below.
  std::mutex mutex;
  std::condition_variable work, done;
  int64_t position = 0;     // that next() gives
  int64_t claimed = 0;      // the next one a worker takes
  uint64_t generation = 0;  // raised by seek(): results of earlier ones are dropped
  std::map<int64_t, Result> ready;
  std::map<int64_t, Order> orders;  // of the epochs in flight
  Order without;                    // rows that are left out
  bool quit = false;
  std::vector<std::thread> threads;

  Order order(int64_t epoch) {
    {
      std::lock_guard lock(mutex);
      auto found = orders.find(epoch);
      if (found != orders.end()) return found->second;
    }
    std::vector<int64_t> own =
        options.sampler ? options.sampler->order(options.seed, epoch) : set->order(options.seed, epoch);
    auto made = std::make_shared<const std::vector<int64_t>>(own.empty() ? epoch_order(set->size(), options.seed, epoch)
                                                                         : std::move(own));
    std::lock_guard lock(mutex);
    while (orders.size() > 2) orders.erase(orders.begin());
    return orders.try_emplace(epoch, made).first->second;
  }

  /// Of a whole batch, whoever shares it, without those that are left out.
  std::vector<int64_t> rows_of(int64_t number) {
    const int64_t first = number % per_epoch * options.batch, n = std::min(options.batch, total - first);
    std::vector<int64_t> rows(static_cast<size_t>(n));
    if (!options.shuffle && !options.sampler) {
      std::iota(rows.begin(), rows.end(), first);
    } else {
      Order all = order(number / per_epoch);
      std::copy(all->begin() + first, all->begin() + first + n, rows.begin());
    }
    Order gone;
    {
      std::lock_guard lock(mutex);
      gone = without;
    }
    if (!gone->empty())
      std::erase_if(rows, [&](int64_t r) { return std::binary_search(gone->begin(), gone->end(), r); });
    return rows;
  }

  std::string named(int64_t row) const {
    const std::string source = set->source(row).text();
    return "sample " + std::to_string(row) + (source.empty() ? "" : " (" + source + ")");
  }

  Batch load(int64_t number) {
    PhaseScope phase(Phase::data, Category::data);
    ProfileScope span("load batch");
    std::vector<int64_t> rows = rows_of(number);
    const auto whole = static_cast<int64_t>(rows.size());
    std::string where =
        "batch " + std::to_string(number % per_epoch) + " of epoch " + std::to_string(number / per_epoch);
    if (whole > 0 && whole < options.world)
      throw Error(where + ": " + std::to_string(whole) + " of its samples are left, which " +
                      std::to_string(options.world) + " replicas cannot share",
                  "leave out fewer samples (data.without), or choose a larger batch");
    rows.erase(rows.begin() + whole * (options.rank + 1) / options.world, rows.end());
    rows.erase(rows.begin(), rows.begin() + whole * options.rank / options.world);
    try {
      Batch b;
      if (whole > 0) b = fetch(*set, rows, number / per_epoch);
      b.epoch = number / per_epoch;
      b.index = number % per_epoch;
      b.whole = whole;
      return b;
    } catch (const std::exception& all) {
      // Which sample it was: alone, the culprit fails again.
      for (int64_t row : rows) {
        try {
          fetch(*set, {row}, number / per_epoch);
        } catch (const Error& e) {
          throw e.in(named(row) + ", " + where);
        } catch (const std::exception& e) {
          throw Error(named(row) + ", " + where + ": " + e.what());
        }
      }
      throw Error(where + ": " + all.what());
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return quit || claimed < position + options.prefetch; });
      if (quit) return;
      int64_t number = claimed++;
      uint64_t mine = generation;
      lock.unlock();
      Result result;
      try {
        result.batch = load(number);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      if (mine != generation) continue;
      ready[number] = std::move(result);
      done.notify_all();
    }
  }
};

Loader::Loader(std::shared_ptr<const Dataset> set, LoaderOptions options) : impl_(new Impl) {
  Impl& m = *impl_;
  m.set = std::move(set);
  m.options = options;
  m.without = std::make_shared<const std::vector<int64_t>>(std::move(options.without));
  int64_t n = m.total = options.sampler ? options.sampler->size() : m.set->size();
  if (options.batch < 1)
    throw Error::usage("data.batch_size = " + std::to_string(options.batch) + ": a batch has at least one sample");
  if (options.batch > n)
    throw Error::usage("data.batch_size = " + std::to_string(options.batch) +
                       " is larger than the data set, which has " + std::to_string(n) + " samples");
  m.options.prefetch = std::max<int64_t>(1, options.prefetch);
  m.per_epoch = options.drop_last ? n / options.batch : (n + options.batch - 1) / options.batch;
  const int64_t last = options.drop_last || n % options.batch == 0 ? options.batch : n % options.batch;
  if (last < options.world)
    throw Error::usage("data.batch_size = " + std::to_string(options.batch) + " of " + std::to_string(n) +
                           " samples gives a batch of " + std::to_string(last) + ", which " +
                           std::to_string(options.world) + " replicas cannot share",
                       "choose another batch size, or data.drop_last = true");
  for (int i = 0; i < options.workers; ++i)
    m.threads.emplace_back([&m, group = t_state.group] {
      t_state.group = group;
      m.run();
    });
}

Loader::~Loader() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->quit = true;
  }
  impl_->work.notify_all();
  for (auto& t : impl_->threads) t.join();
}

int64_t Loader::batches_per_epoch() const { return impl_->per_epoch; }
int64_t Loader::samples_per_epoch() const {
  return impl_->options.drop_last ? impl_->per_epoch * impl_->options.batch : impl_->total;
}
int64_t Loader::epoch() const { return impl_->position / impl_->per_epoch; }
int64_t Loader::index() const { return impl_->position % impl_->per_epoch; }

void Loader::seek(int64_t epoch, int64_t index) {
  if (epoch < 0 || index < 0 || index >= impl_->per_epoch)
    throw Error("no batch " + std::to_string(index) + " in epoch " + std::to_string(epoch) + ": an epoch has " +
                std::to_string(impl_->per_epoch) + " batches");
  {
    std::lock_guard lock(impl_->mutex);
    int64_t to = epoch * impl_->per_epoch + index;
    if (to == impl_->position && impl_->ready.find(to) != impl_->ready.end() && !impl_->ready[to].error) return;
    impl_->position = impl_->claimed = to;
    ++impl_->generation;
    impl_->ready.clear();
  }
  impl_->work.notify_all();
}

void Loader::leave_out(std::vector<int64_t> rows) {
  {
    std::lock_guard lock(impl_->mutex);
    if (rows == *impl_->without) return;
    impl_->without = std::make_shared<const std::vector<int64_t>>(std::move(rows));
    impl_->claimed = impl_->position;
    ++impl_->generation;
    impl_->ready.clear();
  }
  impl_->work.notify_all();
}

Batch Loader::next() {
  Impl& m = *impl_;
  Impl::Result result;
  if (m.threads.empty()) {
    result.batch = m.load(m.position);
  } else {
    std::unique_lock lock(m.mutex);
    m.done.wait(lock, [&] { return m.ready.count(m.position) > 0; });
    Impl::Result& first = m.ready[m.position];
    if (first.error) std::rethrow_exception(first.error);
    result = std::move(first);
    m.ready.erase(m.position);
  }
  {
    std::lock_guard lock(m.mutex);
    ++m.position;
  }
  m.work.notify_all();
  return std::move(result.batch);
}

}  // namespace tenon::data
