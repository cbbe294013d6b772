#include "views/weights/weights_model.h"

#include <gtest/gtest.h>

namespace tenon::views {
namespace {

WeightMap map(const Recipe& recipe) {
  std::vector<ModelTensor> model = {
      {"fc1.weight", {4, 2}, false, true}, {"fc1.bias", {4}, false, true}, {"fc2.weight", {2, 4}}, {"fc2.bias", {2}}};
  std::vector<GivenTensor> file = {{"fc1.weight", "F32", {4, 2}, {}, {}},
                                   {"fc1.bias", "F32", {4}, {}, {}},
                                   {"top.weight", "F16", {2, 4}, {}, {}},
                                   {"fc2.bias", "F32", {3}, {}, {}}};
  return map_weights(std::move(model), std::move(file), WeightRules(recipe));
}

TEST(WeightsModel, shows_every_tensor_with_what_becomes_of_it) {
  WeightsModel m;
  m.set_map(map(Recipe()), "a.safetensors, a safetensors file");
  const Table t = m.table();
  ASSERT_EQ(t.rows.size(), 4u);  // of the file's tensors each has met one of the model
  const auto cells = [&](size_t row) {
    std::vector<std::string> all;
    for (const Table::Cell& c : t.rows[row].cells) all.push_back(c.text);
    return all;
  };
  EXPECT_EQ(cells(0),
            (std::vector<std::string>{"fc1.weight", "fc1.weight", "by name", "frozen", "[4, 2]", "[4, 2]", "F32"}));
  EXPECT_EQ(cells(2), (std::vector<std::string>{"fc2.weight", "top.weight", "suggested by shape", "yes", "[2, 4]",
                                                "[2, 4]", "F16"}));
  EXPECT_EQ(t.rows[3].cells[2].text, "wrong shape");
  EXPECT_EQ(t.rows[3].cells[2].mark, Ink::bad);
  EXPECT_TRUE(t.rows[0].selection.same(Selection::module("fc1")));
  EXPECT_EQ(m.said(),
            "2 of 4 tensors of the model are taken (2 by name); 1 suggested by "
            "shape, 1 wrong shape; 12 of 22 parameters are frozen");
  m.set_map(map_weights({{"fc.bias", {2}}}, {}, WeightRules(Recipe())), "");
  EXPECT_EQ(m.table().rows[0].cells[2].text, "from the seed");
  EXPECT_EQ(m.said(), "the seed gives every value");
}

TEST(WeightsModel, a_tensor_goes_only_where_its_shape_fits) {
  WeightsModel m;
  m.set_map(map(Recipe()), "a");
  const Table t = m.table();
  const int top = m.source_of(t.rows[2]);
  ASSERT_EQ(top, 2);
  EXPECT_EQ(m.targets(top), std::vector<std::string>{"fc2.weight"});
  EXPECT_EQ(m.target(top), "") << "it is only suggested";
  EXPECT_FALSE(m.left_out(top));
  Recipe r = m.sent(Recipe(), top, "fc2.weight");
  EXPECT_EQ(r.text("init.map"), "top.weight=fc2.weight");
  m.set_map(map(r), "a");
  EXPECT_EQ(m.target(top), "fc2.weight");
  EXPECT_EQ(m.table().rows[2].cells[2].text, "by rule");
  r = m.sent(r, top, "");
  EXPECT_EQ(r.text("init.map"), "top.weight=");
  m.set_map(map(r), "a");
  EXPECT_EQ(m.target(top), "");
  EXPECT_TRUE(m.left_out(top));
  EXPECT_EQ(m.table().rows.back().cells[2].text, "left out");
}

TEST(WeightsModel, another_file_keeps_nothing_that_was_said_of_the_first) {
  Recipe r;
  for (const auto& [key, value] : {std::pair{"init.from", "a.pt"},
                                   {"init.map", "a=b"},
                                   {"init.sha256", "00"},
                                   {"init.missing", "keep"},
                                   {"init.freeze", "fc1.*"}})
    r.set(key, value);
  const Recipe other = WeightsModel::begun_with(r, "b.pt");
  EXPECT_EQ(other.text("init.from"), "b.pt");
  EXPECT_EQ(other.text("init.map"), "");
  EXPECT_EQ(other.text("init.sha256"), "");
  EXPECT_EQ(other.text("init.freeze"), "fc1.*");
  EXPECT_NE(WeightsModel::said_by(r), WeightsModel::said_by(other));
  const Recipe anew = WeightsModel::begun_anew(r);
  EXPECT_EQ(anew.text("init.from"), "");
  EXPECT_EQ(anew.text("init.missing"), "fail");
  EXPECT_EQ(anew.text("init.freeze"), "fc1.*");
}

}  // namespace
}  // namespace tenon::views
