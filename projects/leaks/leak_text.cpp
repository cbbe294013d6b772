#include <fmt/format.h>

#include <algorithm>

#include "projects/leaks/leak.h"

namespace tenon::projects {
namespace {

using tracing::bytes_text;
using tracing::count_text;
using tracing::OwnerKind;
using tracing::Unit;

std::string a_step(double bytes) { return bytes_text(bytes) + " a step"; }

std::string owners_text(const RunLeak& l) {
  std::string text = l.owner.name;
  for (const tracing::TensorOwner& o : l.also) text += " and " + o.name;
  return text;
}

std::string losses_text(const LeakProof& p) {
  return p.same_losses
             ? "every loss has the same bits"
             : fmt::format("the loss differs from step {} on: the run uses what is kept", count_text(p.other_loss));
}

std::string proof_text(const LeakProof& p) {
  if (!p.done) return "not proven: " + p.why_not;
  const std::string slopes = fmt::format("{} instead of {}", a_step(p.after), a_step(p.before));
  if (!p.why_not.empty()) return fmt::format("not proven: {} ({})", p.why_not, slopes);
  return fmt::format("the replay without it grows by {}; {}", slopes, losses_text(p));
}

const char* held_as(const RunLeak& l) { return l.by_graph ? "graph" : l.by_view ? "view" : "tensor"; }

tracing::Table places_table(const LeakReport& r) {
  tracing::Table t{"places",
                   {{"leak", "LEAK", Unit::count},
                    {"place", "TAKEN BY", Unit::text},
                    {"bytes_a_step", "PER STEP", Unit::bytes},
                    {"blocks_a_step", "BLOCKS PER STEP", Unit::number},
                    {"kept", "KEPT", Unit::bytes}},
                   {}};
  for (size_t i = 0; i < r.leaks.size(); ++i)
    for (const LeakPlace& p : r.leaks[i].places)
      t.rows.push_back({static_cast<int64_t>(i + 1), p.place.text(), p.bytes_a_step, p.blocks_a_step, p.kept});
  return t;
}

tracing::Table ended_table(const LeakReport& r) {
  tracing::Table t{"ended",
                   {{"place", "GREW AND STOPPED", Unit::text},
                    {"kept", "KEPT", Unit::bytes},
                    {"last_growth", "LAST GREW AT STEP", Unit::count}},
                   {}};
  for (const LeakPlace& p : r.ended) t.rows.push_back({p.place.text(), p.kept, p.last_growth});
  return t;
}

}  // namespace

std::string RunLeak::sentence() const {
  const LeakPlace& largest = places.front();
  const std::string what = fmt::format("{} taken by {}{}", a_step(bytes_a_step), largest.place.text(),
                                       places.size() > 1 ? fmt::format(" and {} more", places.size() - 1) : "");
  if (owner.kind == OwnerKind::unknown)
    return fmt::format("{} is never given back; it is held by {}", what, owner.name);
  const char* by = by_graph ? ", by the graph of what it keeps" : by_view ? ", by views that show a part of it" : "";
  return fmt::format("{} {} {}{}: {}", owners_text(*this), also.empty() ? "holds" : "hold", what, by,
                     proof_text(proof));
}

std::string RunLeak::edit() const {
  if (owner.kind == OwnerKind::unknown)
    return "look at who takes it: a copy of the tensor lies where no list of the session and no variable leads to";
  if (owner.kind == OwnerKind::gradient)
    return "a gradient that has a history keeps its graph: leave create_graph out, or zero_grad() after each step";
  if (by_graph) return "keep detach(t), or item(t) of a single number, instead of the tensor with its history";
  std::string text;
  switch (owner.kind) {
    case OwnerKind::hook:
      text = "let the hook keep nothing, or take it off with remove_hook() when it has seen enough";
      break;
    case OwnerKind::tensor_hook:
      text = "put the hook on once and not in every step, or take it off with remove_hook()";
      break;
    case OwnerKind::data_set:
      text = "bound what the data set caches: leave the oldest out once there are enough";
      break;
    default:
      text = "empty it when a step or an epoch ends, or keep the last few alone";
  }
  return by_view ? "keep clone(t) of the part that is wanted, not a view of the whole; and " + text : text;
}

std::string LeakReport::sentence() const {
  const std::string steps = fmt::format("Steps {} to {} of run {}", count_text(from), count_text(to), run);
  if (!leaks.empty()) {
    std::string first = leaks.front().sentence();
    if (leaks.size() > 1) first += fmt::format("; {} more", leaks.size() - 1);
    return steps + " leak: " + first + ".";
  }
  if (ended.empty()) return steps + " leak nothing: no memory grows.";
  return fmt::format("{} leak nothing: what grew stopped, last at step {}.", steps,
                     count_text(std::max_element(ended.begin(), ended.end(), [](const auto& a, const auto& b) {
                                  return a.last_growth < b.last_growth;
                                })->last_growth));
}

tracing::Finding leak_finding(const LeakReport& r) {
  tracing::Finding f;
  f.sentence = r.sentence();
  double all = 0;
  for (const RunLeak& l : r.leaks) all += l.bytes_a_step;
  f.facts = {{"leaks", "leaks", Unit::count, static_cast<int64_t>(r.leaks.size())},
             {"bytes_a_step", "leaked a step", Unit::bytes, all},
             {"from", "from step", Unit::count, r.from},
             {"to", "to step", Unit::count, r.to},
             {"followed_to", "followed to step", Unit::count, r.looked_to},
             {"replayed_steps", "steps replayed", Unit::count, r.replayed}};
  tracing::Table leaks{"leaks",
                       {{"leak", "LEAK", Unit::count},
                        {"owner", "HELD BY", Unit::text},
                        {"kind", "KIND", Unit::text, true},
                        {"as", "AS", Unit::text},
                        {"bytes_a_step", "PER STEP", Unit::bytes},
                        {"without_it", "WITHOUT IT", Unit::text},
                        {"losses", "LOSSES", Unit::text},
                        {"edit", "WHAT ENDS IT", Unit::text, true}},
                       {}};
  tracing::Table chains{"chains", {{"leak", "LEAK", Unit::count}, {"chain", "FROM ITS OWNER ON", Unit::text}}, {}};
  for (size_t i = 0; i < r.leaks.size(); ++i) {
    const RunLeak& l = r.leaks[i];
    const auto number = static_cast<int64_t>(i + 1);
    leaks.rows.push_back({number, owners_text(l), std::string(owner_kind_name(l.owner.kind)), std::string(held_as(l)),
                          l.bytes_a_step, l.proof.done ? bytes_text(l.proof.after) : "not proven",
                          l.proof.done ? (l.proof.same_losses ? "the same bits" : "others") : "", l.edit()});
    for (const std::string& step : l.chain) chains.rows.push_back({number, step});
  }
  if (!r.leaks.empty()) f.tables = {std::move(leaks), std::move(chains), places_table(r)};
  if (!r.ended.empty()) f.tables.push_back(ended_table(r));
  return f;
}

}  // namespace tenon::projects
