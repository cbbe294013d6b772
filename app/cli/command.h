#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"

namespace tenon::app {

/// One option of a command. `value` names what follows it ("N", "FILE"); empty for a switch.
struct Option {
  std::string name;  ///< "--epochs"; "-o" where it has a short form only
  std::string value;
  std::string help;
};
/// Of most commands.
inline const Option kJson{"--json", "", "JSON lines on standard output"};
inline const Option kThreads{"--threads", "N", "threads that compute; never changes a result"};

/// The words after a command, checked against what it takes. Every getter throws Error (usage) where the text does not
/// fit.
class Args {
 public:
  const std::string& word(size_t i) const { return words_.at(i); }
  size_t words() const { return words_.size(); }
  bool has(const std::string& option) const;
  /// The last value given, or the fallback.
  std::string text(const std::string& option, const std::string& fallback = {}) const;
  std::vector<std::string> all(const std::string& option) const;
  int64_t integer(const std::string& option, int64_t fallback, int64_t min) const;
  double number(const std::string& option, double fallback, double min) const;
  /// Throws a usage error where the option was not given.
  std::string required(const std::string& option) const;
  bool json() const { return has("--json"); }

 private:
  friend Args parse_args(const struct Command&, const std::vector<std::string>&);
  std::vector<std::string> words_;
  std::vector<std::pair<std::string, std::string>> options_;
};

/// One subcommand; registered in the file that defines it.
struct Command {
  std::string name;   ///< "train", or "memory record"
  std::string usage;  ///< its words: "PROJECT [RUN]"
  size_t min_words = 0, max_words = 0;
  std::vector<Option> options;          ///< --help is everyone's
  std::string help;                     ///< one line
  std::function<int(const Args&)> run;  ///< the exit status; throws Error
};
bool register_command(Command command, Place place = Place::current());
/// Commands that are made of another registry ("trace" of the analyses of traces): made again when it has changed.
bool register_command_family(const std::string& name, std::vector<Command> (*make)(), Place place = Place::current());
/// All of them, sorted by name. Throws Error where two have one name.
const std::vector<Command>& commands();

Args parse_args(const Command& command, const std::vector<std::string>& words);
std::string command_help(const Command& command);
std::string general_help();

/// True once Ctrl-C (or SIGTERM) came; a second Ctrl-C ends the program at once.
bool interrupted();
void catch_interrupts();

}  // namespace tenon::app
