#include "engine/train/recipe.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/registry.h"
#include "engine/optim/optimizer.h"

namespace tenon {
namespace {

using nlohmann::json;

Error thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error("no error");
}
#define EXPECT_USAGE(part, ...)                                                 \
  do {                                                                          \
    Error e = thrown_by([&] { __VA_ARGS__; });                                  \
    EXPECT_EQ(e.kind(), Error::Kind::usage);                                    \
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what(); \
  } while (false)

TEST(Recipe, EveryKeySurvivesJson) {
  Recipe r;
  r.set("optimizer.lr", "1e-2");
  r.set("data.batch_size", "32");
  r.set("data.shuffle", "false");
  r.set("optimizer.type", "sgd");
  r.set("epochs", "1e1");
  Recipe back = Recipe::from_json(r.to_json());
  EXPECT_EQ(back, r);
  EXPECT_DOUBLE_EQ(back.number("optimizer.lr"), 0.01);
  EXPECT_EQ(back.integer("data.batch_size"), 32);
  EXPECT_EQ(back.integer("epochs"), 10);
  EXPECT_FALSE(back.flag("data.shuffle"));
  EXPECT_EQ(Recipe::from_json(json::parse(r.to_json().dump())), r);
  for (const AttrDef& k : Recipe::keys()) {
    EXPECT_FALSE(k.help.empty()) << k.name;
    EXPECT_EQ(Recipe().at(k.name), k.fallback) << k.name;
    Recipe again;
    again.set_value(k.name, k.fallback);  // every default is within its own limits
  }
}

TEST(Recipe, SaysWhichKeysHaveAMeaning) {
  for (const char* optimizer : {"sgd", "adam", "lbfgs"}) {
    Recipe r;
    r.set("optimizer.type", optimizer);
    std::set<std::string> used;
    for (const AttrDef& k : r.used_keys()) {
      EXPECT_TRUE(used.insert(k.name).second) << k.name << " stands there twice";
      EXPECT_NO_THROW(r.check_used(k.name)) << k.name;
      EXPECT_EQ(k.fallback, r.fallback(k.name)) << k.name;
      EXPECT_EQ(r.at(k.name), k.name == "optimizer.type" ? AttrValue(std::string(optimizer)) : k.fallback) << k.name;
    }
    for (const AttrDef& k : Recipe::keys())
      if (!used.count(k.name)) {
        EXPECT_USAGE("says nothing to", r.check_used(k.name));
      }
  }
  Recipe r;
  r.set("optimizer.lr", "0.5");
  r.reset("optimizer.lr");
  EXPECT_EQ(r, Recipe());
  EXPECT_USAGE("no key", r.reset("optimizer.lrr"));
}

TEST(Recipe, ReadsNestedAndDottedKeysAndKeepsDefaults) {
  Recipe r = Recipe::from_json({{"optimizer", {{"lr", 1}}}, {"data.batch_size", 16}});
  EXPECT_DOUBLE_EQ(r.number("optimizer.lr"), 1);
  EXPECT_EQ(r.integer("data.batch_size"), 16);
  EXPECT_EQ(r.integer("epochs"), Recipe().integer("epochs"));
  EXPECT_EQ(Recipe::from_json(nullptr), Recipe());
}

TEST(Recipe, UnknownKeysListTheNearOnes) {
  Recipe r;
  EXPECT_USAGE("did you mean optimizer.lr", r.set("optimizer.lrr", "1"));
  EXPECT_USAGE("did you mean optimizer.lr", r.set("lr", "1"));
  EXPECT_USAGE("data.batch_size", r.set("data.batchsize", "1"));
  EXPECT_USAGE("optimizer.betta1", Recipe::from_json({{"optimizer", {{"betta1", 0.5}}}}));
  EXPECT_USAGE("JSON object", Recipe::from_json(json::array()));
}

TEST(Recipe, BadValuesSayWhatTheyMayBe) {
  Recipe r;
  EXPECT_USAGE("data.batch_size = 0: it is at least 1", r.set("data.batch_size", "0"));
  EXPECT_USAGE("it is a whole number", r.set("data.batch_size", "12.5"));
  EXPECT_USAGE("it is a whole number", r.set("data.batch_size", "many"));
  EXPECT_USAGE("it is a whole number", r.set("data.batch_size", ""));
  EXPECT_USAGE("it is at least 0", r.set("optimizer.lr", "-1"));
  EXPECT_USAGE("it is a number", r.set("optimizer.lr", "nan"));
  EXPECT_USAGE("it is at most", r.set("optimizer.lr", "inf"));
  EXPECT_USAGE("it is a number", r.set("optimizer.lr", "1e-3x"));
  EXPECT_USAGE("it is true or false", r.set("data.shuffle", "maybe"));
  EXPECT_USAGE("(did you mean adam", r.set("optimizer.type", "adm"));
  EXPECT_USAGE("it is one of", r.set("data.dataset", "imagenet"));
  EXPECT_USAGE("it is a whole number", Recipe::from_json({{"epochs", "three"}}));
  EXPECT_USAGE("it is a whole number", Recipe::from_json({{"epochs", 2.5}}));
  EXPECT_USAGE("it is text", Recipe::from_json({{"optimizer", {{"type", 3}}}}));
  EXPECT_EQ(r, Recipe());  // nothing stuck
}

TEST(Recipe, DefaultsAreThoseOfTheChosenDefinition) {
  Recipe r;
  EXPECT_DOUBLE_EQ(r.number("optimizer.lr"), 1e-3);
  r.set("optimizer.type", "adadelta");
  EXPECT_DOUBLE_EQ(r.number("optimizer.lr"), 1);
  // Stored and read again it is still a default, and makes way for another definition's.
  Recipe back = Recipe::from_json(r.to_json());
  EXPECT_EQ(back, r);
  back.set("optimizer.type", "rmsprop");
  EXPECT_DOUBLE_EQ(back.number("optimizer.lr"), 1e-2);
  EXPECT_EQ(back.attrs("optimizer").size(), 7u);
  back.set("optimizer.lr", "0.5");
  back.set("optimizer.type", "lion");
  EXPECT_DOUBLE_EQ(back.number("optimizer.lr"), 0.5);
  EXPECT_FALSE(back.to_json()["optimizer"].contains("alpha"));
}

TEST(Recipe, OneStoredByTheFirstVersionStillMeansTheSame) {
  // As the first version wrote it: every key, whatever the optimizer. Its adamw decayed by 0 unless told otherwise.
  json first = json::parse(
      R"({"checkpoint_every": 200, "data": {"batch_size": 64, "dataset": "spirals", "dir": "", "drop_last": false,
    "nan_sample": -1, "nan_value_index": 0, "noise": 0.03, "prefetch": 4, "samples": 0, "shuffle": true, "workers": 1}, "epochs": 3,
    "eval_every": 1, "loss": {"type": "cross_entropy"}, "max_steps": 0, "on_nan": "stop", "optimizer": {"beta1": 0.9, "beta2": 0.999,
    "eps": 1e-08, "lr": 0.001, "momentum": 0.9, "nesterov": false, "type": "adamw", "weight_decay": 0.0},
    "schedule": {"gamma": 0.1, "min_lr": 0.0, "step_epochs": 1.0, "type": "constant", "warmup_steps": 0}, "seed": 0})");
  Recipe r = Recipe::from_json(first);
  EXPECT_EQ(r.number("optimizer.weight_decay"), 0);
  first["optimizer"]["type"] = "sgd";
  EXPECT_EQ(Recipe::from_json(first).number("optimizer.momentum"), 0.9);
}

