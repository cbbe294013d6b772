// The picture of how far numbers are off: a mark an op, what is beyond the tolerance, keys and the table.
#include "views/numbers/numbers_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace tenon::views {
namespace {

using tracing::OpDifference;

OpDifference off_by(uint32_t seq, const char* op, const char* phase, double relative) {
  OpDifference d;
  d.op = op;
  d.module = "net.fc";
  d.phase = phase;
  d.a = d.b = seq;
  d.total = 10;
  d.differs = relative > 0 ? 4 : 0;
  d.relative = d.largest = relative;
  d.value_a = 1;
  d.value_b = 1 + relative;
  return d;
}

NumbersModel::Shared some_audit() {
  auto a = std::make_shared<projects::Audit>();
  a->run = "r";
  a->step = 3;
  a->a = "1 thread";
  a->b = "in f64";
  a->tolerance = 1e-4;
  a->difference.ops = {off_by(1, "linear", "forward", 0), off_by(2, "relu", "forward", 1e-6),
                       off_by(3, "mul", "backward", 1e-3), off_by(4, "sgd", "optimizer", 1e-2)};
  a->difference.first = 2;
  a->sentence = "The first op that differs is mul.";
  return a;
}

TEST(NumbersModel, marks_stand_as_high_as_the_numbers_are_off) {
  NumbersModel m;
  m.set_audit(some_audit());
  EXPECT_EQ(m.chosen(), 2) << "the first that is beyond";
  const Scene& s = m.frame({800, 300});
  EXPECT_TRUE(s.overlaps().empty());
  const auto texts = s.texts();
  for (const char* word : {"forward", "backward", "optimizer", "1e-4", "0"})
    EXPECT_NE(std::find(texts.begin(), texts.end(), word), texts.end()) << word;
  int squares = 0;
  std::vector<float> tops;
  for (const Scene::Prim& p : s.prims()) {
    squares += p.kind == Scene::Kind::rect && p.fill == Ink::bad;
    if (p.kind == Scene::Kind::rect && p.box.w == p.box.h) tops.push_back(p.box.y + p.box.h / 2);
  }
  EXPECT_EQ(squares, 2) << "those beyond the tolerance";
  ASSERT_EQ(tops.size(), 4u);
  EXPECT_TRUE(std::is_sorted(tops.rbegin(), tops.rend()));
  EXPECT_NE(s.tip_at(tops.size() ? 700.f : 0, 100).find("sgd #4"), std::string::npos);
}

TEST(NumbersModel, keys_and_clicks_choose) {
  NumbersModel m;
  int told = 0;
  m.on_choose = [&] { ++told; };
  EXPECT_FALSE(m.key({"Right", {}, {}})) << "nothing is there";
  m.set_audit(some_audit());
  m.frame({800, 300});
  EXPECT_TRUE(m.key({"Right", {}, {}}));
  EXPECT_EQ(m.chosen(), 3);
  EXPECT_TRUE(m.key({"Right", {}, {}}));
  EXPECT_EQ(m.chosen(), 3) << "the last";
  EXPECT_TRUE(m.key({"Home", {}, {}}));
  EXPECT_EQ(m.chosen(), 0);
  EXPECT_TRUE(m.key({"F", {}, {}}));
  EXPECT_EQ(m.chosen(), 2);
  EXPECT_TRUE(m.pointer({PointerEvent::Type::release, Button::left, 150, 100, {}}));
  EXPECT_EQ(m.chosen(), 0);
  EXPECT_EQ(told, 5);
  m.choose(99);
  EXPECT_EQ(m.chosen(), 0);
}

TEST(NumbersModel, the_table_says_what_the_picture_shows) {
  NumbersModel m;
  EXPECT_TRUE(m.table().rows.empty());
  m.set_audit(some_audit());
  Table t = m.table();
  ASSERT_EQ(t.rows.size(), 4u);
  EXPECT_EQ(t.columns.size(), 6u) << "nothing was carried";
  EXPECT_EQ(t.rows[3].cells[0].mark, Ink::bad);
  EXPECT_EQ(t.rows[1].cells[0].mark, Ink::none);
  auto more = std::make_shared<projects::Audit>(*some_audit());
  more->difference.ops[1].carried = 0.5;
  more->difference.ops[3].why = "it gives the size [2] where the model has [3]";
  more->difference.ops[0].relative = std::numeric_limits<double>::infinity();
  m.set_audit(more);
  t = m.table();
  EXPECT_EQ(t.columns.size(), 7u);
  EXPECT_EQ(t.rows[3].cells[1].text, "–");
  EXPECT_EQ(t.rows[3].cells[0].tip.str(), "it gives the size [2] where the model has [3]");
  for (const Size size : {Size{800, 300}, Size{160, 100}, Size{40, 20}}) m.frame(size);
}

}  // namespace
}  // namespace tenon::views
