// Model files as a view shows them: the tree of modules, statistics, slices, the graph; without a window.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/parallel.h"
#include "tests/views/model_files.h"
#include "tests/views/scenes.h"
#include "views/details/details_model.h"
#include "views/model_file/model_file_model.h"

namespace tenon::views {
namespace {

using testing::blocks_file;
constexpr Size kPicture{1100, 640};

struct Shown {
  ModelFileModel model;
  Document document;
  std::vector<Selection> chosen;
  explicit Shown(std::shared_ptr<const formats::ModelFile> file) {
    document = {.id = 1,
                .kind = Document::Kind::model,
                .path = "blocks.onnx",
                .title = "blocks.onnx",
                .model = std::move(file)};
    model.on_select = [this](const Selection& s) {
      chosen.push_back(s);
      model.set_selection(s);
    };
    model.on_need_layout = [this](const ModelFileModel::File& of, std::set<int> open) {
      model.set_layout(of, lay_out(model.graph().graph(), open), open);
    };
    model.set_document(&document);
    model.set_outline(std::make_shared<const FileOutline>(document.model));
  }
  void click(Hit hit) {
    const Point p = center_of(model.frame(kPicture), hit);
    model.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}});
    model.pointer({PointerEvent::Type::release, Button::left, p.x, p.y, {}});
  }
  void double_click(Hit hit) {
    const Point p = center_of(model.frame(kPicture), hit);
    model.pointer({PointerEvent::Type::double_click, Button::left, p.x, p.y, {}});
  }
  int row_named(const std::string& name) {
    const auto& list = model.list();
    for (int n : list.rows())
      if (model.outline()->tensors.at(n).name == name) return n;
    ADD_FAILURE() << "no row " << name;
    return -1;
  }
};

