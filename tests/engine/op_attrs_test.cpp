// Attributes of ops: every member of every registered op's Attrs is known by name.
#include "engine/op/attrs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/attr.h"
#include "tests/engine/op_samples.h"

namespace tenon {
namespace {

std::vector<AttrField> fields_of(const AttrsDef& def, const void* attrs) {
  struct Collect final : AttrVisitor {
    void field(const AttrField& f) override { all.push_back(f); }
    std::vector<AttrField> all;
  } collect;
  def.visit(attrs, collect);
  return collect.all;
}

/// What is wrong with fields(): a member left out, two of one name, a copy instead of the member.
std::string fault_of(const AttrsDef& def) {
  std::vector<char> room(def.size);
  def.init(room.data());
  const std::vector<AttrField> fields = fields_of(def, room.data());
  std::string fault;
  std::set<std::string> names;
  std::set<const void*> places;
  for (const AttrField& f : fields) {
    const char* at = static_cast<const char*>(f.at);
    if (!names.insert(f.name).second) fault += std::string(f.name) + " is visited twice; ";
    if (at < room.data() || at + f.size > room.data() + room.size()) fault += std::string(f.name) + " is a copy; ";
    if (!places.insert(f.at).second) fault += std::string(f.name) + " is another member again; ";
  }
  if (static_cast<int>(fields.size()) != def.members())
    fault += "it has " + std::to_string(def.members()) + " members, and visits " + std::to_string(fields.size());
  if (def.destroy) def.destroy(room.data());
  return fault;
}

TEST(OpAttrs, EveryMemberOfEveryOpIsVisited) {
  for (const OpDef& op : all_ops()) EXPECT_EQ(fault_of(op.attrs), "") << op.info.name;
}

struct Forgetful {
  double scale;
  bool causal;
  int64_t seed;
  template <class F>
  void fields(F&& f) const {
    f("scale", scale);
    f("seed", seed);
  }
};
struct Doubled {
  int64_t a, b;
  template <class F>
  void fields(F&& f) const {
    f("a", a);
    f("b", a);
  }
};
struct Inner {
  Dims size;
  bool on;
  template <class F>
  void fields(F&& f) const {
    f("size", size);
    f("on", on);
  }
};
struct Whole : Inner {
  DType dtype;
  template <class F>
  void fields(F&& f) const {
    f("inner", static_cast<const Inner&>(*this));
    f("dtype", dtype);
  }
};
TEST(OpAttrs, AMemberLeftOutIsFound) {
  EXPECT_EQ(fault_of(AttrsDef::of<Forgetful>()), "it has 3 members, and visits 2");
  EXPECT_NE(fault_of(AttrsDef::of<Doubled>()).find("b is another member again"), std::string::npos);
  EXPECT_EQ(fault_of(AttrsDef::of<Whole>()), "") << "a base stands for its members";
  EXPECT_EQ(fault_of(AttrsDef::of<NoAttrs>()), "");
}

TEST(OpAttrs, AreMadeOfTheirNamedValuesAgain) {
  int made = 0;
  each_sample([&](const OpDef& op, const Sample& s) {
    for (const AttrField& f : fields_of(op.attrs, s.attrs.get()))
      if (f.type == AttrField::Type::object) return;
    const std::vector<Attr> values = op.attrs.values(s.attrs.get());
    std::shared_ptr<void> again = op.attrs.make(values, op.info.name);
    EXPECT_TRUE(op.attrs.equal(again.get(), s.attrs.get()));
    EXPECT_EQ(op.attrs.hash(again.get()), op.attrs.hash(s.attrs.get()));
    EXPECT_EQ(op.attrs.text(again.get()), op.attrs.text(s.attrs.get()));
    EXPECT_TRUE(op.attrs.equal(op.attrs.copy_of(again.get()).get(), again.get()));
    made += !values.empty();
  });
  EXPECT_GT(made, 100);
}

// Whatever member differs, the attributes do.
TEST(OpAttrs, OneMemberMakesThemDiffer) {
  int compared = 0;
  each_sample([&](const OpDef& op, const Sample& s) {
    for (size_t i = 0;; ++i) {
      std::shared_ptr<void> other = op.attrs.copy_of(s.attrs.get());
      const std::vector<AttrField> fields = fields_of(op.attrs, other.get());
      if (i >= fields.size()) break;
      const AttrField& f = fields[i];
      switch (f.type) {
        case AttrField::Type::dims:
          static_cast<Dims*>(f.at)->n ^= 1;
          break;
        case AttrField::Type::layout:
          static_cast<Layout*>(f.at)->offset ^= 1;
          break;
        case AttrField::Type::text:
          *static_cast<std::string*>(f.at) += "x";
          break;
        case AttrField::Type::object:
          continue;
        default:
          *static_cast<char*>(f.at) ^= 1;
      }
      EXPECT_FALSE(op.attrs.equal(other.get(), s.attrs.get())) << f.name;
      EXPECT_NE(op.attrs.hash(other.get()), op.attrs.hash(s.attrs.get())) << f.name;
      ++compared;
    }
  });
  EXPECT_GT(compared, 300);
}

std::string slice_error(const std::vector<Attr>& values) {
  try {
    all_ops().at("slice").attrs.make(values, "slice");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
TEST(OpAttrs, ValuesThatDoNotFitAreNamed) {
  const std::vector<Attr> fine = {
      {"axis", int64_t{0}}, {"start", int64_t{1}}, {"end", int64_t{5}}, {"step", int64_t{2}}};
  EXPECT_EQ(slice_error(fine), "");
  auto with = [&](size_t i, Attr a) {
    auto values = fine;
    values[i] = std::move(a);
    return slice_error(values);
  };
  EXPECT_NE(with(1, {"begin", int64_t{1}}).find("slice has no attribute \"begin\""), std::string::npos);
  EXPECT_NE(with(1, {"start", 0.5}).find("slice.start = 0.5: it is a whole number"), std::string::npos);
  EXPECT_NE(slice_error({fine.begin(), fine.end() - 1}).find("slice: the attribute step is missing"),
            std::string::npos);
}

TEST(OpAttrs, TextShowsWhatPeopleLookFor) {
  const OpDef& op = all_ops().at("slice");
  auto attrs =
      op.attrs.make({{"axis", int64_t{1}}, {"start", int64_t{0}}, {"end", int64_t{4}}, {"step", int64_t{1}}}, "");
  EXPECT_EQ(op.attrs.text(attrs.get()), "axis=1 start=0 end=4 step=1");
}

}  // namespace
}  // namespace tenon
