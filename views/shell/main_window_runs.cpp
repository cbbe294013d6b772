// What is done with a run as a whole: continued, described, deleted, brought back.
#include <QDialog>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QVBoxLayout>

#include "views/frame/text_editor.h"
#include "views/shared/format.h"
#include "views/shell/main_window.h"

namespace tenon::views {

void MainWindow::add_run_commands() {
  auto writable = [this] { return bench_.shown() && !bench_.project()->read_only(); };
  commands_.add({"run.continue",
                 tr_later("Continue this run with the recipe as it is now"),
                 "Run",
                 "",
                 "train",
                 [this] { bench_.continue_run(bench_.shown_run()); },
                 [this] { return bench_.can_continue(bench_.shown_run()); },
                 {},
                 [this] {
                   const projects::RunInfo* r = bench_.shown();
                   return r ? tr("Continue %1 with the recipe as it is now").arg(QString::fromStdString(r->name))
                            : tr("Continue the run with the recipe as it is now");
                 },
                 run_menu::recipe});
  commands_.add({"run.change",
                 tr_later("Give the run that trains the recipe as it is now"),
                 "Run",
                 "",
                 "recipe",
                 [this] { bench_.change_training(); },
                 [this] {
                   const auto now = bench_.training_recipe();
                   return now && !(*now == bench_.recipe());
                 },
                 {},
                 {},
                 run_menu::recipe});
  commands_.add({"run.describe",
                 tr_later("Name, tags and note of this run…"),
                 "Run",
                 "F2",
                 "",
                 [this] { describe_run(); },
                 writable,
                 {},
                 {},
                 run_menu::run});
  commands_.add({"run.delete",
                 tr_later("Delete this run"),
                 "Run",
                 "",
                 "",
                 [this] { bench_.delete_runs({bench_.shown_run()}); },
                 [this, writable] { return writable() && !bench_.trains(bench_.shown_run()); },
                 {},
                 [this] {
                   const projects::RunInfo* r = bench_.shown();
                   return r ? tr("Delete %1").arg(QString::fromStdString(r->name)) : tr("Delete the run");
                 },
                 run_menu::run});
  commands_.add({"run.restore",
                 tr_later("Bring back what was deleted…"),
                 "Run",
                 "",
                 "",
                 [this] { choose_deleted(); },
                 [this] {
                   const ProjectContents& c = bench_.contents();
                   return !(c.deleted.empty() && c.deleted_sweeps.empty()) && !bench_.project()->read_only();
                 },
                 {},
                 {},
                 run_menu::run});
}

void MainWindow::choose_deleted() {
  picker_->open(
      tr("Which run or sweep comes back?"),
      [this](const QString& typed) {
        std::vector<Picker::Item> items;
        for (const projects::RunInfo& r : bench_.contents().deleted)
          if (fuzzy_score(typed.toStdString(), r.name + " " + r.created) >= 0)
            items.push_back(
                {QString::fromStdString(r.name), tr("%1 steps").arg(QString::fromStdString(format_grouped(r.steps))),
                 QString::fromStdString(r.created.substr(0, 10)), [this, run = r.id] { bench_.restore_runs({run}); }});
        for (const projects::SweepInfo& s : bench_.contents().deleted_sweeps)
          if (fuzzy_score(typed.toStdString(), s.name + " " + s.created) >= 0)
            items.push_back({QString::fromStdString(s.name), tr("sweep of %1 trials").arg(s.trials.size()),
                             QString::fromStdString(s.created.substr(0, 10)),
                             [this, sweep = s.id] { bench_.restore_sweep(sweep); }});
        return items;
      },
      [this](const QString&) {
        const ProjectContents& c = bench_.contents();
        return QStringList{tr("Searched the names and days of %1 deleted runs and %2 deleted sweeps.")
                               .arg(c.deleted.size())
                               .arg(c.deleted_sweeps.size())};
      });
}

void MainWindow::describe_run() {
  const projects::RunInfo* r = bench_.shown();
  if (!r) return;
  QDialog dialog(this);
  dialog.setObjectName("describe_run");
  dialog.setWindowTitle(tr("Name, tags and note"));
  auto* box = new QVBoxLayout(&dialog);
  auto* form = new QFormLayout;
  auto* name = new QLineEdit(QString::fromStdString(r->name), &dialog);
  name->setObjectName("describe.name");
  QStringList words;
  for (const std::string& t : r->tags) words << QString::fromStdString(t);
  auto* tags = new QLineEdit(words.join(", "), &dialog);
  tags->setObjectName("describe.tags");
  tags->setPlaceholderText(tr("good, second try"));
  tags->setToolTip(tr("Words between commas; the filter of Runs finds them: tags ~ good"));
  auto* note = new TextEditor(QString::fromStdString(r->note), &dialog);
  note->setObjectName("describe.note");
  note->setPlaceholderText(tr("What was tried, and what came of it"));
  note->setTabChangesFocus(true);
  note->setMinimumSize(380, 120);
  form->addRow(tr("Name"), name);
  form->addRow(tr("Tags"), tags);
  form->addRow(tr("Note"), note);
  box->addLayout(form);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, &dialog);
  connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  connect(name, &QLineEdit::textChanged, buttons, [buttons](const QString& text) {
    buttons->button(QDialogButtonBox::Ok)->setEnabled(!text.trimmed().isEmpty());
  });
  box->addWidget(buttons);
  name->selectAll();
  const int64_t run = r->id;
  if (dialog.exec() != QDialog::Accepted) return;
  bench_.describe_run(run, name->text(), note->toPlainText(), tags->text().split(','));
}

}  // namespace tenon::views
