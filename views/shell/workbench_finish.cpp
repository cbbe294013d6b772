// What is done with a run that was trained, as jobs: evaluated, exported, reported, proved.
#include <QClipboard>
#include <QGuiApplication>

#include "engine/train/broadcasts.h"
#include "engine/train/session.h"
#include "projects/certificate.h"
#include "projects/finish.h"
#include "projects/quantize.h"
#include "projects/quantize_plan.h"
#include "projects/shrink.h"
#include "views/report/document_report.h"
#include "views/report/report.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shell/workbench.h"

namespace tenon::views {

using projects::RunInfo;
using Report = Jobs::Report;

namespace {

/// "Export %1 at step %2"
QString of_state(const QString& words, const RunInfo& run, int64_t step) {
  return words.arg(QString::fromStdString(run.name), QString::fromStdString(format_grouped(step)));
}

/// Starts what is done with a run of the open project: work(project, run, report) as a job, and done(what it returned).
/// What came of it is dropped where another project is open by then.
template <class Work, class Done>
void start_with_run(Workbench& bench, const RunInfo& run, const QString& tag, const QString& title,
                    const QString& fault, Work work, Done done) {
  bench.jobs.start(
      tag, title,
      [project = bench.project(), run, work](const Report& report, const std::atomic<bool>&) {
        return work(*project, run, report);
      },
      [&bench, project = bench.project(), done](auto result) {
        if (project == bench.project()) done(std::move(result));
      },
      [&bench, fault](const QString& message, const QString& hint) { bench.fail(fault, message, hint); });
}

}  // namespace

/// Stays until it is dismissed, or another project is open.
void Workbench::tell_done(const QString& title, const std::string& text, const QString& button,
                          std::function<void()> act) {
  QString message = QString::fromStdString(text);
  log(title + ": " + message);
  std::weak_ptr<projects::Project> of = project_;
  emit notice({title, message, button, std::move(act), [this, of] { return project_ && of.lock() == project_; }, true});
}

void Workbench::evaluate(int64_t run, int64_t step) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, QString("evaluate %1 %2").arg(run).arg(step), of_state(tr("Evaluate %1 at step %2"), *r, step),
      tr("The run was not evaluated"),
      [step](projects::Project& project, const RunInfo& of, const Report& report) {
        return std::make_shared<const projects::Results>(projects::results_at(project, of, step, report, report));
      },
      [this, r = *r](std::shared_ptr<const projects::Results> results) {
        results_ = std::move(results);
        emit results_changed();
        tell_done(tr("Evaluated"), projects::evaluation_text(r, results_->step, results_->evaluation),
                  tr("Where it errs"), [this] { ask("view.results"); });
      });
}

void Workbench::look_into_sample(int64_t row) {
  if (!results_ || !project_) return;
  auto project = project_;
  jobs.start(
      "step", tr("Look into test sample %1").arg(QString::fromStdString(format_grouped(row))),
      [project, results = results_, row](const Jobs::Report& report, const std::atomic<bool>&) {
        return Links(projects::record_sample(*project, results->run_id, results->step, row, report));
      },
      [this, project, row](const Links& links) {
        if (project != project_) return;
        show_step(links);
        log(tr("Test sample %1: its tensors, ops and gradients are shown")
                .arg(QString::fromStdString(format_grouped(row))));
        ask("view.tensor");
      },
      [this](const QString& message, const QString& hint) { fail(tr("The sample was not recorded"), message, hint); });
}

void Workbench::export_run(int64_t run, int64_t step, const QString& path) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, "export " + path, of_state(tr("Export %1 at step %2"), *r, step), tr("The model was not exported"),
      [step, path = path.toStdString()](projects::Project& project, const RunInfo& of, const Report& report) {
        const auto e = projects::export_run(project, of, step, projects::format_of_file(path), path, true, report);
        return views::tr("{}: {} at step {}, {}", path, of.name, format_grouped(step), e.text);
      },
      [this, run, step, path](const std::string& text) {
        if (!path.endsWith(".onnx") && !path.endsWith(".pt2")) return tell_done(tr("Exported"), text);
        tell_done(tr("Exported"), text, tr("Certify it"), [this, run, step, path] { certify(run, step, path); });
      });
}

