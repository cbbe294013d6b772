#include "app/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "engine/spec/attr.h"

namespace tenon::app {
namespace {

Registry<Command>& registry() {
  static auto& all = *new Registry<Command>("command");
  return all;
}

struct Family {
  std::string name;
  std::vector<Command> (*make)();
};
Registry<Family>& families() {
  static auto& all = *new Registry<Family>("family of commands");
  return all;
}

constexpr double kLargest = 9e15;

std::atomic<bool> was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // set in a signal handler

void on_signal(int number) {
  was_interrupted = true;
  std::signal(number, SIG_DFL);
}

}  // namespace

bool register_command(Command command, Place place) { return registry().add(std::move(command), place); }
bool register_command_family(const std::string& name, std::vector<Command> (*make)(), Place place) {
  return families().add({name, make}, place);
}
const std::vector<Command>& commands() {
  static auto& cache = *new MadeOfRegistries<std::vector<Command>>([] {
    std::vector<Command> all;
    for (const Command& c : registry()) all.push_back(c);
    for (const Family& f : families())
      for (Command& c : f.make()) all.push_back(std::move(c));
    std::sort(all.begin(), all.end(), [](const Command& a, const Command& b) { return a.name < b.name; });
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].name == all[i - 1].name)
        throw Error("two commands are called \"" + all[i].name + "\"", "give one of the analyses another name");
    return all;
  });
  return cache.get();
}

bool interrupted() { return was_interrupted; }
void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool Args::has(const std::string& option) const {
  return std::any_of(options_.begin(), options_.end(), [&](const auto& o) { return o.first == option; });
}
std::string Args::text(const std::string& option, const std::string& fallback) const {
  for (auto o = options_.rbegin(); o != options_.rend(); ++o)
    if (o->first == option) return o->second;
  return fallback;
}
std::vector<std::string> Args::all(const std::string& option) const {
  std::vector<std::string> out;
  for (const auto& [name, value] : options_)
    if (name == option) out.push_back(value);
  return out;
}
std::string Args::required(const std::string& option) const {
  if (!has(option)) throw Error::usage(option + " is missing");
  return text(option);
}

int64_t Args::integer(const std::string& option, int64_t fallback, int64_t min) const {
  if (!has(option)) return fallback;
  const AttrDef def{option, fallback, static_cast<double>(min), kLargest, {}};
  return std::get<int64_t>(parse_attr(def, text(option), option));
}

double Args::number(const std::string& option, double fallback, double min) const {
  if (!has(option)) return fallback;
  const AttrDef def{option, fallback, min, kLargest, {}};
  return std::get<double>(parse_attr(def, text(option), option));
}

namespace {
/// The word of a command's usage at this place: "RUN" of "PROJECT RUN --step N".
std::string usage_word(const std::string& usage, size_t place) {
  std::istringstream words(usage);
  std::string word;
  for (size_t at = 0; words >> word && !word.starts_with("--"); ++at)
    if (at == place) return word;
  return "a word";
}
}  // namespace

Args parse_args(const Command& command, const std::vector<std::string>& words) {
  Args args;
  bool only_words = false;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string w = words[i];
    if (only_words || w.size() < 2 || w[0] != '-') {
      args.words_.push_back(w);
      continue;
    }
    if (w == "--") {
      only_words = true;
      continue;
    }
    std::string value;
    bool has_value = false;
    if (size_t at = w.find('='); at != w.npos && w.compare(0, 2, "--") == 0) {
      value = w.substr(at + 1);
      w.resize(at);
      has_value = true;
    }
    const auto option =
        std::find_if(command.options.begin(), command.options.end(), [&](const Option& o) { return o.name == w; });
    if (option == command.options.end()) {
      std::vector<std::string> names;
      for (const Option& o : command.options) names.push_back(o.name);
      const std::string near = near_names(w, names.data(), names.size());
      throw Error::usage(fmt::format("unknown option {}{}", w, near.empty() ? "" : " (" + near + ")"),
                         fmt::format("tenon {} --help lists its options.", command.name));
    }
    if (option->value.empty()) {
      if (has_value) throw Error::usage(fmt::format("{} takes no value", w));
    } else if (!has_value) {
      if (i + 1 >= words.size()) throw Error::usage(fmt::format("{} wants a value: {} {}", w, w, option->value));
      value = words[++i];
    }
    args.options_.emplace_back(w, value);
  }
  if (args.words_.size() < command.min_words || args.words_.size() > command.max_words)
    throw Error::usage(args.words_.size() < command.min_words
                           ? fmt::format("{} is missing", usage_word(command.usage, args.words_.size()))
                           : fmt::format("\"{}\" is one word too many", args.words_[command.max_words]),
                       fmt::format("usage: tenon {} {}", command.name, command.usage));
  return args;
}

std::string command_help(const Command& c) {
  std::string s =
      fmt::format("tenon {} {}{}\n\n  {}\n", c.name, c.usage, c.options.empty() ? "" : " [options]", c.help);
  if (!c.options.empty()) s += "\n";
  for (const Option& o : c.options)
    s += fmt::format("  {:26} {}\n", o.name + (o.value.empty() ? "" : " " + o.value), o.help);
  return s;
}

std::string general_help() {
  std::string s =
      "tenon [FILE|FOLDER...]      opens the workbench\ntenon COMMAND ...           does one job without a window:\n\n";
  size_t width = 15;
  for (const Command& c : commands()) width = std::max(width, c.name.size());
  for (const Command& c : commands()) s += fmt::format("  {:{}} {}\n", c.name, width, c.help);
  return s +
         "\ntenon COMMAND --help says what a command takes. Exit status: 0 done, 1 the work failed, 2 the words were "
         "wrong.\n--plugin FILE.so anywhere loads a plug-in first, --no-plugins none of your own folder: tenon "
         "plugins.\n";
}

}  // namespace tenon::app
