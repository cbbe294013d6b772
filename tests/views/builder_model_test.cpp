#include "views/builder/builder_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/profile.h"
#include "engine/templates/templates.h"
#include "tests/core/comma_locale.h"
#include "tests/views/scenes.h"

namespace tenon::views {
namespace {

/// Input [1, 28, 28] -> Flatten -> Linear 10 -> Output.
ModelSpec small() {
  ModelSpec s;
  s.name = "small";
  s.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{1, 28, 28}}}, 0, 0},
              {"flat", "Flatten", {}, 0, 0},
              {"head", "Linear", {{"out_features", int64_t{10}}}, 0, 0},
              {"output", "Output", {}, 0, 0}};
  s.wires = {{"input", 0, "flat", 0}, {"flat", 0, "head", 0}, {"head", 0, "output", 0}};
  return s;
}

TEST(Builder, ShowsShapesAndCountsOfEveryLayer) {
  BuilderModel m;
  m.set_spec(small(), 64);
  ASSERT_TRUE(m.errors().empty()) << m.errors().front();
  EXPECT_EQ(m.parameters(), 7850);
  EXPECT_EQ(m.report("head")->outputs.at(0), "f32 [64, 10]");
  const Scene& s = m.frame({900, 600});
  for (const char* text : {"f32 [64, 784]", "f32 [64, 10]", "every shape fits", "7.85 k parameters"})
    EXPECT_TRUE(shows(s, text)) << text << "\n" << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
}

TEST(Builder, SaysWhatIsFrozen) {
  BuilderModel m;
  m.set_spec(small(), 64);
  std::string layer;
  for (const LayerSpec& l : m.spec().layers)
    if (const LayerReport* r = m.report(l.name); r && r->parameters > 0 && layer.empty()) layer = l.name;
  ASSERT_FALSE(layer.empty());
  const LayerReport& r = *m.report(layer);
  ASSERT_EQ(r.parameter_names.size(), 2u);
  EXPECT_EQ(r.parameter_names[0], layer + ".weight");
  EXPECT_EQ(m.frozen_text(r), "");
  m.set_frozen(layer + ".*");
  EXPECT_EQ(m.frozen_text(r), "frozen");
  const Scene& s = m.frame({900, 600});
  EXPECT_TRUE(shows(s, "7.85 k frozen")) << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  m.set_frozen("*.bias");
  EXPECT_EQ(m.frozen_text(r), "partly frozen");
  m.set_frozen("other.*");
  EXPECT_EQ(m.frozen_text(r), "");
}

/// How strongly layers are coloured, by their order from top to bottom.
std::vector<float> colours(const Scene& s) {
  std::vector<float> all;
  for (const Scene::Prim& p : s.prims())
    if (p.kind == Scene::Kind::rect && p.fill == Ink::warning && p.box.y > 40) all.push_back(p.alpha);
  return all;
}

TEST(Builder, LayersAreColouredByWhatTheyCost) {
  BuilderModel m;
  ModelSpec s = small();
  s.layers.insert(s.layers.begin() + 2, {"wide", "Linear", {{"out_features", int64_t{100}}}, 0, 0});
  s.wires = {{"input", 0, "flat", 0}, {"flat", 0, "wide", 0}, {"wide", 0, "head", 0}, {"head", 0, "output", 0}};
  m.set_spec(s, 64);
  EXPECT_TRUE(colours(m.frame({900, 600})).empty());
  m.set_heat(Heat::parameters);
  ASSERT_EQ(m.heat().layers.size(), 5u);
  EXPECT_EQ(m.heat().total, 78500 + 1010);
  const Scene& of_parameters = m.frame({900, 600});
  EXPECT_TRUE(shows(of_parameters, "78.5 k · 99 %")) << of_parameters.dump();
  EXPECT_TRUE(shows(of_parameters, "1.01 k · 1.3 %")) << of_parameters.dump();
  EXPECT_TRUE(of_parameters.overlaps().empty()) << of_parameters.overlaps().front();
  const std::vector<float> two = colours(of_parameters);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_FLOAT_EQ(two[0], 0.5f);
  EXPECT_NEAR(two[1], 0.5 * std::sqrt(1010.0 / 78500), 1e-3);
  m.set_heat(Heat::activations);
  EXPECT_EQ(colours(m.frame({900, 600})).size(), 4u) << "flat, wide, head and what goes in or out";
  m.set_heat(Heat::memory);
  EXPECT_TRUE(shows(m.frame({900, 600}), "not known"));
  m.set_layer_memory({{"wide", 3 << 20}, {"head", 1 << 20}});
  EXPECT_TRUE(shows(m.frame({900, 600}), "3.00 MiB · 75 %")) << m.last().dump();
  // An edit counts anew; from afar, and in a small window, it is drawn too.
  m.set_heat(Heat::parameters);
  m.set_attr("wide", "out_features", int64_t{10});
  EXPECT_EQ(m.heat().total, 7850 + 110);
  m.zoom_by(0.1f);
  m.frame({900, 600});
  m.frame({160, 100});
  m.set_heat(Heat::none);
  EXPECT_TRUE(colours(m.frame({900, 600})).empty());
}