void Workbench::certify(int64_t run, int64_t step, const QString& path) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, "certify " + path, tr("Certify %1").arg(path), tr("The model was not certified"),
      [step, path = path.toStdString()](projects::Project& project, const RunInfo& of, const Report& report) {
        return projects::certify(project, of, step, path, {}, report).text;
      },
      [this, path](const std::string& text) {
        tell_done(tr("Certified"), text, tr("Verify it"), [this, path] { verify_certified(path); });
      });
}

void Workbench::verify_certified(const QString& path) {
  jobs.start(
      "verify " + path, tr("Verify %1").arg(path),
      [path = path.toStdString()](const Jobs::Report& report, const std::atomic<bool>&) {
        return projects::verify_certified(path, {}, report);
      },
      [this, path](const projects::VerifyReport& v) {
        std::string text = v.provenance;
        for (const projects::Check& c : v.checks) {
          const std::string line = c.what + ": " + c.text;
          log(QString::fromStdString(line), !c.ok);
          if (v.ok() || !c.ok) text += "\n" + line;
        }
        if (v.ok())
          tell_done(tr("%1 is what was certified").arg(path), text);
        else
          fail(tr("%1 is not what was certified").arg(path), QString::fromStdString(text),
               tr("Do not use it: export and certify the model anew."));
      },
      [this](const QString& message, const QString& hint) { fail(tr("The file was not verified"), message, hint); });
}

void Workbench::export_quantized(int64_t run, int64_t step, const QString& path,
                                 const projects::QuantizeOptions& options) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, "export " + path, of_state(tr("Export %1 at step %2"), *r, step), tr("The model was not exported"),
      [step, options, path = path.toStdString()](projects::Project& project, const RunInfo& of, const Report& report) {
        return std::make_shared<const projects::QuantizeReport>(
            projects::export_quantized(project, of, step, options, path, true, report));
      },
      [this](std::shared_ptr<const projects::QuantizeReport> report) {
        quantized_ = std::move(report);
        emit quantized_changed();
        const projects::QuantizeReport& q = *quantized_;
        tell_done(tr("Exported"), views::tr("{}: {} at step {}, {}", q.path, q.run, format_grouped(q.step), q.text()),
                  tr("What each layer lost"), [this] { ask("view.quantization"); });
      });
}

void Workbench::plan_quantization(int64_t run, int64_t step) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  quantize_plan_.reset();
  emit quantize_plan_changed();
  using Plan = std::shared_ptr<const projects::QuantizePlan>;
  // What is measured stays when the job is cancelled: it comes point by point.
  const auto take = [this, project = std::weak_ptr(project_)](Plan plan) {
    if (project.lock() != project_ || !project_) return;
    quantize_plan_ = std::move(plan);
    emit quantize_plan_changed();
  };
  start_with_run(
      *this, *r, kQuantizePlan, of_state(tr("Measure %1 at step %2 in fewer bits"), *r, step),
      tr("Not every way to export the model was measured"),
      [this, step, take](projects::Project& project, const RunInfo& of, const Report& report) {
        const auto told = [this, take](const projects::QuantizePlan& plan) {
          QMetaObject::invokeMethod(
              this, [take, plan = std::make_shared<const projects::QuantizePlan>(plan)] { take(plan); },
              Qt::QueuedConnection);
        };
        return std::make_shared<const projects::QuantizePlan>(
            projects::quantize_plan(project, of, step, {}, told, report));
      },
      take);
}

void Workbench::read_model(int64_t run, int64_t step,
                           std::function<void(std::shared_ptr<const projects::TrainedModel>)> then) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, QString("weights %1 %2").arg(run).arg(step), of_state(tr("Weights of %1 at step %2"), *r, step),
      tr("The weights were not read"),
      [step](projects::Project& project, const RunInfo& of, const Report& report) {
        return std::make_shared<const projects::TrainedModel>(projects::trained_model(project, of, step, report));
      },
      std::move(then));
}

