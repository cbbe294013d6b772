#pragma once
#include <string>

#include "projects/finish.h"

namespace tenon {
class TrainingSession;
}

// Exports that a server takes as they are.
namespace tenon::projects {

/// A model repository of Triton, which a KServe InferenceService of the format "triton" takes too:
/// FOLDER/MODEL/config.pbtxt and FOLDER/MODEL/VERSION/model.onnx, the version behind those that are there already. A
/// version is there whole or not at all; see export_run() for `verify`.
ExportReport export_triton(TrainingSession& session, const RunInfo& run, const std::string& doc,
                           const std::string& folder, bool verify);
/// An archive of TorchServe (.mar): a TorchScript program, the names of the classes, and a handler that takes rows as
/// JSON or as .npy and needs torch alone.
ExportReport export_torchserve(TrainingSession& session, const RunInfo& run, const std::string& doc,
                               const std::string& path, bool verify);

/// A name as servers allow one: letters, digits, '_', '-' and '.', a letter first.
std::string served_name(const std::string& name);

}  // namespace tenon::projects
