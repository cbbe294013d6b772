#include "engine/nn/rnn.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/init.h"
#include "engine/nn/random_state.h"
#include "engine/ops/create.h"
#include "engine/ops/dropout.h"
#include "engine/ops/gather.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

using kernels::Cell;

const char* name_of(Cell c) { return c == Cell::lstm ? "LSTM" : c == Cell::gru ? "GRU" : "RNN"; }

/// What the inputs give to the gates; a bias that is added to it anyway goes with it.
Tensor gates(Cell cell, const Tensor& x, const Tensor& w, const Tensor& bias_ih, const Tensor& bias_hh) {
  return linear(x, w, bias_ih && cell != Cell::gru ? add(bias_ih, bias_hh) : bias_ih);
}
void reset_all(uint64_t seed, int64_t hidden, const std::string& path,
               std::initializer_list<std::pair<const char*, Tensor>> all, const std::string& suffix) {
  for (const auto& [name, t] : all)
    if (t) init_uniform(t, 1 / std::sqrt(static_cast<double>(hidden)), seed, path + "." + name + suffix);
}

}  // namespace

Rnn::Rnn(Cell cell, int64_t input_size, int64_t hidden_size, const RnnOptions& o, Device device, DType dtype)
    : cell_(cell), input_(input_size), hidden_(hidden_size), options_(o) {
  if (hidden_size < 1 || o.num_layers < 1)
    throw Error(fmt::format("{} layers of {} units are none", o.num_layers, hidden_size));
  CategoryScope parameters(Category::parameter);
  int64_t rows = kernels::gates_of(cell) * hidden_size;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int direction = 0; direction < (o.bidirectional ? 2 : 1); ++direction) {
      int64_t in = layer == 0 ? input_size : hidden_size * (o.bidirectional ? 2 : 1);
      Weights& w = *weights_.emplace_back(std::make_unique<Weights>());
      std::string suffix = fmt::format("_l{}{}", layer, direction ? "_reverse" : "");
      w.ih = empty({rows, in}, dtype, device);
      w.hh = empty({rows, hidden_size}, dtype, device);
      add_parameter("weight_ih" + suffix, w.ih);
      add_parameter("weight_hh" + suffix, w.hh);
      if (!o.bias) continue;
      w.bias_ih = empty({rows}, dtype, device);
      w.bias_hh = empty({rows}, dtype, device);
      add_parameter("bias_ih" + suffix, w.bias_ih);
      add_parameter("bias_hh" + suffix, w.bias_hh);
    }
}

Tensor Rnn::initial(const Tensor& given, int64_t index, int64_t batch) const {
  if (!given) return {};
  Shape wanted{static_cast<int64_t>(weights_.size()), batch, hidden_};
  if (!(given.size() == wanted))
    throw Error(
        fmt::format("a state of size {} does not fit; it must be {}", to_string(given.size()), to_string(wanted)));
  return select(given, 0, index);
}

Rnn::Result Rnn::run(const Tensor& given, const State& state, const Tensor& lengths) {
  Entered entered(*this);
  if (given.ndim() != 3 || given.size(2) != input_)
    throw Error(fmt::format("its input has size {}; it must be [{}, {}]", to_string(given.size()),
                            options_.batch_first ? "batch, steps" : "steps, batch", input_));
  Tensor x = options_.batch_first ? transpose(given, 0, 1) : given;
  int64_t steps = x.size(0), batch = x.size(1), directions = options_.bidirectional ? 2 : 1;
  if (steps < 1) throw Error("a sequence without steps has no last state");
  // Where each sequence ends, [1, batch, hidden], and whether it has a step at all, [batch, 1]: made by ops alone, so
  // that a graph of them serves any lengths.
  Tensor ends, has_steps;
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0 && training() && options_.dropout > 0) {
      x = dropout(x, options_.dropout,
                  draws(static_cast<uint64_t>(x.numel()), path() + fmt::format(".dropout{}", layer), x));
    }
    std::vector<Tensor> out;
    for (int64_t direction = 0; direction < directions; ++direction) {
      int64_t index = layer * directions + direction;
      const Weights& w = *weights_[static_cast<size_t>(index)];
      bool reverse = direction == 1;
      const Tensor h0 = initial(state.h, index, batch),
                   c0 = cell_ == Cell::lstm ? initial(state.c, index, batch) : Tensor();
      RnnSequence r = rnn_sequence(cell_, reverse, gates(cell_, x, w.ih, w.bias_ih, w.bias_hh), h0, c0, w.hh,
                                   cell_ == Cell::gru ? w.bias_hh : Tensor(), lengths);
      if (lengths && !ends) {
        const Tensor last_step = reshape(maximum(sub(lengths, 1), 0), {1, batch, 1});
        ends = add(last_step, zeros({1, 1, hidden_}, DType::i64, x.device()));
        has_steps = reshape(gt(lengths, 0), {batch, 1});
      }
      auto last = [&](const Tensor& all, const Tensor& begun) {
        if (!lengths) return select(all, 0, reverse ? 0 : steps - 1);
        const Tensor end = select(reverse ? all : gather(all, 0, ends), 0, 0);
        return begun ? where(has_steps, end, begun) : end;
      };
      last_h.push_back(last(r.y, h0));
      if (r.c) last_c.push_back(last(r.c, c0));
      out.push_back(r.y);
    }
    x = out.size() == 1 ? out[0] : cat(out, 2);
  }
  return {options_.batch_first ? transpose(x, 0, 1) : x,
          {stack(last_h, 0), last_c.empty() ? Tensor() : stack(last_c, 0)}};
}

