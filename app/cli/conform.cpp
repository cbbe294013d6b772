// tenon conform: the ONNX project's own test cases.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "engine/formats/onnx/conform.h"

namespace tenon::app {
namespace {

using formats::ConformCase;
using Outcome = ConformCase::Outcome;

struct Counts {
  int64_t by[3] = {0, 0, 0};
  void add(Outcome o) { ++by[static_cast<int>(o)]; }
  int64_t operator[](Outcome o) const { return by[static_cast<int>(o)]; }
  int64_t all() const { return by[0] + by[1] + by[2]; }
};

int conform(const Args& args) {
  use_threads(args);
  std::map<std::string, Counts> operators;
  Counts total;
  int64_t wrong = 0;
  formats::run_conform(args.word(0), [&](const ConformCase& c) {
    total.add(c.outcome);
    wrong += c.wrong;
    for (const std::string& type : c.operators) operators[type].add(c.outcome);
    if (args.json()) {
      nlohmann::json j = {{"case", c.name}, {"outcome", name(c.outcome)}, {"operators", c.operators}};
      if (!c.detail.empty()) j["detail"] = c.detail;
      print_json(j);
    } else {
      print(fmt::format("{} {}{}\n", name(c.outcome), c.name, c.detail.empty() ? "" : ": " + c.detail));
    }
  });
  if (args.json()) {
    for (const auto& [type, n] : operators)
      print_json({{"operator", type},
                  {"passed", n[Outcome::pass]},
                  {"failed", n[Outcome::fail]},
                  {"unsupported", n[Outcome::unsupported]}});
    print_json({{"cases", total.all()},
                {"passed", total[Outcome::pass]},
                {"failed", total[Outcome::fail]},
                {"wrong", wrong},
                {"unsupported", total[Outcome::unsupported]}});
  } else {
    std::vector<std::vector<std::string>> rows{{"operator", "passed", "failed", "unsupported"}};
    for (const auto& [type, n] : operators)
      rows.push_back(
          {type, count_text(n[Outcome::pass]), count_text(n[Outcome::fail]), count_text(n[Outcome::unsupported])});
    print("\n" + table(rows, {false, true, true, true}));
    print(fmt::format("\n{} cases: {} passed ({:.1f} %), {} failed ({} with a wrong answer), {} unsupported\n",
                      count_text(total.all()), count_text(total[Outcome::pass]),
                      100.0 * static_cast<double>(total[Outcome::pass]) / static_cast<double>(total.all()),
                      count_text(total[Outcome::fail]), wrong, count_text(total[Outcome::unsupported])));
  }
  return total[Outcome::fail] ? 1 : 0;
}

const bool registered_conform =
    register_command({"conform",
                      "DIR",
                      1,
                      1,
                      {{"--threads", "N", "threads that compute; never changes a result"},
                       {"--json", "", "JSON lines on standard output"}},
                      "runs a tree of the ONNX project's test cases: pass, fail or unsupported, and why",
                      conform});

}  // namespace
}  // namespace tenon::app
