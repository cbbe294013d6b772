// Causes that lie in the samples and in their order.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "engine/data/dataset.h"
#include "projects/samples.h"
#include "projects/spikes/cause.h"

namespace tenon::projects {
namespace {

// Steps before the spike from which another order is tried: enough of them to learn from it, and not too many.
constexpr int64_t kLeastOrder = 24, kFarthestOrder = 400;

/// The steps that may have made the spike, each with what it costs to do without its batch.
ReplayCost most_batches(Inquiry& q) {
  ReplayCost c;
  for (int64_t step = q.spike().step; step >= q.first(); --step) c.replays += 1, c.steps += q.last() - step + 1;
  return c;
}

Counterfactual without(Inquiry& q, int64_t step, const std::vector<int64_t>& rows, std::string said) {
  return {step - 1, {{"data.without", also_without(q.recipe_after(step - 1), rows)}}, std::move(said)};
}

/// The replay without a whole batch in which the spike is gone, from its own step back; null: there is none.
const Tried* without_batch(Inquiry& q, int64_t& step) {
  for (step = q.spike().step; step >= q.first(); --step)
    if (!q.rows_of(step).empty()) {
      const Tried& t = q.replay(without(q, step, q.rows_of(step), fmt::format("without the batch of step {}", step)));
      if (t.gone) return &t;
    }
  return nullptr;
}

/// Some of the rows without which the spike is gone as it is without all of them, and would not be without fewer: the
/// halves of what is left are tried in turn. Zeller: Yesterday, my program worked. Today, it does not. Why? (1999).
/// Many of them are no cause of their own: `replays` says how many replays are made at most, and where they do not do,
/// all rows are given.
class Smallest {
 public:
  Smallest(Inquiry& q, int64_t step, int64_t replays) : q_(q), step_(step), left_(replays) {}
  std::vector<int64_t> of(const std::vector<int64_t>& rows) {
    std::vector<int64_t> some = of(rows, {});
    std::sort(some.begin(), some.end());
    return left_ < 0 ? rows : some;
  }

 private:
  using Rows = std::vector<int64_t>;
  static Rows joined(Rows a, const Rows& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  bool gone(Rows rows) {
    if (--left_ < 0) return false;
    std::sort(rows.begin(), rows.end());
    return q_.replay(without(q_, step_, rows, "without " + samples_text(q_.train(), rows))).gone;
  }
  Rows of(const Rows& rows, const Rows& besides) {
    if (rows.size() <= 1 || left_ < 0) return rows;
    const auto half = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
    const Rows a(rows.begin(), half), b(half, rows.end());
    if (gone(joined(a, besides))) return of(a, besides);
    if (gone(joined(b, besides))) return of(b, besides);
    const Rows of_a = of(a, joined(b, besides));
    return joined(of_a, of(b, joined(of_a, besides)));
  }

  Inquiry& q_;
  int64_t step_, left_;
};

int64_t most_halvings(int64_t batch) { return 4 * std::bit_width(static_cast<uint64_t>(batch)) + 4; }

std::optional<Culprit> ask_samples(Inquiry& q) {
  int64_t step = 0;
  if (!without_batch(q, step)) return {};
  const std::vector<int64_t>& rows = q.rows_of(step);
  const auto n = static_cast<int64_t>(rows.size());
  const std::vector<int64_t> some = Smallest(q, step, most_halvings(n)).of(rows);
  if (static_cast<int64_t>(some.size()) > std::max<int64_t>(1, n / 4)) return {};
  const std::string what = samples_text(q.train(), some);
  const Tried& t = q.replay(without(q, step, some, "without " + what));
  if (!t.gone) return {};
  return Culprit{what, &t, some, {}};
}

std::optional<Culprit> ask_batch(Inquiry& q) {
  int64_t step = 0;
  const Tried* t = without_batch(q, step);
  if (!t) return {};
  return Culprit{fmt::format("the batch of step {}", step), t, q.rows_of(step), {}};
}

/// From the beginning of an epoch, where that is not too far.
int64_t order_from(Inquiry& q) {
  const EpochLength& e = q.run().epoch;
  const int64_t step = q.spike().step, before = std::max<int64_t>(0, step - kLeastOrder);
  const int64_t epoch = e.steps > 0 ? (before + e.shift) / e.steps * e.steps - e.shift : before;
  return q.kept_before(std::max({epoch, step - kFarthestOrder, int64_t{0}}));
}

std::optional<Culprit> ask_order(Inquiry& q) {
  const int64_t from = order_from(q);
  const Recipe recipe = q.recipe_after(from);
  const int64_t own = recipe.integer("data.order_seed");
  KeyValues set;
  if (!recipe.flag("data.shuffle")) set.emplace_back("data.shuffle", "true");
  set.emplace_back("data.order_seed", std::to_string((own < 0 ? recipe.integer("seed") : own) + 1));
  const Tried& t = q.replay({from, set, fmt::format("with another order of the samples after step {}", from), true});
  if (!t.gone) return {};
  return Culprit{
      recipe.flag("data.shuffle") ? "the order of the samples" : "the order of the samples, which is that of the files",
      &t,
      {},
      {}};
}

const bool registered_data_causes[] = {
    register_cause({.name = "sample",
                    .title = "A sample, or a few of them",
                    .order = 20,
                    .most =
                        [](Inquiry& q) {
                          ReplayCost c = most_batches(q);
                          const int64_t more =
                              most_halvings(q.recipe_after(q.first() - 1).integer("data.batch_size")) + 1;
                          c.replays += more;
                          c.steps += more * (q.last() - q.first() + 1);
                          return c;
                        },
                    .ask = ask_samples}),
    // Where samples were asked for, its replays are made.
    register_cause({.name = "batch", .title = "A whole batch", .order = 30, .most = most_batches, .ask = ask_batch}),
    register_cause({.name = "order",
                    .title = "The order of the samples",
                    .order = 40,
                    .most =
                        [](Inquiry& q) {
                          return ReplayCost{1, q.last() - order_from(q)};
                        },
                    .ask = ask_order}),
};

}  // namespace
}  // namespace tenon::projects