TEST(Builder, MovingALayerRunsNothing) {
  BuilderModel m;
  m.set_spec(small(), 64);
  m.frame({900, 600});
  m.choose("head");
  auto ops_of = [&](auto&& edit) {
    profile_start();
    edit();
    return profile_stop().size();
  };
  EXPECT_GT(ops_of([&] { m.set_attr("head", "out_features", int64_t{12}); }), 0u)
      << "a change of shape tries the model";
  EXPECT_EQ(ops_of([&] { EXPECT_TRUE(m.move_selected(30, 40)); }), 0u);
  EXPECT_EQ(ops_of([&] { m.undo(); }), 0u);
  EXPECT_EQ(ops_of([&] { m.auto_layout(); }), 0u);
  EXPECT_EQ(m.report("output")->inputs.at(0), "f32 [64, 12]");
  EXPECT_GT(ops_of([&] { m.set_batch(32); }), 0u);
  EXPECT_EQ(m.report("output")->inputs.at(0), "f32 [32, 12]");
}

TEST(Builder, AnEditChangesShapesAtOnceAndCanBeUndone) {
  BuilderModel m;
  m.set_spec(small(), 64);
  int edits = 0;
  m.on_edit = [&] { ++edits; };
  ModelSpec before = m.spec();
  EXPECT_TRUE(m.set_attr("head", "out_features", int64_t{12}));
  EXPECT_EQ(m.report("output")->inputs.at(0), "f32 [64, 12]");
  EXPECT_EQ(m.undo_text(), "Set out_features of head to 12");
  m.undo();
  EXPECT_EQ(m.spec(), before);
  EXPECT_EQ(m.report("head")->outputs.at(0), "f32 [64, 10]");
  EXPECT_EQ(m.redo_text(), "Set out_features of head to 12");
  m.redo();
  EXPECT_EQ(m.parameters(), 784 * 12 + 12);
  EXPECT_EQ(edits, 3);
}

TEST(Builder, ErrorsStandOnTheNodeThatCausesThem) {
  BuilderModel m;
  m.set_spec(small(), 64);
  EXPECT_TRUE(m.set_attr("head", "in_features", int64_t{100}));
  ASSERT_EQ(m.errors().size(), 1u);
  EXPECT_TRUE(m.errors()[0].starts_with("head: ")) << m.errors()[0];
  const Scene& s = m.frame({900, 600});
  EXPECT_TRUE(shows(s, "1 error")) << s.dump();
  m.undo();
  EXPECT_TRUE(m.errors().empty());
}

TEST(Builder, InsertsRemovesWiresAndRefusesCircles) {
  BuilderModel m;
  m.set_spec(small(), 8);
  m.choose("head");
  EXPECT_TRUE(m.insert_layer("ReLU"));
  EXPECT_EQ(m.primary(), "relu");
  EXPECT_TRUE(m.errors().empty()) << m.errors().front();
  auto wired = [&](const std::string& a, const std::string& b) {
    return std::any_of(m.spec().wires.begin(), m.spec().wires.end(),
                       [&](const WireSpec& w) { return w.from == a && w.to == b; });
  };
  EXPECT_TRUE(wired("head", "relu"));
  EXPECT_TRUE(wired("relu", "output"));
  EXPECT_FALSE(m.connect("relu", 0, "flat", 0));
  EXPECT_NE(m.why().find("circle"), std::string::npos);
  EXPECT_TRUE(m.remove_selected());
  EXPECT_TRUE(wired("head", "output"));
  EXPECT_TRUE(m.rename("head", "classifier"));
  EXPECT_TRUE(wired("classifier", "output"));
  EXPECT_FALSE(m.rename("classifier", "flat"));
  while (m.can_undo()) m.undo();
  EXPECT_TRUE(wired("head", "output"));
  EXPECT_EQ(m.spec().layers.size(), 4u);
}

TEST(Builder, DraggingFromPortToPortWires) {
  BuilderModel m;
  m.set_spec(small(), 8);
  EXPECT_TRUE(m.disconnect("output", 0));
  const Scene& s = m.frame({900, 600});
  Point a = center_of(s, {BuilderModel::output_port, BuilderModel::port_id(2, 0)}),
        b = center_of(s, {BuilderModel::input_port, BuilderModel::port_id(3, 0)});
  ASSERT_GT(a.x, 0);
  ASSERT_GT(b.x, 0);
  m.pointer({PointerEvent::Type::press, Button::left, a.x, a.y, {}});
  m.pointer({PointerEvent::Type::move, Button::left, b.x, b.y, {}});
  m.pointer({PointerEvent::Type::release, Button::left, b.x, b.y, {}});
  EXPECT_EQ(m.spec().wires.size(), 3u);
  EXPECT_EQ(m.undo_text(), "Connect head → output");
}

