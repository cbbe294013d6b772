#include "tracing/analyses/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "tracing/analyses/ranks.h"

namespace tenon::tracing {

using traces::Trace;

namespace {

using Shared = std::shared_ptr<const Trace>;

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// What is wrong with a file, by its name alone.
std::string told(std::string message, const std::string& file) {
  const size_t at = message.find(file);
  if (at == message.npos) return file_name(file) + ": " + message;
  return message.replace(at, file.size(), file_name(file));
}

/// Since 1970 where the files tell it.
__int128 wall_begin(const Trace& t) { return static_cast<__int128>(t.base()) + t.begin(); }

uint64_t bytes_on_disk(const std::string& file) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(file.substr(0, file.find('!')), code);
  return code ? 1 : std::max<uint64_t>(bytes, 1);
}

/// Of several of one rank the one that begins last.
void keep_one_a_rank(Session& session) {
  std::vector<Shared> kept;
  for (Shared& t : session.ranks) {
    const auto same = std::find_if(kept.begin(), kept.end(),
                                   [&](const Shared& k) { return k->rank() >= 0 && k->rank() == t->rank(); });
    if (same == kept.end()) {
      kept.push_back(std::move(t));
      continue;
    }
    if (wall_begin(*t) >= wall_begin(**same)) std::swap(*same, t);
    session.left_out.push_back(fmt::format("{} is of rank {}, of which {} begins later and is taken.",
                                           file_name(t->path()), t->rank(), file_name((*same)->path())));
  }
  session.ranks = std::move(kept);
}

}  // namespace

Session read_session(const std::vector<std::string>& paths, const traces::ReadOptions& options) {
  const std::vector<std::string> files = traces::trace_files(paths);
  uint64_t all = 0, before = 0;
  for (const std::string& f : files) all += bytes_on_disk(f);
  Session session;
  for (const std::string& file : files) {
    const uint64_t bytes = bytes_on_disk(file);
    bool stopped = false;
    traces::ReadOptions of_one = options;
    if (options.progress)
      of_one.progress = [&](uint64_t done, uint64_t total) {
        const double share = static_cast<double>(done) / static_cast<double>(std::max<uint64_t>(total, 1));
        const bool on = options.progress(before + static_cast<uint64_t>(static_cast<double>(bytes) * share), all);
        stopped |= !on;
        return on;
      };
    try {
      auto t = traces::read_trace(file, of_one);
      if (t->size())
        session.ranks.push_back(std::move(t));
      else
        session.left_out.push_back(file_name(file) + " holds no events.");
    } catch (const Error& e) {
      if (stopped) throw;
      session.left_out.push_back(told(e.message(), file) + ".");
    }
    before += bytes;
  }
  if (session.ranks.empty()) {
    std::string why = session.left_out.front();
    why.pop_back();
    throw Error(fmt::format("there is no trace in {} that can be read: {}", paths[0], why),
                "a trace is what torch.profiler's tensorboard_trace_handler() or export_chrome_trace() writes");
  }
  keep_one_a_rank(session);
  std::stable_sort(session.ranks.begin(), session.ranks.end(), [](const Shared& a, const Shared& b) {
    return static_cast<uint64_t>(a->rank()) < static_cast<uint64_t>(b->rank());  // -1: behind all
  });
  return session;
}

std::string rank_name(const Trace& trace, size_t place) {
  return trace.rank() >= 0 ? fmt::format("rank {}", trace.rank()) : fmt::format("trace {}", place);
}

traces::JoinedTraces join_ranks(const std::vector<Shared>& ranks, const std::string& path) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ranks.size(); ++i) names.push_back(rank_name(*ranks[i], i));
  return traces::join_traces(ranks, shifts_to_first(ranks), names, path);
}

}  // namespace tenon::tracing