TEST(Recipe, AKeyThatTheChosenDefinitionDoesNotHaveIsRefusedWhereAsked) {
  Recipe r;
  r.set("optimizer.type", "sgd");
  r.set("optimizer.alpha", "0.5");
  EXPECT_USAGE("optimizer.alpha says nothing to optimizer.type = sgd; it is of rmsprop",
               r.check_used("optimizer.alpha"));
  r.check_used("optimizer.momentum");
  r.check_used("seed");
  r.check_used("optimizer.clip_norm");
}

// What is made of registries follows them: definitions may come after the keys were first read, and go again.
TEST(Recipe, KeysComeAndGoWithTheirDefinitions) {
  const size_t before = Recipe::keys().size();
  Recipe r;
  r.set("optimizer.lr", "0.5");
  {
    RegistryScope scope("a test");
    optim::register_optimizer(
        {"sleepy",
         "does nothing",
         {optim::lr_attr(0.1), {"yawns", int64_t{3}, 1, 9, "a step", {}, "times"}},
         [](std::vector<nn::Named>, const AttrValues&) -> std::unique_ptr<optim::Optimizer> { return nullptr; }});
    scope.close();
    EXPECT_EQ(Recipe::keys().size(), before + 1);
    r.set("optimizer.type", "sleepy");
    r.set("optimizer.yawns", "4 times");
    EXPECT_EQ(r.integer("optimizer.yawns"), 4);
    EXPECT_DOUBLE_EQ(r.number("optimizer.lr"), 0.5) << "what was set before stays";
    EXPECT_EQ(Recipe::from_json(r.to_json()), r);
    EXPECT_USAGE("optimizer.yawns = 10: it is at most 9", r.set("optimizer.yawns", "10"));
  }
  EXPECT_EQ(Recipe::keys().size(), before);
  EXPECT_USAGE("a recipe has no key \"optimizer.yawns\"", r.set("optimizer.yawns", "5"));
  EXPECT_USAGE("it is one of", Recipe::from_json({{"optimizer", {{"type", "sleepy"}}}}));
}

}  // namespace
}  // namespace tenon
