#include "views/frame/jobs.h"

#include <algorithm>

#include "core/error.h"
#include "views/shared/format.h"

namespace tenon::views {

QString Jobs::State::figures() const {
  const int64_t d = done, t = total;
  if (!running) return "waiting";
  if (cancelled) return "stopping";
  if (t <= 0) return "running";
  auto text = [this](int64_t n) {
    return unit == Unit::bytes ? format_bytes(static_cast<double>(n)) : format_grouped(n);
  };
  return QString::fromStdString(text(d) + " / " + text(t));
}

double Jobs::State::share() const {
  const int64_t t = total;
  return t > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(t), 0.0, 1.0) : -1;
}

Jobs::Jobs(QObject* parent) : QObject(parent), thread_([this] { loop(); }) {
  connect(this, &Jobs::woken, this, &Jobs::hand_over, Qt::QueuedConnection);
}

Jobs::~Jobs() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
    waiting_.clear();
    if (running_) running_->state->cancelled = true;
  }
  wake_.notify_all();
  thread_.join();
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
    std::erase_if(waiting_, [&](const auto& w) { return w->state->tag == tag; });
    if (running_ && running_->state->tag == tag) running_->state->cancelled = true;
    for (auto& h : handing_over_)
      if (h->state->tag == tag) h->state->cancelled = true;
    waiting_.push_back(item);
  }
  wake_.notify_all();
  emit changed();
  return item->state->id;
}

void Jobs::cancel(int id) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const auto& w) { return w->state->id == id; });
    if (running_ && running_->state->id == id) running_->state->cancelled = true;
    for (auto& h : handing_over_)
      if (h->state->id == id) h->state->cancelled = true;
  }
  emit changed();
}

void Jobs::cancel_tag(const QString& tag) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const auto& w) { return w->state->tag == tag; });
    if (running_ && running_->state->tag == tag) running_->state->cancelled = true;
    for (auto& h : handing_over_)
      if (h->state->tag == tag) h->state->cancelled = true;
  }
  emit changed();
}

bool Jobs::idle() const {
  std::lock_guard lock(mutex_);
  return waiting_.empty() && !running_ && handing_over_.empty();
}

bool Jobs::has(const QString& tag) const {
  std::lock_guard lock(mutex_);
  if (running_ && running_->state->tag == tag && !running_->state->cancelled) return true;
  for (const auto& h : handing_over_)
    if (h->state->tag == tag && !h->state->cancelled) return true;
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& w) { return w->state->tag == tag; });
}

std::vector<std::shared_ptr<Jobs::State>> Jobs::list() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<State>> out;
  if (running_) out.push_back(running_->state);
  for (const auto& w : waiting_) out.push_back(w->state);
  return out;
}

void Jobs::loop() {
  for (;;) {
    std::shared_ptr<Item> item;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return quit_ || !waiting_.empty(); });
      if (quit_) return;
      item = waiting_.front();
      waiting_.pop_front();
      item->state->running = true;
      running_ = item;
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
      running_.reset();
      handing_over_.push_back(std::move(item));
      if (quit_) return;
    }
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
