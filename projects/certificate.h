#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "projects/time_travel.h"

// Note [Certificates]
// A certificate stands beside an exported ONNX or .pt2 file, FILE.certificate, and says what left the house and how far
// it is from what was trained. It is text of two or three lines:
//   1. JSON: digests of the file's bytes (tree_digest()), what goes in and out, canaries (inputs with the outputs that
//      the file gave for them), errors measured per node and per output, statistics of inputs and outputs, and where
//      the model comes from.
//   2. "sha256 " and the SHA-256 of the first line, so that a changed letter of it is seen.
//   3. Where it was made with a key: "hmac-sha256 " and the HMAC of the first line, which nobody without the key makes.
// certificate_checker() is a program that checks all of it without Tenon.
namespace tenon::projects {

struct CertifyOptions {
  int64_t canaries = 8;   ///< test samples that are kept with their outputs
  int64_t samples = 256;  ///< test samples that statistics and errors are told by
  std::string key = {};   ///< bytes of a key; empty: none
};
struct CertifyReport {
  std::string path;  ///< of the certificate
  int64_t samples = 0;
  double from_engine = 0;       ///< the largest relative difference of the file's outputs from the trained model's
  double from_f64 = 0;          ///< of a node's, from the same node in f64
  std::string worst_node = {};  ///< that node
  std::string text;             ///< in words, a line each
};
/// Measures a file that was exported from a state of a run, ONNX (quantized, too) or .pt2, and writes its certificate.
/// Throws Error where the file is none of a model with the run's inputs and outputs, or cannot be run.
CertifyReport certify(Project& project, const RunInfo& run, int64_t step, const std::string& file,
                      const CertifyOptions& options, const Progress& progress = {});

struct VerifyOptions {
  std::string certificate = {};  ///< empty: the file's name with ".certificate"
  std::string key = {};          ///< bytes; empty: a signature is not looked at
  std::string inputs = {};       ///< a .npy file of inputs to hold against the baseline; empty: none
};
struct Check {
  std::string what;  ///< "bytes"
  bool ok = false;
  std::string text;  ///< what was seen
};
struct VerifyReport {
  std::vector<Check> checks;
  std::string provenance;  ///< "run r of p.tenon, step 30, by tenon 0.1.0"
  bool ok() const;
};
/// Checks a certified file: its bytes, the certificate's own, the signature, the canaries, and how new inputs lie
/// beside the baseline. A check that fails is in the report; throws Error where there is no certificate, or none that
/// can be read.
VerifyReport verify_certified(const std::string& file, const VerifyOptions& options = {},
                              const Progress& progress = {});

/// The same of the bytes of a certificate, which errors call `name`.
VerifyReport verify_with(const std::string& certificate, const std::string& name, const std::string& file,
                         const VerifyOptions& options = {}, const Progress& progress = {});

/// The source of a Python program that does the same: bytes and canaries (where onnxruntime and numpy are
/// installed, or PyTorch for a .pt2).
const char* certificate_checker();

}  // namespace tenon::projects
