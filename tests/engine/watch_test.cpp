// The text of watches: what is read, what is refused and in which words, and the list as a picture of the recipe.
#include "engine/train/watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/train/recipe.h"
#include "engine/train/watch_memory.h"
#include "tests/messages.h"

namespace tenon::watch_tests {
namespace {

using testing_words::error_of;
using R = Watch::Relation;

TEST(Watches, every_measure_of_every_subject_is_read) {
  ASSERT_GE(watch_measures().size(), 10u);
  for (const WatchMeasureDef& m : watch_measures()) {
    EXPECT_FALSE(m.help.empty()) << m.name;
    for (const WatchSubjectText& s : watch_subjects()) {
      const std::string text = m.name + "(" + s.name + "(fc*.weight)) >= 0.5";
      if (m.by_weights && s.subject != WatchSubject::update) {
        EXPECT_SAYS(error_of([&] { parse_watch(text); }), "is of an update");
        continue;
      }
      const Watch w = parse_watch(text);
      EXPECT_EQ(w.measure, &m) << text;
      EXPECT_EQ(w.subject, s.subject) << text;
      EXPECT_EQ(w.of, "fc*.weight");
      EXPECT_EQ(w.condition, text);
      EXPECT_FALSE(w.only_metrics());
    }
    if (m.by_weights) continue;
    const Watch w = parse_watch(m.name + "(loss) > 1");
    EXPECT_TRUE(w.only_metrics() && w.of == "loss" && w.measure == &m);
  }
  for (const std::string& metric : watched_metrics()) {
    const Watch w = parse_watch(metric + " < -1e-3");
    EXPECT_EQ(w.of, metric);
    EXPECT_EQ(w.low, -1e-3);
    EXPECT_EQ(w.of_evaluations(), metric.starts_with("test_"));
  }
  for (const auto& [text, help] : watch_examples()) EXPECT_NO_THROW(parse_watch(text)) << text;
}

TEST(Watches, every_part_of_a_text_is_read) {
  const struct {
    const char* text;
    R relation;
    double low, high;
    std::string median_of;
    int64_t over, every;
    WatchAction action;
  } cases[] = {
      {"loss>3", R::above, 3, 0, "", 0, 1, WatchAction::mark},
      {"  loss  >=  +3 : pause ", R::at_least, 3, 0, "", 0, 1, WatchAction::pause},
      {"loss < 1e-3 every 10", R::below, 1e-3, 0, "", 0, 10, WatchAction::mark},
      {"loss <= -.5 every 2 : count", R::at_most, -0.5, 0, "", 0, 2, WatchAction::count},
      {"lr outside 1e-4..1e-2: checkpoint", R::outside, 1e-4, 1e-2, "", 0, 1, WatchAction::checkpoint},
      {"lr inside 1..2:stop", R::inside, 1, 2, "", 0, 1, WatchAction::stop},
      {"lr inside -2. .. -1.5", R::inside, -2, -1.5, "", 0, 1, WatchAction::mark},
      {"loss > 3*median(loss,50): pause", R::above, 3, 0, "loss", 50, 1, WatchAction::pause},
      {"grad_norm > median( grad_norm , 7 ) every 5", R::above, 1, 0, "grad_norm", 7, 5, WatchAction::mark},
      {"norm(grad( * )) > 0.5 * median(test_loss, 1)", R::above, 0.5, 0, "test_loss", 1, 1, WatchAction::mark},
  };
  for (const auto& c : cases) {
    const Watch w = parse_watch(c.text);
    EXPECT_EQ(w.relation, c.relation) << c.text;
    EXPECT_EQ(w.low, c.low) << c.text;
    EXPECT_EQ(w.high, c.high) << c.text;
    EXPECT_EQ(w.median_of, c.median_of) << c.text;
    EXPECT_EQ(w.median_over, c.over) << c.text;
    EXPECT_EQ(w.every, c.every) << c.text;
    EXPECT_EQ(w.action, c.action) << c.text;
    // The condition is a text of its own, by which the watch is known.
    const Watch again = parse_watch(w.condition);
    EXPECT_EQ(again.condition, w.condition);
    EXPECT_EQ(again.every, w.every);
  }
}

TEST(Watches, a_wrong_text_is_answered_with_the_place_and_what_there_is) {
  const struct {
    const char *text, *says, *also;
  } cases[] = {
      {"", "character 1: a metric or a measure is expected", ""},
      {"los > 1", "there is no metric or measure \"los\"",
       "did you mean loss, test_loss, loss_scale? There are loss, teacher_loss, feature_loss, lr, train_accuracy"},
      {"max_abs > 1", "max_abs is to be of something", "max_abs(grad(*))"},
      {"maxabs(grad(*)) > 1", "character 1: there is no measure \"maxabs\"",
       "did you mean max_abs? There are dead, max"},
      {"max_abs(gradd(*)) > 1", "character 9: there is no subject \"gradd\"",
       "did you mean grad? There are grad, weight"},
      {"max_abs(losss) > 1", "there is no subject \"losss\"", "loss"},
      {"max_abs(grad(fc1) > 1", "\")\" is missing behind what max_abs is of", ""},
      {"max_abs(grad(fc1 > 1", "\")\" is missing behind the pattern of grad", ""},
      {"max_abs(grad()) > 1", "grad is of a pattern of names: grad(*) is of all", ""},
      {"ratio(weight(*)) > 1", "ratio is of an update", "ratio(update(*))"},
      {"loss", "character 5: a comparison is expected", "outside A..B"},
      {"loss = 1", "a comparison is expected", ""},
      {"loss > ", "the bound is to be a number", ""},
      {"loss > x", "character 8: the bound is to be a number", ""},
      {"loss > 1e", "the bound is to be a number", ""},
      {"loss > nan", "the bound is to be a number", ""},
      {"loss > 1e999", "the bound is to be a number", ""},
      {"loss outside 1", "\"..\" is missing behind the lower bound", ""},
      {"loss outside 2..1", "the lower bound is to be less than the upper one", ""},
      {"loss outside 1..x", "the upper bound is to be a number", ""},
      {"loss > 3 * loss", "\"median(METRIC, N)\" is expected behind \"*\"", ""},
      {"loss > 3 * median(los, 5)", "there is no metric \"los\"", "grad_norm"},
      {"loss > median(loss)", "\",\" is missing behind the metric of the median", ""},
      {"loss > median(loss, 0)", "a whole number from 1 to", ""},
      {"loss > median(loss, 2.5)", "a whole number from 1 to", ""},
      {"loss > 1 every 0", "a whole number from 1 to", ""},
      {"loss > 1 every", "is to be a number", ""},
      {"loss > 1 pause", "character 10: nothing was expected here", ": pause"},
      {"loss > 1: sleep", "there is no action \"sleep\"", "count, mark, checkpoint, pause, stop"},
      {"loss > 1: pause now", "character 17: nothing was expected here", ""},
      {"test_loss > 1 every 3", "\"every\" counts steps, and test_loss comes with evaluations", ""},
  };
  for (const auto& c : cases) {
    const std::string said = error_of([&] { parse_watch(c.text); });
    EXPECT_SAYS(said, "watches: \"");
    EXPECT_SAYS(said, c.says);
    EXPECT_SAYS(said, c.also);
  }
  for (const char* text : {"loss > 1 every 3", "loss > 1: pause"})
    EXPECT_SAYS(error_of([&] { parse_condition(text); }), "a condition ends here");
  EXPECT_EQ(parse_condition(" loss > 1 ").condition, "loss > 1");
  EXPECT_SAYS(error_of([] { parse_watches("loss > 1; lr > 2; loss > 1: pause"); }), "\"loss > 1\" is there twice");
  EXPECT_EQ(parse_watches("loss > 1; ;lr > 2;").size(), 2u);
}

TEST(Watches, bounds_hold_as_they_are_written) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto holds = [](const char* text, double value, double median = 0) {
    return parse_watch(text).holds(value, median);
  };
  EXPECT_TRUE(holds("loss > 1", 1.5) && !holds("loss > 1", 1) && holds("loss > 1", inf) && !holds("loss > 1", nan));
  EXPECT_TRUE(holds("loss >= 1", 1) && !holds("loss >= 1", 0.5) && !holds("loss >= 1", nan));
  EXPECT_TRUE(holds("loss < 1", 0) && !holds("loss < 1", 1) && holds("loss < 1", -inf) && !holds("loss < 1", nan));
  EXPECT_TRUE(holds("loss <= 1", 1) && !holds("loss <= 1", 2));
  EXPECT_TRUE(holds("loss outside 1..2", 0.5) && holds("loss outside 1..2", 2.5) && !holds("loss outside 1..2", 1) &&
              !holds("loss outside 1..2", 2) && !holds("loss outside 1..2", nan));
  EXPECT_TRUE(holds("loss inside 1..2", 1) && holds("loss inside 1..2", 2) && !holds("loss inside 1..2", 2.5) &&
              !holds("loss inside 1..2", nan));
  EXPECT_TRUE(holds("loss > 3 * median(loss, 5)", 7, 2) && !holds("loss > 3 * median(loss, 5)", 6, 2) &&
              !holds("loss > 3 * median(loss, 5)", 7, nan));
  EXPECT_EQ(parse_watch("loss outside 1..4").bound(0, 0), 1);
  EXPECT_EQ(parse_watch("loss outside 1..4").bound(9, 0), 4);
  EXPECT_EQ(parse_watch("loss > 3 * median(loss, 5)").bound(9, 2), 6);
}

TEST(Watches, a_median_is_of_the_last_values_as_soon_as_there_are_enough) {
  const Watch three = parse_watch("loss > median(loss, 3)"), two = parse_watch("loss > median(loss, 2)"),
              none = parse_watch("loss > 1");
  WatchMemory memory({three, two, none});
  EXPECT_EQ(memory.wants(), (std::map<std::string, int64_t>{{"loss", 3}}));
  EXPECT_TRUE(std::isnan(memory.median(two)) && std::isnan(memory.median(none)));
  memory.take("loss", 5);
  memory.take("lr", 100);
  EXPECT_TRUE(std::isnan(memory.median(two)));
  memory.take("loss", 1);
  EXPECT_EQ(memory.median(two), 3);
  EXPECT_TRUE(std::isnan(memory.median(three)));
  memory.take("loss", 2);
  EXPECT_EQ(memory.median(three), 2);
  memory.take("loss", std::nan(""));
  EXPECT_EQ(memory.median(three), 1.5) << "of those that are finite";
  EXPECT_EQ(memory.median(two), 2);
  memory.take("loss", INFINITY);
  EXPECT_TRUE(std::isnan(memory.median(two)));
}

TEST(Watches, the_list_is_a_picture_of_the_recipe) {
  Recipe r;
  EXPECT_TRUE(watch_rows(r).empty());
  r = with_watch(r, "loss > 1: pause");
  r = with_watch(r, "dead(activation(relu*)) > 0.9 every 10: count");
  EXPECT_EQ(r.text("watches"), "loss > 1: pause; dead(activation(relu*)) > 0.9 every 10: count");
  auto rows = watch_rows(r);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].says, "where loss is above 1");
  EXPECT_EQ(rows[0].action, WatchAction::pause);
  EXPECT_EQ(rows[1].says,
            "where the share of values that are 0 of the output of relu* is above 0.9, looked at every 10 steps");
  EXPECT_EQ(Recipe::from_json(r.to_json()), r);
  r = with_watch_at(r, 0, "loss > 2 * median(loss, 9)");
  EXPECT_EQ(watch_rows(r)[0].says, "where loss is above 2 times the median of the last 9 values of loss");
  EXPECT_EQ(with_watch_at(r, 0, "").text("watches"), "dead(activation(relu*)) > 0.9 every 10: count");
  EXPECT_EQ(with_watch_at(with_watch_at(r, 0, ""), 0, "").text("watches"), "");
  EXPECT_SAYS(error_of([&] { with_watch(r, "loss > 2 * median(loss, 9): stop"); }), "is there already");
  EXPECT_SAYS(error_of([&] { with_watch_at(r, 1, "los > 2"); }), "there is no metric or measure");
  // What cannot be read stands there with its fault, and can be mended.
  r.set("watches", "los > 1; lr < 3; lr < 3: stop");
  rows = watch_rows(r);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_SAYS(rows[0].fault, "there is no metric or measure");
  EXPECT_EQ(rows[1].fault, "");
  EXPECT_EQ(rows[2].fault, "it is there twice");
  EXPECT_EQ(with_watch_at(r, 0, "loss > 1").text("watches"), "loss > 1; lr < 3; lr < 3: stop");
}

TEST(Watches, a_measure_of_another_hand_is_read_too) {
  const RegistryScope scope("a test");
  register_watch_measure({"spread", "largest less smallest", [](const Moments& m) { return m.high - m.low; }});
  EXPECT_EQ(parse_watch("spread(grad(*)) > 1").measure->name, "spread");
}

}  // namespace
}  // namespace tenon::watch_tests
