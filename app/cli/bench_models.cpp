// tenon bench: training steps of models of some size, written as the PyTorch script that runs beside them has them.
#include "app/cli/bench.h"
#include "engine/formats/python/reader.h"
#include "engine/model/graph_module.h"
#include "engine/nn/module.h"
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

constexpr const char* kGpt = R"(
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
    def __init__(self, vocab=256, t=128, d=256, h=4, n=4):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), LearnedPositions(t, d)
        self.blocks = nn.Sequential(*[Block(d, h) for _ in range(n)])
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, x):  # input: i64 [128]
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

}  // namespace

/// ResNet-18 for 3x32x32, batch 32, SGD 0.1 with momentum 0.9 and weight decay 5e-4.
void bench_resnet18(const Bench& b) {
  GraphModule m(python::read_model(kResnet18).model);
  const auto sgd = optim::make_optimizer("sgd", m.parameters(), {{"momentum", 0.9}, {"weight_decay", 5e-4}});
  bench_training(b, "resnet18", m, bench_normal({32, 3, 32, 32}, 1), bench_classes({32}, 10), cross_entropy, *sgd, 0.1);
}

/// Byte GPT: 4 layers, 4 heads, width 256, context 128, batch 8, AdamW 3e-4 with weight decay 0.1.
void bench_gpt(const Bench& b) {
  GraphModule m(python::read_model(kGpt).model);
  const auto adamw = optim::make_optimizer("adamw", m.parameters(), {{"weight_decay", 0.1}});
  bench_training(b, "gpt", m, bench_classes({8, 128}, 256), bench_classes({8, 128}, 256), token_loss, *adamw, 3e-4);
}

/// Byte LSTM: embedding 128, 2 layers of 256, sequence 64, batch 32, Adam 1e-3.
void bench_lstm(const Bench& b) {
  GraphModule m(python::read_model(kLstm).model);
  const auto adam = optim::make_optimizer("adam", m.parameters());
  bench_training(b, "lstm", m, bench_classes({32, 64}, 256), bench_classes({32, 64}, 256), token_loss, *adam, 1e-3);
}

}  // namespace tenon::app
