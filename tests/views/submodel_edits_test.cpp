// Sub-models and shared weights as the builder's edits.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/spec/chain.h"
#include "engine/spec/submodel.h"
#include "tests/messages.h"
#include "tests/views/scenes.h"
#include "views/builder/builder_model.h"

namespace tenon::views {
namespace {

using I = int64_t;

class SubModelEdits : public ::testing::Test {
 protected:
  void SetUp() override {
    Chain c("net", {8});
    c.add("stem", "Linear", {{"out_features", I{8}}}).add("fc", "Linear", {{"out_features", I{8}}}).add("act", "ReLU");
    c.join("sum", "Add", {"act", "stem"}).add("head", "Linear", {{"out_features", I{2}}});
    m_.set_spec(c.done(), 2);
  }
  /// Some layers as an instance.
  void make_block(std::initializer_list<const char*> layers = {"fc", "act", "sum"}) {
    ModelSpec m = m_.spec();
    for (const char* n : layers) {
      m.find(n)->name = std::string("block.") + n;
      for (WireSpec& w : m.wires)
        for (std::string* end : {&w.from, &w.to})
          if (*end == n) *end = std::string("block.") + n;
    }
    m_.set_spec(m, 2);
    choose_group("block");
    ASSERT_TRUE(m_.make_submodel("Block")) << m_.why();
  }
  const LayerSpec* layer(const std::string& name) { return m_.spec().find(name); }
  bool wired(const std::string& a, const std::string& b) {
    for (const WireSpec& w : m_.spec().wires)
      if (w.from == a && w.to == b) return true;
    return false;
  }
  void choose_group(const std::string& path) { m_.set_selection(Selection::module(path, "test")); }
  BuilderModel m_;
};

TEST_F(SubModelEdits, a_group_becomes_one_and_more_are_added_and_edited_together) {
  make_block();
  EXPECT_EQ(m_.chosen_instance(), "block");
  ASSERT_TRUE(m_.insert_submodel("Block")) << m_.why();
  EXPECT_TRUE(m_.errors().empty()) << m_.errors().front();
  EXPECT_EQ(m_.spec().submodels.at(0).instances, (std::vector<std::string>{"block", "block2"}));
  EXPECT_TRUE(wired("block.sum", "block2.fc"));
  EXPECT_TRUE(wired("block.sum", "block2.sum"));
  EXPECT_TRUE(wired("block2.sum", "head"));
  EXPECT_FALSE(wired("block.sum", "head"));
  EXPECT_EQ(m_.selected_group(), "block2");
  EXPECT_EQ(m_.undo_text(), "Insert Block after block.sum");

  m_.choose("block2.act");
  ASSERT_TRUE(m_.replace_selected("GELU"));
  EXPECT_EQ(layer("block.act")->type, "GELU");
  EXPECT_EQ(m_.said(), "Block changed: its other instance, too");
  m_.choose("block.fc");
  ASSERT_TRUE(m_.insert_layer("Dropout"));
  EXPECT_NE(layer("block2.dropout"), nullptr);
  EXPECT_TRUE(m_.errors().empty()) << m_.errors().front();
  EXPECT_TRUE(m_.rename("block.dropout", "block.drop"));
  EXPECT_NE(layer("block2.drop"), nullptr);
  m_.choose("block2.drop");
  ASSERT_TRUE(m_.remove_selected());
  EXPECT_EQ(layer("block.drop"), nullptr);
  EXPECT_TRUE(wired("block.fc", "block.act"));
  while (m_.can_undo()) m_.undo();
  EXPECT_TRUE(m_.spec().submodels.empty());
  while (m_.can_redo()) m_.redo();
  EXPECT_EQ(m_.spec().submodels.at(0).instances.size(), 2u);
}

TEST_F(SubModelEdits, copies_are_instances_and_groups_are_renamed_with_them) {
  make_block();
  choose_group("block");
  ASSERT_TRUE(m_.duplicate_selected());
  EXPECT_EQ(m_.spec().submodels.at(0).instances, (std::vector<std::string>{"block", "block2"}));
  const std::string text = m_.copied();
  BuilderModel other;
  other.set_spec(Chain("other", {8}).done(), 2);
  ASSERT_TRUE(other.paste(text)) << other.why();
  ASSERT_EQ(other.spec().submodels.size(), 1u);
  EXPECT_EQ(other.spec().submodels[0].name, "Block");
  ASSERT_TRUE(m_.rename_group("block2", "tail.end"));
  EXPECT_EQ(m_.spec().submodels.at(0).instances, (std::vector<std::string>{"block", "tail.end"}));
  EXPECT_TRUE(m_.rename_submodel("Block", "Residual"));
  EXPECT_FALSE(m_.rename_submodel("Residual", "Linear"));
  EXPECT_SAYS(m_.why(), "There is a layer type Linear");
  // A whole one can be off, and is one still.
  choose_group("tail.end");
  ASSERT_TRUE(m_.switch_selected());
  EXPECT_TRUE(layer("tail.end.fc")->off);
  EXPECT_FALSE(layer("block.fc")->off);
  EXPECT_EQ(m_.spec().submodels.at(0).instances.size(), 2u);
  ASSERT_TRUE(m_.remove_selected());
  EXPECT_EQ(m_.spec().submodels.at(0).instances.size(), 1u);
}

TEST_F(SubModelEdits, instances_have_values_of_their_own) {
  make_block();
  ASSERT_TRUE(m_.insert_submodel("Block"));
  ASSERT_TRUE(m_.set_own_value("block2.fc", "bias", "Block")) << m_.why();
  EXPECT_EQ(m_.undo_text(), "Each Block has its own bias");
  EXPECT_FALSE(m_.set_own_value("block.fc", "bias", "Block")) << "it has already";
  ASSERT_TRUE(m_.set_attr("block2.fc", "bias", false));
  EXPECT_EQ(m_.said(), "") << "no other was changed";
  EXPECT_EQ(layer("block.fc")->find("bias"), nullptr);
  EXPECT_EQ(m_.parameters(), 72 + 72 + 64 + 18);
  // A copy of it has its value, in another model too.
  choose_group("block2");
  ASSERT_TRUE(m_.duplicate_selected());
  EXPECT_EQ(*layer("block3.fc")->find("bias"), AttrValue(false));
  EXPECT_EQ(m_.spec().submodels.at(0).instances.size(), 3u);
  choose_group("block");
  BuilderModel other;
  other.set_spec(Chain("other", {8}).done(), 2);
  ASSERT_TRUE(other.paste(m_.copied())) << other.why();
  EXPECT_EQ(other.spec().submodels.at(0).own, (std::vector<OwnAttr>{{"fc", "bias"}}));
  // Of all the same again.
  ASSERT_TRUE(m_.set_own_value("block2.fc", "bias", ""));
  EXPECT_EQ(*layer("block.fc")->find("bias"), AttrValue(false));
  EXPECT_EQ(m_.spec().submodels.at(0).instances.size(), 3u);
  while (m_.can_undo()) m_.undo();
  EXPECT_TRUE(m_.spec().submodels.empty());
}

TEST_F(SubModelEdits, what_cannot_be_one_says_why) {
  m_.choose("fc");
  EXPECT_FALSE(m_.make_submodel(""));
  EXPECT_FALSE(m_.make_submodel("Linear"));
  m_.select_all();
  EXPECT_FALSE(m_.make_submodel("All"));
  EXPECT_SAYS(m_.why(), "end of the model");
  m_.set_selection(Selection::module("head"));
  EXPECT_FALSE(m_.make_submodel("ReLU"));
  EXPECT_SAYS(m_.why(), "There is a layer type ReLU");
  make_block();
  choose_group("block");
  EXPECT_FALSE(m_.make_submodel("Other"));
  EXPECT_SAYS(m_.why(), "block is an instance of Block already");
}

TEST_F(SubModelEdits, weights_are_shared_and_their_own_again) {
  make_block();
  ASSERT_TRUE(m_.insert_submodel("Block"));
  const int64_t all = m_.parameters();
  EXPECT_EQ(m_.weight_owners(), (std::vector<std::string>{"block"}));
  ASSERT_TRUE(m_.share_weights_with("block"));
  EXPECT_EQ(m_.parameters(), all - 72);
  EXPECT_EQ(layer("block2.fc")->shares, "block.fc");
  EXPECT_EQ(layer("block2.act")->shares, "") << "it has no weights";
  EXPECT_EQ(m_.weights_owner(), "block");
  // What comes into one of them is shared, too.
  m_.choose("block.act");
  ASSERT_TRUE(m_.insert_layer("LayerNorm"));
  EXPECT_EQ(layer("block2.layernorm")->shares, "block.layernorm");
  ASSERT_TRUE(m_.insert_layer("ReLU"));
  EXPECT_EQ(layer("block2.relu")->shares, "");
  // One more has its own, a copy of one that shares has the same.
  ASSERT_TRUE(m_.insert_submodel("Block"));
  EXPECT_EQ(m_.weights_owner(), "");
  choose_group("block2");
  EXPECT_EQ(m_.chosen_instance(), "block2");
  EXPECT_EQ(m_.weights_owner(), "block") << m_.spec().to_json().dump();
  ASSERT_TRUE(m_.share_weights_with(""));
  EXPECT_EQ(layer("block2.fc")->shares, "");
  // Of single layers.
  m_.choose("stem");
  EXPECT_TRUE(std::ranges::count(m_.weight_owners(), "block.fc"));
  EXPECT_FALSE(std::ranges::count(m_.weight_owners(), "head"));
  ASSERT_TRUE(m_.set_attr("block.fc", "bias", false));
  EXPECT_FALSE(std::ranges::count(m_.weight_owners(), "block.fc")) << "it is not of the same sizes any longer";
  m_.undo();
  ASSERT_TRUE(m_.share_weights_with("block.fc"));
  EXPECT_TRUE(m_.errors().empty()) << m_.errors().front();
  EXPECT_TRUE(m_.rename("block.fc", "block.linear"));
  EXPECT_EQ(layer("stem")->shares, "block.linear");
}

TEST_F(SubModelEdits, dissolved_ones_are_layers_again) {
  make_block();
  ASSERT_TRUE(m_.insert_submodel("Block"));
  ASSERT_TRUE(m_.dissolve_chosen());
  EXPECT_EQ(m_.spec().submodels.at(0).instances, (std::vector<std::string>{"block"}));
  EXPECT_NE(layer("fc"), nullptr);
  EXPECT_TRUE(wired("block.sum", "fc"));
  EXPECT_TRUE(m_.errors().empty()) << m_.errors().front();
  EXPECT_FALSE(m_.dissolve_chosen());
  m_.undo();
  EXPECT_EQ(m_.spec().submodels.at(0).instances.size(), 2u);
}

TEST_F(SubModelEdits, an_instance_is_a_node_with_ports) {
  make_block();
  ASSERT_TRUE(m_.insert_submodel("Block"));
  m_.open_groups(false);
  const Scene& scene = m_.frame({900, 900});
  int in = 0, out = 0;
  for (const auto& t : scene.targets()) {
    in += t.hit.kind == BuilderModel::input_port;
    out += t.hit.kind == BuilderModel::output_port;
  }
  EXPECT_EQ(in, 5);  // of both instances and of what is around them
  EXPECT_EQ(out, 5);
  EXPECT_TRUE(shows(scene, "Block"));
  EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps().front();
}

TEST_F(SubModelEdits, wires_end_at_the_ports_of_an_instance) {
  make_block({"act", "sum"});  // fc's value and stem's come in, at a port each
  m_.open_groups(false);
  for (const bool by_hand : {false, true}) {
    if (by_hand) {
      m_.choose("head");
      ASSERT_TRUE(m_.move_selected(8, 0));
    }
    const Scene& scene = m_.frame({900, 900});
    const auto port_at = [&](const std::string& layer, int port) {
      for (const auto& t : scene.targets())
        if (t.hit.kind == BuilderModel::input_port &&
            t.hit.id == BuilderModel::port_id(m_.spec().find(layer) - m_.spec().layers.data(), port))
          return t.box.x + t.box.w / 2;
      return -1.f;
    };
    const GroupLayout& picture = m_.layout().picture();
    int seen = 0;
    for (size_t w = 0; w < m_.spec().wires.size(); ++w) {
      const WireSpec& wire = m_.spec().wires[w];
      if (!wire.to.starts_with("block.") || picture.last[w] < 0) continue;
      const Point end = m_.to_canvas(m_.layout().way(static_cast<size_t>(picture.last[w])).back());
      EXPECT_NEAR(end.x, port_at(wire.to, wire.to_port), 0.6f) << wire.to << " " << wire.to_port << " " << by_hand;
      ++seen;
    }
    EXPECT_EQ(seen, 2);
    EXPECT_NE(port_at("block.act", 0), port_at("block.sum", 1));
  }
}

TEST_F(SubModelEdits, an_instance_of_a_name_with_a_number_has_a_number_behind_it) {
  m_.choose("act");
  ASSERT_TRUE(m_.make_submodel("Act64")) << m_.why();
  EXPECT_EQ(m_.spec().submodels.at(0).instances, (std::vector<std::string>{"act64_1"}));
  ASSERT_TRUE(m_.insert_submodel("Act64")) << m_.why();
  EXPECT_EQ(m_.spec().submodels.at(0).instances, (std::vector<std::string>{"act64_1", "act64_2"}));
}

}  // namespace
}  // namespace tenon::views
