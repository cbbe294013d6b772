// The report of a run: whole, the same bytes every time, and safe to open whatever a run is called.
#include "views/report/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "tests/views/html.h"
#include "views/report/html_page.h"
#include "views/shared/scene_svg.h"

namespace tenon::views {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Report : ::testing::Test {
  std::filesystem::path folder = ::testing::TempDir() + "/report." + std::to_string(getpid());
  std::shared_ptr<projects::Project> project;
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override {
    project.reset();
    std::filesystem::remove_all(folder);
  }
  std::string file(const std::string& name) const { return (folder / name).string(); }

  projects::RunInfo train(const char* name, int64_t steps, const Settings& set = {}, const std::string& run = "first",
                          const std::string& data = {}) {
    if (!project) {
      const std::string path = file("p.tenon");
      const Beginning b = begin(find_template(name), data, path);
      project = projects::Project::create(path, b.model, b.recipe.to_json());
    }
    projects::TrainOptions o;
    o.run_name = run;
    o.max_steps = steps;
    o.set = set;
    projects::RunDriver::start(project, o)->wait();
    const projects::RunInfo r = project->run(run);
    EXPECT_EQ(r.status, "finished") << r.error;
    return r;
  }
};

TEST_F(Report, has_everything_of_a_run_and_is_the_same_bytes_every_time) {
  const projects::RunInfo run = train("spirals", 40, {{"optimizer.lr", "0.02"}});
  const std::string html = report_html(read_report(*project, run, 40));
  for (const char* id : {"model", "recipe", "data", "curves", "results", "checkpoints", "again"})
    EXPECT_EQ(count(html, "<h2 id=\"" + std::string(id) + "\""), 1u) << id;
  EXPECT_EQ(count(html, "<svg "), 3u) << "curves, errors, ROC and precision-recall";
  EXPECT_TRUE(page_has(html, projects::digest_at(*project, run.id, 40)));
  EXPECT_TRUE(page_has(html, "<tr><td>optimizer.lr</td><td>0.02</td>"));
  for (const LayerSpec& l : run.model.layers) EXPECT_TRUE(page_has(html, "<td>" + l.name + "</td>")) << l.name;
  EXPECT_TRUE(page_has(html, "AUROC") && page_has(html, "Confusion") && page_has(html, "Calibration"));
  EXPECT_EQ(unbalanced(html), "");
  // Nothing comes from elsewhere, and nothing runs.
  for (const char* word : {"<script", "<link", "@import", "src=\"http", "href=\"http", "url(http", "<iframe"})
    EXPECT_FALSE(page_has(html, word)) << word;
  EXPECT_EQ(report_html(read_report(*project, run, 40)), html);
  const auto again = projects::Project::open(file("p.tenon"), true);
  EXPECT_EQ(report_html(read_report(*again, again->run("first"), 40)), html) << "from another opening of the file";
  EXPECT_NE(report_html(read_report(*project, run, 20)), html);
}

TEST_F(Report, a_picture_does_not_depend_on_a_window_that_measures_letters) {
  const projects::RunInfo run = train("spirals", 6);
  const std::string html = report_html(read_report(*project, run, 6));
  measure_text_with([](const std::string& t, Face) { return 3.f * static_cast<float>(t.size()); });
  const std::string in_a_window = report_html(read_report(*project, run, 6));
  measure_text_with(nullptr);
  EXPECT_EQ(in_a_window, html);
}

TEST_F(Report, what_people_wrote_is_text_and_no_markup) {
  projects::RunInfo run = train("spirals", 4, {}, "<script>alert('1')</script>");
  project->describe_run(run.id, "<img src=x onerror=\"alert(2)\">", {"a&b", "\"><b>"});
  run = project->run(run.id);
  RunReport report = read_report(*project, run, 4);
  report.results.classes = {"</svg><script>", "\" onload=\"x"};
  report.project = "<p>.tenon";
  const std::string html = report_html(report);
  EXPECT_FALSE(page_has(html, "<script"));
  EXPECT_FALSE(page_has(html, "<img src=x"));
  EXPECT_FALSE(page_has(html, "\" onload"));
  EXPECT_FALSE(page_has(html, "<b>"));
  EXPECT_TRUE(page_has(html, "<h1>&lt;script&gt;alert('1')&lt;/script&gt;</h1>"));
  EXPECT_TRUE(page_has(html, "a&amp;b"));
  EXPECT_TRUE(
      page_has(html, "tenon digest '&lt;p&gt;.tenon' '&lt;script&gt;alert('\\''1'\\'')&lt;/script&gt;' --step 4"))
      << "as a shell takes it";
  EXPECT_EQ(unbalanced(html), "");
}

TEST_F(Report, says_what_trains_the_same_run_again) {
  const projects::RunInfo run = train("spirals", 12, {{"optimizer.lr", "0.02"}, {"seed", "7"}});
  const RunReport report = read_report(*project, run, 12);
  EXPECT_FALSE(report.model_changed);
  Settings set;
  for (const KeyDifference& d : report.from_project) set.emplace_back(d.key, d.to);
  EXPECT_FALSE(set.empty());
  EXPECT_TRUE(page_has(report_html(report), "--set optimizer.lr=0.02"));
  projects::TrainOptions o;
  o.run_name = "again";
  o.set = set;
  projects::RunDriver::start(project, o)->wait();
  const projects::RunInfo again = project->run("again");
  ASSERT_EQ(again.steps, run.steps) << again.error;
  EXPECT_EQ(projects::digest_at(*project, again.id, 12), report.state_digest);
  // A project whose model went another way says so instead.
  ModelSpec other = project->model();
  other.layers.front().x += 1;
  other.name = "other";
  project->set_model(other);
  const std::string html = report_html(read_report(*project, run, 12));
  EXPECT_FALSE(page_has(html, "tenon train "));
  EXPECT_TRUE(page_has(html, "another by now"));
}

TEST_F(Report, what_changed_on_the_way_and_what_has_no_classes_is_told_too) {
  train("series", 10, {{"data.samples", "80"}, {"data.batch_size", "16"}});
  projects::TrainOptions on;
  on.resume = "first";
  on.set = {{"optimizer.lr", "0.03125"}, {"max_steps", "16"}, {"watches", "lr > 0.02"}};
  projects::RunDriver::start(project, on)->wait();
  const projects::RunInfo run = project->run("first");
  ASSERT_EQ(run.changes.size(), 1u) << run.error;
  const std::string html = report_html(read_report(*project, run, run.steps));
  EXPECT_TRUE(page_has(html, "Changed while it trained"));
  EXPECT_TRUE(page_has(html, "0.03125"));
  EXPECT_TRUE(page_has(html, "Marked by watches"));
  EXPECT_TRUE(page_has(html, "at step 11: lr is 0.02")) << "as the schedule has it";
  EXPECT_EQ(unbalanced(html), "");
}

TEST_F(Report, pictures_of_the_worst_samples_lie_in_it) {
  const projects::RunInfo run = train("u-net", 2, {{"data.samples", "40"}, {"data.batch_size", "8"}});
  const RunReport report = read_report(*project, run, 2);
  ASSERT_EQ(report.worst.size(), 8u) << "a fifth of the samples are tested";
  const SampleSight& s = report.worst.front().sight;
  EXPECT_EQ(s.input.channels, 1);
  EXPECT_EQ(s.target.channels, 3);
  EXPECT_EQ(s.answer.height, s.target.height);
  EXPECT_EQ(report.worst.front().prediction.row, report.results.predictions[report.results.worst_first().front()].row);
  const std::string html = report_html(report);
  EXPECT_EQ(count(html, "<img src=\"data:image/png;base64,iVBORw0KGgo"), 24u) << "input, truth and answer of each";
  EXPECT_EQ(unbalanced(html), "");
}

TEST_F(Report, of_a_text_it_shows_what_was_guessed_worst) {
  std::string text;
  for (int i = 0; i < 900; ++i) text += "line <" + std::to_string(i * i) + "> of the text\n";
  write_file(file("a.txt"), text);
  const Settings small = {{"data.test_samples", "6"}, {"data.batch_size", "4"}, {"data.cache", folder.string()}};
  const projects::RunInfo run = train("byte-lstm", 1, small, "first", file("a.txt"));
  const RunReport report = read_report(*project, run, 1);
  ASSERT_EQ(report.worst.size(), 6u);
  for (const auto& w : report.worst) {
    EXPECT_TRUE(w.prediction.worst >= 0 && w.prediction.worst < 128);
    EXPECT_FALSE(w.sight.at.empty() || w.sight.guess.empty() || w.sight.before.empty());
  }
  const std::string html = report_html(report);
  EXPECT_EQ(count(html, "<mark>"), 6u);
  EXPECT_FALSE(page_has(html, " --roc")) << "there are no curves of the next token";
  EXPECT_TRUE(page_has(html, "of the text⏎"));
  EXPECT_EQ(unbalanced(html), "");
}

TEST_F(Report, numbers_that_are_none_are_told_and_break_nothing) {
  const projects::RunInfo run = train("spirals", 12, {{"optimizer.lr", "1e30"}, {"on_nan", "continue"}});
  const std::string html = report_html(read_report(*project, run, 12));
  EXPECT_TRUE(page_has(html, "left out: no numbers"));
  EXPECT_TRUE(page_has(html, "nan"));
  EXPECT_EQ(unbalanced(html), "");
}

TEST_F(Report, a_file_is_written_whole_and_its_name_says_what_it_is) {
  const projects::RunInfo run = train("spirals", 3);
  const std::string said = write_report(*project, run, 3, file("r.html"));
  EXPECT_TRUE(page_has(said, "r.html: the report of first at step 3"));
  EXPECT_EQ(read_file(file("r.html")), report_html(read_report(*project, run, 3)));
  EXPECT_THROW(write_report(*project, run, 3, file("r.txt")), Error);
  EXPECT_FALSE(std::filesystem::exists(file("r.txt")));
  EXPECT_THROW(write_report(*project, run, 3, file("none/r.html")), Error);
  EXPECT_THROW(read_report(*project, run, 3, {}, [](int64_t, int64_t) { return false; }), Error) << "cancelled";
}

TEST(HtmlPage, an_image_is_base64_of_its_png) {
  data::Image one{1, 1, 1, {200}};
  const std::string uri = data_uri(one);
  ASSERT_TRUE(uri.starts_with("data:image/png;base64,iVBORw0KGgo"));
  // As long as base64 of so many bytes is, with as much to fill it up.
  const size_t bytes = data::png_bytes(one).size(), digits = uri.size() - std::string("data:image/png;base64,").size();
  EXPECT_EQ(digits, (bytes + 2) / 3 * 4);
  EXPECT_EQ(count(uri, "="), (3 - bytes % 3) % 3);
}

/// The bytes that a base64 text stands for.
std::string bytes_of(const std::string& digits) {
  static const std::string all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (char c : digits) {
    if (c == '=') break;
    word = word << 6 | static_cast<uint32_t>(all.find(c));
    if ((bits += 6) >= 8) out += static_cast<char>(word >> (bits -= 8) & 0xff);
  }
  return out;
}

TEST(HtmlPage, an_image_reads_back) {
  data::Image image{5, 3, 3, {}};
  for (int i = 0; i < 45; ++i) image.pixels.push_back(static_cast<uint8_t>(5 * i));
  const std::string uri = data_uri(image);
  const data::Image back = data::parse_image(bytes_of(uri.substr(uri.find(',') + 1)), "back", 3);
  EXPECT_EQ(back.pixels, image.pixels);
}

}  // namespace
}  // namespace tenon::views
