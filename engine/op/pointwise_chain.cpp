#include "engine/op/pointwise_chain.h"

#include <algorithm>

#include "core/error.h"

namespace tenon {
namespace {

constexpr int64_t kChainTile = 1024;

}  // namespace

PointwiseChain::Operand PointwiseChain::number(float v) {
  sources_.push_back({.kind = Kind::number, .one = v});
  return static_cast<Operand>(sources_.size() - 1);
}

PointwiseChain::Operand PointwiseChain::repeated(const float* values, int64_t size) {
  if (size < 1) throw Error("numbers that repeat are at least one");
  Source s{.kind = Kind::repeated, .period = size};
  for (int64_t i = 0; i < size + kChainTile; ++i) s.values.push_back(values[i % size]);
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
  alignas(64) float tiles[kMostSteps][kChainTile];
  for (int64_t i = 0; i < n; i += kChainTile) {
    const int64_t count = std::min(kChainTile, n - i);
    for (const Step& s : steps_) {
      const bool last = &s == &steps_.back();
      char* data[3] = {reinterpret_cast<char*>(last ? y + i : tiles[sources_[static_cast<size_t>(s.made)].slot])};
      int64_t strides[3] = {sizeof(float), sizeof(float), sizeof(float)};
      for (size_t k = 0; k < s.operands.size(); ++k) {
        const Source& from = sources_[static_cast<size_t>(s.operands[k])];
        const float* p = nullptr;
        switch (from.kind) {
          case Kind::value:
            p = x + i;
            break;
          case Kind::number:
            p = &from.one, strides[k + 1] = 0;
            break;
          case Kind::repeated:
            p = from.values.data() + (at + i) % from.period;
            break;
          case Kind::beside:
            p = beside[from.slot] + at + i;
            break;
          case Kind::made:
            p = tiles[from.slot];
        }
        data[k + 1] = reinterpret_cast<char*>(const_cast<float*>(p));
      }
      s.loop(data, strides, count);
    }
  }
}

}  // namespace tenon
