#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/plugins.h"
#include "app/cli/window_module.h"
#include "core/cache_folder.h"
#include "core/error.h"
#include "core/mapped_pages.h"
#include "core/parallel.h"
#include "core/version.h"
#include "views/shared/settings.h"

namespace {

using namespace tenon;
using namespace tenon::app;

/// The command that the first one or two words name; null where they name none.
const Command* find_command(const std::vector<std::string>& words, size_t& used) {
  for (const Command& c : commands()) {
    const size_t space = c.name.find(' ');
    if (space == std::string::npos ? words[0] == c.name : words.size() > 1 && words[0] + " " + words[1] == c.name) {
      used = space == std::string::npos ? 1 : 2;
      return &c;
    }
  }
  return nullptr;
}

/// The commands that begin with a word ("trace"), each with what it does; empty where none does.
std::string family_help(const std::string& word) {
  std::vector<std::vector<std::string>> rows;
  for (const Command& c : commands())
    if (c.name.rfind(word + " ", 0) == 0) rows.push_back({"  tenon " + c.name + " " + c.usage, c.help});
  return rows.empty() ? std::string() : table(rows);
}

[[noreturn]] void unknown_command(const std::vector<std::string>& words) {
  const std::string family = family_help(words[0]);
  if (!family.empty() && words.size() == 1) throw Error::usage(words[0] + " what?", "there are\n" + family);
  const std::string wanted = family.empty() ? words[0] : words[0] + " " + words[1];
  std::vector<std::string> names;
  for (const Command& c : commands()) names.push_back(c.name);
  const std::string near = near_names(wanted, names.data(), names.size());
  throw Error::usage(fmt::format("there is no command \"{}\"{}", wanted, near.empty() ? "" : " (" + near + ")"),
                     family.empty() ? "tenon --help lists the commands." : "tenon " + words[0] + " --help lists them.");
}

int window(int argc, char** argv, const std::vector<std::string>& words) {
  const Command form{"",
                     "[FILE|FOLDER...]",
                     0,
                     1000,
                     {{"--train", "", "start a run at once"}, {"--theme", "NAME", "dark, light or contrast"}},
                     "",
                     {}};
  const Args args = parse_args(form, words);
  WindowRequest request;
  for (size_t i = 0; i < args.words(); ++i) request.files.push_back(args.word(i));
  request.train = args.has("--train");
  if (request.train && request.files.size() > 1)
    throw Error::usage("--train begins a run of one project, and several files were given", "Name the project alone.");
  request.theme = args.text("--theme");
  request.problems = refused_plugins();
  return app::window().open(argc, argv, request);
}

int run(int argc, char** argv) {
  std::vector<std::string> words = load_plugins({argv + 1, argv + argc});
  if (words.size() > 1 && words[0] == "help") {  // help COMMAND is COMMAND --help
    words.erase(words.begin());
    words.push_back("--help");
  }
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h" || words[0] == "help")) {
    print(general_help());
    return 0;
  }
  if (!words.empty() && words[0] == "--version") {
    print("tenon " TENON_VERSION "\n");
    return 0;
  }
  size_t used = 0;
  // A first word that looks like a file, or is a file or folder and no command, opens the window on it.
  std::error_code none;
  const bool is_file =
      !words.empty() &&
      (words[0].find('/') != std::string::npos || words[0].find('.') != std::string::npos ||
       (!find_command(words, used) && family_help(words[0]).empty() && std::filesystem::exists(words[0], none)));
  if (words.empty() || words[0][0] == '-' || is_file) return window(argc, argv, words);
  cache::set_limit(views::settings::cache_bytes());
  // What a command is told itself (--threads) holds over the setting.
  if (const int64_t threads = views::settings::integer("threads"); threads > 0)
    set_num_threads(static_cast<int>(threads));
  const Command* command = find_command(words, used);
  if (!command) {
    const std::string family =
        words.size() > 1 && (words[1] == "--help" || words[1] == "-h") ? family_help(words[0]) : "";
    if (family.empty()) unknown_command(words);
    print(family);
    return 0;
  }
  const std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(used), words.end());
  for (const std::string& w : rest)
    if (w == "--help" || w == "-h") {
      print(command_help(*command));
      return 0;
    }
  return command->run(parse_args(*command, rest));
}

/// Whether files were whole as long as they were read; says it of those that were not.
bool files_were_whole() {
  const std::vector<std::string> cut = cut_files();
  for (const std::string& f : cut)
    std::fprintf(stderr,
                 "tenon: %s was cut short by another program while it was read: what is missing of it counted as "
                 "zeros\n  Run the command again once the file is whole\n",
                 f.c_str());
  return cut.empty();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int status = run(argc, argv);
    return files_were_whole() || status != 0 ? status : 1;
  } catch (...) {
    const Error e = caught_error();
    if (!e.message().empty()) std::fprintf(stderr, "tenon: %s\n", e.what());
    files_were_whole();
    return e.kind() == Error::Kind::usage ? 2 : 1;
  }
}
