#include "app/cli/common.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"
#include "core/parallel.h"
#include "views/shared/document.h"

namespace tenon::app {

std::shared_ptr<projects::Project> open_to_read(const std::string& path) { return projects::Project::open(path, true); }

std::vector<std::pair<std::string, std::string>> pairs_of(const Args& args, const std::string& option) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& pair : args.all(option)) {
    const size_t at = pair.find('=');
    if (at == pair.npos)
      throw Error::usage(fmt::format("{} wants KEY=VALUE, not \"{}\"", option, pair),
                         fmt::format("For example {} optimizer.lr=0.01", option));
    pairs.emplace_back(pair.substr(0, at), pair.substr(at + 1));
  }
  return pairs;
}

void need_one_trace(const views::Document& d) {
  if (d.ranks.empty()) return;
  std::string files;
  for (size_t r = 0; r < d.ranks.size() && r < 8; ++r)
    files += fmt::format("{}{} of {}", r ? ", " : "", d.ranks[r].trace->path(), d.rank_title(r));
  throw Error::usage(fmt::format("{} holds the traces of {} ranks", d.path, d.ranks.size()),
                     fmt::format("Name the file of one of them: {}{}", files, d.ranks.size() > 8 ? ", ..." : "."));
}

projects::RunInfo pick_run(const projects::Project& project, const std::string& name) {
  if (!name.empty()) return project.run(name);
  const auto runs = project.runs();
  if (runs.empty())
    throw Error(fmt::format("{} has no runs yet", project.path()),
                fmt::format("Start one: tenon train {}", project.path()));
  return runs.back();
}

int64_t pick_step(const projects::RunInfo& run, const std::string& text) {
  if (text == "last") return run.steps;
  if (text == "best") {
    if (run.best.is_null())
      throw Error(fmt::format("run {} was never evaluated: it has no best step", run.name),
                  "Take \"last\" or a step number.");
    return run.best.at("step").get<int64_t>();
  }
  int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size() || step < 0)
    throw Error::usage(fmt::format("\"{}\" is no step: it is a number, \"last\" or \"best\"", text));
  return step;
}

AskedState asked_state(const Args& args) {
  AskedState s{open_to_read(args.word(0)), {}, 0};
  s.run = pick_run(*s.project, args.words() > 1 ? args.word(1) : "");
  s.step = pick_step(s.run, args.text("--checkpoint", "last"));
  use_threads(args);
  catch_interrupts();
  return s;
}

RunStep pick_run_step(const projects::Project& project, const std::string& text) {
  const size_t at = text.rfind('@');
  projects::RunInfo run = pick_run(project, text.substr(0, at));
  const int64_t step = pick_step(run, at == text.npos ? "last" : text.substr(at + 1));
  return {std::move(run), step};
}

void use_threads(const Args& args) {
  if (args.has("--threads")) set_num_threads(static_cast<int>(args.integer("--threads", 0, 1)));
}

}  // namespace tenon::app
