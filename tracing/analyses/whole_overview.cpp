#include "tracing/analyses/whole_overview.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/machine_memory.h"
#include "core/version.h"
#include "tracing/trace/column_file.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

using nlohmann::json;

/// Raised where what an overview says of the same events changes.
constexpr const char* kOverviewForm = "overview " TENON_VERSION " 2";
constexpr int64_t kFar = INT64_MAX / 4;

[[noreturn]] void not_sound() { throw Error("damaged"); }

// Every member of what is kept, in order. A is what writes or reads them.
template <class A>
void all_of(A& a, Sight& s) {
  a(s.event), a(s.from), a(s.to), a(s.place), a(s.tensor), a(s.node), a(s.trace);
}
template <class A>
void all_of(A& a, Column& c) {
  a(c.name), a(c.head), a(c.unit), a(c.wide);
}
template <class A>
void all_of(A& a, Table& t) {
  a(t.name), a(t.columns), a(t.rows), a(t.sights), a(t.others);
}
template <class A>
void all_of(A& a, Fact& f) {
  a(f.name), a(f.head), a(f.unit), a(f.value);
}
template <class A>
void all_of(A& a, Finding& f) {
  a(f.sentence), a(f.facts), a(f.tables), a(f.ok);
}
template <class A>
void all_of(A& a, PartTimes& p) {
  for (int64_t& ns : p.ns) a(ns);
}
template <class A>
void all_of(A& a, StepTimes& s) {
  a(s.step.number), a(s.step.start), a(s.step.end), a(s.step.row), a(s.begin), a(s.end), a(s.parts);
}
template <class A>
void all_of(A& a, KernelFill& f) {
  a(f.kernels), a(f.looked_at), a(f.occupancy), a(f.full), a(f.under_full), a(f.most_under_full);
  a(f.occupancy_told), a(f.blocks_told);
}
template <class A>
void all_of(A& a, Advice& d) {
  a(d.about), a(d.seen), a(d.figure), a(d.threshold), a(d.try_this), a(d.sight);
}
template <class A>
void all_of(A& a, std::pair<std::string, std::string>& p) {
  a(p.first), a(p.second);
}
template <class A>
void all_of(A& a, Overview& o) {
  a(o.gpu), a(o.steps), a(o.warm_up), a(o.sum), a(o.sentence), a(o.cause), a(o.gpu_busy), a(o.fill), a(o.kernels);
  a(o.advice), a(o.configuration);
}

class Writer {
 public:
  json values = json::array();

  template <class T>
  void operator()(T& v) {
    if constexpr (std::is_enum_v<T>)
      values.push_back(static_cast<int>(v));
    else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
      values.push_back(v);
    else
      all_of(*this, v);
  }
  void operator()(std::optional<double>& v) { v ? values.push_back(*v) : values.push_back(nullptr); }
  void operator()(Cell& cell) {
    std::visit([this](auto& v) { values.push_back(v); }, cell);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    values.push_back(list.size());
    for (T& v : list) (*this)(v);
  }
};

/// Throws where the values are not those of what is read, or numbers are too large to be added up.
class Reader {
 public:
  explicit Reader(const json& values) : values_(values) {}
  bool at_end() const { return at_ == values_.size(); }

  template <class T>
  void operator()(T& v) {
    if constexpr (std::is_same_v<T, bool>)
      v = next().template get_ref<const json::boolean_t&>();
    else if constexpr (std::is_integral_v<T>)
      v = whole<T>(next());
    else if constexpr (std::is_floating_point_v<T>)
      v = real(next());
    else if constexpr (std::is_same_v<T, std::string>)
      v = next().template get_ref<const std::string&>();
    else
      all_of(*this, v);
  }
  void operator()(Unit& unit) {
    const auto v = whole<uint8_t>(next());
    if (v > static_cast<uint8_t>(Unit::time)) not_sound();
    unit = static_cast<Unit>(v);
  }
  void operator()(std::optional<double>& v) {
    const json& j = next();
    v = j.is_null() ? std::nullopt : std::optional(real(j));
  }
  void operator()(Cell& cell) {
    const json& j = next();
    if (j.is_string())
      cell = j.get_ref<const std::string&>();
    else if (j.is_number_float())
      cell = real(j);
    else
      cell = whole<int64_t>(j);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    const auto count = whole<int64_t>(next());
    if (count < 0 || static_cast<size_t>(count) > values_.size() - at_) not_sound();  // each takes a value at least
    list.resize(static_cast<size_t>(count));
    for (T& v : list) (*this)(v);
  }

