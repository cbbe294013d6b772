#include "engine/formats/onnx/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "core/file.h"
#include "core/pool.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

using testing_words::has;
using testing_words::message_of;

Tensor floats(const Shape& shape) {
  Tensor t = empty(shape, DType::f32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i) * 0.5f;
  return t;
}

OnnxModel small() {
  OnnxModel m;
  m.producer_version = "1";
  m.graph.name = "small";
  m.graph.inputs = {{"x", true, DType::f32, true, {{-1, "N"}, {4, ""}}}};
  m.graph.outputs = {{"y", true, DType::f32, true, {{-1, "N"}, {3, ""}}}};
  m.graph.initializers = {{"w", floats({3, 4})}, {"b", floats({3})}};
  m.graph.nodes = {{"fc", "Gemm", "", {"x", "w", "b"}, {"h"}, {{"transB", int64_t{1}}, {"alpha", 1.0}}},
                   {"act", "LeakyRelu", "", {"h"}, {"y"}, {{"alpha", 0.25}}}};
  return m;
}

TEST(Onnx, a_model_survives_writing_and_reading) {
  const OnnxModel m = small();
  const OnnxModel back = parse_onnx(onnx_bytes(m), "m.onnx");
  EXPECT_EQ(back.opset, 17);
  EXPECT_EQ(back.ir_version, 8);
  ASSERT_EQ(back.graph.nodes.size(), 2u);
  EXPECT_EQ(back.graph.nodes[0].op_type, "Gemm");
  EXPECT_EQ(back.graph.nodes[0].inputs, (std::vector<std::string>{"x", "w", "b"}));
  EXPECT_EQ(back.graph.nodes[0].integer("transB", 0), 1);
  EXPECT_EQ(back.graph.nodes[1].number("alpha", 0), 0.25);
  EXPECT_EQ(back.graph.nodes[1].number("beta", 7), 7);
  EXPECT_THROW(back.graph.nodes[0].text("transB", ""), Error);
  EXPECT_EQ(back.graph.inputs[0].shape[0].name, "N");
  EXPECT_EQ(back.graph.inputs[0].shape[1].value, 4);
  ASSERT_NE(back.graph.initializer("w"), nullptr);
  EXPECT_EQ(value_at(*back.graph.initializer("w"), {2, 3}), 5.5);
}

