#include "tests/simt/streams.h"

#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tests/simt/simt.h"

namespace simt {

struct Passing {
  simt_stream* stream = nullptr;  ///< of the last record
  uint64_t recorded = 0, passed = 0;
  int64_t time_ns = 0;
  bool timed = false;
};

}  // namespace simt

namespace {

struct Piece {
  std::function<void()> work;
  std::shared_ptr<simt::Passing> mark;
  uint64_t turn = 0;   ///< of the mark: its record that this piece is or waits for
  bool holds = false;  ///< goes on when the mark has been passed
};

}  // namespace

struct simt_stream {
  int device;
  std::deque<Piece> pieces;
  bool records = false, invalid = false;
  simt::Recorded recorded = {};
};

namespace {

struct Queues {
  std::mutex mutex;  ///< held while pieces run: the device does one thing at a time
  std::vector<std::unique_ptr<simt_stream>> streams;
  std::map<int, simt_stream*> unnamed;
  std::map<int, cudaError_t> faults;
  std::string text = "unspecified launch failure";
  std::mt19937 random;
};
Queues& queues() {
  static auto* q = new Queues;  // leaked: modules give back after statics
  return *q;
}

int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

cudaError_t fault_locked(const Queues& q, int device) {
  const auto at = q.faults.find(device);
  return at == q.faults.end() ? cudaSuccess : at->second;
}

void break_locked(Queues& q, int device, const std::string& why) {
  q.faults[device] = cudaErrorLaunchFailure;
  q.text = "unspecified launch failure: " + why;
  for (const auto& s : q.streams) {
    if (s->device != device) continue;
    for (const Piece& p : s->pieces)
      if (p.mark && !p.holds) p.mark->passed = std::max(p.mark->passed, p.turn);
    s->pieces.clear();
  }
}

/// One piece of the stream, or of the one that it is held for. False where there is none.
bool advance(Queues& q, simt_stream* s) {
  if (s->pieces.empty()) return false;
  Piece& first = s->pieces.front();
  if (first.holds && first.mark->passed < first.turn) return advance(q, first.mark->stream);
  const Piece piece = std::move(first);
  s->pieces.pop_front();
  if (piece.work) {
    try {
      piece.work();
    } catch (const std::exception& e) {
      break_locked(q, s->device, e.what());
    }
  } else if (!piece.holds) {
    piece.mark->passed = piece.turn;
    piece.mark->time_ns = clock_ns();
  }
  return true;
}

/// Runs pieces until `done`, which the target's pieces lead to.
template <class Done>
void run_until(Queues& q, simt_stream* target, Done&& done) {
  const simt::Turns turns = simt::turns();
  if (turns.order == simt::Order::backward && !done())
    for (auto s = q.streams.rbegin(); s != q.streams.rend(); ++s)
      while (s->get() != target && advance(q, s->get())) {
      }
  while (!done()) {
    simt_stream* next = target;
    if (turns.order == simt::Order::shuffled) next = q.streams[q.random() % q.streams.size()].get();
    if (!advance(q, next) && next == target) return;
  }
}

cudaError_t add(simt_stream* stream, Piece piece) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  if (const cudaError_t fault = fault_locked(q, stream->device)) return fault;
  if (stream->records && piece.mark) {
    stream->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (stream->records) {
    stream->recorded.push_back(std::move(piece.work));
    return cudaSuccess;
  }
  if (piece.mark && !piece.holds) {
    piece.mark->stream = stream;
    piece.turn = ++piece.mark->recorded;
  } else if (piece.mark) {
    piece.turn = piece.mark->recorded;
  }
  stream->pieces.push_back(std::move(piece));
  return cudaSuccess;
}

}  // namespace

namespace simt {

simt_stream* make_stream(int device) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  q.streams.push_back(std::make_unique<simt_stream>(simt_stream{.device = device, .pieces = {}}));
  return q.streams.back().get();
}
simt_stream* unnamed_stream(int device) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  simt_stream*& s = q.unnamed[device];
  if (!s) {
    q.streams.push_back(std::make_unique<simt_stream>(simt_stream{.device = device, .pieces = {}}));
    s = q.streams.back().get();
  }
  return s;
}

