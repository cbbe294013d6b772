// TorchScript programs as models: what our own export writes comes back, and files of PyTorch are read without it.
#include "engine/formats/jit/jit_model.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/random.h"
#include "core/temporary_folder.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/torchscript/script.h"
#include "engine/formats/zip.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

using testing_words::message_of;

std::string seed(const std::string& name) {
  return std::string(TENON_SOURCE_DIR) + "/tests/fuzz/seeds/jit/" + name + ".pt";
}
Tensor some(const Shape& size) {
  Tensor t = empty(size);
  const Philox random{5, 3};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}
const Tensor& initializer(const OnnxModel& m, const std::string& name) {
  const Tensor* t = m.graph.initializer(name);
  if (!t) throw Error("there is no " + name);
  return *t;
}

TEST(JitModels, what_is_exported_comes_back) {
  OnnxModel m;
  m.opset = 21;
  m.graph.inputs = {{"x", true, DType::f32, true, {{-1, "N"}, {6, {}}}}};
  m.graph.outputs = {{"y"}};
  const Tensor w = some({4, 6}), b = some({4});
  m.graph.initializers = {{"fc.weight", w}, {"fc.bias", b}};
  m.graph.nodes = {{"/fc/Gemm", "Gemm", "", {"x", "fc.weight", "fc.bias"}, {"h"}, {{"transB", int64_t{1}}}},
                   {"/act/Relu", "Relu", "", {"h"}, {"y"}, {}}};
  const TemporaryFolder folder("tenon-jit");
  const std::string path = folder / "m.pt";
  save_torchscript(path, m, {{{"fc.weight", w}, {"fc.bias", b}}, {}}, 2);
  const OnnxModel back = load_runnable(path);
  EXPECT_EQ(back.graph.inputs.at(0).shape.at(0).value, -1) << "it serves any batch";
  for (const int64_t rows : {1, 5}) {
    const Tensor x = some({rows, 6});
    const Tensor ours = run_onnx(m, {x}).at(0), theirs = run_onnx(back, {x}).at(0);
    ASSERT_EQ(ours.size(), theirs.size());
    EXPECT_LE(item(amax(abs(sub(ours, theirs)))), 1e-6);
  }
}

TEST(JitModels, several_outputs_of_a_trace) {
  const OnnxModel m = load_jit(seed("tuple.traced"));
  ASSERT_EQ(m.graph.inputs.size(), 1u);
  ASSERT_EQ(m.graph.inputs[0].shape.size(), 2u);
  EXPECT_EQ(m.graph.inputs[0].shape[0].value, -1);
  EXPECT_EQ(m.graph.inputs[0].shape[1].value, 6) << "what it was traced with says so";
  const Tensor x = some({3, 6});
  const std::vector<Tensor> y = run_onnx(m, {x});
  ASSERT_EQ(y.size(), 3u) << "those of the tuple within the tuple, too";
  const auto layer = [&](const std::string& name) {
    return add(matmul(x, transpose(initializer(m, name + ".weight"), 0, 1)), initializer(m, name + ".bias"));
  };
  EXPECT_LE(item(amax(abs(sub(y[0], relu(layer("a")))))), 1e-5) << "also where it is written in place";
  EXPECT_LE(item(amax(abs(sub(y[1], sigmoid(layer("b")))))), 1e-5);
  EXPECT_LE(item(amax(abs(sub(y[2], mean(x, {1}, true))))), 1e-5);
}

TEST(JitModels, loops_and_branches_of_a_script_are_followed) {
  const OnnxModel m = load_jit(seed("loop.scripted"));
  Tensor x = some({2, 6});
  const Tensor y = run_onnx(m, {x}).at(0);
  for (const char* layer : {"ls.0", "ls.1", "ls.2"}) {
    const std::string name = layer;
    x = add(relu(add(matmul(x, transpose(initializer(m, name + ".weight"), 0, 1)), initializer(m, name + ".bias"))), x);
  }
  for (int i = 0; i < 2; ++i) x = add(mul(x, scalar(0.5)), scalar(static_cast<double>(i)));
  EXPECT_LE(item(amax(abs(sub(x, y)))), 1e-5);
}