void Workbench::prune(int64_t run, int64_t step, const QString& path, const projects::ShrinkOptions& options) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, "prune " + path, of_state(tr("Make %1 at step %2 smaller"), *r, step),
      tr("The model was not made smaller"),
      [step, options, path = path.toStdString()](projects::Project& project, const RunInfo& of, const Report& report) {
        return std::make_shared<const projects::ShrinkReport>(
            projects::shrink_run(project, of, step, options, path, report));
      },
      [this, path](std::shared_ptr<const projects::ShrinkReport> report) {
        tell_done(tr("Made smaller"), fmt::format("{}: {}", report->path, report->text()),
                  tr("Open the smaller project"), [this, path] { open(path); });
      });
}

void Workbench::tell_digest(int64_t run, int64_t step) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  const QString state = of_state(tr("%1 at step %2"), *r, step);
  start_with_run(
      *this, *r, QString("digest %1 %2").arg(run).arg(step), tr("Digest of %1").arg(state), tr("There is no digest"),
      [step](projects::Project& project, const RunInfo& of, const Report& report) {
        return projects::digest_at(project, of.id, step, 0, report);
      },
      [this, state](const std::string& digest) {
        const QString text = QString::fromStdString(digest);
        tell_done(tr("Digest of %1").arg(state), digest, tr("Copy the digest"),
                  [text] { QGuiApplication::clipboard()->setText(text); });
      });
}

void Workbench::find_broadcasts() {
  if (!project_) return;
  auto project = project_;
  jobs.start(
      "broadcasts", tr("Look for sizes broadcast by mistake"),
      [model = builder.spec(), recipe = contents_.recipe](const Jobs::Report&, const std::atomic<bool>&) {
        return broadcasts_of_a_step(model, recipe);
      },
      [this, project](const std::vector<BroadcastWarning>& found) {
        if (project != project_) return;
        if (found.empty()) return tell_done(tr("No broadcast by mistake"), kNoBroadcasts);
        for (const BroadcastWarning& w : found) log(QString::fromStdString(to_string(w)), true);
        const std::string more =
            found.size() > 1 ? views::tr("; the log has {} more", found.size() - 1) : std::string();
        tell_done(tr("Likely broadcast by mistake"), to_string(found.front()) + more, tr("Show the log"),
                  [this] { ask("view.log"); });
      },
      [this](const QString& message, const QString& hint) { fail(tr("The step could not be tried"), message, hint); });
}

void Workbench::write_report(int64_t run, int64_t step, const QString& path) {
  const RunInfo* r = contents_.run(run);
  if (!r || !project_) return;
  start_with_run(
      *this, *r, "report " + path, of_state(tr("Report of %1 at step %2"), *r, step), tr("The report was not written"),
      [step, path = path.toStdString()](projects::Project& project, const RunInfo& of, const Report& report) {
        return tenon::views::write_report(project, project.run(of.id), step, path, report, report);
      },
      [this](const std::string& text) { tell_done(tr("Written"), text); });
}

void Workbench::write_document_report(int document, const QString& path) {
  const Document* d = this->document(document);
  if (!d) return;
  jobs.start(
      "report " + path, tr("Report of %1").arg(QString::fromStdString(d->part_title())),
      [d = d->only_rank(), path = path.toStdString()](const Jobs::Report& report, const std::atomic<bool>&) {
        return tenon::views::write_document_report(d, path, report);
      },
      [this, document](const std::string& text) {
        const QString message = QString::fromStdString(text);
        log(tr("Written") + ": " + message);
        emit notice(
            {tr("Written"), message, {}, {}, [this, document] { return this->document(document) != nullptr; }, true});
      },
      [this](const QString& message, const QString& hint) { fail(tr("The report was not written"), message, hint); });
}

}  // namespace tenon::views
