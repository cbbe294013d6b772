#include "views/frame/branch_dialog.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <utility>

#include "views/frame/bench.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"

namespace tenon::views {

BranchDialog::BranchDialog(const QString& name, const QString& title, QWidget* parent) : QDialog(parent) {
  setObjectName(name);
  setWindowTitle(title);
  setAttribute(Qt::WA_DeleteOnClose);
}

void BranchDialog::add_name(QFormLayout* form, std::function<void(std::string)> given) {
  auto* name = new QLineEdit(this);
  name->setObjectName(objectName() + ".name");
  name->setPlaceholderText(tr("name: the next free one"));
  connect(name, &QLineEdit::textChanged, this,
          [given = std::move(given)](const QString& text) { given(text.trimmed().toStdString()); });
  form->addRow(tr("Name"), name);
}

void BranchDialog::add_end(QVBoxLayout* all, bool stretch) {
  said_ = new QLabel(this);
  said_->setObjectName(objectName() + ".said");
  said_->setWordWrap(true);
  all->addWidget(said_);
  if (stretch) all->addStretch(1);
  // Not the default: Enter in a field takes what was typed, and nothing more.
  train_ = add_dialog_buttons(this, all, objectName() + ".train", tr("Train the branch"));
  connect(train_, &QPushButton::clicked, this, [this] {
    const projects::TrainOptions asked = options();
    accept();
    if (on_train_) on_train_(asked);
  });
}

void BranchDialog::say(const QString& fault, const QString& said) {
  fault_ = fault;
  text_ = said;
  show_said();
}

void BranchDialog::show_said() {
  set_style(said_, "voice", fault_.isEmpty() ? "secondary" : "bad");
  said_->setText(!fault_.isEmpty() ? fault_ : !busy_.isEmpty() ? busy_ : text_);
  train_->setEnabled(fault_.isEmpty() && busy_.isEmpty());
}

void BranchDialog::open_over(Bench& bench) {
  const auto look = [this, &bench] {
    // The run itself is stopped by the branch that takes its place.
    const bool own = bench.training() && !bench.sweeping() && bench.status().name == options().from;
    busy_ = bench.training() && !own ? tr("Another run trains: stop it first.") : QString();
    train_->setText(own ? tr("Stop the run and train the branch") : tr("Train the branch"));
    show_said();
  };
  connect(&bench, &Bench::state_changed, this, look);
  on_train_ = [&bench](const projects::TrainOptions& asked) { bench.train(asked); };
  look();
  open();
}

}  // namespace tenon::views
