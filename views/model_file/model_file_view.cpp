#include "views/model_file/model_file_view.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QLineEdit>
#include <QMenu>
#include <QShortcut>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "engine/formats/onnx/runnable.h"
#include "views/model_file/code_page_view.h"
#include "views/model_file/run_page_view.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char *kOutlineTag = "model file outline", *kLayoutTag = "model file layout",
                     *kSliceTag = "model file slice", *kStatsTag = "model file statistics";
constexpr int kFileBins = 64;
}  // namespace

ModelFileView::ModelFileView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<ModelFileModel>()) {
  build();
  model_.on_choose = [this] { read(); };
  model_.on_cancel = [this] { cancel(); };
  model_.on_page = [this] { follow(); };
  model_.on_need_layout = [this](const ModelFileModel::File& file, std::set<int> open) {
    lay_out(file, std::move(open));
  };
  progress_.setInterval(100);  // live views change at most ten times a second
  connect(&progress_, &QTimer::timeout, this, &ModelFileView::show_progress);
  connect(&bench, &Bench::documents_changed, this, &ModelFileView::refresh);
  connect(&bench, &Bench::project_changed, this, &ModelFileView::follow);
  connect(&bench, &Bench::selection_changed, this, [this] { refresh_table(); });
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!model_.file()) refresh();
    // Cancelled among the jobs: nobody hands its result over.
    if (!progress_.isActive() || bench_.jobs.has(kStatsTag)) return;
    show_progress();
  });
  refresh();
}

ModelFileView::~ModelFileView() {
  model_.on_choose = model_.on_cancel = model_.on_page = nullptr;
  model_.on_need_layout = nullptr;
}

void ModelFileView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  build_bar(bar);
  box->addWidget(bar);
  pages_ = new QStackedWidget(page);
  pages_->addWidget(with_table(make_canvas(model_), bar, [this] { return model_.table(); }));
  run_page_ = new RunPage(bench_, pages_);
  run_page_->on_fault = [this](int node) {
    bench_.select(Selection::file_node(model_.document(), node, ModelFileModel::kRunSource));
  };
  run_page_->on_show_fault = [this] { show_page(ModelFileModel::Page::graph); };
  pages_->addWidget(run_page_);
  code_page_ = new CodePage(bench_, pages_);
  pages_->addWidget(code_page_);
  box->addWidget(pages_, 1);
  set_content(page);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& t) {
    model_.search(t.toStdString());
    follow();
  });
  connect(search_, &QLineEdit::returnPressed, this, [this] { model_.next_found(1); });
  auto* slash = new QShortcut(QKeySequence("/"), canvas());
  slash->setContext(Qt::WidgetShortcut);
  connect(slash, &QShortcut::activated, this, [this] {
    search_->setFocus();
    search_->selectAll();
  });
}

void ModelFileView::build_bar(ViewBar* bar) {
  tensors_ = bar->add_page("model_file.tensors", tr("Tensors"), tr("Every tensor of the file, by its module"),
                           [this] { show_page(ModelFileModel::Page::tensors); });
  graph_ = bar->add_page("model_file.graph", tr("Graph"), tr("The operations and who gives whom a value"),
                         [this] { show_page(ModelFileModel::Page::graph); });
  code_ = bar->add_page("model_file.code", tr("Code"), tr("The code that the file brings: shown, never run"),
                        [this] { show_page(ModelFileModel::Page::code); });
  run_ = bar->add_page("model_file.run", tr("Try it"), tr("Give the model inputs and look at what comes out"),
                       [this] { show_page(ModelFileModel::Page::run); });
  search_ = new QLineEdit(bar);
  search_->setObjectName("model_file.search");
  search_->setPlaceholderText(tr("Find by name"));
  search_->setClearButtonEnabled(true);
  search_->setFixedWidth(170);
  bar->add(search_);
  found_ = new ElidedLabel({}, bar);
  found_->setObjectName("model_file.found");
  set_style(found_, "voice", "small");
  bar->add(found_, 1);
  for (const bool open : {true, false}) {
    auto*& b = open ? unfold_ : fold_;
    b = new QToolButton(bar);
    b->setObjectName(open ? "model_file.unfold" : "model_file.fold");
    b->setText(open ? tr("Unfold") : tr("Fold"));
    b->setToolTip(open ? tr("Show what is in every module") : tr("One row or box a module"));
    connect(b, &QToolButton::clicked, this, [this, open] { model_.open_all(open); });
    bar->add(b);
  }
  weights_ = new QToolButton(bar);
  weights_->setObjectName("model_file.weights");
  weights_->setText(tr("Begin with these weights"));
  weights_->setToolTip(tr("The next run of the project begins with the weights of this file"));
  connect(weights_, &QToolButton::clicked, this, [this] { bench_.ask("weights.shown_file"); });
  bar->add(weights_);
  build_ = new QToolButton(bar);
  build_->setObjectName("model_file.build");
  build_->setText(tr("Open in the builder…"));
  build_->setToolTip(tr("A project whose model has the layers and the weights of this file"));
  connect(build_, &QToolButton::clicked, this, [this] { bench_.ask("file.build"); });
  bar->add(build_);
}

