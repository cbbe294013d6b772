// tenon bench: training steps of models of some size, written as the PyTorch script that runs beside them has them.
#include <fmt/format.h>

#include "app/cli/bench.h"
#include "engine/formats/python/reader.h"
#include "engine/model/graph_module.h"
#include "engine/nn/layers.h"
#include "engine/ops/loss.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"

namespace tenon::app {
namespace {

constexpr const char* kResnet18 = R"(
class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.c2, self.b2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        y = self.b2(self.c2(y))
        return F.relu(y + (self.down(x) if self.down is not None else x))

class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        layers, cin = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
        for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Block(cin, cout, stride), Block(cout, cout, 1)]
            cin = cout
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

    def forward(self, x):  # input: f32 [3, 32, 32]
        return self.body(x)
)";

/// Of a length, a width and a depth.
constexpr const char* kGptSource = R"(
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = nn.MultiheadAttention(d, h, batch_first=True)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        y = self.ln1(x)
        x = x + self.attention(y, y, y, attn_mask=causal_mask(y), need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

class Gpt(nn.Module):
    def __init__(self, vocab=256, t={0}, d={1}, h=4, n={2}):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), LearnedPositions(t, d)
        self.blocks = nn.Sequential(*[Block(d, h) for _ in range(n)])
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, x):  # input: i64 [{0}]
        return self.head(self.ln(self.blocks(self.pos(self.tok(x)))))
)";

constexpr const char* kLstm = R"(
class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(256, 128), nn.LSTM(128, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 256)

    def forward(self, x):  # input: i64 [64]
        return self.head(self.rnn(self.emb(x))[0])
)";

Tensor token_loss(const Tensor& o, const Tensor& y) {
  return cross_entropy(reshape(o, {-1, o.size(-1)}), reshape(y, {-1}));
}

template <class M, class... A>
std::shared_ptr<nn::Module> layer(A&&... args) {
  return std::make_shared<M>(std::forward<A>(args)...);
}

std::shared_ptr<nn::Module> linear(int64_t in, int64_t out) { return layer<nn::Linear>(in, out, true, bench_device()); }

BenchNet net_of(std::shared_ptr<nn::Module> model, Tensor x, Tensor y, Tensor (*loss)(const Tensor&, const Tensor&),
                const char* optimizer, double lr, const std::vector<Attr>& attrs = {}) {
  auto made = optim::make_optimizer(optimizer, model->parameters(), attrs);
  return {std::move(model), std::move(x), std::move(y), loss, std::move(made), lr};
}

BenchNet read_net(const std::string& source, Tensor x, Tensor y, Tensor (*loss)(const Tensor&, const Tensor&),
                  const char* optimizer, double lr, const std::vector<Attr>& attrs = {}) {
  return net_of(layer<GraphModule>(python::read_model(source).model, bench_device()), std::move(x), std::move(y), loss,
                optimizer, lr, attrs);
}

/// 784, the hidden layers with ReLU, 10; cross entropy, Adam 1e-3.
BenchNet mlp_net(const NetSize& s) {
  std::vector<std::shared_ptr<nn::Module>> layers;
  for (int64_t i = 0; i < s.depth; ++i) {
    layers.push_back(linear(i == 0 ? 784 : s.width, s.width));
    layers.push_back(nn::relu());
  }
  layers.push_back(linear(s.width, 10));
  return net_of(layer<nn::Sequential>(layers), bench_normal({s.batch, 784}, 1), bench_classes({s.batch}, 10),
                cross_entropy, "adam", 1e-3);
}

/// One channel; 3x3 convolutions with ReLU and pooling at two resolutions, of `width` and twice as many channels; two
/// linear layers, the hidden one of four times as many numbers; Adam 1e-3.
BenchNet cnn_net(const NetSize& s) {
  Conv2dOptions same;
  same.padding = {1, 1};
  std::vector<std::shared_ptr<nn::Module>> layers;
  int64_t channels = 1;
  for (const int64_t wide : {s.width, 2 * s.width}) {
    for (int64_t i = 0; i < s.depth; ++i) {
      layers.push_back(layer<nn::Conv2d>(channels, wide, Dims{3, 3}, same, true, bench_device()));
      layers.push_back(nn::relu());
      channels = wide;
    }
    layers.push_back(layer<nn::MaxPool2d>(Pool2dOptions{}));
  }
  const int64_t side = s.length / 2 / 2;
  for (auto& l :
       {layer<nn::Flatten>(), linear(channels * side * side, 4 * s.width), nn::relu(), linear(4 * s.width, 10)})
    layers.push_back(l);
  return net_of(layer<nn::Sequential>(layers), bench_normal({s.batch, 1, s.length, s.length}, 1),
                bench_classes({s.batch}, 10), cross_entropy, "adam", 1e-3);
}

/// A GPT of bytes with 4 heads; AdamW 3e-4 with weight decay 0.1.
BenchNet gpt_net(const NetSize& s) {
  const Shape ids{s.batch, s.length};
  return read_net(fmt::format(kGptSource, s.length, s.width, s.depth), bench_classes(ids, 256), bench_classes(ids, 256),
                  token_loss, "adamw", 3e-4, {{"weight_decay", 0.1}});
}

void bench_fixed(const Bench& b, const SizedNet& net) { bench_training(b, net.name, net.make(net.fixed)); }

}  // namespace

const SizedNet kMlp{"mlp", {.batch = 64, .width = 512, .depth = 2, .length = 0}, mlp_net};
const SizedNet kCnn{"cnn", {.batch = 64, .width = 32, .depth = 1, .length = 28}, cnn_net};
const SizedNet kGpt{"gpt", {.batch = 8, .width = 256, .depth = 4, .length = 128}, gpt_net};

/// 2-16-16-1 tanh MLP, batch 16, MSE, SGD 0.1: nothing but per-operation cost.
void bench_tiny(const Bench& b) {
  const std::vector<std::shared_ptr<nn::Module>> layers = {linear(2, 16), nn::tanh(), linear(16, 16), nn::tanh(),
                                                           linear(16, 1)};
  bench_training(
      b, "tiny",
      net_of(layer<nn::Sequential>(layers), bench_normal({16, 2}, 1), bench_normal({16, 1}, 2), mse_loss, "sgd", 0.1));
}

/// 784-512-512-10 ReLU MLP, batch 64.
void bench_mlp(const Bench& b) { bench_fixed(b, kMlp); }

/// 1x28x28: two 3x3 convolutions of 32 and 64 channels with pooling, two linear layers; batch 64.
void bench_cnn(const Bench& b) { bench_fixed(b, kCnn); }

/// Byte GPT: 4 layers, width 256, context 128, batch 8.
void bench_gpt(const Bench& b) { bench_fixed(b, kGpt); }

/// ResNet-18 for 3x32x32, batch 32, SGD 0.1 with momentum 0.9 and weight decay 5e-4.
void bench_resnet18(const Bench& b) {
  bench_training(b, "resnet18",
                 read_net(kResnet18, bench_normal({32, 3, 32, 32}, 1), bench_classes({32}, 10), cross_entropy, "sgd",
                          0.1, {{"momentum", 0.9}, {"weight_decay", 5e-4}}));
}

/// Byte LSTM: embedding 128, 2 layers of 256, sequence 64, batch 32, Adam 1e-3.
void bench_lstm(const Bench& b) {
  bench_training(b, "lstm",
                 read_net(kLstm, bench_classes({32, 64}, 256), bench_classes({32, 64}, 256), token_loss, "adam", 1e-3));
}

}  // namespace tenon::app
