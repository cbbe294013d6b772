#include "engine/formats/onnx/feed.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/ops/create.h"
#include "tests/engine/files.h"

namespace tenon::formats {
namespace {

using testing_words::has;
using testing_words::message_of;
using From = OnnxFeed::From;

const OnnxValue kImage{.name = "x", .typed = true, .ranked = true, .shape = {{-1, "N"}, {3, ""}, {-1, ""}}};

class Feeds : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.file(name); }
  testing_files::Folder folder_;
};

double sum_of(const Tensor& t) {
  double sum = 0;
  for (int64_t i = 0; i < t.numel(); ++i) sum += storage_value(t, i);
  return sum;
}

TEST_F(Feeds, shapes_are_read_as_people_write_them_and_checked) {
  EXPECT_EQ(input_shape(kImage, "2, 3, 8"), (std::vector<int64_t>{2, 3, 8}));
  EXPECT_EQ(input_shape(kImage, "2x3x8"), (std::vector<int64_t>{2, 3, 8}));
  EXPECT_EQ(input_shape(kImage, "[0, 3, 1]"), (std::vector<int64_t>{0, 3, 1}));
  EXPECT_EQ(parse_sizes("3x224x224"), (std::vector<int64_t>{3, 224, 224}));
  EXPECT_TRUE(parse_sizes("").empty());
  EXPECT_EQ(least_shape(kImage), (std::vector<int64_t>{1, 3, 1}));
  for (const char* wrong : {"2, 4, 8", "2, 3", "", "2, 3, 8, 1"})
    EXPECT_TRUE(has(message_of([&] { input_shape(kImage, wrong); }), "does not fit f32 [N, 3, ?]")) << wrong;
  for (const char* wrong : {"2, -3, 8", "a, 3, 8", "2.5, 3, 8", "99999999999999999999, 3, 1"})
    EXPECT_TRUE(has(message_of([&] { input_shape(kImage, wrong); }), "is no shape")) << wrong;
}

TEST_F(Feeds, a_seed_gives_the_same_values_again_and_each_input_its_own) {
  const OnnxFeed one{From::seed, 1, {4, 3, 5}};
  const Tensor a = fed(kImage, one), b = fed(kImage, one);
  OnnxValue other = kImage;
  other.name = "y";
  const Tensor c = fed(other, one), d = fed(kImage, {From::seed, 2, {4, 3, 5}});
  EXPECT_EQ(sum_of(a), sum_of(b));
  EXPECT_NE(sum_of(a), sum_of(c));
  EXPECT_NE(sum_of(a), sum_of(d));
  OnnxValue words = kImage, flags = kImage;
  words.dtype = DType::i64;
  flags.dtype = DType::boolean;
  const Tensor w = fed(words, {From::seed, 1, {50, 3, 1}}), f = fed(flags, {From::seed, 1, {50, 3, 1}});
  EXPECT_EQ(f.dtype(), DType::boolean);
  for (int64_t i = 0; i < w.numel(); ++i) {
    EXPECT_GE(storage_value(w, i), 0);
    EXPECT_LE(storage_value(w, i), 9);
  }
  EXPECT_GT(sum_of(f), 30);
  EXPECT_LT(sum_of(f), 120);
  EXPECT_EQ(sum_of(fed(kImage, {From::ones, 0, {2, 3, 1}})), 6);
  EXPECT_EQ(sum_of(fed(kImage, {From::zeros, 0, {2, 3, 1}})), 0);
  EXPECT_EQ(parse_feed("seed:12").seed, 12u);
  EXPECT_EQ(parse_feed("ones").from, From::ones);
  for (const char* wrong : {"seed:", "seed:x", "seed:-1", "random", ""})
    EXPECT_TRUE(has(message_of([&] { parse_feed(wrong); }), "nothing to fill inputs with")) << wrong;
}

