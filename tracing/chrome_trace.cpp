#include "tracing/chrome_trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/state.h"

namespace tenon::tracing {
namespace {

constexpr int64_t kGap = 1000;  // nanoseconds between two steps

std::string quoted(const std::string& s) { return nlohmann::json(s).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace); }
/// Microseconds with three decimals, never through a floating-point number.
std::string us(int64_t ns) { return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000); }

/// What PyTorch calls the type of an input.
const char* torch_type(DType t) {
  switch (t) {
    case DType::boolean: return "bool";
    case DType::u8: return "unsigned char";
    case DType::i8: return "signed char";
    case DType::i16: return "short int";
    case DType::i32: return "int";
    case DType::i64: return "long int";
    case DType::f16: return "c10::Half";
    case DType::bf16: return "c10::BFloat16";
    case DType::f32: return "float";
    case DType::f64: return "double";
  }
  return "";
}

class Writer {
 public:
  void step(const StepRecord& record) {
    record_ = &record;
    slice("user_annotation", fmt::format("ProfilerStep#{}", record.step), 0, 0, record.duration_ns, fmt::format("\"loss\":{}", number(record.loss)));
    phases();
    std::map<uint32_t, std::pair<int64_t, uint16_t>> began;  // of forward ops, for the flows
    for (const OpEvent& e : record.events) {
      threads_.insert(e.thread);
      if (e.seq == 0 || e.seq > record.ops.size()) {
        slice("user_annotation", name(e.phase), e.thread, e.start_ns, e.duration_ns, "");
        continue;
      }
      const OpRecord& op = record.ops[e.seq - 1];
      began.emplace(op.seq, std::pair{e.start_ns, e.thread});
      slice("cpu_op", op.name, e.thread, e.start_ns, e.duration_ns, op_args(op));
      if (op.forward_seq) {
        const auto at = began.find(op.forward_seq);
        if (at != began.end()) flow(at->second.first, at->second.second, e.start_ns, e.thread);
      }
    }
    int64_t live = 0;
    for (const AllocEvent& a : record.allocs) {
      live += a.bytes;
      event(fmt::format(R"("ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{},"tid":0,"ts":{},"args":{{"Device Type":0,"Device Id":-1,"Addr":{},"Bytes":{},)"
                        R"("Total Allocated":{}}})",
                        pid_, us(base_ + a.time_ns), a.address, a.bytes, live));
    }
    base_ += record.duration_ns + kGap;
  }

  std::string finish() {
    event(fmt::format(R"("ph":"M","name":"process_name","pid":{},"tid":0,"ts":0,"args":{{"name":"tenon"}})", pid_));
    event(fmt::format(R"("ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0,"args":{{"labels":"CPU"}})", pid_));
    for (uint16_t t : threads_) {
      const std::string who = t == 0 ? "training" : fmt::format("data {}", t);
      event(fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"ts":0,"args":{{"name":{}}})", pid_, t, quoted(who)));
      event(fmt::format(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"ts":0,"args":{{"sort_index":{}}})", pid_, t, t));
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return fmt::format("{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":{},\"record_shapes\":1,\"profile_memory\":1,\"with_modules\":1,\n"
                       "\"traceEvents\":[\n{}\n]}}\n",
                       std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), text_);
  }

 private:
  static std::string number(double v) { return std::isfinite(v) ? fmt::format("{}", v) : fmt::format("\"{}\"", v); }

  void event(const std::string& body) {
    if (!text_.empty()) text_ += ",\n";
    text_ += "{" + body + "}";
  }
  void slice(const char* category, const std::string& what, uint16_t thread, int64_t start, int64_t duration, const std::string& args) {
    event(fmt::format(R"("ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})", category, quoted(what), pid_, thread, us(base_ + start), us(duration), args));
  }
  void flow(int64_t from, uint16_t from_thread, int64_t to, uint16_t to_thread) {
    ++flows_;
    event(fmt::format(R"("ph":"s","cat":"fwdbwd","name":"fwdbwd","id":{},"pid":{},"tid":{},"ts":{})", flows_, pid_, from_thread, us(base_ + from)));
    event(fmt::format(R"("ph":"f","cat":"fwdbwd","name":"fwdbwd","bp":"e","id":{},"pid":{},"tid":{},"ts":{})", flows_, pid_, to_thread, us(base_ + to)));
  }
  /// One slice from the first to the last op of each uninterrupted stretch of a phase on the training thread.
  void phases() {
    const OpEvent* first = nullptr;
    int64_t end = 0;
    auto give = [&] {
      if (first && first->phase != Phase::none) slice("user_annotation", name(first->phase), 0, first->start_ns, end - first->start_ns, "");
    };
    for (const OpEvent& e : record_->events) {
      if (e.thread != 0 || e.depth != 0 || e.seq == 0) continue;
      if (!first || e.phase != first->phase) {
        give();
        first = &e;
      }
      end = e.start_ns + e.duration_ns;
    }
    give();
  }
  std::string op_args(const OpRecord& op) {
    std::string dims, types;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const int i = op.inputs[k];
      const bool known = i >= 0 && static_cast<size_t>(i) < record_->tensors.size();
      dims += k ? "," : "";
      dims += known ? to_string(record_->tensors[static_cast<size_t>(i)].layout.size) : "[]";
      types += k ? "," : "";
      types += fmt::format("\"{}\"", known ? torch_type(record_->tensors[static_cast<size_t>(i)].dtype) : "");
    }
    return fmt::format(R"("External id":{},"Ev Idx":{},"Sequence number":{},"Fwd thread id":0,"Input Dims":[{}],"Input type":[{}],"Module Hierarchy":{},"phase":"{}","attributes":{},"flops":{},"bytes":{})",
                       externals_ + op.seq, externals_ + op.seq, op.forward_seq ? op.forward_seq : op.seq, dims, types, quoted(module_path(op.origin.module)), name(op.origin.phase), quoted(op.attrs),
                       number(op.flops), number(op.bytes));
  }

  const StepRecord* record_ = nullptr;
  std::string text_;
  std::set<uint16_t> threads_ = {0};
  int64_t base_ = 0;
  int pid_ = ::getpid();
  int flows_ = 0;

 public:
  uint32_t externals_ = 0;  ///< op numbers of earlier steps
};

}  // namespace

std::string chrome_trace(const std::vector<std::shared_ptr<const StepRecord>>& steps) {
  Writer w;
  for (const auto& s : steps) {
    w.step(*s);
    w.externals_ += static_cast<uint32_t>(s->ops.size());
  }
  return w.finish();
}

}  // namespace tenon::tracing
