#include "tracing/trace/trace_reader.h"

#include <fmt/format.h>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "core/machine_memory.h"
#include "tracing/trace/parts.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/store_builder.h"
#include "tracing/trace/store_file.h"

// Note [Reading in parts]
// The text is cut into parts of a fixed size, and each thread starts its part where an event seems to start. Whether it
// really does is known only when the part before has been read to its end: the next event stands where that one
// stopped. Where the guess was wrong, the part is read again from the right place. So the result is that of reading
// from front to back, whatever the number of threads.

namespace tenon::traces {
namespace {

constexpr uint64_t kPart = 8 << 20;

class PartReader {
 public:
  PartReader(const SourceText& source, uint64_t begin, const ReadOptions& options)
      : source_(source),
        text_(source.bytes()),
        begin_(begin),
        options_(options),
        parts_((text_.size() - begin + kPart - 1) / kPart + (text_.size() == begin)),
        ready_(parts_.size()) {}

  /// All parts up to the array's end; `end` is the place behind it.
  std::vector<Part> read(uint64_t& end, bool& ended) {
    unsigned count = options_.threads > 0 ? static_cast<unsigned>(options_.threads)
                                          : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> others;
    try {
      for (unsigned i = 1; i < count && i < parts_.size(); ++i) others.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // fewer threads do the same work
    }
    work();
    for (std::thread& t : others) t.join();
    if (failure_) std::rethrow_exception(failure_);
    parts_.resize(accepted_);
    end = expected_;
    ended = ended_;
    return std::move(parts_);
  }

 private:
  uint64_t part_begin(size_t i) const { return begin_ + i * kPart; }
  uint64_t part_end(size_t i) const { return std::min<uint64_t>(text_.size(), begin_ + (i + 1) * kPart); }

  void work() {
    for (;;) {
      size_t i = next_.fetch_add(1);
      if (i >= parts_.size() || stopped_) return;
      try {
        uint64_t from = i == 0 ? begin_ : likely_event(text_, part_begin(i), part_end(i));
        if (from == std::string_view::npos)
          parts_[i].begin = parts_[i].next = part_end(i);
        else
          read_part(text_, from, part_end(i), parts_[i]);
        accept(i);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        stopped_ = true;
        return;
      }
    }
  }

  // Takes parts over in their order, each when those before it have been.
  void accept(size_t i) {
    std::lock_guard lock(mutex_);
    ready_[i] = true;
    if (i == 0 && accepted_ == 0) expected_ = begin_;
    while (accepted_ < parts_.size() && ready_[accepted_] && !stopped_) {
      Part& p = parts_[accepted_];
      const uint64_t stop = part_end(accepted_);
      if (p.begin != expected_) {
        p = Part();
        if (expected_ < stop)
          read_part(text_, expected_, stop, p);
        else
          p.begin = p.next = expected_;
      }
      expected_ = p.next;
      ended_ = p.array_ended;
      ++accepted_;
      source_.forget(part_begin(accepted_ - 1), stop);
      if (options_.progress && !options_.progress(stop, text_.size())) throw Error("cancelled");
      if (ended_) stopped_ = true;
    }
  }

  const SourceText& source_;
  std::string_view text_;
  const uint64_t begin_;
  const ReadOptions& options_;
  std::vector<Part> parts_;
  std::vector<char> ready_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  size_t accepted_ = 0;
  uint64_t expected_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

/// Chrome's array of events may lack its `]`; inside an event it may not end.
bool ends_between_events(std::string_view text, const std::vector<Part>& parts) {
  for (const Part& p : parts)
    if (p.mended.count[static_cast<int>(Mend::cut_short)]) return false;
  size_t last = text.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && (text[last] == '}' || text[last] == ',' || text[last] == '[');
}

std::shared_ptr<OwnedTrace> read_source(const SourceText& source, const std::string& name, const ReadOptions& options,
                                        bool& cut_short) {
  std::string_view text = source.bytes();
  Mended mended;
  Outline outline = read_head(text, mended);
  if (!outline.found)
    throw Error(fmt::format("{} is no trace: {}", name,
                            text.empty() ? "it is empty" : "it has no \"traceEvents\" and is no array of events"),
                "a trace is what torch.profiler's export_chrome_trace() writes");
  uint64_t end = outline.events_begin;
  bool ended = false;
  std::vector<Part> parts = PartReader(source, outline.events_begin, options).read(end, ended);
  if (ended && !outline.array_form) read_tail(text, end, outline, mended);
  cut_short = source.cut_short() || (!ended && !(outline.array_form && ends_between_events(text, parts)));
  StoreBuilder builder(std::move(parts));
  builder.mended().add(mended);
  return builder.build(outline, source);
}

}  // namespace

std::shared_ptr<const Trace> read_trace(const std::string& path, const ReadOptions& options) {
  if (is_store(kTraceStore, unpacked_head(path, 8))) return open_given_store(path);
  if (options.read_cache)
    if (auto stored = load_store(kTraceStore, path, open_store)) return stored;
  const FileKey key = file_key(path);
  auto source = SourceText::open(path);
  bool cut_short = false;
  auto trace = read_source(*source, path, options, cut_short);
  trace->path_ = path;
  trace->key_ = std::make_shared<FileKey>(key);
  trace->truncated_ = cut_short;
  trace->source_ = source;
  if (trace->source_bytes_ >= kWorthSaving) give_back_freed_memory();  // parts of the text are larger than the store
  if (options.write_cache) save_store(*trace, key);
  return trace;
}

std::shared_ptr<const Trace> read_beginning(const std::string& path, size_t bytes) {
  if (has_store(kTraceStore, path) || !zip_members(path).empty()) return nullptr;
  return parse_trace(unpacked_head(path, bytes), {.keep_text = false});
}

void keep_store(const Trace& trace, std::string_view kept) {
  if (trace.key_ && (!trace.from_cache_ || !kept.empty())) save_store(trace, *trace.key_, kept);
}

std::shared_ptr<const Trace> parse_trace(std::string text, const ReadOptions& options) {
  auto source = SourceText::of(std::move(text));
  bool cut_short = false;
  auto trace = read_source(*source, "the text", options, cut_short);
  trace->truncated_ = cut_short;
  if (options.keep_text) trace->source_ = source;
  return trace;
}

std::string cache_path(const std::string& path) { return store_paths(kTraceStore, path).front(); }

std::vector<std::string> trace_files(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  auto add = [&](const std::string& file) {
    std::vector<std::string> members = zip_members(file);
    if (members.size() < 2)
      files.push_back(file);
    else
      for (const std::string& m : members) files.push_back(file + "!" + m);
  };
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      add(path);
      continue;
    }
    std::vector<std::string> inside;
    std::error_code code;
    for (fs::directory_iterator e(path, code), end; !code && e != end; e.increment(code)) {
      const std::string name = e->path().filename().string();
      std::error_code none;
      for (std::string_view suffix : {".json", ".json.gz", ".json.zst", ".zip"})
        if (e->is_regular_file(none) && name.ends_with(suffix)) {
          inside.push_back(e->path().string());
          break;
        }
    }
    if (code) throw Error(fmt::format("the folder {} cannot be read: {}", path, code.message()));
    std::sort(inside.begin(), inside.end());
    if (inside.empty())
      throw Error(fmt::format("there is no trace in {}", path), "traces end in .json, .json.gz, .json.zst or .zip");
    for (const std::string& f : inside) add(f);
  }
  return files;
}

}  // namespace tenon::traces
