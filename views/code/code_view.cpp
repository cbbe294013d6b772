#include "views/code/code_view.h"

#include <QClipboard>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"
#include "views/frame/code_editor.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr int kPause = 350;  ///< ms between what is typed last and its reading

/// The line that an error of the reader begins with; 0: none.
int line_of(const QString& message) {
  return message.startsWith("line ") ? message.section(':', 0, 0).mid(5).toInt() : 0;
}
}  // namespace

CodeView::CodeView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), builder_(bench.model<BuilderModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("code.said");
  bar->add(said_, 1);
  again_ = bar->add_button("code.again", tr("As the graph"),
                           tr("Gives up what was typed: the source says the graph again"), [this] { write(); });
  copy_ = bar->add_button("code.copy", tr("Copy"), tr("The whole source to the clipboard"), [this] { copy(); });
  const QString reads = tr("Reads the model of a Python file; it is not run");
  bar->add_button("code.open", tr("Open…"), reads, [this] { open(); });
  save_ = bar->add_button("code.save", tr("Save as…"), tr("Writes the source to a Python file"), [this] { save(); });
  box->addWidget(bar);
  editor_ = new CodeEditor(page);
  editor_->setObjectName("code.source");
  editor_->setAccessibleName(tr("The model as PyTorch source"));
  box->addWidget(editor_, 1);
  set_content(page);

  typed_.setSingleShot(true);
  typed_.setInterval(kPause);
  connect(&typed_, &QTimer::timeout, this, &CodeView::read);
  connect(editor_, &QPlainTextEdit::textChanged, this, [this] {
    if (writing_) return;
    own_ = true;
    typed_.start();
  });
  connect(editor_, &QPlainTextEdit::cursorPositionChanged, this, &CodeView::choose_line);
  connect(&bench, &Bench::project_changed, this, &CodeView::refresh);
  connect(&bench, &Bench::state_changed, this, &CodeView::refresh);
  connect(&bench, &Bench::selection_changed, this, &CodeView::mark);
  refresh();
}

void CodeView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  editor_->set_theme(theme);
}

std::vector<Command> CodeView::commands() {
  auto has = [this] { return bench_.has_project(); };
  return {{.id = "code.copy_model",
           .title = tr_later("Copy the model as Python"),
           .menu = "Model",
           .icon = "copy",
           .run =
               [this] {
                 if (revision_ != builder_.revision() && !own_) write();
                 copy();
               },
           .enabled = has},
          {.id = "code.open_source",
           .title = tr_later("Model from a Python file…"),
           .menu = "Model",
           .icon = "import",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 open();
               },
           .enabled = has}};
}

void CodeView::refresh() {
  if (!bench_.has_project()) {
    revision_ = -1;
    own_ = false;
    typed_.stop();
    return set_empty(true,
                     tr("Start a project from a template: its model is here as PyTorch source, to be read, changed "
                        "and copied."),
                     tr("New from a template"), [this] { bench_.ask("file.new"); });
  }
  if (std::exchange(of_, bench_.file()) != bench_.file()) {  // what was typed belongs to another project
    own_ = false;
    revision_ = -1;
  }
  set_empty(false);
  look();
}

void CodeView::came_into_sight() {
  if (!bench_.has_project() || revision_ == builder_.revision()) return;
  if (own_) {  // what was typed is not thrown away for an edit elsewhere
    if (!typed_.isActive()) say(tr("The graph was changed; what is typed here is not in it"), true, bad_line_);
    return;
  }
  write();
}

/// The graph's source in the place of what stands here.
void CodeView::write() {
  typed_.stop();
  own_ = false;
  revision_ = builder_.revision();
  try {
    const std::string source = python::write_model(builder_.spec());
    const auto text = QString::fromStdString(source);
    if (text != editor_->toPlainText()) {
      writing_ = true;
      const int across = editor_->horizontalScrollBar()->value(), down = editor_->verticalScrollBar()->value();
      editor_->replace_text(text);
      editor_->horizontalScrollBar()->setValue(across);
      editor_->verticalScrollBar()->setValue(down);
      writing_ = false;
    }
    lines_ = python::read_model(source, &builder_.spec()).lines;
    say(tr("The graph and the source say the same"), false, 0);
  } catch (const Error& e) {
    say(tr("The graph cannot be written: %1").arg(QString::fromStdString(e.message())), true, 0);
  }
}

