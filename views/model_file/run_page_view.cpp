#include "views/model_file/run_page_view.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QSpinBox>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/error.h"
#include "engine/formats/onnx/runnable.h"
#include "views/canvas/scene_canvas.h"
#include "views/frame/application.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using formats::OnnxFeed;
using From = formats::OnnxFeed::From;

namespace {
constexpr const char *kReadTag = "model file to run", *kRunTag = "model file run", *kOutputTag = "model file output";

QToolButton* run_button(QWidget* bar, const char* name, const QString& text, const QString& tip) {
  auto* b = new QToolButton(bar);
  b->setObjectName(name);
  b->setText(text);
  b->setToolTip(tip);
  return b;
}

/// What is read of a file before it can be run.
struct Ready {
  std::shared_ptr<const formats::OnnxModel> model;
  NoRun no_run;
};
}  // namespace

RunPage::RunPage(Bench& bench, QWidget* parent) : QWidget(parent), bench_(bench) {
  build();
  outputs_.on_choose = [this] { read_slice(); };
  progress_.setInterval(100);
  connect(&progress_, &QTimer::timeout, this, &RunPage::show_progress);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    // Cancelled among the jobs: nobody hands its result over.
    if (running_ >= 0 && !bench_.jobs.has(kRunTag)) {
      auto stopped = std::make_shared<ModelRun>();
      stopped->stopped = true;
      end(running_, std::move(stopped));
    }
  });
}

RunPage::~RunPage() = default;

void RunPage::build() {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  pages_ = new QStackedWidget(this);
  box->addWidget(pages_);
  empty_ = new EmptyState(pages_);
  pages_->addWidget(empty_);
  auto* page = new QWidget(pages_);
  auto* rows = new QVBoxLayout(page);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setSpacing(0);
  rows->addWidget(build_bar(page));
  auto* parts = new QSplitter(Qt::Vertical, page);
  auto* area = new QScrollArea(parts);
  area->setFrameShape(QFrame::NoFrame);
  area->setWidgetResizable(true);
  area->setFocusPolicy(Qt::NoFocus);
  auto* about = new QWidget(area);
  auto* above = new QVBoxLayout(about);
  above->setContentsMargins(12, 8, 12, 8);
  inputs_ = new QWidget(about);
  grid_ = new QGridLayout(inputs_);
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setHorizontalSpacing(8);
  grid_->setVerticalSpacing(4);
  grid_->setColumnStretch(5, 1);
  above->addWidget(inputs_);
  said_ = new QLabel(about);
  said_->setObjectName("model_file.run_said");
  said_->setAccessibleName(tr("What the run came to"));
  said_->setTextFormat(Qt::PlainText);
  said_->setWordWrap(true);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  above->addWidget(said_);
  above->addStretch();
  area->setWidget(about);
  parts->addWidget(area);
  auto* seen = new QSplitter(Qt::Horizontal, parts);
  list_ = new TableList(seen);
  list_->setObjectName("model_file.outputs");
  list_->setAccessibleName(tr("Outputs of the run"));
  list_->on_select = [this](const Selection& s) { outputs_.choose(s.name); };
  seen->addWidget(list_);
  picture_ = new SceneCanvas(outputs_, seen);
  picture_->setObjectName("model_file.output");
  picture_->setAccessibleName(tr("Output of the run"));
  picture_->on_fault = [] { Application::report(tr("the picture of an output")); };
  seen->addWidget(picture_);
  seen->setSizes({560, 380});
  seen->setStretchFactor(0, 1);
  seen->setChildrenCollapsible(false);
  parts->addWidget(seen);
  parts->setSizes({130, 420});
  parts->setStretchFactor(1, 1);
  parts->setChildrenCollapsible(false);
  rows->addWidget(parts, 1);
  pages_->addWidget(page);
}