TEST(JitModels, sizes_are_said_where_neither_the_file_nor_its_weights_do) {
  const std::string why = message_of([] { load_jit(seed("numbers.scripted")); });
  EXPECT_SAYS(why, "it does not say what its inputs are");
  const OnnxModel m = load_jit(seed("numbers.scripted"), {{{3, 6}}});
  EXPECT_EQ(run_onnx(m, {some({4, 6})}).size(), 4u);
  EXPECT_EQ(load_runnable(seed("masked.scripted"), {{{1, 5}}}).graph.inputs[0].shape[1].value, 5);
}

TEST(JitModels, sizes_that_go_with_the_batch_are_known_at_a_run) {
  const OnnxModel m = load_jit(seed("shapes.traced"));
  for (const int64_t rows : {1, 3, 7}) EXPECT_EQ(run_onnx(m, {some({rows, 4, 6})}).at(0).size(0), rows);
}

using Changes = std::vector<std::pair<std::string, std::string>>;
/// A seed with another code.
std::string changed(const TemporaryFolder& folder, const std::string& name, const Changes& changes) {
  const std::string bytes = read_file(seed(name)), path = folder / "changed.pt";
  const Zip zip(bytes, name);
  FileWriter file(path);
  ZipWriter out(file);
  for (const Zip::Member& m : zip.members()) {
    std::string unpacked, data(zip.data(m, unpacked));
    for (const auto& [from, to] : changes)
      if (const size_t at = data.find(from); m.name.ends_with(".py") && at != data.npos)
        data.replace(at, from.size(), to);
    out.add(m.name, data);
  }
  out.finish();
  file.commit();
  return path;
}

TEST(JitModels, a_quotient_of_sizes_is_a_fraction_but_where_it_is_rounded) {
  const TemporaryFolder folder("tenon-jit");
  const auto last = [&](const std::string& factor) {
    return load_jit(changed(folder, "tuple.traced",
                            {{"torch.mean(x, [-1], True)", "torch.mul(torch.mean(x, [-1], True), " + factor + ")"}}));
  };
  const Tensor x = some({3, 6}), mean_of = mean(x, {1}, true);
  const auto expect_factor = [&](const std::string& factor, double by) {
    const Tensor y = run_onnx(last(factor), {x}).at(2);
    EXPECT_LE(item(amax(abs(sub(y, mul(mean_of, scalar(by)))))), 1e-6) << factor;
  };
  expect_factor("torch.div(1, torch.size(x, 1))", 1.0 / 6);
  expect_factor("torch.div(7, 2, rounding_mode=\"floor\")", 3);
  expect_factor("torch.add(2, torch.size(x, 1), alpha=1)", 8);
  expect_factor("torch.sum([True, False, torch.gt(torch.size(x, 1), 5)])", 2);
  expect_factor("torch.sum([torch.size(x, 1), 0.5])", 6.5);
  EXPECT_SAYS(message_of([&] { last("torch.add(2, 3, alpha=2)"); }), "multiplied on the way");
  // With the batch it is a fraction that no size is: the program serves the batch of its trace alone.
  EXPECT_EQ(last("torch.div(1, torch.size(x, 0))").graph.inputs.at(0).shape.at(0).value, 2);
}

