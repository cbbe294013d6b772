#include "core/kept_forms.h"

#include <gtest/gtest.h>

#include "core/pool.h"

namespace tenon::kept_forms_of_storages {
namespace {

struct Counted : KeptForms {
  explicit Counted(int& n) : alive(n) { ++alive; }
  ~Counted() override { --alive; }
  int& alive;
};

TEST(KeptForms, GoWhereTheValuesAreWrittenAndWithTheStorage) {
  int alive = 0;
  auto make = [&] { return std::make_shared<Counted>(alive); };
  Tensor t = empty({100});
  const auto first = kept_forms(*t.storage(), make).get();
  EXPECT_EQ(kept_forms(*t.storage(), make).get(), first);
  EXPECT_EQ(alive, 1);
  t.storage()->changed();
  EXPECT_EQ(alive, 0);
  kept_forms(*t.storage(), make);
  t.storage()->wrote();
  EXPECT_EQ(alive, 0);
  kept_forms(*t.storage(), make);
  t.reset();
  EXPECT_EQ(alive, 0);
}

TEST(KeptForms, WhoComputesWithOneHoldsIt) {
  int alive = 0;
  const Tensor t = empty({100});
  auto held = kept_forms(*t.storage(), [&] { return std::make_shared<Counted>(alive); });
  t.storage()->changed();
  EXPECT_EQ(alive, 1);
  held.reset();
  EXPECT_EQ(alive, 0);
}

TEST(KeptForms, ABlockThatComesAgainHasNone) {
  int alive = 0;
  Tensor t = empty({100});
  const void* at = t.raw();
  kept_forms(*t.storage(), [&] { return std::make_shared<Counted>(alive); });
  t.reset();
  const Tensor again = empty({100});
  if (again.raw() == at) {
    EXPECT_FALSE(again.storage()->has_forms.load());
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tenon::kept_forms_of_storages
