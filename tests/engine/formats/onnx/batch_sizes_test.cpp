#include "engine/formats/onnx/batch_sizes.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/engine/formats/onnx/imports.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

using namespace testing_import;

using Sizes = std::vector<int64_t>;
constexpr AtTwoBatches<int64_t> kTwoBatches = {29, 31};

/// What arrives has the batch wherever there is a 0.
AtTwoBatches<Shape> arriving(const Sizes& sizes, AtTwoBatches<int64_t> batch = kTwoBatches, int64_t inner = 1) {
  Sizes at = sizes, again = sizes;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!sizes[i]) at[i] = batch.at * inner, again[i] = batch.again * inner;
  return {Shape(at), Shape(again)};
}
BatchSizes read_reshape(const AtTwoBatches<Shape>& from, const Sizes& at, const Sizes& again,
                        AtTwoBatches<int64_t> batch = kTwoBatches) {
  return reshape_of_any_batch(from, {at, again}, batch);
}

TEST(BatchSizes, what_differs_between_two_batches_holds_the_samples) {
  const BatchSizes windows = read_reshape(arriving({0, 8, 8, 3}), {29, 2, 4, 2, 4, 3}, {31, 2, 4, 2, 4, 3});
  EXPECT_EQ(windows.sizes, (Sizes{-1, 2, 4, 2, 4, 3}));
  EXPECT_FALSE(windows.written_for);
  EXPECT_EQ(read_reshape(arriving({0, 2, 2, 4, 4, 3}), {116, 16, 3}, {124, 16, 3}).sizes, (Sizes{-1, 16, 3}));
  EXPECT_EQ(read_reshape(arriving({12, 0, 64}), {12, 116, 16}, {12, 124, 16}).sizes, (Sizes{12, -1, 16}));
  EXPECT_EQ(read_reshape(arriving({12, 0, 64}), {-1, 64}, {-1, 64}).sizes, (Sizes{-1, 64})) << "samples inside an axis";
  EXPECT_EQ(read_reshape(arriving({0, 8, 8, 3}), {29, 8, -1}, {31, 8, -1}).sizes, (Sizes{-1, 8, 24}));
  EXPECT_EQ(read_reshape({{6}, {6}}, {2, -1}, {2, -1}).sizes, (Sizes{2, 3})) << "nothing of the batch";
  using testing_words::message_of;
  EXPECT_SAYS(message_of([] { read_reshape(arriving({0, 0}), {29, 31}, {31, 29}); }), "another number of elements");
  EXPECT_SAYS(message_of([] { read_reshape(arriving({0, 6}), {29, 6}, {31, 6, 1}); }), "depends on the number");
}

TEST(BatchSizes, a_number_that_was_written_for_one_batch_is_found_by_the_order_of_elements) {
  const BatchSizes heads = read_reshape(arriving({0, 12, 64}), {2, 12, 4, 16}, {2, 12, 4, 16});
  EXPECT_EQ(heads.sizes, (Sizes{-1, 12, 4, 16}));
  EXPECT_EQ(heads.written_for, 2);
  // Samples behind the words: as many elements lie before them as before.
  const BatchSizes behind = read_reshape(arriving({12, 0, 64}), {12, 8, 16}, {12, 8, 16});
  EXPECT_EQ(behind.sizes, (Sizes{12, -1, 16}));
  EXPECT_EQ(behind.written_for, 2);
  // Samples and heads in one axis, apart again.
  EXPECT_EQ(read_reshape(arriving({0, 12, 16}, kTwoBatches, 4), {3, 4, 12, 16}, {3, 4, 12, 16}).sizes,
            (Sizes{-1, 4, 12, 16}));
  // Words and samples in one axis: the samples are inside.
  EXPECT_EQ(read_reshape(arriving({0, 64}, kTwoBatches, 12), {12, 3, 64}, {12, 3, 64}).sizes, (Sizes{12, -1, 64}));
  const BatchSizes open = read_reshape(arriving({0, 12, 64}), {3, -1, 16}, {3, -1, 16});
  EXPECT_EQ(open.sizes, (Sizes{-1, 48, 16}));
  EXPECT_EQ(open.written_for, 3);
  // Of one sample, with an axis that is left open: the first.
  const BatchSizes both = read_reshape(arriving({0, 6, 2, 2}), {1, 6, -1}, {1, 6, -1});
  EXPECT_EQ(both.sizes, (Sizes{-1, 6, 4}));
  EXPECT_EQ(both.written_for, 1);
  const BatchSizes known =
      reshape_of_any_batch(arriving({0, 12, 16}, kTwoBatches, 4), {{8, -1, 8}, {8, -1, 8}}, kTwoBatches, 2);
  EXPECT_EQ(known.sizes, (Sizes{-1, 24, 8})) << "of two samples, four heads each";
  // A file that says one sample itself.
  const BatchSizes one = read_reshape(arriving({0, 64}, {1, 29}), {1, 1, 8, 8}, {1, 1, 8, 8}, {1, 29});
  EXPECT_EQ(one.sizes, (Sizes{-1, 1, 8, 8}));
  EXPECT_EQ(one.written_for, 1);
}

