#include "engine/op/pointwise_chain.h"

#include "core/error.h"

namespace tenon {

PointwiseChain::Operand PointwiseChain::number(float v) {
  sources_.push_back({.kind = Kind::number, .one = v});
  return static_cast<Operand>(sources_.size() - 1);
}

PointwiseChain::Operand PointwiseChain::repeated(const float* values, int64_t size) {
  if (size < 1) throw Error("numbers that repeat are at least one");
  Source s{.kind = Kind::repeated, .period = size};
  for (int64_t i = 0; i < size + kTileElements; ++i) s.values.push_back(values[i % size]);
  sources_.push_back(std::move(s));
  return static_cast<Operand>(sources_.size() - 1);
}

PointwiseChain::Operand PointwiseChain::beside() {
  sources_.push_back({.kind = Kind::beside, .slot = static_cast<int>(arrays_++)});
  return static_cast<Operand>(sources_.size() - 1);
}

PointwiseChain::Operand PointwiseChain::step(const OpDef& op, const std::vector<Operand>& operands) {
  if (!op.quick || static_cast<int>(operands.size()) != op.arity || operands.size() > 2)
    throw Error("no step of a chain", std::string(op.info.name) + " has no loop of so many operands");
  if (steps_.size() >= kMostSteps) throw Error("a chain of more steps than it has room for");
  const auto made = static_cast<Operand>(sources_.size());
  sources_.push_back({.kind = Kind::made, .slot = static_cast<int>(steps_.size())});
  steps_.push_back({op.quick, operands, made});
  return made;
}

void PointwiseChain::run(const float* x, float* y, const float* const* beside, int64_t at, int64_t n) const {
  const auto from = [](const float* p) { return reinterpret_cast<char*>(const_cast<float*>(p)); };
  thread_local std::vector<TileStep> all;  // pieces are small: nothing is made anew for each
  all.resize(steps_.size());
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& s = steps_[k];
    TileStep& step = all[k];
    step.loop = s.loop;
    step.operands = 1 + static_cast<int>(s.operands.size());
    if (k + 1 == steps_.size())
      step.at[0] = {.base = from(y), .first = at};
    else
      step.at[0] = {.tile = sources_[static_cast<size_t>(s.made)].slot};
    for (size_t o = 0; o < s.operands.size(); ++o) {
      const Source& source = sources_[static_cast<size_t>(s.operands[o])];
      TileOperand& to = step.at[o + 1];
      switch (source.kind) {
        case Kind::value:
          to = {.base = from(x), .first = at};
          break;
        case Kind::number:
          to = {.base = from(&source.one), .stride = 0};
          break;
        case Kind::repeated:
          to = {.base = from(source.values.data()),
                .count = source.period,
                .held = static_cast<int64_t>(source.values.size())};
          break;
        case Kind::beside:
          to = {.base = from(beside[source.slot])};
          break;
        case Kind::made:
          to = {.tile = source.slot};
      }
    }
  }
  run_tiles(all.data(), steps_.size(), at, at + n);
}

}  // namespace tenon
