#include "engine/model/channel_origins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/model/channel_groups.h"
#include "engine/model/layer_sizes.h"
#include "engine/model/shrink.h"
#include "engine/spec/wiring.h"

namespace tenon {
namespace {

using Places = std::vector<int64_t>;
using Asks = ChannelSlot::Asks;

Places counted(int64_t n) {
  Places all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

/// Of `n` channels those of largest norm, in their order; of equal ones the earlier.
Places largest(const std::vector<double>& norms, int64_t n) {
  Places order = counted(static_cast<int64_t>(norms.size()));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return norms[static_cast<size_t>(a)] > norms[static_cast<size_t>(b)]; });
  order.resize(static_cast<size_t>(n));
  std::sort(order.begin(), order.end());
  return order;
}

/// A slot of a tensor's axis, with whose channels they are.
struct Owned {
  const ChannelSlot* slot;
  const ChannelGroup* group;
  bool read;
};
/// By tensor and axis, in the order of their places.
using SlotMap = std::map<std::pair<std::string, int>, std::vector<Owned>>;

SlotMap slots_of(const std::vector<ChannelGroup>& groups) {
  SlotMap all;
  for (const ChannelGroup& g : groups)
    for (const auto* list : {&g.made, &g.along, &g.read})
      for (const ChannelSlot& s : *list) all[{s.tensor, s.axis}].push_back({&s, &g, list == &g.read});
  for (auto& [at, slots] : all)
    std::sort(slots.begin(), slots.end(), [](const Owned& a, const Owned& b) { return a.slot->begin < b.slot->begin; });
  return all;
}

/// Which channels of before those of a group are.
struct GroupOrigin {
  const ChannelGroup* before = nullptr;  ///< null: they are none of before
  Places from;
  std::vector<double> times = {};  ///< what queries are multiplied by for their sums of products to stay; empty: by 1
  std::string otherwise = {};
};

class OriginFinder {
 public:
  OriginFinder(const ModelSpec& before, const ModelSpec& after, const std::vector<std::string>& passes,
               const std::function<Tensor(const std::string&)>& tensor, uint64_t seed)
      : before_(before),
        after_(after),
        passes_(passes),
        tensor_(tensor),
        seed_(seed),
        was_(tensor_sizes(before)),
        is_(tensor_sizes(after)),
        groups_before_(channel_groups(before)),
        groups_after_(channel_groups(after)),
        slots_before_(slots_of(groups_before_)),
        slots_after_(slots_of(groups_after_)) {}

  ChannelOrigins result() {
    // A layer that passes on what arrives comes behind who makes that.
    for (const ChannelGroup& g : groups_after_) origins_[&g] = origin_of(g);
    for (const auto& [name, size] : is_) {
      const auto at = was_.find(name);
      if (at == was_.end() || at->second.n != size.n) continue;
      std::vector<AxisOrigin> axes;
      for (int axis = 0; axis < size.n; ++axis) axes.push_back(axis_of(name, axis, at->second[axis], size[axis]));
      out_.tensors[name] = std::move(axes);
    }
    return std::move(out_);
  }

 private:
  /// Every tensor that a slot names is there: parametrised layers have others.
  bool is_whole(const ChannelGroup& g, const Sizes& sizes) const {
    for (const auto* list : {&g.made, &g.along, &g.read})
      for (const ChannelSlot& s : *list) {
        const auto at = sizes.find(s.tensor);
        if (at == sizes.end() || s.axis >= at->second.n || s.begin + g.channels * s.repeat > at->second[s.axis])
          return false;
      }
    return true;
  }

  const ChannelGroup* made_before_by(const std::string& maker) const {
    const LayerSpec *was = layer_of(before_, maker + "."), *is = layer_of(after_, maker + ".");
    if (!was || !is || was->name != is->name || was->type != is->type) return nullptr;
    for (const ChannelGroup& g : groups_before_)
      if (std::find(g.makers.begin(), g.makers.end(), maker) != g.makers.end()) return &g;
    return nullptr;
  }

