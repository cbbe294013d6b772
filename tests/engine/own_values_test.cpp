// Values that each instance of a sub-model has of its own.
#include "engine/spec/own_values.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"
#include "engine/model/examine.h"
#include "engine/spec/chain.h"
#include "engine/spec/submodel.h"
#include "tests/messages.h"

namespace tenon::own_values_tests {
namespace {

using testing_words::message_of;
using I = int64_t;

/// Four blocks of one sub-model, which stand in pairs in two stages of another.
ModelSpec stages() {
  Chain c("stages", {8});
  SubModelSpec block{"Block", {}}, stage{"Stage", {"stage_1", "stage_2"}};
  for (const std::string s : {"stage_1", "stage_2"})
    for (const std::string b : {"block_1", "block_2"}) {
      const std::string scope = s + "." + b;
      block.instances.push_back(scope);
      c.add(scope + ".fc", "Linear", {{"out_features", I{8}}}).add(scope + ".drop", "Dropout", {{"p", 0.1}});
    }
  c.add("head", "Linear", {{"out_features", I{2}}});
  ModelSpec m = c.done();
  m.submodels = {stage, block};
  return m;
}
void set(ModelSpec& m, const std::string& layer, const std::string& attr, const AttrValue& value) {
  for (Attr& a : m.find(layer)->attrs)
    if (a.name == attr) a.value = value;
}
/// What an edit of the builder comes to.
ModelSpec edited(const ModelSpec& before, const std::string& layer, const std::string& attr, const AttrValue& value) {
  ModelSpec m = before;
  set(m, layer, attr, value);
  mirror_edits(before, m);
  return m;
}
/// The widths of the four blocks.
std::vector<I> widths(const ModelSpec& m) {
  std::vector<I> all;
  for (const LayerSpec& l : m.layers)
    if (l.name.ends_with(".fc")) all.push_back(std::get<I>(*l.find("out_features")));
  return all;
}
size_t instances(const ModelSpec& m) {
  size_t n = 0;
  for (const SubModelSpec& s : m.submodels) n += s.instances.size();
  return n;
}

TEST(OwnValues, one_value_differs_and_the_others_follow_still) {
  ModelSpec m = stages();
  EXPECT_EQ(own_in(m, "stage_1.block_1.fc", "out_features"), "");
  set_own(m, "stage_1.block_1.fc", "out_features", "Stage");
  EXPECT_EQ(own_in(m, "stage_2.block_2.fc", "out_features"), "Stage");
  EXPECT_EQ(own_in(m, "stage_2.block_2.drop", "p"), "");
  EXPECT_EQ(widths(m), (std::vector<I>{8, 8, 8, 8})) << "none has changed yet";
  m = edited(m, "stage_2.block_1.fc", "out_features", I{16});
  EXPECT_EQ(widths(m), (std::vector<I>{8, 8, 16, 8}));
  EXPECT_EQ(instances(m), 6u);
  m = edited(m, "stage_2.block_1.drop", "p", 0.3);
  for (const char* l : {"stage_1.block_1.drop", "stage_1.block_2.drop", "stage_2.block_2.drop"})
    EXPECT_EQ(*m.find(l)->find("p"), AttrValue(0.3)) << l;
  EXPECT_EQ(widths(m), (std::vector<I>{8, 8, 16, 8})) << "an edit of something else carries no width";
  for (const LayerReport& r : examine(m, 2)) EXPECT_EQ(r.error, "");
  EXPECT_EQ(ModelSpec::from_json(m.to_json()), m);
}

TEST(OwnValues, of_the_inner_instances_alone_outer_ones_stay_alike) {
  ModelSpec m = stages();
  set_own(m, "stage_1.block_1.fc", "out_features", "Block");
  EXPECT_EQ(own_in(m, "stage_1.block_2.fc", "out_features"), "Block");
  m = edited(m, "stage_1.block_2.fc", "out_features", I{5});
  EXPECT_EQ(widths(m), (std::vector<I>{8, 5, 8, 5}));
  set_own(m, "stage_1.block_1.fc", "out_features", "Stage");
  m = edited(m, "stage_1.block_2.fc", "out_features", I{6});
  EXPECT_EQ(widths(m), (std::vector<I>{8, 6, 8, 5}));
  // Back again: the stages take what the one that was asked has, then the blocks.
  ModelSpec back = m;
  set_own(back, "stage_1.block_1.fc", "out_features", "Block");
  EXPECT_EQ(widths(back), (std::vector<I>{8, 6, 8, 6}));
  set_own(back, "stage_2.block_2.fc", "out_features", "");
  EXPECT_EQ(widths(back), (std::vector<I>{6, 6, 6, 6}));
  EXPECT_TRUE(back.submodels[0].own.empty() && back.submodels[1].own.empty());
  EXPECT_EQ(instances(back), 6u);
}

TEST(OwnValues, stay_where_layers_are_renamed_come_and_go) {
  ModelSpec m = stages();
  set_own(m, "stage_1.block_1.fc", "out_features", "Stage");
  m = edited(m, "stage_2.block_2.fc", "out_features", I{9});
  ModelSpec next = m;
  next.find("stage_1.block_1.fc")->name = "stage_1.block_1.wide";
  for (WireSpec& w : next.wires)
    for (std::string* end : {&w.from, &w.to})
      if (*end == "stage_1.block_1.fc") *end = "stage_1.block_1.wide";
  mirror_edits(m, next);
  ASSERT_TRUE(next.find("stage_2.block_2.wide"));
  EXPECT_EQ(*next.find("stage_2.block_2.wide")->find("out_features"), AttrValue(I{9}));
  EXPECT_EQ(own_in(next, "stage_1.block_2.wide", "out_features"), "Stage");
  EXPECT_EQ(instances(next), 6u);
  // A layer of another kind has no such value, and the sub-model's list forgets it.
  ModelSpec other = next;
  *other.find("stage_1.block_1.wide") = {"stage_1.block_1.wide", "ReLU", {}};
  mirror_edits(next, other);
  EXPECT_EQ(other.find("stage_2.block_2.wide")->type, "ReLU");
  for (const SubModelSpec& s : other.submodels) EXPECT_TRUE(s.own.empty());
  EXPECT_EQ(instances(other), 6u);
}

TEST(OwnValues, are_arguments_of_the_class_and_come_back) {
  ModelSpec m = stages();
  set_own(m, "stage_1.block_1.fc", "out_features", "Stage");
  m = edited(m, "stage_2.block_1.fc", "out_features", I{16});
  m = edited(m, "stage_2.block_2.fc", "out_features", I{16});
  const std::string written = python::write_model(m);
  EXPECT_NE(written.find("Stage(16"), std::string::npos) << written;
  const ModelSpec read = python::read_model(written).model;
  EXPECT_EQ(python::difference(m, read), "") << written;
  EXPECT_EQ(own_in(read, "stage_1.block_1.fc", "out_features"), "Stage") << written;
  EXPECT_EQ(python::read_model(written, &m).model, m) << written;
  // Where all are the same the source does not say that they may differ: the model that was edited does.
  ModelSpec same = stages();
  set_own(same, "stage_1.block_1.fc", "out_features", "Stage");
  EXPECT_EQ(python::read_model(python::write_model(same), &same).model, same);
}

TEST(OwnValues, of_a_file_are_looked_at) {
  nlohmann::json j = stages().to_json();
  j["submodels"][0]["own"] = nlohmann::json::array({{{"layer", "block_1.fc"}, {"attr", 3}}});
  EXPECT_SAYS(message_of([&] { ModelSpec::from_json(j); }), "sub-model 0 of the model");
  j["submodels"][0]["own"] = nlohmann::json::array({7});
  EXPECT_SAYS(message_of([&] { ModelSpec::from_json(j); }), "a value of its own is number");
  j["submodels"][0]["own"] = nlohmann::json::array({{{"layer", "block_1.fc"}, {"attr", "depth"}},
                                                    {{"layer", "gone"}, {"attr", "p"}},
                                                    {{"layer", "block_1.drop"}, {"attr", "p"}}});
  const ModelSpec m = ModelSpec::from_json(j);
  EXPECT_EQ(m.submodels[0].own, (std::vector<OwnAttr>{{"block_1.drop", "p"}})) << "what is not there has no value";
  EXPECT_EQ(m.submodels[1].own, (std::vector<OwnAttr>{{"drop", "p"}})) << "nor are those within the same by force";
}

}  // namespace
}  // namespace tenon::own_values_tests
