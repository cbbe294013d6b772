// GGUF files go to and come from llama.cpp's own Python package, and through the command line.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "core/tensor_bytes.h"
#include "engine/formats/gguf.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

/// A Python that has the package gguf; empty where there is none.
const std::string& gguf_python() {
  static const std::string found = [] {
    for (const std::string& p : {python(), std::string("python3")})
      if (!p.empty() && run({p, "-c", "import gguf"}).status == 0) return p;
    return std::string();
  }();
  return found;
}
#define NEEDS_GGUF() \
  if (gguf_python().empty()) GTEST_SKIP() << "no Python with the package gguf is there (pip install gguf)"

// Random blocks of every quantized type that the package can compute itself, and beside the file what it computes. The
// scales are small, so that no value is infinite.
constexpr const char* kWriteBlocks = R"py(
import sys, numpy as np
from gguf import GGUFWriter, GGMLQuantizationType as Q, GGML_QUANT_SIZES, dequantize
folder = sys.argv[1]
rng = np.random.default_rng(5)
halves = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}
w = GGUFWriter(folder + "/blocks.gguf", "tenon-peer")
w.add_uint32("a.number", 77)
w.add_array("a.words", ["one", "two"])
w.add_string("a.text", "Grüße")
for name, places in halves.items():
    elements, size = GGML_QUANT_SIZES[Q[name]]
    rows, blocks = 5, 7
    data = rng.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    if name == "MXFP4": data[:, :, 0] = data[:, :, 0] % 100 + 60
    for at in places:
        d = rng.normal(0, 0.1, (rows, blocks, 1)).astype(np.float16)
        data[:, :, at:at + 2] = d.view(np.uint8)
    data = data.reshape(rows, blocks * size)
    w.add_tensor(name, data, raw_dtype=Q[name])
    np.ascontiguousarray(dequantize(data, Q[name]), dtype="<f4").tofile(f"{folder}/{name}.f32")
for dtype in ("float16", "float32", "float64", "int8", "int16", "int32", "int64"):
    a = (np.arange(24) - 7).reshape(2, 3, 4).astype(dtype)
    w.add_tensor(dtype, a)
    a.tofile(f"{folder}/{dtype}.f32")
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
)py";

TEST(GgufPeers, what_llama_cpps_package_writes_is_read_to_the_last_bit) {
  NEEDS_GGUF();
  Folder folder;
  std::ofstream(folder / "write.py") << kWriteBlocks;
  const Outcome made = run({gguf_python(), folder / "write.py", folder.path()});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto file = formats::Gguf::open(folder / "blocks.gguf");
  ASSERT_EQ(file.entries().size(), 20u);
  for (const auto& e : file.entries()) {
    const std::string want = slurp(folder / (e.name + ".f32"));
    const Tensor t = file.tensor(e);
    ASSERT_EQ(t.nbytes(), want.size()) << e.name;
    if (t.dtype() != DType::f32) {
      EXPECT_EQ(std::memcmp(t.raw(), want.data(), want.size()), 0) << e.name;
      continue;
    }
    for (size_t i = 0; i < want.size() / 4; ++i) {
      float theirs;
      std::memcpy(&theirs, want.data() + 4 * i, 4);
      ASSERT_EQ(t.data<float>()[i], theirs) << e.name << " element " << i;
    }
  }
  const Outcome told = tenon({"inspect", folder / "blocks.gguf", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(told.json().at(0).at("metadata").at("a.text"), "Grüße");
  EXPECT_EQ(told.json().at(0).at("metadata").at("a.words"), "[one, two]");
  EXPECT_EQ(tenon({"diff", folder / "blocks.gguf", folder / "blocks.gguf"}).status, 0);
}

constexpr const char* kRead = R"py(
import sys
from gguf import GGUFReader
r = GGUFReader(sys.argv[1])
for key in ("general.architecture", "tokenizer.ggml.tokens"):
    if key in r.fields: print(key, str(r.fields[key].contents())[:60])
for t in r.tensors: print(t.name, t.tensor_type.name, ",".join(str(int(n)) for n in t.shape), t.data.tobytes().hex())
)py";

TEST(GgufPeers, what_is_written_here_that_package_reads_to_the_last_bit) {
  NEEDS_GGUF();
  Folder folder;
  formats::NamedTensors all;
  for (const DType dtype : {DType::f32, DType::f16, DType::f64, DType::i8, DType::i64}) {
    Tensor t = empty({2, 3}, dtype);
    for (size_t i = 0; i < t.nbytes(); ++i) static_cast<uint8_t*>(t.raw())[i] = static_cast<uint8_t>(i + 1);
    all.emplace_back(name(dtype), t);
  }
  formats::save_gguf(folder / "ours.gguf", all, {{"general.architecture", std::string("tenon")}});
  std::ofstream(folder / "read.py") << kRead;
  const Outcome read = run({gguf_python(), folder / "read.py", folder / "ours.gguf"});
  ASSERT_EQ(read.status, 0) << read.err;
  std::string want = "general.architecture tenon\n";
  for (const auto& [name, t] : all) {
    std::string type = name, hex;
    for (char& c : type) c = static_cast<char>(std::toupper(c));
    std::vector<char> copy;
    for (unsigned char c : logical_bytes(t, copy)) hex += {"0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
    want += name + " " + type + " 3,2 " + hex + "\n";
  }
  EXPECT_EQ(read.out, want);
}

TEST(GgufExported, a_transformer_leaves_and_its_weights_come_back) {
  Folder folder;
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 400; ++i) text << "line " << i << " of a text that nobody reads\n";
  text.close();
  const std::string project = folder / "p.tenon", file = folder / "m.gguf", other = folder / "m.safetensors";
  ASSERT_EQ(tenon({"new", project, "--template", "byte-gpt", "--data", folder / "text.txt", "--set", "data.context=32",
                   "--set", "data.cache=" + (folder / "cache"), "--set", "data.batch_size=4"})
                .status,
            0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "3"}).status, 0);
  const Outcome made = tenon({"export", project, "r", "--format", "gguf", "-o", file, "--verify", "--json"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.json().at(0).at("verified"), true);
  EXPECT_EQ(made.json().at(0).at("tensors"), 54);
  ASSERT_EQ(tenon({"export", project, "r", "--format", "safetensors", "-o", other}).status, 0);
  const Outcome same = tenon({"diff", file, other, "--json"});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  // Begun with and trained no step, a run has the weights of the file.
  const Outcome begun = tenon({"train", project, "--run", "again", "--max-steps", "1", "--set", "init.from=" + file});
  EXPECT_EQ(begun.status, 0) << begun.err;
  if (!gguf_python().empty()) {
    std::ofstream(folder / "read.py") << kRead;
    const Outcome read = run({gguf_python(), folder / "read.py", file});
    ASSERT_EQ(read.status, 0) << read.err;
    EXPECT_NE(read.out.find("blocks.0.attention.in_proj_weight F32 128,384 "), std::string::npos);
    EXPECT_NE(read.out.find("tokenizer.ggml.tokens ['Ā', 'ā'"), std::string::npos) << read.out.substr(0, 300);
  }
  const std::string spirals = folder / "s.tenon";
  ASSERT_EQ(tenon({"new", spirals, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", spirals, "--run", "r", "--max-steps", "2"}).status, 0);
  const Outcome refused = tenon({"export", spirals, "r", "--format", "gguf", "-o", folder / "s.gguf"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("safetensors"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace tenon::journeys