TEST(JitModels, what_is_written_into_a_part_of_a_tensor_is_in_all_of_it) {
  const TemporaryFolder folder("tenon-jit");
  const auto last = [&](const std::string& code) {
    return load_jit(changed(folder, "tuple.traced",
                            {{"    b = self.b\n", "    b = self.b\n    m = torch.zeros([3, 6], dtype=6)\n" + code},
                             {"torch.mean(x, [-1], True)", "torch.add(torch.mean(x, [0, 1]), m)"}}));
  };
  const Tensor x = some({3, 6});
  const auto added = [&](const OnnxModel& m) { return sub(run_onnx(m, {x}).at(2), mean(x)); };
  const Tensor part =
      added(last("    _3 = torch.fill_(torch.slice(torch.slice(m, 0, 1, 3), 1, -2), 5)\n"
                 "    _4 = torch.fill_(torch.select(m, 0, -1), 7)\n"
                 "    _5 = torch.zero_(torch.slice(m, 1, 3, 4))\n"
                 "    _6 = torch.copy_(torch.slice(m, 1, 0, 4, 2), torch.tensor(9))\n"));
  Tensor want = zeros({3, 6});
  const std::vector<std::vector<float>> rows = {{9, 0, 9, 0, 0, 0}, {9, 0, 9, 0, 5, 5}, {9, 7, 9, 0, 7, 7}};
  for (size_t r = 0; r < rows.size(); ++r) std::copy(rows[r].begin(), rows[r].end(), want.data<float>() + 6 * r);
  EXPECT_LE(item(amax(abs(sub(part, want)))), 1e-5);
  // Another view of the same memory would have to follow.
  EXPECT_SAYS(message_of([&] {
                last(
                    "    v = torch.slice(m, 0, 0, 2)\n    _3 = torch.fill_(torch.slice(m, 0, 1, 3), 5)\n"
                    "    _4 = torch.add_(m, torch.sum(v))\n");
              }),
              "whose memory other tensors share");
}

TEST(JitModels, every_operator_that_is_lacked_is_told) {
  const TemporaryFolder folder("tenon-jit");
  const std::string why = message_of([&] {
    load_jit(changed(folder, "tuple.traced",
                     {{"torch.relu_(", "torch.polygamma(torch.relu("},
                      {"(a).forward(x, ))", "(a).forward(x, )))"},
                      {"torch.sigmoid((b).forward(x, ))", "torch.sigmoid((b).forward(torch.erfcx(x), ))"},
                      {"torch.mean(x, [-1], True)", "torch.hypot(torch.polygamma(_0), torch.int_repr(x))"}}));
  });
  for (const char* op : {"torch.polygamma of the program and 1 more", "torch.erfcx", "torch.hypot", "torch.int_repr"})
    EXPECT_SAYS(why, op);
  EXPECT_EQ(why.find("torch.sigmoid"), std::string::npos) << "that has a rule, whatever it would be given: " << why;
  EXPECT_EQ(why.find("torch.linear"), std::string::npos) << why;
}

TEST(JitModels, inputs_that_are_no_tensors_are_named) {
  const TemporaryFolder folder("tenon-jit");
  const std::string path = changed(folder, "numbers.scripted",
                                   {{"    x: Tensor) ->", "    x: Tensor, n: int, l: List[Tensor], k: int=3) ->"}});
  for (const auto& inputs : {std::vector<InputHint>{}, std::vector<InputHint>{{{3, 6}}}})
    EXPECT_SAYS(message_of([&] { load_jit(path, inputs); }),
                "its forward takes what is no tensor: n (int), l (List[Tensor])");
}

TEST(JitModels, what_cannot_be_read_is_named_and_nothing_is_run) {
  const TemporaryFolder folder("tenon-jit");
  const auto said = [&](const std::string& from, const std::string& to) {
    return message_of([&] { load_jit(changed(folder, "tuple.traced", {{from, to}})); });
  };
  EXPECT_SAYS(said("torch.sigmoid", "torch.polygamma"),
              "torch.polygamma of the program: there is no rule for this operator");
  EXPECT_SAYS(said("torch.sigmoid", "os.system"), "its code reads \"os\"");
  EXPECT_SAYS(said("torch.sigmoid(", "__import__("), "__import__");
  EXPECT_SAYS(said("    b = self.b\n", "    b = self.gone\n"), "has no \"gone\"");
  EXPECT_SAYS(said("torch.relu_((a)", "torch.relu_((self)"), "too deep");
}

}  // namespace
}  // namespace tenon::formats
