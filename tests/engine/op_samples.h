#pragma once
#include <gtest/gtest.h>

#include <string>

#include "engine/op/op.h"
#include "engine/op/samples.h"

namespace tenon {

/// Every sample of every op: f(op, sample), up to the first fatal failure.
template <class F>
void each_sample(const F& f) {
  for (const OpDef& op : all_ops()) {
    if (!op.samples) continue;
    Samples samples;
    op.samples(samples);
    for (const Sample& s : samples.all()) {
      SCOPED_TRACE(std::string(op.info.name) + " / " + s.name);
      f(op, s);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace tenon
