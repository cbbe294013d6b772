// tenon code: the model of a project as PyTorch source, and back.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"

namespace tenon::app {
namespace {

/// The model a file says, as an edit of the one that is there.
python::ReadModel read_source(const std::string& file, const ModelSpec& before) {
  try {
    return python::read_model(read_file(file), &before);
  } catch (const Error& e) {
    throw e.in(file);
  }
}

int check_source(const Args& args, const ModelSpec& model) {
  const std::string file = args.text("--check");
  const python::ReadModel read = read_source(file, model);
  const std::string other = python::difference(model, read.model);
  if (args.json())
    print_json({{"file", file}, {"same", other.empty()}, {"difference", other}, {"remarks", read.remarks}});
  else
    print(other.empty() ? file + " describes the model of " + args.word(0) + "\n" : file + ": " + other + "\n");
  return other.empty() ? 0 : 1;
}

int take_source(const Args& args, projects::Project& project) {
  const std::string file = args.text("--take");
  const ModelSpec before = project.model();
  const python::ReadModel read = read_source(file, before);
  const std::string other = python::difference(before, read.model);
  if (!other.empty()) project.set_model(read.model);
  if (args.json()) {
    print_json(
        {{"file", file}, {"changed", !other.empty()}, {"layers", read.model.layers.size()}, {"remarks", read.remarks}});
    return 0;
  }
  for (const std::string& r : read.remarks) print(r + "\n");
  print(other.empty()
            ? "the model is as it was\n"
            : fmt::format("the model has {} layers now (first difference: {})\n", read.model.layers.size(), other));
  return 0;
}

int code(const Args& args) {
  if (args.has("--take") + args.has("--check") + args.has("-o") > 1)
    throw Error::usage("-o, --take and --check go one at a time");
  if (args.has("--take")) {
    if (args.words() > 1) throw Error::usage("--take changes the model of the project, not that of a run");
    return take_source(args, *projects::Project::open(args.word(0)));
  }
  const auto project = open_to_read(args.word(0));
  const ModelSpec model = args.words() > 1 ? project->run(args.word(1)).model : project->model();
  if (args.has("--check")) return check_source(args, model);
  const std::string source = python::write_model(model);
  if (args.has("-o")) write_file(args.text("-o"), source);
  if (args.json())
    print_json({{"project", args.word(0)}, {"source", source}});
  else if (!args.has("-o"))
    print(source);
  else
    print(args.text("-o") + ": " + model.name + " as PyTorch source\n");
  return 0;
}

const bool registered_code = register_command(
    {"code",
     "PROJECT [RUN]",
     1,
     2,
     {{"-o", "FILE", "writes the source there instead of printing it"},
      {"--take", "FILE", "makes the model that a source describes the project's; it is read, never run"},
      {"--check", "FILE", "says whether a source describes the same model; exit status 1 where it does not"},
      kJson},
     "the model as PyTorch source that a person would write, and back",
     code});

}  // namespace
}  // namespace tenon::app