TEST(Builder, ADragIsOneEdit) {
  BuilderModel m;
  m.set_spec(small(), 8);
  const Scene& s = m.frame({900, 600});
  double x = m.spec().find("flat")->x;
  Point p = center_of(s, {BuilderModel::layer, 1});
  m.pointer({PointerEvent::Type::press, Button::left, p.x - 40, p.y, {}});
  for (int i = 1; i <= 10; ++i)
    m.pointer({PointerEvent::Type::move, Button::left, p.x - 40 + static_cast<float>(i) * 10, p.y, {}});
  m.pointer({PointerEvent::Type::release, Button::left, p.x + 60, p.y, {}});
  EXPECT_GT(m.spec().find("flat")->x, x + 80);
  m.undo();
  EXPECT_EQ(m.spec().find("flat")->x, x);
  EXPECT_FALSE(m.can_undo());
}

TEST(Builder, AnEditInTheMiddleOfADragEndsIt) {
  for (const bool wire : {false, true})
    for (const bool more : {false, true}) {
      BuilderModel m;
      ModelSpec spec = small();
      std::swap(spec.layers[2], spec.layers[3]);  // the one that is dragged is the last of the list
      m.set_spec(spec, 8);
      const Scene& s = m.frame({900, 600});
      const Hit from = wire ? Hit{BuilderModel::input_port, BuilderModel::port_id(3, 0)} : Hit{BuilderModel::layer, 3};
      const Point p = center_of(s, from);
      ASSERT_GT(p.x, 0);
      const auto hand = [&](PointerEvent::Type type, float by) {  // as a canvas: what is asked for hits is up to date
        m.frame({900, 600});
        m.pointer({type, Button::left, p.x + by, p.y + by, {}});
      };
      hand(PointerEvent::Type::press, 0);
      if (!wire) hand(PointerEvent::Type::move, 20);
      m.choose("head");
      EXPECT_TRUE(more ? m.duplicate_selected() : m.remove_selected());
      const ModelSpec edited = m.spec();
      for (float by : {40.f, 60.f}) hand(PointerEvent::Type::move, by);
      hand(PointerEvent::Type::release, 60);
      EXPECT_EQ(m.spec(), edited);
    }
}

TEST(Builder, ANumberIsReadAsTypedUnderEveryDesktop) {
  const testing_locale::CommaLocale comma;
  if (!comma) GTEST_SKIP() << testing_locale::CommaLocale::kMissing;
  EXPECT_EQ(parse_attr({"p", 0.5, 0, 1, ""}, attr_text(0.25), "p"), AttrValue(0.25));
  const Selection range = Selection::range(0.5, 2.25);
  EXPECT_TRUE(parse_selection(to_text(range)).same(range)) << to_text(range);
}

TEST(Builder, FitShowsTheWholeOfAnyModel) {
  for (const char* name : {"spirals", "resnet18", "u-net", "byte-gpt"})
    for (Size size : {Size{900, 460}, Size{420, 200}, Size{1800, 900}}) {
      BuilderModel m;
      m.set_spec(find_template(name).model, 8);
      m.fit();
      m.frame(size);
      ASSERT_FALSE(m.spec().layers.empty()) << name;
      for (const LayerSpec& l : m.spec().layers) {
        const Box b = m.box_of(l);
        EXPECT_TRUE(b.x >= 0 && b.y >= 0 && b.right() <= size.w && b.bottom() <= size.h - 28)
            << name << " at " << size.w << "x" << size.h << ": " << l.name;
      }
    }
}

TEST(Builder, ManyRoadsBetweenTwoLayersAreWalkedOnce) {
  // A ladder of 60 rungs: 2^60 paths lead through it.
  ModelSpec s = small();
  std::string at = "flat";
  for (int i = 0; i < 60; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i), c = "c" + std::to_string(i);
    s.layers.insert(s.layers.end(), {{a, "ReLU", {}, 1, 1}, {b, "ReLU", {}, 1, 1}, {c, "Add", {}, 1, 1}});
    s.wires.insert(s.wires.end(), {{at, 0, a, 0}, {at, 0, b, 0}, {a, 0, c, 0}, {b, 0, c, 1}});
    at = c;
  }
  BuilderModel m;
  m.set_spec(s, 1);
  EXPECT_FALSE(m.connect(at, 0, "flat", 0)) << "a circle";
  EXPECT_TRUE(m.connect("flat", 0, "c59", 1));
}

}  // namespace
}  // namespace tenon::views
