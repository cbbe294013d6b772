#include "tracing/chrome_trace.h"

#include <fmt/format.h>
#include <set>

#include "core/profile.h"
#include "engine/train/session.h"

namespace tenon::tracing {

Profile record_profile(TrainingSession& session, int64_t count) {
  Profile p;
  profile_start(session.group());
  struct Stop { ~Stop() { profile_stop(); } } stop;
  int64_t start = now_ns();
  for (int64_t i = 0; i < count && !session.finished(); ++i) {
    int64_t begin = now_ns() - start;
    StepResult s = session.step();
    p.steps.push_back({s.step, begin, now_ns() - start});
  }
  for (const Tick& t : profile_stop())
    p.events.push_back({t.start_ns - start, t.duration_ns, t.origin.seq, t.thread, t.origin.module, t.origin.phase, t.depth, interned_name(t.name)});
  return p;
}

static std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", c);
    else out += c;
  }
  return out + '"';
}

std::string chrome_trace(const Profile& p, const std::string& run) {
  std::string out = fmt::format("{{\"schemaVersion\":1,\"deviceProperties\":[],\"displayTimeUnit\":\"ms\",\"traceName\":{},\"traceEvents\":[\n", quoted(run));
  constexpr int kProcess = 1;
  std::set<int> threads;
  auto us = [](int64_t ns) { return fmt::format("{}.{:03d}", ns / 1000, ns % 1000); };
  auto slice = [&](const std::string& name, const char* category, int thread, int64_t start, int64_t duration, const std::string& args) {
    start = start < 0 ? 0 : start;  // a loader thread may have been inside a span when the clock started
    out += fmt::format("{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}},\n", category, quoted(name), kProcess,
                       thread, us(start), us(duration), args);
    threads.insert(thread);
  };
  for (const auto& s : p.steps) slice(fmt::format("ProfilerStep#{}", s.step), "user_annotation", 0, s.start_ns, s.end_ns - s.start_ns, "");
  for (const OpEvent& e : p.events)
    slice(e.name, e.seq ? "cpu_op" : "user_annotation", e.thread, e.start_ns, e.duration_ns,
          e.seq ? fmt::format("\"Ev Idx\":{},\"Module Hierarchy\":{},\"phase\":\"{}\"", e.seq, quoted(module_path(e.module)), name(e.phase))
                : fmt::format("\"phase\":\"{}\"", name(e.phase)));
  out += fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"tid\":0,\"ts\":0,\"args\":{{\"name\":\"tenon\"}}}}", kProcess);
  for (int t : threads)
    out += fmt::format(",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"ts\":0,\"args\":{{\"name\":\"{}\"}}}}", kProcess, t,
                       t == 0 ? "training" : fmt::format("thread {}", t));
  return out + "\n]}\n";
}

}  // namespace tenon::tracing