TEST(ScopeTrees, names_lead_through_modules_and_blocks_built_alike_are_one) {
  EXPECT_EQ(scope_parts("/layer1/0//conv.weight"), (std::vector<std::string>{"layer1", "0", "conv", "weight"}));
  EXPECT_EQ(scope_parts(std::string(100'000, '.') + "a").size(), 1u);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a.";
  EXPECT_LE(scope_parts(deep + "w").size(), 24u);
  std::vector<ScopeTree::Item> items;
  for (int i : {0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9})  // as a file sorted by letters has them
    for (const char* part : {"attn.weight", "mlp.weight"})
      items.push_back(
          {.scope = {}, .name = "h." + std::to_string(i) + "." + part, .form = part, .elements = 10, .bytes = 40});
  items.push_back({.scope = {}, .name = "h.12.attn.weight", .form = "other", .elements = 1, .bytes = 4});
  const ScopeTree tree(items);
  const int h = tree.at(ScopeTree::kRoot).children.at(0);
  ASSERT_EQ(tree.at(h).children.size(), 2u);
  const int group = tree.at(h).children[0];
  EXPECT_EQ(tree.at(group).name, "0 … 11");
  EXPECT_EQ(tree.at(group).repeats, 12);
  EXPECT_EQ(tree.at(group).elements, 240);
  EXPECT_EQ(tree.at(h).bytes, 964u);
  EXPECT_EQ(tree.at(tree.at(group).children[2]).name, "2") << "by number";
  EXPECT_EQ(tree.path(tree.leaf_of(5)), "h.10.mlp.weight");
  EXPECT_EQ(tree.seen(5, {}), h);
  EXPECT_EQ(tree.seen(5, {h}), group);
  // Every item is in one row, however it is folded.
  std::set<int> open;
  for (int n = 1; n < static_cast<int>(tree.nodes().size()); ++n) open.insert(n);
  size_t leaves = 0;
  for (int n : tree.rows(open)) leaves += tree.at(n).leaf();
  EXPECT_EQ(leaves, items.size());
  EXPECT_EQ(tree.rows({}).size(), 1u);
}

TEST(TensorStatistics, are_those_of_a_plain_pass_at_any_number_of_threads) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(3, 2);
  const int threads = num_threads();
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::u8, DType::boolean})
    for (bool turned : {false, true}) {
      SCOPED_TRACE(std::string(name(dtype)) + (turned ? " transposed" : ""));
      Tensor t = empty({300, 700}, dtype);
      for (int64_t i = 0; i < t.numel(); ++i) {
        const double v = normal(random);
        switch (dtype) {
          case DType::f32:
            t.data<float>()[i] = i % 1000 == 5 ? NAN : i % 3000 == 7 ? INFINITY : static_cast<float>(v);
            break;
          case DType::f64:
            t.data<double>()[i] = v + 1e6;
            break;
          case DType::bf16:
          case DType::f16:
            t.data<uint16_t>()[i] = static_cast<uint16_t>(0x3c00 + i % 512);
            break;
          case DType::i64:
            t.data<int64_t>()[i] = static_cast<int64_t>(v * 10);
            break;
          default:
            t.data<uint8_t>()[i] = static_cast<uint8_t>(i % 2);
        }
      }
      if (turned) t = view_of(t, t.layout().transpose(0, 1));
      std::vector<double> finite;
      int64_t nan = 0, inf = 0, zeros = 0;
      for (int64_t i = 0; i < 300 * 700; ++i) {
        const double v = storage_value(t, i);
        nan += std::isnan(v);
        inf += std::isinf(v);
        zeros += v == 0;
        if (std::isfinite(v)) finite.push_back(v);
      }
      long double sum = 0, around = 0, squares = 0;
      for (double v : finite) sum += v, squares += static_cast<long double>(v) * v;
      const long double mean = sum / static_cast<long double>(finite.size());
      for (double v : finite) around += (v - mean) * (v - mean);
      set_num_threads(1);
      const TensorStats one = tensor_stats(t, 64);
      set_num_threads(4);
      const TensorStats s = tensor_stats(t, 64);
      EXPECT_EQ(s.count, 300 * 700);
      EXPECT_EQ(s.nan, nan);
      EXPECT_EQ(s.inf, inf);
      EXPECT_EQ(s.zeros, zeros);
      EXPECT_EQ(s.min, *std::min_element(finite.begin(), finite.end()));
      EXPECT_EQ(s.max, *std::max_element(finite.begin(), finite.end()));
      const auto close = [](double a, long double b) {
        return std::fabs(a - static_cast<double>(b)) <= 1e-10 * std::fabs(static_cast<double>(b));
      };
      EXPECT_TRUE(close(s.mean, mean)) << s.mean;
      EXPECT_TRUE(close(s.std, std::sqrt(around / static_cast<long double>(finite.size() - 1)))) << s.std;
      EXPECT_TRUE(close(s.l2, std::sqrt(squares))) << s.l2;
      int64_t in_bins = 0;
      for (int64_t b : s.bins) in_bins += b;
      EXPECT_EQ(in_bins, s.finite());
      EXPECT_EQ(s.mean, one.mean);
      EXPECT_EQ(s.std, one.std);
      EXPECT_EQ(s.l2, one.l2);
      EXPECT_EQ(s.bins, one.bins);
    }
  set_num_threads(threads);
  int64_t told = 0, all = 0;
  EXPECT_EQ(tensor_stats(empty({3000, 4000}), 64,
                         [&](int64_t done, int64_t total) {
                           told = done;
                           all = total;
                           return done < total / 2;
                         })
                .count,
            0)
      << "stopped in the middle, it says nothing";
  EXPECT_GE(told, all / 2);
}

