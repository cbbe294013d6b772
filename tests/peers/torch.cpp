#include "tests/peers/torch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "engine/formats/torch/file.h"
#include "engine/ops/view.h"

namespace tenon::peers {
namespace {

/// A folder that goes with its owner.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "tenon_peer_XXXXXX").string();
  Folder() {
    if (!mkdtemp(path.data())) throw Error("no temporary folder could be made");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string& torch_python() {
  static const std::string found = [] {
    std::vector<std::string> candidates;
    if (const char* given = std::getenv("TENON_TORCH_PYTHON")) candidates.push_back(given);
    candidates.push_back("/usr/bin/python3");
    for (const std::string& python : candidates)
      if (std::system((python + " -c 'import torch' >/dev/null 2>&1").c_str()) == 0) return python;
    return std::string();
  }();
  return found;
}

}  // namespace

bool has_torch() { return !torch_python().empty(); }

bool exports_programs() {
  static const bool does =
      has_torch() &&
      std::system((torch_python() +
                   " -c 'import torch, sys; sys.exit([int(n) for n in torch.__version__.split(\".\")[:2]] < [2, 9])' "
                   ">/dev/null 2>&1")
                      .c_str()) == 0;
  return does;
}

formats::NamedTensors run_torch(const std::string& program, const nlohmann::json& input) {
  Folder folder;
  const std::string in = folder.path + "/in.json", out = folder.path + "/out.pt", err = folder.path + "/err.txt";
  std::ofstream(in) << input.dump();
  const std::string command = fmt::format("{} '{}/tests/peers/{}' '{}' < '{}' > '{}' 2>&1", torch_python(),
                                          TENON_SOURCE_DIR, program, out, in, err);
  if (std::system(command.c_str()) != 0) throw Error(program + " failed: " + slurp(err));
  formats::NamedTensors read;  // copies: the file goes with the folder
  for (auto& [name, tensor] : formats::TorchFile::open(out).tensors()) read.emplace_back(name, clone(tensor));
  return read;
}

const Tensor& find(const formats::NamedTensors& tensors, const std::string& name) {
  std::string there;
  for (const auto& [n, t] : tensors) {
    if (n == name) return t;
    there += (there.empty() ? "" : ", ") + n;
  }
  throw Error("PyTorch's results have no \"" + name + "\"; they have " + there);
}

double difference(const Tensor& a, const Tensor& b, double floor) {
  if (!(a.size() == b.size())) return INFINITY;
  Tensor x = contiguous(a), y = contiguous(b);
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    double p = storage_value(x, x.offset() + i), q = storage_value(y, y.offset() + i);
    if (p == q || (std::isnan(p) && std::isnan(q))) continue;
    double d = std::abs(p - q) / (floor + std::abs(q));
    if (!(d <= worst)) worst = d;
    if (std::isnan(d)) return d;
  }
  return worst;
}

}  // namespace tenon::peers
