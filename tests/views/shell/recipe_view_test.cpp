// The recipe in the window: typed, chosen, taken back, kept in the project, and what the next run is told.
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <set>

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/registry.h"
#include "engine/optim/schedule.h"
#include "engine/templates/templates.h"
#include "engine/train/callback.h"
#include "engine/train/recipe_table.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/recipe/recipe_model.h"

namespace tenon::views {
namespace {

/// As a plug-in would: attributes of every kind, with limits and without, in units, of choices.
void register_schedule_of_every_kind() {
  optim::register_schedule(
      {"every_kind",
       "has an attribute of every kind",
       {{"whole", int64_t{-3}, -9, 9, "limited", {}, "things"},
        {"any_whole", int64_t{5}, 0, 0, "without limits"},
        {"large", int64_t{7}, 0, 9e15, "more than a box holds"},
        {"number", -0.25, -1, 0, "negative"},
        {"any_number", 1e-12, 0, 0, "without limits"},
        {"switch", true, 0, 0, "on at first"},
        {"word", std::string("b"), 0, 0, "of three", {"a", "b", "c"}},
        {"words", std::string(), 0, 0, "any"},
        {"list", std::vector<int64_t>{1, 2}, 0, 8, "limited numbers"}},
       [](const AttrValues&, const optim::ScheduleSpan& span) { return optim::make_schedule("constant", {}, span); }});
}

class RecipeForm : public testing::WindowTest {
 protected:
  void show() {
    ASSERT_TRUE(window_->commands().run("recipe.edit"));
    settle();
  }
  template <class W = QWidget>
  W* editor(const std::string& key) {
    auto* w = window_->view("recipe")->findChild<W*>(QString("recipe.") + QString::fromStdString(key));
    EXPECT_NE(w, nullptr) << key;
    return w;
  }
  void type(const std::string& key, const QString& text) {
    auto* line = editor<QLineEdit>(key);
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
    QTest::keyClick(line, Qt::Key_Return);
    settle();
  }
  Recipe saved() { return Recipe::from_json(bench_->project()->recipe()); }
  RecipeModel& model() { return bench_->model<RecipeModel>(); }
  QString said() { return window_->view("recipe")->findChild<QLabel*>("recipe.said")->accessibleName(); }
};

TEST_F(RecipeForm, what_is_typed_is_what_the_next_run_is_told) {
  open_spirals();
  show();
  type("optimizer.lr", "5e-2");
  auto* schedule = editor<QComboBox>("schedule.type");
  schedule->setFocus();
  schedule->setCurrentText("linear");  // the form is made anew: it brings keys of its own
  settle();
  EXPECT_EQ(editor<QComboBox>("schedule.type")->currentText(), "linear");
  EXPECT_TRUE(editor("schedule.type")->hasFocus()) << "the hand goes on where it was";
  auto* batch = editor<QLineEdit>("data.batch_size");
  ASSERT_NE(batch, nullptr);
  type("data.batch_size", "50");
  EXPECT_EQ(bench_->builder.batch(), 50) << "the builder's shapes follow";
  EXPECT_EQ(saved().number("optimizer.lr"), 0.05);
  train(6);
  const auto& run = bench_->contents().runs.back();
  const Recipe told = Recipe::from_json(run.recipe);
  EXPECT_EQ(told.number("optimizer.lr"), 0.05);
  EXPECT_EQ(told.text("schedule.type"), "linear");
  EXPECT_EQ(told.integer("data.batch_size"), 50);
  // Beside the run that was trained: what differs is told, and goes back at once.
  show();
  type("optimizer.lr", "0.01");
  EXPECT_TRUE(model().differing() > 0);
  auto* as_last = window_->findChild<QToolButton*>("recipe.as_last");
  ASSERT_TRUE(as_last->isEnabled());
  QTest::mouseClick(as_last, Qt::LeftButton);
  settle();
  EXPECT_EQ(model().differing(), 0);
  EXPECT_EQ(saved(), told);
}

TEST_F(RecipeForm, a_compiled_run_says_in_the_log_what_was_planned) {
  open_spirals();
  show();
  auto* compile = editor<QCheckBox>("compile");
  ASSERT_NE(compile, nullptr);
  EXPECT_TRUE(compile->isChecked()) << "runs are compiled unless the recipe says no";
  compile->setFocus();
  QTest::keyClick(compile, Qt::Key_Space);
  settle();
  EXPECT_FALSE(saved().flag("compile"));
  QTest::keyClick(compile, Qt::Key_Space);
  settle();
  EXPECT_TRUE(saved().flag("compile"));
  QStringList said;
  QObject here;
  QObject::connect(bench_.get(), &Workbench::logged, &here, [&](const QString& line, bool) { said << line; });
  train(12);
  EXPECT_EQ(bench_->contents().runs.back().status, "finished") << banner().toStdString();
  EXPECT_TRUE(said.join("\n").contains(" steps from a plan of ")) << said.join("\n").toStdString();
  load_step(9);
  EXPECT_FALSE(banner_shown()) << banner().toStdString();
}

TEST_F(RecipeForm, the_device_is_one_of_those_that_are_there) {
  if (cuda_state().devices == 0) GTEST_SKIP() << "built without the emulated GPU";
  open_spirals();
  show();
  auto* device = editor<QComboBox>("device");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->currentText(), "cpu");
  ASSERT_EQ(device->count(), 2);
  device->setFocus();
  QTest::keyClick(device, Qt::Key_Down);
  settle();
  EXPECT_EQ(saved().text("device"), "cuda:0");
  train(4);
  const auto& run = bench_->contents().runs.back();
  EXPECT_EQ(run.status, "finished") << banner().toStdString();
  EXPECT_EQ(run.steps, 4);
  EXPECT_EQ(Recipe::from_json(run.recipe).text("device"), "cuda:0");
  load_step(3);
  EXPECT_FALSE(banner_shown()) << banner().toStdString();

