// Editing in the builder: selecting, copying, grouping, turning off, searching.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "tests/views/scenes.h"
#include "views/builder/builder_model.h"

namespace tenon::views {
namespace {

ModelSpec chain_of(std::initializer_list<const char*> names) {
  Chain c("chain", {16});
  for (const char* name : names) c.add(name, "ReLU");
  return c.done();
}

bool wired(const BuilderModel& m, const std::string& a, const std::string& b, int port = 0) {
  return std::any_of(m.spec().wires.begin(), m.spec().wires.end(),
                     [&](const WireSpec& w) { return w.from == a && w.to == b && w.to_port == port; });
}

void drag(BuilderModel& m, Point a, Point b, Mods mods = {}, Button button = Button::left) {
  m.frame({900, 700});
  m.pointer({PointerEvent::Type::press, button, a.x, a.y, mods});
  m.pointer({PointerEvent::Type::move, button, (a.x + b.x) / 2, (a.y + b.y) / 2, mods});
  m.pointer({PointerEvent::Type::move, button, b.x, b.y, mods});
  m.frame({900, 700});
  m.pointer({PointerEvent::Type::release, button, b.x, b.y, mods});
  m.frame({900, 700});
}

TEST(BuilderEdits, ABandSelectsWhatItTouches) {
  BuilderModel m;
  m.set_spec(chain_of({"a", "b", "c"}), 1);
  m.frame({900, 700});
  const Box a = m.box_of(*m.spec().find("a")), b = m.box_of(*m.spec().find("b"));
  drag(m, {a.x - 30, a.y + 2}, {a.x + 40, b.y + 10});
  EXPECT_EQ(m.selected(), (std::set<std::string>{"a", "b"}));
  const Box c = m.box_of(*m.spec().find("c"));
  drag(m, {c.x - 30, c.y + 10}, {c.x + 20, c.y + 20}, {.shift = true});
  EXPECT_EQ(m.selected().size(), 3u);
  m.pointer({PointerEvent::Type::press, Button::left, 5, 5, {}});
  m.pointer({PointerEvent::Type::release, Button::left, 5, 5, {}});
  EXPECT_TRUE(m.selected().empty());
  m.select_all();
  EXPECT_EQ(m.selected().size(), 5u);
}

TEST(BuilderEdits, TheMiddleButtonMovesThePicture) {
  BuilderModel m;
  m.set_spec(chain_of({"a", "b"}), 1);
  m.frame({900, 700});
  const Box before = m.box_of(*m.spec().find("a"));
  drag(m, {20, 20}, {120, 60}, {}, Button::middle);
  EXPECT_NEAR(m.box_of(*m.spec().find("a")).x, before.x + 100, 1);
  EXPECT_TRUE(m.selected().empty());
}

TEST(BuilderEdits, ACopiedLayerGoesBehindWhatIsSelected) {
  BuilderModel m;
  m.set_spec(chain_of({"a", "b"}), 1);
  m.choose("a");
  const std::string text = m.copied();
  EXPECT_EQ(nlohmann::json::parse(text)["layers"].size(), 1u);
  EXPECT_TRUE(m.paste(text));
  EXPECT_EQ(m.primary(), "a2");
  EXPECT_TRUE(wired(m, "a", "a2"));
  EXPECT_TRUE(wired(m, "a2", "b"));
  EXPECT_TRUE(m.errors().empty()) << m.errors().front();
  m.undo();
  EXPECT_FALSE(m.spec().find("a2"));
  EXPECT_FALSE(m.paste("nothing of the kind"));
  EXPECT_NE(m.why().find("no part of a model"), std::string::npos);
  EXPECT_FALSE(m.paste("{\"layers\": 7}"));
}

TEST(BuilderEdits, ABlockWithItsShortcutIsCopiedWhole) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 2);
  const int block = m.layout().node_of("layer1.1");
  ASSERT_GE(block, 0);
  m.choose_group(block, false);
  EXPECT_EQ(m.selected_group(), "layer1.1");
  ASSERT_TRUE(m.duplicate_selected()) << m.why();
  EXPECT_TRUE(m.spec().find("layer1.2.conv1"));
  EXPECT_TRUE(wired(m, "layer1.1.relu2", "layer1.2.conv1"));
  EXPECT_TRUE(wired(m, "layer1.1.relu2", "layer1.2.add", 1)) << "its shortcut, too";
  EXPECT_TRUE(wired(m, "layer1.2.relu2", "layer2.0.conv1"));
  EXPECT_TRUE(wired(m, "layer1.2.relu2", "layer2.0.downsample.0"));
  EXPECT_TRUE(m.errors().empty()) << m.errors().front();
  EXPECT_EQ(m.selected().size(), 7u);
}

