#include "tracing/trace_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::tracing {
namespace {

constexpr size_t kMaxCategories = 1000, kMaxKeys = 200;

/// Events are the objects of the list "traceEvents" of an object, or of a list that is the whole text.
struct Counter : nlohmann::json_sax<nlohmann::json> {
  TraceInfo info;
  std::map<std::string, int64_t> categories;
  bool found = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& s) override {
    if (in_event_ && depth_ == event_depth_ && key_ == "cat" && (categories.size() < kMaxCategories || categories.contains(s)))
      ++categories[s];
    return true;
  }
  bool start_object(std::size_t) override {
    ++depth_;
    if (events_at_ && depth_ == events_at_ + 1) {
      ++info.events;
      in_event_ = true;
      event_depth_ = depth_;
    }
    return true;
  }
  bool end_object() override {
    if (in_event_ && depth_ == event_depth_) in_event_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (!events_at_ && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      events_at_ = depth_;
      found = true;
    }
    return true;
  }
  bool end_array() override {
    if (depth_ == events_at_) events_at_ = 0;
    --depth_;
    return true;
  }
  bool key(string_t& s) override {
    key_ = s;
    if (depth_ == 1 && s != "traceEvents" && info.keys.size() < kMaxKeys) info.keys.push_back(s);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    throw Error(fmt::format("no whole JSON text: it breaks at byte {}, after {} events", at, info.events));
  }

 private:
  std::string key_;
  int depth_ = 0, events_at_ = 0, event_depth_ = 0;
  bool in_event_ = false;
};

}  // namespace

TraceInfo trace_info(std::string_view json) {
  Counter counter;
  nlohmann::json::sax_parse(json.begin(), json.end(), &counter);
  if (!counter.found) throw Error("not a trace: there is no list of traceEvents");
  TraceInfo info = std::move(counter.info);
  info.categories.assign(counter.categories.begin(), counter.categories.end());
  std::stable_sort(info.categories.begin(), info.categories.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return info;
}

}  // namespace tenon::tracing
