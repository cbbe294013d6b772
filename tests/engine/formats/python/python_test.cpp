#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/error.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/templates/templates.h"
#include "tests/engine/formats/python/random_model.h"
#include "tests/messages.h"

namespace tenon::python {
namespace {

/// A source whose forward has these lines; `init` makes its modules.
std::string source(const std::string& init, const std::string& forward, const std::string& input = "f32 [4, 8, 8]") {
  auto indent = [](const std::string& lines) {
    std::string out = "        ";
    for (char c : lines) out += c == '\n' ? std::string("\n        ") : std::string(1, c);
    return out + "\n";
  };
  return "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n" + indent(init) +
         "\n    def forward(self, x):  # input: " + input + "\n" + indent(forward);
}
ModelSpec model_of(const std::string& init, const std::string& forward, const std::string& input = "f32 [4, 8, 8]") {
  return read_model(source(init, forward, input)).model;
}
std::string fault(const std::string& init, const std::string& forward) {
  return testing_words::message_of([&] { model_of(init, forward); });
}
const LayerSpec& layer(const ModelSpec& m, const std::string& name) {
  const LayerSpec* l = m.find(name);
  if (!l) {
    std::string names;
    for (const LayerSpec& o : m.layers) names += " " + o.name;
    ADD_FAILURE() << "no layer " << name << " among" << names;
    static const LayerSpec none;
    return none;
  }
  return *l;
}
int64_t integer(const LayerSpec& l, const std::string& attr) {
  const AttrValue* v = l.find(attr);
  return v && std::holds_alternative<int64_t>(*v) ? std::get<int64_t>(*v) : -999;
}
std::string text(const LayerSpec& l, const std::string& attr) {
  const AttrValue* v = l.find(attr);
  return v ? attr_text(*v) : "(none)";
}
/// What feeds a layer, by port.
std::string inputs(const ModelSpec& m, const std::string& name) {
  std::string out;
  for (int port = 0; port < 4; ++port)
    for (const WireSpec& w : m.wires)
      if (w.to == name && w.to_port == port) out += (out.empty() ? "" : ", ") + w.from;
  return out;
}
std::string all_faults(const ModelSpec& m) {
  std::string out;
  for (const LayerReport& r : examine(m, 2))
    if (!r.error.empty()) out += r.layer + ": " + r.error + "\n";
  return out;
}

TEST(Python, every_template_comes_back_as_it_was) {
  int count = 0;
  for (const Template& t : templates()) {
    if (t.model.layers.empty()) continue;
    ++count;
    const std::string written = write_model(t.model);
    const ModelSpec read = read_model(written).model;
    EXPECT_EQ(difference(t.model, read), "") << t.name << "\n" << written;
    EXPECT_EQ(write_model(read), written) << t.name;
    EXPECT_EQ(read_model(written, &t.model).model, t.model) << t.name << ": an edit that changes nothing";
  }
  EXPECT_GE(count, 10);
}

TEST(Python, five_hundred_random_models_come_back_as_they_were) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    const ModelSpec m = random_model(seed, 3 + static_cast<int>(seed % 40));
    ASSERT_EQ(all_faults(m), "") << seed;
    std::string written;
    try {
      written = write_model(m);
      const ModelSpec read = read_model(written).model;
      ASSERT_EQ(difference(m, read), "") << "seed " << seed << "\n" << written;
      ASSERT_EQ(read_model(written, &m).model, m) << "seed " << seed << ": an edit that changes nothing";
    } catch (const Error& e) {
      FAIL() << "seed " << seed << ": " << e.message() << "\n" << written;
    }
  }
}

TEST(Python, blocks_that_are_alike_share_a_class_and_repeats_a_loop) {
  const std::string resnet = write_model(find_template("resnet18").model);
  EXPECT_EQ(std::count(resnet.begin(), resnet.end(), '\n') < 110, true) << resnet;
  EXPECT_NE(resnet.find("LayerBlock(64)"), std::string::npos) << resnet;
  const std::string gpt = write_model(find_template("byte-gpt").model);
  EXPECT_NE(gpt.find("nn.Sequential(*[Block() for _ in range(4)])"), std::string::npos) << gpt;
}