TEST(BuilderEdits, APartGoesIntoAnotherModel) {
  BuilderModel from, to;
  from.set_spec(find_template("byte-gpt").model, 2);
  to.set_spec(chain_of({"a"}), 1);
  from.choose_group(from.layout().node_of("blocks.0"), false);
  ASSERT_TRUE(to.paste(from.copied())) << to.why();
  EXPECT_TRUE(to.spec().find("blocks.0.attention"));
  EXPECT_TRUE(wired(to, "blocks.0.norm1", "blocks.0.attention"));
  EXPECT_EQ(to.spec().layers.size(), 3u + 8u);
  from.select_all();
  EXPECT_TRUE(to.paste(from.copied())) << "a second input and output are left out";
  EXPECT_EQ(std::count_if(to.spec().layers.begin(), to.spec().layers.end(), [](auto& l) { return l.type == "Input"; }),
            1);
}

TEST(BuilderEdits, ALayerGoesOntoTheSelectedWire) {
  BuilderModel m;
  m.set_spec(chain_of({"block.a", "block.b"}), 1);
  for (size_t w = 0; w < m.spec().wires.size(); ++w)
    if (m.spec().wires[w].to == "block.b") m.choose_wire(static_cast<int>(w));
  EXPECT_TRUE(m.insert_layer("Dropout"));
  EXPECT_EQ(m.primary(), "block.dropout") << "within the group whose wire it is on";
  EXPECT_TRUE(wired(m, "block.a", "block.dropout"));
  EXPECT_TRUE(wired(m, "block.dropout", "block.b"));
  EXPECT_FALSE(wired(m, "block.a", "block.b"));
}

TEST(BuilderEdits, AReplacedLayerKeepsItsWiresAndWhatItWasTold) {
  BuilderModel m;
  m.set_spec(find_template("fashion-cnn").model, 2);
  m.choose("features.1");
  ASSERT_TRUE(m.replace_selected("GELU"));
  EXPECT_EQ(m.spec().find("features.1")->type, "GELU");
  EXPECT_TRUE(wired(m, "features.0", "features.1"));
  EXPECT_TRUE(wired(m, "features.1", "features.2"));
  m.choose("features.0");
  ASSERT_TRUE(m.replace_selected("ConvTranspose2d"));
  EXPECT_EQ(std::get<int64_t>(*m.spec().find("features.0")->find("out_channels")), 32);
  m.undo();
  m.undo();
  EXPECT_EQ(m.spec(), find_template("fashion-cnn").model);
}

TEST(BuilderEdits, WhatIsDeletedLeavesTheChainWhole) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 2);
  m.choose_group(m.layout().node_of("layer1.0"), false);
  ASSERT_TRUE(m.remove_selected());
  EXPECT_TRUE(wired(m, "relu", "layer1.1.conv1")) << "a block and its shortcut had one source";
  EXPECT_TRUE(m.errors().empty()) << m.errors().front();
}

TEST(BuilderEdits, ALayerThatIsOffIsPassedBy) {
  BuilderModel m;
  m.set_spec(find_template("fashion-cnn").model, 2);
  const int64_t all = m.parameters();
  m.choose("classifier.0");
  ASSERT_TRUE(m.switch_selected());
  EXPECT_TRUE(m.spec().find("classifier.0")->off);
  EXPECT_LT(m.parameters(), all);
  EXPECT_TRUE(m.errors().empty()) << m.errors().front();
  m.fit();
  m.frame({700, 1400});
  EXPECT_TRUE(shows(m.last(), "off: passed by")) << m.last().dump();
  EXPECT_EQ(ModelSpec::from_json(m.spec().to_json()), m.spec());
  ASSERT_TRUE(m.switch_selected());
  EXPECT_EQ(m.parameters(), all);
  m.choose("input");
  EXPECT_FALSE(m.switch_selected());
}

TEST(BuilderEdits, AttributesOfSeveralLayersAreSetTogether) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 2);
  m.choose_group(m.layout().node_of("layer1.0"), false);
  ASSERT_TRUE(m.set_attr_of_selected("bias", true));
  EXPECT_EQ(m.undo_text(), "Set bias of 2 layers to true");
  EXPECT_EQ(*m.spec().find("layer1.0.conv1")->find("bias"), AttrValue(true));
  EXPECT_EQ(*m.spec().find("layer1.0.conv2")->find("bias"), AttrValue(true));
  m.undo();
  EXPECT_EQ(m.spec(), find_template("resnet18").model);
  EXPECT_FALSE(m.set_attr_of_selected("num_heads", int64_t{2}));
}

