#pragma once
#include "core/tensor.h"
#include "engine/kernels/rnn.h"

namespace tenon {

struct RnnSequence {
  Tensor y;  ///< [steps, n, h], 0 beyond a row's length
  Tensor c;  ///< of lstm: the cells of every step
};
/// One layer of a recurrent network over a batch of sequences, in one direction, as one op. gx [steps, n, gates * h] is
/// what the inputs give to the gates (a linear() of them); h0 and (of lstm) c0 [n, h], 0 where undefined; wh [gates *
/// h, h]; bh [gates * h] or undefined (for gru it is needed apart, for others it may be part of gx). lengths: i64 [n]
/// or undefined. Hochreiter and Schmidhuber (1997); Cho et al. (2014).
RnnSequence rnn_sequence(kernels::Cell cell, bool reverse, const Tensor& gx, const Tensor& h0, const Tensor& c0,
                         const Tensor& wh, const Tensor& bh, const Tensor& lengths = {});

}  // namespace tenon
