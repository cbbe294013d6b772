#pragma once
#include <map>
#include <memory>

#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/query/query_chart.h"
#include "views/query/query_page.h"
#include "views/query/saved_queries.h"

class QLineEdit;
class QTreeWidget;
class QTreeWidgetItem;

namespace tenon::views {

class QueryEditor;

/// SQL over what is shown: the document, else the project. A query runs away from the UI thread and can be stopped;
/// its answer is a list whose rows lead to what they are about, and a picture.
class QueryView : public View {
  Q_OBJECT
 public:
  QueryView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;

 protected:
  void came_into_sight() override;
  void keyPressEvent(QKeyEvent* e) override;

 private:
  /// What was asked of one document, and what came of it.
  struct Asked {
    QString sql, said;
    bool begun = false, by_hand = false, bad = false;
    size_t rank = 0;  ///< of a session, which it was asked of
    std::shared_ptr<const projects::QueryResult> result;
  };
  void build();
  QWidget* build_side(QWidget* parent);
  QWidget* build_bar(QWidget* parent);
  void refresh();
  void ask_other_rank(const Document& d);
  void ask();
  void ask_by_hand();
  void stop();
  void show_answer();
  void show_rows();
  void show_state();
  void end(int of, const QString& said, bool bad, std::shared_ptr<const projects::QueryResult> result = nullptr);
  void read_saved();
  void fill_side();
  void use(QTreeWidgetItem* item, bool clicked);
  void mark();
  void save();
  void forget();
  /// Reads the saved queries again after `change` was made to them, away from the UI thread. `fault`: where that fails.
  void change_saved(const QString& tag, const QString& fault, std::function<void(SavedQueries&)> change);
  bool asks() const { return asking_ >= 0; }
  projects::QuerySubject subject() const;
  projects::QueryKind kind() const { return projects::kind_of(subject()); }
  Asked& asked() { return asked_[shown_]; }

  std::map<int, Asked> asked_;  ///< by document
  std::vector<SavedQuery> saved_;
  std::shared_ptr<projects::QueryBase> base_;    ///< of the document that was asked last: what its tables worked out
  int shown_ = -1, base_of_ = -1, asking_ = -1;  ///< documents; -1: none
  std::weak_ptr<projects::Project> project_;
  QueryChart chart_;
  QueryEditor* editor_;
  QTreeWidget* side_;
  TableList* list_;
  SceneCanvas* picture_;
  ElidedLabel* of_;
  QLabel* said_;
  QToolButton *run_, *stop_, *chart_button_;
  QLineEdit* name_;
};

}  // namespace tenon::views
