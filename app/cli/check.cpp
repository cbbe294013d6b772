// tenon check: what the field's troubleshooting guides warn of, looked for in a project, a run or a trace.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/checks/check.h"
#include "views/checks/checks_table.h"

namespace tenon::app {
namespace {

int check(const Args& args) {
  const auto project = open_to_read(args.word(0));
  use_threads(args);
  catch_interrupts();
  Bar bar("checking");
  projects::Checked checked(project, args.words() > 1 ? args.word(1) : "", bar.progress());
  const std::vector<projects::CheckResult> results = projects::check_project(checked);
  bar.clear();
  int64_t found = 0;
  for (const projects::CheckResult& r : results) {
    found += static_cast<int64_t>(r.complaints.size());
    if (args.json()) {
      nlohmann::json complaints = nlohmann::json::array();
      for (const projects::Complaint& c : r.complaints) {
        nlohmann::json one = {{"about", c.about}, {"seen", c.seen}, {"remedy", c.remedy}};
        if (c.step >= 0) one["step"] = c.step;
        complaints.push_back(std::move(one));
      }
      print_json({{"check", r.name}, {"title", r.title}, {"complaints", complaints}, {"skipped", r.skipped}});
      continue;
    }
    if (args.has("--all") && r.complaints.empty())
      print(fmt::format("{}  {}: {}\n", r.skipped.empty() ? "ok  " : "none", r.name,
                        r.skipped.empty() ? "nothing found" : "not checked: " + r.skipped));
    if (!r.complaints.empty()) print(fmt::format("{} ({})\n", r.title, r.name));
    for (const projects::Complaint& c : r.complaints)
      print(fmt::format("  {}{}\n    try: {}\n", c.about.empty() ? "" : c.about + ": ", c.seen, c.remedy));
  }
  if (!args.json()) print(views::checks_text(results) + (checked.run() ? " of run " + checked.run()->name : "") + "\n");
  return found ? 1 : 0;
}

const bool registered_check = register_command(
    {"check",
     "PROJECT [RUN]",
     1,
     2,
     {{"--all", "", "lists the checks that found nothing too, and why one was not made"}, kThreads, kJson},
     "looks for what troubleshooting guides warn of: in data, model, recipe and a run; exit status 1 where something "
     "is "
     "found",
     check});

}  // namespace
}  // namespace tenon::app