cudaError_t give(simt_stream* stream, std::function<void()> work) {
  return add(stream, {std::move(work), nullptr, 0, false});
}
cudaError_t record(simt_stream* stream, const std::shared_ptr<Passing>& mark) {
  return add(stream, {nullptr, mark, 0, false});
}
cudaError_t hold_for(simt_stream* stream, const std::shared_ptr<Passing>& mark) {
  return add(stream, {nullptr, mark, 0, true});
}

cudaError_t begin_recording(simt_stream* stream) {
  std::lock_guard lock(queues().mutex);
  if (stream->records) return cudaErrorStreamCaptureUnsupported;
  stream->records = true;
  stream->invalid = false;
  stream->recorded.clear();
  return cudaSuccess;
}
cudaError_t end_recording(simt_stream* stream, Recorded* recorded) {
  std::lock_guard lock(queues().mutex);
  if (!stream->records) return cudaErrorInvalidValue;
  stream->records = false;
  *recorded = std::move(stream->recorded);
  return stream->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t finish(simt_stream* stream) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  if (stream->records) {
    stream->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  run_until(q, stream, [&] { return stream->pieces.empty(); });
  return fault_locked(q, stream->device);
}
cudaError_t finish_device(int device) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  for (const auto& s : q.streams)
    if (s->device == device && s->records) {
      s->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  for (size_t i = 0; i < q.streams.size(); ++i) {
    simt_stream* s = q.streams[i].get();
    if (s->device == device) run_until(q, s, [&] { return s->pieces.empty(); });
  }
  return fault_locked(q, device);
}
cudaError_t finish(const std::shared_ptr<Passing>& mark) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  if (!mark->stream) return cudaSuccess;
  run_until(q, mark->stream, [&] { return mark->passed == mark->recorded; });
  return fault_locked(q, mark->stream->device);
}

std::shared_ptr<Passing> make_passing(bool timed) {
  auto p = std::make_shared<Passing>();
  p->timed = timed;
  return p;
}
cudaError_t ask(const std::shared_ptr<Passing>& mark) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  if (!mark->stream) return cudaSuccess;
  if (const cudaError_t fault = fault_locked(q, mark->stream->device)) return fault;
  if (mark->passed == mark->recorded) return cudaSuccess;
  advance(q, mark->stream);
  return cudaErrorNotReady;
}
cudaError_t between(const std::shared_ptr<Passing>& begin, const std::shared_ptr<Passing>& end, float* ms) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  if (!begin->timed || !end->timed || !begin->stream || !end->stream) return cudaErrorInvalidResourceHandle;
  for (const auto& p : {begin, end})
    if (p->passed != p->recorded) return cudaErrorNotReady;
  *ms = static_cast<float>(static_cast<double>(end->time_ns - begin->time_ns) * 1e-6);
  return cudaSuccess;
}

cudaError_t fault_of(int device) {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  return fault_locked(q, device);
}
const char* fault_text() {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  thread_local std::string text;
  text = q.text;
  return text.c_str();
}

}  // namespace simt

/// A fault at this place of a stream, as of a kernel that does what a GPU forbids.
extern "C" __attribute__((visibility("default"))) void tenon_simt_fault(void* stream, const char* why) {
  const std::string text = why;
  simt::give(static_cast<simt_stream*>(stream), [text] { throw simt::Fault(text); });
}
/// Mends all devices, as a new process finds them.
extern "C" __attribute__((visibility("default"))) void tenon_simt_mend() {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  q.faults.clear();
}
/// Pieces of work that no stream has run.
extern "C" __attribute__((visibility("default"))) uint64_t tenon_simt_behind() {
  Queues& q = queues();
  std::lock_guard lock(q.mutex);
  uint64_t n = 0;
  for (const auto& s : q.streams) n += s->pieces.size();
  return n;
}
