#include "views/distributions/distributions_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tracing/record/step_record.h"

namespace tenon::views {
namespace {

using projects::Distributions;
using projects::ParameterSpreads;

/// Numbers between -width and width about `middle`.
projects::Spread about(float middle, float width, int64_t bad = 0) {
  projects::Spread s;
  s.count = 100;
  s.bad = bad;
  for (size_t q = 0; q < s.quantiles.size(); ++q) s.quantiles[q] = middle + width * (static_cast<float>(q) - 3) / 3;
  s.mean = middle;
  s.deviation = width / 2;
  s.norm = 10.0 * static_cast<double>(width);
  return s;
}

/// "fast" moves by 5 % a step, "well" by 0.1 %, "slow" by 1e-7, "sick" has NaN, "still" is frozen.
std::shared_ptr<Distributions> five_parameters(int64_t id = 1) {
  auto d = std::make_shared<Distributions>();
  d->id = id;
  d->run = "first";
  d->steps = 40;
  d->wanted = 5;
  d->checkpoints = 5;
  for (const char* name : {"a.fast", "a.well", "b.slow", "b.sick", "still"}) d->parameters.push_back({name, 100});
  for (const int64_t step : {1, 11, 21, 31, 40}) {
    Distributions::Point p{.step = step, .replayed = step != 40, .parameters = {}};
    const float share[] = {0.05f, 1e-3f, 1e-7f, 1e-3f};
    for (int i = 0; i < 5; ++i) {
      ParameterSpreads s;
      s.weight =
          about(0.1f * static_cast<float>(i), 1 + 0.01f * static_cast<float>(step), i == 3 && step >= 21 ? 7 : 0);
      if (p.replayed && i < 4) {
        s.gradient = about(0, 0.5f);
        s.update = about(0, static_cast<float>(s.weight.norm) * share[i] / 10);
      }
      p.parameters.push_back(s);
    }
    d->points.push_back(std::move(p));
  }
  return d;
}

struct DistributionsPicture : ::testing::Test {
  DistributionsModel m;
  Selection chosen;
  void SetUp() override {
    m.on_select = [this](const Selection& s) {
      chosen = s;
      m.set_selection(s);
    };
    m.set_distributions(five_parameters());
    m.frame({900, 600});
  }
  bool says(const std::string& text) {
    const auto all = m.frame({900, 600}).texts();
    return std::any_of(all.begin(), all.end(), [&](const auto& t) { return t.find(text) != std::string::npos; });
  }
  PointerEvent over(int64_t step, PointerEvent::Type type, DistributionsModel::Side side) {
    for (const auto& t : m.last().targets())
      if (t.hit == Hit{DistributionsModel::plot, static_cast<int64_t>(side)})
        return {type,
                type == PointerEvent::Type::move ? Button::none : Button::left,
                m.axis().to_px(static_cast<double>(step)),
                t.box.y + t.box.h / 3,
                {}};
    ADD_FAILURE() << "no plot";
    return {};
  }
};

constexpr auto kWeightsChart = DistributionsModel::Side::weights, kGradientsChart = DistributionsModel::Side::gradients,
               kUpdatesChart = DistributionsModel::Side::updates;

TEST_F(DistributionsPicture, the_table_says_what_moves_and_what_does_not) {
  const Table t = m.parameters();
  ASSERT_EQ(t.rows.size(), 5u);
  EXPECT_EQ(t.rows[0].cells[1].text, "-1.30");
  EXPECT_EQ(t.rows[0].cells[1].mark, Ink::warning);
  EXPECT_EQ(t.rows[1].cells[1].text, "-3.00");
  EXPECT_EQ(t.rows[1].cells[1].mark, Ink::good);
  EXPECT_EQ(t.rows[2].cells[1].text, "-7.00");
  EXPECT_EQ(t.rows[2].cells[1].mark, Ink::warning);
  EXPECT_EQ(t.rows[3].cells[1].mark, Ink::bad);
  EXPECT_EQ(t.rows[4].cells[1].text, "–");
  EXPECT_EQ(t.rows[4].cells[1].mark, Ink::none);
  const char* remarks[] = {"moves fast", "", "hardly moves", "not finite", "frozen"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(t.rows[i].cells[5].text, remarks[i]) << i;
  auto d = five_parameters();
  for (auto& p : d->points) p.parameters[1].gradient.zeros = p.parameters[1].gradient.count;
  m.set_distributions(d);
  EXPECT_EQ(m.parameters().rows[1].cells[5].text, "gradient all 0");
  EXPECT_EQ(m.parameters().rows[1].cells[1].mark, Ink::warning);
  EXPECT_EQ(m.parameters().rows[4].cells[5].text, "frozen") << "no gradient is not one of zeros";
  EXPECT_NE(t.rows[0].cells[1].tip.str().find("above 1e-2"), std::string::npos);
  EXPECT_EQ(t.rows[4].cells[2].text, "–") << "no gradient";
  EXPECT_EQ(m.list().columns.size(), 5u);
  EXPECT_EQ(m.list().rows[0].cells[0].text, "a.fast");
  EXPECT_EQ(m.headline(), "first: weights after step 40, gradients and updates of step 31 · 5 points");
}

TEST_F(DistributionsPicture, a_run_of_which_little_is_known_has_a_table_all_the_same) {
  auto d = five_parameters();
  d->points = {d->points.back()};
  d->wanted = 5;
  m.set_distributions(d);
  EXPECT_EQ(m.headline(), "first: weights after step 40 · 1 point of 5");
  EXPECT_EQ(m.parameters().rows[0].cells[1].text, "–");
  EXPECT_EQ(m.parameters().rows[0].cells[5].text, "");
  EXPECT_TRUE(says("Known once a step was replayed"));
  EXPECT_EQ(m.points("a.well").rows.size(), 1u);
  m.set_distributions(nullptr);
  EXPECT_TRUE(m.parameters().rows.empty());
  EXPECT_TRUE(m.frame({900, 600}).prims().empty());
  for (const char* key : {"Up", "Left", "L", "Return"}) EXPECT_FALSE(m.key({key, "", {}})) << key;
}

TEST_F(DistributionsPicture, three_charts_stand_in_any_size_and_nothing_over_anything) {
  for (const Size size :
       {Size{900, 600}, Size{520, 640}, Size{900, 200}, Size{380, 150}, Size{1500, 900}, Size{90, 40}})
    for (const auto& p : m.distributions()->parameters) {
      m.choose(p.name);
      const Scene& s = m.frame(size);
      EXPECT_TRUE(s.overlaps().empty()) << size.w << " x " << size.h << ": " << s.overlaps().front();
    }
  m.choose("a.well");
  for (const Size size : {Size{470, 260}, Size{560, 190}, Size{400, 240}}) {  // as low as in a dock below
    int charts = 0;
    m.frame(size);
    for (const auto& t : m.last().targets()) charts += t.hit.kind == DistributionsModel::plot;
    EXPECT_EQ(charts, 3) << size.w << " x " << size.h;
  }
  for (const char* text : {"Weights", "Gradients", "Updates", "Step", "a.well"}) EXPECT_TRUE(says(text)) << text;
  m.choose("still");
  EXPECT_TRUE(says("The parameter is frozen"));
}

TEST_F(DistributionsPicture, what_is_not_finite_is_a_red_tick) {
  const auto ticks = [&] {
    int n = 0;
    for (const auto& p : m.frame({900, 600}).prims()) n += p.kind == Scene::Kind::rect && p.fill == Ink::bad;
    return n;
  };
  m.choose("a.well");
  EXPECT_EQ(ticks(), 0);
  m.choose("b.sick");
  EXPECT_EQ(ticks(), 3);
  EXPECT_TRUE(says("7 of 100 not finite"));
  EXPECT_NE(m.summary().find("not finite"), std::string::npos);
}

TEST_F(DistributionsPicture, the_pointer_reads_out_and_a_click_is_a_step) {
  m.pointer(over(12, PointerEvent::Type::move, kGradientsChart));
  EXPECT_TRUE(says("step 11 · median 0"));
  EXPECT_TRUE(says("5–95 % -0.3333 to 0.3333"));
  EXPECT_TRUE(m.pointer(over(12, PointerEvent::Type::press, kGradientsChart)));
  EXPECT_TRUE(m.pointer(over(12, PointerEvent::Type::release, kGradientsChart)));
  EXPECT_TRUE(chosen.same(Selection::step(11)));
  EXPECT_TRUE(m.pointer({PointerEvent::Type::leave, Button::none, 0, 0, {}}));
  for (const auto& [key, step] : std::vector<std::pair<const char*, int64_t>>{
           {"Right", 21}, {"End", 40}, {"Right", 40}, {"Left", 31}, {"Home", 1}, {"Left", 1}, {"Return", 1}}) {
    EXPECT_TRUE(m.key({key, "", {}}));
    EXPECT_TRUE(chosen.same(Selection::step(step))) << key << ": " << to_text(chosen);
  }
}

TEST_F(DistributionsPicture, dragging_zooms_and_a_double_click_shows_all) {
  m.pointer(over(10, PointerEvent::Type::press, kUpdatesChart));
  m.pointer(over(30, PointerEvent::Type::move, kUpdatesChart));
  m.pointer(over(30, PointerEvent::Type::release, kUpdatesChart));
  EXPECT_NEAR(m.axis().lo, 10, 0.5);
  EXPECT_NEAR(m.axis().hi, 30, 0.5);
  EXPECT_FALSE(chosen) << "a drag is no click";
  m.frame({900, 600});
  m.pointer(over(20, PointerEvent::Type::double_click, kUpdatesChart));
  EXPECT_TRUE(m.axis().fitted());
  const PointerEvent e = over(20, PointerEvent::Type::move, kWeightsChart);
  EXPECT_TRUE(m.wheel({e.x, e.y, 0, 1, {}}));
  EXPECT_LT(m.axis().span(), 40);
  EXPECT_TRUE(m.key({"F", "", {}}));
  EXPECT_TRUE(m.axis().fitted());
}

TEST_F(DistributionsPicture, an_axis_is_logarithmic_where_few_numbers_lie_far_outside_or_as_told) {
  EXPECT_FALSE(m.log(kGradientsChart));
  auto d = five_parameters();
  for (auto& p : d->points) p.parameters[0].gradient.quantiles.back() = 500;
  m.set_distributions(d);
  EXPECT_TRUE(m.log(kGradientsChart));
  EXPECT_FALSE(m.log(kWeightsChart));
  EXPECT_TRUE(says("100"));
  EXPECT_TRUE(m.last().overlaps().empty());
  for (const auto& t : m.last().targets())
    if (t.hit == Hit{DistributionsModel::log_toggle, 1})
      m.pointer({PointerEvent::Type::press, Button::left, t.box.x + 3, t.box.y + 3, {}});
  EXPECT_FALSE(m.log(kGradientsChart));
  EXPECT_TRUE(m.key({"L", "l", {}}));
  EXPECT_TRUE(m.log(kGradientsChart) && m.log(kWeightsChart) && m.log(kUpdatesChart));
}

TEST_F(DistributionsPicture, the_parameter_is_the_windows_selection_both_ways) {
  int told = 0;
  m.on_choose = [&] { ++told; };
  EXPECT_EQ(m.chosen(), "a.fast");
  m.set_selection(Selection::module("b", "builder"));
  EXPECT_EQ(m.chosen(), "b.slow");
  m.choose("b.sick");
  m.set_selection(Selection::module("b", "builder"));
  EXPECT_EQ(m.chosen(), "b.sick") << "it is of the module";
  m.set_selection(Selection::module("nowhere", "builder"));
  m.set_selection({});
  EXPECT_EQ(m.chosen(), "b.sick");
  EXPECT_TRUE(m.selection_of("b.sick").same(Selection::module("b")));
  EXPECT_EQ(told, 2);

  auto record = std::make_shared<tracing::StepRecord>();
  for (const char* name : {"x", "a.well", "grad of b.slow"}) {
    record->tensors.emplace_back();
    record->tensors.back().name = name;
  }
  record->grad_nodes.emplace_back();
  record->grad_nodes.back().leaf = true;
  record->grad_nodes.back().name = "still";
  m.set_step(Links(record));
  EXPECT_TRUE(m.selection_of("a.well").same(Selection::tensor(1)));
  m.set_selection(Selection::tensor(2, "tensor"));
  EXPECT_EQ(m.chosen(), "b.slow");
  m.set_selection(Selection::grad_node(0, "autograd"));
  EXPECT_EQ(m.chosen(), "still");
  for (const int64_t id : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) m.set_selection(Selection::tensor(id, "tensor"));
  EXPECT_EQ(m.chosen(), "still");

  m.key({"Up", "", {}});
  EXPECT_EQ(m.chosen(), "b.sick");
  EXPECT_TRUE(chosen.same(Selection::module("b")));
  // Another run: what was chosen stays where it has it.
  m.set_distributions(five_parameters(2));
  EXPECT_EQ(m.chosen(), "b.sick");
}

TEST_F(DistributionsPicture, the_steps_of_a_parameter_are_rows) {
  const Table t = m.points("a.well");
  ASSERT_EQ(t.rows.size(), 5u);
  EXPECT_TRUE(t.rows[1].selection.same(Selection::step(11)));
  EXPECT_EQ(t.rows[1].cells[1].text, "-3.00");
  EXPECT_EQ(t.columns.size(), t.rows[0].cells.size());
  EXPECT_EQ(t.rows[4].cells.back().text, "–");
  EXPECT_TRUE(m.points("nobody").rows.empty());
}

}  // namespace
}  // namespace tenon::views
