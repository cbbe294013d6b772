#include "views/model_file/code_page_view.h"

#include <QHBoxLayout>
#include <QListWidget>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/frame/code_editor.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
constexpr const char* kSourceTag = "model file code";
}  // namespace

CodePage::CodePage(Bench& bench, QWidget* parent) : QWidget(parent), bench_(bench) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* split = new QSplitter(Qt::Horizontal, this);
  list_ = new QListWidget(split);
  list_->setObjectName("model_file.sources");
  list_->setAccessibleName(tr("Listings of code in the file"));
  set_style(list_, "side", "true");
  list_->setTextElideMode(Qt::ElideLeft);  // their ends tell them apart
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* right = new QWidget(split);
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  said_ = new ElidedLabel({}, right);
  said_->setObjectName("model_file.code_said");
  set_style(said_, "voice", "small");
  text_ = new CodeEditor(right);
  text_->setObjectName("model_file.code_text");
  text_->setAccessibleName(tr("Code of the model file"));
  text_->setReadOnly(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* line = new QHBoxLayout;
  line->setContentsMargins(12, 6, 12, 2);
  line->addWidget(said_);
  column->addLayout(line);
  column->addWidget(text_, 1);
  split->addWidget(list_);
  split->addWidget(right);
  split->setStretchFactor(1, 1);
  split->setSizes({260, 700});
  box->addWidget(split);
  connect(list_, &QListWidget::currentRowChanged, this, &CodePage::choose);
}

void CodePage::show_file(int document, const File& file) {
  if (file == file_ && document == document_) return;
  file_ = nullptr;  // the list is being filled: nobody chooses from it
  list_->clear();
  text_->clear();
  said_->set_text({});
  shown_ = -1;
  document_ = document;
  if (file)
    for (const formats::ModelFile::Source& s : file->sources) {
      auto* item = new QListWidgetItem(QString::fromStdString(s.name), list_);
      item->setToolTip(QString::fromStdString(s.name + "\n" + format_bytes(static_cast<double>(s.bytes))));
    }
  file_ = file;
  if (list_->count() == 0) return;
  const auto known = chosen_.find(document);
  list_->setCurrentRow(known == chosen_.end() ? 0 : known->second);
}

void CodePage::keep(const std::set<int>& documents) {
  std::erase_if(chosen_, [&](const auto& c) { return !documents.contains(c.first); });
}

void CodePage::choose(int source) {
  if (!file_ || source < 0) return;
  chosen_[document_] = source;
  if (isVisible()) look();
}

/// Unpacking takes a moment.
void CodePage::look() {
  const int source = list_->currentRow();
  if (!file_ || source < 0 || source == shown_) return;
  shown_ = source;
  bench_.files.start(
      kSourceTag, tr("Read the code of the file"),
      [file = file_, source](const Jobs::Report&, const std::atomic<bool>&) {
        return file->source_text(static_cast<size_t>(source));
      },
      [this, file = file_, source](const std::string& text) {
        if (file == file_) say(source, QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())), {});
      },
      [this, file = file_, source](const QString& message, const QString&) {
        if (file == file_) say(source, {}, message);
      },
      true);
}

void CodePage::say(int source, const QString& text, const QString& why) {
  if (source != shown_) return;
  text_->setPlainText(text);
  const formats::ModelFile::Source& s = file_->sources[static_cast<size_t>(source)];
  said_->set_text(why.isEmpty() ? tr("%1 · %2 · as the file has it; it is never run")
                                      .arg(QString::fromStdString(s.name),
                                           QString::fromStdString(format_bytes(static_cast<double>(s.bytes))))
                                : why);
}

void CodePage::set_theme(ThemeName theme) { text_->set_theme(theme); }

}  // namespace tenon::views
