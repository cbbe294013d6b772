#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "projects/time_travel.h"

namespace tenon {
struct Evaluation;
}

// What is done with a run that was trained: evaluated, and written for other programs.
namespace tenon::projects {

/// A state of a run that one may mean: "best", "last", or the step that is looked at.
struct NamedStep {
  std::string name;
  int64_t step = 0;
};
/// The best (where it was evaluated) and the last, one entry where they are the same.
std::vector<NamedStep> named_steps(const RunInfo& run);

/// A run's status in words: "stopped early" is one that its recipe ended before its length (stop.metric); the file says
/// that it is finished, with the reason in RunInfo::error.
std::string status_text(const RunInfo& run);
bool stopped_early(const RunInfo& run);

/// "run r at step 120: test loss 0.3012, test accuracy 91.20 % (10,000 samples)"
std::string evaluation_text(const RunInfo& run, int64_t step, const Evaluation& e);
/// "91.20 %" of an accuracy, "0.1234" of others: a metric in the form "test_accuracy 91.20 %" with blanks for '_'.
std::string metric_text(const std::string& name, double value);

enum class ExportFormat : uint8_t { onnx, torch, safetensors, gguf, python, cpp, torchscript, pt2, triton, torchserve };
/// A form that a trained model is exported in, as the command line and the window offer it.
struct ExportForm {
  ExportFormat format;
  const char* name;                  ///< "onnx"
  std::vector<const char*> endings;  ///< of its files: "onnx"; the first is the usual one
  const char* title;                 ///< for people: "ONNX model"
  const char* help;                  ///< what is written
};
const std::vector<ExportForm>& export_forms();
/// By its name, "onnx"; throws Error (usage) for another word.
ExportFormat export_format(const std::string& name);
const char* name(ExportFormat f);
/// What the end of a file's name asks for. Throws Error (usage) for one that is none of export_forms().
ExportFormat format_of_file(const std::string& path);

/// What an export says of itself.
struct ExportReport {
  size_t parts = 0;                                      ///< nodes of the graph, or tensors of the state_dict
  size_t initializers = 0;                               ///< of an ONNX file
  bool verified = false;                                 ///< the file was read back and compared
  int64_t rows = 0;                                      ///< test samples its results were compared on
  double difference = 0;                                 ///< the largest, of those results
  double relative_difference = 0;                        ///< of that to the largest value
  std::string text;                                      ///< in words, a line each
  std::vector<std::pair<std::string, int64_t>> figures;  ///< of a C++ artifact: "arena_bytes"
};
/// How a model becomes C++ (cpp).
struct CppExport {
  int64_t batch = 1;    ///< samples of a run
  std::string weights;  ///< the file that they go to; empty: into the source, or NAME.bin where they are many
};
/// What an exported file says of where it comes from: "run r of p.tenon, step 30".
std::string export_doc(const Project& project, const RunInfo& run, int64_t step);

/// Writes the state of a run after a step: the model (onnx) or its state_dict (torch, safetensors), a transformer
/// (gguf), PyTorch source with its state_dict in a file NAME.pt beside it (python), NAME.h and NAME.cpp (cpp), a
/// program with its weights (torchscript, pt2), a model repository that is a folder (triton), or an archive
/// (torchserve). `verify` reads the file back: the results of onnx and pt2 on test samples may differ by 1e-5 of the
/// largest value, so may those of C++ where this machine has a compiler, tensors by no bit, a source describes the same
/// model; else it is an Error.
ExportReport export_run(Project& project, const RunInfo& run, int64_t step, ExportFormat format,
                        const std::string& path, bool verify, const Progress& progress = {}, const CppExport& cpp = {});

}  // namespace tenon::projects
