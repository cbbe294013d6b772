#include "views/query/query_view.h"

#include <QAction>
#include <QKeyEvent>
#include <QLineEdit>
#include <QSplitter>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "views/frame/rank_box.h"
#include "views/frame/table_list.h"
#include "views/query/query_editor_view.h"
#include "views/shared/language.h"

namespace tenon::views {

using projects::QueryBase;
using projects::QueryResult;

namespace {
constexpr int kSql = Qt::UserRole, kWord = Qt::UserRole + 1, kSaved = Qt::UserRole + 2;

QToolButton* query_button(QWidget* bar, const char* name, const QString& text, const QString& tip) {
  auto* b = new QToolButton(bar);
  b->setObjectName(name);
  b->setText(text);
  b->setToolTip(tip);
  return b;
}
}  // namespace

QueryView::QueryView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  build();
  connect(&bench, &Bench::documents_changed, this, &QueryView::refresh);
  connect(&bench, &Bench::project_changed, this, &QueryView::refresh);
  connect(&bench, &Bench::run_changed, this, &QueryView::show_rows);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    mark();
    chart_.set_selection(s);
  });
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (asks() && !bench_.jobs.has("query")) end(asking_, tr("The query was stopped."), false);  // among the jobs
    if (shown_ < 0) refresh();
  });
  refresh();
}

void QueryView::build() {
  auto* split = new QSplitter(Qt::Horizontal, this);
  split->addWidget(build_side(split));
  auto* page = new QWidget(split);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  box->addWidget(build_bar(page));
  auto* parts = new QSplitter(Qt::Vertical, page);
  editor_ = new QueryEditor(parts);
  editor_->setObjectName("query.sql");
  editor_->setAccessibleName(tr("Query in SQL"));
  editor_->setPlaceholderText(tr("SELECT … FROM …    Ctrl+Enter asks, Ctrl+Space completes"));
  editor_->on_run = [this] { ask_by_hand(); };
  parts->addWidget(editor_);
  auto* answer = new QWidget(parts);
  auto* below = new QVBoxLayout(answer);
  below->setContentsMargins(0, 0, 0, 0);
  below->setSpacing(0);
  said_ = new QLabel(answer);
  said_->setObjectName("query.said");
  said_->setAccessibleName(tr("What the query came to"));
  said_->setTextFormat(Qt::PlainText);
  said_->setWordWrap(true);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  said_->setContentsMargins(14, 6, 14, 6);
  below->addWidget(said_);
  auto* seen = new QSplitter(Qt::Vertical, answer);
  list_ = new TableList(seen);
  list_->setObjectName("query.table");
  list_->setAccessibleName(tr("Answer of the query"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  seen->addWidget(list_);
  picture_ = make_canvas(chart_);
  picture_->setMinimumHeight(120);
  picture_->hide();
  chart_.on_select = [this](const Selection& s) { bench_.select(s); };
  seen->addWidget(picture_);
  seen->setSizes({260, 260});
  below->addWidget(seen, 1);
  parts->addWidget(answer);
  parts->setStretchFactor(1, 1);
  parts->setSizes({96, 400});
  parts->setChildrenCollapsible(false);
  box->addWidget(parts, 1);
  split->addWidget(page);
  split->setStretchFactor(1, 1);
  split->setSizes({220, 700});
  split->setChildrenCollapsible(false);
  set_content(split);
}

QWidget* QueryView::build_side(QWidget* parent) {
  side_ = new QTreeWidget(parent);
  side_->setObjectName("query.list");
  side_->setAccessibleName(tr("Queries and tables"));
  side_->setHeaderHidden(true);
  side_->setIndentation(14);
  side_->setUniformRowHeights(true);
  side_->setTextElideMode(Qt::ElideRight);
  side_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  side_->setMinimumWidth(90);
  connect(side_, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) { use(item, true); });
  connect(side_, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) { use(item, false); });
  auto* forgets = new QAction(tr("Forget this query"), side_);
  forgets->setShortcut(Qt::Key_Delete);
  forgets->setShortcutContext(Qt::WidgetShortcut);
  connect(forgets, &QAction::triggered, this, &QueryView::forget);
  connect(side_, &QTreeWidget::currentItemChanged, this,
          [forgets](QTreeWidgetItem* item) { forgets->setEnabled(item && item->data(0, kSaved).toBool()); });
  forgets->setEnabled(false);
  side_->addAction(forgets);
  side_->setContextMenuPolicy(Qt::ActionsContextMenu);
  return side_;
}