 private:
  const json& next() {
    if (at_ >= values_.size()) not_sound();
    return values_[at_++];
  }
  template <class T>
  static T whole(const json& j) {
    if (!j.is_number_integer() || (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(kFar)))
      not_sound();
    const auto v = j.get<int64_t>();
    if (v < -kFar || !std::in_range<T>(v)) not_sound();
    return static_cast<T>(v);
  }
  static double real(const json& j) {
    if (!j.is_number()) not_sound();
    const auto v = j.get<double>();
    if (!(std::abs(v) <= 1e18)) not_sound();
    return v;
  }
  const json& values_;
  size_t at_ = 0;
};

bool sound(const Sight& s, const traces::Trace& t) {
  return s.event >= -1 && s.event < static_cast<int64_t>(t.size()) && s.place.empty() && s.tensor.empty() &&
         s.node == -1 && s.trace == -1;
}
bool sound(const Table& table, const traces::Trace& t) {
  const size_t rows = table.rows.size();
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const auto& row) { return row.size() == table.columns.size(); }) &&
         (table.sights.empty() || table.sights.size() == rows) && table.others.empty() &&
         std::all_of(table.sights.begin(), table.sights.end(), [&](const Sight& s) { return sound(s, t); });
}
bool sound(const WholeOverview& w, const traces::Trace& t) {
  const Overview& o = *w.overview;
  if (o.steps.empty() || !sound(o.cause, t) || !sound(o.fill.most_under_full, t)) return false;
  PartTimes sum;
  __int128 length = 0;
  for (const StepTimes& s : o.steps) {
    for (const int64_t ns : s.parts.ns) {
      if (ns < 0) return false;
      length += ns;
    }
    if (length > kFar || s.end < s.begin || s.step.row >= t.rows().size()) return false;
    sum += s.parts;
  }
  if (sum.ns != o.sum.ns) return false;
  for (const Advice& a : o.advice)
    if (!sound(a.sight, t)) return false;
  for (const Table& table : w.finding.tables) {
    if (!sound(table, t)) return false;
    if (table.name == "parts" && table.rows.size() != step_parts(o.gpu).size()) return false;
  }
  return true;
}

}  // namespace

std::string kept_text(const WholeOverview& o) {
  if (!o.overview) return {};
  WholeOverview all = o;  // what writes visits members as what reads does
  Writer w;
  w.values.push_back(kOverviewForm);
  w(*all.overview);
  w(all.finding);
  try {
    return w.values.dump();
  } catch (const json::exception&) {  // a name is no UTF-8: nothing is kept rather than something else
    return {};
  }
}

std::optional<WholeOverview> read_kept(std::string_view text, const traces::Trace& of) {
  if (text.empty()) return {};
  try {
    const json values = json::parse(text);
    if (!values.is_array() || values.empty() || values[0] != kOverviewForm) return {};
    Reader r(values);
    WholeOverview w;
    std::string form;
    r(form);
    r(w.overview.emplace());
    r(w.finding);
    if (r.at_end() && sound(w, of)) return w;
  } catch (const std::exception&) {  // it is worked out anew
  }
  return {};
}

std::shared_ptr<const WholeOverview> whole_overview(const std::shared_ptr<const traces::Trace>& trace) {
  return trace->shared<WholeOverview>([&] {
    if (auto kept = read_kept(trace->kept(), *trace)) return *std::move(kept);
    WholeOverview w;
    const TraceRequest request{.traces = {trace}, .top = WholeOverview::kRows};
    w.overview = overview_of(request);
    w.finding = w.overview ? overview_finding(*w.overview, request) : nothing("The trace holds no events.");
    if (trace->source_bytes() >= traces::kWorthSaving) give_back_freed_memory();
    return w;
  });
}

void keep_with_overview(const std::shared_ptr<const traces::Trace>& trace) {
  if (trace->source_bytes() < traces::kWorthSaving || read_kept(trace->kept(), *trace)) return;
  traces::keep_store(*trace, kept_text(*whole_overview(trace)));
}

}  // namespace tenon::tracing