/// What was typed becomes the model, as one edit.
void CodeView::read() {
  typed_.stop();
  if (!bench_.has_project()) return;
  try {
    python::ReadModel read = python::read_model(editor_->toPlainText().toStdString(), &builder_.spec());
    lines_ = std::move(read.lines);
    own_ = false;
    builder_.replace(views::tr("Edit the source"), read.model);
    revision_ = builder_.revision();
    const std::vector<std::string> errors = builder_.errors();
    if (!errors.empty()) {
      const std::string layer = errors[0].substr(0, errors[0].find(": "));
      const auto line = lines_.find(layer);
      say(QString::fromStdString(errors[0]), true, line == lines_.end() ? 0 : line->second);
    } else if (!read.remarks.empty()) {
      say(QString::fromStdString(read.remarks[0]), false, 0);
    } else {
      say(tr("The graph and the source say the same"), false, 0);
    }
  } catch (const Error& e) {
    const auto message = QString::fromStdString(e.hint().empty() ? e.message() : e.message() + " · " + e.hint());
    own_ = true;
    say(message, true, line_of(message));
  }
}

void CodeView::say(const QString& text, bool bad, int line) {
  bad_line_ = line;
  said_->set_text(text);
  said_->setToolTip(text);
  set_style(said_, "voice", bad ? "bad" : "secondary");
  again_->setVisible(own_ || revision_ != builder_.revision());
  mark();
}

void CodeView::mark() {
  QList<int> lines;
  const Selection& s = bench_.bus.current();
  if (s.kind == Selection::Kind::module && !s.name.empty())
    for (const auto& [layer, line] : lines_)
      if (in_module(layer, s.name) && !lines.contains(line)) lines << line;
  editor_->mark(lines, bad_line_);
  if (!lines.isEmpty() && s.source != "code" && !editor_->hasFocus()) {
    writing_ = true;
    editor_->show_line(*std::min_element(lines.begin(), lines.end()));
    writing_ = false;
  }
}

/// The layer of the cursor's line is selected in every view.
void CodeView::choose_line() {
  if (writing_ || own_ || !editor_->hasFocus()) return;
  for (const auto& [layer, line] : lines_)
    if (line == editor_->line()) {
      Selection s = Selection::module(layer);
      s.source = "code";
      if (!bench_.bus.current().same(s)) bench_.select(s);
      return;
    }
}

void CodeView::copy() { QGuiApplication::clipboard()->setText(editor_->toPlainText()); }

void CodeView::open() {
  const QString folder = QFileInfo(bench_.file()).dir().path();
  const QString path = QFileDialog::getOpenFileName(this, tr("A model as Python source"), folder, tr("Python (*.py)"));
  if (path.isEmpty()) return;
  try {
    const std::string text = read_file(path.toStdString());
    own_ = true;
    editor_->replace_text(QString::fromStdString(text));
    read();
  } catch (const Error& e) {
    bench_.fail(tr("%1 was not read").arg(QFileInfo(path).fileName()), QString::fromStdString(e.message()),
                QString::fromStdString(e.hint()));
  }
}

void CodeView::save() {
  const QFileInfo file(bench_.file());
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save the source"), file.dir().filePath(file.completeBaseName() + ".py"), tr("Python (*.py)"));
  if (path.isEmpty()) return;
  try {
    write_file(path.toStdString(), editor_->toPlainText().toStdString());
    emit bench_.logged(tr("%1: the model as PyTorch source").arg(path), false);
  } catch (const Error& e) {
    bench_.fail(tr("The source was not saved"), QString::fromStdString(e.message()), QString::fromStdString(e.hint()));
  }
}

namespace {
const bool registered_code_view = register_view<CodeView>(
    {.id = "code",
     .title = tr_later("Code"),
     .icon = "code",
     .order = 12,
     .layouts = {"Build"},
     .link = tr_later("Code"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const ModelSpec& spec = bench.model<BuilderModel>().spec();
           return s.kind == Selection::Kind::module &&
                  std::any_of(spec.layers.begin(), spec.layers.end(),
                              [&](const LayerSpec& l) { return in_module(l.name, s.name); });
         },
     .help = {
         tr_later("The model of the builder as PyTorch source that a person would write: a class for every group "
                  "with a forward of its own, one for all groups that are alike. Its state_dict has the names of "
                  "the model's parameters."),
         tr_later("Type to change the model: as soon as the source can be read, the graph follows, and an edit of "
                  "the graph writes the source anew. A line that is not read is marked, with the reason above. "
                  "The cursor's line selects its layer in every view. The source is read, never run."),
         tr_later("Enter keeps the indentation, Tab and Shift+Tab move lines, Ctrl+Z takes back, Escape leaves the "
                  "text.")}});
}  // namespace

}  // namespace tenon::views
