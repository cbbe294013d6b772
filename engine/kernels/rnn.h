#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

enum class Cell : uint8_t { lstm, gru, tanh, relu };
constexpr int64_t gates_of(Cell c) { return c == Cell::lstm ? 4 : c == Cell::gru ? 3 : 1; }
/// What the backward pass needs of every step beside the outputs, in units of the hidden size.
constexpr int64_t kept_of(Cell c) { return c == Cell::lstm || c == Cell::gru ? 4 : 0; }

/// One layer in one direction over a batch of sequences. Rows of the batch are independent of each other, so they are
/// cut into pieces by a rule of their number; gates lie in PyTorch's order (i f g o; r z n).
struct RnnShape {
  Cell cell;
  bool reverse;  ///< from the last step to the first
  int64_t steps, n, h;
  const int64_t* lengths;  ///< [n] or null: steps beyond a row's length give 0 and leave its state as it is
};

/// Bytes that rnn_forward() and rnn_backward() work in: their `room`.
template <class T>
size_t rnn_forward_workspace(const RnnShape& s);
template <class T>
size_t rnn_backward_workspace(const RnnShape& s);
/// gx [steps, n, gates * h]: what the inputs give to the gates. wh [gates * h, h]; bh [gates * h] or null. y [steps, n,
/// h]; c [steps, n, h] and c0 for lstm alone; kept [steps, n, kept_of * h], or null where no gradient will be asked
/// for.
template <class T>
void rnn_forward(const RnnShape& s, const T* gx, const T* h0, const T* c0, const T* wh, const T* bh, T* y, T* c,
                 T* kept, void* room);
/// gy or gc may be null. ggx as gx; gh0, gc0 [n, h]; gwh as wh; gbh [gates * h] or null.
template <class T>
void rnn_backward(const RnnShape& s, const T* h0, const T* c0, const T* wh, const T* y, const T* c, const T* kept,
                  const T* gy, const T* gc, T* ggx, T* gh0, T* gc0, T* gwh, T* gbh, void* room);

}  // namespace tenon::kernels
