#include "views/frame/jobs.h"

#include <algorithm>

#include "core/error.h"
#include "views/shared/format.h"

namespace tenon::views {

QString Jobs::State::figures() const {
  const int64_t d = done, t = total;
  if (!running) return tr("waiting");
  if (cancelled) return tr("stopping");
  if (t <= 0) return tr("running");
  auto text = [this](int64_t n) {
    return unit == Unit::bytes ? format_bytes(static_cast<double>(n)) : format_grouped(n);
  };
  return QString::fromStdString(text(d) + " / " + text(t));
}

double Jobs::State::share() const {
  const int64_t t = total;
  return t > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(t), 0.0, 1.0) : -1;
}

Jobs::Jobs(int workers, QObject* parent) : QObject(parent) {
  connect(this, &Jobs::woken, this, &Jobs::hand_over, Qt::QueuedConnection);
  for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { loop(); });
}

Jobs::~Jobs() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
    waiting_.clear();
    for (const auto& r : running_) r->state->cancelled = true;
  }
  wake_.notify_all();
  for (std::thread& w : workers_) w.join();
}

int Jobs::enqueue(const QString& tag, const QString& title, Task task, Failed failed, bool quiet, Unit unit) {
  auto item = std::make_shared<Item>();
  item->state = std::make_shared<State>();
  item->state->tag = tag;
  item->state->title = title;
  item->state->quiet = quiet;
  item->state->unit = unit;
  item->task = std::move(task);
  item->failed = std::move(failed);
  {
    std::lock_guard lock(mutex_);
    item->state->id = next_++;
    cancel_if([&](const State& s) { return s.tag == tag; });
    waiting_.push_back(item);
  }
  wake_.notify_all();
  emit changed();
  return item->state->id;
}

/// Under the mutex.
void Jobs::cancel_if(const std::function<bool(const State&)>& which) {
  std::erase_if(waiting_, [&](const auto& w) { return which(*w->state); });
  for (const auto* begun : {&running_, &handing_over_})
    for (const auto& item : *begun)
      if (which(*item->state)) item->state->cancelled = true;
}

void Jobs::cancel(int id) {
  {
    std::lock_guard lock(mutex_);
    cancel_if([&](const State& s) { return s.id == id; });
  }
  emit changed();
}

void Jobs::cancel_tag(const QString& tag) {
  {
    std::lock_guard lock(mutex_);
    cancel_if([&](const State& s) { return s.tag == tag; });
  }
  emit changed();
}

bool Jobs::idle() const {
  std::lock_guard lock(mutex_);
  return waiting_.empty() && running_.empty() && handing_over_.empty();
}

bool Jobs::has(const QString& tag) const {
  std::lock_guard lock(mutex_);
  for (const auto* begun : {&running_, &handing_over_})
    for (const auto& item : *begun)
      if (item->state->tag == tag && !item->state->cancelled) return true;
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& w) { return w->state->tag == tag; });
}

bool Jobs::has_any(const QString& prefix) const {
  std::lock_guard lock(mutex_);
  auto begins = [&](const std::shared_ptr<Item>& i) {
    return i->state->tag.startsWith(prefix) && !i->state->cancelled;
  };
  return std::any_of(running_.begin(), running_.end(), begins) ||
         std::any_of(handing_over_.begin(), handing_over_.end(), begins) ||
         std::any_of(waiting_.begin(), waiting_.end(), begins);
}

std::vector<std::shared_ptr<Jobs::State>> Jobs::list() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<State>> out;
  for (const auto& r : running_) out.push_back(r->state);
  for (const auto& w : waiting_) out.push_back(w->state);
  return out;
}

std::shared_ptr<Jobs::Item> Jobs::next_item() {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    const QString& tag = (*it)->state->tag;
    if (std::any_of(running_.begin(), running_.end(), [&](const auto& r) { return r->state->tag == tag; })) continue;
    std::shared_ptr<Item> item = std::move(*it);
    waiting_.erase(it);
    return item;
  }
  return {};
}

void Jobs::loop() {
  for (;;) {
    std::shared_ptr<Item> item;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return quit_ || (item = next_item()); });
      if (quit_) return;
      item->state->running = true;
      running_.push_back(item);
    }
    emit woken();
    State& state = *item->state;
    try {
      item->task.run(
          [&state](int64_t done, int64_t total) {
            state.done = done;
            state.total = total;
            return !state.cancelled;
          },
          state.cancelled);
    } catch (...) {
      const Error e = caught_error();
      item->threw = true;
      item->error = QString::fromStdString(e.message());
      item->hint = QString::fromStdString(e.hint());
    }
    if (state.cancelled) item->task.drop();  // nobody will take it
    {
      std::lock_guard lock(mutex_);
      std::erase(running_, item);
      handing_over_.push_back(std::move(item));
      if (quit_) return;
    }
    wake_.notify_all();  // one of the same tag may have waited for it
    emit woken();
  }
}

// Results go through the mutex, not through the event that tells of them: the event loop's own lock is not one that the
// thread sanitizer knows.
void Jobs::hand_over() {
  for (;;) {
    std::shared_ptr<Item> item;
    {
      std::lock_guard lock(mutex_);
      if (handing_over_.empty()) break;
      item = std::move(handing_over_.front());
      handing_over_.erase(handing_over_.begin());
    }
    if (item->state->cancelled) continue;
    if (!item->threw)
      item->task.hand_over();
    else if (item->failed)
      item->failed(item->error, item->hint);
    else
      emit failed(item->state->title, item->error, item->hint);
  }
  emit changed();
}

}  // namespace tenon::views
