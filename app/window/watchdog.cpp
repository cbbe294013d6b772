#include "app/window/watchdog.h"

#include <pthread.h>
#include <time.h>

#include <QCoreApplication>
#include <QEvent>
#include <algorithm>
#include <chrono>

#include "core/profile.h"

namespace tenon::app {

namespace {
const QEvent::Type kKnock = static_cast<QEvent::Type>(QEvent::registerEventType());

struct Knock : QEvent {
  Knock(int64_t at, int64_t done, size_t d) : QEvent(kKnock), posted(at), worked(done), during(d) {}
  int64_t posted, worked;  ///< when, and how long the UI thread had worked by then
  size_t during;
};

int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}
}  // namespace

class Watchdog::Ear : public QObject {
 public:
  struct Phase {
    std::string name;
    std::vector<double> late_ms, work_ms;
  };
  bool event(QEvent* e) override {
    if (e->type() != kKnock) return QObject::event(e);
    const auto* knock = static_cast<Knock*>(e);
    Phase& p = phases[knock->during];
    p.late_ms.push_back(static_cast<double>(now_ns() - knock->posted) / 1e6);
    p.work_ms.push_back(static_cast<double>(read_clock(CLOCK_THREAD_CPUTIME_ID) - knock->worked) / 1e6);
    return true;
  }
  std::vector<Phase> phases = {{"starting", {}, {}}};
};

Watchdog::Watchdog() : ear_(std::make_unique<Ear>()) {
  clockid_t of_ui = CLOCK_THREAD_CPUTIME_ID;
  pthread_getcpuclockid(pthread_self(), &of_ui);
  thread_ = std::thread([this, of_ui] {
    auto next = std::chrono::steady_clock::now();
    while (!quit_) {
      QCoreApplication::postEvent(ear_.get(), new Knock(now_ns(), read_clock(of_ui), during_));
      next = std::max(next + std::chrono::milliseconds(5), std::chrono::steady_clock::now());
      std::this_thread::sleep_until(next);
    }
  });
}

Watchdog::~Watchdog() {
  quit_ = true;
  thread_.join();
}

void Watchdog::begin(const std::string& during) {
  ear_->phases.push_back({during, {}, {}});
  during_ = ear_->phases.size() - 1;
}

std::vector<Watchdog::Heard> Watchdog::heard() const {
  std::vector<Heard> all;
  for (const Ear::Phase& p : ear_->phases)
    if (!p.late_ms.empty())
      all.push_back({p.name, percentile(p.late_ms, 50), percentile(p.late_ms, 99), percentile(p.late_ms, 100),
                     percentile(p.work_ms, 99), percentile(p.work_ms, 100)});
  return all;
}

int64_t processor_time() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

double percentile(std::vector<double> of, int hundredths) {
  const size_t at = (of.size() - 1) * static_cast<size_t>(hundredths) / 100;
  std::nth_element(of.begin(), of.begin() + static_cast<ptrdiff_t>(at), of.end());
  return of[at];
}

}  // namespace tenon::app
