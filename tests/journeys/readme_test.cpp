// The README's table of jobs holds every command, and the window's side of each job.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

/// The cells of a row of the table of jobs: the job, the window, the command line.
std::vector<std::vector<std::string>> jobs_table() {
  std::ifstream in(TENON_SOURCE_DIR "/README.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| job | in the window | on the command line |")) {
      std::getline(in, line);
      inside = true;
      continue;
    }
    if (inside && !line.starts_with("|")) break;
    if (!inside) continue;
    std::vector<std::string> cells(1);
    bool code = false;
    for (char c : line.substr(1)) {
      if (c == '`') code = !code;
      if (c == '|' && !code)
        cells.emplace_back();
      else
        cells.back() += c;
    }
    cells.pop_back();
    rows.push_back(std::move(cells));
  }
  return rows;
}
bool blank(const std::string& s) { return s.find_first_not_of(' ') == s.npos; }

/// Of the general help, whose second column begins behind the longest name.
std::vector<std::string> command_names() {
  std::vector<std::string> lines;
  std::istringstream help(tenon({"--help"}).out);
  size_t column = std::string::npos;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  ") || line.size() < 4 || line[2] == ' ') continue;
    if (const size_t gap = line.find("  ", 2); gap != line.npos)
      column = std::min(column, line.find_first_not_of(' ', gap));
    lines.push_back(line);
  }
  std::vector<std::string> names;
  for (const std::string& line : lines) {
    const std::string name = line.substr(2, column - 2);
    names.push_back(name.substr(0, name.find_last_not_of(' ') + 1));
  }
  return names;
}

TEST(Readme, every_job_says_where_it_is_in_the_window_or_why_not) {
  const auto rows = jobs_table();
  ASSERT_GT(rows.size(), 40u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3u) << row[0];
    EXPECT_FALSE(blank(row[1])) << "where in the window, or why not:" << row[0];
  }
}

TEST(Readme, every_command_is_a_job_of_the_table) {
  const std::vector<std::string> names = command_names();
  ASSERT_GT(names.size(), 40u);
  const auto rows = jobs_table();
  for (const std::string& name : names) {
    // "trace why" also stands as `trace why`, and in a list behind another: `trace steps`, `ops`, `kernels`
    const size_t blank_at = name.find(' ');
    const std::string family = name.substr(0, blank_at), last = blank_at == name.npos ? "" : name.substr(blank_at + 1);
    bool found = false;
    for (const auto& row : rows) {
      const std::string& cell = row[2];
      found |= cell.find("tenon " + name + " ") != cell.npos || cell.find("tenon " + name + "`") != cell.npos ||
               (!last.empty() && cell.find(family) != cell.npos &&
                (cell.find(name) != cell.npos || cell.find("`" + last) != cell.npos));
    }
    EXPECT_TRUE(found) << "`tenon " << name << "` is no job of the table";
  }
}

TEST(Readme, the_options_of_a_job_are_those_of_its_command) {
  const std::vector<std::string> names = command_names();
  std::map<std::string, std::string> helps;
  size_t options = 0;
  for (const auto& row : jobs_table()) {
    std::istringstream spans(row[2]);
    bool code = false;
    for (std::string span; std::getline(spans, span, '`'); code = !code) {
      if (!code || !span.starts_with("tenon ")) continue;
      std::string command;
      for (const std::string& name : names)
        if ((span + " ").starts_with("tenon " + name + " ") && name.size() > command.size()) command = name;
      if (command.empty()) continue;
      std::string& help = helps[command];
      if (const size_t gap = command.find(' '); help.empty())
        help = gap == command.npos ? tenon({"help", command}).out
                                   : tenon({"help", command.substr(0, gap), command.substr(gap + 1)}).out;
      std::istringstream words(span);
      for (std::string word; words >> word;) {
        if (!word.starts_with("--")) continue;
        const std::string option = word.substr(0, word.find_first_of("=,;|)]", 2));
        ++options;
        EXPECT_NE((help + " ").find("  " + option + " "), std::string::npos)
            << option << " of `" << span << "` is no option of tenon " << command;
      }
    }
  }
  EXPECT_GT(options, 80u);
}

TEST(Readme, no_line_is_said_twice) {
  std::ifstream in(TENON_SOURCE_DIR "/README.md");
  std::map<std::string, int> seen;
  for (std::string line; std::getline(in, line);)
    if (line.size() > 60) {
      EXPECT_EQ(++seen[line], 1) << line;
    }
}

}  // namespace
}  // namespace tenon::journeys