TEST(Onnx, every_kind_of_attribute_survives) {
  OnnxModel m = small();
  auto body = std::make_shared<OnnxGraph>();
  body->name = "then";
  body->nodes = {{"", "Relu", "", {"h"}, {"inner"}, {}}};  // h comes from outside
  body->outputs = {{"inner", true, DType::f32, false, {}}};
  m.graph.nodes[1].attributes = {{"s", std::string("text")},
                                 {"ints", std::vector<int64_t>{1, -2}},
                                 {"floats", std::vector<double>{0.5, 2}},
                                 {"strings", std::vector<std::string>{"a", "b"}},
                                 {"t", floats({2})},
                                 {"body", body}};
  const OnnxModel back = parse_onnx(onnx_bytes(m), "m");
  const OnnxNode& n = back.graph.nodes[1];
  EXPECT_EQ(n.text("s", ""), "text");
  EXPECT_EQ(n.integers("ints"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(std::get<std::vector<double>>(*n.find("floats")), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(std::get<std::vector<std::string>>(*n.find("strings")).size(), 2u);
  EXPECT_EQ(value_at(std::get<Tensor>(*n.find("t")), {1}), 0.5);
  EXPECT_EQ(std::get<std::shared_ptr<OnnxGraph>>(*n.find("body"))->nodes[0].op_type, "Relu");
}

TEST(Onnx, every_dtype_survives_as_a_bare_tensor) {
  const std::string path = (std::filesystem::temp_directory_path() / "tenon-onnx-tensor.pb").string();
  for (int k = 0; k < kDTypes; ++k) {
    Tensor t = empty({2, 3}, static_cast<DType>(k));
    for (size_t i = 0; i < t.nbytes(); ++i) static_cast<char*>(t.raw())[i] = static_cast<char>(i % 2);
    save_onnx_tensor(path, "x", t);
    const Tensor back = load_onnx_tensor(path);
    ASSERT_EQ(back.dtype(), t.dtype());
    ASSERT_EQ(back.size(), t.size());
    ASSERT_EQ(std::memcmp(back.raw(), t.raw(), t.nbytes()), 0);
  }
  std::filesystem::remove(path);
}

// Protobuf by hand: what other writers may send.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string number(int number, char value) { return {static_cast<char>(number << 3), value}; }

Tensor read_back(const std::string& proto) {
  const std::string path = (std::filesystem::temp_directory_path() / "tenon-onnx-hand.pb").string();
  write_file(path, proto);
  struct Remove {
    std::string path;
    ~Remove() { std::filesystem::remove(path); }
  } remove{path};
  return load_onnx_tensor(path);
}

TEST(Onnx, tensors_with_typed_fields) {
  const std::string floats_field = field(4, std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  const Tensor f = read_back(number(1, 2) + number(2, 1) + floats_field);  // dims not packed
  EXPECT_EQ(value_at(f, {1}), 2);
  const Tensor b =
      read_back(field(1, "\2") + number(2, 9) + field(5, std::string("\1\0", 2)));  // dims packed, bool in int32_data
  EXPECT_EQ(b.dtype(), DType::boolean);
  EXPECT_EQ(value_at(b, {0}), 1);
}

TEST(Onnx, bad_tensors_are_refused) {
  EXPECT_TRUE(has(message_of([] { read_back(number(1, 2) + number(2, 1) + field(9, "1234")); }), "needs 8"));
  EXPECT_TRUE(has(message_of([] { read_back(number(1, 2) + number(2, 1)); }), "0 elements in its data"));
  EXPECT_TRUE(has(message_of([] { read_back(number(1, 1) + number(2, 8) + field(6, "a")); }), "string"));
  EXPECT_TRUE(has(message_of([] { read_back(number(1, 1) + number(2, 99)); }), "type 99"));
  const std::string negative = std::string("\x08") + std::string(9, '\xff') + "\x01";
  EXPECT_TRUE(has(message_of([&] { read_back(negative + number(2, 1) + field(9, "1234")); }), "size -1"));
  const std::string huge = std::string("\x08") + std::string(8, '\xff') + "\x7f";
  EXPECT_TRUE(has(message_of([&] { read_back(huge + huge + number(2, 1) + field(9, "1234")); }), "absurd"));
  EXPECT_TRUE(has(message_of([] { read_back(std::string(17, '\x08') + number(2, 1)); }), "damaged"));
}

TEST(Onnx, nodes_out_of_order_are_sorted) {
  OnnxModel m = small();
  std::swap(m.graph.nodes[0], m.graph.nodes[1]);
  EXPECT_EQ(parse_onnx(onnx_bytes(m), "m").graph.nodes[0].name, "fc");
}

TEST(Onnx, graphs_that_cannot_be_are_refused) {
  OnnxModel m = small();
  m.graph.nodes[0].inputs[0] = "y";
  EXPECT_TRUE(has(message_of([&] { parse_onnx(onnx_bytes(m), "m"); }), "cycle"));
  m = small();
  m.graph.nodes[0].inputs[0] = "nowhere";
  EXPECT_TRUE(has(message_of([&] { parse_onnx(onnx_bytes(m), "m"); }), "node fc (Gemm) reads \"nowhere\""));
  m = small();
  m.graph.nodes[1].outputs[0] = "h";
  EXPECT_TRUE(has(message_of([&] { parse_onnx(onnx_bytes(m), "m"); }), "already made"));
  m = small();
  m.graph.outputs[0].name = "z";
  EXPECT_TRUE(has(message_of([&] { parse_onnx(onnx_bytes(m), "m"); }), "output \"z\""));
}

TEST(Onnx, damaged_bytes_never_crash) {
  const std::string whole = onnx_bytes(small());
  EXPECT_TRUE(has(message_of([] { parse_onnx("hello, this is no model", "m.onnx"); }), "m.onnx is not an ONNX model"));
  EXPECT_TRUE(has(message_of([] { parse_onnx("", "m"); }), "is not an ONNX model"));
  for (size_t keep = 1; keep < whole.size(); ++keep)
    EXPECT_NE(message_of([&] { parse_onnx(whole.substr(0, keep), "m"); }), "no error") << keep;
  for (size_t at = 0; at < whole.size(); ++at)
    for (unsigned char c : {0x00, 0x7f, 0x80, 0xff, 0x0a}) {
      std::string bad = whole;
      bad[at] = static_cast<char>(c);
      message_of([&] { parse_onnx(bad, "m"); });
    }
}

TEST(Onnx, external_data_stays_in_its_folder) {
  const std::string dir = (std::filesystem::temp_directory_path() / "tenon-onnx-external").string();
  std::filesystem::create_directories(dir + "/in");
  auto external = [&](const std::string& location, const std::string& offset) {
    auto entry = [](const std::string& k, const std::string& v) { return field(13, field(1, k) + field(2, v)); };
    const std::string t = number(1, 2) + number(2, 1) + entry("location", location) + entry("offset", offset) +
                          entry("length", "8") + std::string("\x70\1");
    write_file(dir + "/in/t.pb", t);
    return load_onnx_tensor(dir + "/in/t.pb");
  };
  const float values[3] = {9, 1, 2};
  write_file(dir + "/in/data.bin", {reinterpret_cast<const char*>(values), sizeof values});
  write_file(dir + "/secret", std::string(100, 'x'));
  EXPECT_EQ(value_at(external("data.bin", "4"), {1}), 2);
  // A window of the file, not a copy: it takes no memory of the pool. Written to, the file stays as it is.
  const int64_t before = pool_stats().live_bytes;
  Tensor window = external("data.bin", "4");
  EXPECT_EQ(pool_stats().live_bytes, before);
  window.data<float>()[0] = 7;
  EXPECT_EQ(value_at(external("data.bin", "4"), {0}), 1);
  // At an odd place it is one.
  write_file(dir + "/in/odd.bin", std::string("x") + std::string(reinterpret_cast<const char*>(values), sizeof values));
  EXPECT_EQ(value_at(external("odd.bin", "1"), {0}), 9);
  EXPECT_TRUE(has(message_of([&] { external("data.bin", "8"); }), "cut short"));
  EXPECT_TRUE(has(message_of([&] { external("data.bin", "-4"); }), "no position"));
  EXPECT_TRUE(has(message_of([&] { external("no.bin", "0"); }), "missing"));
  EXPECT_TRUE(has(message_of([&] { external("../secret", "0"); }), "outside the model's folder"));
  EXPECT_TRUE(has(message_of([&] { external("/etc/passwd", "0"); }), "outside the model's folder"));
  std::filesystem::create_symlink("../secret", dir + "/in/link");
  EXPECT_TRUE(has(message_of([&] { external("link", "0"); }), "outside the model's folder"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace tenon::formats
