// A trained run is evaluated and exported from the window: what it says is what the command line says.
#include <gtest/gtest.h>

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDoubleSpinBox>
#include <QFile>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <filesystem>

#include "core/file.h"
#include "core/mapped_file.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch/exported_archive.h"
#include "engine/train/session.h"
#include "projects/finish.h"
#include "projects/quantize.h"
#include "projects/quantize_plan.h"
#include "projects/results.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/frame/widgets.h"
#include "views/report/report.h"

namespace tenon::views {
namespace {

class Finish : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(30);
    QTest::qWait(10);
    settle();
  }
  QStringList offered() {
    QStringList texts;
    for (int i = 0; i < window_->picker()->list()->count(); ++i) texts << window_->picker()->list()->item(i)->text();
    return texts;
  }
  void pick(const QString& typed = {}) {
    auto* field = window_->picker()->findChild<QLineEdit*>();
    QTest::keyClicks(field, typed);
    QTest::keyClick(field, Qt::Key_Return);
    settle();
  }
};

TEST_F(Finish, a_run_is_evaluated_at_any_step) {
  const projects::RunInfo run = *bench_->shown();
  ASSERT_TRUE(window_->commands().run("run.evaluate"));
  EXPECT_TRUE(window_->picker()->isVisible());
  EXPECT_FALSE(offered().isEmpty());
  pick("12");
  const std::string expected =
      projects::evaluation_text(run, 12, projects::results_at(*bench_->project(), run, 12).evaluation);
  EXPECT_TRUE(banner_shown());
  EXPECT_EQ(banner().toStdString(), "Evaluated: " + expected);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Finish, the_step_that_is_looked_at_is_among_the_states) {
  load_step(7);
  ASSERT_TRUE(window_->commands().run("file.export"));
  EXPECT_TRUE(offered().contains("step 7")) << offered().join(", ").toStdString();
  EXPECT_TRUE(offered().contains("step 30")) << offered().join(", ").toStdString();
  QTest::keyClick(window_->picker()->findChild<QLineEdit*>(), Qt::Key_Escape);
  EXPECT_FALSE(window_->picker()->isVisible());
}

TEST_F(Finish, a_model_is_exported_and_compared) {
  const QString onnx = dir_.filePath("m.onnx");
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(onnx);
  pick("30");
  ASSERT_TRUE(std::filesystem::exists(onnx.toStdString())) << banner().toStdString();
  EXPECT_TRUE(banner().startsWith("Exported: ")) << banner().toStdString();
  EXPECT_TRUE(banner().contains("verified on 64 test samples")) << banner().toStdString();
  EXPECT_FALSE(formats::load_onnx(onnx.toStdString()).graph.nodes.empty());
  // The state_dict, by the end of its name or by the kind that is chosen.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("weights"), "safetensors (*.safetensors)");
  pick("30");
  EXPECT_TRUE(banner().contains("every tensor read back has the same bits")) << banner().toStdString();
  EXPECT_EQ(formats::Safetensors::open(dir_.filePath("weights.safetensors").toStdString()).entries().size(), 6u);
  // A program, by the kind that is chosen, and C++, by the end of its name.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("program"), "TorchScript program (*.torchscript)");
  pick("30");
  EXPECT_TRUE(banner().contains("a program of 5 steps")) << banner().toStdString();
  EXPECT_TRUE(std::filesystem::exists(dir_.filePath("program.torchscript").toStdString()));
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("exported"), "Exported PyTorch program (*.pt2)");
  pick("30");
  EXPECT_TRUE(banner().contains("a program for torch.export.load()")) << banner().toStdString();
  EXPECT_TRUE(std::filesystem::exists(dir_.filePath("exported.pt2").toStdString()));
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("model.h"));
  pick("30");
  EXPECT_TRUE(banner().contains("model.h and model.cpp")) << banner().toStdString();
  EXPECT_TRUE(std::filesystem::exists(dir_.filePath("model.cpp").toStdString()));
  EXPECT_TRUE(problems_.empty());
  // A name that says no format, and a place that cannot be written, are told.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("m.txt"));
  pick("30");
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(dir_.filePath("m.txt").toStdString()));
}

