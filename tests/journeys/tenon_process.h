#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenon::journeys {

/// What a program left behind.
struct Outcome {
  int status = -1;  ///< exit status; -9 for SIGKILL and so on
  std::string out, err;
  std::vector<nlohmann::json> json() const;  ///< one a line of `out`
};

/// Runs `tenon` with these words and waits.
Outcome tenon(const std::vector<std::string>& words);
/// Any program, found on the path.
Outcome run(const std::vector<std::string>& words);
/// Starts `tenon`, sends it a signal after so many microseconds, and waits for its end.
Outcome tenon_signalled(const std::vector<std::string>& words, int signal, int64_t after_us);
/// Trains a new run with these words, killed after so long, and goes on with it to its end. Killed before the run had
/// begun, it is begun again with twice the time, so that a kill within the run is what is tried in the end.
void train_through_a_kill(const std::string& project, const std::string& run, std::vector<std::string> words,
                          int64_t after_us);

/// What `tenon digest` prints of a run at a step; empty where it fails.
std::string digest(const std::string& project, const std::string& run, const std::string& step, int threads = 2);

/// The bytes of a file; empty where it cannot be read.
std::string slurp(const std::string& path);

/// A folder that goes with the test.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The Python with ONNX Runtime that packaging/test.sh made; empty where there is none.
std::string python();
bool has_fashion_mnist();

}  // namespace tenon::journeys
