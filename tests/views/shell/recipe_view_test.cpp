// The recipe in the window: typed, chosen, taken back, kept in the project, and what the next run is told.
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include "engine/train/recipe_table.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/recipe/recipe_model.h"

namespace tenon::views {
namespace {

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

/// A value that is not the default, as it would be typed; empty: the key takes words of its own.
std::string another(const AttrDef& def) {
  if (std::holds_alternative<bool>(def.fallback)) return std::get<bool>(def.fallback) ? "false" : "true";
  const bool limited = def.min != def.max;
  if (const auto* n = std::get_if<int64_t>(&def.fallback)) {
    const int64_t more = *n + 1;
    return std::to_string(!limited || static_cast<double>(more) <= def.max ? more : *n - 1);
  }
  if (const auto* x = std::get_if<double>(&def.fallback)) {
    const double y = limited && *x == def.max ? (def.min + def.max) / 2
                     : *x == 0                ? def.max > 1 || !limited ? 0.5 : def.max / 2
                                              : *x / 2;
    return attr_text(AttrValue(!limited || (y >= def.min && y <= def.max) ? y : (def.min + *x) / 2));
  }
  return def.choices.empty() ? "" : def.choices.back();
}

TEST_F(RecipeForm, every_key_of_every_definition_is_set_as_the_command_line_sets_it) {
  open_spirals();
  show();
  int keys = 0, definitions = 0;
  auto set_in_form = [&](const AttrDef& def, const std::string& text) {
    QWidget* w = editor(def.name);
    if (auto* box = qobject_cast<QCheckBox*>(w))
      box->setChecked(text == "true");
    else if (auto* spin = qobject_cast<QSpinBox*>(w))
      spin->setValue(static_cast<int>(std::stoll(text)));
    else if (auto* list = qobject_cast<QComboBox*>(w))
      list->setCurrentText(QString::fromStdString(text));
    else if (auto* line = qobject_cast<QLineEdit*>(w)) {
      line->setText(QString::fromStdString(text));
      emit line->editingFinished();
    }
    QCoreApplication::processEvents();
  };
  for (const RecipeGroup& g : recipe_groups()) {
    const std::string selector = g.name + "." + g.selector;
    for (const auto& m : g.members) {
      bench_->set_recipe(Recipe());
      Recipe expected;
      ++definitions;
      set_in_form({selector, std::string(), 0, 0, "", {m.name}}, m.name);
      expected.set(selector, m.name);
      ASSERT_EQ(bench_->recipe(), expected) << selector << " = " << m.name;
      for (const AttrDef& def : expected.used_keys()) {
        const bool own = def.name.starts_with(g.name + ".") || (&m == &g.members[0] && g.name == "loss");
        const std::string text = another(def);
        if (!own || text.empty() || def.name == selector) continue;
        if (std::any_of(recipe_groups().begin(), recipe_groups().end(),
                        [&](const auto& o) { return def.name == o.name + "." + o.selector; }))
          continue;
        set_in_form(def, text);
        expected.set(def.name, text);
        ASSERT_EQ(bench_->recipe().at(def.name), expected.at(def.name)) << def.name << " = " << text;
        ++keys;
      }
      EXPECT_EQ(bench_->recipe(), expected) << selector << " = " << m.name;
    }
  }
  settle();
  EXPECT_EQ(saved(), bench_->recipe());
  std::printf("%d keys of %d definitions\n", keys, definitions);
  EXPECT_GT(definitions, 40);
  EXPECT_GT(keys, 300);
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