/// Note [Keys of a field, keys of a command].
TEST_F(Finish, the_keys_of_a_command_are_its_own_within_a_field_too) {
  ASSERT_TRUE(window_->show_view("runs"));
  auto* field = part<QLineEdit>("runs.filter");
  field->setFocus();
  QTest::keyClicks(field, "loss");
  key(field, Qt::Key_Home);
  key(field, Qt::Key_E, Qt::ControlModifier);
  EXPECT_TRUE(window_->picker()->isVisible()) << "Export asks which state";
  EXPECT_EQ(field->cursorPosition(), 0);
  key(QApplication::focusWidget(), Qt::Key_Escape);
  settle();
  // What is known of fields everywhere stays theirs.
  field->setFocus();
  const QString undo = window_->commands().find("edit.undo")->text();
  key(field, Qt::Key_A, Qt::ControlModifier);
  EXPECT_EQ(field->selectedText(), "loss");
  key(field, Qt::Key_Delete);
  EXPECT_EQ(field->text(), "");
  key(field, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(field->text(), "loss");
  EXPECT_EQ(window_->commands().find("edit.undo")->text(), undo) << "no command was undone";
}

TEST_F(Finish, channels_are_taken_out_into_a_smaller_project) {
  const QString small = dir_.filePath("small.tenon");
  ASSERT_TRUE(window_->commands().run("run.prune"));
  pick("30");
  until([&] { return window_->findChild<QDialog*>("prune") != nullptr; });
  auto* amount = part<QSpinBox>("prune.amount");
  auto* list = part<TableList>("prune.table");
  ASSERT_TRUE(amount && amount->isVisible() && list);
  until([&] { return list->shown_rows() == 3; });
  auto* said = part<QLabel>("prune.said");
  const QString half = said->text();
  EXPECT_TRUE(half.contains(" parameters stay")) << half.toStdString();
  key(amount, Qt::Key_Up);
  until([&] { return said->text() != half; });
  // Nothing is zero: it says so, and there is nothing to make.
  auto* how = part<QComboBox>("prune.how");
  key(how, Qt::Key_Down);
  until([&] { return said->text().startsWith("no channel of the model is all zero"); });
  EXPECT_FALSE(part<QPushButton>("prune.go")->isEnabled());
  EXPECT_EQ(list->shown_rows(), 0);
  // As two layers of lower rank each: with all of the energy none gets smaller, with less of it some do.
  key(how, Qt::Key_Down);
  amount->setValue(60);
  until([&] { return part<QPushButton>("prune.go")->isEnabled(); });
  EXPECT_EQ(list->table().columns.at(2).title, "Rank");
  EXPECT_EQ(amount->accessibleName(), "Energy that stays");
  key(how, Qt::Key_Home);
  until([&] { return list->table().columns.at(2).title == "Channels"; });
  // The dialog that asks for the file opens within the press, behind the one that is pressed.
  QTimer look;
  QObject::connect(&look, &QTimer::timeout, [&] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (!d) return;
    look.stop();
    d->findChild<QLineEdit*>("fileNameEdit")->setText(small);
    QMetaObject::invokeMethod(d, "accept");
  });
  look.start(20);
  press("prune.go");
  until([&] { return banner_shown(); });
  settle();
  EXPECT_TRUE(banner().startsWith("Made smaller: " + small)) << banner().toStdString();
  EXPECT_TRUE(problems_.empty());
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());
  until([&] { return bench_->project() && bench_->file() == small; });
  settle();
  ASSERT_EQ(bench_->contents().runs.size(), 1u);
  EXPECT_EQ(bench_->contents().runs[0].name, "pruned");
}

