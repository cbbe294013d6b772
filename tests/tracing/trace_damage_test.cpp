// Every analysis on traces with events missing, times and links wrong, the end cut off: answers or says what is
// missing, and what adds up still does.
#include <gtest/gtest.h>

#include "tests/tracing/made_training.h"
#include "tracing/analyses/critical_path.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_{seed, 9} {}
  std::string done_to(const std::string& text) {
    std::string out;
    const uint64_t lost = below(3) * 20, wrong = below(3) * 20;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      std::string line = text.substr(at, end - at);
      at = end;
      const bool event = line.starts_with("{\"ph\"");
      if (event && below(1000) < lost) continue;
      if (event && below(1000) < wrong) wrong_digit(line);
      out += line;
    }
    if (below(3) == 0) out.resize(below(out.size()) + 1);
    return out;
  }

 private:
  uint64_t below(uint64_t n) { return random_.below(drawn_++ * 2, n); }
  /// Of a time, a duration, a row or a link.
  void wrong_digit(std::string& line) {
    std::vector<size_t> digits;
    for (size_t i = 0; i < line.size(); ++i)
      if (line[i] >= '0' && line[i] <= '9') digits.push_back(i);
    if (!digits.empty()) line[digits[below(digits.size())]] = static_cast<char>('0' + below(10));
  }
  Philox random_;
  uint64_t drawn_ = 0;
};

TEST(TraceDamage, EveryAnalysisAnswersAndPartsAddUp) {
  const std::string whole[] = {train({.steps = 3, .blocks = 2, .reduce = 40000, .buckets = 2, .stacks = true}),
                               train({.steps = 3, .blocks = 2, .item = false}),
                               train({.steps = 2, .blocks = 2, .graph = true})};
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    const std::string& text = whole[seed % 3];
    TraceRequest one, two;
    one.traces = {traces::parse_trace(Damage(seed).done_to(text))};
    two.traces = {traces::parse_trace(text), one.traces[0]};
    one.top = two.top = 100000;
    for (const TraceAnalysis& a : trace_analyses())
      EXPECT_FALSE(a.run(a.min_traces == 1 ? one : two).sentence.empty()) << a.name;
    const traces::Trace& t = one.first();
    const GpuTimeline gpu(t);
    const CriticalPaths paths(t, gpu);
    for (const TraceStep& s : trace_steps(t)) {
      const StepWork step = step_work(gpu, s);
      int64_t at = step.begin;
      for (const PathPiece& p : paths.of(step)) {
        ASSERT_EQ(p.from, at);
        ASSERT_GT(p.to, p.from);
        at = p.to;
      }
      EXPECT_EQ(at, step.end);
    }
    Finding f = trace_analyses().at("diff").run(two);
    if (!f.ok) continue;
    double sum = 0, change = 0;
    for (const Fact& x : f.facts)
      if (x.name == "change_ns") change = std::get<double>(x.value);
    for (const auto& row : f.tables[0].rows) sum += std::get<double>(row[1]);
    EXPECT_NEAR(sum, change, 1 + 1e-6 * std::abs(change)) << f.sentence;
  }
}

}  // namespace
}  // namespace tenon::tracing
