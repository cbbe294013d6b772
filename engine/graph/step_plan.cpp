#include "engine/graph/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/backend.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/profile.h"
#include "engine/graph/recompute.h"
#include "engine/nn/random_state.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// Blocks of the arena begin at multiples of it: no two share a line of the CPU's cache, and kernels of a GPU find the
/// alignment that memory of its own would have.
constexpr int64_t kApart = 64, kApartElsewhere = 256;
constexpr int kNever = -1;

int64_t rounded_up(size_t bytes, Device device) {
  const int64_t apart = device == Device{} ? kApart : kApartElsewhere;
  return (static_cast<int64_t>(bytes) + apart - 1) / apart * apart;
}

/// The layout of memory of its own for what is looked at so.
Layout own_layout(const Layout& l) {
  Layout own = l;
  own.offset = 0;
  return own.is_dense() ? own : Layout::contiguous(l.size);
}

void delete_storage(Storage* s) { delete s; }

void write_constant(const StepTrace::Block& b, void* to, Device device) {
  if (!(device == Device{})) {
    std::string bytes(b.bytes, '\0');
    write_constant(b, bytes.data(), {});
    copy_bytes(to, device, bytes.data(), {}, b.bytes);
  } else if (!b.filled) {
    std::memcpy(to, b.values.data(), b.bytes);
  } else if (*b.filled == 0) {
    std::memset(to, 0, b.bytes);
  } else {
    std::fill_n(static_cast<uint32_t*>(to), b.bytes / sizeof(uint32_t), *b.filled);
  }
}

/// Whether dispatch would leave the op to its loop.
bool runs_quickly(const OpDef& op, const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
  if (!op.quick || static_cast<int>(in.size()) != op.arity || in.size() > 2 || out[0].numel() > kLoopGrain)
    return false;
  const auto alike = [&](const Tensor& t) {
    return t.dtype() == DType::f32 && t.is_contiguous() && t.size() == out[0].size();
  };
  return alike(out[0]) && std::all_of(in.begin(), in.end(), alike);
}

void run_quickly(const OpDef& op, const std::vector<Tensor>& in, const Tensor& out, int64_t n) {
  char* data[3] = {static_cast<char*>(out.raw()), static_cast<char*>(in[0].raw()),
                   in.size() == 2 ? static_cast<char*>(in[1].raw()) : nullptr};
  static constexpr int64_t kStrides[3] = {sizeof(float), sizeof(float), sizeof(float)};
  op.quick(data, kStrides, n);
}

}  // namespace

/// Where a block lies.
struct StepPlan::Place {
  enum class In : uint8_t { arena, outside, kept, tile };
  In in = In::arena;
  Tensor pristine = {};               ///< on a device: a constant that is made anew, as it is before
  Tensor whole;                       ///< the block, for the windows: its address is brought up to date before a run
  int first = kNever, last = kNever;  ///< kernels between which it is needed
  int64_t offset = 0;                 ///< in the arena
  bool written = false;               ///< after its first reading: a constant has to be made anew in every step
  int result = -1;                    ///< the one that is computed in this block
  int over = -1;                      ///< it takes the memory of this block, which ends where it begins
  int tile = -1;                      ///< of a chain's, where it lies in no other memory
};

struct StepPlan::Planned {
  std::vector<Tensor> in, out;
  bool quick = false;  ///< the op's loop does it, over this many elements
  int64_t elements = 0;
  std::vector<int> fresh;       ///< constants that have to be made anew before it
  std::vector<int> counts;      ///< blocks with a name that it writes
  std::vector<TileStep> chain;  ///< of the first of a chain: all of it
};

StepPlan::StepPlan(StepTrace trace, std::vector<Tensor> named, Keep keep, Device device)
    : trace_(std::move(trace)), named_(std::move(named)), device_(device) {
  if (!trace_.why_not.empty()) throw Error("the step cannot be planned: " + trace_.why_not);
  if (keep == Keep::costly) figures_.again = compute_again(trace_);
  places_.resize(trace_.blocks.size());
  planned_.resize(trace_.steps.size());
  chains_ = find_chains(trace_);
  find_lives();
  widen_lives();
  lay_out();
  make_windows();
  figures_.kernels = static_cast<int64_t>(trace_.steps.size());
  figures_.views = static_cast<int64_t>(trace_.last_seq) - (figures_.kernels - figures_.again);
  figures_.chains = static_cast<int64_t>(chains_.chains.size());
  for (const KernelChain& c : chains_.chains) figures_.chained += static_cast<int64_t>(c.count);
}
StepPlan::~StepPlan() = default;

