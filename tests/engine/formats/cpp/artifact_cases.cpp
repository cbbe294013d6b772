#include "tests/engine/formats/cpp/artifact_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/file.h"
#include "core/process.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/formats/cpp/artifact.h"
#include "engine/formats/cpp/kernel.h"
#include "engine/formats/cpp/trial.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/view.h"
#include "tests/engine/files.h"

namespace tenon::testing_artifacts {

using formats::OnnxAttribute;

ModelText& ModelText::input(const std::string& name, DType t, const Shape& size) {
  formats::OnnxValue v{name, true, t, true, {}};
  for (int64_t n : size) v.shape.push_back({n, ""});
  model.graph.inputs.push_back(v);
  return *this;
}
ModelText& ModelText::constant(const std::string& name, const Tensor& t) {
  model.graph.initializers.emplace_back(name, t);
  return *this;
}
ModelText& ModelText::node(const std::string& op, const std::vector<std::string>& in, const std::string& out,
                           std::vector<OnnxAttribute> attributes) {
  model.graph.nodes.push_back(
      {fmt::format("{}_{}", op, model.graph.nodes.size()), op, "", in, {out}, std::move(attributes)});
  return *this;
}
ModelText& ModelText::output(const std::string& name) {
  model.graph.outputs.push_back({.name = name});
  return *this;
}

Tensor numbers(const Shape& size, uint64_t seed, int64_t below) {
  Tensor t = empty(size, below ? DType::i64 : DType::f32);
  const Philox random{seed, 1};
  for (int64_t i = 0; i < t.numel(); ++i)
    if (below)
      t.data<int64_t>()[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below)));
    else
      t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}

namespace {

/// One block of main(): reads the case's inputs, runs it, writes its outputs.
std::string block(const formats::Artifact& a, const ArtifactCase& c, const std::vector<Tensor>& expected) {
  std::string text = "  {\n    static " + a.name +
                     "::Workspace workspace;\n    std::memset(&workspace, 255, sizeof workspace);\n",
              words;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    text += fmt::format("    static {} in{}[{}];\n    get(in{}, sizeof in{});\n",
                        formats::cpp_type(c.inputs[k].dtype()), k, std::max<int64_t>(1, c.inputs[k].numel()), k, k);
    words += fmt::format("in{}, ", k);
  }
  std::string puts;
  for (size_t k = 0; k < expected.size(); ++k) {
    text += fmt::format("    static {} out{}[{}];\n", formats::cpp_type(expected[k].dtype()), k,
                        std::max<int64_t>(1, expected[k].numel()));
    words += fmt::format("out{}, ", k);
    puts += fmt::format("    put(out{}, sizeof out{});\n", k, k);
  }
  words += "workspace";
  if (!a.weights.empty()) {
    text += fmt::format(
        "    alignas(16) static unsigned char weights[{0}::weights_size];\n    get(weights, sizeof weights);\n"
        "    if (!{0}::are_weights(weights, sizeof weights)) return 3;\n    ++weights[0];\n"
        "    if ({0}::are_weights(weights, sizeof weights)) return 4;\n    --weights[0];\n",
        a.name);
    words += ", weights";
  }
  return text + "    " + a.name + "::run(" + words + ");\n" + puts + "  }\n";
}

std::string bytes_of(const Tensor& t) { return {static_cast<const char*>(t.raw()), t.nbytes()}; }

double number_at(const Tensor& t, int64_t i) { return storage_value(t, t.offset() + i); }

void expect_close(const Tensor& want, const Tensor& got) {
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double a = number_at(want, i), b = number_at(got, i);
    if (std::isnan(a) || std::isinf(a)) {
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "element " << i << ": " << a << " and " << b;
      continue;
    }
    ASSERT_TRUE(std::isfinite(b)) << "element " << i << ": " << a << " and " << b;
    largest = std::max(largest, std::abs(a));
    worst = std::max(worst, std::abs(a - b));
  }
  EXPECT_LE(worst, 1e-5 * std::max(largest, 1e-30)) << "the largest value is " << largest;
}

}  // namespace

void expect_same(const std::vector<ArtifactCase>& cases, const std::vector<std::string>& flags, bool weights_beside) {
  const std::string compiler = formats::system_compiler();
  if (compiler.empty()) GTEST_SKIP() << "there is no C++ compiler";
  const NoGrad off;
  testing_files::Folder folder;
  std::string includes = "#include <cstdio>\n#include <cstring>\n", blocks, given;
  std::vector<std::vector<Tensor>> expected;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    const std::string name = fmt::format("c{}", i);
    expected.emplace_back();
    for (const Tensor& t : formats::run_onnx(cases[i].model, cases[i].inputs)) expected.back().push_back(contiguous(t));
    const formats::Artifact a = formats::write_artifact(
        cases[i].model, name + ".h", {cases[i].inputs.at(0).ndim() ? cases[i].inputs[0].size(0) : 1, weights_beside});
    write_file(folder.file(name + ".h"), a.header);
    write_file(folder.file(name + ".cpp"), a.source);
    includes += "#include \"" + name + ".cpp\"\n";
    blocks += "  // " + cases[i].name + "\n" + block(a, cases[i], expected.back());
    for (const Tensor& t : cases[i].inputs)
      given += t.numel() ? bytes_of(contiguous(t)) : std::string(itemsize(t.dtype()), '\0');
    given += a.weights;
  }
  write_file(
      folder.file("main.cpp"),
      includes +
          "static std::FILE *from, *to;\n"
          "static void get(void* at, std::size_t n) { if (std::fread(at, 1, n, from) != n) std::perror(\"read\"); }\n"
          "static void put(const void* at, std::size_t n) { std::fwrite(at, 1, n, to); }\n"
          "int main(int, char** words) {\n  from = std::fopen(words[1], \"rb\");\n"
          "  to = std::fopen(words[2], \"wb\");\n" +
          blocks + "  return std::fclose(to);\n}\n");
  write_file(folder.file("in"), given);
  std::vector<std::string> words = {
      compiler, "-std=c++17", "-fno-exceptions", "-fno-rtti", folder.file("main.cpp"), "-o", folder.file("program")};
  words.insert(words.end(), flags.begin(), flags.end());
  const ProcessResult compiled = run_process(words);
  ASSERT_EQ(compiled.status, 0) << compiled.said.substr(0, 4000);
  const ProcessResult ran = run_process({folder.file("program"), folder.file("in"), folder.file("out")});
  ASSERT_EQ(ran.status, 0) << ran.said.substr(0, 4000);
  const std::string out = read_file(folder.file("out"));
  size_t at = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    for (const Tensor& want : expected[i]) {
      const Tensor got = empty(want.size(), want.dtype());
      const size_t bytes = std::max(got.nbytes(), itemsize(want.dtype()));
      ASSERT_LE(at + bytes, out.size());
      std::memcpy(got.raw(), out.data() + at, got.nbytes());
      at += bytes;
      expect_close(want, got);
    }
  }
}

}  // namespace tenon::testing_artifacts
