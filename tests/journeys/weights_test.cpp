// Weights come from and go to PyTorch's files: judged by torch.load and torch.save, and for safetensors by reading the
// bytes in Python.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>

#include "core/file.h"
#include "core/tensor_bytes.h"
#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/zip.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

constexpr const char* kNoTorch = "no Python with PyTorch is there (Debian: python3-torch)";

/// A Python that has PyTorch; empty where there is none.
const std::string& torch_python() {
  static const std::string found = [] {
    for (const std::string& p : {python(), std::string("python3"), std::string("/usr/bin/python3")})
      if (!p.empty() && run({p, "-c", "import torch"}).status == 0) return p;
    return std::string();
  }();
  return found;
}

std::string tensor_bytes(const Tensor& t) {
  std::vector<char> copy;
  return std::string(logical_bytes(t, copy));
}

// Saves one file of each kind, and beside them every tensor's contiguous bytes as DTYPE SHAPE STRIDE OFFSET HEX lines.
constexpr const char* kSave = R"py(
import collections, sys, torch
folder = sys.argv[1]
torch.manual_seed(1)
a = torch.arange(12.).reshape(3, 4)
views = {"a": a, "at": a.t(), "v": a[1:, 2:], "wide": a[:1].expand(5, 4), "z": torch.zeros(()), "e": torch.zeros(0, 3)}
for d in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
    views[str(d)[6:]] = (torch.arange(7) - 2).to(d)
m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Sequential(torch.nn.Linear(4, 2, bias=False)))
o = torch.optim.Adam(m.parameters())
m(torch.randn(5, 3)).sum().backward()
o.step()
check = {"epoch": 3, "model": m.state_dict(), "opt": o.state_dict(), "rng": torch.get_rng_state(), "loss": [0.5, 0.25], "size": torch.Size([2, 3])}

def flat(v, name, out):
    if isinstance(v, torch.Tensor): out.append((name, v))
    elif isinstance(v, dict):
        for k, x in v.items(): flat(x, f"{name}/{k}" if name else str(k), out)
    elif isinstance(v, list):
        for k, x in enumerate(v): flat(x, f"{name}/{k}", out)
    return out

def save(name, value, tensors):
    for old in (False, True):
        file = f"{folder}/{name}{'-old' if old else ''}.pt"
        torch.save(value, file, _use_new_zipfile_serialization=not old)
        with open(file + ".txt", "w") as f:
            for n, t in tensors:
                raw = t.detach().contiguous().flatten()
                raw = raw.view(torch.int16) if raw.dtype == torch.bfloat16 else raw
                join = lambda x: ",".join(map(str, x)) or "-"
                print(n, str(t.dtype)[6:], join(t.shape), join(t.stride()), t.storage_offset(), raw.numpy().tobytes().hex() or "-", file=f)

save("views", views, flat(views, "", []))
save("check", check, flat(check, "", []))
save("module", m, list(m.state_dict().items()))
)py";

