// tenon --plugin FILE, and tenon plugins: what has been added to Tenon from outside.
#include "app/cli/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "core/plugin.h"

namespace tenon::app {
namespace {

std::vector<Error>& refused() {
  static auto& all = *new std::vector<Error>;
  return all;
}

void load(const std::string& file) {
  try {
    load_plugin(file);
  } catch (const Error& e) {
    std::fprintf(stderr, "tenon: %s\n", e.what());
    refused().push_back(e);
  }
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable))
    if (entry.path().extension() == ".so") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

int list_plugins(const Args& args) {
  std::vector<std::vector<std::string>> rows = {{"PLUG-IN", "BRINGS", "NAME", "FILE"}};
  for (const Plugin& p : plugins()) {
    if (args.json()) {
      nlohmann::json brought = nlohmann::json::array();
      for (const auto& b : p.brought) brought.push_back({{"what", b.what}, {"name", b.name}});
      print_json({{"plugin", p.name}, {"file", p.file}, {"version", p.version}, {"brings", brought}});
    }
    for (const auto& b : p.brought) rows.push_back({p.name, b.what, b.name, p.file});
    if (p.brought.empty()) rows.push_back({p.name, "nothing", "", p.file});
  }
  if (args.json()) {
    for (const Error& e : refused_plugins()) print_json({{"refused", e.message()}, {"hint", e.hint()}});
    return 0;
  }
  if (rows.size() > 1)
    print(table(rows));
  else
    print(fmt::format("no plug-ins: name one with --plugin FILE.so, or put it into {}\n", plugin_folder()));
  return 0;
}

const bool registered_plugins = register_command({"plugins",
                                                  "",
                                                  0,
                                                  0,
                                                  {{"--json", "", "JSON lines on standard output"}},
                                                  "lists the plug-ins that were loaded, and what each brings",
                                                  list_plugins});

}  // namespace

const std::vector<Error>& refused_plugins() { return refused(); }

std::string plugin_folder() {
  const char* settings = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path base =
      settings && *settings ? std::filesystem::path(settings) : std::filesystem::path(home ? home : "") / ".config";
  return (base / "Tenon" / "plugins").string();
}

std::vector<std::string> load_plugins(std::vector<std::string> words) {
  std::vector<std::string> rest, named;
  bool folder = true;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& w = words[i];
    if (w == "--") {
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (w == "--no-plugins") {
      folder = false;
    } else if (w.starts_with("--plugin=")) {
      named.push_back(w.substr(9));
    } else if (w == "--plugin") {
      if (i + 1 == words.size()) throw Error::usage("--plugin wants a value: --plugin FILE.so");
      named.push_back(words[++i]);
    } else {
      rest.push_back(w);
    }
  }
  if (folder)
    for (const std::string& file : files_of(plugin_folder())) load(file);
  for (const std::string& file : named) load(file);
  return rest;
}

}  // namespace tenon::app
