// The recipe as a form: its sections, what differs from the last run, the way back, the curve of the rate.
#include "views/recipe/recipe_model.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"

namespace tenon::views {
namespace {

const RecipeModel::Key* find(const std::vector<RecipeModel::Section>& sections, const std::string& key) {
  for (const auto& s : sections)
    for (const auto& k : s.keys)
      if (k.def.name == key) return &k;
  return nullptr;
}

TEST(RecipeForm, HasEveryKeyThatHasAMeaningOnce) {
  RecipeModel m;
  std::set<std::string> shown, labels;
  for (const auto& section : m.sections())
    for (const auto& k : section.keys) {
      EXPECT_TRUE(shown.insert(k.def.name).second) << k.def.name;
      EXPECT_TRUE(labels.insert(section.title + " " + k.label()).second) << k.label() << " stands for two keys";
      EXPECT_FALSE(k.set) << k.def.name;
      EXPECT_FALSE(k.last);
    }
  EXPECT_EQ(shown.size(), Recipe().used_keys().size());
  // Another optimizer brings its own keys.
  m.set_recipe(m.with("optimizer.type", std::string("sgd")));
  EXPECT_NE(find(m.sections(), "optimizer.momentum"), nullptr);
  EXPECT_TRUE(find(m.sections(), "optimizer.type")->set);
}

TEST(RecipeForm, FindsByWordsOfNameAndHelp) {
  RecipeModel m;
  const auto found = m.sections("grad norm");
  ASSERT_NE(find(found, "optimizer.clip_norm"), nullptr);
  EXPECT_EQ(find(found, "epochs"), nullptr);
  EXPECT_TRUE(m.sections("no such words at all").empty());
  EXPECT_EQ(m.sections("batch_size").size(), 1u);
}

TEST(RecipeForm, SaysWhatTheLastRunHad) {
  RecipeModel m;
  EXPECT_EQ(m.differing(), 0);
  Recipe last;
  last.set("optimizer.lr", "0.5");
  last.set("epochs", "9");
  m.set_last(last, 900);
  EXPECT_EQ(m.differing(), 2);
  const auto sections = m.sections();
  const auto* lr = find(sections, "optimizer.lr");
  ASSERT_TRUE(lr && lr->last);
  EXPECT_EQ(std::get<double>(*lr->last), 0.5);
  EXPECT_FALSE(find(m.sections(), "seed")->last);
  m.set_recipe(last);
  EXPECT_EQ(m.differing(), 0);
}

TEST(RecipeForm, WhatARunFillsInIsNoDifference) {
  RecipeModel m;
  Recipe last;
  last.set("init.sha256", "00ff");
  m.set_last(last, 900);
  EXPECT_EQ(m.differing(), 0);
  EXPECT_FALSE(find(m.sections(), "init.sha256")->last);
  m.set_recipe(m.with("init.sha256", std::string("11")));
  EXPECT_EQ(m.differing(), 1);
}

TEST(RecipeForm, EditsAreTakenBackOneByOne) {
  RecipeModel m;
  auto edit = [&](const Recipe& next) {
    m.remember();
    m.set_recipe(next);
  };
  edit(m.with("optimizer.lr", 0.25));
  edit(m.with("epochs", int64_t{5}));
  edit(m.without("optimizer.lr"));
  EXPECT_EQ(m.recipe().integer("epochs"), 5);
  m.set_recipe(m.undo());
  EXPECT_EQ(m.recipe().number("optimizer.lr"), 0.25);
  m.set_recipe(m.undo());
  m.set_recipe(m.undo());
  EXPECT_EQ(m.recipe(), Recipe());
  EXPECT_FALSE(m.can_undo());
  m.set_recipe(m.undo());
  EXPECT_EQ(m.recipe(), Recipe());
  m.set_recipe(m.redo());
  EXPECT_EQ(m.recipe().number("optimizer.lr"), 0.25);
  edit(m.with("epochs", int64_t{2}));
  EXPECT_FALSE(m.can_redo());
  EXPECT_THROW(m.with("epochs", int64_t{0}), Error) << "below its least value";
}

/// The curve of the picture as the rates it shows, from its left to its right.
std::vector<float> heights(RecipeModel& m) {
  const Scene& s = m.frame({600, 150});
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  std::vector<float> y;
  for (const auto& p : s.prims())
    if (p.kind == Scene::Kind::line && p.stroke == Ink::series0)
      for (uint32_t i = 0; i < p.count; ++i) y.push_back(s.points()[p.first + i].y);
  return y;
}

TEST(RecipeForm, DrawsTheRateOverTheRun) {
  RecipeModel m;
  const auto flat = heights(m);
  ASSERT_GT(flat.size(), 1u);
  EXPECT_EQ(flat.front(), flat.back());
  m.set_recipe(m.with("schedule.type", std::string("cosine")));
  const auto falls = heights(m);
  EXPECT_LT(falls.front(), falls.back());
  EXPECT_TRUE(std::is_sorted(falls.begin(), falls.end())) << "a cosine only falls";
  m.set_recipe(m.with("schedule.warmup_steps", int64_t{100}));
  const auto warm = heights(m);
  EXPECT_GT(warm.front(), *std::min_element(warm.begin(), warm.end())) << "it rises first";
  // Every schedule there is can be drawn, on every length.
  for (const AttrDef& k : Recipe::keys())
    if (k.name == "schedule.type")
      for (const std::string& name : k.choices)
        for (const char* steps : {"1", "2", "100000"}) {
          Recipe r;
          r.set("schedule.type", name);
          r.set("max_steps", steps);
          m.set_recipe(r);
          // Some are made of others, which have to be named first: the picture says so.
          const bool told = heights(m).empty() && !m.frame({600, 150}).texts().back().empty();
          EXPECT_EQ(told, name == "chained" || name == "sequential") << name << " over " << steps;
        }
  // The last run tells how many steps an epoch has.
  Recipe last;
  last.set("epochs", "2");
  m.set_last(last, 80);
  Recipe next = last;
  next.set("epochs", "5");
  next.set("data.batch_size", "32");  // half as large as before: twice the steps
  m.set_recipe(next);
  const auto texts = m.frame({600, 150}).texts();
  EXPECT_NE(std::find(texts.begin(), texts.end(), "step 400"), texts.end());
}

}  // namespace
}  // namespace tenon::views