std::string joined(const std::vector<int64_t>& v) {
  std::string s;
  for (int64_t n : v) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s.empty() ? "-" : s;
}
std::string hex(const std::string& bytes) {
  std::string s;
  for (unsigned char c : bytes) s += {"0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
  return s.empty() ? "-" : s;
}

TEST(Weights, files_of_torch_save_are_read_to_the_last_bit) {
  if (torch_python().empty()) GTEST_SKIP() << kNoTorch;
  Folder folder;
  std::ofstream(folder / "save.py") << kSave;
  const Outcome saved = run({torch_python(), folder / "save.py", folder.path()});
  ASSERT_EQ(saved.status, 0) << saved.err;
  for (const char* name : {"views", "views-old", "check", "check-old", "module", "module-old"}) {
    const std::string path = folder / (std::string(name) + ".pt");
    const auto file = formats::TorchFile::open(path);
    std::map<std::string, const formats::TorchFile::Entry*> entries;
    for (const auto& e : file.entries()) entries[e.name] = &e;
    std::ifstream expected(path + ".txt");
    std::string tensor, dtype, shape, stride, data;
    int64_t offset;
    size_t count = 0;
    while (expected >> tensor >> dtype >> shape >> stride >> offset >> data) {
      ++count;
      ASSERT_TRUE(entries.contains(tensor)) << path << " " << tensor;
      const auto& e = *entries[tensor];
      EXPECT_EQ(e.dtype, dtype) << path << " " << tensor;
      EXPECT_EQ(joined(e.shape), shape) << path << " " << tensor;
      EXPECT_EQ(joined(e.stride), stride) << path << " " << tensor;
      EXPECT_EQ(e.offset, offset) << path << " " << tensor;
      EXPECT_EQ(hex(tensor_bytes(e.tensor)), data) << path << " " << tensor;
    }
    EXPECT_EQ(count, entries.size()) << path;
    EXPECT_GE(count, 7u) << path;
    EXPECT_TRUE(file.foreign().empty()) << path << ": " << file.foreign()[0];
    if (std::string(name).starts_with("views")) {
      EXPECT_EQ(entries["a"]->tensor.storage(), entries["v"]->tensor.storage());
    }
    const Outcome seen = tenon({"inspect", path, "--json"});
    ASSERT_EQ(seen.status, 0) << seen.err;
    EXPECT_EQ(seen.json().at(0).at("tensors").size(), count);
  }
}

TEST(Weights, archives_are_written_byte_for_byte_as_pytorch_writes_them) {
  if (torch_python().empty()) GTEST_SKIP() << kNoTorch;
  Folder folder;
  std::ofstream(folder / "save.py") << kSave;
  ASSERT_EQ(run({torch_python(), folder / "save.py", folder.path()}).status, 0);
  for (const char* name : {"views.pt", "check.pt", "module.pt"}) {
    const std::string theirs = read_file(folder / name);
    const formats::Zip members(theirs, name);
    FileWriter file(folder / "ours.pt");
    formats::ZipWriter zip(file);
    for (const auto& m : members.members()) {
      std::string unpacked;
      const std::string_view data = members.data(m, unpacked);
      EXPECT_TRUE(members.intact(m, data)) << m.name;
      zip.add(m.name, data);
    }
    zip.finish();
    file.commit();
    EXPECT_TRUE(read_file(folder / "ours.pt") == theirs) << name;
  }
}

struct TrainedWeights : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  std::map<std::string, std::string> expected;  ///< tensors of the run, each saved by another command
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "20"}).status, 0);
    const Outcome list = tenon({"goto", project, "r", "--step", "last", "--json"});
    ASSERT_EQ(list.status, 0) << list.err;
    for (const auto& line : list.json()) {
      const std::string name = line.value("name", "");
      if (!name.starts_with("model/")) continue;
      const std::string file = folder / "t.npy";
      ASSERT_EQ(tenon({"goto", project, "r", "--step", "last", "--tensor", name, "--out", file}).status, 0);
      expected[name.substr(6)] = tensor_bytes(formats::load_npy(file));
    }
    ASSERT_GE(expected.size(), 4u);
  }
};