QWidget* QueryView::build_bar(QWidget* parent) {
  auto* bar = new ViewBar(parent);
  run_ = query_button(bar, "query.run", tr("Run query"), tr("Ask it (Ctrl+Enter)"));
  set_style(run_, "primary", "true");
  connect(run_, &QToolButton::clicked, this, [this] { ask_by_hand(); });
  bar->add(run_);
  stop_ = query_button(bar, "query.stop", tr("Stop"), tr("Stop what is asked (Escape)"));
  connect(stop_, &QToolButton::clicked, this, [this] { stop(); });
  bar->add(stop_);
  of_ = new ElidedLabel({}, bar);
  set_style(of_, "voice", "secondary");
  bar->add(of_, 1);
  bar->add(new RankBox(bench_, "query", bar));
  name_ = new QLineEdit(bar);
  name_->setObjectName("query.name");
  name_->setAccessibleName(tr("Name to save the query by"));
  name_->setPlaceholderText(tr("name"));
  name_->setMaximumWidth(160);
  connect(name_, &QLineEdit::returnPressed, this, [this] { save(); });
  bar->add(name_, 1);
  auto* save_button =
      query_button(bar, "query.save", tr("Save"),
                   tr("Keep the query under this name: in the project, or without one with the settings"));
  connect(save_button, &QToolButton::clicked, this, [this] { save(); });
  bar->add(save_button);
  chart_button_ = query_button(bar, "query.chart", tr("Chart"), tr("The answer as bars, or as a line"));
  chart_button_->setCheckable(true);
  connect(chart_button_, &QToolButton::toggled, this, [this](bool on) { picture_->setVisible(on); });
  bar->add(chart_button_);
  return bar;
}

projects::QuerySubject QueryView::subject() const {
  if (const Document* d = bench_.shown_document()) return {d->part().trace, d->snapshot, nullptr, d->model};
  return {nullptr, nullptr, bench_.project()};
}

void QueryView::refresh() {
  const Document* d = bench_.shown_document();
  const projects::QuerySubject s = subject();
  // Answers of what is closed are of no use.
  if (project_.lock() != bench_.project()) {
    asked_.erase(Document::kProject);
    if (asking_ == Document::kProject) stop();
    if (shown_ == Document::kProject) shown_ = -1;
    project_ = bench_.project();
    read_saved();
  }
  std::erase_if(asked_, [this](const auto& a) { return a.first != Document::kProject && !bench_.document(a.first); });
  if (asks() && asking_ != Document::kProject && !bench_.document(asking_)) stop();
  // Of a project what nobody has asked by hand is asked anew when the view is next seen.
  if (const auto at = asked_.find(Document::kProject); at != asked_.end() && !at->second.by_hand && !in_sight())
    at->second.begun = false;
  if (base_of_ >= 0 && !bench_.document(base_of_)) base_.reset(), base_of_ = -1;
  if (!s.trace && !s.snapshot && !s.project && !s.model) {
    shown_ = -1;
    if (!d && !bench_.reading().isEmpty())
      return set_waiting(bench_.jobs, &Bench::reads_document, tr("it can be asked in a moment."));
    return set_empty(true,
                     d ? tr("What is shown has no tables to ask.")
                       : tr("Open a project, a trace, a memory snapshot or a model file: here it is asked in SQL."));
  }
  set_empty(false);
  const int now = d ? d->id : Document::kProject;
  if (d && asked_.count(now) && asked_[now].rank != d->rank) return ask_other_rank(*d);
  if (now == shown_) return;
  if (asked_.count(shown_)) asked().sql = editor_->text();
  shown_ = now;
  of_->set_text(d ? QString::fromStdString(d->part_title()) : tr("the project"));
  editor_->set_kind(kind());
  if (!asked_.count(now)) {
    const auto examples = projects::query_examples(kind());
    asked().sql = examples.empty() ? QString() : QString::fromStdString(examples.front().sql);
    if (d) asked().rank = d->rank;
  }
  editor_->setPlainText(asked().sql);
  fill_side();
  read_saved();
  show_answer();
  look();
}

/// What another rank answered is of no use.
void QueryView::ask_other_rank(const Document& d) {
  if (asking_ == d.id) stop();
  if (base_of_ == d.id) base_.reset(), base_of_ = -1;
  Asked& a = asked_[d.id];
  a.rank = d.rank;
  a.begun = a.bad = false;
  a.said.clear();
  a.result = nullptr;
  if (shown_ == d.id) {
    of_->set_text(QString::fromStdString(d.part_title()));
    show_answer();
    return look();
  }
  refresh();
}

/// Where nothing was asked by hand, what stands in the editor is asked.
void QueryView::came_into_sight() {
  if (shown_ >= 0 && !asked().begun) ask();
}

void QueryView::keyPressEvent(QKeyEvent* e) {
  if (e->key() == Qt::Key_Escape && asks()) return stop();
  View::keyPressEvent(e);
}

void QueryView::ask_by_hand() {
  if (shown_ < 0) return;
  asked().by_hand = true;
  ask();
}

