#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>

#include "projects/project_impl.h"

namespace tenon::projects {
namespace {

/// Ticks after boot at which a process started: tells a process from a later one with its number. Empty where there is
/// none.
std::string started(long pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string s((std::istreambuf_iterator<char>(in)), {});
  size_t at = s.rfind(')');  // the name before it may hold anything
  if (at == s.npos || at + 2 >= s.size() || s[at + 2] == 'Z') return {};
  for (int field = 2; field < 22 && at != s.npos; ++field) at = s.find(' ', at + 1);
  return at == s.npos ? std::string() : s.substr(at + 1, s.find(' ', at + 1) - at - 1);
}

std::string boot() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string s;
  std::getline(in, s);
  return s;
}

}  // namespace

std::string process_identity() { return fmt::format("{} {} {}", ::getpid(), started(::getpid()), boot()); }

bool process_alive(const std::string& identity) {
  const long pid = std::strtol(identity.c_str(), nullptr, 10);
  return pid > 0 && identity == fmt::format("{} {} {}", pid, started(pid), boot());
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace tenon::projects
