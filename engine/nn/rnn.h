#pragma once
#include "engine/nn/module.h"
#include "engine/ops/rnn.h"

namespace tenon::nn {

struct RnnOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  ///< of what goes from layer to layer
  bool bidirectional = false;
};

/// LSTM, GRU, or the plain recurrent network, with PyTorch's parameters (weight_ih_l0, weight_hh_l0_reverse, ...). A
/// batch of sequences of several lengths comes with the lengths: what PyTorch does by a PackedSequence.
class Rnn : public Module {
 public:
  Rnn(kernels::Cell cell, int64_t input_size, int64_t hidden_size, const RnnOptions& options = {}, Device device = {},
      DType dtype = DType::f32);
  std::string describe() const override;

  struct State {
    Tensor h, c;  ///< [layers * directions, batch, hidden]; c of lstm alone
  };
  struct Result {
    Tensor output;  ///< [steps, batch, directions * hidden] (batch first where asked for), 0 beyond a sequence's length
    State last;     ///< after each sequence's last step
  };
  /// An undefined state is 0. lengths: i64 [batch], or undefined; a sequence of length 0 ends as it began.
  Result run(const Tensor& x, const State& state = {}, const Tensor& lengths = {});
  /// What forward() gives: the last layer's last states, [batch, directions * hidden], instead of all outputs.
  void set_last_only(bool on) { last_only_ = on; }

 protected:
  using Module::forward;
  /// Inputs: x, h?, c? (of lstm), lengths?.
  Tensor forward(std::span<const Tensor> in) override;
  void reset(uint64_t seed) override;

 private:
  struct Weights {
    Tensor ih, hh, bias_ih, bias_hh;
  };
  Tensor initial(const Tensor& given, int64_t index, int64_t batch) const;
  kernels::Cell cell_;
  int64_t input_, hidden_;
  RnnOptions options_;
  bool last_only_ = false;
  std::vector<std::unique_ptr<Weights>> weights_;  ///< layer by layer, forward and reverse
};

/// One step: inputs x [batch, input], h?, c? (of lstm) -> the new h; step() gives the new c too.
class RnnCell : public Module {
 public:
  RnnCell(kernels::Cell cell, int64_t input_size, int64_t hidden_size, bool bias = true, Device device = {},
          DType dtype = DType::f32);
  std::string describe() const override;
  Rnn::State step(const Tensor& x, const Rnn::State& state);

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;
  void reset(uint64_t seed) override;

 private:
  kernels::Cell cell_;
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

}  // namespace tenon::nn
