// Stacks of a snapshot as a person reads them.
#include <fmt/format.h>

#include "tracing/snapshot/snapshot.h"

// Note [Whose place it is]
// By default PyTorch records C++ and Python frames together: of C++ often only a library and an offset into it. Whoever
// reads a snapshot looks for a line of their own code, so that of the innermost Python frame outside of PyTorch is the
// place. Gradients are made on threads of autograd, which have no Python frames: where the forward call's own are
// recorded (anomaly detection), they stand behind the others and are found all the same; else the backward function is
// the place (AddmmBackward0), or the workspace that was asked for.

namespace tenon::snapshot {
namespace {

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts)
    if (text.find(part) != std::string_view::npos) return true;
  return false;
}
/// Frames that PyTorch's own viewer hides, and those of the interpreter's start.
bool hidden(std::string_view function, std::string_view file) {
  if (function.starts_with("Py_") || function.starts_with("_Py")) return true;
  if (contains_any(function, {"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "_start",
                              "__libc_start_main", "PyEval_", "PyObject_", "PyFunction_"}))
    return true;
  return contains_any(file,
                      {"core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c", "Objects/call.c",
                       "Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h"});
}
bool library(std::string_view file) { return file.find(".so") != std::string_view::npos; }
bool native(std::string_view file) {
  if (file.empty() || file == "??" || library(file)) return true;
  for (std::string_view end : {".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".S"})
    if (file.ends_with(end)) return true;
  const size_t slash = file.find_last_of('/');
  return file.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("python");
}
bool of_pytorch(std::string_view file) {
  return file.starts_with("torch/") || file.find("/torch/") != std::string_view::npos ||
         file.starts_with("<eval_with_key>");
}
bool unnamed(std::string_view function) { return function.empty() || function == "??"; }
bool tells(std::string_view function) {
  return function.find("Workspace") != std::string_view::npos ||
         (function.find("autograd::generated::") != std::string_view::npos &&
          function.find("::details::") == std::string_view::npos);
}
/// A C++ function without its arguments, which say nothing here, nor do those of templates.
std::string_view without_arguments(std::string_view function) {
  if (const size_t at = function.find('<');
      at != std::string_view::npos && at > 0 && !function.substr(0, at).ends_with("operator"))
    function = function.substr(0, at);
  for (size_t at = function.find('('); at != std::string_view::npos; at = function.find('(', at + 1))
    if (at > 0 && !function.substr(at).starts_with("(anonymous namespace)")) return function.substr(0, at);
  return function;
}
bool plumbing(std::string_view function) {
  return contains_any(function, {"at::detail::", "at::native::empty", "at::_ops::empty", "(anonymous namespace)"}) ||
         function.starts_with("c10::");
}

}  // namespace

std::span<const uint32_t> Snapshot::stack(uint32_t id) const {
  if (id >= stack_ends.size()) return {};
  uint64_t begin = id ? stack_ends[id - 1] : 0;
  return {stack_frames.data() + begin, stack_ends[id] - begin};
}

std::string Snapshot::frame_text(uint32_t f) const {
  if (f >= frames.size()) return {};
  const Frame& frame = frames[f];
  std::string_view function = text(frame.function);
  if (frame.file == kNone) return std::string(function);
  std::string_view file = text(frame.file);
  const bool cpp = native(file);
  size_t slash = file.find_last_of('/');
  if (slash != std::string_view::npos) file = file.substr(slash + 1);
  if (cpp) function = without_arguments(function);
  if (cpp && (file.empty() || file == "??") && !unnamed(function)) return std::string(function);
  // The line of a library is an offset into it.
  return frame.line && !(library(file) && !unnamed(function)) ? fmt::format("{} ({}:{})", function, file, frame.line)
                                                              : fmt::format("{} ({})", function, file);
}

/// The frame of a stack that is its place: an index into the stack; its size where it has none.
size_t Snapshot::place(std::span<const uint32_t> all) const {
  auto first = [&](auto fits) {
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] < frames.size() && fits(text(frames[all[i]].function), text(frames[all[i]].file))) return i;
    return all.size();
  };
  using Text = std::string_view;
  size_t i = first([](Text, Text file) { return !native(file) && !of_pytorch(file); });
  if (i == all.size()) i = first([](Text function, Text file) { return native(file) && tells(function); });
  if (i == all.size()) i = first([](Text, Text file) { return !native(file); });
  if (i == all.size())
    i = first(
        [](Text function, Text file) { return !hidden(function, file) && !unnamed(function) && !plumbing(function); });
  if (i == all.size()) i = first([](Text function, Text file) { return !hidden(function, file); });
  return i;
}

std::string Snapshot::site(uint32_t id) const {
  auto all = stack(id);
  if (all.empty()) return id == kNone ? "(no stack was recorded)" : "(an empty stack)";
  const size_t i = place(all);
  return frame_text(all[i == all.size() ? 0 : i]);
}

std::vector<std::string> Snapshot::callers(uint32_t id) const {
  std::vector<std::string> lines;
  auto all = stack(id);
  const size_t at = place(all);
  if (at == all.size()) return lines;
  // The C++ frames between Python's are the interpreter's, and PyTorch's own.
  const bool python = !native(text(frames[all[at]].file));
  for (size_t i = at + 1; i < all.size(); ++i) {
    if (all[i] >= frames.size()) continue;
    std::string_view function = text(frames[all[i]].function), file = text(frames[all[i]].file);
    if (!hidden(function, file) && !(native(file) && (python || unnamed(function))))
      lines.push_back(frame_text(all[i]));
  }
  return lines;
}

std::vector<std::string> Snapshot::stack_lines(uint32_t id) const {
  std::vector<std::string> lines;
  for (uint32_t f : stack(id)) {
    if (f >= frames.size()) continue;
    std::string_view function = text(frames[f].function), file = text(frames[f].file);
    if (!hidden(function, file) && !(unnamed(function) && native(file))) lines.push_back(frame_text(f));
  }
  return lines;
}

}  // namespace tenon::snapshot