TEST(ValueSlices, cells_are_means_of_their_blocks) {
  Tensor t = empty({2, 130, 3});
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  const ValueSlice s = read_slice(t, 1, 2, {1, 0, 0});
  EXPECT_EQ(s.cell_rows, 44);
  EXPECT_EQ(s.cell_cols, 3);
  EXPECT_EQ(s.cells[0], 393);  // of 390, 393 and 396
  EXPECT_EQ(s.place(0, 2), "[1, 0 to 2, 2]");
  EXPECT_EQ(s.place(43, 0), "[1, 129, 0]");
  EXPECT_EQ(s.blocks(), "each cell is the mean of 3 × 1 values");
  const ValueSlice row = read_slice(view_of(t, Layout::contiguous({780})), -1, 0, {0});
  EXPECT_EQ(row.cell_rows * row.cell_cols, 13 * 64);
  EXPECT_EQ(row.cells[700], 700);
  EXPECT_EQ(row.place(1, 6), "[70]");
  // Of large blocks some values are read, and it says so.
  const Tensor large = view_of(empty({1}), {{1 << 20, 1 << 20}, {0, 0}, 0});
  const ValueSlice some = read_slice(large, 0, 1, {0, 0});
  EXPECT_EQ(some.cell_rows * some.cell_cols, 64 * 64);
  EXPECT_EQ(some.blocks(), "each cell is the mean of 1,024 of its 268,435,456 values");
  t.data<float>()[0] = NAN;
  EXPECT_TRUE(std::isnan(read_slice(t, 1, 2, {0, 0, 0}).cells[0]));
  const Tensor one = empty(Shape{});
  EXPECT_EQ(read_slice(one, -1, -1, {}).cells.size(), 1u);
  EXPECT_TRUE(read_slice(empty({0, 4}), 0, 1, {0, 0}).cells.empty());
}

TEST(ModelFileView, tensors_stand_under_their_modules_and_a_click_chooses_one) {
  Shown s(blocks_file(12));
  const Scene& first = s.model.frame(kPicture);
  for (const char* text : {"an ONNX model · producer tests", "25 tensors", "×12", "24 tensors", "head", "layers"})
    EXPECT_TRUE(shows(first, text)) << text << "\n" << first.dump();
  EXPECT_TRUE(first.overlaps().empty()) << first.overlaps().front();
  s.click({ScopeList::fold, s.row_named("0 … 11")});
  EXPECT_EQ(s.model.list().rows().size(), 4u + 12u);
  s.click({ScopeList::row, s.row_named("7")});
  EXPECT_TRUE(s.chosen.empty()) << "a module is no tensor";
  s.model.key({"Right", {}, {}});
  s.model.key({"Down", {}, {}});
  s.model.key({"Right", {}, {}});
  s.model.key({"Down", {}, {}});
  ASSERT_FALSE(s.chosen.empty());
  EXPECT_TRUE(s.chosen.back().same(Selection::file_tensor(1, "layers.7.conv.weight"))) << to_text(s.chosen.back());
  EXPECT_NE(s.model.summary().find("layers.7.conv.weight"), std::string::npos);
  // Its values are read by whoever shows it.
  const int tensor = s.model.pane().tensor();
  const Tensor t = s.model.file()->tensor(static_cast<size_t>(tensor));
  s.model.set_slice(s.model.file(), tensor,
                    read_slice(t, s.model.pane().row_axis(), s.model.pane().col_axis(), s.model.pane().index()));
  EXPECT_TRUE(shows(s.model.frame(kPicture), "reading"));
  s.model.set_stats(s.model.file(), tensor, tensor_stats(t, 64));
  for (Size size : {kPicture, Size{760, 520}, Size{640, 400}, Size{400, 300}, Size{90, 60}}) {
    const Scene& scene = s.model.frame(size);
    EXPECT_TRUE(scene.overlaps().empty()) << size.w << ": " << scene.overlaps().front();
  }
  EXPECT_TRUE(shows(s.model.frame(kPicture), "axis 0"));
  const Dims before = s.model.pane().index();
  s.model.key({"]", {}, {}});
  EXPECT_FALSE(s.model.pane().index() == before);
  // From elsewhere: what is folded is unfolded.
  s.model.set_selection(Selection::file_tensor(1, "head.weight", "details"));
  EXPECT_EQ(s.model.chosen_name(), "head.weight");
  s.model.set_selection(Selection::file_tensor(1, "layers.11.conv.bias", "details"));
  EXPECT_EQ(s.model.chosen_name(), "layers.11.conv.bias");
}

