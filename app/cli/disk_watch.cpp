#include "app/cli/disk_watch.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tenon::app {

nlohmann::json DiskWatch::look(const projects::RunStatus& s, Bar& bar) {
  if (s.blocked.empty() == !waits_ || s.state == projects::RunStatus::State::failed) return {};
  waits_ = !s.blocked.empty();
  bar.clear();
  const std::string step = count_text(s.step);
  const std::string text =
      waits_ ? fmt::format(
                   "training is paused at step {}: {}\n  {} It goes on as soon as there is some; Ctrl+C ends the run.",
                   step, s.blocked, s.blocked_hint)
             : fmt::format("training goes on after step {}", step);
  std::fprintf(stderr, "tenon: %s\n", text.c_str());
  nlohmann::json j = {{"event", waits_ ? "no_space" : "goes_on"}, {"step", s.step}};
  if (waits_) j.update({{"reason", s.blocked}, {"hint", s.blocked_hint}});
  return j;
}

}  // namespace tenon::app
