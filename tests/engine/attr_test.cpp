#include "engine/spec/attr.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/data/transform.h"
#include "engine/nn/loss.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "engine/train/recipe.h"
#include "tests/messages.h"

// One attribute system: what a layer, an optimizer, a data set and an option of the command line may be told is read,
// checked and refused in the same words.
namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

std::string usage_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::usage);
    return e.what();
  }
  return "nothing was refused";
}

const AttrDef kSteps{"steps", int64_t{100}, 1, 1e9, "how long it takes", {}, "steps"};
const AttrDef kShare{"share", 0.5, 0, 0.9, "what is kept"};
const AttrDef kOn{"on", true, 0, 0, "whether it is on"};
const AttrDef kMode{"mode", std::string("mean"), 0, 0, "how it is joined", {"mean", "sum", "none"}};
const AttrDef kSize{"size", Ints{3, 3}, 1, 9, "height and width"};

TEST(Attr, IsReadAsPeopleTypeIt) {
  for (const char* text : {"10000", "1e4", "+10000", " 10000 ", "10000 steps", "1e4steps"})
    EXPECT_EQ(parse_attr(kSteps, text, "k"), AttrValue(int64_t{10000})) << text;
  EXPECT_EQ(parse_attr(kSteps, "1 step", "k"), AttrValue(int64_t{1}));
  for (const char* text : {"0.25", "2.5e-1", "+.25", " 0.25"})
    EXPECT_EQ(parse_attr(kShare, text, "k"), AttrValue(0.25)) << text;
  for (const char* text : {"true", "yes", "on", "1"}) EXPECT_EQ(parse_attr(kOn, text, "k"), AttrValue(true)) << text;
  for (const char* text : {"false", "no", "off", "0"}) EXPECT_EQ(parse_attr(kOn, text, "k"), AttrValue(false)) << text;
  for (const char* text : {"5, 7", "5,7", "5x7", "[5 7]", "[5, 7]"})
    EXPECT_EQ(parse_attr(kSize, text, "k"), AttrValue(Ints{5, 7})) << text;
  EXPECT_EQ(parse_attr(kMode, "sum", "k"), AttrValue(std::string("sum")));
}

TEST(Attr, WhatIsShownCanBeTypedAgain) {
  for (const AttrDef* def : {&kSteps, &kShare, &kOn, &kMode, &kSize})
    EXPECT_EQ(parse_attr(*def, attr_text(def->fallback), "k"), def->fallback) << def->name;
  for (double d : {1e-300, 0.1, 1e22, 12345678.9})
    EXPECT_EQ(parse_attr({"x", 0.0, 0, 0, ""}, attr_text(d), "k"), AttrValue(d));
}

TEST(Attr, RefusalsNameTheKeyTheValueAndWhatIsAllowed) {
  std::string s = usage_error([] { parse_attr(kSteps, "soon", "a.steps"); });
  EXPECT_SAYS(s, "a.steps = \"soon\": it is a whole number");
  EXPECT_SAYS(s, "how long it takes (a whole number, 1 to 1000000000, in steps)");
  EXPECT_SAYS(usage_error([] { parse_attr(kSteps, "0", "a.steps"); }), "a.steps = 0: it is at least 1");
  EXPECT_SAYS(usage_error([] { parse_attr(kSteps, "1.5", "a.steps"); }), "it is a whole number");
  EXPECT_SAYS(usage_error([] { parse_attr(kSteps, "3 epochs", "a.steps"); }), "it is a whole number");
  EXPECT_SAYS(usage_error([] { parse_attr(kShare, "1", "a.share"); }), "a.share = 1: it is at most 0.9");
  EXPECT_SAYS(usage_error([] { parse_attr(kShare, "nan", "a.share"); }), "it is a number");
  EXPECT_SAYS(usage_error([] { parse_attr(kShare, "0,5", "a.share"); }), "it is a number");
  EXPECT_SAYS(usage_error([] { parse_attr(kOn, "maybe", "a.on"); }), "a.on = \"maybe\": it is true or false");
  s = usage_error([] { parse_attr(kMode, "maen", "a.mode"); });
  EXPECT_SAYS(s, "a.mode = \"maen\": it is one of mean, sum, none (did you mean mean");
  EXPECT_SAYS(usage_error([] { parse_attr(kSize, "3,", "a.size"), parse_attr(kSize, "3,a", "a.size"); }),
              "as in 30, 60");
  EXPECT_SAYS(usage_error([] { parse_attr(kSize, "3, 10", "a.size"); }), "a.size = 3, 10: it is at most 9");
}