TEST(Python, a_residual_network_as_people_write_it_is_read) {
  const ModelSpec m = read_model(R"(
import torch
import torch.nn as nn
import torch.nn.functional as F

def conv3x3(a, b):
    return nn.Conv2d(a, b, 3, padding=1)

class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out, inplace=True)


class ResNet(nn.Module):
    """resnet-10"""

    def __init__(self, num_blocks=(1, 2), num_classes=10):
        super().__init__()
        planes = 16
        self.conv1 = nn.Conv2d(3, planes, kernel_size=3, padding=1, bias=False)
        self.stages = nn.ModuleList()
        for i, count in enumerate(num_blocks):
            strides = [1 if i == 0 else 2] + [1] * (count - 1)
            blocks = []
            for s in strides:
                blocks.append(BasicBlock(planes, 16 * 2 ** i, stride=s))
                planes = 16 * 2 ** i
            self.stages.append(nn.Sequential(*blocks))
        self.fc = nn.Linear(planes, num_classes)
        for_later = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # input: f32 [3, 32, 32]
        out = F.relu(self.conv1(x))
        for stage in self.stages:
            out = stage(out)
        out = F.adaptive_avg_pool2d(out, 1)
        out = out.view(out.size(0), -1)
        return self.fc(out)
)")
                          .model;
  EXPECT_EQ(all_faults(m), "");
  EXPECT_EQ(m.name, "resnet-10");
  EXPECT_EQ(integer(layer(m, "stages.1.0.conv1"), "out_channels"), 32);
  EXPECT_EQ(text(layer(m, "stages.1.0.conv1"), "stride"), "2");
  EXPECT_EQ(text(layer(m, "stages.1.0.conv1"), "in_channels"), "(none)") << "it is left to what arrives";
  EXPECT_EQ(inputs(m, "stages.1.0.shortcut.0"), inputs(m, "stages.1.0.conv1"));
  EXPECT_EQ(m.find("stages.0.0.shortcut.0"), nullptr) << "the first block needs no shortcut";
  EXPECT_EQ(inputs(m, "stages.0.0.add"), "stages.0.0.bn2, " + inputs(m, "stages.0.0.conv1"));
  EXPECT_EQ(layer(m, "reshape").type, "Reshape");
  GraphModule built(m);
  EXPECT_EQ(built.output().shape, (Dims{10}));
}

TEST(Python, attention_and_recurrent_layers_as_people_write_them_are_read) {
  const ModelSpec m = model_of(
      "self.embed = nn.Embedding(100, 32)\nself.attn = nn.MultiheadAttention(32, 4, batch_first=True)\n"
      "self.norm = nn.LayerNorm(32)\nself.lstm = nn.LSTM(32, 24, num_layers=2, batch_first=True)\nself.head = "
      "nn.Linear(24, 5)",
      "x = self.embed(x)\na, _ = self.attn(x, x, x)\nx = self.norm(x + a)\nout, (h, c) = self.lstm(x)\n"
      "return self.head(out.select(1, -1))",
      "i64 [7]");
  EXPECT_EQ(all_faults(m), "");
  EXPECT_EQ(inputs(m, "attn"), "embed");
  EXPECT_EQ(inputs(m, "norm"), "add");
  EXPECT_EQ(inputs(m, "add"), "embed, attn");
  EXPECT_EQ(text(layer(m, "input"), "dtype"), "i64");
  EXPECT_EQ(inputs(m, "head"), "select");
  const ModelSpec last =
      model_of("self.gru = nn.GRU(8, 6, batch_first=True)", "return self.gru(x)[1][-1]", "f32 [4, 8]");
  EXPECT_EQ(text(layer(last, "gru"), "output"), "last");
  // PyTorch's own default is [steps, batch, features].
  const ModelSpec steps = model_of("self.gru = nn.GRU(8, 6)", "return self.gru(x)[0]", "f32 [4, 8]");
  EXPECT_EQ(text(layer(steps, "gru"), "batch_first"), "false");
}

