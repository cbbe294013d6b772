#pragma once
#include <QStringList>

class QWidget;

namespace tenon::views::testing {

/// Drops files on a widget the way a file manager does. Qt hands a drop on only to the widget that took its entry.
void drop_files(QWidget* on, const QStringList& files);

}  // namespace tenon::views::testing
