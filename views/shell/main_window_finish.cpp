// What is done with a run that was trained: evaluated, exported, reported.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <algorithm>

#include "core/error.h"
#include "projects/finish.h"
#include "tracing/record/step_record.h"
#include "views/shared/format.h"
#include "views/shell/main_window.h"
#include "views/shell/prune_dialog.h"
#include "views/shell/quantize_dialog.h"

namespace tenon::views {

void MainWindow::add_finish_commands() {
  auto trained = [this] {
    const auto* r = bench_.shown();
    return r && r->steps > 0;
  };
  commands_.add({"run.evaluate",
                 tr_later("Evaluate…"),
                 "Run",
                 "",
                 "check",
                 [this] {
                   choose_state(tr("Which state is evaluated on the test split?"),
                                [this](int64_t run, int64_t step) { bench_.evaluate(run, step); });
                 },
                 trained,
                 {},
                 {},
                 run_menu::run});
  commands_.add({"run.evaluate_last",
                 tr_later("Evaluate this run's last state"),
                 "Run",
                 "",
                 "",
                 [this] { bench_.evaluate(bench_.shown_run(), bench_.shown_steps()); },
                 trained,
                 {},
                 {},
                 run_menu::run});
  commands_.add({"run.digest",
                 tr_later("Digest of a state…"),
                 "Run",
                 "",
                 "",
                 [this] {
                   choose_state(tr("Which state is the digest of?"),
                                [this](int64_t run, int64_t step) { bench_.tell_digest(run, step); });
                 },
                 trained,
                 {},
                 {},
                 run_menu::run});
  commands_.add({"run.prune",
                 tr_later("Make the model smaller…"),
                 "Run",
                 "",
                 "",
                 [this] {
                   choose_state(tr("Which state is made smaller?"),
                                [this](int64_t run, int64_t step) { choose_prune(run, step); });
                 },
                 [this] { return bench_.shown() != nullptr; },
                 {},
                 {},
                 run_menu::run});
  commands_.add({"run.broadcasts",
                 tr_later("Look for sizes broadcast by mistake"),
                 "Run",
                 "",
                 "",
                 [this] { bench_.find_broadcasts(); },
                 [this] { return bench_.has_project() && bench_.builder.errors().empty(); },
                 {},
                 {},
                 run_menu::looking});
  commands_.add({"file.export",
                 tr_later("Export the model…"),
                 "File",
                 "Ctrl+E",
                 "export",
                 [this] {
                   choose_state(tr("Which state is exported?"),
                                [this](int64_t run, int64_t step) { choose_export(run, step); });
                 },
                 trained,
                 {},
                 {},
                 2});
  commands_.add({"file.certify",
                 tr_later("Certify an exported model…"),
                 "File",
                 "",
                 "check",
                 [this] {
                   choose_state(tr("Which state was exported?"), [this](int64_t run, int64_t step) {
                     const QString path = ask_for_model(tr("Certify an exported model"));
                     if (!path.isEmpty()) bench_.certify(run, step, path);
                   });
                 },
                 trained,
                 {},
                 {},
                 2});
  commands_.add({"file.verify",
                 tr_later("Verify a certified file…"),
                 "File",
                 "",
                 "",
                 [this] {
                   const QString path = ask_for_model(tr("Verify a certified file"));
                   if (!path.isEmpty()) bench_.verify_certified(path);
                 },
                 {},
                 {},
                 {},
                 2});
  commands_.add({"file.report",
                 tr_later("Write a report…"),
                 "File",
                 "",
                 "",
                 [this] {
                   if (const Document* d = bench_.shown_document()) return choose_document_report(d->id);
                   choose_state(tr("Which state is the report of?"),
                                [this](int64_t run, int64_t step) { choose_report(run, step); });
                 },
                 [this, trained] { return bench_.shown_document() || trained(); },
                 {},
                 {},
                 2});
}

/// The words of projects::named_steps().
[[maybe_unused]] static constexpr const char* kNamed[] = {tr_later("best"), tr_later("last"),
                                                          tr_later("best and last")};

/// The words of projects::export_forms().
[[maybe_unused]] static constexpr const char* kForms[] = {tr_later("ONNX model"),
                                                          tr_later("PyTorch state_dict"),
                                                          tr_later("safetensors"),
                                                          tr_later("GGUF model"),
                                                          tr_later("PyTorch source and weights"),
                                                          tr_later("TorchScript program"),
                                                          tr_later("Exported PyTorch program"),
                                                          tr_later("C++ header and source"),
                                                          tr_later("Triton model repository"),
                                                          tr_later("TorchServe archive")};

/// A state of the shown run: the best, the last, the one that is looked at, or a step that is typed.
void MainWindow::choose_state(const QString& hint, std::function<void(int64_t run, int64_t step)> then) {
  auto states = [this, then](const QString& typed) {
    std::vector<Picker::Item> items;
    const projects::RunInfo* r = bench_.shown();
    if (!r) return items;
    auto offer = [&](int64_t step, const std::string& what) {
      const QString text = tr("step %1").arg(QString::fromStdString(format_grouped(step)));
      if (!typed.isEmpty() && fuzzy_score(typed.toStdString(), what + " " + text.toStdString()) < 0) return;
      items.push_back({text, QString::fromStdString(what), QString::fromStdString(r->name),
                       [then, run = r->id, step] { then(run, step); }});
    };
    std::vector<int64_t> named;
    for (const projects::NamedStep& s : projects::named_steps(*r)) {
      offer(s.step, views::tr(s.name.c_str()));
      named.push_back(s.step);
    }
    const auto& record = bench_.links().record();
    if (record && std::find(named.begin(), named.end(), record->step) == named.end())
      offer(record->step, views::tr("the one that is looked at"));
    bool number = false;
    const qlonglong step = QString(typed).remove(',').toLongLong(&number);
    if (number && step >= 1 && step <= r->steps) {
      items.clear();
      items.push_back({tr("step %1").arg(QString::fromStdString(format_grouped(step))),
                       tr("replayed from its checkpoint"), QString::fromStdString(r->name),
                       [then, run = r->id, step] { then(run, step); }});
    }
    return items;
  };
  auto missed = [this](const QString& typed) -> QStringList {
    const projects::RunInfo* r = bench_.shown();
    if (!r) return {tr("No run is shown.")};
    return {tr("“%1” is no state of %2.").arg(typed, QString::fromStdString(r->name)),
            tr("Type a step from 1 to %1, or the words best or last.")
                .arg(QString::fromStdString(format_grouped(r->steps)))};
  };
  picker_->open(hint, states, missed);
}

/// A model file that is there; empty where the dialog was left.
QString MainWindow::ask_for_model(const QString& title) {
  const QString beside = bench_.has_project() ? QFileInfo(bench_.file()).dir().path() : QString();
  return QFileDialog::getOpenFileName(this, title, beside, tr("Exported model (*.onnx *.pt2)"));
}

/// A name beside the project, as "p-first" of the run "first" of p.tenon and "p-01" of "p-01"; empty where the dialog
/// was left.
QString MainWindow::ask_for_file(const projects::RunInfo& run, const QString& title, const QStringList& kinds,
                                 const QStringList& endings, QString* kind) {
  const QFileInfo project(bench_.file());
  const QString name = QString::fromStdString(run.name), base = project.completeBaseName();
  QString offered = name.startsWith(base) ? name : base + "-" + name;
  offered.replace('/', '-');
  return ask_for_file(project.dir().filePath(offered), title, kinds, endings, kind);
}

/// `offered`: a path without an ending.
QString MainWindow::ask_for_file(const QString& offered, const QString& title, const QStringList& kinds,
                                 const QStringList& endings, QString* kind) {
  QFileDialog dialog(this, title, QFileInfo(offered).dir().path());
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setNameFilters(kinds);
  dialog.setDefaultSuffix(endings.first());  // before the dialog asks whether a file is to be replaced
  connect(&dialog, &QFileDialog::filterSelected, &dialog, [&](const QString& chosen) {
    dialog.setDefaultSuffix(endings.value(static_cast<int>(kinds.indexOf(chosen)), endings.first()));
  });
  dialog.selectFile(offered + "." + endings.first());
  if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return {};
  if (kind) *kind = dialog.selectedNameFilter();
  return dialog.selectedFiles().first();
}

/// Of a trace, a snapshot or a model file, beside it.
void MainWindow::choose_document_report(int document) {
  const Document* d = bench_.document(document);
  if (!d) return;
  const QFileInfo file(QString::fromStdString(d->path));
  const QString path = ask_for_file(file.dir().filePath(file.fileName().section('.', 0, -2) + "-report"),
                                    tr("Write a report"), {tr("Page of HTML (*.html)")}, {"html"});
  if (!path.isEmpty()) bench_.write_document_report(document, path);
}

void MainWindow::choose_report(int64_t run, int64_t step) {
  const projects::RunInfo* r = bench_.contents().run(run);
  if (!r) return;
  const QString path = ask_for_file(*r, tr("Write a report"), {tr("Page of HTML (*.html)")}, {"html"});
  if (!path.isEmpty()) bench_.write_report(run, step, path);
}

void MainWindow::choose_export(int64_t run, int64_t step) {
  const projects::RunInfo* r = bench_.contents().run(run);
  if (!r) return;
  const QString smaller = tr("ONNX model in fewer bits (*.onnx)"),
                smaller_program = tr("Exported PyTorch program in fewer bits (*.pt2)");
  QString kind;
  QStringList kinds, endings;
  for (const projects::ExportForm& form : projects::export_forms()) {
    QStringList patterns;
    for (const char* ending : form.endings) patterns << QString("*.%1").arg(ending);
    kinds << QString("%1 (%2)").arg(QString::fromStdString(views::tr(form.title)), patterns.join(' '));
    endings << form.endings[0];
    if (form.format == projects::ExportFormat::onnx) kinds << smaller, endings << form.endings[0];
    if (form.format == projects::ExportFormat::pt2) kinds << smaller_program, endings << form.endings[0];
  }
  const QString path = ask_for_file(*r, tr("Export the model"), kinds, endings, &kind);
  if (path.isEmpty()) return;
  try {
    projects::format_of_file(path.toStdString());
  } catch (const Error& e) {
    return bench_.fail(tr("The model was not exported"), QString::fromStdString(e.message()),
                       QString::fromStdString(e.hint()));
  }
  const bool program = kind == smaller_program && path.endsWith(".pt2");
  if (!program && (kind != smaller || !path.endsWith(".onnx"))) return bench_.export_run(run, step, path);
  auto* dialog = new QuantizeDialog(this, program);
  dialog->on_export = [this, run, step, path](const projects::QuantizeOptions& options) {
    bench_.export_quantized(run, step, path, options);
  };
  dialog->open();
}

void MainWindow::choose_quantized(int64_t run, int64_t step, const projects::QuantizeOptions& options) {
  const projects::RunInfo* r = bench_.contents().run(run);
  if (!r) return;
  const QString path = ask_for_file(*r, tr("Export the model"), {tr("ONNX model in fewer bits (*.onnx)")}, {"onnx"});
  if (path.isEmpty()) return;
  if (options.how.precision == formats::Precision::f32) return bench_.export_run(run, step, path);
  bench_.export_quantized(run, step, path, options);
}

void MainWindow::choose_prune(int64_t run, int64_t step) {
  bench_.read_model(run, step, [this, run, step](std::shared_ptr<const projects::TrainedModel> trained) {
    auto* dialog = new PruneDialog(this, bench_.jobs, std::move(trained));
    dialog->on_prune = [this, run, step](const projects::ShrinkOptions& options) {
      const projects::RunInfo* r = bench_.contents().run(run);
      if (!r) return;
      const QString path = ask_for_file(*r, tr("Make a smaller project"), {tr("Tenon project (*.tenon)")}, {"tenon"});
      if (!path.isEmpty()) bench_.prune(run, step, path, options);
    };
    dialog->open();
  });
}

}  // namespace tenon::views