TEST(BuilderEdits, GroupsAreMadeRenamedAndUndone) {
  BuilderModel m;
  m.set_spec(chain_of({"a", "b", "c"}), 1);
  m.choose("a");
  m.frame({900, 700});
  const Box b = m.box_of(*m.spec().find("b"));
  m.pointer({PointerEvent::Type::press, Button::left, b.x + 20, b.y + 20, {.shift = true}});
  m.pointer({PointerEvent::Type::release, Button::left, b.x + 20, b.y + 20, {.shift = true}});
  ASSERT_TRUE(m.group_selected("stem"));
  EXPECT_TRUE(wired(m, "stem.a", "stem.b"));
  EXPECT_TRUE(wired(m, "stem.b", "c"));
  EXPECT_GE(m.layout().node_of("stem"), 0);
  m.choose_group(m.layout().node_of("stem"), false);
  ASSERT_TRUE(m.rename_group("stem", "head"));
  EXPECT_TRUE(m.spec().find("head.a"));
  EXPECT_EQ(m.selected_group(), "head");
  ASSERT_TRUE(m.ungroup_selected());
  EXPECT_TRUE(m.spec().find("a"));
  EXPECT_LT(m.layout().node_of("head"), 0);
  EXPECT_FALSE(m.group_selected(""));
}

TEST(BuilderEdits, LayersAreAlignedAndSpread) {
  BuilderModel m;
  m.set_spec(chain_of({"a", "b", "c"}), 1);
  m.choose("b");
  ASSERT_TRUE(m.move_selected(64, 8));
  m.select_all();
  ASSERT_TRUE(m.align_selected(edits::Line::left));
  for (const LayerSpec& l : m.spec().layers) EXPECT_EQ(l.x, m.spec().layers[0].x);
  ASSERT_TRUE(m.spread_selected());
  const auto& all = m.spec().layers;
  for (size_t i = 2; i < all.size(); ++i) EXPECT_NEAR(all[i].y - all[i - 1].y, all[1].y - all[0].y, 1e-6);
}

TEST(BuilderEdits, WordsFindLayersAlsoInFoldedGroups) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 2);
  m.open_groups(false);
  m.frame({900, 700});
  EXPECT_EQ(m.search("downsample conv"), 3);
  ASSERT_TRUE(m.next_found(1));
  EXPECT_EQ(m.primary(), "layer2.0.downsample.0");
  m.frame({900, 700});
  EXPECT_TRUE(m.box_of(*m.spec().find("layer2.0.downsample.0")).overlaps({0, 0, 900, 672})) << "it is in sight";
  ASSERT_TRUE(m.next_found(-1));
  EXPECT_EQ(m.primary(), "layer4.0.downsample.0");
  EXPECT_EQ(m.search("nothing like it"), 0);
  EXPECT_FALSE(m.next_found(1));
}

TEST(BuilderEdits, ACommentIsReadOnTheLayerAndKept) {
  BuilderModel m;
  m.set_spec(chain_of({"a"}), 1);
  ASSERT_TRUE(m.set_comment("a", "tried GELU here: no better"));
  m.frame({700, 500});
  EXPECT_TRUE(shows(m.last(), "tried GELU here: no better")) << m.last().dump();
  EXPECT_TRUE(m.last().overlaps().empty()) << m.last().overlaps().front();
  EXPECT_EQ(ModelSpec::from_json(m.spec().to_json()), m.spec());
  EXPECT_EQ(chain_of({"a"}).to_json().dump().find("comment"), std::string::npos) << "old files and new ones are alike";
}

TEST(BuilderEdits, AnEmptyModelIsAnErrorAndGrowsFromItsInput) {
  BuilderModel m;
  m.set_spec({}, 1);
  EXPECT_FALSE(m.errors().empty());
  m.frame({900, 600});
  EXPECT_FALSE(shows(m.last(), "every shape fits")) << m.last().dump();
  ASSERT_TRUE(m.insert_layer("Linear"));
  ASSERT_TRUE(m.insert_layer("Input"));
  m.frame({900, 600});
  const Box a = m.box_of(m.spec().layers[0]), b = m.box_of(m.spec().layers[1]);
  EXPECT_FALSE(a.overlaps(b)) << "Input stands beside the only layer";

  m.set_spec(begin_empty().model, 1);
  ASSERT_TRUE(m.insert_layer("Flatten"));
  EXPECT_TRUE(wired(m, "input", "flatten"));
  ASSERT_TRUE(m.insert_layer("Linear"));
  ASSERT_TRUE(m.insert_layer("Output"));
  EXPECT_TRUE(wired(m, "linear", "output"));
  EXPECT_TRUE(m.errors().empty()) << m.errors().front();
}

TEST(BuilderEdits, ALayerThatIsAddedByHandLiesOnNoOther) {
  BuilderModel m;
  m.set_spec(chain_of({"a"}), 1);
  m.choose("a");
  ASSERT_TRUE(m.move_selected(16, 0));
  const LayerSpec& a = *m.spec().find("a");
  ASSERT_TRUE(m.add_layer("Tanh", a.x, a.y));
  m.frame({900, 600});
  EXPECT_FALSE(m.box_of(*m.spec().find("tanh")).overlaps(m.box_of(*m.spec().find("a"))));
}

}  // namespace
}  // namespace tenon::views