void ModelFileView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  run_page_->set_theme(theme);
  code_page_->set_theme(theme);
}

bool ModelFileView::idle() const { return View::idle() && run_page_->idle(); }

/// What it shows is worked out for who sees it.
void ModelFileView::came_into_sight() {
  read();
  look_at_page();
}

void ModelFileView::look_at_page() {
  if (!in_sight() || !model_.ready()) return;
  if (model_.page() == ModelFileModel::Page::run) run_page_->look();
  if (model_.page() == ModelFileModel::Page::code) code_page_->look();
}

std::vector<Command> ModelFileView::commands() {
  auto page = [this](const char* id, const char* title, ModelFileModel::Page p) {
    return Command{.id = id,
                   .title = title,
                   .menu = {},
                   .run =
                       [this, p] {
                         bench_.ask(QString("view.") + def().id);
                         show_page(p);
                       },
                   .enabled =
                       [this, p] {
                         if (p == ModelFileModel::Page::graph) return model_.has_graph();
                         return p == ModelFileModel::Page::code ? model_.has_code() : model_.ready();
                       }};
  };
  return {page("model_file.tensors", tr_later("Show the tensors of the model file"), ModelFileModel::Page::tensors),
          page("model_file.graph", tr_later("Show the graph of the model file"), ModelFileModel::Page::graph),
          page("model_file.code", tr_later("Show the code of the model file"), ModelFileModel::Page::code),
          page("model_file.run", tr_later("Run the model of the file"), ModelFileModel::Page::run),
          {.id = "model_file.copy_name",
           .title = tr_later("Copy the name"),
           .menu = {},
           .icon = "copy",
           .run = [this] { copy_name(); },
           .enabled = [this] { return !model_.chosen_name().empty(); }}};
}

void ModelFileView::contextMenuEvent(QContextMenuEvent* e) {
  if (!model_.ready() || !canvas()->rect().contains(canvas()->mapFromGlobal(e->globalPos())))
    return View::contextMenuEvent(e);
  auto* menu = new QMenu(this);
  menu->setObjectName("model_file.menu");
  menu->setAttribute(Qt::WA_DeleteOnClose);
  for (const char* id : {"model_file.copy_name", "weights.shown_file"})
    if (auto* action = window()->findChild<QAction*>(id)) menu->addAction(action);
  menu->popup(e->globalPos());
}

void ModelFileView::copy_name() { QApplication::clipboard()->setText(QString::fromStdString(model_.chosen_name())); }

void ModelFileView::show_page(ModelFileModel::Page page) {
  model_.show_page(page);
  follow();
}

/// The bar says what the model shows.
void ModelFileView::follow() {
  tensors_->setChecked(model_.page() == ModelFileModel::Page::tensors);
  graph_->setChecked(model_.page() == ModelFileModel::Page::graph);
  code_->setChecked(model_.page() == ModelFileModel::Page::code);
  run_->setChecked(model_.page() == ModelFileModel::Page::run);
  graph_->setVisible(model_.has_graph());
  code_->setVisible(model_.has_code());
  const bool runs = model_.page() == ModelFileModel::Page::run, code = model_.page() == ModelFileModel::Page::code;
  const bool drawn = !runs && !code;
  for (QWidget* w : std::initializer_list<QWidget*>{search_, unfold_, fold_}) w->setVisible(drawn);
  run_page_->show_file(model_.document(), model_.file());
  code_page_->show_file(model_.document(), model_.file());
  pages_->setCurrentIndex(runs ? 1 : code ? 2 : 0);
  offer_table(drawn);
  look_at_page();
  const QString words = QString::fromStdString(model_.words());
  if (search_->text() != words) search_->setText(words);
  found_->set_text(QString::fromStdString(model_.found_text()));
  weights_->setVisible(bench_.has_project() && !bench_.project()->read_only());
  build_->setVisible(model_.ready() && formats::is_runnable(model_.file()->kind));
  refresh_table();
}

void ModelFileView::refresh() {
  std::set<int> open;
  for (const Document& d : bench_.documents()) open.insert(d.id);
  model_.keep(open);
  run_page_->keep(open);
  code_page_->keep(open);
  if (!model_.file())  // the one that was shown is closed: another that is open
    for (const Document& d : bench_.documents()) model_.set_document(&d);
  const auto& file = model_.file();
  if (!file && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, tr("what is in it will be here in a moment."));
  set_empty(!file, tr("Open an ONNX model, a safetensors or GGUF file or a PyTorch checkpoint to see what is in it."),
            tr("Open…"), [this] { bench_.ask("file.open"); });
  if (!file) cancel();
  if (model_.wants_outline()) outline();
  follow();
  read();
}

void ModelFileView::outline() {
  bench_.files.start(
      kOutlineTag, tr("List what is in the file"),
      [file = model_.file()](const Jobs::Report&, const std::atomic<bool>&) {
        return std::make_shared<const FileOutline>(file);
      },
      [this](std::shared_ptr<const FileOutline> outline) {
        model_.set_outline(std::move(outline));
        emit bench_.state_changed();  // its pages can be shown now
      },
      {}, true);
}