  // What another machine had stays until another one is chosen; here a run cannot begin with it.
  Recipe elsewhere = bench_->recipe();
  elsewhere.set("device", "cuda:5");
  bench_->set_recipe(elsewhere);
  settle();
  show();
  EXPECT_EQ(editor<QComboBox>("device")->currentText(), "cuda:5");
  window_->commands().run("run.train");
  until([this] { return banner_shown(); });
  EXPECT_TRUE(banner().contains("there is no device cuda:5")) << banner().toStdString();
  problems_.clear();
  EXPECT_EQ(bench_->contents().runs.size(), 1u);
}

TEST_F(RecipeForm, is_filled_as_a_run_or_a_template_has_it) {
  open_spirals();
  train(3, {{"optimizer.lr", "0.25"}, {"data.batch_size", "20"}});
  const Recipe told = Recipe::from_json(bench_->contents().runs.back().recipe);
  show();
  type("optimizer.lr", "0.5");
  auto* as = window_->findChild<QToolButton*>("recipe.as");
  ASSERT_NE(as, nullptr);
  emit as->menu()->aboutToShow();
  auto* run = as->menu()->findChild<QAction*>("as.run." + QString::fromStdString(bench_->contents().runs.back().name));
  ASSERT_NE(run, nullptr);
  EXPECT_TRUE(run->toolTip().contains("optimizer.lr 0.5 → 0.25")) << run->toolTip().toStdString();
  run->trigger();
  settle();
  EXPECT_EQ(saved(), told);
  emit as->menu()->aboutToShow();
  auto* other = as->menu()->findChild<QAction*>("as.template.fashion-cnn");
  ASSERT_NE(other, nullptr);
  other->trigger();
  settle();
  EXPECT_EQ(saved().text("data.dataset"), "spirals") << "the data stays";
  EXPECT_EQ(saved().integer("data.batch_size"), told.integer("data.batch_size"));
  EXPECT_EQ(saved().number("optimizer.lr"), find_template("fashion-cnn").recipe.number("optimizer.lr"));
  EXPECT_EQ(saved(), trained_as(find_template("fashion-cnn"), told));
}

TEST_F(RecipeForm, classes_are_counted_when_asked_for) {
  open_spirals();
  show();
  auto* count = window_->findChild<QToolButton*>("recipe.count_classes");
  ASSERT_NE(count, nullptr);
  const auto said = [this] { return window_->findChild<QLabel*>("recipe.classes")->accessibleName(); };
  EXPECT_EQ(said(), "");
  QTest::mouseClick(count, Qt::LeftButton);
  until([&] { return said().startsWith("2 classes in "); });
  // Of other data nothing is known.
  type("data.dir", "/nowhere");
  EXPECT_EQ(said(), "");
}

TEST_F(RecipeForm, what_does_not_fit_is_told_and_changes_nothing) {
  open_spirals();
  show();
  const Recipe before = saved();
  type("optimizer.lr", "fast");
  EXPECT_EQ(editor("optimizer.lr")->property("bad").toString(), "true");
  EXPECT_TRUE(editor("optimizer.lr")->toolTip().contains("fast"));
  EXPECT_EQ(saved(), before);
  type("optimizer.lr", "0.3");
  EXPECT_EQ(editor("optimizer.lr")->property("bad").toString(), "false");
  EXPECT_EQ(saved().number("optimizer.lr"), 0.3);
}

TEST_F(RecipeForm, a_change_is_taken_back_and_a_key_reset) {
  open_spirals();
  show();
  const Recipe before = saved();
  type("optimizer.lr", "0.3");
  type("data.batch_size", "10");
  ASSERT_TRUE(window_->commands().run("recipe.undo"));
  settle();
  EXPECT_EQ(saved().integer("data.batch_size"), before.integer("data.batch_size"));
  EXPECT_EQ(editor<QLineEdit>("data.batch_size")->text().toStdString(), attr_text(before.at("data.batch_size")));
  ASSERT_TRUE(window_->commands().run("recipe.undo"));
  settle();
  EXPECT_EQ(saved(), before);
  EXPECT_FALSE(window_->commands().find("recipe.undo")->enabled());
  ASSERT_TRUE(window_->commands().run("recipe.redo"));
  settle();
  EXPECT_EQ(saved().number("optimizer.lr"), 0.3);
  auto* reset = window_->view("recipe")->findChild<QToolButton*>("reset.optimizer.lr");
  ASSERT_TRUE(reset && reset->isVisibleTo(window_->view("recipe")));
  reset->click();
  settle();
  EXPECT_EQ(saved().at("optimizer.lr"), saved().fallback("optimizer.lr"));
}

TEST_F(RecipeForm, an_edit_of_the_last_moment_is_kept) {
  open_spirals();
  for (const bool at_once : {true, false}) {
    open(file_);
    auto project = bench_->project();
    bench_->set_recipe(model().with("optimizer.lr", at_once ? 0.25 : 0.125));
    // The worker is done, and the loop has not turned since: quitting waits for nothing that cannot come.
    while (!at_once && !bench_->files.list().empty()) QTest::qSleep(1);
    close_window();
    EXPECT_EQ(Recipe::from_json(project->recipe()).number("optimizer.lr"), at_once ? 0.25 : 0.125);
  }
}

TEST_F(RecipeForm, one_of_a_unit_is_said_so_and_read_back) {
  open_spirals();
  show();
  auto typed = [&](const char* key, const QString& text) {
    auto* box = editor<QSpinBox>(key);
    box->setFocus();
    box->selectAll();
    QTest::keyClicks(box, text);
    QTest::keyClick(box, Qt::Key_Return);
    settle();
    return editor<QSpinBox>(key)->text();
  };
  EXPECT_EQ(typed("epochs", "1"), "1 epoch");
  EXPECT_EQ(saved().integer("epochs"), 1);
  EXPECT_EQ(typed("epochs", "12"), "12 epochs");
  EXPECT_EQ(saved().integer("epochs"), 12);
  EXPECT_EQ(typed("data.prefetch", "1"), "1 batch");
  EXPECT_EQ(typed("data.prefetch", "1e1 batches"), "10 batches");
  EXPECT_EQ(saved().integer("data.prefetch"), 10);
}

/// Values as they would be typed, none of them refused: beside the default, the ends of its limits, every choice.
std::vector<std::string> values_of(const AttrDef& def) {
  if (std::holds_alternative<bool>(def.fallback)) return {"false", "true"};
  if (!def.choices.empty()) return def.choices;
  if (def.offers) return def.offers();
  const bool limited = def.min != def.max;
  if (const auto* n = std::get_if<int64_t>(&def.fallback)) {
    std::vector<std::string> all;
    if (limited)
      for (const double end : {def.min, def.max}) all.push_back(attr_text(AttrValue(static_cast<int64_t>(end))));
    all.push_back(std::to_string(!limited || static_cast<double>(*n + 1) <= def.max ? *n + 1 : *n - 1));
    return all;
  }
  if (const auto* x = std::get_if<double>(&def.fallback)) {
    std::vector<std::string> all;
    if (limited)
      for (const double end : {def.min, def.max}) all.push_back(attr_text(AttrValue(end)));
    const double y = *x == 0 ? (def.max > 1 || !limited ? 0.5 : def.max / 2) : *x / 2;
    all.push_back(attr_text(AttrValue(!limited || (y >= def.min && y <= def.max) ? y : (def.min + *x) / 2)));
    return all;
  }
  if (std::holds_alternative<std::vector<int64_t>>(def.fallback)) {
    const auto end = static_cast<int64_t>(limited ? def.max : 7), least = static_cast<int64_t>(limited ? def.min : -7);
    return {std::to_string(least), attr_text(AttrValue(std::vector<int64_t>{least, end, least}))};
  }
  return {"a.*: lr=2; \"b\"", "Zürich, 3 x 4", ""};
}
/// Values that are refused.
std::vector<std::string> wrong_values_of(const AttrDef& def) {
  if (std::holds_alternative<std::string>(def.fallback) || std::holds_alternative<bool>(def.fallback)) return {};
  std::vector<std::string> all = {"many"};
  if (def.min != def.max && !std::holds_alternative<std::vector<int64_t>>(def.fallback)) {
    all.push_back(attr_text(AttrValue(def.min - 1)));
    if (def.max < 1e9) all.push_back(attr_text(AttrValue(def.max + 1)));
  }
  return all;
}

class EveryKey : public RecipeForm {
 protected:
  void set_in_form(const AttrDef& def, const std::string& text) {
    QWidget* w = editor(def.name);
    const QString typed = QString::fromStdString(text);
    if (auto* box = qobject_cast<QCheckBox*>(w)) {
      box->setChecked(text == "true");
    } else if (auto* spin = qobject_cast<QSpinBox*>(w)) {
      auto* line = spin->findChild<QLineEdit*>();
      line->setText(typed);
      spin->interpretText();
    } else if (auto* list = qobject_cast<QComboBox*>(w)) {
      list->setCurrentIndex(list->findData(typed));
    } else if (auto* line = qobject_cast<QLineEdit*>(w)) {
      line->setText(typed);
      emit line->editingFinished();
    }
    QCoreApplication::processEvents();
  }
  std::set<std::string> tried_;  ///< definitions that share a key are tried once where it is the same for them
  /// Of one definition of a group; how many keys there were.
  int try_keys(const RecipeGroup& g, const RecipeGroup::Member& m) {
    const std::string selector = g.name + "." + g.selector;
    bench_->set_recipe(Recipe());
    Recipe expected;
    set_in_form({selector, std::string(), 0, 0, "", {m.name}}, m.name);
    expected.set(selector, m.name);
    EXPECT_EQ(bench_->recipe(), expected) << selector << " = " << m.name;
    int keys = 0;
    for (const AttrDef& def : expected.used_keys()) {
      const bool own = def.name.starts_with(g.name + ".") || (&m == &g.members[0] && g.name == "loss");
      const bool chooses = std::any_of(recipe_groups().begin(), recipe_groups().end(),
                                       [&](const auto& o) { return def.name == o.name + "." + o.selector; });
      if (!own || chooses || !tried_.insert(def.name + attr_allowed(def) + attr_text(def.fallback)).second) continue;
      for (const std::string& text : values_of(def)) {
        set_in_form(def, text);
        expected.set(def.name, text);
        EXPECT_EQ(attr_text(bench_->recipe().at(def.name)), attr_text(expected.at(def.name)))
            << def.name << " = " << text;
      }
      const AttrValue kept = bench_->recipe().at(def.name);
      for (const std::string& text : wrong_values_of(def)) {
        Recipe refused = expected;
        EXPECT_THROW((refused.set(def.name, text), refused.check_used(def.name)), Error) << def.name << " = " << text;
        set_in_form(def, text);
        EXPECT_EQ(bench_->recipe().at(def.name), kept) << def.name << " = " << text;
      }
      ++keys;
      if (::testing::Test::HasFailure()) return keys;
    }
    EXPECT_EQ(bench_->recipe(), expected) << selector << " = " << m.name;
    return keys;
  }
};

TEST_F(EveryKey, is_set_in_the_form_as_the_command_line_sets_it) {
  open_spirals();
  show();
  int keys = 0, definitions = 0;
  for (const RecipeGroup& g : recipe_groups())
    for (const auto& m : g.members) {
      ++definitions;
      keys += try_keys(g, m);
      if (HasFailure()) return;
    }
  settle();
  EXPECT_EQ(saved(), bench_->recipe());
  std::printf("%d keys of %d definitions\n", keys, definitions);
  EXPECT_GT(definitions, 40);
  EXPECT_GT(keys, 120);
}

TEST_F(EveryKey, of_a_plug_in_too) {
  RegistryScope scope("a plug-in");
  register_schedule_of_every_kind();
  open_spirals();
  show();
  for (const RecipeGroup& g : recipe_groups())
    for (const auto& m : g.members)
      if (m.name == "every_kind") {
        EXPECT_GE(try_keys(g, m), 7);
      }
  close_window();
}

class Callbacks : public RecipeForm {
 protected:
  QWidget* part(const QString& name) {
    auto* w = window_->view("recipe")->findChild<QWidget*>("callback." + name);
    EXPECT_NE(w, nullptr) << name.toStdString();
    return w;
  }
  bool shown(const QString& name) {
    return window_->view("recipe")->findChild<QWidget*>("callback." + name) != nullptr;
  }
  std::string says(const QString& name) {
    auto* label = qobject_cast<QLabel*>(part(name + ".says"));
    return label ? label->accessibleName().toStdString() : "";
  }
  void click(const QString& name) {
    auto* button = qobject_cast<QToolButton*>(part(name));
    ASSERT_NE(button, nullptr);
    QTest::mouseClick(button, Qt::LeftButton);
    settle();
  }
  /// As the menu of the button does.
  void add(const QString& name) {
    auto* button = window_->view("recipe")->findChild<QPushButton*>("callbacks.add");
    ASSERT_NE(button, nullptr);
    auto* action = button->menu()->findChild<QAction*>("add." + name);
    ASSERT_NE(action, nullptr) << name.toStdString();
    EXPECT_TRUE(action->isEnabled()) << action->toolTip().toStdString();
    action->trigger();
    settle();
  }
};

TEST_F(Callbacks, are_a_picture_of_the_recipe) {
  open_spirals();
  show();
  const Recipe before = saved();
  EXPECT_FALSE(shown("stop_early"));
  add("stop_early");
  EXPECT_EQ(saved().text("stop.metric"), "test_loss");
  EXPECT_EQ(says("stop_early"), "ends the run where test_loss did not become better in 3 evaluations in a row");
  // Its keys are a click away, and what they say is said at once.
  click("stop_early.keys");
  EXPECT_TRUE(editor("stop.metric")->hasFocus());
  auto* patience = editor<QSpinBox>("stop.patience");
  patience->setValue(1);
  settle();
  EXPECT_EQ(says("stop_early"), "ends the run where test_loss did not become better in 1 evaluation");
  // An average is one or the other.
  add("ema");
  EXPECT_TRUE(shown("ema"));
  add("swa");
  EXPECT_TRUE(shown("swa"));
  EXPECT_FALSE(shown("ema"));
  click("swa.remove");
  click("stop_early.remove");
  ASSERT_TRUE(window_->commands().run("recipe.undo"));
  settle();
  EXPECT_TRUE(shown("stop_early"));
  click("stop_early.remove");
  patience = editor<QSpinBox>("stop.patience");
  patience->setValue(3);
  settle();
  EXPECT_EQ(saved(), before);
}

TEST_F(Callbacks, listed_ones_have_settings_and_an_order) {
  open_spirals();
  show();
  add("gradient_noise");
  add("centralize");
  EXPECT_EQ(saved().text("callbacks"), "gradient_noise; centralize");
  auto* std_line = qobject_cast<QLineEdit*>(part("gradient_noise.0.std"));
  ASSERT_NE(std_line, nullptr);
  std_line->setFocus();
  std_line->selectAll();
  QTest::keyClicks(std_line, "0.02");
  QTest::keyClick(std_line, Qt::Key_Return);
  settle();
  EXPECT_EQ(saved().text("callbacks"), "gradient_noise std=0.02; centralize");
  click("gradient_noise.0.later");
  EXPECT_EQ(saved().text("callbacks"), "centralize; gradient_noise std=0.02");
  EXPECT_FALSE(shown("gradient_noise.1.later")) << "it is the last one";
  // What was typed wrong says so, in its row, and can be taken away.
  type("callbacks", "centralise");
  EXPECT_NE(says("centralise.0").find("centralize"), std::string::npos) << says("centralise.0");
  click("centralise.0.remove");
  EXPECT_EQ(saved().text("callbacks"), "");
  train(4);
  EXPECT_TRUE(problems_.empty());
}

/// Does nothing: what is looked at is its place in the window.
struct Idle : Callback {};

TEST_F(Callbacks, of_a_plug_in_are_added_set_and_trained_with) {
  RegistryScope scope("a plug-in");
  register_callback({.name = "idle",
                     .title = "Idle",
                     .help = "does nothing",
                     .moment = Moment::update,
                     .attrs = {{"hours", int64_t{2}, 1, 24, "of the day", {}, "hours"}},
                     .make = [](const AttrValues&, const CallbackRun&) -> std::unique_ptr<Callback> {
                       return std::make_unique<Idle>();
                     }});
  open_spirals();
  show();
  add("idle");
  EXPECT_EQ(says("idle.0"), "does nothing (hours 2)");
  auto* hours = qobject_cast<QSpinBox*>(part("idle.0.hours"));
  ASSERT_NE(hours, nullptr);
  hours->setValue(3);
  settle();
  EXPECT_EQ(saved().text("callbacks"), "idle hours=3");
  train(3);
  EXPECT_EQ(Recipe::from_json(bench_->contents().runs.back().recipe).text("callbacks"), "idle hours=3");
  EXPECT_TRUE(problems_.empty());
  close_window();
}

TEST_F(RecipeForm, a_project_that_cannot_be_written_shows_its_recipe) {
  make_window();
  const testing::ProjectState& state = testing::project_state("read-only");
  if (!state.skipped.empty()) GTEST_SKIP() << state.skipped;
  open(QString::fromStdString(state.file));
  window_->show_view("recipe");
  settle();
  ASSERT_TRUE(bench_->project()->read_only());
  EXPECT_FALSE(editor("optimizer.type")->isEnabled());
  EXPECT_TRUE(problems_.empty());
}

}  // namespace
}  // namespace tenon::views
