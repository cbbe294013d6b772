#pragma once
#include <QWidget>
#include <map>
#include <memory>
#include <set>

#include "engine/formats/model_file.h"
#include "views/frame/bench.h"
#include "views/frame/theme.h"

class QListWidget;

namespace tenon::views {

class CodeEditor;
class ElidedLabel;

/// The page of a model file with the code that it brings, as the file has it: a listing at a time, to be read and
/// copied; it is never run.
class CodePage : public QWidget {
  Q_OBJECT
 public:
  using File = std::shared_ptr<const formats::ModelFile>;
  CodePage(Bench& bench, QWidget* parent);
  /// Null: none.
  void show_file(int document, const File& file);
  /// Forgets the files that are not among these documents.
  void keep(const std::set<int>& documents);
  /// It is in sight: the chosen listing is read.
  void look();
  void set_theme(ThemeName theme);

 private:
  void choose(int source);
  void say(int source, const QString& text, const QString& why);

  Bench& bench_;
  File file_;
  int document_ = -1;
  int shown_ = -1;             ///< the listing that is read, or being read
  std::map<int, int> chosen_;  ///< by document
  QListWidget* list_;
  ElidedLabel* said_;
  CodeEditor* text_;
};

}  // namespace tenon::views
