// Writes large model files: make_model onnx NODES FILE, a transformer of blocks of twenty nodes with small weights;
// make_model safetensors BYTES FILE, the weights of one, whose values are a hole in the file (zeros that take no disk).
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

/// A message of protocol buffers, written field by field.
struct Message {
  std::string bytes;
  void varint(uint64_t v) {
    for (; v >= 128; v >>= 7) bytes += static_cast<char>(v | 128);
    bytes += static_cast<char>(v);
  }
  Message& number(int field, uint64_t v) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(v);
    return *this;
  }
  Message& text(int field, const std::string& v) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(v.size());
    bytes += v;
    return *this;
  }
  Message& part(int field, const Message& m) { return text(field, m.bytes); }
};

constexpr uint64_t kFloat = 1, kWide = 64;

struct Graph {
  Message all;
  uint64_t nodes = 0;

  std::string node(const std::string& path, const char* op, const std::vector<std::string>& inputs) {
    Message m;
    const std::string out = path + "_output_0";
    for (const std::string& in : inputs) m.text(1, in);
    all.part(1, m.text(2, out).text(3, path).text(4, op));
    ++nodes;
    return out;
  }
  std::string weight(const std::string& name, uint64_t rows) {
    all.part(5, Message().number(1, rows).number(1, kWide).number(2, kFloat).text(8, name).text(
                    9, std::string(rows * kWide * 4, '\0')));
    return name;
  }
  void value(int field, const std::string& name) {
    Message shape;
    for (const uint64_t d : {uint64_t{1}, kWide}) shape.part(1, Message().number(1, d));
    all.part(field, Message().text(1, name).part(2, Message().part(1, Message().number(1, kFloat).part(2, shape))));
  }
};

std::string block(Graph& g, const std::string& in, const std::string& at, const std::string& weights) {
  auto linear = [&](const std::string& x, const std::string& name) {
    const std::string product = g.node(at + name + "/MatMul", "MatMul", {x, g.weight(weights + name + ".w", kWide)});
    return g.node(at + name + "/Add", "Add", {product, g.weight(weights + name + ".b", 1)});
  };
  const std::string n1 = g.node(at + "/norm1/LayerNormalization", "LayerNormalization",
                                {in, g.weight(weights + "/norm1.w", 1), g.weight(weights + "/norm1.b", 1)});
  const std::string q = linear(n1, "/attn/q"), k = linear(n1, "/attn/k"), v = linear(n1, "/attn/v");
  const std::string kt = g.node(at + "/attn/Transpose", "Transpose", {k});
  const std::string scores = g.node(at + "/attn/MatMul", "MatMul", {q, kt});
  const std::string soft = g.node(at + "/attn/Softmax", "Softmax", {scores});
  const std::string mixed = g.node(at + "/attn/MatMul_1", "MatMul", {soft, v});
  const std::string first = g.node(at + "/Add", "Add", {in, linear(mixed, "/attn/out")});
  const std::string n2 = g.node(at + "/norm2/LayerNormalization", "LayerNormalization",
                                {first, g.weight(weights + "/norm2.w", 1), g.weight(weights + "/norm2.b", 1)});
  const std::string gelu = g.node(at + "/mlp/Relu", "Relu", {linear(n2, "/mlp/up")});
  return g.node(at + "/Add_1", "Add", {first, linear(gelu, "/mlp/down")});
}

bool write_onnx(uint64_t nodes, std::FILE* out) {
  Graph g;
  g.value(11, "x");
  std::string last = "x";
  for (int layer = 0; g.nodes < nodes; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    last = block(g, last, "/" + name, name);
  }
  g.node("/Identity", "Identity", {last});
  g.value(12, "/Identity_output_0");
  g.all.text(2, "made");
  const Message model =
      Message().number(1, 8).text(2, "make_model").part(7, g.all).part(8, Message().text(1, "").number(2, 17));
  return std::fwrite(model.bytes.data(), 1, model.bytes.size(), out) == model.bytes.size();
}

bool write_safetensors(uint64_t bytes, std::FILE* out) {
  constexpr uint64_t kRows = 4096, kTensor = kRows * kRows * 2;  // 32 MiB of half precision
  const char* const parts[] = {"attn.q.weight", "attn.k.weight",   "attn.v.weight",  "attn.out.weight",
                               "mlp.up.weight", "mlp.gate.weight", "mlp.down.weight"};
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  uint64_t at = 0;
  for (uint64_t i = 0; at < bytes; ++i, at += kTensor)
    header += ",\"model.layers." + std::to_string(i / 7) + "." + parts[i % 7] + "\":{\"dtype\":\"F16\",\"shape\":[" +
              std::to_string(kRows) + "," + std::to_string(kRows) + "],\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(at + kTensor) + "]}";
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  return std::fwrite(&length, 8, 1, out) == 1 && std::fwrite(header.data(), 1, length, out) == length &&
         std::fflush(out) == 0 && ftruncate(fileno(out), static_cast<off_t>(8 + length + at)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc == 4 ? argv[1] : "";
  if (kind != "onnx" && kind != "safetensors") {
    std::fprintf(stderr, "make_model onnx NODES FILE | make_model safetensors BYTES FILE\n");
    return 2;
  }
  const uint64_t size = std::strtoull(argv[2], nullptr, 10);
  std::FILE* out = std::fopen(argv[3], "wb");
  if (!out) return 1;
  const bool written = kind == "onnx" ? write_onnx(size, out) : write_safetensors(size, out);
  return std::fclose(out) == 0 && written ? 0 : 1;
}