QWidget* RunPage::build_bar(QWidget* parent) {
  auto* bar = new ViewBar(parent);
  run_ = run_button(bar, "model_file.run_now", tr("Run model"), tr("Run the model with these inputs"));
  set_style(run_, "primary", "true");
  connect(run_, &QToolButton::clicked, this, &RunPage::run);
  bar->add(run_);
  stop_ = run_button(bar, "model_file.stop", tr("Stop"), tr("Stop the run"));
  connect(stop_, &QToolButton::clicked, this, &RunPage::stop);
  bar->add(stop_);
  bar->add_label(tr("seed"));
  seed_ = new QSpinBox(bar);
  seed_->setObjectName("model_file.seed");
  seed_->setAccessibleName(tr("Seed of the inputs"));
  seed_->setToolTip(tr("Inputs from a seed: normal numbers, whole numbers from 0 to 9, or truth values"));
  seed_->setRange(0, 999999999);
  seed_->setFixedWidth(90);
  bar->add(seed_);
  bar->add_stretch();
  fault_ = run_button(bar, "model_file.fault", tr("Show the node"), tr("The node that failed, in the graph"));
  connect(fault_, &QToolButton::clicked, this, [this] {
    if (on_show_fault) on_show_fault();
  });
  bar->add(fault_);
  save_ = run_button(bar, "model_file.save", tr("Save the outputs…"),
                     tr("As .npz, .safetensors, or .npy where there is one"));
  connect(save_, &QToolButton::clicked, this, &RunPage::save);
  bar->add(save_);
  return bar;
}

RunPage::Shown* RunPage::shown() {
  const auto at = states_.find(document_);
  return at == states_.end() ? nullptr : &at->second;
}

void RunPage::show_file(int document, const File& file) {
  if (document == document_ && shown()) return;
  if (shown() && lines_of_) take_lines();
  document_ = file ? document : 0;
  if (file && !states_.count(document_)) states_[document_] = {.file = file, .no_run = why_no_run(*file)};
  refresh();
}

void RunPage::keep(const std::set<int>& documents) {
  if (running_ >= 0 && !documents.count(running_)) stop();
  if (!documents.count(document_)) lines_of_ = nullptr, outputs_.show(nullptr);
  std::erase_if(states_, [&](const auto& s) { return !documents.count(s.first); });
}

void RunPage::look() {
  Shown* s = shown();
  if (s && !s->no_run && !s->model && !bench_.jobs.has(kReadTag)) read_model();
}

void RunPage::read_model() {
  bench_.jobs.start(
      kReadTag, tr("Read the model"),
      [path = shown()->file->path](const Jobs::Report&, const std::atomic<bool>&) {
        Ready r{std::make_shared<const formats::OnnxModel>(formats::load_runnable(path)), {}};
        r.no_run = why_no_run(*r.model);
        return r;
      },
      [this, document = document_](const Ready& r) {
        const auto at = states_.find(document);
        if (at == states_.end()) return;
        Shown& s = at->second;
        s.model = r.model;
        s.no_run = r.no_run;
        s.inputs = formats::wanted_inputs(*r.model);
        s.feeds.assign(s.inputs.size(), {});
        for (const formats::OnnxValue& v : s.inputs) {
          QStringList sizes;
          for (const int64_t n : formats::least_shape(v)) sizes << QString::number(n);
          s.shapes.push_back(sizes.join(", "));
        }
        refresh();
        emit bench_.state_changed();
      },
      [this, document = document_](const QString& message, const QString& hint) {
        if (const auto at = states_.find(document); at != states_.end())
          at->second.no_run = {message.toStdString(), hint.toStdString()};
        refresh();
      },
      true);
  refresh();
}

void RunPage::refresh() {
  Shown* s = shown();
  if (!s || s->no_run) {
    lines_of_ = nullptr;
    const QString why = s ? QString::fromStdString(s->no_run.why + " " + s->no_run.hint) : QString();
    const bool weights = s && !formats::is_runnable(s->file->kind) && bench_.has_project();
    empty_->set(why, weights ? tr("Begin with these weights") : QString(),
                [this] { bench_.ask("weights.shown_file"); });
    return pages_->setCurrentIndex(0);
  }
  if (!s->model) {
    empty_->wait_for(
        bench_.jobs, [](const Jobs::State& job) { return job.tag == kReadTag; }, tr("it can be run in a moment."),
        [this] { empty_->set(tr("The model was not read."), tr("Read it"), [this] { read_model(); }); });
    return pages_->setCurrentIndex(0);
  }
  pages_->setCurrentIndex(1);
  if (lines_of_ != s->model.get()) build_lines();
  const bool runs = running_ >= 0;
  run_->setEnabled(!runs);
  stop_->setVisible(runs);
  fault_->setVisible(s->fault >= 0);
  save_->setEnabled(s->run && s->run->ok() && !s->run->outputs.empty());
  if (runs) return show_progress();
  outputs_.show(s->run && s->run->ok() ? s->run : nullptr);
  list_->set_table(s->run ? s->run->table() : ModelRun().table());
  if (!s->run)
    say(s->inputs.empty() ? tr("The model takes no inputs.") : tr("Say what the inputs are, and run it."), false);
  else
    say(QString::fromStdString(s->run->sentence()), !s->run->error.empty());
}

