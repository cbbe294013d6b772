// tenon import, artifacts: traces and snapshots in a project, with what was found in them.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/templates/templates.h"
#include "projects/file_import.h"
#include "projects/project.h"

namespace tenon::app {
namespace {

std::shared_ptr<projects::Project> project_at(const std::string& path) {
  if (std::filesystem::exists(path)) return projects::Project::open(path);
  const Beginning b = begin_empty();  // only to hold what is imported, until someone builds a model
  return projects::Project::create(path, b.model, b.recipe.to_json());
}

int import_file(const Args& args) {
  const std::string file = args.word(0), path = args.required("-o");
  catch_interrupts();
  Bar bar("reading");
  const projects::LookedAt looked = projects::look_at(file, bar.progress());
  bar.clear();
  const bool made = !std::filesystem::exists(path);
  auto project = project_at(path);
  int64_t run = 0;
  if (args.has("--run")) run = pick_run(*project, args.text("--run")).id;
  projects::ImportedFile in;
  try {
    in = projects::add_file(*project, run, looked);
  } catch (const Error&) {
    // A project made only to hold what did not fit into it goes again.
    project.reset();
    std::error_code ignored;
    if (made) std::filesystem::remove(path, ignored);
    throw;
  }
  if (args.json()) {
    print_json({{"project", path},
                {"artifact", in.artifact},
                {"kind", in.kind},
                {"stored", in.stored},
                {"findings", in.findings},
                {"sentence", in.sentence}});
    return 0;
  }
  print(path + ": " + in.text() + "\n");
  if (!in.sentence.empty()) print(in.sentence + "\n");
  return 0;
}

int artifacts(const Args& args) {
  auto project = open_to_read(args.word(0));
  if (args.words() == 2) {
    const int64_t id = std::atoll(args.word(1).c_str());
    std::string bytes = project->artifact(id);
    if (args.has("-o"))
      write_file(args.text("-o"), bytes);
    else
      print(bytes + "\n");
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"ID", "KIND", "NAME", "BYTES", "CREATED"}};
  for (const auto& a : project->artifacts()) {
    if (args.json())
      print_json({{"id", a.id},
                  {"run", a.run},
                  {"kind", a.kind},
                  {"name", a.name},
                  {"bytes", a.bytes},
                  {"created", a.created}});
    rows.push_back({std::to_string(a.id), a.kind, a.name, bytes_text(a.bytes), a.created});
  }
  if (!args.json())
    print(rows.size() > 1 ? table(rows, {true, false, false, true, false}) : "The project holds no artifacts.\n");
  return 0;
}

const bool registered_import[] = {
    register_command({"import",
                      "FILE -o PROJECT",
                      1,
                      1,
                      {{"-o", "PROJECT", "the project to put it into; made where there is none"},
                       {"--run", "NAME", "the run it belongs to"},
                       {"--json", "", "one JSON object"}},
                      "puts a trace or memory snapshot into a project, with everything found in it",
                      import_file}),
    register_command({"artifacts",
                      "PROJECT [ID]",
                      1,
                      2,
                      {{"-o", "FILE", "where to write the one with that ID"}, {"--json", "", "JSON lines"}},
                      "what a project holds beside its runs",
                      artifacts}),
};

}  // namespace
}  // namespace tenon::app
