// Every format as one kind of file: what is listed, what is read and when, and what is refused.
#include "engine/formats/model_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/zip.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

struct Place_ {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tenon-model-file-" + std::to_string(::getpid()))).string();
  ~Place_() { std::filesystem::remove(path); }
};

std::shared_ptr<const ModelFile> file_of(const std::string& bytes) {
  return ModelFile::parse(MappedFile::of(bytes, "a file"));
}
Tensor counted(const Shape& shape) {
  Tensor t = empty(shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}
void expect_values(const ModelFile& m, const std::string& name, const Tensor& expected) {
  const Tensor t = m.tensor(m.at(name));
  ASSERT_EQ(t.size(), expected.size()) << name;
  EXPECT_EQ(std::memcmp(t.raw(), expected.raw(), t.nbytes()), 0) << name;
}

TEST(ModelFiles, every_format_lists_what_was_saved_and_gives_its_values) {
  const NamedTensors saved = {{"layer1.0.conv1.weight", counted({2, 3, 3, 3})}, {"layer1.0.conv1.bias", counted({2})}};
  OnnxModel model;
  model.graph.initializers = saved;
  model.graph.nodes.push_back({"/layer1/layer1.0/conv1/Conv",
                               "Conv",
                               "",
                               {"x", saved[0].first, saved[1].first},
                               {"y"},
                               {{"strides", std::vector<int64_t>{2, 2}}}});
  model.graph.inputs.push_back({.name = "x", .typed = true, .ranked = true, .shape = {{-1, "N"}, {3, ""}}});
  model.graph.outputs.push_back({.name = "y"});
  Place_ at;
  for (const char* format : {"onnx", "safetensors", "torch"}) {
    SCOPED_TRACE(format);
    if (format == std::string("onnx"))
      save_onnx(at.path, model);
    else if (format == std::string("torch"))
      save_torch(at.path, saved);
    else
      save_safetensors(at.path, saved, {{"made", "here"}});
    const auto m = ModelFile::open(at.path);
    EXPECT_EQ(model_file_reader(m->kind)->name, format);
    EXPECT_EQ(m->file_bytes, std::filesystem::file_size(at.path));
    ASSERT_EQ(m->tensors.size(), 2u);
    EXPECT_EQ(m->elements(), 56);
    EXPECT_EQ(m->bytes(), 56u * 4);
    EXPECT_EQ(m->bytes_by_dtype().size(), 1u);
    for (const auto& [name, t] : saved) {
      ASSERT_GE(m->find_tensor(name), 0);
      const ModelFile::Entry& e = m->tensors[m->at(name)];
      EXPECT_EQ(Shape(e.shape), t.size());
      EXPECT_EQ(e.bytes, t.nbytes());
      EXPECT_TRUE(e.problem.empty()) << e.problem;
      expect_values(*m, name, t);
    }
    EXPECT_NE(testing_words::message_of([&] { m->at("layer1.0.conv1.weigth"); }).find("layer1.0.conv1.weight"),
              std::string::npos);
    EXPECT_EQ(m->nodes.size(), format == std::string("onnx") ? 1u : 0u);
    if (m->nodes.empty()) continue;
    EXPECT_EQ(m->nodes[0].scope, "layer1.0.conv1");
    ASSERT_EQ(m->nodes[0].attributes.size(), 1u);
    EXPECT_EQ(m->nodes[0].attributes[0].second, "[2, 2]");
    ASSERT_EQ(m->inputs.size(), 1u);
    EXPECT_EQ(m->inputs[0].type, "f32 [N, 3]");
  }
}

TEST(ModelFiles, every_seed_is_opened_or_refused_with_a_sentence) {
  size_t opened = 0, refused = 0, read = 0;
  for (const char* reader : {"onnx", "safetensors", "torch_file"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + "/tests/fuzz/seeds/" + reader)) {
      SCOPED_TRACE(entry.path().string());
      const std::string whole = read_file(entry.path().string());
      for (size_t bytes : {whole.size(), whole.size() * 3 / 4, whole.size() / 2}) try {
          const auto m = file_of(whole.substr(0, bytes));
          ++opened;
          m->bytes_by_dtype();
          for (size_t i = 0; i < m->tensors.size(); ++i) try {
              EXPECT_EQ(m->tensor(i).size(), Shape(m->tensors[i].shape));
              ++read;
            } catch (const Error& e) {
              EXPECT_FALSE(e.message().empty());
            }
        } catch (const Error& e) {
          EXPECT_GT(e.message().size(), 10u);
          ++refused;
        }
    }
  EXPECT_GT(opened, 100u);
  EXPECT_GT(refused, 100u);
  EXPECT_GT(read, 10u);
}

TEST(ModelFiles, arrays_of_numpy_are_tensors_of_a_file) {
  Place_ one, several;
  several.path += ".npz";
  const NamedTensors saved = {{"weights", counted({3, 4})}, {"bias", counted({5})}};
  save_npy(one.path, saved[0].second);
  save_npz(several.path, saved);
  const auto m = ModelFile::open(one.path);
  ASSERT_EQ(m->tensors.size(), 1u);
  EXPECT_EQ(m->tensors[0].dtype, "<f4");
  EXPECT_EQ(m->bytes(), 48u);
  expect_values(*m, m->tensors[0].name, saved[0].second);
  const auto all = ModelFile::open(several.path);
  EXPECT_EQ(model_file_reader(all->kind)->name, "npz");
  ASSERT_EQ(all->tensors.size(), 2u);
  for (const auto& [name, t] : saved) expect_values(*all, name, t);
  // What is damaged is told when it is read; what cannot be read at all is told with the list.
  std::string bytes = read_file(several.path);
  const size_t at = bytes.find(std::string("\x00\x00\x80\x3f", 4));  // 1.0
  ASSERT_NE(at, bytes.npos);
  bytes[at] ^= 1;
  const auto damaged = file_of(bytes);
  EXPECT_NE(testing_words::message_of([&] { damaged->tensor(damaged->at("weights")); }).find("checksum"),
            std::string::npos);
  std::string odd = npy_bytes(counted({2}));
  odd.replace(odd.find("<f4"), 3, "<c8");
  EXPECT_NE(file_of(odd)->tensors.at(0).problem.find("<c8"), std::string::npos);
}

TEST(ModelFiles, an_onnx_model_that_cannot_be_run_is_shown) {
  OnnxModel model;
  model.graph.nodes.push_back({"n", "NoSuchOperator", "", {"w"}, {"y"}, {}});
  model.graph.initializers.emplace_back("w", counted({3}));
  std::string bytes = onnx_bytes(model);
  const auto m = file_of(bytes);
  ASSERT_EQ(m->nodes.size(), 1u);
  EXPECT_EQ(m->nodes[0].op, "NoSuchOperator");
  expect_values(*m, "w", counted({3}));
  for (size_t cut : {bytes.size() - 1, bytes.size() / 2, size_t{12}})
    EXPECT_NE(testing_words::message_of([&] { file_of(bytes.substr(0, cut)); }).find("damaged"), std::string::npos)
        << cut;
}

/// Memory of this process that is not on the disk alone, in bytes.
int64_t resident() {
  std::ifstream in("/proc/self/statm");
  int64_t size = 0, pages = 0;
  in >> size >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

TEST(ModelFiles, ten_gigabytes_are_listed_without_being_read) {
  constexpr uint64_t kEach = uint64_t{1} << 30;
  constexpr int kTensors = 10;
  Place_ at;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i)
    header += (i ? "," : "") + ("\"layers." + std::to_string(i) +
                                ".weight\":{\"dtype\":\"BF16\",\"shape\":[32768,16384],\"data_offsets\":[" +
                                std::to_string(i * kEach) + "," + std::to_string((i + 1) * kEach) + "]}");
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');  // as writers align the data: what is not aligned has to be copied
  const uint64_t length = header.size();
  std::ofstream(at.path, std::ios::binary) << std::string(reinterpret_cast<const char*>(&length), 8) << header;
  if (::truncate(at.path.c_str(), static_cast<off_t>(8 + length + kTensors * kEach)) != 0)
    GTEST_SKIP() << "the folder for temporary files takes no file of 10 GiB, not even an empty one";
  const int64_t before = resident();
  const auto m = ModelFile::open(at.path);
  ASSERT_EQ(m->tensors.size(), size_t{kTensors});
  EXPECT_EQ(m->bytes(), kTensors * kEach);
  // A window of the file: one value of a gigabyte is one page.
  const Tensor t = m->tensor(m->at("layers.7.weight"));
  EXPECT_EQ(t.numel(), int64_t{32768} * 16384);
  EXPECT_EQ(storage_value(t, t.offset() + t.numel() - 1), 0);
  EXPECT_LT(resident() - before, int64_t{64} << 20) << "it was read whole";
}

// Pieces of pickles, in opcodes as PyTorch writes them.
std::string le(uint64_t n, int bytes) { return {reinterpret_cast<const char*>(&n), static_cast<size_t>(bytes)}; }
std::string pstr(const std::string& s) { return "X" + le(s.size(), 4) + s; }
std::string pnum(uint64_t n) { return "J" + le(n, 4); }
std::string pglobal(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string ptensor(const std::string& key, int elements, const std::string& sizes, const std::string& strides) {
  return pglobal("torch._utils", "_rebuild_tensor_v2") + "((" + pstr("storage") + pglobal("torch", "FloatStorage") +
         pstr(key) + pstr("cpu") + pnum(static_cast<uint64_t>(elements)) + "tQ" + pnum(0) + "(" + sizes + "t(" +
         strides + "t\x89" + pglobal("collections", "OrderedDict") + ")RtR";
}
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members) {
  Place_ at;
  FileWriter file(at.path);
  ZipWriter z(file);
  for (const auto& [name, bytes] : members) z.add("m/" + name, bytes);
  z.finish();
  file.commit();
  return read_file(at.path);
}
std::string six_floats() {
  const Tensor t = counted({6});
  return {static_cast<const char*>(t.raw()), t.nbytes()};
}

TEST(ModelFiles, a_torchscript_program_lists_the_weights_of_its_modules) {
  // A module of a class of its own, whose attribute is another one that holds a tensor.
  const std::string inner = pglobal("__torch__.torch.nn.modules.linear", "Linear") + ")\x81}(" + pstr("training") +
                            "\x89" + pstr("weight") + ptensor("0", 6, pnum(2) + pnum(3), pnum(3) + pnum(1)) + "ub";
  const std::string program = "\x80\x02" + pglobal("__torch__", "Net") + ")\x81}(" + pstr("fc") + inner + "ub.";
  const auto m = file_of(zip_of({{"data.pkl", program},
                                 {"code/__torch__.py", "class Net: pass"},
                                 {"data/0", six_floats()},
                                 {"constants.pkl", "\x80\x02)."}}));
  EXPECT_EQ(m->kind, FileKind::torchscript);
  ASSERT_EQ(m->tensors.size(), 1u);
  EXPECT_EQ(m->tensors[0].name, "fc.weight");
  expect_values(*m, "fc.weight", counted({2, 3}));
  EXPECT_TRUE(m->foreign.empty()) << m->foreign[0];
  EXPECT_THROW(TorchFile::parse(MappedFile::of(zip_of({{"data.pkl", program}, {"constants.pkl", "\x80\x02)."}}), "a")),
               Error)
      << "looked at, and never loaded";
}

TEST(ModelFiles, a_torchscript_program_brings_its_code_as_text) {
  const std::string program = "\x80\x02" + pglobal("__torch__", "Net") + ")\x81}(" + pstr("training") + "\x89ub.";
  const std::string net =
      "class Net(Module):\n  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n"
      "    return torch.relu(x)\n";
  const std::string bytes = zip_of({{"data.pkl", program},
                                    {"code/__torch__/torch/nn/modules/linear.py", "class Linear(Module): pass\n"},
                                    {"code/__torch__.py", net},
                                    {"code/__torch__.py.debug_pkl", "places"},
                                    {"extra/code/more.py", "import os"},
                                    {"constants.pkl", "\x80\x02)."}});
  const auto m = file_of(bytes);
  ASSERT_EQ(m->sources.size(), 2u);
  EXPECT_EQ(m->sources[0].name, "__torch__.py");
  EXPECT_EQ(m->sources[0].bytes, net.size());
  EXPECT_EQ(m->sources[1].name, "__torch__/torch/nn/modules/linear.py");
  EXPECT_EQ(m->source_text(0), net);
  EXPECT_EQ(m->source_text(1), "class Linear(Module): pass\n");
  EXPECT_THROW(m->source_text(2), std::exception);
  // Damaged text is told, and the rest of the file is there.
  std::string broken = bytes;
  broken[broken.find("torch.relu")] = 'T';
  const auto half = file_of(broken);
  EXPECT_NE(testing_words::message_of([&] { half->source_text(0); }).find("code/__torch__.py does not match"),
            std::string::npos);
  EXPECT_EQ(half->source_text(1), "class Linear(Module): pass\n");
}

TEST(ModelFiles, an_exported_program_has_weights_and_a_graph) {
  const std::string meta =
      R"("dtype":7,"sizes":[{"as_int":2},{"as_int":3}],"requires_grad":true,"device":{"type":"cpu"},)"
      R"("strides":[{"as_int":3},{"as_int":1}],"storage_offset":{"as_int":0},"layout":7)";
  const std::string weights =
      R"({"config":{"fc.weight":{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":{)" + meta +
      R"(}},"lost":{"path_name":"weight_9","is_param":false,"use_pickle":false,"tensor_meta":{)" + meta + "}}}}";
  const std::string graph =
      R"({"torch_version":"2.9.0","graph_module":{"graph":{"nodes":[{"target":"torch.ops.aten.linear.default",)"
      R"("inputs":[)"
      R"({"name":"input","arg":{"as_tensor":{"name":"x"}}},{"name":"weight",)"
      R"("arg":{"as_tensor":{"name":"p_fc_weight"}}},)"
      R"({"name":"bias","arg":{"as_none":true}}],"outputs":[{"as_tensor":{"name":"linear"}}],)"
      R"("metadata":{"nn_module_stack":"L__self__,,Net;L__self___fc,fc,torch.nn.Linear"}}],)"
      R"("tensor_values":{"x":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"s0"}},{"as_int":3}]}}},)"
      R"("signature":{"input_specs":[{"parameter":{"arg":{"name":"p_fc_weight"},"parameter_name":"fc.weight"}},)"
      R"({"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],)"
      R"("output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"linear"}}}}]}}})";
  const auto m = file_of(zip_of({{"archive_format", "pt2"},
                                 {"models/model.json", graph},
                                 {"data/weights/model_weights_config.json", weights},
                                 {"data/weights/weight_0", six_floats()}}));
  EXPECT_EQ(m->kind, FileKind::torch_export);
  expect_values(*m, "fc.weight", counted({2, 3}));
  EXPECT_EQ(m->tensors[m->at("fc.weight")].category, "parameter");
  EXPECT_NE(m->tensors[m->at("lost")].problem.find("no data"), std::string::npos);
  EXPECT_THROW(m->tensor(m->at("lost")), Error);
  ASSERT_EQ(m->nodes.size(), 1u);
  EXPECT_EQ(m->nodes[0].op, "aten.linear.default");
  EXPECT_EQ(m->nodes[0].scope, "fc");
  EXPECT_EQ(m->nodes[0].inputs, (std::vector<std::string>{"x", "fc.weight"}));
  ASSERT_EQ(m->inputs.size(), 1u);
  EXPECT_EQ(m->inputs[0].type, "float32 [s0, 3]");
  // As PyTorch before 2.9 writes it: one file of torch.save within.
  Place_ at;
  save_torch(at.path, {{"fc.weight", counted({2, 3})}});
  const auto older = file_of(zip_of({{"archive_format", "pt2"}, {"data/weights/model.pt", read_file(at.path)}}));
  expect_values(*older, "fc.weight", counted({2, 3}));
  EXPECT_THROW(file_of(zip_of({{"archive_format", "pt2"}, {"models/model.json", "{\"a\":"}})), Error);
}

TEST(ModelFiles, what_is_no_model_file_is_said_to_be_what_it_is) {
  EXPECT_NE(testing_words::message_of([] { file_of("\x89HDF and more of it"); }).find("HDF5"), std::string::npos);
  EXPECT_NE(testing_words::message_of([] { file_of("a text"); }).find("no kind that is known"), std::string::npos);
}

}  // namespace
}  // namespace tenon::formats
