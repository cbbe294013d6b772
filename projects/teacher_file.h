#pragma once
#include <memory>
#include <string>

#include "projects/weights_file.h"

namespace tenon {
class TrainingSession;
}

// The teacher that a run learns from, from wherever its recipe says: see Note [A teacher].
namespace tenon::projects {

/// A model with its weights.
struct TeacherFile {
  std::string text;    ///< "run big-01 of /data/a.tenon at step 938", "/data/big.onnx, an ONNX model"
  std::string sha256;  ///< of the file; of a run its digest at the step
  ModelSpec model;
  std::vector<std::pair<std::string, Tensor>> tensors;
};

/// What distill.from names; `project` is whose runs a name without a file means. Throws Error naming the file or the
/// run that is not there, and where it is not the one that distill.sha256 says.
TeacherFile read_teacher(Project& project, const Recipe& recipe, const Progress& progress = {});
/// Throws Error, with the teacher's name in front, where it does not fit the session.
void give_teacher(TrainingSession& session, TeacherFile teacher);

}  // namespace tenon::projects
