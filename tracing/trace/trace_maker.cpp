#include "tracing/trace/trace_maker.h"

#include <fmt/format.h>

#include "tracing/trace/source_text.h"
#include "tracing/trace/store_builder.h"

namespace tenon::traces {
namespace {

std::string json_text(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", c);
    else
      out += c;
  }
  return out + '"';
}

/// Names of a part stand as in JSON, between the quotes.
std::string escaped(std::string_view s) {
  std::string q = json_text(s);
  return q.substr(1, q.size() - 2);
}

std::string microseconds(int64_t ns) {
  return fmt::format("{}{}.{:03d}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

}  // namespace

uint32_t TraceMaker::row(int64_t number, std::string_view name) {
  std::string_view tid = texts_[texts_.own(std::to_string(number))], pid = texts_[texts_.own("1")];
  for (uint32_t r = 0; r < part_.row_ids.size(); ++r)
    if (part_.row_ids[r].second == tid) return r;
  const auto row = static_cast<uint32_t>(part_.rows.size());
  part_.rows.emplace_back();
  part_.row_ids.emplace_back(pid, tid);
  part_.row_names.push_back({row, 't', std::string(name)});
  return row;
}

void TraceMaker::slice(uint32_t row, std::string_view category, std::string_view name, int64_t start_ns,
                       int64_t duration_ns, uint64_t number) {
  const uint32_t text = part_.names.own(escaped(name));
  part_.name_uses.resize(part_.names.size());
  ++part_.name_uses[text].count;
  part_.rows[row].push_back(
      {start_ns, duration_ns, number, text, static_cast<uint16_t>(part_.categories.own(escaped(category))), 0, 'X'});
  ++part_.events;
}

void TraceMaker::forward_backward(uint32_t from_row, int64_t from_ns, uint32_t to_row, int64_t to_ns) {
  const uint32_t id = part_.flow_ids.own(fmt::format("fwdbwd {}", part_.flows.size() / 2));
  part_.flows.push_back({from_ns, from_row, id, true});
  part_.flows.push_back({to_ns, to_row, id, false});
}

std::shared_ptr<const Trace> TraceMaker::finish(std::string process,
                                                std::vector<std::pair<std::string, std::string>> metadata,
                                                std::function<std::string(uint64_t)> arguments) {
  if (!part_.rows.empty()) part_.row_names.push_back({0, 'p', std::move(process)});
  Outline outline;
  outline.metadata = std::move(metadata);
  std::vector<Part> parts;
  parts.push_back(std::move(part_));
  auto trace = StoreBuilder(std::move(parts)).build(outline, *SourceText::of(""));
  trace->made_arguments_ = std::move(arguments);
  return trace;
}

std::string Trace::made_text(EventId e) const {
  const Row& row = rows_[row_of(e)];
  return fmt::format(
      "{{\"ph\":\"X\",\"cat\":{},\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}}",
      json_text(category(e).name), json_text(event_name(e)), row.pid, row.tid, microseconds(start(e)),
      microseconds(duration(e)), made_arguments_(number(e)));
}

std::string chrome_json(const Trace& t) {
  std::string out = "{\"schemaVersion\":1,\"deviceProperties\":[],\"displayTimeUnit\":\"ms\"";
  for (const auto& [key, value] : t.metadata()) out += "," + json_text(key) + ":" + value;
  out += ",\"traceEvents\":[\n";
  for (const Row& r : t.rows()) {
    out += fmt::format(
        "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"tid\":0,\"ts\":0,\"args\":{{\"name\":{}}}}},\n", r.pid,
        json_text(r.process));
    out += fmt::format(
        "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"ts\":0,\"args\":{{\"name\":{}}}}},\n", r.pid,
        r.tid, json_text(r.thread));
  }
  for (EventId e = 0; e < t.size(); ++e) out += t.event_text(e) + ",\n";
  for (size_t i = 0; i < t.forward_backward().size(); ++i) {
    const auto end = [&](const char* phase, EventId e, const char* binds) {
      const Row& row = t.rows()[t.row_of(e)];
      out += fmt::format(
          "{{\"ph\":\"{}\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"{}}},\n",
          phase, i + 1, row.pid, row.tid, microseconds(t.start(e)), binds);
    };
    end("s", t.forward_backward()[i].from, "");
    end("f", t.forward_backward()[i].to, ",\"bp\":\"e\"");
  }
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  return out + "\n]}\n";
}

}  // namespace tenon::traces