void QueryView::ask() {
  if (shown_ < 0) return;
  const int of = shown_;
  asked().begun = true;
  asked().sql = editor_->text();
  asked().said = tr("Asking…");
  asked().bad = false;
  if (base_of_ != of) base_.reset(), base_of_ = -1;
  asking_ = of;
  using Answer = std::pair<std::shared_ptr<QueryBase>, std::shared_ptr<const QueryResult>>;
  bench_.jobs.start(
      "query", tr("Query %1").arg(of_->toolTip()),
      [s = subject(), base = base_, sql = asked().sql.toStdString()](const Jobs::Report&,
                                                                     const std::atomic<bool>& cancelled) -> Answer {
        const auto asks = base ? base : std::make_shared<QueryBase>(s);
        return {asks,
                std::make_shared<const QueryResult>(asks->run(sql, {.cancelled = [&] { return cancelled.load(); }}))};
      },
      [this, of, project = project_](Answer answer) {
        if (of == Document::kProject && project.lock() != bench_.project()) return;  // another one was opened meanwhile
        // A project changes between two queries, a document never.
        if (of != Document::kProject && bench_.document(of)) base_ = answer.first, base_of_ = of;
        end(of, QString::fromStdString(answer.second->said()), false, answer.second);
      },
      [this, of](const QString& message, const QString& hint) {
        end(of, message + (hint.isEmpty() ? "" : ". " + hint), true);
      });
  show_answer();
}

void QueryView::stop() {
  if (!asks()) return;
  const int of = asking_;
  asking_ = -1;
  bench_.jobs.cancel_tag("query");
  end(of, tr("The query was stopped."), false);
}

/// What was answered before stays beside words that tell why there is nothing new.
void QueryView::end(int of, const QString& said, bool bad, std::shared_ptr<const QueryResult> result) {
  if (asking_ == of) asking_ = -1;
  const auto at = asked_.find(of);
  if (at == asked_.end()) return;
  at->second.said = said;
  at->second.bad = bad;
  if (result) at->second.result = std::move(result);
  if (of == shown_) show_answer();
}

void QueryView::show_answer() {
  const Asked& a = asked();
  said_->setText(a.said);
  set_style(said_, "voice", a.bad ? "bad" : "small");
  show_rows();
  show_state();
}

void QueryView::show_rows() {
  if (shown_ < 0) return;
  const auto& result = asked().result;
  QuerySight sight{.document = shown_, .shown_run = bench_.shown_run()};
  const Document* d = bench_.document(shown_);
  if (d && d->trace) {
    sight.events = static_cast<int64_t>(d->part().trace->size());
    sight.first_event = d->part().first_event;
  }
  if (d && (d->snapshot || d->model)) sight.file = d;
  if (shown_ == Document::kProject) {
    sight.has_run = [this](int64_t run) { return bench_.contents().run(run) != nullptr; };
    sight.run_named = [this](const std::string& name) {
      for (const projects::RunInfo& r : bench_.contents().runs)
        if (r.name == name) return r.id;
      return int64_t{0};
    };
  }
  const Table table = result ? make_table(*result, sight) : Table();
  list_->set_table(table);
  mark();
  chart_.set_result(result, table);
}

/// Several rows may lead to one thing: the list's own choice stays where it is.
void QueryView::mark() {
  if (bench_.bus.current().source != "query") list_->mark(bench_.bus.current());
}

void QueryView::show_state() {
  run_->setEnabled(shown_ >= 0 && asking_ != shown_);
  stop_->setEnabled(asks());
}

void QueryView::read_saved() {
  change_saved("queries", tr("The saved queries cannot be read"), [](SavedQueries&) {});
}

void QueryView::change_saved(const QString& tag, const QString& fault, std::function<void(SavedQueries&)> change) {
  bench_.files.start(
      tag, tr("Saved queries"),
      [change = std::move(change), project = bench_.project()](const Jobs::Report&, const std::atomic<bool>&) {
        SavedQueries queries(project);
        change(queries);
        return queries.all();
      },
      [this, project = project_](std::vector<SavedQuery> all) {
        if (project.lock() != bench_.project()) return;
        saved_ = std::move(all);
        if (shown_ >= 0) fill_side();
      },
      [this, fault](const QString& message, const QString& hint) { bench_.fail(fault, message, hint); }, true);
}

