// The page of a trace, a snapshot and a model file: whole, the same bytes every time, and with the command line's
// figures.
#include "views/report/document_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/safetensors.h"
#include "tests/tracing/made_snapshot.h"
#include "tests/tracing/made_training.h"
#include "tests/views/html.h"
#include "tests/views/model_files.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"
#include "views/shared/scene_svg.h"

namespace tenon::views {
namespace {

struct DocumentReport : ::testing::Test {
  std::filesystem::path folder = ::testing::TempDir() + "/document_report." + std::to_string(getpid());
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string file(const std::string& name) const { return (folder / name).string(); }
  Document trace_document(const std::string& name, const std::string& text) {
    write_file(file(name), text);
    return read_document(file(name), document_kind(file(name)));
  }
  static Document snapshot_document() {
    snapshot::MadeSnapshot m;
    m.segment(uint64_t{1} << 40, 64 << 20, {});
    std::vector<uint64_t> forward;
    for (int step = 0; step < 12; ++step) {
      for (int i = 0; i < 6; ++i) forward.push_back(m.alloc("forward.py", 100000 * (step == 5 ? 4 : 1) + i));
      m.alloc("leak.py", 20000 + step);
      for (const uint64_t a : forward) m.free(a);
      forward.clear();
    }
    Document d{.id = 1, .kind = Document::Kind::snapshot, .path = "made.pickle", .title = "made.pickle"};
    d.snapshot = m.done();
    d.timelines.push_back(std::make_shared<const snapshot::Timeline>(*d.snapshot, 0));
    return d;
  }
};

/// Needs nothing from elsewhere and runs nothing.
void stands_alone(const std::string& html) {
  EXPECT_EQ(unbalanced(html), "");
  for (const char* word : {"<script", "<link", "@import", "src=\"http", "href=\"http", "url(http", "<iframe"})
    EXPECT_FALSE(page_has(html, word)) << word;
}
void expect_finding(const std::string& html, const tracing::Finding& f, const std::string& of) {
  EXPECT_TRUE(page_has(html, xml_escaped(f.sentence))) << of << ": " << f.sentence;
  for (const tracing::Fact& x : f.facts)
    if (x.name != "from_cache") {
      EXPECT_TRUE(page_has(html, "<th scope=\"row\">" + xml_escaped(x.head) + "</th><td>" +
                                     xml_escaped(cell_text(x.value, x.unit)) + "</td>"))
          << of << ": " << x.head;
    }
  for (const tracing::Table& t : f.tables)
    for (const auto& row : t.rows)
      for (size_t c = 0; c < row.size(); ++c)
        EXPECT_TRUE(page_has(html, ">" + xml_escaped(cell_text(row[c], t.columns[c].unit)) + "</td>") ||
                    page_has(html, "</span>" + xml_escaped(cell_text(row[c], t.columns[c].unit)) + "</td>"))
            << of << ", " << t.name << ": " << cell_text(row[c], t.columns[c].unit);
}

TEST_F(DocumentReport, of_a_trace_has_every_figure_of_the_command_line) {
  const Document d = trace_document("small.json", tracing::train({.steps = 4, .buckets = 2, .stacks = true}));
  ASSERT_TRUE(d.trace);
  const std::string html = document_report_html(d);
  stands_alone(html);
  EXPECT_EQ(count(html, "<svg "), 1u);
  int told = 0;
  for (const tracing::TraceAnalysis& a : tracing::trace_analyses()) {
    if (a.min_traces > 1) continue;
    const tracing::Finding f = a.run({.traces = {d.trace}, .top = 25});
    if (f.ok)
      expect_finding(html, f, a.name);
    else
      EXPECT_TRUE(page_has(html, xml_escaped(f.sentence))) << a.name;
    told += f.ok;
  }
  EXPECT_GE(told, 9);
  // Read anew, and from what was saved beside it, it is the same file.
  EXPECT_EQ(document_report_html(d), html);
  EXPECT_EQ(document_report_html(read_document(d.path, Document::Kind::trace)), html);
  // A name is text and no markup.
  Document odd = d;
  odd.title = "<script>alert(1)</script>";
  const std::string named = document_report_html(odd);
  EXPECT_FALSE(page_has(named, "<script"));
  EXPECT_EQ(unbalanced(named), "");
}

TEST_F(DocumentReport, of_a_trace_without_events_says_so) {
  const Document d = trace_document("none.json", R"({"schemaVersion":1,"traceEvents":[]})");
  const std::string html = document_report_html(d);
  stands_alone(html);
  EXPECT_TRUE(page_has(html, "The trace holds no events."));
  EXPECT_EQ(count(html, "<svg "), 0u);
}

TEST_F(DocumentReport, of_a_snapshot_has_the_peak_and_every_finding) {
  const Document d = snapshot_document();
  const std::string html = document_report_html(d);
  stands_alone(html);
  EXPECT_EQ(count(html, "<svg "), 1u);
  EXPECT_TRUE(page_has(html, "forward.py"));
  for (const tracing::SnapshotAnalysis& a : tracing::snapshot_analyses()) {
    if (a.min_files > 1) continue;
    const tracing::Finding f = a.run({.snapshots = {d.snapshot}, .top = 20});
    EXPECT_TRUE(page_has(html, xml_escaped(f.sentence))) << a.name;
    if (f.ok) expect_finding(html, f, a.name);
  }
  EXPECT_EQ(document_report_html(snapshot_document()), html);
  // One without a history has its findings all the same.
  Document bare = snapshot_document();
  bare.timelines.clear();
  const std::string told = document_report_html(bare);
  EXPECT_TRUE(page_has(told, "nothing is known of memory over time"));
  EXPECT_EQ(count(told, "<svg "), 0u);
}

TEST_F(DocumentReport, of_a_model_file_lists_layers_tensors_and_graph) {
  formats::save_onnx(file("blocks.onnx"), testing::blocks_model(3));
  const Document d = read_document(file("blocks.onnx"), document_kind(file("blocks.onnx")));
  ASSERT_TRUE(d.model);
  const std::string html = document_report_html(d);
  stands_alone(html);
  EXPECT_EQ(count(html, "<svg "), 2u) << "bytes by layer, and the graph";
  for (const auto& t : d.model->tensors) {
    EXPECT_TRUE(page_has(html, "<td>" + t.name + "</td><td>" + t.dtype + "</td>")) << t.name;
  }
  EXPECT_TRUE(page_has(html, "<td>layers.0.conv</td>") && page_has(html, "weight [4, 4, 3, 3], bias [4]"));
  for (const auto& n : d.model->nodes) EXPECT_TRUE(page_has(html, "<td>" + n.name + "</td>")) << n.name;
  EXPECT_EQ(document_report_html(read_document(d.path, Document::Kind::model)), html);
  Tensor weight = empty({2, 3});
  for (int i = 0; i < 6; ++i) weight.data<float>()[i] = 1;
  formats::save_safetensors(file("m.safetensors"), {{"fc.weight", weight}, {"alone", weight}}, {{"made", "<by hand>"}});
  const std::string flat =
      document_report_html(read_document(file("m.safetensors"), document_kind(file("m.safetensors"))));
  stands_alone(flat);
  EXPECT_TRUE(page_has(flat, "<td>made</td><td>&lt;by hand&gt;</td>"));
  EXPECT_TRUE(page_has(flat, "(outermost)"));
  EXPECT_EQ(count(flat, "<svg "), 1u);
}

TEST_F(DocumentReport, is_written_whole_where_it_is_asked_for_and_can_be_stopped) {
  const Document d = trace_document("small.json", tracing::train({.steps = 3}));
  EXPECT_NE(write_document_report(d, file("r.html")).find("the report of small.json"), std::string::npos);
  EXPECT_EQ(read_file(file("r.html")), document_report_html(d));
  try {
    write_document_report(d, file("r.pdf"));
    FAIL() << "a report in a file of another kind";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("r.pdf"), std::string::npos);
  }
  int64_t asked = 0;
  EXPECT_THROW(write_document_report(d, file("s.html"), [&](int64_t done, int64_t) { return asked = done, done < 3; }),
               Error);
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(std::filesystem::exists(file("s.html")));
}

}  // namespace
}  // namespace tenon::views
