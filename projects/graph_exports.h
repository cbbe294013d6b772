#pragma once
#include <string>

#include "engine/data/dataset.h"
#include "engine/formats/named_tensors.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/torchscript/script.h"
#include "projects/finish.h"

namespace tenon {
class TrainingSession;
}

// Exports that are made of a model's graph, and what they have in common.
namespace tenon::projects {

/// By how much results may differ, of the largest value.
inline constexpr double kExportTolerance = 1e-5;

/// A number that is no other size's: the graph of an export serves any batch, and is verified at another.
inline constexpr int64_t kTracedBatch = 31;

/// Parameters and buffers by the names that a program gives them.
formats::ScriptState script_state_of(TrainingSession& session);
/// The first test samples, 64 at most.
data::Batch verified_samples(const TrainingSession& session);
/// As many test samples as the graph of onnx_of() is traced with: only with these does it run as it is.
data::Batch traced_samples(const TrainingSession& session);
/// The session's model as it is exported; it serves any batch, and any number of steps where nothing in it has theirs.
formats::OnnxModel onnx_of(TrainingSession& session, const RunInfo& run, const std::string& doc,
                           formats::Recurrence recurrence = formats::Recurrence::nodes);

/// Every parameter and buffer under its module path.
formats::NamedTensors state_dict_of(TrainingSession& session);
/// Holds what was read back against what was written, and says so in the report. Throws Error naming the tensor that
/// differs in a bit.
void verify_tensors(const formats::NamedTensors& all, const formats::NamedTensors& back, const std::string& path,
                    ExportReport& e);

/// An ONNX file, see export_run().
ExportReport export_onnx(TrainingSession& session, const RunInfo& run, const std::string& doc, const std::string& path,
                         bool verify);
/// NAME.h and NAME.cpp of a path NAME.h, see export_run().
ExportReport export_cpp(TrainingSession& session, const RunInfo& run, const std::string& doc, const std::string& path,
                        bool verify, const CppExport& how);
/// Runs what was written and read back on test samples, beside the session's model, and says so in the report. Throws
/// Error where the results differ by more than kExportTolerance.
void verify_outputs(TrainingSession& session, const formats::OnnxModel& back, const std::string& path, ExportReport& e);

/// A program that torch.export.load() opens, see export_run().
ExportReport export_pt2(TrainingSession& session, const RunInfo& run, const std::string& doc, const std::string& path,
                        bool verify);
/// A program that torch.jit.load() opens, see export_run().
ExportReport export_torchscript(TrainingSession& session, const RunInfo& run, const std::string& doc,
                                const std::string& path, bool verify);

}  // namespace tenon::projects