void QueryView::fill_side() {
  const projects::QueryKind of = kind();
  side_->clear();
  const auto group = [this](const QString& title) {
    auto* item = new QTreeWidgetItem(side_, {title});
    item->setFlags(Qt::ItemIsEnabled);
    return item;
  };
  const auto add_query = [](QTreeWidgetItem* to, const std::string& name, const std::string& sql, bool saved) {
    auto* item = new QTreeWidgetItem(to, {QString::fromStdString(name)});
    item->setData(0, kSql, QString::fromStdString(sql));
    item->setData(0, kSaved, saved);
    item->setToolTip(0, QString::fromStdString(name + "\n\n" + sql));
  };
  QTreeWidgetItem* saved = nullptr;
  for (const SavedQuery& q : saved_)
    if (q.of == of) add_query(saved ? saved : saved = group(tr("Saved")), q.name, q.sql, true);
  QTreeWidgetItem *examples = group(tr("Examples")), *tables = group(tr("Tables"));
  for (const projects::QueryExample& e : projects::query_examples(of)) add_query(examples, e.title, e.sql, false);
  for (const projects::QueryTable& t : projects::query_tables(of)) {
    auto* table = new QTreeWidgetItem(tables, {QString::fromStdString(t.name)});
    table->setData(0, kWord, table->text(0));
    table->setToolTip(0, QString::fromStdString(t.help));
    for (const projects::QueryColumn& c : t.columns) {
      auto* column = new QTreeWidgetItem(table, {QString::fromStdString(c.name)});
      column->setData(0, kWord, column->text(0));
      column->setToolTip(0, QString::fromStdString(c.help));
    }
  }
  for (QTreeWidgetItem* g : {saved, examples, tables})
    if (g) g->setExpanded(true);
}

/// A query is taken and, by the mouse, asked; the name of a table or column is written at the cursor by Enter or a
/// double click.
void QueryView::use(QTreeWidgetItem* item, bool clicked) {
  if (const QString sql = item->data(0, kSql).toString(); !sql.isEmpty()) {
    editor_->replace_text(sql);
    if (item->data(0, kSaved).toBool()) name_->setText(item->text(0));
    return ask_by_hand();
  }
  if (const QString word = item->data(0, kWord).toString(); !word.isEmpty() && !clicked) editor_->insert_name(word);
}

void QueryView::save() {
  if (shown_ < 0) return;
  const SavedQuery query{kind(), name_->text().trimmed().toStdString(), editor_->text().toStdString()};
  if (query.name.empty()) return name_->setFocus();
  change_saved("save query " + name_->text(), tr("The query was not saved"),
               [query](SavedQueries& queries) { queries.put(query); });
}

void QueryView::forget() {
  const QTreeWidgetItem* item = side_->currentItem();
  if (!item || !item->data(0, kSaved).toBool()) return;
  change_saved("save query " + item->text(0), tr("The query was not forgotten"),
               [of = kind(), name = item->text(0).toStdString()](SavedQueries& queries) { queries.remove(of, name); });
}

void QueryView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  editor_->set_theme(theme);
}

std::vector<Command> QueryView::commands() {
  return {{.id = "query.run",
           .title = tr_later("Ask the query"),
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 ask_by_hand();
               },
           .enabled = [this] { return shown_ >= 0; }},
          {.id = "query.chart",
           .title = tr_later("Chart of the answer"),
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 chart_button_->toggle();
               },
           .enabled = [this] { return shown_ >= 0; },
           .checked = [this] { return chart_button_->isChecked(); }},
          {.id = "query.save",
           .title = tr_later("Save the query"),
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 save();
               },
           .enabled = [this] { return shown_ >= 0; }}};
}

namespace {
const bool registered_query_view = register_view<QueryView>(
    {.id = "query",
     .title = tr_later("Query"),
     .icon = "query",
     .order = 46,
     .layouts = {"Profile", "Memory"},
     .link = tr_later("Query"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const Document* d = s.kind == Selection::Kind::document ? bench.document(s.document) : nullptr;
           return d && (d->trace || d->snapshot || d->model);
         },
     .help = {
         tr_later(
             "SQL over what is shown, the trace, memory snapshot, model file or project: its tables are listed on the "
             "left, with "
             "examples and the queries that were saved. It only reads. Numbers are exact; a column named as one that "
             "the query reads has that one's unit, also as sum(dur). The first 10,000 rows are shown, and a query is "
             "stopped after 60 s."),
         tr_later(
             "A click on a query on the left takes and asks it, a double click on a table or column writes its name. A "
             "click on a row leads to its event (id of events, or a column named event), run (run) or step (step), in "
             "a "
             "snapshot also to its allocation, block, segment or line of code, in a model file to its tensor or node; "
             "a "
             "row with run and step leads to the run, and within the shown run to the step. Chart draws texts with "
             "numbers as bars, numbers over numbers as a line."),
         tr_later("Ctrl+Enter asks, Escape stops, Ctrl+Space completes words, Tab takes the one that is marked. Delete "
                  "forgets a saved query. In the chart arrows go from row to row, Enter leads to what it is about.")}});
}  // namespace

}  // namespace tenon::views
