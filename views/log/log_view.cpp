#include "views/log/log_view.h"

#include <QPlainTextEdit>

#include "views/canvas/glyphs.h"

namespace tenon::views {

LogView::LogView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), text_(new QPlainTextEdit(this)) {
  text_->setReadOnly(true);
  text_->setMaximumBlockCount(5000);
  text_->setFont(face_font(Face::mono));
  text_->setFrameShape(QFrame::NoFrame);
  set_content(text_);
  set_empty(true, tr("What happens in this window will be written down here."));
  connect(&bench, &Bench::logged, this, &LogView::add);
}

void LogView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  text_->setFont(face_font(Face::mono));
}

void LogView::add(const QString& line, bool bad) {
  set_empty(false);
  text_->appendPlainText((bad ? "⚠ " : "") + line);
}

namespace {
const bool registered_log_view = register_view<LogView>(
    {.id = "log",
     .title = tr_later("Log"),
     .icon = "log",
     .order = 210,
     .spot = Spot::below,
     .rank = 9,
     .places = {{"Train", Spot::below, 0}},
     .help = {
         tr_later("What was opened, saved, trained and went wrong, with its time of day; lines that begin with ⚠ are "
                  "problems."),
         tr_later("Drag over lines to mark them."),
         tr_later("Ctrl+A marks everything, Ctrl+C copies what is marked.")}});
}  // namespace

}  // namespace tenon::views
