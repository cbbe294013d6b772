#pragma once
#include <string>

#include "core/tensor.h"

// Losses beyond those of loss.h, with the names, arguments and defaults of torch.nn.functional. All are differentiable
// to any order.
namespace tenon {

/// none: a value an element or row; batchmean (of kl_div): the sum divided by the batch.
enum class Reduction : uint8_t { none, mean, sum, batchmean };
Reduction reduction_of(const std::string& name);

struct CrossEntropyOptions {
  Tensor weight;                ///< [classes], or undefined
  int64_t ignore_index = -100;  ///< targets of that number count for nothing
  double label_smoothing = 0;   ///< share of the target spread over all classes. Szegedy et al. (2016)
  Reduction reduction = Reduction::mean;
  int axis = 1;  ///< of the classes; PyTorch's is 1
};
/// -log softmax(logits)[target]: logits [n, classes, ...] and either numbers of classes (i64, without the class axis)
/// or shares of the classes (the logits' size). The mean is over the weights of the targets.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options);
/// -input[target] for log-probabilities.
Tensor nll_loss(const Tensor& log_p, const Tensor& target, const CrossEntropyOptions& options = {});

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction r);
Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction r = Reduction::mean);
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta = 1,
                      Reduction r = Reduction::mean);  ///< Girshick (2015)
Tensor huber_loss(const Tensor& x, const Tensor& y, double delta = 1, Reduction r = Reduction::mean);
/// p between 0 and 1; logarithms are at least -100.
Tensor binary_cross_entropy(const Tensor& p, const Tensor& y, const Tensor& weight = {}, Reduction r = Reduction::mean);
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& y, const Tensor& weight = {},
                                        const Tensor& pos_weight = {}, Reduction r = Reduction::mean);
/// y (log y - x) for log-probabilities x.
Tensor kl_div(const Tensor& x, const Tensor& y, bool log_target = false, Reduction r = Reduction::mean);
Tensor poisson_nll_loss(const Tensor& x, const Tensor& y, bool log_input = true, bool full = false, double eps = 1e-8,
                        Reduction r = Reduction::mean);
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& y, const Tensor& var, bool full = false, double eps = 1e-6,
                         Reduction r = Reduction::mean);
/// log(1 + exp(-y x)), y -1 or 1.
Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction r = Reduction::mean);
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin = 1, Reduction r = Reduction::mean);
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin = 0,
                           Reduction r = Reduction::mean);
/// Rows a, b [n, d]; y [n], -1 or 1.
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin = 0,
                             Reduction r = Reduction::mean);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           double p = 2, double eps = 1e-6, bool swap = false, Reduction r = Reduction::mean);
/// x [n, classes], y i64 [n].
Tensor multi_margin_loss(const Tensor& x, const Tensor& y, int p = 1, double margin = 1, const Tensor& weight = {},
                         Reduction r = Reduction::mean);
/// y i64 [n, classes]: in each row the numbers of the classes, then -1.
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& y, Reduction r = Reduction::mean);
Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& y, const Tensor& weight = {},
                                   Reduction r = Reduction::mean);
/// Binary cross entropy of logits, times alpha_t (1 - p_t)^gamma. Lin et al. (2017). alpha below 0: no weighting.
Tensor sigmoid_focal_loss(const Tensor& x, const Tensor& y, double alpha = 0.25, double gamma = 2,
                          Reduction r = Reduction::mean);
/// 1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth) for every sample, with p = sigmoid(x). Milletari et al.
/// (2016).
Tensor dice_loss(const Tensor& x, const Tensor& y, double smooth = 1, Reduction r = Reduction::mean);

/// -log of the share of all ways to read targets out of log_p [steps, n, classes], with blanks between. targets i64 [n,
/// most] (what lies behind a row's length is not read); lengths i64 [n]. The mean is over the losses divided by the
/// targets' lengths. Graves et al. (2006).
Tensor ctc_loss(const Tensor& log_p, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank = 0, Reduction r = Reduction::mean, bool zero_infinity = false);

}  // namespace tenon