TEST(Attr, TextThatNoProjectCanHoldIsRefused) {
  const AttrDef path{"file", std::string(), 0, 0, "a file"};
  EXPECT_EQ(parse_attr(path, "gr\xC3\xBCn.csv", "data.file"), AttrValue(std::string("gr\xC3\xBCn.csv")));
  const std::string s = usage_error([&] { parse_attr(path, "caf\xE9.csv", "data.file"); });
  EXPECT_SAYS(s,
              "data.file = \"caf\xEF\xBF\xBD.csv\": it is text in UTF-8; a file whose name is not has to be renamed");
}

TEST(Attr, AValueStandsForOneOfAnotherKind) {
  EXPECT_EQ(fit_attr(kShare, int64_t{0}, "k"), AttrValue(0.0));
  EXPECT_EQ(fit_attr(kSize, int64_t{4}, "k"), AttrValue(Ints{4}));
  EXPECT_EQ(fit_attr(kSteps, 4.0, "k"), AttrValue(int64_t{4}));
  EXPECT_SAYS(usage_error([] { fit_attr(kSteps, 4.5, "k"); }), "k = 4.5: it is a whole number");
  EXPECT_SAYS(usage_error([] { fit_attr(kOn, int64_t{1}, "k"); }), "k = 1: it is true or false");
  EXPECT_SAYS(usage_error([] { fit_attr(kMode, std::string("all"), "k"); }), "it is one of");
}

TEST(Attr, LimitsAreToldAsPeopleSayThem) {
  EXPECT_EQ(attr_range(kSteps), "1 to 1000000000");
  EXPECT_EQ(attr_range({"x", 0.0, 0, 1e30, ""}), "at least 0");
  EXPECT_EQ(attr_range(kOn), "");
  EXPECT_EQ(attr_allowed(kMode), "one of mean, sum, none");
  EXPECT_EQ(attr_allowed(kSize), "a list of whole numbers, 1 to 9");
}

TEST(Attr, JsonKeepsEveryKind) {
  for (const AttrDef* def : {&kSteps, &kShare, &kOn, &kMode, &kSize})
    EXPECT_EQ(attr_from_json(attr_to_json(def->fallback), "k"), def->fallback) << def->name;
  EXPECT_THROW(attr_from_json(nlohmann::json::object(), "k"), Error);
  EXPECT_THROW(attr_from_json(nlohmann::json::parse("[1, \"a\"]"), "k"), Error);
}

/// Every attribute that anything in Tenon has: layers, losses, and what a recipe says.
template <class F>
void each_attr(F f) {
  for (const LayerDef& d : layers())
    for (const AttrDef& a : d.info.attrs) f(d.info.type + "." + a.name, a);
  for (const nn::LossDef& d : nn::losses())
    for (const AttrDef& a : d.info.attrs) f("loss " + d.info.type + "." + a.name, a);
  for (const optim::OptimizerDef& d : optim::optimizers())
    for (const AttrDef& a : d.attrs) f(d.name + "." + a.name, a);
  for (const optim::ScheduleDef& d : optim::schedules())
    for (const AttrDef& a : d.attrs) f(d.name + "." + a.name, a);
  for (const data::DatasetDef& d : data::dataset_defs())
    for (const AttrDef& a : d.attrs) f(d.name + "." + a.name, a);
  for (const data::TransformDef& d : data::transforms())
    for (const AttrDef& a : d.attrs) f(d.name + "." + a.name, a);
  for (const AttrDef& a : Recipe::keys()) f(a.name, a);
}

TEST(Attr, EveryDefaultOfTenonFitsItsOwnDefinitionAndCanBeTyped) {
  int seen = 0;
  each_attr([&](const std::string& where, const AttrDef& a) {
    ++seen;
    EXPECT_EQ(fit_attr(a, a.fallback, where), a.fallback) << where;
    EXPECT_EQ(parse_attr(a, attr_text(a.fallback), where), a.fallback) << where;
    EXPECT_FALSE(a.help.empty()) << where;
    EXPECT_LE(a.min, a.max) << where;
  });
  EXPECT_GT(seen, 300);
}

}  // namespace
}  // namespace tenon