void StepPlan::find_lives() {
  const auto touch = [&](const StepTrace::Window& w, int at, bool writes) {
    if (w.block < 0) return;
    Place& p = places_[static_cast<size_t>(w.block)];
    if (p.first == kNever) p.first = at;
    p.last = at;
    p.written |= writes;
  };
  for (size_t i = 0; i < trace_.steps.size(); ++i) {
    const StepTrace::Step& s = trace_.steps[i];
    for (size_t k = 0; k < s.in.size(); ++k) touch(s.in[k], static_cast<int>(i), s.op->writes >> k & 1u);
    for (const auto& w : s.out) touch(w, static_cast<int>(i), true);
  }
  const int end = static_cast<int>(trace_.steps.size());
  std::map<int, int> asked;  // how many results look at a block
  for (const auto& w : trace_.results)
    if (w.block >= 0) ++asked[w.block];
  for (size_t r = 0; r < trace_.results.size(); ++r) {
    const StepTrace::Window& w = trace_.results[r];
    if (w.block < 0) continue;
    Place& p = places_[static_cast<size_t>(w.block)];
    p.last = end;
    // A result that is all of a block is computed where it stays; anything else is copied at the end.
    const StepTrace::Block& b = trace_.blocks[static_cast<size_t>(w.block)];
    const auto bytes = static_cast<size_t>(w.layout.size.product()) * itemsize(w.dtype);
    if (b.origin == StepTrace::Origin::made && asked[w.block] == 1 && w.layout.offset == 0 && w.layout.is_dense() &&
        bytes == b.bytes)
      p.result = static_cast<int>(r);
  }
  keep_in_tiles();
  for (size_t i = 0; i < trace_.steps.size(); ++i) share(i);
}

/// What only a chain's own kernels look at lies in a tile of the chain's, as far as it has tiles.
void StepPlan::keep_in_tiles() {
  std::vector<int> used(chains_.chains.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& p = places_[i];
    if (trace_.blocks[i].origin != StepTrace::Origin::made || p.result >= 0 || p.first == kNever) continue;
    if (p.last >= static_cast<int>(trace_.steps.size())) continue;
    const int chain = chains_.of_step[static_cast<size_t>(p.first)];
    if (chain < 0 || chains_.of_step[static_cast<size_t>(p.last)] != chain) continue;
    const KernelChain& c = chains_.chains[static_cast<size_t>(chain)];
    const bool whole = trace_.blocks[i].bytes == static_cast<size_t>(c.elements) * sizeof(float);
    if (!whole || used[static_cast<size_t>(chain)] == kMostTiles) continue;
    p.in = Place::In::tile;
    p.tile = used[static_cast<size_t>(chain)]++;
  }
}

/// The kernels of a chain run at the same time: what one of them needs, all do.
void StepPlan::widen_lives() {
  for (const KernelChain& c : chains_.chains)
    for (size_t i = c.first; i < c.first + c.count; ++i) {
      const auto widen = [&](const StepTrace::Window& w) {
        if (w.block < 0) return;
        Place& p = places_[static_cast<size_t>(root(w.block))];
        if (p.first > static_cast<int>(c.first)) p.first = static_cast<int>(c.first);
        p.last = std::max(p.last, static_cast<int>(c.first + c.count - 1));
      };
      for (const auto& w : trace_.steps[i].in) widen(w);
      for (const auto& w : trace_.steps[i].out) widen(w);
    }
}

/// The block whose memory this one has.
int StepPlan::root(int block) const {
  while (places_[static_cast<size_t>(block)].over >= 0) block = places_[static_cast<size_t>(block)].over;
  return block;
}

/// Element by element, a result takes the memory of the first input where nobody reads that again; in a chain, that of
/// any operand which no later kernel of it reads.
void StepPlan::share(size_t at) {
  const StepTrace::Step& s = trace_.steps[at];
  if (s.op->info.kind != OpKind::pointwise || s.out.size() != 1 || s.in.empty()) return;
  if (take_over(at, s.in[0]) || chains_.of_step[at] < 0) return;
  for (size_t i = chains_.chains[static_cast<size_t>(chains_.of_step[at])].first; i <= at; ++i)
    for (const auto& w : trace_.steps[i].in)
      if (take_over(at, w)) return;
}