TEST(Python, functions_and_operators_become_layers_named_by_their_variable) {
  const ModelSpec m = model_of("self.a = nn.Conv2d(4, 4, 3, padding=1)\nself.b = nn.Conv2d(4, 4, 1)",
                               "left = self.a(x)\njoined = torch.cat((left, self.b(x)), 1)\n"
                               "pooled = F.max_pool2d(joined, 2)\nreturn torch.flatten(F.gelu(pooled), 1)");
  EXPECT_EQ(all_faults(m), "");
  EXPECT_EQ(inputs(m, "joined"), "a, b");
  EXPECT_EQ(layer(m, "pooled").type, "MaxPool2d");
  EXPECT_EQ(inputs(m, "gelu"), "pooled");
  EXPECT_EQ(layer(m, "flatten").type, "Flatten");
}

TEST(Python, a_layer_that_is_off_and_comments_stay) {
  ModelSpec m = find_template("fashion-cnn").model;
  m.find("features.4")->off = true;
  m.find("features.0")->comment = "sees edges";
  m.find("flatten")->comment = "one row";
  const std::string written = write_model(m);
  EXPECT_NE(written.find("# off: self.features["), std::string::npos) << written;
  EXPECT_NE(written.find("# sees edges"), std::string::npos) << written;
  EXPECT_EQ(difference(m, read_model(written).model), "");
}

TEST(Python, an_edit_keeps_what_it_does_not_touch) {
  ModelSpec m = find_template("fashion-cnn").model;
  for (size_t i = 0; i < m.layers.size(); ++i) m.layers[i].x = 100.0 * static_cast<double>(i);
  std::string written = write_model(m);
  const std::string was = "nn.Conv2d(1, 32, kernel_size=3, padding=1)", next = "nn.Conv2d(32, 64";
  written.replace(written.find(was), was.size(), "nn.Conv2d(1, 48, kernel_size=5, padding=2)");
  ModelSpec edited = read_model(written, &m).model;
  EXPECT_EQ(integer(*edited.find("features.0"), "out_channels"), 48);
  // The number that does not fit any more stays, so that the layer says so.
  EXPECT_NE(all_faults(edited).find("features.3: in_channels is 32"), std::string::npos) << all_faults(edited);
  written.replace(written.find(next), next.size(), "nn.Conv2d(48, 64");
  edited = read_model(written, &m).model;
  EXPECT_EQ(all_faults(edited), "");
  ModelSpec expected = m;
  expected.find("features.0")->attrs = edited.find("features.0")->attrs;
  EXPECT_EQ(edited, expected);
}

TEST(Python, what_is_not_read_is_said_with_its_line) {
  EXPECT_EQ(fault("self.a = nn.Conv2d(4, 4, 3)", "while True:\n    x = self.a(x)\nreturn x"),
            "line 7: 'while' is not in the part of Python that is read");
  EXPECT_EQ(fault("self.a = nn.Conv2D(4, 4, 3)", "return self.a(x)"),
            "line 4: there is no layer nn.Conv2D (did you mean Conv2d, Conv1d, Conv3d?)");
  EXPECT_EQ(fault("self.a = nn.Conv2d(4, 4, 3, strid=2)", "return self.a(x)"),
            "line 4: nn.Conv2d has no 'strid' that is read (did you mean stride?)");
  EXPECT_EQ(fault("self.a = nn.ReLU()", "x = self.a(x)\nreturn self.a(x)"), "line 8: a is called a second time");
  EXPECT_EQ(fault("self.a = nn.ReLU()", "return self.b(x)"), "line 7: a Net has no 'b' that is read");
  EXPECT_EQ(fault("self.a = nn.ReLU()", "return y"), "line 7: nothing is called 'y' here");
  EXPECT_EQ(fault("self.a = nn.ReLU()", "return x * 2"), "line 7: a tensor and 2: no layer does that");
  EXPECT_EQ(fault("self.a = nn.ReLU()", "if x:\n    x = self.a(x)\nreturn x"),
            "line 7: what is done depends on values: a model does the same with every sample");
  for (const char* asked : {"if self.training:", "if not self.training:"})
    EXPECT_EQ(fault("self.a = nn.ReLU()", std::string(asked) + "\n    x = self.a(x)\nreturn x"),
              "line 7: what is done differs between training and evaluation");
  EXPECT_EQ(fault("self.a = nn.ReLU()", "return torch.fft.fft(x)"),
            "line 7: torch.fft.fft is not in the part of PyTorch that is read");
  EXPECT_EQ(fault("self.a = nn.ReLU(", "return x"), "line 4: a bracket is not closed");
  EXPECT_EQ(fault("self.w = nn.Parameter(torch.zeros(3))", "return x"),
            "line 4: torch.zeros is not in the part of PyTorch that is read");
  EXPECT_EQ(fault("self.s = nn.Softmax()", "return self.s(x)"), "line 4: nn.Softmax is not told its dim");
  EXPECT_EQ(testing_words::message_of([] { read_model("x = 1\n"); }), "line 1: no class here is a model");
  EXPECT_EQ(testing_words::message_of(
                [] { read_model("class A(nn.Module):\n    def forward(self, x):\n        return x\n"); }),
            "line 2: what it reads is not said");
}

