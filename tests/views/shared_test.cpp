#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/views/step_fixture.h"
#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/scene_svg.h"
#include "views/shared/selection.h"
#include "views/shared/series.h"
#include "views/shared/table.h"
#include "views/shared/text_widths.h"
#include "views/shared/tokens.h"

namespace tenon::views {

/// WCAG 2: level AA, and AAA for those who chose high contrast.
double least(ThemeName t) { return t == ThemeName::contrast ? 7 : 4.5; }
constexpr ThemeName kAll[] = {ThemeName::dark, ThemeName::light, ThemeName::contrast};

TEST(Tokens, TextIsReadableOnEverySurface) {
  for (ThemeName t : kAll)
    for (Ink surface : {Ink::base, Ink::panel, Ink::raised})
      for (Ink ink : {Ink::text, Ink::secondary, Ink::accent, Ink::bad_text, Ink::warning_text, Ink::good_text})
        EXPECT_GE(contrast(color(ink, t), color(surface, t)), least(t))
            << name(ink) << " on " << name(surface) << " in theme " << int(t);
}

TEST(Tokens, CurvesAreLouderThanTheGridAndUnlikeTheCursor) {
  for (ThemeName t : kAll) {
    const Rgb panel = color(Ink::panel, t);
    const double grid = contrast(color(Ink::grid, t), panel);
    EXPECT_GE(grid, 1.1) << "it is there";
    EXPECT_LE(grid, contrast(color(Ink::line, t), panel)) << "a grid is no border";
    for (int i = 0; i < 8; ++i) {
      const Ink ink = static_cast<Ink>(static_cast<int>(Ink::series0) + i);
      EXPECT_GE(contrast(color(ink, t), panel), 3) << name(ink) << " in theme " << int(t);
      EXPECT_GE(contrast(color(ink, t), panel), 2 * grid) << name(ink) << " in theme " << int(t);
      EXPECT_FALSE(color(ink, t) == color(Ink::text, t)) << name(ink) << " is the cursor's colour in theme " << int(t);
    }
    EXPECT_GE(contrast(color(Ink::baseline, t), panel), 2 * grid);
  }
}

TEST(Tokens, TextOnColouredFillsIsReadable) {
  for (int i = 0; i < kInks; ++i) {
    Ink ink = static_cast<Ink>(i);
    std::string n = name(ink);
    if (n.starts_with("phase-") || n.starts_with("memory-") || ink == Ink::bad)
      for (ThemeName t : kAll) {
        if (ink == Ink::memory_other) continue;  // carries no text
        EXPECT_GE(contrast(color(on_fill(ink), t), color(ink, t)), least(t)) << n << " in theme " << int(t);
      }
  }
  for (ThemeName t : kAll) EXPECT_GE(contrast(color(Ink::on_accent, t), color(Ink::accent, t)), least(t));
}

TEST(Tokens, ContrastOfBlackAndWhite) { EXPECT_NEAR(contrast(rgb(0), rgb(0xFFFFFF)), 21, 1e-9); }

TEST(Format, NumbersCarryUnitsAndAtMostFourDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024 * 1024 - 10), "1.00 MiB");
  EXPECT_EQ(format_bytes(40055000), "38.2 MiB");
  EXPECT_EQ(format_ns(640), "640 ns");
  EXPECT_EQ(format_ns(1240000), "1.24 ms");
  EXPECT_EQ(format_ns(999'999), "1.00 ms");
  EXPECT_EQ(format_count(12400), "12.4 k");
  EXPECT_EQ(format_rate(412, "samples"), "412 samples/s");
  EXPECT_EQ(format_percent(0.382), "38 %");
  EXPECT_EQ(format_percent(0.004), "0.4 %");
  EXPECT_EQ(format_grouped(1240), "1,240");
  EXPECT_EQ(format_grouped(-1234567), "-1,234,567");
  EXPECT_EQ(format_seconds(192), "3 min 12 s");
}

TEST(Format, ValuesOfTensors) {
  EXPECT_EQ(format_value(0.2139999), "0.2140");
  EXPECT_EQ(format_value(-12.3456), "-12.35");
  EXPECT_EQ(format_value(1.5e-7), "1.50e-07");
  EXPECT_EQ(format_value(7), "7");
  EXPECT_EQ(format_value(std::nan("")), "nan");
  EXPECT_EQ(format_value(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(format_exact(0.1), "0.1");
}

TEST(Format, SmallMetricsKeepThreeDigits) {
  EXPECT_EQ(format_metric("learning_rate", 0.00125), "0.00125");
  EXPECT_EQ(format_metric("learning_rate", 0.00202), "0.00202");
  EXPECT_EQ(format_metric("loss", 0.02678), "0.0268");
  EXPECT_EQ(format_metric("loss", 2.34567), "2.346");
  EXPECT_EQ(format_metric("test_accuracy", 0.985), "98.50 %");
}

TEST(Format, NamesAreShortenedInTheMiddle) {
  EXPECT_EQ(elide_middle("features.3.conv2d", 40), "features.3.conv2d");
  EXPECT_EQ(elide_middle("features.3.conv2d", 11), "featu…onv2d");
  EXPECT_EQ(characters(elide_middle("Größenänderung", 7)), 7u);
}

TEST(Format, FuzzyFindsSubsequencesAndPrefersWords) {
  EXPECT_EQ(fuzzy_score("xyz", "Conv2d"), -1);
  EXPECT_GT(fuzzy_score("conv", "Conv2d"), fuzzy_score("conv", "a deconvolution"));
  EXPECT_GE(fuzzy_score("sptl", "Show timeline: step total"), 0);
}

TEST(Format, TicksAreRoundAndCoverTheRange) {
  // One tick alone says nothing of the scale.
  for (const double hi : {4.2e-4, 4.95e-4, 9.9, 21.0, 5.0001, 1000.5}) {
    const Ticks two = nice_ticks(0, hi, 2);
    EXPECT_GE(two.count, 2) << hi;
    EXPECT_LE(two.count, 5) << hi;
    EXPECT_LE(two.at(two.count - 1), hi) << hi;
  }
  EXPECT_EQ(nice_ticks(0, 31.4, 3).step, 20);
  EXPECT_EQ(nice_ticks(0, 31.4, 3.85).step, 10) << "room for almost four is not room for three";
  Ticks t = nice_ticks(0, 2814, 6);
  EXPECT_EQ(t.step, 500);
  EXPECT_EQ(t.count, 6);
  EXPECT_EQ(t.first, 0);
}

TEST(Series, PyramidEqualsBruteForceAndLosesNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Series s;
    std::vector<double> values;
    int n = 1 + static_cast<int>(random() % 3000);
    for (int i = 0; i < n; ++i) {
      double v = random() % 50 == 0 ? std::nan("") : static_cast<double>(random() % 1000) - 500;
      if (random() % 500 == 0) v = 1e9;  // a spike
      s.append(i + 1, v);
      values.push_back(v);
    }
    for (int k = 0; k < 40; ++k) {
      size_t a = random() % n, b = a + random() % (n - a + 1);
      Series::Summary sum = s.summary(a, b);
      int64_t bad = 0, finite = 0;
      double lo = 1e300, hi = -1e300;
      for (size_t i = a; i < b; ++i) {
        if (!std::isfinite(values[i])) {
          ++bad;
          continue;
        }
        ++finite;
        lo = std::min(lo, values[i]);
        hi = std::max(hi, values[i]);
      }
      ASSERT_EQ(sum.bad, bad);
      ASSERT_EQ(sum.finite, finite);
      if (finite) {
        ASSERT_EQ(sum.min, lo);
        ASSERT_EQ(sum.max, hi);
      }
    }
    int64_t bad = 0, finite = 0;
    for (const auto& c : s.columns(0, n + 1, 137)) bad += c.bad, finite += c.finite;
    EXPECT_EQ(bad + finite, n);
  }
}

TEST(Series, TruncateForgetsTheTail) {
  Series s;
  for (int i = 1; i <= 1000; ++i) s.append(i, i);
  s.truncate(600);
  EXPECT_EQ(s.size(), 600u);
  EXPECT_EQ(s.summary(0, 600).max, 600);
  s.append(601, -1);
  EXPECT_EQ(s.summary(0, 601).min, -1);
  EXPECT_EQ(s.nearest(10'000), 600u);
}

TEST(SelectionBus, RemembersAndTellsOnce) {
  SelectionBus bus;
  int told = 0;
  bus.listen([&](const Selection&) { ++told; });
  bus.select(Selection::op(3));
  bus.select(Selection::op(3, "elsewhere"));
  EXPECT_EQ(told, 1);
  bus.select(Selection::tensor(2));
  bus.back();
  EXPECT_TRUE(bus.current().same(Selection::op(3)));
  bus.forward();
  EXPECT_TRUE(bus.current().same(Selection::tensor(2)));
  bus.back();
  bus.select(Selection::step(9));
  EXPECT_FALSE(bus.can_go_forward());
}

TEST(Selection, TextRoundTrips) {
  for (const Selection& s :
       {Selection::op(12), Selection::tensor(3), Selection::grad_node(4), Selection::alloc(5),
        Selection::module("features.3"), Selection::step(120), Selection::run(2), Selection::range(10, 250)})
    EXPECT_TRUE(parse_selection(to_text(s)).same(s)) << to_text(s);
  for (const char* bad : {"", "op", "op:", "op:x", "thing:3", "range:5", "op:3 "})
    EXPECT_FALSE(parse_selection(bad)) << bad;
}

TEST(Links, AnOpItsTensorsNodesAndBlocksBelongTogether) {
  Links l = testing::small_links();
  EXPECT_EQ(l.tensor_of(Selection::op(1)), 2);
  EXPECT_EQ(l.grad_node_of(Selection::op(1)), 4);
  EXPECT_EQ(l.grad_node_of(Selection::op(9)), 4);  // a backward op: the node that ran it
  EXPECT_EQ(l.block_of(Selection::op(1)), 3);
  EXPECT_EQ(l.module_of(Selection::op(1)), "features.0");
  EXPECT_EQ(l.op_of(Selection::alloc(5)), 7u);
  EXPECT_EQ(l.op_of(Selection::grad_node(1)), 4u);
  EXPECT_EQ(l.op_of(Selection::tensor(0)), 1u);        // the data: its first reader
  EXPECT_EQ(l.tensor_of(Selection::grad_node(6)), 1);  // a leaf: the parameter
  EXPECT_EQ(l.backward_of(4), std::vector<uint32_t>{7});
  EXPECT_EQ(l.ops_of(Selection::module("features")), (std::vector<uint32_t>{1, 2, 8, 9}));
  EXPECT_EQ(l.ops_of(Selection::range(0, 60'000)), std::vector<uint32_t>{1});
  EXPECT_EQ(l.aliases_of(3), std::vector<int>{4});
  EXPECT_EQ(l.op_of(Selection::op(99)), 0u);
  EXPECT_EQ(Links().tensor_of(Selection::op(1)), -1);
}

TEST(Axis, ZoomKeepsThePointUnderTheMouseAndStaysInside) {
  Axis a;
  a.x = 100;
  a.w = 1000;
  a.set_full(0, 1e6);
  a.fit();
  double at = a.to_value(350);
  a.zoom(at, 0.1);
  EXPECT_NEAR(a.to_px(at), 350, 1e-3);
  a.pan(-1e9);
  EXPECT_EQ(a.lo, 0);
  a.zoom(5e5, 1e6);
  EXPECT_TRUE(a.fitted());
  a.show(0, 1000);
  a.reveal(9e5, 9.1e5);
  EXPECT_LE(a.lo, 9e5);
  EXPECT_GE(a.hi, 9.1e5);
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  Table t;
  t.columns = {{"a"}, {"b"}};
  t.rows.push_back({{{"x, y"}, {"say \"hi\""}}, {}});
  EXPECT_EQ(t.csv(), "a,b\n\"x, y\",\"say \"\"hi\"\"\"\n");
}

TEST(Table, is_written_as_markdown_and_for_the_clipboard) {
  Table t;
  t.columns = {{"Name"}, {"Bytes", true}};
  t.rows = {{{{"a|b\nc", 0, {}, Ink::none}, Table::Cell::number(3, "3 B")}, {}},
            {{{"tab\there", 0, {}, Ink::none}, Table::Cell::number(12, "12 B")}, {}}};
  EXPECT_EQ(t.markdown(), "| Name | Bytes |\n| --- | ---: |\n| a\\|b c | 3 B |\n| tab here | 12 B |\n");
  EXPECT_EQ(t.tabbed(), "Name\tBytes\na|b c\t3 B\ntab here\t12 B\n");
}

TEST(Format, says_how_long_ago) {
  EXPECT_EQ(format_ago(5), "just now");
  EXPECT_EQ(format_ago(-5), "just now") << "a clock that was put back";
  EXPECT_EQ(format_ago(12 * 60), "12 min ago");
  EXPECT_EQ(format_ago(3600), "1 hour ago");
  EXPECT_EQ(format_ago(5 * 86400), "5 days ago");
  EXPECT_EQ(format_ago(90 * 86400), "3 months ago");
  EXPECT_EQ(format_ago(800 * int64_t{86400}), "2 years ago");
}

TEST(Scene, is_a_document_of_svg_with_its_clips) {
  Scene scene({200, 100});
  scene.rect({10, 10, 50, 20}, Ink::accent, 0.5f, 3);
  scene.clip({0, 0, 100, 50});
  scene.clip({0, 0, 20, 20});
  scene.line({5, 5}, {5, 40}, Ink::line);
  scene.unclip();
  scene.polyline({{0, 0}, {10, 10}, {20, 0}}, Ink::series0, 1.5f);
  scene.unclip();
  scene.unclip();  // one too many ends nothing
  scene.hatch({100, 0, 30, 30}, Ink::bad);
  scene.text({0, 60, 190, 20}, "a < b & \"c\"", Ink::text, Face::body, Align::right);
  scene.text({0, 80, 40, 20}, "features.3.block.conv2d.weight");
  scene.clip({0, 0, 10, 10});  // nobody ends it
  const std::string svg = to_svg(scene, ThemeName::light, "A <title>");
  auto count = [&svg](const std::string& word) {
    int n = 0;
    for (size_t at = svg.find(word); at != svg.npos; at = svg.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("<svg "), 1);
  EXPECT_EQ(count("<g clip-path"), 4);
  EXPECT_EQ(count("</g>"), 4) << "every group ends";
  EXPECT_NE(svg.find("A &lt;title&gt;"), svg.npos);
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), svg.npos);
  EXPECT_NE(svg.find("fill=\"#1a62d6\" fill-opacity=\"0.5\""), svg.npos) << "the theme's ink";
  EXPECT_NE(svg.find("points=\"5.5,5.5 5.5,40.5 \""), svg.npos) << "a hairline on whole pixels";
  EXPECT_NE(svg.find("text-anchor=\"end\""), svg.npos);
  EXPECT_EQ(svg.find("features.3.block.conv2d.weight"), svg.npos) << "shortened, as on the canvas";
  EXPECT_NE(svg.find("…"), svg.npos);
}

TEST(Scene, is_a_picture_in_a_page_that_says_what_its_colours_are) {
  Scene scene({200, 100});
  scene.rect({10, 10, 50, 20}, Ink::series0, 0.5f);
  scene.clip({0, 0, 100, 50});
  scene.text({0, 60, 190, 20}, "0.5", Ink::secondary, Face::mono_small);
  scene.target({10, 10, 50, 20}, {1, 1}, Cursor::hand, "3 of <4>");
  scene.target({10, 40, 50, 20}, {1, 2});
  const std::string svg = to_inline_svg(scene, "Curves", "curves-");
  EXPECT_NE(svg.find("style=\"fill:var(--series-0)\" fill-opacity=\"0.5\""), svg.npos) << svg;
  EXPECT_NE(svg.find("class=\"mono\""), svg.npos);
  EXPECT_NE(svg.find("style=\"fill:var(--secondary)\">0.5</text>"), svg.npos);
  EXPECT_NE(svg.find("<clipPath id=\"curves-c0\">"), svg.npos);
  EXPECT_NE(svg.find("<title>3 of &lt;4&gt;</title>"), svg.npos);
  EXPECT_EQ(svg.find('#' + std::string("5b9dff")), svg.npos) << "no colour of a theme";
  EXPECT_EQ(svg.find("font-family"), svg.npos);
}

TEST(Scene, pictures_for_files_measure_by_average_advances) {
  static float exact = 0;
  measure_text_with([](const std::string&, Face) { return exact += 1; });
  {
    const AverageTextWidths average;
    const AverageTextWidths again;
    EXPECT_EQ(text_width("abc", Face::body), 3 * 6.9f);
  }
  EXPECT_EQ(text_width("abc", Face::body), 1);
  measure_text_with(nullptr);
  EXPECT_EQ(text_width("abc", Face::body), 3 * 6.9f);
}

}  // namespace tenon::views