/// A line an input; those of the file before are gone.
void RunPage::build_lines() {
  while (QLayoutItem* item = grid_->takeAt(0)) {
    if (item->widget()) discard(item->widget());
    delete item;
  }
  lines_.clear();
  const Shown& s = *shown();
  lines_of_ = s.model.get();
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const QString name = QString::fromStdString(s.inputs[i].name);
    const int row = static_cast<int>(i);
    auto* label = new ElidedLabel(name, inputs_);
    label->setMaximumWidth(220);
    grid_->addWidget(label, row, 0);
    auto* type = new ElidedLabel(QString::fromStdString(formats::type_text(s.inputs[i])), inputs_);
    type->setMaximumWidth(220);
    set_style(type, "voice", "secondary");
    grid_->addWidget(type, row, 1);
    Line line{};
    line.shape = new QLineEdit(s.shapes[i], inputs_);
    line.shape->setObjectName("model_file.shape." + name);
    line.shape->setAccessibleName(tr("Shape of %1").arg(name));
    line.shape->setToolTip(tr("Sizes that the model leaves open may be any, as 2, 3, 224, 224"));
    line.shape->setFixedWidth(150);
    line.from = new QComboBox(inputs_);
    line.from->setObjectName("model_file.from." + name);
    line.from->setAccessibleName(tr("Values of %1").arg(name));
    line.from->addItems({tr("from the seed"), tr("zeros"), tr("ones"), tr("from a file")});
    line.from->setCurrentIndex(static_cast<int>(s.feeds[i].from));
    line.file = new QLineEdit(QString::fromStdString(s.feeds[i].file), inputs_);
    line.file->setObjectName("model_file.file." + name);
    line.file->setAccessibleName(tr("File of %1").arg(name));
    line.file->setPlaceholderText(tr(".npy, .npz, .pb, .safetensors or .pt"));
    line.file->setMinimumWidth(160);
    line.choose = run_button(inputs_, "model_file.choose", tr("Choose…"), tr("A file with the values of this input"));
    line.choose->setObjectName("model_file.choose." + name);
    connect(line.choose, &QToolButton::clicked, this, [this, i] { choose_file(i); });
    connect(line.from, &QComboBox::activated, this, [this] { follow_lines(); });
    for (QLineEdit* edit : {line.shape, line.file}) connect(edit, &QLineEdit::returnPressed, this, &RunPage::run);
    grid_->addWidget(line.shape, row, 2);
    grid_->addWidget(line.from, row, 3);
    grid_->addWidget(line.choose, row, 4);
    grid_->addWidget(line.file, row, 5);
    lines_.push_back(line);
  }
  follow_lines();
}

/// What is asked for beside each choice: a file has its own shape.
void RunPage::follow_lines() {
  for (const Line& line : lines_) {
    const bool file = line.from->currentIndex() == static_cast<int>(From::file);
    line.shape->setVisible(!file);
    line.choose->setVisible(file);
    line.file->setVisible(file);
  }
}

void RunPage::take_lines() {
  Shown& s = *shown();
  for (size_t i = 0; i < lines_.size() && i < s.feeds.size(); ++i) {
    s.shapes[i] = lines_[i].shape->text();
    s.feeds[i].from = static_cast<From>(lines_[i].from->currentIndex());
    s.feeds[i].file = lines_[i].file->text().toStdString();
    s.feeds[i].seed = static_cast<uint64_t>(seed_->value());
  }
}

/// As they stand in the lines; a shape that is wrong is thrown.
std::vector<OnnxFeed> RunPage::feeds(Shown& s) {
  take_lines();
  for (size_t i = 0; i < s.feeds.size(); ++i) {
    set_style(lines_[i].shape, "bad", "false");
    if (s.feeds[i].from == From::file) {
      if (s.feeds[i].file.empty())
        throw Error::usage("input " + s.inputs[i].name + ": no file is named", "Choose one, or let the seed fill it.");
      continue;
    }
    set_style(lines_[i].shape, "bad", "true");
    s.feeds[i].shape = formats::input_shape(s.inputs[i], s.shapes[i].toStdString());
    set_style(lines_[i].shape, "bad", "false");
  }
  return s.feeds;
}