Tensor Rnn::forward(std::span<const Tensor> in) {
  auto given = [&](size_t i) { return i < in.size() ? in[i] : Tensor(); };
  bool lstm = cell_ == Cell::lstm;
  Result r = run(in[0], {given(1), lstm ? given(2) : Tensor()}, given(lstm ? 3 : 2));
  if (!last_only_) return r.output;
  int64_t layers = options_.num_layers;
  if (!options_.bidirectional) return select(r.last.h, 0, layers - 1);
  return cat({select(r.last.h, 0, 2 * layers - 2), select(r.last.h, 0, 2 * layers - 1)}, 1);
}

void Rnn::reset(uint64_t seed) {
  for (size_t i = 0; i < weights_.size(); ++i) {
    size_t directions = options_.bidirectional ? 2 : 1;
    const Weights& w = *weights_[i];
    reset_all(seed, hidden_, path(),
              {{"weight_ih", w.ih}, {"weight_hh", w.hh}, {"bias_ih", w.bias_ih}, {"bias_hh", w.bias_hh}},
              fmt::format("_l{}{}", i / directions, i % directions ? "_reverse" : ""));
  }
}

std::string Rnn::describe() const {
  return fmt::format("{}({} -> {}{}{})", name_of(cell_), input_, hidden_,
                     options_.num_layers > 1 ? fmt::format(", {} layers", options_.num_layers) : "",
                     options_.bidirectional ? ", both directions" : "");
}

RnnCell::RnnCell(Cell cell, int64_t input_size, int64_t hidden_size, bool bias, Device device, DType dtype)
    : cell_(cell) {
  CategoryScope parameters(Category::parameter);
  int64_t rows = kernels::gates_of(cell) * hidden_size;
  weight_ih_ = empty({rows, input_size}, dtype, device);
  weight_hh_ = empty({rows, hidden_size}, dtype, device);
  add_parameter("weight_ih", weight_ih_);
  add_parameter("weight_hh", weight_hh_);
  if (!bias) return;
  bias_ih_ = empty({rows}, dtype, device);
  bias_hh_ = empty({rows}, dtype, device);
  add_parameter("bias_ih", bias_ih_);
  add_parameter("bias_hh", bias_hh_);
}

Rnn::State RnnCell::step(const Tensor& x, const Rnn::State& state) {
  Entered entered(*this);
  if (x.ndim() != 2 || x.size(1) != weight_ih_.size(1))
    throw Error(fmt::format("its input has size {}; it must be [batch, {}]", to_string(x.size()), weight_ih_.size(1)));
  RnnSequence r =
      rnn_sequence(cell_, false, unsqueeze(gates(cell_, x, weight_ih_, bias_ih_, bias_hh_), 0), state.h,
                   cell_ == Cell::lstm ? state.c : Tensor(), weight_hh_, cell_ == Cell::gru ? bias_hh_ : Tensor());
  return {squeeze(r.y, 0), r.c ? squeeze(r.c, 0) : Tensor()};
}
Tensor RnnCell::forward(std::span<const Tensor> in) {
  auto given = [&](size_t i) { return i < in.size() ? in[i] : Tensor(); };
  return step(in[0], {given(1), given(2)}).h;
}
void RnnCell::reset(uint64_t seed) {
  reset_all(seed, weight_hh_.size(1), path(),
            {{"weight_ih", weight_ih_}, {"weight_hh", weight_hh_}, {"bias_ih", bias_ih_}, {"bias_hh", bias_hh_}}, "");
}
std::string RnnCell::describe() const {
  return fmt::format("{}Cell({} -> {})", name_of(cell_), weight_ih_.size(1), weight_hh_.size(1));
}