bool StepPlan::take_over(size_t at, const StepTrace::Window& from) {
  const StepTrace::Step& s = trace_.steps[at];
  const StepTrace::Window& to = s.out[0];
  if (from.block < 0 || to.block < 0 || from.block == to.block) return false;
  const auto block = [&](int b) -> const StepTrace::Block& { return trace_.blocks[static_cast<size_t>(b)]; };
  if (block(from.block).origin != StepTrace::Origin::made || block(to.block).origin != StepTrace::Origin::made ||
      block(from.block).bytes != block(to.block).bytes || !(from.layout.size == to.layout.size) ||
      !(from.layout.stride == to.layout.stride) || from.layout.offset != to.layout.offset ||
      itemsize(from.dtype) != itemsize(to.dtype))
    return false;
  const int memory = root(from.block), chain = chains_.of_step[at];
  Place &r = places_[static_cast<size_t>(memory)], &p = places_[static_cast<size_t>(to.block)];
  if (r.in == Place::In::tile || p.in == Place::In::tile || p.result >= 0 || r.result >= 0) return false;
  const size_t first = chain < 0 ? at : chains_.chains[static_cast<size_t>(chain)].first;
  if (p.first != static_cast<int>(at) || r.last < static_cast<int>(first) || r.last > static_cast<int>(at))
    return false;
  for (const auto& w : s.in) {
    if (w.block < 0 || root(w.block) != memory) continue;
    if (w.block != from.block || !(w == from)) return false;  // what another input took over is the same memory
  }
  for (size_t i = first; i < at; ++i)  // one number for all tiles must outlive the first
    for (const auto& w : trace_.steps[i].in)
      if (w.block >= 0 && root(w.block) == memory &&
          (w.layout.offset != from.layout.offset || w.layout.size.product() != from.layout.size.product() ||
           !w.layout.is_dense()))
        return false;
  p.over = memory;
  r.last = p.last;
  return true;
}

/// Largest first, each at the lowest address where no block lies that is needed at the same time.
void StepPlan::lay_out() {
  std::vector<int> order;
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& p = places_[i];
    const StepTrace::Block& b = trace_.blocks[i];
    const bool constant = b.origin == StepTrace::Origin::constant;
    if (b.origin == StepTrace::Origin::given || b.origin == StepTrace::Origin::named || p.result >= 0)
      p.in = Place::In::outside;
    else if (constant && !p.written)
      p.in = Place::In::kept;
    if (p.in == Place::In::arena && p.first != kNever && p.over < 0) order.push_back(static_cast<int>(i));
    if (p.in == Place::In::arena || p.in == Place::In::tile || p.result >= 0)
      figures_.value_bytes += rounded_up(b.bytes, device_);
    if (constant && p.written && p.first != kNever)
      planned_[static_cast<size_t>(p.first)].fresh.push_back(static_cast<int>(i));
  }
  const auto bytes_of = [&](int i) { return rounded_up(trace_.blocks[static_cast<size_t>(i)].bytes, device_); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bytes_of(a) > bytes_of(b); });
  std::vector<int> laid;  // by address
  for (const int i : order) {
    Place& p = places_[static_cast<size_t>(i)];
    int64_t at = 0;
    for (const int other : laid) {
      const Place& o = places_[static_cast<size_t>(other)];
      if (o.last < p.first || p.last < o.first) continue;
      if (o.offset >= at + bytes_of(i)) break;
      at = std::max(at, o.offset + bytes_of(other));
    }
    p.offset = at;
    figures_.arena_bytes = std::max(figures_.arena_bytes, at + bytes_of(i));
    laid.insert(std::upper_bound(laid.begin(), laid.end(), i,
                                 [&](int a, int b) {
                                   return places_[static_cast<size_t>(a)].offset <
                                          places_[static_cast<size_t>(b)].offset;
                                 }),
                i);
  }
  for (Place& p : places_)
    if (p.over >= 0) p.offset = places_[static_cast<size_t>(p.over)].offset;
}

Tensor StepPlan::look(const StepTrace::Window& w) {
  if (w.block < 0) return {};
  Tensor t = view_of(places_[static_cast<size_t>(w.block)].whole, w.layout);
  t.impl()->meta.dtype = w.dtype;
  // Kernels ask whether a tensor is trained: what they keep of weights that are not.
  if (w.requires_grad) t.impl()->flags |= TensorImpl::requires_grad;
  return t;
}