TEST_F(Feeds, files_of_every_kind_give_the_tensor_of_the_name_or_the_only_one) {
  const Tensor x = full({1, 3, 2}, 0.5), y = full({2, 3, 2}, 2);
  save_npy(at("x.npy"), x);
  save_npz(at("both.npz"), {{"x", x}, {"y", y}});
  save_npz(at("one.npz"), {{"arr_0", x}});
  save_safetensors(at("both.safetensors"), {{"x", x}, {"y", y}});
  save_onnx_tensor(at("x.pb"), "anything", x);
  for (const char* file : {"x.npy", "both.npz", "one.npz", "both.safetensors", "x.pb"}) {
    const Tensor t = fed(kImage, {.from = From::file, .file = at(file)});
    EXPECT_EQ(to_string(t.size()), "[1, 3, 2]") << file;
    EXPECT_EQ(sum_of(t), 3) << file;
  }
  OnnxValue other = kImage;
  other.name = "z";
  EXPECT_TRUE(has(message_of([&] { fed(other, {.from = From::file, .file = at("both.npz")}); }), "has no array \"z\""));
  EXPECT_TRUE(has(message_of([&] { fed(other, {.from = From::file, .file = at("both.safetensors")}); }), "\"z\""));
  save_npy(at("wide.npy"), full({1, 3, 2}, 1, DType::f64));
  EXPECT_TRUE(has(message_of([&] { fed(kImage, {.from = From::file, .file = at("wide.npy")}); }), "it is f64"));
  save_npy(at("flat.npy"), full({6}, 1));
  EXPECT_TRUE(has(message_of([&] { fed(kImage, {.from = From::file, .file = at("flat.npy")}); }), "[6] does not fit"));
  write_file(at("bad.npz"), "PK no");
  EXPECT_THROW(fed(kImage, {.from = From::file, .file = at("bad.npz")}), Error);
}

TEST_F(Feeds, inputs_agree_about_sizes_of_one_name) {
  OnnxValue y = kImage;
  y.name = "y";
  EXPECT_EQ(fed({kImage, y}, {{.shape = {2, 3, 1}}, {.shape = {2, 3, 4}}}).size(), 2u);
  const std::string said = message_of([&] { fed({kImage, y}, {{.shape = {2, 3, 1}}, {.shape = {5, 3, 1}}}); });
  EXPECT_TRUE(has(said, "the size N is 2 in the input x and 5 in y")) << said;
}

TEST_F(Feeds, outputs_are_saved_by_the_end_of_the_name_and_read_back) {
  const NamedTensors both = {{"a", full({2, 2}, 1.5)}, {"b", full({3}, 2, DType::i64)}};
  save_outputs(at("o.npz"), both);
  const NamedTensors back = load_npz(at("o.npz"));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].first, "b");
  EXPECT_EQ(back[1].second.dtype(), DType::i64);
  EXPECT_EQ(sum_of(back[0].second), 6);
  save_outputs(at("o.safetensors"), both);
  EXPECT_EQ(sum_of(Safetensors::open(at("o.safetensors")).tensor("b")), 6);
  EXPECT_TRUE(has(message_of([&] { save_outputs(at("o.npy"), both); }), "holds one tensor, the model gave 2"));
  EXPECT_TRUE(has(message_of([&] { save_outputs(at("o.txt"), both); }), "no kind of file"));
  save_outputs(at("o.npy"), {both[0]});
  EXPECT_EQ(sum_of(load_npy(at("o.npy"))), 6);
}

TEST_F(Feeds, a_run_is_stopped_between_nodes_and_tells_which_one_failed) {
  OnnxModel m;
  m.graph.inputs = {{.name = "x", .typed = true}};
  m.graph.outputs = {{.name = "z", .typed = true}};
  m.graph.nodes = {{"first", "Relu", "", {"x"}, {"y"}, {}}, {"second", "Neg", "", {"y"}, {"z"}, {}}};
  std::vector<int64_t> told;
  OnnxLimits limits;
  limits.go_on = [&](int64_t node, int64_t of) {
    EXPECT_EQ(of, 2);
    told.push_back(node);
    return true;
  };
  EXPECT_EQ(run_onnx(m, {full({2}, 3)}, limits).size(), 1u);
  EXPECT_EQ(told, (std::vector<int64_t>{0, 1}));
  limits.go_on = [](int64_t node, int64_t) { return node < 1; };
  EXPECT_EQ(message_of([&] { run_onnx(m, {full({2}, 3)}, limits); }), "the run was stopped");
}

}  // namespace
}  // namespace tenon::formats
