// How the columns of a table share its width, and how the names in them are shortened.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "views/shared/column_widths.h"
#include "views/shared/name_shortener.h"

namespace tenon::views {
namespace {

int sum(const std::vector<int>& widths) { return std::accumulate(widths.begin(), widths.end(), 0); }

TEST(ColumnWidths, NothingIsCutWhereThereIsRoom) {
  const std::vector<ColumnNeed> needs{{50, 40, true}, {120, 60, false}, {90, 60, false}, {70, 40, true}};
  EXPECT_EQ(column_widths(needs, 330), (std::vector<int>{50, 120, 90, 70}));
  EXPECT_EQ(column_widths(needs, 660), (std::vector<int>{100, 240, 180, 140})) << "each gets its part of what is left";
  EXPECT_EQ(column_widths({{0, 0, false}, {0, 0, true}}, 30), (std::vector<int>{30, 0}));
}

TEST(ColumnWidths, VeryLongWordsTakeWhatIsLeftBeforeTheFirstOnes) {
  const std::vector<ColumnNeed> needs{{120, 60, false, 120}, {70, 40, true}, {200, 60, false, 500}};
  EXPECT_EQ(column_widths(needs, 390), (std::vector<int>{120, 70, 200}));
  EXPECT_EQ(column_widths(needs, 590), (std::vector<int>{120, 70, 400}));
  EXPECT_EQ(column_widths(needs, 1380), (std::vector<int>{240, 140, 1000}));
}

TEST(ColumnWidths, WordsOfTheLastColumnsAreCutFirstAndNumbersNever) {
  const std::vector<ColumnNeed> needs{{50, 40, true}, {120, 60, false}, {90, 60, false}, {70, 40, true}};
  EXPECT_EQ(column_widths(needs, 310), (std::vector<int>{50, 120, 70, 70}));
  EXPECT_EQ(column_widths(needs, 280), (std::vector<int>{50, 100, 60, 70}));
  EXPECT_EQ(column_widths(needs, 100), (std::vector<int>{50, 60, 60, 70})) << "then the table scrolls";
  for (int room = 240; room < 900; ++room) EXPECT_EQ(sum(column_widths(needs, room)), room);
  EXPECT_TRUE(column_widths({}, 100).empty());
  EXPECT_EQ(column_widths({{50, 40, true}}, 200), std::vector<int>{50}) << "there are no words";
}

TEST(ColumnWidths, LongWordsAreCutToOneWidthBeforeShortOnes) {
  const std::vector<ColumnNeed> needs{{264, 88, false}, {210, 88, false}, {95, 88, false}, {115, 88, false}};
  EXPECT_EQ(column_widths(needs, 660), (std::vector<int>{240, 210, 95, 115}));
  EXPECT_EQ(column_widths(needs, 620), (std::vector<int>{205, 205, 95, 115}));
  EXPECT_EQ(column_widths(needs, 501), (std::vector<int>{146, 145, 95, 115}));
  EXPECT_EQ(column_widths(needs, 460), (std::vector<int>{132, 132, 95, 101}));
  EXPECT_EQ(column_widths(needs, 380), (std::vector<int>{116, 88, 88, 88}));
  for (int room = 352; room < 900; ++room) EXPECT_EQ(sum(column_widths(needs, room)), room);
}

TEST(ColumnWidths, ShapesStayWholeWhereNamesAreCut) {
  const std::vector<ColumnNeed> needs{{150, 88, false}, {190, 88, false}, {120, 120, true}};  // a list of tensors
  EXPECT_EQ(column_widths(needs, 340), (std::vector<int>{132, 88, 120}));
  EXPECT_EQ(column_widths(needs, 400), (std::vector<int>{140, 140, 120}));
}

TEST(NameShortener, NamesThatDifferStillDoWhenTheyAreShort) {
  std::vector<std::string> names;
  for (int block = 0; block < 12; ++block)
    for (const char* part : {"attention.query", "attention.value", "mlp.up"})
      names.push_back("transformer.blocks." + std::to_string(block) + "." + part);
  const NameShortener shortener(names);
  for (size_t most : {16u, 20u, 24u}) {
    std::set<std::string> shown;
    for (const std::string& name : names) {
      const std::string text = shortener.shorten(name, [&](const std::string& t) { return t.size() <= most + 2; });
      shown.insert(text);
      EXPECT_LE(text.size(), most + 4) << text;
    }
    if (most >= 20) {
      EXPECT_EQ(shown.size(), names.size());
    }
  }
  EXPECT_EQ(shortener.shorten(names[4], [](const std::string& t) { return t.size() < 25; }), "…1.attention.value");
  EXPECT_EQ(shortener.shorten(names[4], [](const std::string&) { return true; }), names[4]);
}

TEST(NameShortener, AKernelIsNoSentence) {
  EXPECT_TRUE(is_sentence("overlap it (larger buckets), accumulate gradients, or send lower precision"));
  EXPECT_FALSE(is_sentence("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, 2, 3>"));
  EXPECT_FALSE(
      is_sentence("void at::native::(anonymous namespace)::softmax<float, 10>(float*, float const*, int, int)"));
  EXPECT_FALSE(is_sentence("a >) < b c d e"));
}

TEST(NameShortener, TheCommonEndGoesBeforeWhatDiffers) {
  const NameShortener shortener({"weight/momentum", "bias/momentum", "weight", "bias"});
  auto short_one = [](const std::string& t) { return t.size() < 12; };
  EXPECT_EQ(shortener.shorten("weight/momentum", short_one), "weight/…");
  EXPECT_EQ(shortener.shorten("bias/momentum", short_one), "bias/…");
}

TEST(NameShortener, OnePartIsNotTouched) {
  const NameShortener shortener({"optimizer state", "activation"});
  auto never = [](const std::string&) { return false; };
  EXPECT_EQ(shortener.shorten("optimizer state", never), "optimizer state");
  EXPECT_EQ(shortener.shorten("", never), "");
  EXPECT_EQ(shortener.shorten("takes 12.5 ms of it", never), "takes 12.5 ms of it") << "a sentence is no path";
  EXPECT_EQ(shortener.shorten("not.among.them", never), "…them");
}

}  // namespace
}  // namespace tenon::views