void StepPlan::make_windows() {
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& p = places_[i];
    const StepTrace::Block& b = trace_.blocks[i];
    if (b.origin == StepTrace::Origin::named) {
      p.whole = named_[static_cast<size_t>(b.number)];
      continue;
    }
    // Of bytes, whatever the windows take them for.
    const Layout all = Layout::contiguous({static_cast<int64_t>(b.bytes)});
    if (p.in == Place::In::kept) {
      p.whole = empty(all.size, DType::u8, device_);
      write_constant(b, p.whole.raw(), device_);
      trace_.blocks[i].values = {};
    } else {
      p.whole = from_blob(nullptr, b.bytes, all, DType::u8, delete_storage, device_);
    }
    if (b.origin == StepTrace::Origin::constant && p.written && p.first != kNever && !(device_ == Device{})) {
      p.pristine = empty(all.size, DType::u8, device_);
      write_constant(b, p.pristine.raw(), device_);
      trace_.blocks[i].values = {};
    }
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    Storage* memory = places_[i].whole.storage();
    if (trace_.blocks[i].origin == StepTrace::Origin::given && places_[i].first != kNever)
      given_.push_back({memory, trace_.blocks[i].number});
    else if (places_[i].in == Place::In::arena)
      in_arena_.push_back({memory, places_[i].offset});
  }
  for (size_t i = 0; i < planned_.size(); ++i) {
    const StepTrace::Step& s = trace_.steps[i];
    Planned& to = planned_[i];
    for (const auto& w : s.in) to.in.push_back(look(w));
    for (const auto& w : s.out) {
      if (w.block < 0) {
        to.out.emplace_back();
        continue;
      }
      // An in-place form is called with its first input as its result.
      const auto same = std::find(s.in.begin(), s.in.end(), w);
      to.out.push_back(same == s.in.end() ? look(w) : to.in[static_cast<size_t>(same - s.in.begin())]);
      if (trace_.blocks[static_cast<size_t>(w.block)].origin == StepTrace::Origin::named) to.counts.push_back(w.block);
    }
    for (size_t k = 0; k < s.in.size(); ++k)
      if ((s.op->writes >> k & 1u) && s.in[k].block >= 0) to.counts.push_back(s.in[k].block);
    to.quick = device_ == Device{} && runs_quickly(*s.op, to.in, to.out);
    to.elements = to.out[0].numel();
  }
  for (const KernelChain& c : chains_.chains)
    for (size_t i = c.first; i < c.first + c.count; ++i) {
      const StepTrace::Step& s = trace_.steps[i];
      TileStep step{s.loop, 1 + static_cast<int>(s.operands.size())};
      const auto tile_of = [&](const StepTrace::Window& w) { return places_[static_cast<size_t>(w.block)].tile; };
      step.at[0].tile = tile_of(s.out[0]);
      for (size_t k = 0; k < s.operands.size(); ++k) {
        TileOperand& to = step.at[k + 1];
        const int in = s.operands[k].in;
        to.stride = 0;
        if (in < 0) continue;
        to = read_as(s.in[static_cast<size_t>(in)], s.out[0]).value();
        to.tile = tile_of(s.in[static_cast<size_t>(in)]);
      }
      planned_[c.first].chain.push_back(step);
    }
}

bool StepPlan::holds(const std::vector<const Tensor*>& named) const {
  return std::equal(named.begin(), named.end(), named_.begin(), named_.end(),
                    [](const Tensor* a, const Tensor& b) { return a->storage() == b.storage(); });
}

bool StepPlan::reads(int given) const {
  return std::any_of(given_.begin(), given_.end(), [&](const Bound& b) { return b.at == given; });
}

/// Brings the addresses of all memory up to date that does not stay where it is.
void StepPlan::bind(const std::vector<Tensor>& given, const char* arena) {
  for (const Bound& b : given_) b.storage->data = given[static_cast<size_t>(b.at)].storage()->data;
  if (arena == base_) return;
  for (const Bound& b : in_arena_) b.storage->data = const_cast<char*>(arena) + b.at;
  base_ = arena;
}

StepPlan::Memory StepPlan::take_memory() const {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(figures_.arena_bytes, 1));
  Memory m{device_ == Device{} ? pool_take(bytes) : backend_take(bytes, device_), {}};
  for (const StepTrace::Window& w : trace_.results)
    m.results.push_back(w.block < 0 ? Tensor() : empty_strided(own_layout(w.layout), w.dtype, device_));
  return m;
}

std::vector<Tensor> StepPlan::run(const std::vector<Tensor>& given) {
  Memory m = take_memory();
  queue(given, m);
  count(false);
  return std::move(m.results);
}