  /// `count` numbers below `below`, by the seed and the layer.
  Places drawn(const std::string& layer, int64_t count, int64_t below) const {
    std::vector<uint32_t> words = {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)};
    for (const char c : layer) words.push_back(static_cast<unsigned char>(c));
    std::seed_seq from(words.begin(), words.end());
    std::mt19937_64 draw(from);
    Places all;
    for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<int64_t>(draw() % static_cast<uint64_t>(below)));
    return all;
  }

  GroupOrigin origin_of(const ChannelGroup& g) {
    if (!is_whole(g, is_)) return {};
    for (const std::string& maker : g.makers)
      if (const ChannelGroup* before = made_before_by(maker); before && is_whole(*before, was_)) {
        if (g.fixed.empty() && before->fixed.empty() && std::max(g.block, before->block) > 1)
          return blocks_of(g, *before);
        return {before, channels_of(g, *before)};
      }
    return g.makers.size() == 1 ? passed_on(g) : GroupOrigin{};
  }

  Places channels_of(const ChannelGroup& g, const ChannelGroup& before) const {
    const int64_t was = before.channels, is = g.channels;
    const bool fixed = !g.fixed.empty() || !before.fixed.empty();
    if (is < was && !fixed) return largest(channel_norms(before, tensor_), is);
    Places from = counted(std::min(was, is));
    if (is <= was) return from;
    Places more(static_cast<size_t>(is - was), int64_t{-1});
    if (!fixed && g.normed.empty()) more = drawn(g.makers[0], is - was, was);
    if (!fixed && !g.normed.empty())
      for (int64_t i = was; i < is; ++i) more[static_cast<size_t>(i - was)] = i % was;
    from.insert(from.end(), more.begin(), more.end());
    return from;
  }

  /// Of each channel one over how many of its block come from the same one.
  static std::vector<double> shares_of_copies(const Places& from, int64_t block) {
    std::vector<double> shares;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(i) / block * block;
      shares.push_back(1 / static_cast<double>(std::count(begin, begin + block, from[i])));
    }
    return shares;
  }

  /// Whole blocks come from whole ones, or each is the same one, but larger or smaller.
  GroupOrigin blocks_of(const ChannelGroup& g, const ChannelGroup& before) const {
    const int64_t was = before.channels, is = g.channels, size_was = before.block, size = g.block;
    GroupOrigin origin{&before, {}};
    const auto norms_of = [&](int64_t begin, int64_t count, int64_t each) {
      const std::vector<double> all = channel_norms(before, tensor_);
      std::vector<double> sums;
      for (int64_t i = 0; i < count; ++i) {
        const auto at = all.begin() + begin + i * each;
        sums.push_back(std::accumulate(at, at + each, 0.0));
      }
      return sums;
    };
    if (size == size_was) {
      const int64_t had = was / size, has = is / size;
      Places blocks = has < had ? largest(norms_of(0, had, size), has) : counted(has);
      for (const int64_t b : blocks)
        for (int64_t i = 0; i < size; ++i) origin.from.push_back(b % had * size + i);
    } else if (is / size == was / size_was) {
      for (int64_t b = 0; b < is / size; ++b) {
        const Places within = size < size_was ? largest(norms_of(b * size_was, size_was, 1), size) : counted(size);
        for (const int64_t i : within) origin.from.push_back(b * size_was + i % size_was);
      }
      if (g.dotted && size > size_was) origin.times = shares_of_copies(origin.from, size);
    } else {
      for (int64_t i = 0; i < is; ++i) origin.from.push_back(i % was);
    }
    const bool asked =
        std::any_of(g.made.begin(), g.made.end(), [](const ChannelSlot& s) { return s.asks != Asks::no; });
    const bool stays = is / size == was / size_was && (g.dotted ? asked : size % size_was == 0);
    if (is >= was && size != size_was && !stays)
      origin.otherwise = fmt::format("{} of {} channels each instead of {} of {}, which is another function", is / size,
                                     size, was / size_was, size_was);
    return origin;
  }

  /// Of a new layer that passes on what arrives.
  GroupOrigin passed_on(const ChannelGroup& g) {
    const std::string& layer = g.makers[0];
    if (std::find(passes_.begin(), passes_.end(), layer) == passes_.end()) return {};
    const auto reads = slots_after_.find({layer + ".weight", 1});
    if (reads == slots_after_.end() || reads->second.size() != 1) return {};
    const Owned& in = reads->second[0];
    const auto source = origins_.find(in.group);
    if (in.slot->repeat != 1 || source == origins_.end() || !source->second.before) return {};
    const int64_t arrive = in.group->channels;
    if (g.channels < arrive || (g.channels > arrive && !g.fixed.empty())) return {};
    Places inputs = counted(arrive);
    const Places more = drawn(layer, g.channels - arrive, arrive);
    inputs.insert(inputs.end(), more.begin(), more.end());
    GroupOrigin origin{source->second.before, {}};
    for (const int64_t i : inputs) origin.from.push_back(source->second.from[static_cast<size_t>(i)]);
    if (g.channels > arrive) out_.passed[layer] = std::move(inputs);
    return origin;
  }

  AxisOrigin axis_of(const std::string& tensor, int axis, int64_t was, int64_t is) const {
    AxisOrigin a;
    const auto now = slots_after_.find({tensor, axis});
    if (now == slots_after_.end() && was != is && slots_before_.contains({tensor, axis})) {
      a.from.assign(static_cast<size_t>(is), int64_t{-1});
      a.why = "other layers make what it reads";
      return a;
    }
    if (now == slots_after_.end()) {
      a.from = counted(std::min(was, is));
      a.from.resize(static_cast<size_t>(is), int64_t{-1});
      const LayerSpec* layer = layer_of(after_, tensor);
      const bool rows = layer && (layer->type.starts_with("Embedding") || layer->type.starts_with("Learned"));
      if (!rows || axis != 0) a.why = "its channels are not followed";
      return a;
    }
    a.from.assign(static_cast<size_t>(is), int64_t{-1});
    const auto then = slots_before_.find({tensor, axis});
    static const std::vector<Owned> none;
    const std::vector<Owned>& old = then == slots_before_.end() ? none : then->second;
    std::vector<bool> taken(old.size(), false);
    bool all = true;
    for (size_t k = 0; k < now->second.size(); ++k) {
      const Owned& slot = now->second[k];
      a.read = a.read || slot.read;
      all &= carry(slot, old, taken, k, a);
    }
    // Who makes what arrives is not followed on either side: places stand for themselves.
    if (!all && was == is && std::all_of(a.from.begin(), a.from.end(), [](int64_t f) { return f < 0; }))
      a.from = counted(is);
    if (is_norm_over(tensor, now->second)) note_uneven(a, was, is);
    return a;
  }

  static bool is_norm_over(const std::string& tensor, const std::vector<Owned>& slots) {
    const std::string module = tensor.substr(0, tensor.rfind('.'));
    return tensor.ends_with(".weight") && std::any_of(slots.begin(), slots.end(), [&](const Owned& o) {
             return std::find(o.group->normed.begin(), o.group->normed.end(), module) != o.group->normed.end();
           });
  }
  /// Mean and variance over channels stay where each is there equally often.
  static void note_uneven(AxisOrigin& a, int64_t was, int64_t is) {
    std::vector<int64_t> times(static_cast<size_t>(was), 0);
    for (const int64_t f : a.from)
      if (f >= 0) ++times[static_cast<size_t>(f)];
    if (std::all_of(times.begin(), times.end(), [&](int64_t t) { return t > 0 && t * was == is; })) return;
    a.otherwise = is < was ? fmt::format("it takes the mean and variance of {} channels instead of {}", is, was)
                           : fmt::format(
                                 "it takes the mean and variance of {} channels, of which some count more often "
                                 "than others: those of {} stay at a multiple of it",
                                 is, was);
  }

  /// One slot; false where nothing is known of where it comes from.
  bool carry(const Owned& slot, const std::vector<Owned>& old, std::vector<bool>& taken, size_t ordinal,
             AxisOrigin& a) const {
    const GroupOrigin& origin = origins_.at(slot.group);
    const int64_t repeat = slot.slot->repeat;
    const Owned* source = nullptr;
    for (size_t i = 0; i < old.size() && !source; ++i)
      if (!taken[i] && old[i].group == origin.before && old[i].slot->repeat == repeat) {
        source = &old[i];
        taken[i] = true;
      }
    Places from = origin.from;
    if (!source) {
      // Others made it, or what arrives, before: it goes with the group it has come into, or stays where there is as
      // much of it.
      const bool there = ordinal < old.size() && !taken[ordinal] && old[ordinal].slot->repeat == repeat;
      const int64_t had = there ? old[ordinal].group->channels : -1;
      if (had == slot.group->channels)
        from = counted(had);
      else if (!origin.before || had != origin.before->channels)
        return note(a, "other layers make what it reads"), false;
      source = &old[ordinal];
      taken[ordinal] = true;
    }
    for (size_t c = 0; c < from.size(); ++c)
      for (int64_t r = 0; r < repeat; ++r)
        if (from[c] >= 0)
          a.from[static_cast<size_t>(slot.slot->begin + static_cast<int64_t>(c) * repeat + r)] =
              source->slot->begin + from[c] * repeat + r;
    if (!slot.read && a.otherwise.empty()) a.otherwise = origin.otherwise;
    if (slot.slot->asks != Asks::no && !origin.times.empty()) {
      const double root =
          slot.slot->asks == Asks::root
              ? std::sqrt(static_cast<double>(slot.group->block) / static_cast<double>(origin.before->block))
              : 1;
      a.times.resize(a.from.size(), 1);
      for (int64_t i = 0; i < slot.group->channels; ++i)
        a.times[static_cast<size_t>(slot.slot->begin + i)] = root * origin.times[static_cast<size_t>(i)];
    }
    if (std::any_of(from.begin(), from.end(), [](int64_t f) { return f < 0; })) note(a, slot.group->fixed);
    return true;
  }
  static void note(AxisOrigin& a, const std::string& why) {
    if (a.why.empty()) a.why = why;
  }

  const ModelSpec &before_, &after_;
  const std::vector<std::string>& passes_;
  const std::function<Tensor(const std::string&)>& tensor_;
  const uint64_t seed_;
  const Sizes was_, is_;
  const std::vector<ChannelGroup> groups_before_, groups_after_;
  const SlotMap slots_before_, slots_after_;
  std::map<const ChannelGroup*, GroupOrigin> origins_;
  ChannelOrigins out_;
};

}  // namespace

bool AxisOrigin::same(int64_t size) const { return from == counted(size); }

ChannelOrigins channel_origins(const ModelSpec& before, const ModelSpec& after, const std::vector<std::string>& passes,
                               const std::function<Tensor(const std::string&)>& tensor, uint64_t seed) {
  return OriginFinder(before, after, passes, tensor, seed).result();
}

}  // namespace tenon