TEST_F(Finish, a_model_is_exported_in_fewer_bits_and_each_layer_says_what_it_lost) {
  const QString onnx = dir_.filePath("q.onnx");
  ASSERT_TRUE(window_->commands().run("view.quantization"));
  settle();
  EXPECT_TRUE(window_->view("quantization")->empty());
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(onnx, "ONNX model in fewer bits (*.onnx)");
  pick("30");
  auto* precision = part<QComboBox>("quantize.precision");
  ASSERT_TRUE(precision && precision->isVisible());
  EXPECT_TRUE(part<QComboBox>("quantize.calibration")->isEnabled());
  precision->setFocus();
  key(precision, Qt::Key_End);
  EXPECT_FALSE(part<QComboBox>("quantize.calibration")->isEnabled()) << "weights alone need none";
  EXPECT_TRUE(part<QLabel>("quantize.said")->text().startsWith("Weights in 4 bits"));
  press("quantize.limited");
  EXPECT_TRUE(part<QDoubleSpinBox>("quantize.budget")->isEnabled());
  press("quantize.limited");
  press("quantize.export");
  until([&] { return bench_->quantized() != nullptr; });
  settle();
  EXPECT_TRUE(problems_.empty());
  EXPECT_TRUE(banner().startsWith("Exported: " + onnx)) << banner().toStdString();
  EXPECT_TRUE(banner().contains("int4-weights (groups of 32)")) << banner().toStdString();
  EXPECT_FALSE(formats::load_onnx(onnx.toStdString()).graph.four_bit.empty());
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());
  settle();
  auto* list = part<TableList>("quantization.layers");
  ASSERT_TRUE(list->isVisible());
  ASSERT_EQ(list->shown_rows(), 3);
  click(list->viewport(), list->visualRect(list->model()->index(0, 0)).center());
  settle();
  EXPECT_EQ(bench_->bus.current().name, bench_->quantized()->layers[0].module);
  // Left without a word, nothing is written.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("none.onnx"), "ONNX model in fewer bits (*.onnx)");
  pick("30");
  key(part<QDialog>("quantize"), Qt::Key_Escape);
  settle();
  EXPECT_FALSE(std::filesystem::exists(dir_.filePath("none.onnx").toStdString()));
}

TEST_F(Finish, a_program_of_torch_export_is_written_in_fewer_bits) {
  const QString program = dir_.filePath("q.pt2");
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(program, "Exported PyTorch program in fewer bits (*.pt2)");
  pick("30");
  auto* precision = part<QComboBox>("quantize.precision");
  ASSERT_TRUE(precision && precision->isVisible());
  QStringList precisions;
  for (int i = 0; i < precision->count(); ++i) precisions << precision->itemText(i);
  EXPECT_EQ(precisions, (QStringList{"int8, static", "int8, weights alone", "int4, weights alone"}))
      << "torch.export has no operators for the range of each batch";
  // By the list that opens.
  click(precision, precision->rect().center());
  settle();
  auto* list = precision->view();
  ASSERT_TRUE(list->isVisible());
  QTest::qWait(QApplication::doubleClickInterval() + 50);  // a list that has just opened takes no release
  click(list->viewport(), list->visualRect(list->model()->index(1, 0)).center());
  settle();
  EXPECT_EQ(precision->currentText(), "int8, weights alone");
  EXPECT_TRUE(part<QLabel>("quantize.said")->text().startsWith("Weights in 8 bits, computed in f32"));
  press("quantize.export");
  until([&] { return bench_->quantized() != nullptr; });
  settle();
  EXPECT_TRUE(problems_.empty());
  EXPECT_TRUE(banner().startsWith("Exported: " + program)) << banner().toStdString();
  EXPECT_TRUE(banner().contains("int8-weights")) << banner().toStdString();
  EXPECT_TRUE(bench_->quantized()->options.program);
  const formats::ModelFile read = formats::read_exported(MappedFile::open(program.toStdString())).held;
  EXPECT_EQ(std::count_if(read.tensors.begin(), read.tensors.end(), [](const auto& t) { return t.dtype == "int8"; }), 3)
      << "the weights of three layers, in 8 bits";
}