void StepPlan::queue(const std::vector<Tensor>& given, const Memory& m) {
  bind(given, static_cast<const char*>(m.arena->data));
  for (size_t r = 0; r < m.results.size(); ++r)
    if (const StepTrace::Window& w = trace_.results[r]; w.block >= 0)
      if (const Place& p = places_[static_cast<size_t>(w.block)]; p.result == static_cast<int>(r))
        p.whole.storage()->data = m.results[r].storage()->data;
  struct Restore {
    ThreadState state = t_state;
    uint32_t forward_seq = t_forward_seq;
    ~Restore() {
      t_state.origin = state.origin;
      t_state.mode = state.mode;
      t_forward_seq = forward_seq;
    }
  };
  const uint32_t begin = t_state.origin.seq;
  {
    const Restore restore;
    for (size_t i = 0; i < planned_.size(); ++i) {
      run_step(i, begin);
      if (!planned_[i].chain.empty()) i += planned_[i].chain.size() - 1;
    }
  }
  NoGrad off;
  for (size_t r = 0; r < m.results.size(); ++r) {
    const StepTrace::Window& w = trace_.results[r];
    if (w.block >= 0 && places_[static_cast<size_t>(w.block)].result != static_cast<int>(r))
      copy_(m.results[r], look(w));
  }
  t_state.origin.seq = begin;
}

void StepPlan::count(bool writes) {
  const Origin begin = t_state.origin;
  for (size_t i = 0; writes && i < planned_.size(); ++i) {
    t_state.op = trace_.steps[i].op->profile_name;
    t_state.origin.seq = begin.seq + trace_.steps[i].origin.seq;
    for (const int block : planned_[i].counts) places_[static_cast<size_t>(block)].whole.storage()->wrote();
  }
  t_state.origin = begin;
  t_state.origin.seq += trace_.last_seq;
  nn::t_random.drawn = trace_.drawn;
}

void StepPlan::run_step(size_t i, uint32_t begin) {
  const StepTrace::Step& s = trace_.steps[i];
  Planned& p = planned_[i];
  t_state.origin = s.origin;
  t_state.origin.seq += begin;
  t_state.op = s.op->profile_name;
  t_state.mode = s.no_grad ? t_state.mode | mode::no_grad : t_state.mode & ~mode::no_grad;
  t_forward_seq = s.forward_seq ? s.forward_seq + begin : 0;
  for (const int block : p.fresh) {
    const Place& of = places_[static_cast<size_t>(block)];
    const StepTrace::Block& b = trace_.blocks[static_cast<size_t>(block)];
    if (of.pristine)
      copy_bytes(of.whole.storage()->data, device_, of.pristine.raw(), device_, b.bytes);
    else
      write_constant(b, of.whole.storage()->data, device_);
  }
  if (!p.chain.empty())
    run_tiles(i);
  else if (p.quick)
    run_quickly(*s.op, p.in, p.out[0], p.elements);
  else
    run_kernel(*s.op, s.attrs.get(), p.in.data(), static_cast<int>(p.in.size()), p.out.data());
  for (const int block : p.counts) places_[static_cast<size_t>(block)].whole.storage()->wrote();
}

/// All of the chain that begins with this step.
void StepPlan::run_tiles(size_t first) {
  std::vector<TileStep>& steps = planned_[first].chain;
  for (size_t k = 0; k < steps.size(); ++k) {
    const Planned& p = planned_[first + k];
    auto& operands = trace_.steps[first + k].operands;
    steps[k].at[0].base = static_cast<char*>(p.out[0].raw());
    for (size_t o = 0; o < operands.size(); ++o)
      steps[k].at[o + 1].base = operands[o].in >= 0
                                    ? static_cast<char*>(p.in[static_cast<size_t>(operands[o].in)].raw())
                                    : reinterpret_cast<char*>(&operands[o].number);
  }
  run_chain(steps, planned_[first].elements);
}

std::vector<StepPlanRow> StepPlan::rows() const {
  std::vector<StepPlanRow> rows;
  for (size_t i = 0; i < trace_.steps.size(); ++i) {
    const StepTrace::Step& s = trace_.steps[i];
    StepPlanRow r{s.origin.seq, s.op->info.name, module_path(s.origin.module), {}, s.origin.phase};
    r.again = s.again;
    r.chain = chains_.of_step[i];
    r.why = chains_.why[i];
    for (const auto& w : s.out) {
      if (w.block < 0) continue;
      r.results += fmt::format("{}{} {}", r.results.empty() ? "" : ", ", name(w.dtype), to_string(w.layout.size));
      r.bytes += w.layout.size.product() * static_cast<int64_t>(itemsize(w.dtype));
      const Place& p = places_[static_cast<size_t>(w.block)];
      if (&w != &s.out.front()) continue;
      r.tile = p.in == Place::In::tile;
      if (p.in == Place::In::arena) r.offset = p.offset + w.layout.offset * static_cast<int64_t>(itemsize(w.dtype));
      r.last = p.last;
    }
    rows.push_back(std::move(r));
  }
  return rows;
}

}  // namespace tenon
