// tenon shot: a picture of a view.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/window_module.h"
#include "core/error.h"
#include "views/shared/document.h"

namespace tenon::app {
namespace {

int tell_views(bool json) {
  std::vector<std::vector<std::string>> rows{{"VIEW", "TITLE", "SHOWS"}};
  for (const PicturedView& v : window().views()) {
    if (json) print_json({{"view", v.id}, {"title", v.title}, {"shows", v.shows}});
    rows.push_back({v.id, v.title, shortened(v.shows.substr(0, v.shows.find(". ")))});
  }
  if (!json) print(table(rows, {}));
  return 0;
}

int shot(const Args& args) {
  if (args.has("--list")) return tell_views(args.json());
  ShotRequest r;
  if (args.words() > 0) r.file = args.word(0);
  if (args.words() > 1) r.other = args.word(1);
  r.view = args.required("--view");
  r.run = args.text("--run");
  r.select = args.text("--select");
  r.theme = args.text("--theme", "dark");
  r.output = args.required("-o");
  if (args.has("--size")) {
    char rest = 0;
    if (std::sscanf(args.text("--size").c_str(), "%dx%d%c", &r.width, &r.height, &rest) != 2 || r.width < 100 ||
        r.height < 100 || r.width > 8192 || r.height > 8192)
      throw Error::usage(
          fmt::format("--size wants WIDTHxHEIGHT between 100 and 8192, not \"{}\"", args.text("--size")));
  }
  // What is wrong with the file or the step is told before a window is made.
  if (r.file.empty()) {
    if (r.view != "window") throw Error::usage("without a file there is the window alone: --view window");
  } else if (views::document_kind(r.file) == views::Document::Kind::project) {
    const auto project = open_to_read(r.file);
    if (args.has("--step")) r.step = pick_step(pick_run(*project, r.run), args.text("--step"));
  } else if (args.has("--step") || args.has("--run")) {
    throw Error::usage(r.file + " is no project: it has no runs and no steps");
  }
  const int status = window().shot(r);
  if (status == 0) {
    if (args.json())
      print_json({{"file", r.output}, {"view", r.view}});
    else
      print(r.output + "\n");
  }
  return status;
}

const bool registered_shot = register_command(
    {"shot",
     "[FILE [OTHER]] --view NAME -o F.png | --list",
     0,
     2,
     {{"--view", "NAME", "which view; results/curves, model_file/graph: a page of one; \"window\" is everything"},
      {"--list", "", "lists the views instead, and what each shows"},
      {"--run", "NAME", "which run (the latest)"},
      {"--step", "N|last|best", "which step (the last)"},
      {"--select", "KIND:ID", "what is selected: op:12, tensor:3, module:conv1, step:120, event:7, weight:fc.weight"},
      {"--size", "WxH", "in pixels (1440x900)"},
      {"--theme", "NAME", "dark (default), light or contrast"},
      {"-o", "FILE", "the picture: .png, or .svg of a view"},
      {"--json", "", "JSON lines on standard output"}},
     "makes a picture of a view of a project, a trace, a snapshot or a model file; of two of them, A and B: --view "
     "compare",
     shot});

}  // namespace
}  // namespace tenon::app
