#include "engine/formats/cpp/trial.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/number.h"
#include "core/process.h"
#include "core/temporary_folder.h"
#include "engine/formats/cpp/kernel.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// Runs the model on batch after batch of a file and tells the least time of a run.
std::string driver(const Artifact& a, const std::string& header, DType input, DType output) {
  const bool beside = !a.weights.empty();
  return fmt::format(R"(#include "{}"

#include <cstdio>
#include <ctime>

static {} input[{}::input_size];
static {} output[{}::output_size];
static {}::Workspace workspace;
alignas(64) static unsigned char weights[{}];

int main(int, char** words) {{
  std::FILE* from = std::fopen(words[1], "rb");
  std::FILE* to = std::fopen(words[2], "wb");
  if (!from || !to) return 1;
)",
                     header, cpp_type(input), a.name, cpp_type(output), a.name, a.name,
                     std::max<size_t>(1, a.weights.size())) +
         (beside ? fmt::format(R"(  std::FILE* file = std::fopen(words[3], "rb");
  if (!file || std::fread(weights, sizeof weights, 1, file) != 1) return 2;
  if (!{}::are_weights(weights, sizeof weights)) return 3;
)",
                               a.name)
                 : "") +
         fmt::format(R"(  double least = 1e9;
  while (std::fread(input, sizeof input, 1, from) == 1) {{
    const std::clock_t begin = std::clock();
    {}::run(input, output, workspace{});
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (seconds < least) least = seconds;
    if (std::fwrite(output, sizeof output, 1, to) != 1) return 4;
  }}
  std::printf("%.9f", least);
  return std::fclose(to) ? 5 : 0;
}}
)",
                     a.name, beside ? ", weights" : "");
}

void compile(const std::vector<std::string>& words) {
  const ProcessResult r = run_process(words);
  if (r.status != 0)
    throw Error(fmt::format("{} does not compile it: {}", words[0], r.said.substr(0, r.said.find('\n', 400))));
}

}  // namespace

std::string system_compiler() { return first_program({"c++", "g++", "clang++"}); }

ObjectSize object_size(const std::string& path) {
  const std::string bytes = read_file(path);
  Elf64_Ehdr head;
  if (bytes.size() < sizeof head || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64)
    throw Error(path + " is no object file of 64 bits");
  std::memcpy(&head, bytes.data(), sizeof head);
  ObjectSize size;
  for (size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    const size_t at = head.e_shoff + i * sizeof section;
    if (at + sizeof section > bytes.size()) throw Error(path + " ends within its sections");
    std::memcpy(&section, bytes.data() + at, sizeof section);
    if (section.sh_flags & SHF_ALLOC)
      (section.sh_flags & SHF_EXECINSTR ? size.code : size.data) += static_cast<int64_t>(section.sh_size);
  }
  return size;
}

ArtifactTrial try_artifact(const std::string& compiler, const Artifact& artifact, const std::string& header,
                           const std::string& source, const Tensor& rows) {
  const TemporaryFolder folder("tenon-trial");
  const std::string main_file = folder / "main.cpp", program = folder / "trial";
  write_file(main_file, driver(artifact, std::filesystem::path(header).filename().string(), rows.dtype(), DType::f32));
  const std::string include = "-I" + std::filesystem::absolute(header).parent_path().string();
  ArtifactTrial t;
  for (const char* level : {"-Os", "-O2"}) {
    const std::string object = folder / "model.o";
    compile({compiler, "-std=c++17", level, "-fno-exceptions", "-c", source, "-o", object});
    (std::strcmp(level, "-Os") == 0 ? t.small : t.fast) = object_size(object);
  }
  compile({compiler, "-std=c++17", "-O1", include, main_file, folder / "model.o", "-o", program});
  if (!artifact.weights.empty()) write_file(folder / "weights.bin", artifact.weights);

  // The last batch is filled up with its first samples.
  const int64_t batch = artifact.input_sizes.at(0) * rows.size(0) / rows.numel(), count = rows.size(0);
  const Tensor dense = contiguous(rows);
  const auto row_bytes = dense.nbytes() / static_cast<size_t>(count);
  std::string bytes(static_cast<const char*>(dense.raw()), dense.nbytes());
  for (int64_t i = 0; (count + i) % batch; ++i)
    bytes.append(static_cast<const char*>(dense.raw()) + static_cast<size_t>(i % count) * row_bytes, row_bytes);
  write_file(folder / "in", bytes);
  const ProcessResult r = run_process({program, folder / "in", folder / "out", folder / "weights.bin"});
  if (r.status != 0) throw Error(fmt::format("the compiled model ends with status {}", r.status), r.said);
  t.seconds = number_of(r.said).value_or(0);

  const std::string out = read_file(folder / "out");
  const int64_t per_row = artifact.output_sizes.at(0) / batch;
  if (static_cast<int64_t>(out.size()) < count * per_row * 4) throw Error("the compiled model gives too little");
  t.output = empty({count, per_row});
  std::memcpy(t.output.raw(), out.data(), t.output.nbytes());
  return t;
}

}  // namespace tenon::formats