void RunPage::choose_file(size_t input) {
  const QString path = QFileDialog::getOpenFileName(
      this, tr("Values of the input %1").arg(QString::fromStdString(shown()->inputs[input].name)),
      QFileInfo(QString::fromStdString(shown()->file->path)).path(),
      tr("Tensors (*.npy *.npz *.pb *.safetensors *.pt *.pth);;All files (*)"));
  if (!path.isEmpty() && input < lines_.size()) lines_[input].file->setText(path);
}

bool RunPage::can_run() const {
  const auto at = states_.find(document_);
  return running_ < 0 && at != states_.end() && at->second.model && !at->second.no_run;
}

void RunPage::run() {
  if (!can_run()) return;
  Shown& s = *shown();
  std::vector<OnnxFeed> given;
  try {
    given = feeds(s);
  } catch (const Error& e) {
    return say(QString::fromStdString(e.message() + ". " + e.hint()), true);
  }
  running_ = document_;
  s.fault = -1;
  bench_.jobs.start(
      kRunTag, tr("Run %1").arg(QFileInfo(QString::fromStdString(s.file->path)).fileName()),
      [model = s.model, given](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::make_shared<const ModelRun>(run_model(*model, given, report));
      },
      [this, document = document_](std::shared_ptr<const ModelRun> run) { end(document, std::move(run)); });
  progress_.start();
  refresh();
}

void RunPage::stop() {
  if (running_ >= 0) bench_.jobs.cancel_tag(kRunTag);
}

void RunPage::end(int document, std::shared_ptr<const ModelRun> run) {
  running_ = -1;
  progress_.stop();
  const auto at = states_.find(document);
  if (at == states_.end()) return refresh();
  Shown& s = at->second;
  s.run = std::move(run);
  const auto& nodes = s.file->nodes;
  for (size_t i = 0; i < nodes.size() && !s.run->failed_value.empty(); ++i)
    if (std::find(nodes[i].outputs.begin(), nodes[i].outputs.end(), s.run->failed_value) != nodes[i].outputs.end())
      s.fault = static_cast<int>(i);
  refresh();
  if (s.fault >= 0 && document == document_ && on_fault) on_fault(s.fault);
}

void RunPage::show_progress() {
  for (const auto& job : bench_.jobs.list())
    if (job->tag == kRunTag)
      return say((job->cancelled ? tr("Node %1: it stops behind the node that is at work") : tr("Node %1"))
                     .arg(job->figures()),
                 false);
}

void RunPage::say(const QString& text, bool bad) {
  if (said_->text() != text) said_->setText(text);
  set_style(said_, "voice", bad ? "bad" : "secondary");
}

void RunPage::read_slice() {
  const TensorPane& pane = outputs_.pane();
  if (!outputs_.wants_slice()) return;
  bench_.files.start(
      kOutputTag, tr("Read an output"),
      [file = pane.file(), output = pane.tensor(), rows = pane.row_axis(), cols = pane.col_axis(),
       index = pane.index()](const Jobs::Report&, const std::atomic<bool>&) {
        return tenon::views::read_slice(file->tensor(static_cast<size_t>(output)), rows, cols, index);
      },
      [this, file = pane.file(), output = pane.tensor()](ValueSlice slice) {
        outputs_.set_slice(file, output, std::move(slice));
      },
      {}, true);
}

void RunPage::save() {
  const Shown* s = shown();
  if (!s || !s->run || !s->run->ok()) return;
  const bool one = s->run->outputs.size() == 1;
  const QFileInfo of(QString::fromStdString(s->file->path));
  const QString path = QFileDialog::getSaveFileName(this, tr("Save the outputs"),
                                                    of.dir().filePath(of.completeBaseName() + "-outputs.npz"),
                                                    QString("NumPy (*.npz);;safetensors (*.safetensors)") +
                                                        (one ? ";;" + tr("NumPy, one array (*.npy)") : QString()));
  if (path.isEmpty()) return;
  bench_.jobs.start(
      "save outputs", tr("Save the outputs"),
      [run = s->run, path](const Jobs::Report&, const std::atomic<bool>&) {
        formats::save_outputs(path.toStdString(), run->outputs);
      },
      [this, path, document = document_] {
        if (document == document_) say(tr("The outputs are in %1.").arg(path), false);
      });
}

void RunPage::set_theme(ThemeName theme) {
  picture_->set_theme(theme);
  list_->set_theme(theme);
}

bool RunPage::idle() const { return picture_->idle() && !progress_.isActive(); }

}  // namespace tenon::views