TEST_F(TrainedWeights, exported_to_pytorch) {
  const std::string file = folder / "m.pt";
  const Outcome exported = tenon({"export", project, "r", "--format", "torch", "-o", file, "--verify", "--json"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(exported.json().at(0).at("verified"), true);
  EXPECT_EQ(exported.json().at(0).at("tensors"), expected.size());
  if (torch_python().empty()) GTEST_SKIP() << kNoTorch;
  const Outcome loaded = run({torch_python(), "-c", R"py(
import sys, torch, zipfile
assert zipfile.ZipFile(sys.argv[1]).testzip() is None
d = torch.load(sys.argv[1], weights_only=True)
for k, v in d.items(): print(k, v.contiguous().flatten().numpy().tobytes().hex())
names = [k[:-7] for k in d if k.endswith(".weight")]
m = torch.nn.Module()
for n in names:
    at = m
    *path, last = n.split(".")
    for p in path:
        if not hasattr(at, p): at.add_module(p, torch.nn.Module())
        at = getattr(at, p)
    w = d[n + ".weight"]
    at.add_module(last, torch.nn.Linear(w.shape[1], w.shape[0]))
m.load_state_dict(d, strict=True)
)py",
                              file});
  ASSERT_EQ(loaded.status, 0) << loaded.err;
  std::istringstream lines(loaded.out);
  std::string name, data;
  size_t count = 0;
  for (; lines >> name >> data; ++count) EXPECT_EQ(data, hex(expected.at(name))) << name;
  EXPECT_EQ(count, expected.size());
}

TEST_F(TrainedWeights, exported_to_safetensors) {
  const std::string file = folder / "m.safetensors";
  const Outcome exported = tenon({"export", project, "r", "--format", "safetensors", "-o", file, "--verify", "--json"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(exported.json().at(0).at("verified"), true);
  // The format is read as its description says, with nothing but Python's own library.
  const Outcome read = run({"python3", "-c", R"py(
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n, = struct.unpack("<Q", b[:8])
h = json.loads(b[8:8 + n])
data = b[8 + n:]
assert n % 8 == 0 and h.pop("__metadata__")["format"] == "pt"
at = 0
for k, v in h.items():
    lo, hi = v["data_offsets"]
    size = {"F32": 4, "I64": 8}[v["dtype"]]
    for d in v["shape"]: size *= d
    assert lo == at and hi - lo == size, (k, v)
    at = hi
    print(k, data[lo:hi].hex())
assert at == len(data)
)py",
                            file});
  if (read.status == 127) GTEST_SKIP() << "python3 is not there";
  ASSERT_EQ(read.status, 0) << read.err;
  std::istringstream lines(read.out);
  std::string name, data;
  size_t count = 0;
  for (; lines >> name >> data; ++count) EXPECT_EQ(data, hex(expected.at(name))) << name;
  EXPECT_EQ(count, expected.size());
}

TEST_F(TrainedWeights, every_kind_of_file_is_told_by_its_content) {
  auto kind = [&](const std::string& path) {
    const Outcome o = tenon({"inspect", path, "--json"});
    EXPECT_EQ(o.status, 0) << path << ": " << o.err;
    EXPECT_EQ(tenon({"inspect", path}).status, 0) << path;
    return o.status == 0 ? o.json().at(0) : nlohmann::json();
  };
  // Names that say nothing, or lie.
  const std::string odd = folder / "file.txt";
  EXPECT_EQ(kind(project).at("runs").at(0).at("name"), "r");
  for (const auto& [format, tells] : {std::pair{"onnx", "onnx"}, {"torch", "torch"}, {"safetensors", "safetensors"}}) {
    ASSERT_EQ(tenon({"export", project, "r", "--format", format, "-o", odd}).status, 0);
    EXPECT_EQ(kind(odd).at("kind"), tells);
  }
  EXPECT_EQ(kind(folder / "t.npy").at("dtype"), "f32");
  for (const char* name : {"t.json", "t.json.gz"}) {
    ASSERT_EQ(tenon({"profile", project, "--run", "r", "--steps", "2", "-o", folder / name}).status, 0);
    EXPECT_EQ(kind(folder / name).at("kind"), "trace");
  }
  const nlohmann::json trace = kind(folder / "t.json");
  EXPECT_EQ(trace.at("categories").at(0).at("category"), "cpu_op");
  EXPECT_GT(trace.at("categories").at(0).at("events"), 10);
  // Another recording: how many batches the loader prepares meanwhile differs.
  EXPECT_GT(kind(folder / "t.json.gz").at("events").get<int64_t>(), 0);
  ASSERT_EQ(tenon({"memory", "record", project, "--run", "r", "--steps", "2", "-o", odd}).status, 0);
  EXPECT_EQ(kind(odd).at("kind"), "memory-snapshot");
  std::ofstream(odd, std::ios::binary) << std::string("\0\0\x08\2\0\0\0\2\0\0\0\3abcdef", 18);
  EXPECT_EQ(kind(odd).at("shape"), (nlohmann::json{2, 3}));
}

TEST_F(TrainedWeights, files_that_are_nothing_or_damaged_or_hostile) {
  const std::string odd = folder / "m.pt";
  auto says = [&](const std::string& bytes, const std::string& part) {
    std::ofstream(odd, std::ios::binary) << bytes;
    const Outcome o = tenon({"inspect", odd});
    EXPECT_EQ(o.status, 1) << o.out;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  says("", "an empty file");
  says("just a text", "no kind that is known");
  says("{\"a\": 1}", "no \"traceEvents\"");
  // A trace that a kill cut off holds what it holds: here nothing.
  std::ofstream(odd, std::ios::binary) << "{\"traceEvents\": [{\"ph\": \"X\"";
  const Outcome cut = tenon({"inspect", odd, "--json"});
  EXPECT_EQ(cut.status, 0) << cut.err;
  EXPECT_EQ(cut.json().at(0).at("truncated"), "yes");
  says("PK\x03\x04 and then nothing", "a zip archive");
  says(std::string("\0\0\0\0\x02\0\0\0{}", 10), "header would have");
  says(std::string("\xff\0\0\0\0\0\0\0{\"a\":", 13), "cut short");
  says(std::string("\0\0\x08\2\0\0\0\2\0\0\0\3abcde", 17), "5 bytes follow");
  EXPECT_EQ(tenon({"inspect", folder / "none"}).status, 1);
  EXPECT_EQ(tenon({"inspect", folder.path()}).status, 1);
  // A pickle that would run a command: shown, and not run.
  std::ofstream(odd, std::ios::binary) << "\x80\x02"
                                          "cos\nsystem\nX\x06"
                                       << std::string(3, '\0') << "exit 3\x85R.";
  const Outcome o = tenon({"inspect", odd});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("os.system"), std::string::npos) << o.out;
}

TEST_F(TrainedWeights, begins_a_run_with_a_file_freezes_and_needs_the_file_no_more) {
  const std::string file = folder / "w.safetensors";
  ASSERT_EQ(tenon({"export", project, "r", "--format", "safetensors", "-o", file}).status, 0);
  const Outcome table = tenon({"weights", project, file, "--json"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.json().back().at("taken"), expected.size());
  EXPECT_EQ(table.json().front().at("state"), "by name");
  const std::string from = "init.from=" + file, freeze = "init.freeze=layers.0.*";
  const Outcome trained =
      tenon({"train", project, "--run", "tuned", "--set", from, "--set", freeze, "--max-steps", "15"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  ASSERT_EQ(std::remove(file.c_str()), 0);
  for (const auto& [step, moved] : {std::pair{"0", false}, {"15", true}}) {
    for (const auto& [name, bytes] : expected) {
      const std::string out = folder / "t.npy";
      ASSERT_EQ(tenon({"goto", project, "tuned", "--step", step, "--tensor", "model/" + name, "--out", out}).status, 0);
      EXPECT_EQ(tensor_bytes(formats::load_npy(out)) == bytes, !moved || name.starts_with("layers.0.")) << name << step;
    }
  }
  EXPECT_EQ(tenon({"eval", project, "tuned"}).status, 0);
  const Outcome gone = tenon({"train", project, "--set", from});
  EXPECT_EQ(gone.status, 1);
  EXPECT_NE(gone.err.find("w.safetensors"), std::string::npos) << gone.err;
  const Outcome wrong = tenon({"train", project, "--set", "init.freeze=layer.0.*"});
  EXPECT_EQ(wrong.status, 2) << wrong.err;
  // A run of the project itself.
  ASSERT_EQ(tenon({"train", project, "--run", "own", "--set", "init.run=r@last", "--max-steps", "1"}).status, 0);
  ASSERT_EQ(tenon({"weights", project, "--set", "init.run=r@20"}).status, 0);
  EXPECT_EQ(tenon({"weights", project}).status, 2) << "its recipe names none";
}

TEST_F(TrainedWeights, begins_with_what_torch_save_wrote_and_runs_nothing_of_it) {
  if (torch_python().empty()) GTEST_SKIP() << kNoTorch;
  const std::string file = folder / "c.pt", trap = folder / "trap";
  const Outcome saved = run({torch_python(), "-c", R"py(
import os, sys, torch
class Trap:
    def __reduce__(self): return (os.system, ("touch " + sys.argv[2],))
torch.manual_seed(3)
n = torch.nn
m = n.Sequential(n.Linear(2, 64), n.ReLU(), n.Linear(64, 64), n.ReLU(), n.Linear(64, 10))
state = {"module." + k: v for k, v in m.state_dict().items()}
torch.save({"epoch": 3, "state_dict": state, "trap": Trap()}, sys.argv[1])
print(m[0].weight.detach().numpy().tobytes().hex())
)py",
                             file, trap});
  ASSERT_EQ(saved.status, 0) << saved.err;
  const Outcome table = tenon({"weights", project, file, "--json"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.json().back().at("taken"), 0);
  const std::string rule = table.json().back().at("rule").get<std::string>();
  const std::vector<std::string> words = {
      "train", project, "--run", "t", "--set", "init.from=" + file, "--set", "init.map=" + rule, "--max-steps", "1"};
  const Outcome refused = tenon(words);
  EXPECT_EQ(refused.status, 1) << "the head of ten classes is none of this model";
  EXPECT_NE(refused.err.find("layers.4.weight (wrong shape)"), std::string::npos) << refused.err;
  std::vector<std::string> keeping = words;
  keeping.insert(keeping.end(), {"--set", "init.missing=keep"});
  const Outcome trained = tenon(keeping);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string out = folder / "t.npy";
  ASSERT_EQ(tenon({"goto", project, "t", "--step", "0", "--tensor", "model/layers.0.weight", "--out", out}).status, 0);
  EXPECT_EQ(hex(tensor_bytes(formats::load_npy(out))) + "\n", saved.out);
  EXPECT_EQ(run({"test", "-e", trap}).status, 1) << "opening a file ran code from it";
}

}  // namespace
}  // namespace tenon::journeys