TEST(ModelFileView, a_search_counts_and_leads_from_one_to_the_next) {
  Shown s(blocks_file(12));
  s.model.search("LAYERS.1 bias");
  EXPECT_EQ(s.model.found_text(), "3 of 25 tensors");  // 1, 10 and 11
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    s.model.next_found(1);
    names.push_back(s.model.chosen_name());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"layers.1.conv.bias", "layers.10.conv.bias", "layers.11.conv.bias"}));
  s.model.search("no such name");
  EXPECT_TRUE(shows(s.model.frame(kPicture), "No tensor has these letters"));
  s.model.search("");
  EXPECT_EQ(s.model.found_text(), "");
}

TEST(ModelFileView, the_graph_is_folded_and_unfolds_by_double_clicks) {
  Shown s(blocks_file(12));
  s.model.show_page(ModelFileModel::Page::graph);
  const GraphPane& g = s.model.graph();
  auto cell = [&](const std::string& name) {
    for (const auto& c : g.layout().cells)
      if (g.graph().tree.at(c.node).name == name) return c.node;
    ADD_FAILURE() << "no box " << name;
    return -1;
  };
  EXPECT_EQ(g.layout().cells.size(), 4u) << "the blocks, the head, input and output";
  EXPECT_TRUE(shows(s.model.frame(kPicture), "36 nodes"));
  EXPECT_TRUE(s.model.last().overlaps().empty());
  s.double_click({GraphPane::cell, cell("0 … 11")});
  EXPECT_EQ(g.layout().cells.size(), 3u + 12u);
  s.double_click({GraphPane::cell, cell("0")});
  EXPECT_EQ(g.layout().cells.size(), 3u + 11u + 3u);
  // Top down: who gives a value stands above who reads it.
  for (const auto& w : g.layout().wires) {
    EXPECT_FALSE(w.back);
    EXPECT_LT(g.layout().cells[static_cast<size_t>(w.from)].layer, g.layout().cells[static_cast<size_t>(w.to)].layer);
  }
  s.click({GraphPane::cell, cell("Relu")});
  ASSERT_FALSE(s.chosen.empty());
  EXPECT_TRUE(s.chosen.back().same(Selection::file_node(1, 1)));
  s.model.key({"Down", {}, {}});
  EXPECT_TRUE(s.chosen.back().same(Selection::file_node(1, 2))) << to_text(s.chosen.back());
  s.model.key({"Backspace", {}, {}});
  EXPECT_EQ(g.layout().cells.size(), 3u + 12u) << "folded again";
  s.model.search("relu");
  EXPECT_EQ(s.model.found_text(), "12 of 39 nodes");
  s.model.next_found(1);
  EXPECT_TRUE(s.chosen.back().same(Selection::file_node(1, 4))) << to_text(s.chosen.back());
  s.model.open_all(true);
  EXPECT_EQ(g.layout().cells.size(), 39u);
  for (float factor : {0.05f, 1.3f, 3.f}) {
    s.model.graph().zoom(factor, {500, 300});
    EXPECT_TRUE(s.model.frame(kPicture).overlaps().empty());
  }
  s.model.set_selection(Selection::file_tensor(1, "head.weight", "details"));
  EXPECT_EQ(s.model.page(), ModelFileModel::Page::tensors);
}

