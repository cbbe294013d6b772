#pragma once
#include <memory>
#include <string>

#include "tracing/trace/trace_store.h"

namespace tenon::views {

/// A file that the window holds open.
struct Document {
  enum class Kind : uint8_t { project, trace, snapshot, model };
  static constexpr int kProject = 0;  ///< the id of the project, of which a window has at most one

  int id = kProject;  ///< counts from 1 for what is opened beside the project; never given again
  Kind kind = Kind::project;
  std::string path, title;
  std::shared_ptr<const traces::Trace> trace;  ///< of a trace
};

/// What a file is to the window, by its content. What is none of these counts as a project, whose reader says what is
/// wrong with it. Throws Error where the file cannot be read.
Document::Kind document_kind(const std::string& path);

}  // namespace tenon::views