TEST_F(Finish, every_export_in_fewer_bits_is_drawn_and_the_chosen_one_is_written) {
  ASSERT_TRUE(window_->commands().run("view.quantization"));
  settle();
  View* view = window_->view("quantization");
  auto* measure = view->findChild<EmptyState*>()->findChild<QPushButton*>();
  ASSERT_TRUE(measure->isVisible());
  click(measure, measure->rect().center());
  until([&] { return bench_->quantize_plan() && bench_->quantize_plan()->complete; });
  settle();
  EXPECT_TRUE(problems_.empty());
  ASSERT_EQ(bench_->quantize_plan()->points.size(), 1u + 4 * 3) << "three layers: none, one, two in f32";
  ASSERT_TRUE(view->canvas() && view->canvas()->isVisible());
  EXPECT_FALSE(part<QToolButton>("quantization.export")->isEnabled());
  // The smallest file is not the one in f32.
  key(view->canvas(), Qt::Key_Right);
  settle();
  EXPECT_TRUE(part<QToolButton>("quantization.export")->isEnabled());
  const QString onnx = dir_.filePath("chosen.onnx");
  answer(onnx);
  press("quantization.export");
  until([&] { return bench_->quantized() != nullptr; });
  settle();
  size_t least = SIZE_MAX;
  for (const projects::PlanPoint& p : bench_->quantize_plan()->points) least = std::min(least, p.bytes);
  EXPECT_EQ(std::filesystem::file_size(onnx.toStdString()), least);
}

TEST_F(Finish, an_exported_model_is_certified_and_a_changed_byte_is_seen) {
  const QString onnx = dir_.filePath("c.onnx");
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(onnx);
  pick("30");
  ASSERT_NE(banner_action(), nullptr);
  EXPECT_EQ(banner_action()->text(), "Certify it");
  click(banner_action(), banner_action()->rect().center());
  until([&] { return QFile::exists(onnx + ".certificate") && banner().startsWith("Certified"); });
  EXPECT_TRUE(banner().contains("from the trained model")) << banner().toStdString();
  // The same by the menu.
  QFile::remove(onnx + ".certificate");
  ASSERT_TRUE(window_->commands().run("file.certify"));
  answer(onnx);
  pick("30");
  until([&] { return QFile::exists(onnx + ".certificate"); });
  answer(onnx);
  ASSERT_TRUE(window_->commands().run("file.verify"));
  until([&] { return banner().contains("is what was certified"); });
  QFile file(onnx);
  ASSERT_TRUE(file.open(QIODevice::ReadWrite));
  file.seek(file.size() - 30);
  const char c = static_cast<char>(file.peek(1)[0] ^ 4);
  file.write(&c, 1);
  file.close();
  answer(onnx);
  ASSERT_TRUE(window_->commands().run("file.verify"));
  until([&] { return banner().contains("is not what was certified"); });
  EXPECT_TRUE(banner().contains("other bytes")) << banner().toStdString();
  EXPECT_TRUE(thrown_.empty());
}

TEST_F(Finish, a_report_is_the_page_that_the_command_line_writes) {
  const QString page = dir_.filePath("report.html");
  ASSERT_TRUE(window_->commands().run("file.report"));
  EXPECT_TRUE(window_->picker()->isVisible());
  answer(page);
  pick("30");
  ASSERT_TRUE(std::filesystem::exists(page.toStdString())) << banner().toStdString();
  EXPECT_TRUE(banner().startsWith("Written: ")) << banner().toStdString();
  EXPECT_TRUE(problems_.empty());
  // Another opening of the file, without a window, on the thread of whoever asks.
  const auto again = projects::Project::open(file_.toStdString(), true);
  const auto run = again->run(bench_->shown()->name);
  EXPECT_EQ(read_file(page.toStdString()), report_html(read_report(*again, run, 30)));
  // A name that is none of a page, and a folder that is not there, are told.
  ASSERT_TRUE(window_->commands().run("file.report"));
  answer(dir_.filePath("report.txt"));
  pick("30");
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(dir_.filePath("report.txt").toStdString()));
}

}  // namespace
}  // namespace tenon::views