void ModelFileView::lay_out(const ModelFileModel::File& file, std::set<int> open) {
  bench_.files.start(
      kLayoutTag, tr("Lay out the graph"),
      [outline = model_.graph().outline(), open](const Jobs::Report&, const std::atomic<bool>&) {
        return std::make_shared<GraphLayout>(tenon::views::lay_out(*outline->graph, open));
      },
      [this, file, open](const std::shared_ptr<GraphLayout>& layout) {
        model_.set_layout(file, std::move(*layout), open);
      },
      {}, true);
}

void ModelFileView::read() {
  if (!model_.ready() || !in_sight()) return;
  const TensorPane& pane = model_.pane();
  const auto& file = model_.file();
  const int tensor = pane.tensor();
  if (!pane.entry() || !pane.entry()->problem.empty()) return cancel();
  const auto& slice = pane.slice();
  if (!slice || slice->row_axis != pane.row_axis() || slice->col_axis != pane.col_axis() ||
      !(slice->index == pane.index()))
    bench_.files.start(
        kSliceTag, tr("Read a slice"),
        [file, tensor, rows = pane.row_axis(), cols = pane.col_axis(), index = pane.index()](const Jobs::Report&,
                                                                                             const std::atomic<bool>&) {
          return read_slice(file->tensor(static_cast<size_t>(tensor)), rows, cols, index);
        },
        [this, file, tensor](ValueSlice s) { model_.set_slice(file, tensor, std::move(s)); },
        [this, file, tensor](const QString& message, const QString&) { stop(file, tensor, message); }, true);
  if (pane.waits())
    read_stats(file, tensor);
  else
    cancel();
}

void ModelFileView::read_stats(const ModelFileModel::File& file, int tensor) {
  if (file == reading_ && tensor == reading_tensor_ && bench_.jobs.has(kStatsTag)) return;
  reading_ = file;
  reading_tensor_ = tensor;
  const QString name = QString::fromStdString(file->tensors[static_cast<size_t>(tensor)].name);
  bench_.jobs.start(
      kStatsTag, tr("Statistics of %1").arg(name),
      [file, tensor](const Jobs::Report& report, const std::atomic<bool>&) {
        return file_tensor_stats(*file, static_cast<size_t>(tensor), kFileBins, report);
      },
      [this, file, tensor](const TensorStats& stats) {
        progress_.stop();
        model_.set_stats(file, tensor, stats);
      },
      [this, file, tensor](const QString& message, const QString&) { stop(file, tensor, message); });
  progress_.start();
}

/// Whoever listens to the jobs is told only where there is one to cancel.
void ModelFileView::cancel() {
  if (bench_.jobs.has(kStatsTag)) bench_.jobs.cancel_tag(kStatsTag);
}

void ModelFileView::stop(const ModelFileModel::File& file, int tensor, const QString& why) {
  model_.stop(file, tensor, why.toStdString());
}

void ModelFileView::show_progress() {
  for (const auto& job : bench_.jobs.list())
    if (job->tag == kStatsTag && !job->cancelled) return model_.set_progress(job->share());
  if (bench_.jobs.has(kStatsTag)) return;  // done, and not handed over yet
  progress_.stop();
  if (model_.ready() && model_.pane().waits())
    stop(model_.file(), model_.pane().tensor(), tr("The reading was cancelled."));
}

namespace {
bool of_model_file(const Selection& s, const Bench& bench) {
  const Document* d = bench.document(s.document);
  return d && d->model;
}

const bool registered_model_file_view = register_view<ModelFileView, ModelFileModel>(
    {.id = "model_file",
     .title = tr_later("Model file"),
     .icon = "model",
     .order = 36,
     .layouts = {"Build", "Profile"},
     .link = tr_later("Model file"),
     .opens = Document::Kind::model,
     .shows = of_model_file,
     .help = {
         tr_later(
             "What is in an ONNX model, a safetensors or GGUF file or a PyTorch checkpoint: its tensors by the modules "
             "that "
             "their names lead through, with their sizes and shares of the file; beside them the values of the chosen "
             "one as colours, its statistics and a histogram. Blocks that are built alike stand in one row, ×12. The "
             "page Graph shows the operations of a file that has them, Code the source of a TorchScript program as the "
             "file has it. The page Run gives an ONNX model inputs, from a seed or from files, and shows what comes "
             "out of it. Code in a file is never run."),
         tr_later(
             "A click selects a tensor or a node, on the arrow beside a module it unfolds it. In the graph a double "
             "click unfolds a module, or folds the one that a node stands in; drag or wheel moves, Ctrl and wheel "
             "zooms. The other button has what can be done with the chosen one."),
         tr_later(
             "Up and Down go through the rows, Left and Right fold and unfold, [ and ] go through the slices, T swaps "
             "rows and columns, / searches, N and Shift+N go through what was found. In the graph the arrows go along "
             "the wires and within a layer, Enter unfolds, Backspace folds, F shows everything, + and - zoom.")}});
}  // namespace

}  // namespace tenon::views
