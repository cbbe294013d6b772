#include "core/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "core/error.h"
#include "tests/messages.h"

namespace tenon {
namespace {

struct Fruit {
  std::string name;
  int size = 0;
};

using testing_words::error_of;

TEST(Registry, FindsByNameAndWalksInOrder) {
  Registry<Fruit> fruit("fruit");
  for (const char* name : {"pear", "apple", "plum"}) EXPECT_TRUE(fruit.add({name}));
  EXPECT_EQ(fruit.names(), (std::vector<std::string>{"apple", "pear", "plum"}));
  EXPECT_EQ(fruit.find("plum")->name, "plum");
  EXPECT_EQ(fruit.find("fig"), nullptr);
  Registry<Fruit> by_size("fruit", [](const Fruit& f) { return std::to_string(f.size); });
  by_size.add({"melon", 9});
  by_size.add({"lime", 3});
  by_size.add({"lemon", 3});
  EXPECT_EQ(by_size.names(), (std::vector<std::string>{"lemon", "lime", "melon"}));
}

TEST(Registry, UnknownNamesAreAnsweredWithTheNearOnes) {
  Registry<Fruit> fruit("fruit");
  fruit.add({"apple"});
  fruit.add({"pear"});
  const std::string said = error_of([&] { fruit.at("appel"); });
  EXPECT_SAYS(said, "no fruit is called \"appel\" (did you mean apple?)");
  EXPECT_SAYS(said, "there are apple, pear");
  EXPECT_EQ(fruit.at("pear").name, "pear");
}

TEST(Registry, ASecondDefinitionIsToldWithBothPlaces) {
  Registry<Fruit> fruit("fruit");
  fruit.add({"apple"});
  const auto first = std::to_string(__LINE__ - 1);
  EXPECT_TRUE(fruit.add({"apple"})) << "an addition never throws";
  const auto second = std::to_string(__LINE__ - 1);
  for (const std::string& said :
       {error_of([&] { fruit.find("apple"); }), error_of([&] { fruit.size(); }), error_of([&] { fruit.at("pear"); })}) {
    EXPECT_SAYS(said, "the fruit \"apple\" is defined twice");
    EXPECT_SAYS(said, "in tests/core/registry_test.cpp:" + first);
    EXPECT_SAYS(said, "in tests/core/registry_test.cpp:" + second);
  }
}

TEST(Registry, AScopeTakesBackWhatItBrought) {
  Registry<Fruit> fruit("fruit");
  fruit.add({"apple"});
  const uint64_t before = registry_generation();
  {
    RegistryScope scope("a test");
    fruit.add({"pear"});
    EXPECT_NE(registry_generation(), before);
    EXPECT_TRUE(fruit.find("pear")) << "it is there at once";
    scope.close();
    fruit.add({"plum"});  // no longer the scope's
    ASSERT_EQ(scope.added().size(), 1u);
    EXPECT_EQ(scope.added()[0].what, "fruit");
    EXPECT_EQ(scope.added()[0].name, "pear");
  }
  EXPECT_EQ(fruit.names(), (std::vector<std::string>{"apple", "plum"}));
  EXPECT_NE(registry_generation(), before);
}

TEST(Registry, AScopesSecondDefinitionHarmsNobodyElse) {
  Registry<Fruit> fruit("fruit");
  fruit.add({"apple", 1});
  {
    RegistryScope scope("plug-in orchard.so");
    fruit.add({"apple", 2});
    fruit.add({"pear"});
    EXPECT_EQ(fruit.at("apple").size, 1) << "the first stays, and reading goes on";
    const std::string said = error_of([&] { scope.close(); });
    EXPECT_SAYS(said, "\"apple\" is defined twice");
    EXPECT_SAYS(said, "of plug-in orchard.so");
  }
  EXPECT_EQ(fruit.names(), std::vector<std::string>{"apple"});
}

TEST(Registry, ScopesNestAndBelongToTheirThread) {
  Registry<Fruit> fruit("fruit");
  RegistryScope outer("outer");
  {
    RegistryScope inner("inner");
    fruit.add({"pear"});
    std::thread([&] { fruit.add({"apple"}); }).join();
    EXPECT_EQ(inner.added().size(), 1u);
  }
  fruit.add({"plum"});
  EXPECT_EQ(outer.added().size(), 1u);
  EXPECT_EQ(fruit.names(), (std::vector<std::string>{"apple", "plum"}));
}

// A list that is walked stays whole, whatever comes and goes meanwhile.
TEST(Registry, MayBeReadWhileItChanges) {
  Registry<Fruit> fruit("fruit");
  for (int i = 0; i < 50; ++i) fruit.add({"fixed" + std::to_string(i), 1});
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  std::atomic<int64_t> wrong{0}, walks{0};
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (!done) {
        int seen = 0;
        for (const Fruit& f : fruit) seen += f.size;
        if (seen < 50 || seen > 60 || !fruit.find("fixed7")) ++wrong;
        ++walks;
      }
    });
  for (int round = 0; round < 100 || walks < 30; ++round) {
    RegistryScope scope("a round");
    for (int i = 0; i < 10; ++i) fruit.add({"passing" + std::to_string(i), 1});
  }
  done = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fruit.size(), 50u);
}

Registry<Fruit>& basket() {
  static auto& all = *new Registry<Fruit>("fruit");
  return all;
}

TEST(Registry, WhatIsMadeOfItIsMadeAgainWhenItChanges) {
  MadeOfRegistries<std::string> labels([] {
    std::string all;
    for (const Fruit& f : basket()) all += f.name + " ";
    return all;
  });
  basket().add({"apple"});
  const std::string& first = labels.get();
  EXPECT_EQ(first, "apple ");
  EXPECT_EQ(&labels.get(), &first) << "nothing changed";
  {
    RegistryScope scope("a test");
    basket().add({"pear"});
    EXPECT_EQ(labels.get(), "apple pear ");
  }
  EXPECT_EQ(labels.get(), "apple ");
  EXPECT_EQ(first, "apple ") << "what was given out stays";
}

}  // namespace
}  // namespace tenon
