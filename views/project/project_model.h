#pragma once
#include <memory>
#include <string>
#include <vector>

#include "projects/project.h"
#include "projects/run_driver.h"
#include "views/shared/selection.h"
#include "views/shared/tokens.h"

namespace tenon::views {

/// What a project holds, as one tree: the model, the runs with their checkpoints, traces and exports.
class ProjectModel {
 public:
  struct Node {
    std::string icon;        ///< name of an icon of the resources
    std::string text, note;  ///< the name, and what is said of it in a quieter voice
    std::string tip;
    Ink mark = Ink::none;
    Selection selection;
    std::vector<Node> children;
    /// Equal but for what lies below.
    bool same_line(const Node& o) const;
    bool operator==(const Node& o) const;
  };

  /// What is read from the file, away from the UI thread.
  struct Contents {
    ModelSpec model;
    std::vector<projects::RunInfo> runs;
    std::vector<std::vector<projects::CheckpointInfo>> checkpoints;  ///< by run
    std::vector<projects::ArtifactInfo> artifacts;
    int64_t parameters = 0;
  };
  static Contents read(projects::Project& project);

  void set(Contents contents);
  void set_status(const projects::RunStatus& status);
  const Contents& contents() const { return contents_; }
  const projects::RunInfo* run(int64_t id) const;
  const projects::CheckpointInfo* checkpoint(int64_t id) const;
  /// The tree as it is to be shown; equal trees need no repaint.
  std::vector<Node> tree() const;

 private:
  Contents contents_;
  projects::RunStatus status_;
  bool live_ = false;
};

}  // namespace tenon::views
