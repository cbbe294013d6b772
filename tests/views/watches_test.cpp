// Watches in views: what is offered while one is typed, the table of what they saw, marks on the curves.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/train/watch.h"
#include "tests/views/scenes.h"
#include "views/shared/watch_words.h"
#include "views/training/training_model.h"
#include "views/watches/watches_table.h"

namespace tenon::views {
namespace {

std::vector<std::string> offered(const std::string& text) {
  return watch_words(text, text.size(), {"fc1", "fc2", "relu"}).words;
}
bool offers(const std::string& text, const std::string& word) {
  const auto all = offered(text);
  return std::find(all.begin(), all.end(), word) != all.end();
}

TEST(WatchWords, are_what_may_stand_at_the_place) {
  EXPECT_TRUE(offers("", "loss") && offers("", "max_abs(") && offers("lo", "loss") && !offers("lo", "lr"));
  EXPECT_TRUE(offers("loss > 1; no", "norm(")) << "behind another one";
  EXPECT_TRUE(offers("norm(", "grad(") && offers("norm(", "loss") && offers("norm(g", "grad("));
  EXPECT_EQ(offered("ratio("), std::vector<std::string>{"update("});
  EXPECT_EQ(offered("norm(grad(f"), (std::vector<std::string>{"fc1", "fc2"}));
  EXPECT_TRUE(offers("norm(grad(", "*"));
  EXPECT_EQ(offered("loss o"), std::vector<std::string>{"outside"});
  EXPECT_EQ(offered("loss > m"), std::vector<std::string>{"median("});
  EXPECT_EQ(offered("loss > 3 * "), std::vector<std::string>{"median("});
  EXPECT_TRUE(offers("loss > median(l", "loss"));
  EXPECT_EQ(offered("loss > 3 e"), std::vector<std::string>{"every"});
  EXPECT_EQ(offered("loss > 3: p"), std::vector<std::string>{"pause"});
  EXPECT_EQ(offered("loss > 3: x"), std::vector<std::string>{});
  EXPECT_EQ(watch_words("loss > 3: pau", 13, {}).begin, 10u);
  EXPECT_TRUE(watch_words("loss", 4, {}).whole);
  // Whoever takes the words that are offered writes a watch.
  EXPECT_NO_THROW(parse_watch("norm(grad(fc1)) > 3 * median(loss, 5) every 2: pause"));
}

projects::WatchSummary summary(const std::string& condition, int64_t held, double share) {
  projects::WatchSummary s{.condition = condition, .first = {}, .last = {}};
  s.held = held;
  s.began = held > 0;
  s.first.step = 12;
  s.first.at = "fc1.weight";
  s.first.value = 3.5;
  s.first.bound = 3;
  s.last.step = 12 + held - 1;
  s.share = share;
  return s;
}

TEST(WatchesTable, a_row_leads_to_the_first_step_at_which_it_held) {
  const std::vector<projects::WatchSummary> all = {summary("norm(grad(*)) > 3", 4, 0.0125), summary("loss > 9", 0, -1)};
  const Table t = watches_table(all);
  ASSERT_EQ(t.rows.size(), 2u);
  for (const Table::Row& r : t.rows) EXPECT_EQ(r.cells.size(), t.columns.size());
  EXPECT_EQ(t.rows[0].selection.kind, Selection::Kind::step);
  EXPECT_EQ(t.rows[0].selection.id, 12);
  EXPECT_EQ(t.rows[0].cells[3].text, "fc1.weight is 3.500 (bound 3)");
  EXPECT_EQ(t.rows[0].cells[7].text, "1.25 %");
  EXPECT_EQ(t.rows[1].selection.kind, Selection::Kind::none);
  EXPECT_EQ(watches_text(all), "2 watches, 1 of which saw something; looking takes 1.25 % of a step");
  EXPECT_EQ(watches_text({all[1]}), "1 watch, which saw nothing");
}

TEST(WatchMarks, stand_on_the_curves_and_lead_to_their_step) {
  std::vector<WatchHit> hits;
  for (const int64_t step : {3, 40, 41, 90}) {
    WatchHit h{"loss > 1", step, "loss", 2, 1, true, WatchAction::mark};
    hits.push_back(h);
  }
  hits[1].begins = false;
  hits[3].action = WatchAction::count;
  hits.insert(hits.begin() + 3, {"lr > 1", 41, "lr", 2, 1, true, WatchAction::pause});
  const auto marks = TrainingModel::marks_of(hits);
  ASSERT_EQ(marks.size(), 2u) << "what goes on holding and what is counted is no mark";
  EXPECT_EQ(marks[1].step, 41);
  EXPECT_EQ(marks[1].text, "loss > 1 at step 41: loss is 2 (bound 1)\nlr > 1 at step 41: lr is 2 (bound 1)");
  TrainingModel m;
  m.set_run("r", 100);
  std::vector<projects::MetricRow> rows;
  for (int64_t i = 1; i <= 100; ++i) rows.push_back({"loss", {i, 0.1, 1.0 / static_cast<double>(i)}});
  m.add(rows);
  m.set_marks(marks);
  m.fit();
  m.frame({800, 400});
  int64_t chosen = 0;
  m.on_select = [&](const Selection& s) { chosen = s.id; };
  int found = 0;
  for (const auto& t : m.last().targets())
    if (t.hit.kind == TrainingModel::watch_mark && t.hit.id == 41) {
      EXPECT_NE(m.last().string(t.tip).find("lr > 1 at step 41"), std::string::npos);
      PointerEvent e;
      e.type = PointerEvent::Type::press;
      e.button = Button::left;
      e.x = t.box.x + t.box.w / 2;
      e.y = t.box.y + t.box.h / 2;
      EXPECT_TRUE(m.pointer(e));
      ++found;
    }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(chosen, 41);
  EXPECT_NE(m.summary().find("watches marked 2 steps, the last one is 41"), std::string::npos) << m.summary();
  // From far they are one, which leads to the first.
  std::vector<TrainingModel::Mark> many;
  for (int64_t i = 50; i < 60; ++i) many.push_back({i, "here"});
  m.set_marks(many);
  m.frame({120, 200});
  for (const auto& t : m.last().targets()) {
    if (t.hit.kind != TrainingModel::watch_mark || t.hit.id != 50) continue;
    EXPECT_NE(m.last().string(t.tip).find("more up to step"), std::string::npos) << m.last().string(t.tip);
  }
}

}  // namespace
}  // namespace tenon::views
