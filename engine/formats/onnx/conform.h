#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tenon::formats {

/// The outcome of one test case of the ONNX project: a folder with model.onnx and test_data_set_<n>/input_<k>.pb,
/// output_<k>.pb.
struct ConformCase {
  enum class Outcome : unsigned char { pass, fail, unsupported };
  std::string name;  ///< of the folder
  Outcome outcome = Outcome::pass;
  std::string detail;                  ///< the difference, or why it is unsupported
  std::vector<std::string> operators;  ///< of the model, bodies included, sorted, each once
  bool wrong = false;  ///< failed by its values, shape or type: an answer was given and is not the one expected
};
const char* name(ConformCase::Outcome o);

/// Runs one case. Values agree within rtol 1e-3 and atol 1e-7 (or what the folder's data.json says), or within half a
/// unit in the last place of the tensor's largest value, which sums that cancel cannot do without; integers, shapes and
/// dtypes exactly.
ConformCase run_conform_case(const std::string& folder);
/// Runs every case below a folder, in order of path, and calls `done` after each. Throws Error where there is none.
std::vector<ConformCase> run_conform(const std::string& folder,
                                     const std::function<void(const ConformCase&)>& done = {});

}  // namespace tenon::formats
