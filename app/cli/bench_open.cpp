// tenon bench open: what a large trace, snapshot or model file costs whoever looks at it.
#include <filesystem>

#include "app/cli/bench.h"
#include "app/cli/window_module.h"
#include "core/cache_folder.h"
#include "core/error.h"

namespace tenon::app {

void bench_open(const Bench& b) {
  namespace fs = std::filesystem;
  if (!fs::is_regular_file(b.file)) throw Error(b.file + " is no file", "tenon bench open FILE");
  // Under another name: what an opening leaves for the next one goes with the measurement, and nothing that an earlier
  // one left is found.
  const BenchFolder folder;
  const fs::path link = fs::path(folder.path) / fs::path(b.file).filename();
  fs::create_symlink(fs::absolute(b.file), link);
  // The driver's compiled shaders stay where they were: a person's window finds them there.
  ::setenv("MESA_SHADER_CACHE_DIR", fs::path(cache::folder()).parent_path().c_str(), 0);
  ::setenv("XDG_CACHE_HOME", (fs::path(folder.path) / "caches").c_str(), 1);
  const OpenTimes t = window().measure_open(link.string());
  const double bytes = static_cast<double>(fs::file_size(b.file));
  const auto emit = [&](const std::string& metric, double value, const char* unit) {
    b.emit("open", metric, value, unit);
  };
  emit("file", bytes, "bytes");
  for (size_t i = 0; i < t.openings.size(); ++i) {
    const std::string which = i == 0 ? "" : "second_";
    if (t.openings[i].beginning_ms > 0) emit(which + "beginning", t.openings[i].beginning_ms, "ms");
    emit(which + "first_picture", t.openings[i].first_ms, "ms");
    emit(which + "first_picture_work", t.openings[i].first_work_ms, "ms");
    emit(which + "whole", t.openings[i].whole_ms, "ms");
    emit(which + "whole_work", t.openings[i].whole_work_ms, "ms");
  }
  emit("main_view", t.main_view_ms, "ms");
  if (t.unfold_ms > 0) emit("unfold", t.unfold_ms, "ms");
  emit("rss_before", t.rss_before, "bytes");
  emit("rss_opened", t.rss_peak, "bytes");
  emit("rss_flown", t.rss_flown, "bytes");
  emit("rss_per_byte", t.rss_flown / bytes, "bytes");
  emit("frames", t.frames, "frames");
  emit("frames_moved", t.moved, "frames");
  emit("frame", t.frame_ms, "ms");
  emit("frame_p99", t.frame_p99_ms, "ms");
  emit("frame_worst", t.frame_worst_ms, "ms");
  emit("frame_work", t.frame_work_ms, "ms");
  emit("frame_work_p99", t.frame_work_p99_ms, "ms");
  for (const OpenTimes::Deaf& d : t.deaf) {
    emit("deaf_" + d.during + "_p50", d.p50_ms, "ms");
    emit("deaf_" + d.during + "_p99", d.p99_ms, "ms");
    emit("deaf_" + d.during + "_worst", d.worst_ms, "ms");
    emit("deaf_" + d.during + "_work_p99", d.work_p99_ms, "ms");
    emit("deaf_" + d.during + "_work_worst", d.work_worst_ms, "ms");
  }
}

}  // namespace tenon::app
