#include "views/results/results_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::views {
namespace {

using projects::Prediction;
using projects::Results;

/// Three classes, of which `c` does not occur; `b` is the worse told apart of the other two.
std::shared_ptr<Results> three_classes() {
  auto r = std::make_shared<Results>();
  r->run = "first";
  r->step = 12;
  r->task = "classification";
  r->classes = {"a", "b", "c"};
  r->confusion = {3, 1, 0, 2, 2, 0, 0, 0, 0};
  r->evaluation.samples = 8;
  const int truth[] = {0, 0, 0, 0, 1, 1, 1, 1}, guess[] = {0, 0, 0, 1, 1, 1, 0, 0};
  for (int i = 0; i < 8; ++i) {
    Prediction p;
    p.row = i, p.truth = truth[i], p.guess = guess[i], p.confidence = 0.6, p.loss = 0.1 * i;
    r->predictions.push_back(p);
  }
  auto ranked = [](std::vector<double> shares, int of) {
    std::vector<Ranking::Share> all;
    for (size_t i = 0; i < shares.size(); ++i) all.push_back({shares[i], of < 2 && (i < 4) == (of == 0)});
    return rank_shares(all);
  };
  r->rankings = {ranked({.9, .8, .7, .3, .4, .2, .1, .1}, 0), ranked({.1, .2, .3, .6, .5, .4, .3, .2}, 1),
                 ranked({.1, .1, .1, .1, .1, .1, .1, .1}, 2)};
  return r;
}

ResultsModel curves() {
  ResultsModel m;
  m.set_results(three_classes());
  m.set_page(ResultsModel::Page::curves);
  return m;
}

bool says(const Scene& s, const std::string& text) {
  const auto all = s.texts();
  return std::any_of(all.begin(), all.end(), [&](const std::string& t) { return t.find(text) != std::string::npos; });
}

PointerEvent at(ResultsModel& m, int kind, int64_t id, PointerEvent::Type type, float share = 0.5f) {
  for (const auto& t : m.last().targets())
    if (t.hit.kind == kind && t.hit.id == id)
      return {type,
              type == PointerEvent::Type::press ? Button::left : Button::none,
              t.box.x + t.box.w * share,
              t.box.y + t.box.h / 2,
              {}};
  ADD_FAILURE() << "no target " << kind << " " << id;
  return {};
}

TEST(ResultsModel, areas_stand_in_the_tables) {
  ResultsModel m = curves();
  const Table t = m.ranking();
  ASSERT_EQ(t.rows.size(), 4u);
  EXPECT_EQ(t.rows[0].cells[1].text, "0.9375");
  EXPECT_EQ(t.rows[2].cells[1].text, "–") << "c does not occur";
  EXPECT_EQ(t.rows[3].cells[0].text, "mean of the classes");
  const double mean = (m.results()->rankings[0].auroc + m.results()->rankings[1].auroc) / 2;
  EXPECT_EQ(t.rows[3].cells[1].key, mean);
  const Table classes = m.table();
  ASSERT_EQ(classes.columns.size(), 9u);
  EXPECT_EQ(classes.rows[0].cells[7].text, "0.9375");
  EXPECT_NE(m.headline().find("AUROC " + format_area(mean)), std::string::npos) << m.headline();
}

TEST(ResultsModel, the_class_that_is_told_apart_worst_stands_out_until_another_is_chosen) {
  ResultsModel m = curves();
  m.frame({900, 500});
  EXPECT_EQ(m.ranked_class(), 1u);
  EXPECT_NE(m.summary().find("b against the rest"), std::string::npos) << m.summary();
  EXPECT_TRUE(m.pointer(at(m, ResultsModel::ranked, 0, PointerEvent::Type::press)));
  EXPECT_EQ(m.ranked_class(), 0u);
  EXPECT_TRUE(m.key({"Down", {}, {}}));
  EXPECT_EQ(m.ranked_class(), 1u);
  EXPECT_TRUE(m.key({"Down", {}, {}}));
  EXPECT_TRUE(m.key({"Down", {}, {}}));
  EXPECT_EQ(m.ranked_class(), 2u) << "there is none below";
  m.choose_ranked(77);
  EXPECT_EQ(m.ranked_class(), 2u);
}

TEST(ResultsModel, the_pointer_reads_out_a_threshold) {
  ResultsModel m = curves();
  m.choose_ranked(0);
  m.frame({900, 500});
  EXPECT_TRUE(m.pointer(at(m, ResultsModel::roc, 0, PointerEvent::Type::move, 0.02f)));
  EXPECT_TRUE(says(m.frame({900, 500}), "a ≥ 0.8000: TPR 50.0 %, FPR 0.0 %")) << m.last().dump();
  EXPECT_TRUE(m.pointer(at(m, ResultsModel::precision_recall, 0, PointerEvent::Type::move, 0.99f)));
  EXPECT_TRUE(says(m.frame({900, 500}), "a ≥ 0.1000: precision 50.0 %, recall 100.0 %")) << m.last().dump();
  EXPECT_TRUE(m.pointer({PointerEvent::Type::leave, Button::none, 0, 0, {}}));
  EXPECT_FALSE(says(m.frame({900, 500}), "recall 100.0 %"));
}

TEST(ResultsModel, columns_too_narrow_for_names_have_the_numbers_of_their_rows) {
  auto r = three_classes();
  ResultsModel m;
  m.set_results(r);
  const auto has = [&](const std::string& text) {
    const auto all = m.last().texts();
    return std::count(all.begin(), all.end(), text);
  };
  m.frame({400, 300});
  EXPECT_EQ(has("a"), 2) << "as a row and as a column: " << m.last().dump();
  r = three_classes();
  r->classes = {"Sandalette", "Shirt with sleeves", "Ärmelkleid"};
  m.set_results(r);
  m.frame({200, 300});
  EXPECT_TRUE(m.last().overlaps().empty());
  EXPECT_EQ(has("Sandalette"), 1) << m.last().dump();
  float top = 1e9f;  // of the matrix
  for (const Scene::Target& t : m.last().targets())
    if (t.hit.kind == ResultsModel::cell) top = std::min(top, t.box.y);
  std::string columns;
  for (const Scene::Prim& p : m.last().prims())
    if (p.kind == Scene::Kind::text && p.face == Face::mono_small && p.box.y < top - 4)
      columns += m.last().string(p.first);
  EXPECT_EQ(columns, "012") << m.last().dump();
}

TEST(ResultsModel, curves_lie_over_nothing_at_any_size) {
  ResultsModel m = curves();
  for (const Size s :
       {Size{1400, 700}, Size{900, 500}, Size{560, 420}, Size{420, 700}, Size{300, 200}, Size{160, 90}}) {
    const auto over = m.frame(s).overlaps();
    EXPECT_TRUE(over.empty()) << s.w << " x " << s.h << ": " << over.front();
  }
}

TEST(ResultsModel, the_plots_are_as_large_as_the_room_allows) {
  ResultsModel m = curves();
  const auto plot = [&](Size size) {
    m.frame(size);
    for (const auto& t : m.last().targets())
      if (t.hit.kind == ResultsModel::roc) return std::min(t.box.w, t.box.h);
    return 0.f;
  };
  EXPECT_GT(plot({720, 830}), 270) << "the list goes under them where that leaves them more";
  EXPECT_GT(plot({420, 900}), 280) << "one over the other";
  EXPECT_GT(plot({1400, 500}), 380) << "the list beside them";
}

TEST(ResultsModel, many_classes_show_the_ones_that_are_told_apart_worst) {
  auto r = three_classes();
  for (int c = 3; c < 60; ++c) {
    r->classes.push_back("class " + std::to_string(c));
    Ranking k = r->rankings[0];
    k.auroc = 0.99 - 0.001 * c;
    r->rankings.push_back(k);
  }
  ResultsModel m;
  m.set_results(r);
  m.set_page(ResultsModel::Page::curves);
  const Scene& s = m.frame({900, 400});
  EXPECT_TRUE(says(s, "class 59"));
  EXPECT_FALSE(says(s, "class 3"));
  EXPECT_TRUE(s.overlaps().empty());
}

TEST(ResultsModel, a_task_without_curves_says_why) {
  auto r = std::make_shared<Results>();
  r->task = "regression";
  ResultsModel m;
  m.set_results(r);
  m.set_page(ResultsModel::Page::curves);
  EXPECT_TRUE(says(m.frame({900, 500}), "the task is regression"));
  EXPECT_TRUE(m.ranking().rows.empty());
  EXPECT_FALSE(m.key({"Down", {}, {}}));
  EXPECT_NE(m.summary().find("the task is regression"), std::string::npos);
}

std::shared_ptr<Results> embedded() {
  auto r = three_classes();
  r->embedding.module = "layers.4";
  r->embedding.width = 64;
  r->embedding.plane.share = {0.7, 0.2};
  for (int i = 0; i < 8; ++i) r->embedding.plane.points.push_back({i - 3.5, i % 2 ? 1.0 : -1.0});
  r->embedding.plane.points[6][0] = NAN;
  return r;
}

TEST(ResultsModel, every_sample_is_a_point_that_can_be_chosen) {
  ResultsModel m;
  m.set_results(embedded());
  m.set_page(ResultsModel::Page::embedding);
  Selection chosen;
  m.on_select = [&](const Selection& s) {
    chosen = s;
    m.set_selection(s);
  };
  m.frame({900, 500});
  EXPECT_TRUE(says(m.last(), "what layers.4 reads: 64 numbers a sample · PCA: 70 % and 20 % of their variance"))
      << m.last().dump();
  EXPECT_TRUE(says(m.last(), "A point is a sample."));
  // The arrows go by the first direction; the row without a place is left out.
  for (int64_t row : {0, 1, 2, 3, 4, 5, 7, 7}) {
    EXPECT_TRUE(m.key({"Right", {}, {}}));
    EXPECT_TRUE(chosen.same(Selection::sample(row))) << row;
  }
  EXPECT_TRUE(m.key({"Left", {}, {}}));
  EXPECT_TRUE(chosen.same(Selection::sample(5)));
  EXPECT_TRUE(says(m.frame({900, 500}), "sample 5: b, sure 60.0 %, loss 0.5000")) << m.last().dump();
  EXPECT_NE(m.summary().find("sample 5: b"), std::string::npos);
  // The pointer: the third sample lies left of the middle, below it.
  PointerEvent over = at(m, ResultsModel::embedded, 0, PointerEvent::Type::move);
  const Scene::Target* area = m.last().target_at(over.x, over.y);
  ASSERT_NE(area, nullptr);
  const double scale = 0.94 * std::min(area->box.w / 7.0, area->box.h / 2.0);
  over.x = area->box.x + area->box.w / 2 + static_cast<float>(scale * -0.5);
  over.y = area->box.y + area->box.h / 2 - static_cast<float>(scale * 1);
  EXPECT_TRUE(m.pointer(over));
  EXPECT_TRUE(says(m.frame({900, 500}), "sample 3: a, taken for b, loss 0.3000")) << m.last().dump();
  over.type = PointerEvent::Type::press;
  over.button = Button::left;
  EXPECT_TRUE(m.pointer(over));
  EXPECT_TRUE(chosen.same(Selection::sample(3)));
  EXPECT_TRUE(m.pointer({PointerEvent::Type::leave, Button::none, 0, 0, {}}));
  const Table t = m.embedding();
  ASSERT_EQ(t.rows.size(), 8u);
  EXPECT_EQ(t.rows[3].cells[2].text, "b");
  EXPECT_EQ(t.rows[3].cells[3].key, -0.5);
  // Other places of the same samples: those of other results are not taken.
  auto places = std::make_shared<ResultsModel::Places>(m.places());
  for (auto& p : *places) p[0] = -2 * p[0];
  m.place_by("umap");
  m.set_places(std::make_shared<const projects::Results>(), "umap", places);
  EXPECT_EQ(m.placement(), nullptr);
  m.set_places(m.results(), "tsne", places);
  EXPECT_EQ(m.placement(), nullptr) << "another one is asked for";
  m.set_places(m.results(), "umap", places);
  ASSERT_NE(m.placement(), nullptr);
  EXPECT_STREQ(m.placement()->title, "UMAP");
  EXPECT_EQ(m.embedding().rows[3].cells[3].key, 1);
  for (const Size s : {Size{1400, 700}, Size{900, 500}, Size{560, 420}, Size{300, 200}, Size{160, 90}}) {
    const auto lies_over = m.frame(s).overlaps();
    EXPECT_TRUE(lies_over.empty()) << s.w << " x " << s.h << ": " << lies_over.front();
  }
}

TEST(ResultsModel, without_an_embedding_it_says_why) {
  auto r = three_classes();
  ResultsModel m;
  m.set_results(r);
  m.set_page(ResultsModel::Page::embedding);
  EXPECT_TRUE(says(m.frame({900, 500}), "The model has no layer with weights")) << m.last().dump();
  EXPECT_FALSE(m.key({"Right", {}, {}}));
  EXPECT_TRUE(m.embedding().rows.empty());
}

}  // namespace
}  // namespace tenon::views