TEST(Python, classes_within_classes_are_read_at_any_depth_that_people_write) {
  std::string text =
      "class B0(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
      "        self.a = nn.ReLU()\n    def forward(self, x):\n        return self.a(x)\n";
  for (int i = 1; i <= 25; ++i)
    text += "class B" + std::to_string(i) + "(nn.Module):\n    def __init__(self):\n        super().__init__()\n" +
            "        self.b = nn.Sequential(*[B" + std::to_string(i - 1) + "() for _ in range(1)])\n" +
            "    def forward(self, x):" + (i == 25 ? "  # input: f32 [4]" : "") + "\n        return self.b(x)\n";
  const ModelSpec m = read_model(text).model;
  EXPECT_EQ(m.layers.size(), 3u);
  EXPECT_EQ(all_faults(m), "");
}

TEST(Python, a_module_that_is_never_called_is_told) {
  const ReadModel read = read_model(source("self.a = nn.ReLU()\nself.b = nn.ReLU()", "return self.a(x)"));
  EXPECT_EQ(read.remarks, (std::vector<std::string>{"line 5: b is made and never called: it is left out"}));
}

/// Lines and words of sources are lost, doubled and exchanged: what is still read is written and read as the same
/// model.
TEST(Python, mutated_sources_are_refused_with_a_line_or_read_as_they_say) {
  std::vector<std::string> sources;
  for (const char* name : {"fashion-cnn", "resnet18", "u-net", "byte-gpt", "byte-lstm"})
    sources.push_back(write_model(find_template(name).model));
  for (uint32_t seed = 1; seed <= 5; ++seed) sources.push_back(write_model(random_model(seed, 12)));
  std::mt19937 random(17);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int read = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = sources[below(sources.size())];
    for (size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size()), end = std::min(text.find_first_of(" ,()\n", at), text.size() - 1) + 1;
      const std::string word = text.substr(at, end - at);
      switch (below(4)) {
        case 0:
          text.erase(at, end - at);
          break;
        case 1:
          text.insert(at, word);
          break;
        case 2:
          text[at] = "()[]:,.=+-*x0 \n#\"'"[below(18)];
          break;
        default:
          text.insert(below(text.size()), word);
      }
    }
    ModelSpec model;
    std::string written;
    try {
      model = read_model(text).model;
      written = write_model(model);
    } catch (const Error& e) {
      ++refused;
      continue;
    }
    ++read;
    ASSERT_EQ(difference(model, read_model(written).model), "") << text << "\nwas written as\n" << written;
  }
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 400);
}

TEST(Python, no_source_ends_the_program) {
  const std::string whole = write_model(find_template("u-net").model);
  for (size_t n = 0; n < whole.size(); n += 7) {
    try {
      read_model(whole.substr(0, n));
    } catch (const Error& e) {
      EXPECT_TRUE(e.message().starts_with("line ")) << e.message();
    }
  }
  for (const std::string& bad :
       {std::string(5000, '('), "x = " + std::string(5000, '-') + "1",
        std::string("class A(nn.Module):\n") +
            "    def __init__(self):\n        self.a = A()\n    def forward(self, x):\n        return x\n",
        std::string("class A(nn.Module):\n    def __init__(self):\n        for i in range(100000):\n"
                    "            for j in range(100000):\n                k = i * j\n"
                    "    def forward(self, x):\n        return x\n")})
    EXPECT_TRUE(testing_words::message_of([&] { read_model(bad); }).starts_with("line ")) << bad.substr(0, 60);
}

}  // namespace
}  // namespace tenon::python
