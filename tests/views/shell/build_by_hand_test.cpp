// Whole models built from nothing in the window, as a person does it: typed, wired with the mouse, told in Details.
#include <QApplication>
#include <QCheckBox>
#include <QContextMenuEvent>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>
#include <QTest>
#include <QTimer>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "engine/spec/submodel.h"
#include "engine/templates/templates.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_view.h"

namespace tenon::views::testing {
namespace {

using Told = std::vector<std::pair<const char*, const char*>>;

class BuildByHand : public WindowTest {
 protected:
  void open_empty(const std::vector<std::pair<std::string, std::string>>& recipe) {
    file_ = dir_.filePath("mine.tenon");
    Recipe r;
    for (const auto& [key, value] : recipe) r.set(key, value);
    projects::Project::create(file_.toStdString(), begin_empty().model, r.to_json());
    open(file_);
    ASSERT_TRUE(bench_->has_project());
    c_ = canvas("builder");
  }
  BuilderModel& model() { return bench_->builder; }
  /// Types a layer's or sub-model's name over the canvas; the best match is taken.
  std::string add(const QString& name, const Told& told = {}) {
    QTest::keyClicks(c_, name.left(1));
    QLineEdit* field = static_cast<BuilderView*>(window_->view("builder"))->picker()->field();
    EXPECT_TRUE(field->isVisible()) << name.toStdString();
    QTest::keyClicks(field, name.mid(1));
    key(field, Qt::Key_Return);
    settle();
    const std::string made = model().selected_group().empty() ? model().primary() : model().selected_group();
    tell(told);
    return made;
  }
  /// What is typed into fields of Details for the chosen layer.
  void tell(const Told& told) {
    for (const auto& [attr, text] : told) {
      auto* field = part(QString("inspector.") + attr);
      ASSERT_NE(field, nullptr) << attr;
      field->setFocus();
      if (qobject_cast<QCheckBox*>(field)) {
        key(field, Qt::Key_Space);
      } else {
        key(field, Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(field, text);
        key(field, Qt::Key_Return);
      }
      settle();
    }
    c_->setFocus();
  }
  Hit port_of(const std::string& layer, BuilderModel::HitKind kind) {
    for (size_t i = 0; i < model().spec().layers.size(); ++i)
      if (model().spec().layers[i].name == layer) return {kind, BuilderModel::port_id(static_cast<int64_t>(i), 0)};
    ADD_FAILURE() << "there is no layer " << layer;
    return {};
  }
  QPoint middle(const std::string& layer) {
    const Box b = model().box_of(*model().spec().find(layer));
    return {static_cast<int>(b.x + b.w / 2), static_cast<int>(b.y + b.h / 2)};
  }
  void drag(QPoint a, QPoint b) {
    QTest::mousePress(c_, Qt::LeftButton, {}, a);
    for (int i = 1; i <= 4; ++i) {
      const QPoint at = a + (b - a) * i / 4;
      QMouseEvent move(QEvent::MouseMove, at, c_->mapToGlobal(at), Qt::NoButton, Qt::LeftButton, {});
      QApplication::sendEvent(c_, &move);
    }
    QTest::mouseRelease(c_, Qt::LeftButton, {}, b);
    settle();
  }
  /// From the port that a layer's result leaves by, the layer's own or that of its folded instance, onto a layer.
  void wire(const std::string& from, const std::string& to) {
    press("builder.fit");
    settle();
    const Hit hit = port_of(from, BuilderModel::output_port);
    ASSERT_TRUE(std::ranges::any_of(c_->model().last().targets(), [&](const auto& t) { return t.hit == hit; }))
        << "the port of " << from << " is not in sight at zoom " << model().zoom() << "; chosen group \""
        << model().selected_group() << "\"\n"
        << model().spec().to_json().dump();
    drag(place(c_, hit), middle(to));
  }
  /// The chosen layers by clicks; then the menu of the last.
  void make_submodel(const std::vector<std::string>& layers, const QString& name) {
    press("builder.fit");
    settle();
    for (const std::string& l : layers)
      QTest::mouseClick(c_, Qt::LeftButton, &l == &layers.front() ? Qt::NoModifier : Qt::ShiftModifier, middle(l));
    QContextMenuEvent e(QContextMenuEvent::Mouse, middle(layers.back()), c_->mapToGlobal(middle(layers.back())));
    QApplication::sendEvent(c_, &e);
    auto* menu = window_->view("builder")->findChild<QMenu*>("builder.menu");
    ASSERT_TRUE(menu && menu->isVisible());
    QTimer::singleShot(0, window_.get(), [name] {
      auto* d = qobject_cast<QInputDialog*>(QApplication::activeModalWidget());
      ASSERT_NE(d, nullptr);
      auto* line = d->findChild<QLineEdit*>();
      line->selectAll();
      QTest::keyClicks(line, name);
      QTest::keyClick(line, Qt::Key_Return);
    });
    for (QAction* a : menu->actions())
      if (a->objectName() == "menu.model.submodel")
        QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(a).center());
    settle();
    c_->setFocus();
    ASSERT_NE(find_submodel(model().spec(), name.toStdString()), nullptr) << model().why();
    key(c_, Qt::Key_Return);  // folds it
    settle();
  }
  std::string result_of(const std::string& scope) {
    return scope + "." + ports_of(model().spec(), scope).outputs.at(0).layer;
  }
  void train_a_step() {
    ASSERT_TRUE(model().errors().empty()) << model().errors().front();
    train(1);
    EXPECT_EQ(bench_->shown_steps(), 1) << banner().toStdString();
  }
  SceneCanvas* c_ = nullptr;
};

TEST_F(BuildByHand, a_residual_network_of_18_layers) {
  open_empty({{"data.dataset", "shapes"}, {"data.samples", "64"}, {"data.batch_size", "8"}});
  QTest::mouseClick(c_, Qt::LeftButton, {}, middle("input"));
  settle();
  tell({{"shape", "[3, 32, 32]"}});
  const auto convolve = [&](const char* channels, const char* kernel, const char* stride) {
    const bool pad = kernel[1] == '3';
    return add("Conv2d", {{"out_channels", channels},
                          {"kernel_size", kernel},
                          {"stride", stride},
                          {"padding", pad ? "[1, 1]" : "[0, 0]"},
                          {"bias", ""}});
  };
  convolve("64", "[3, 3]", "[1, 1]");
  add("BatchNorm2d");
  std::string from = add("ReLU");  // the layer whose result the next block reads
  const auto block = [&](const char* channels, bool shrinks, const QString& name) {
    std::vector<std::string> layers;
    layers.push_back(convolve(channels, "[3, 3]", shrinks ? "[2, 2]" : "[1, 1]"));
    layers.push_back(add("BatchNorm2d"));
    layers.push_back(add("ReLU"));
    layers.push_back(convolve(channels, "[3, 3]", "[1, 1]"));
    layers.push_back(add("BatchNorm2d"));
    const std::string sum = add("Add");
    layers.push_back(sum);
    if (shrinks) {  // a branch of its own: dropped on the ground, the wire asks for a layer
      press("builder.fit");
      settle();
      const QPoint at = place(c_, port_of(from, BuilderModel::output_port));
      drag(at, {at.x() + 260, at.y() + 60});
      QLineEdit* field = static_cast<BuilderView*>(window_->view("builder"))->picker()->field();
      ASSERT_TRUE(field->isVisible()) << name.toStdString();
      QTest::keyClicks(field, "Conv2d");
      key(field, Qt::Key_Return);
      settle();
      layers.push_back(model().primary());
      tell({{"out_channels", channels}, {"kernel_size", "[1, 1]"}, {"stride", "[2, 2]"}, {"bias", ""}});
      layers.push_back(add("BatchNorm2d"));
      wire(layers.back(), sum);
    } else {
      wire(from, sum);
    }
    press("builder.fit");
    settle();
    QTest::mouseClick(c_, Qt::LeftButton, {}, middle(sum));
    settle();
    layers.push_back(add("ReLU"));
    make_submodel(layers, name);
    from = result_of(model().selected_group());
  };
  block("64", false, "Block64");
  from = result_of(add("Block64"));
  EXPECT_EQ(find_submodel(model().spec(), "Block64")->instances.size(), 2u);
  for (const auto& [channels, down, same] :
       {std::tuple{"128", "Down128", "Block128"}, {"256", "Down256", "Block256"}, {"512", "Down512", "Block512"}}) {
    block(channels, true, down);
    block(channels, false, same);
    if (HasFatalFailure()) return;
  }
  add("AdaptiveAvgPool2d", {{"output_size", "[1, 1]"}});
  add("Flatten");
  add("Linear", {{"out_features", "10"}});
  add("Output");
  int64_t parameters = 0;
  for (const LayerReport& r : examine(find_template("resnet18").model, 2)) parameters += r.parameters;
  EXPECT_EQ(model().parameters(), parameters);
  train_a_step();
}

TEST_F(BuildByHand, a_small_transformer) {
  const QString text = dir_.filePath("text.txt");
  std::string words;
  for (int i = 0; i < 400; ++i) words += "to be or not to be, that is the question. ";
  write_file(text.toStdString(), words);
  open_empty({{"data.dataset", "text"},
              {"data.dir", text.toStdString()},
              {"data.context", "16"},
              {"data.test_samples", "8"},
              {"data.batch_size", "4"}});
  QTest::mouseClick(c_, Qt::LeftButton, {}, middle("input"));
  settle();
  tell({{"shape", "[16]"}, {"dtype", "i64"}});
  add("Embedding", {{"num_embeddings", "256"}, {"embedding_dim", "32"}});
  const std::string positions = add("LearnedPositions", {{"max_length", "16"}});
  std::vector<std::string> block;
  block.push_back(add("LayerNorm"));
  block.push_back(add("MultiheadAttention", {{"num_heads", "4"}, {"causal", ""}}));
  const std::string first = add("Add");
  wire(positions, first);
  QTest::mouseClick(c_, Qt::LeftButton, {}, middle(first));
  settle();
  block.push_back(add("LayerNorm"));
  block.push_back(add("Linear", {{"out_features", "128"}}));
  block.push_back(add("GELU"));
  block.push_back(add("Linear", {{"out_features", "32"}}));
  const std::string second = add("Add");
  wire(first, second);
  block.push_back(first);
  block.push_back(second);
  make_submodel(block, "Block");
  add("Block");
  add("Block");
  EXPECT_EQ(find_submodel(model().spec(), "Block")->instances.size(), 3u);
  add("LayerNorm");
  add("Linear", {{"out_features", "256"}});
  add("Output");
  const int64_t one = 2 * 64 + 4 * (32 * 32 + 32) + 32 * 128 + 128 + 128 * 32 + 32;
  EXPECT_EQ(model().parameters(), 256 * 32 + 16 * 32 + 3 * one + 64 + 32 * 256 + 256);
  train_a_step();
}

}  // namespace
}  // namespace tenon::views::testing