TEST(ModelFileView, ten_thousand_nodes_are_no_more_to_draw_than_a_screen_shows) {
  Shown s(blocks_file(3333));
  s.model.show_page(ModelFileModel::Page::graph);
  s.model.open_all(true);
  ASSERT_EQ(s.model.graph().layout().cells.size(), 10'002u);
  s.model.frame(kPicture);
  for (int i = 0; i < 30; ++i) {
    const Scene& scene = s.model.frame(kPicture);
    EXPECT_LT(scene.prims().size(), 12'000u) << s.model.graph().zoom();
    s.model.graph().zoom(0.8f, {500, 20});
  }
  s.model.search("relu");
  s.model.graph().fit();
  const auto marks = [&] {
    int n = 0;
    for (const Scene::Prim& p : s.model.frame(kPicture).prims())
      n += p.kind == Scene::Kind::rect && p.fill == Ink::warning;
    return n;
  };
  for (const float factor : {1.f, 0.9f, 0.8f, 0.5f}) {
    s.model.graph().zoom(factor, {500, 300});
    EXPECT_EQ(marks(), 3333) << "at zoom " << s.model.graph().zoom();
  }
  s.model.search("");
  s.model.show_page(ModelFileModel::Page::tensors);
  s.model.open_all(true);
  EXPECT_LT(s.model.frame(kPicture).prims().size(), 1000u);
}

TEST(ModelFileView, a_graph_in_a_dock_without_room_is_the_right_way_round_when_there_is_room_again) {
  Shown s(blocks_file(12));
  s.model.show_page(ModelFileModel::Page::graph);
  for (const float w : {30.f, 45.f, 48.f, 60.f}) {
    s.model.frame({w, 300});
    s.model.key({"f", {}, {}});
    s.model.frame({w, 300});
    s.model.graph().zoom(1.25f, {20, 100});
    EXPECT_GT(s.model.graph().zoom(), 0) << w;
  }
  s.model.frame(kPicture);
  s.model.key({"f", {}, {}});
  EXPECT_TRUE(shows(s.model.frame(kPicture), "36 nodes"));
}

TEST(ModelFileView, no_wire_of_a_graph_runs_behind_a_box) {
  Shown s(blocks_file(12));
  s.model.show_page(ModelFileModel::Page::graph);
  for (const bool open : {false, true}) {
    s.model.open_all(open);
    const GraphLayout& l = s.model.graph().layout();
    EXPECT_FALSE(l.pieces.empty());
    for (const auto& piece : l.pieces)
      for (size_t i = 0; i + 1 < piece.points.size(); ++i) {
        const Point a = piece.points[i], b = piece.points[i + 1];
        for (const auto& c : l.cells)
          EXPECT_FALSE(std::max(a.x, b.x) > c.x - GraphLayout::kBoxW / 2 + 1 &&
                       std::min(a.x, b.x) < c.x + GraphLayout::kBoxW / 2 - 1 && std::max(a.y, b.y) > c.y + 1 &&
                       std::min(a.y, b.y) < c.y + GraphLayout::kBoxH - 1)
              << "of cell " << c.node;
      }
    for (const auto& w : l.wires) {
      ASSERT_GE(w.last, 0);
      const Point end = l.pieces[static_cast<size_t>(w.last)].points.back();
      EXPECT_NEAR(end.x, l.cells[static_cast<size_t>(w.to)].x, 1);
      EXPECT_NEAR(end.y, l.cells[static_cast<size_t>(w.to)].y, 1);
    }
  }
}

TEST(ModelFileView, what_is_unfolded_is_seen_though_a_frame_is_drawn_before_it_is_laid_out) {
  Shown s(blocks_file(3333));
  s.model.show_page(ModelFileModel::Page::graph);
  GraphPane& g = s.model.graph();
  s.model.frame(kPicture);
  const auto at_once = g.on_need_layout;
  std::set<int> asked;
  g.on_need_layout = [&](std::set<int> open) { asked = std::move(open); };
  Shown other(blocks_file(3333));  // that is laid out at once
  other.model.show_page(ModelFileModel::Page::graph);
  other.model.frame(kPicture);
  g.zoom(0.5f, {900, 500});
  for (const bool open : {true, false}) {
    g.pan(40000, 40000);
    s.model.open_all(open);
    s.model.frame(kPicture);
    at_once(asked);
    other.model.open_all(open);
    EXPECT_EQ(s.model.frame(kPicture).dump(), other.model.frame(kPicture).dump()) << open;
  }
  g.pan(0, 1e6f);
  g.reveal(9000);
  s.model.frame(kPicture);
  at_once(asked);
  const Scene& scene = s.model.frame(kPicture);
  EXPECT_TRUE(std::any_of(scene.targets().begin(), scene.targets().end(), [&](const Scene::Target& t) {
    return t.hit.kind == GraphPane::cell && t.hit.id == g.graph().tree.leaf_of(9000);
  })) << "a node that was searched for";
}

TEST(ModelFileView, a_graph_that_runs_back_into_a_module_is_laid_out) {
  // a.first -> b -> a.second: folded, a and b read from each other.
  formats::OnnxModel m;
  for (const auto& [name, in, out] : {std::tuple{"/a/first", "x", "u"}, std::tuple{"/b/only", "u", "v"},
                                      std::tuple{"/b/more", "u", "t"}, std::tuple{"/a/second", "v", "y"}})
    m.graph.nodes.push_back({name, "Relu", "", {in}, {out}, {}});
  m.graph.inputs.push_back({.name = "x"});
  m.graph.outputs.push_back({.name = "y"});
  const OpGraph g(testing::model_file_of(formats::onnx_bytes(m), "back.onnx"));
  const GraphLayout layout = lay_out(g, {});
  ASSERT_EQ(layout.cells.size(), 4u);
  int back = 0;
  for (const auto& w : layout.wires) back += w.back;
  EXPECT_EQ(back, 1);
  EXPECT_EQ(layout.wires.size(), 4u);
}

TEST(ModelFileView, other_documents_leave_it_and_closing_it_forgets_it) {
  Shown s(blocks_file(2));
  s.model.set_document(nullptr);
  EXPECT_NE(s.model.file(), nullptr);
  s.model.keep({1});
  EXPECT_TRUE(s.model.ready());
  s.model.keep({});
  EXPECT_EQ(s.model.file(), nullptr);
  EXPECT_FALSE(s.model.ready());
  s.model.frame(kPicture);
  s.model.key({"Down", {}, {}});
  EXPECT_EQ(s.model.summary(), "Model file: none is shown");
}

TEST(ModelFileDetails, say_what_the_file_a_tensor_and_a_node_are) {
  Shown s(blocks_file(2));
  DetailsSources from;
  from.document = &s.document;
  auto said = [&](const Selection& selection) {
    const Details d = details_of(selection, from);
    std::string all = d.title + "\n" + d.subtitle;
    for (const auto& section : d.sections)
      for (const auto& r : section.rows) all += "\n" + r.name + "=" + r.value;
    return all;
  };
  auto holds = [](const std::string& text, const std::string& part) { return text.find(part) != text.npos; };
  const std::string file = said(Selection::of_document(1)),
                    tensor = said(Selection::file_tensor(1, "layers.1.conv.weight")),
                    node = said(Selection::file_node(1, 3));
  EXPECT_TRUE(holds(file, "producer=tests") && holds(file, "input=x  f32 [N, 4, 8, 8]")) << file;
  EXPECT_TRUE(holds(tensor, "shape=[4, 4, 3, 3]") && holds(tensor, "node=Conv /model/layers.1/conv/Conv")) << tensor;
  EXPECT_TRUE(holds(node, "weight=layers.1.conv.weight") && holds(node, "pads=[1, 1, 1, 1]") &&
              holds(node, "made by=Add"))
      << node;
  EXPECT_EQ(said(Selection::file_tensor(1, "none")), "\n");
  EXPECT_EQ(said(Selection::file_node(1, 99)), "\n");
  for (const Selection& text :
       {Selection::file_tensor(1, "a.b@c:d"), Selection::file_tensor(12, "w@1"), Selection::file_node(3, 7)})
    EXPECT_TRUE(parse_selection(to_text(text)).same(text)) << to_text(text);
  EXPECT_EQ(parse_selection("weight:a@b").name, "a@b");
}

}  // namespace
}  // namespace tenon::views
