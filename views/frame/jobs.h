#pragma once
#include <QObject>
#include <QString>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::views {

/// Long work away from the UI thread. With one worker the jobs run in the order they were started; with several, what
/// is short need not wait behind what is long. A newer job of the same tag takes the place of the older one: a waiting
/// one is dropped, a running one is told to stop, its result is thrown away, and the newer one begins when it is over.
class Jobs : public QObject {
  Q_OBJECT
 public:
  /// What its progress counts.
  enum class Unit : uint8_t { count, bytes };
  struct State {
    int id = 0;
    QString tag, title;
    std::atomic<int64_t> done{0}, total{0};
    std::atomic<bool> cancelled{false};
    std::atomic<bool> running{false};
    bool quiet = false;  ///< too short to be shown
    Unit unit = Unit::count;
    /// "34 / 120", "1.2 MiB / 34 MiB"; "waiting", "stopping", or "running" where nobody knows how far it is.
    QString figures() const;
    /// Done of the whole, 0 to 1; below 0 where nobody knows.
    double share() const;
  };
  /// Given to the work: tell progress; false: stop.
  using Report = std::function<bool(int64_t done, int64_t total)>;
  using Failed = std::function<void(const QString& message, const QString& hint)>;

  explicit Jobs(int workers = 1, QObject* parent = nullptr);
  ~Jobs() override;

  /// `work(report, cancelled)` runs on a worker; `done(what it returned)` and `failed` on the UI thread, unless the
  /// job was cancelled or replaced: its result is then dropped on its worker.
  template <class Work, class Done>
  int start(const QString& tag, const QString& title, Work work, Done done, Failed failed = {}, bool quiet = false,
            Unit unit = Unit::count) {
    using Result = std::invoke_result_t<Work&, const Report&, const std::atomic<bool>&>;
    Task task;
    if constexpr (std::is_void_v<Result>) {
      task.run = std::move(work);
      task.hand_over = std::move(done);
      task.drop = [] {};
    } else {
      auto result = std::make_shared<std::optional<Result>>();
      task.run = [result, work = std::move(work)](const Report& report, const std::atomic<bool>& cancelled) mutable {
        result->emplace(work(report, cancelled));
      };
      task.hand_over = [result, done = std::move(done)]() mutable { done(std::move(**result)); };
      task.drop = [result] { result->reset(); };
    }
    return enqueue(tag, title, std::move(task), std::move(failed), quiet, unit);
  }
  void cancel(int id);
  void cancel_tag(const QString& tag);
  /// Nothing waits, runs, or has a result that was not handed over.
  bool idle() const;
  bool has(const QString& tag) const;
  /// One whose tag begins so waits, runs, or has a result that was not handed over.
  bool has_any(const QString& prefix) const;
  /// What runs, and what waits. A job whose result is to be handed over is no longer among them: empty, the workers
  /// are done, also where the event loop does not turn.
  std::vector<std::shared_ptr<State>> list() const;

 signals:
  void changed();
  void failed(const QString& title, const QString& message, const QString& hint);
  void woken();  ///< from a worker: it began with a job, or has ended one

 private:
  struct Task {
    std::function<void(const Report&, const std::atomic<bool>& cancelled)> run;
    std::function<void()> hand_over, drop;
  };
  struct Item {
    std::shared_ptr<State> state;
    Task task;
    Failed failed;
    bool threw = false;  ///< then the words of what was thrown
    QString error, hint;
  };
  int enqueue(const QString& tag, const QString& title, Task task, Failed failed, bool quiet, Unit unit);
  void loop();
  void cancel_if(const std::function<bool(const State&)>& which);
  /// The first that waits for nothing but a worker; null: none.
  std::shared_ptr<Item> next_item();
  void hand_over();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Item>> waiting_;
  std::vector<std::shared_ptr<Item>> running_;
  std::vector<std::shared_ptr<Item>> handing_over_;
  bool quit_ = false;
  int next_ = 1;
  std::vector<std::thread> workers_;
};

}  // namespace tenon::views