namespace {

using Made = std::shared_ptr<Module>;

Cell cell_of(const LayerArgs& a, Cell cell) {
  if (cell != Cell::tanh) return cell;
  return a.text("nonlinearity") == "relu" ? Cell::relu : Cell::tanh;
}

template <Cell C>
bool rnn_layer(const char* type, const char* help) {
  std::vector<AttrDef> attrs{{"input_size", int64_t{0}, 0, 1e6, "features of the input; 0: whatever arrives"},
                             {"hidden_size", int64_t{128}, 1, 1e6, "size of the state"},
                             {"num_layers", int64_t{1}, 1, 1000, "layers, each fed by the one before"},
                             {"bias", true, 0, 0, "add trained constants to the gates"},
                             {"batch_first", true, 0, 0, "[batch, steps, features]; false: [steps, batch, features]"},
                             {"dropout", 0.0, 0, 1, "share of values set to 0 between layers in training"},
                             {"bidirectional", false, 0, 0, "run from both ends"},
                             {"output",
                              std::string("sequence"),
                              0,
                              0,
                              "sequence: the outputs of every step; last: the state after the last one",
                              {"sequence", "last"}}};
  if (C == Cell::tanh) attrs.push_back({"nonlinearity", std::string("tanh"), 0, 0, "tanh or relu", {"tanh", "relu"}});
  constexpr int inputs = C == Cell::lstm ? 4 : 3;
  return register_layer({{.type = type,
                          .group = "Sequence",
                          .help = help,
                          .inputs = inputs,
                          .attrs = std::move(attrs),
                          .optional = inputs - 1,
                          .examples = {{{2, 5, 8}}}},
                         [](const LayerArgs& a) -> Made {
                           std::string output = a.text("output");
                           auto m = std::make_shared<Rnn>(
                               cell_of(a, C), a.features("input_size", -1), a.integer("hidden_size"),
                               RnnOptions{a.integer("num_layers"), a.flag("bias"), a.flag("batch_first"),
                                          a.number("dropout"), a.flag("bidirectional")},
                               a.device);
                           m->set_last_only(output == "last");
                           return m;
                         }});
}
template <Cell C>
bool cell_layer(const char* type, const char* help) {
  std::vector<AttrDef> attrs{{"input_size", int64_t{0}, 0, 1e6, "features of the input; 0: whatever arrives"},
                             {"hidden_size", int64_t{128}, 1, 1e6, "size of the state"},
                             {"bias", true, 0, 0, "add trained constants to the gates"}};
  if (C == Cell::tanh) attrs.push_back({"nonlinearity", std::string("tanh"), 0, 0, "tanh or relu", {"tanh", "relu"}});
  constexpr int inputs = C == Cell::lstm ? 3 : 2;
  return register_layer({{.type = type,
                          .group = "Sequence",
                          .help = help,
                          .inputs = inputs,
                          .attrs = std::move(attrs),
                          .optional = inputs - 1,
                          .examples = {{{2, 8}}}},
                         [](const LayerArgs& a) -> Made {
                           return std::make_shared<RnnCell>(cell_of(a, C), a.features("input_size", -1),
                                                            a.integer("hidden_size"), a.flag("bias"), a.device);
                         }});
}
const bool registered_rnn[] = {
    rnn_layer<Cell::lstm>(
        "LSTM",
        "Reads a sequence step by step with a state and a gated memory. Inputs: x, h, c, lengths of the sequences."),
    rnn_layer<Cell::gru>("GRU",
                         "Reads a sequence step by step with a gated state. Inputs: x, h, lengths of the sequences."),
    rnn_layer<Cell::tanh>("RNN", "Reads a sequence step by step with a state. Inputs: x, h, lengths of the sequences."),
    cell_layer<Cell::lstm>("LSTMCell", "One step of an LSTM. Inputs: x, h, c."),
    cell_layer<Cell::gru>("GRUCell", "One step of a GRU. Inputs: x, h."),
    cell_layer<Cell::tanh>("RNNCell", "One step of an RNN. Inputs: x, h."),
};

}  // namespace
}  // namespace tenon::nn
