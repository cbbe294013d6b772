#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

// Analyses run on texts, and what their findings say.
namespace tenon::tracing {

inline Finding run(const char* analysis, std::vector<std::shared_ptr<const traces::Trace>> traces,
                   size_t top = 100000) {
  TraceRequest r;
  r.traces = std::move(traces);
  r.top = top;
  return trace_analyses().at(analysis).run(r);
}
inline Finding run(const char* analysis, std::vector<std::string> texts, size_t top = 100000) {
  std::vector<std::shared_ptr<const traces::Trace>> traces;
  for (std::string& t : texts) traces.push_back(traces::parse_trace(std::move(t)));
  return run(analysis, std::move(traces), top);
}

template <class T>
T fact(const Finding& f, const std::string& name) {
  for (const Fact& x : f.facts)
    if (x.name == name) return std::get<T>(x.value);
  ADD_FAILURE() << "no fact " << name;
  return T();
}

/// Null where the finding has none of that name.
inline const Table* table_of(const Finding& f, const std::string& name) {
  for (const Table& t : f.tables)
    if (t.name == name) return &t;
  return nullptr;
}

}  // namespace tenon::tracing