TEST(BatchSizes, what_does_not_follow_is_said_and_not_guessed) {
  using testing_words::message_of;
  EXPECT_SAYS(message_of([] {
                read_reshape(arriving({0, 64}, kTwoBatches, 2), {2, 2, 64}, {2, 2, 64});
              }),
              "does not follow from them");
  EXPECT_SAYS(message_of([] { read_reshape(arriving({0, 64}), {3, 5}, {3, 5}); }), "hold 15 elements, and a sample 64");
  EXPECT_SAYS(message_of([] { read_reshape(arriving({0, 9}), {3, 6}, {3, 6}); }), "does not follow from them");
}

TEST(BatchSizes, expanding_keeps_the_samples_that_arrive) {
  const auto expanded = [](const AtTwoBatches<Shape>& from, const Sizes& at, const Sizes& again) {
    return expand_of_any_batch(from, {at, again}, kTwoBatches);
  };
  EXPECT_EQ(expanded(arriving({0, 1, 6}), {29, 4, 6}, {31, 4, 6}).sizes, (Sizes{1, 4, 6}));
  const BatchSizes written = expanded(arriving({0, 1, 6}), {2, 4, 6}, {2, 4, 6});
  EXPECT_EQ(written.sizes, (Sizes{1, 4, 6}));
  EXPECT_EQ(written.written_for, 2);
  EXPECT_EQ(expanded(arriving({0, 6}), {5, 1, 6}, {5, 1, 6}).sizes, (Sizes{5, 1, 6}));
  EXPECT_SAYS(testing_words::message_of([&] { expanded(arriving({0, 6}), {29, 1, 6}, {31, 1, 6}); }), "once for each");
}

/// Rows of what the layers give for several samples are what the model gives for one after the other.
void expect_each_sample_alone(const OnnxModel& m, const ImportedModel& in, const Tensor& samples, int64_t at_once) {
  NoGrad off;
  const Tensor all = (*built(in))(samples);
  for (int64_t i = 0; i + at_once <= samples.size(0); i += at_once)
    EXPECT_LE(distance(narrow(all, 0, i, at_once), run_onnx(m, {contiguous(narrow(samples, 0, i, at_once))})[0]), 1e-5);
}

TEST(OnnxImport, a_batch_that_the_sizes_hold_as_a_number_is_read_and_said) {
  // Three heads of four words, as they are written for two samples: behind each other in the axis of the batch.
  for (const OnnxDim& batch : {OnnxDim{2, ""}, OnnxDim{-1, "N"}}) {
    Written w({4, 6}, false, batch);
    w.constant("apart", whole({2, 4, 3, 2})).constant("heads", whole({6, 4, 2})).constant("rows", whole({2, 3, 4, 2}));
    w.constant("together", whole({2, 4, 6})).constant("wider", whole({2, 4, 6}));
    w.put("a", "Reshape", {"x", "apart"}, {}, "/attn/Reshape")
        .put("b", "Transpose", {"a"}, {{"perm", Ints{0, 2, 1, 3}}});
    w.put("c", "Reshape", {"b", "heads"}).put("t", "Transpose", {"c"}, {{"perm", Ints{0, 2, 1}}});
    w.put("d", "MatMul", {"c", "t"}).put("s", "Softmax", {"d"}, {{"axis", int64_t{-1}}}).put("v", "MatMul", {"s", "c"});
    w.put("f", "Reshape", {"v", "rows"}).put("g", "Transpose", {"f"}, {{"perm", Ints{0, 2, 1, 3}}});
    w.put("h", "Reshape", {"g", "together"}).put("y", "Expand", {"h", "wider"});
    const OnnxModel& m = w.out("y");
    const ImportedModel in = import_model(m, "model");
    ASSERT_EQ(in.notes.size(), 1u);
    EXPECT_SAYS(in.notes[0], "It was written for 2 samples: that number in the sizes of 5 nodes (/attn/Reshape, ...)");
    expect_each_sample_alone(m, in, noise({6, 4, 6}, 3), 2);
  }
}

TEST(OnnxImport, what_depends_on_the_batch_is_no_constant_of_a_layer) {
  using testing_words::message_of;
  // Divided by the number of samples.
  Written w({6});
  w.put("n", "Shape", {"x"}).constant("first", whole({0}));
  w.put("k", "Gather", {"n", "first"}, {{"axis", int64_t{0}}}).put("f", "Cast", {"k"}, {{"to", int64_t{1}}});
  w.put("y", "Div", {"x", "f"});
  EXPECT_SAYS(message_of([&] { import_model(w.out("y"), "model"); }), "its input 1 depends on the number of samples");
  // The size that an image is brought to stands behind it.
  Written z({2, 4, 4});
  z.put("n", "Shape", {"x"}).constant("twice", whole({1, 1, 2, 2})).put("to", "Mul", {"n", "twice"});
  z.put("y", "Resize", {"x", "", "", "to"}, {{"mode", std::string("linear")}});
  EXPECT_EQ(types(imported(z.out("y"), noise({3, 2, 4, 4}, 5))), Types{"Upsample"});
  // A row that is the same for every sample is one.
  Written r({6});
  r.constant("row", noise({1, 6}, 1)).put("n", "Shape", {"x"}).put("rows", "Expand", {"row", "n"});
  r.put("y", "Sub", {"x", "rows"});
  imported(r.out("y"), noise({3, 6}, 2));
}

}  // namespace
}  // namespace tenon::formats
