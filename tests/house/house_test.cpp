#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/house/scan.h"

namespace tenon::house {
namespace {

bool is_source(const std::string& path) {
  const std::string ext = std::filesystem::path(path).extension().string();
  return ext == ".h" || ext == ".cpp" || ext == ".cu" || ext == ".cuh";
}
bool is_text(const std::string& path) {
  const std::string ext = std::filesystem::path(path).extension().string();
  return is_source(path) || ext == ".md" || ext == ".txt" || ext == ".cmake" || ext == ".sh" || ext == ".json" ||
         ext == ".py" || ext.empty();
}
std::string join(const Violations& v) {
  std::string s;
  for (const std::string& line : v) s += line + "\n";
  return s;
}

TEST(House, includes_go_down_only_and_libraries_stay_in_their_places) {
  size_t seen = 0;
  Violations all;
  for (const std::string& path : project_files(TENON_SOURCE_DIR)) {
    if (!is_source(path)) continue;
    ++seen;
    for (std::string& v : scan_source(path, read_text(std::string(TENON_SOURCE_DIR) + "/" + path)))
      all.push_back(std::move(v));
  }
  EXPECT_GT(seen, 15u) << "the scan did not find the sources";
  EXPECT_TRUE(all.empty()) << join(all);
}

TEST(House, every_folder_has_its_floor) {
  for (const std::string& path : project_files(TENON_SOURCE_DIR))
    if (is_source(path)) {
      EXPECT_TRUE(has_floor(path)) << path << ": name its folder in floors() of tests/house/scan.cpp";
    }
  std::printf("%s", inner_order().c_str());
}

TEST(House, files_of_a_folder_keep_no_functions_or_types_of_one_name_to_themselves) {
  std::vector<std::pair<std::string, std::string>> sources;
  for (const std::string& path : project_files(TENON_SOURCE_DIR))
    if (is_source(path)) sources.emplace_back(path, read_text(std::string(TENON_SOURCE_DIR) + "/" + path));
  const Violations bad = scan_local_names(sources);
  EXPECT_TRUE(bad.empty()) << join(bad);
}

TEST(House, a_source_keeps_no_name_to_itself_that_a_header_gives_everyone) {
  std::vector<std::pair<std::string, std::string>> headers, sources;
  for (const std::string& path : project_files(TENON_SOURCE_DIR))
    if (is_source(path))
      (path.ends_with(".h") ? headers : sources)
          .emplace_back(path, read_text(std::string(TENON_SOURCE_DIR) + "/" + path));
  const Violations bad = scan_hidden_names(headers, sources);
  EXPECT_TRUE(bad.empty()) << join(bad);
}

TEST(House, a_type_is_defined_in_one_header) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const std::string& path : project_files(TENON_SOURCE_DIR))
    if (path.ends_with(".h")) headers.emplace_back(path, read_text(std::string(TENON_SOURCE_DIR) + "/" + path));
  const Violations bad = scan_shared_types(headers);
  EXPECT_TRUE(bad.empty()) << join(bad);
}

TEST(House, sources_are_as_the_formatter_leaves_them) {
  if (std::system("clang-format-14 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "clang-format-14 is not installed";
  std::string files;
  for (const std::string& path : project_files(TENON_SOURCE_DIR))
    if (is_source(path)) files += " " + path;
  const std::string out = std::string(TENON_BINARY_DIR) + "/formatter.txt";
  const std::string command =
      "cd '" TENON_SOURCE_DIR "' && clang-format-14 --dry-run -Werror" + files + " 2>'" + out + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(out).substr(0, 4000) << "\nclang-format-14 -i FILES mends it";
}

TEST(House, no_unfinished_work_and_no_registry_hosts) {
  Violations all;
  for (const std::string& path : project_files(TENON_SOURCE_DIR))
    if (is_text(path))
      for (std::string& v : scan_words(path, read_text(std::string(TENON_SOURCE_DIR) + "/" + path)))
        all.push_back(std::move(v));
  EXPECT_TRUE(all.empty()) << join(all);
}

TEST(House, rooms_are_compiled_without_qt_and_without_cuda) {
  const std::string commands = read_text(std::string(TENON_BINARY_DIR) + "/compile_commands.json");
  ASSERT_TRUE(commands.find("core/layout.cpp") != std::string::npos ||
              commands.find("tenon_core.dir/Unity/") != std::string::npos)
      << "compile_commands.json was not found";
  const Violations bad = scan_compile_commands(TENON_SOURCE_DIR, commands);
  EXPECT_TRUE(bad.empty()) << join(bad);
}

// The scanner itself: each rule is broken once, and once kept.
TEST(Scanner, views_do_not_see_each_other_nor_the_window_above_them) {
  for (const char* header :
       {"views/timeline/timeline_model.h", "views/details/details_model.h", "views/shell/workbench.h"})
    EXPECT_EQ(scan_source("views/anew/anew_model.cpp", std::string("#include \"") + header + "\"\n").size(), 1u)
        << header;
  for (const char* header : {"views/anew/anew_model.h", "views/frame/bench.h", "views/shared/table.h"})
    EXPECT_TRUE(scan_source("views/anew/anew_view.cpp", std::string("#include \"") + header + "\"\n").empty())
        << header;
  EXPECT_EQ(scan_source("views/frame/view.cpp", "#include \"views/anew/anew_model.h\"\n").size(), 1u);
  EXPECT_FALSE(has_floor("views/anew/deeper/x.h"));
}

TEST(Scanner, an_include_that_goes_up_is_found) {
  EXPECT_EQ(scan_source("core/tensor.cpp", "#include \"engine/op/op.h\"\n").size(), 1u);
  EXPECT_EQ(scan_source("projects/project.cpp", "\n#include \"views/shell/shell.h\"\n").at(0).substr(0, 23),
            "projects/project.cpp:2:");
  EXPECT_TRUE(
      scan_source("projects/project.cpp", "#include \"core/tensor.h\"\n#include \"projects/project.h\"\n").empty());
  EXPECT_EQ(scan_source("engine/a.cpp", "#  include \"app/cli/command.h\"\n").size(), 1u);
  EXPECT_EQ(scan_source("engine/a.cpp", "#include \"tests/engine/helper.h\"\n").size(), 1u);
  EXPECT_EQ(scan_source("engine/ops/a.cpp", "#include \"b.h\"\n").size(), 1u);
}

TEST(Scanner, an_include_within_a_room_that_goes_up_is_found) {
  EXPECT_EQ(scan_source("engine/nn/linear.cpp", "#include \"engine/train/session.h\"\n").size(), 1u);
  EXPECT_EQ(scan_source("engine/optim/sgd.cpp", "#include \"engine/data/loader.h\"\n").size(), 1u) << "a neighbour";
  EXPECT_TRUE(scan_source("engine/train/session.cpp", "#include \"engine/nn/module.h\"\n").empty());
  EXPECT_TRUE(scan_source("engine/op/op.cpp", "#include \"engine/ops/view.h\"\n").empty()) << "the knot";
  EXPECT_FALSE(has_floor("engine/cellar/a.cpp"));
}

TEST(Scanner, names_a_source_keeps_to_itself_are_found) {
  const std::string text = R"x(
#define BODY { \
  int no(int x) {
namespace tenon {
OP_UNARY(no, T(0) < x)
namespace {
struct Made { int no() const { return 1; } } made{3};
constexpr int kNo[] = {no(1), 2};
int later(int x);
// int no() {
template <class T, int N = (2 > 1)>
std::vector<std::pair<T, int>> several_lines(const std::string& text,
                                             int last = 1'000) noexcept(false) {
  const char brace = '{', *text = "}";
  return [] { return 1; }();
}
bool operator<(Made a, Made b) { return false; }
Made::Made() : a_{1}, b_(2) {}
decltype(auto) one_line() { return 1; }
TEST(Some, no) {}
OP_UNARY(no, x)
[[gnu::always_inline]] int after_a_macro() { return 1; }
const auto no = [](int x) { return x; };
namespace inner {
int within() { return R"({)"[0]; }
}  // namespace inner
}  // namespace
static int by_word(std::function<void(int)> f) { return 1; }
int seen_by_all(int x) { return x; }
}  // namespace tenon
)x";
  EXPECT_EQ(local_names(text), (std::vector<std::string>{"Made", "several_lines()", "one_line()", "after_a_macro()",
                                                         "within()", "by_word()"}));
}

TEST(Scanner, local_names_of_one_folder_are_found) {
  const std::string one = "namespace {\nvoid append(std::string& s, uint32_t n) {}\n}\n",
                    other = "namespace {\ntemplate <class T>\nvoid append(std::string& s, T n) {\n}\n}\n";
  const Violations bad = scan_local_names({{"engine/ops/a.cpp", one}, {"engine/ops/b.cpp", other}});
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_TRUE(bad[0].starts_with("engine/ops: append() is defined in a.cpp and b.cpp;")) << bad[0];
  EXPECT_EQ(scan_local_names({{"tests/core/a.cpp", one}, {"tests/core/b.cpp", other}}).size(), 1u);
  EXPECT_TRUE(scan_local_names({{"engine/ops/a.cpp", one}, {"engine/nn/b.cpp", other}}).empty());
  EXPECT_TRUE(scan_local_names({{"engine/ops/a.cpp", one + one}}).empty());
  const std::string type = "namespace {\ntemplate <class T>\nstruct Row : Base<T> {\n  int of;\n};\n}\n",
                    another = "namespace {\nenum class Row : uint8_t { first };\n}\n";
  EXPECT_EQ(scan_local_names({{"engine/ops/a.cpp", type}, {"engine/ops/b.cpp", another}}).size(), 1u);
  EXPECT_TRUE(scan_local_names({{"engine/ops/a.cpp", type}, {"engine/ops/b.cpp", "struct Row {\n};\n"}}).empty());
}

TEST(Scanner, types_of_one_name_in_a_namespace_are_found) {
  const std::string one = "namespace tenon {\nstruct Trial {\n  int of;\n};\n}  // namespace tenon\n",
                    other = "namespace tenon {\nclass Trial final : public Base {\n};\n}  // namespace tenon\n";
  const Violations bad = scan_shared_types({{"a.h", one}, {"b.h", other}});
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_TRUE(bad[0].starts_with("tenon::Trial is defined in a.h and b.h")) << bad[0];
  EXPECT_TRUE(scan_shared_types({{"a.h", one}, {"b.h", "namespace tenon::nn {\nstruct Trial {\n};\n"}}).empty());
  EXPECT_TRUE(scan_shared_types({{"a.h", one}, {"b.h", "namespace tenon {\nstruct Trial;\n"}}).empty());
}

TEST(Scanner, a_name_that_hides_a_headers_is_found) {
  const std::string header =
      "namespace tenon::a {\nstruct Answer {\n};\nstd::string to_json(int x);\n}  // namespace\n";
  auto source = [](const std::string& space, const std::string& what) {
    return "namespace " + space + " {\nnamespace {\n" + what + "\n}  // namespace\n}  // namespace " + space + "\n";
  };
  auto found = [&](const std::string& text) { return scan_hidden_names({{"a/a.h", header}}, {{"a/b.cpp", text}}); };
  const Violations bad = found(source("tenon::a", "struct Answer {\n};"));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0], "a/b.cpp:3: keeps a Answer to itself, which hides the one that a/a.h gives everyone in tenon::a");
  EXPECT_EQ(found(source("tenon::a", "std::vector<int> to_json(bool x) {\n}")).size(), 1u);
  EXPECT_TRUE(found(source("tenon::b", "struct Answer {\n};")).empty());
  EXPECT_TRUE(found(source("tenon::a", "const auto x = to_json(3);\nstruct Answers {\n};")).empty());
  EXPECT_TRUE(found("namespace tenon::a {\nstd::string to_json(int x) {\n}\n}  // namespace\n").empty());
}

TEST(Scanner, qt_outside_the_window_is_found) {
  const std::string text = "#include <QWidget>\n";
  EXPECT_EQ(scan_source("views/training/training_model.cpp", text).size(), 1u);
  EXPECT_EQ(scan_source("engine/a.h", "#include <QtCore/QString>\n").size(), 1u);
  EXPECT_EQ(scan_source("views/training/training_model.cpp", "#include <imgui.h>\n").size(), 1u);
  EXPECT_TRUE(scan_source("views/training/training_view.cpp", text).empty());
  EXPECT_TRUE(scan_source("views/shell/main_window.cpp", text).empty());
  EXPECT_TRUE(scan_source("app/window/window.cpp", text).empty());
  EXPECT_EQ(scan_source("app/cli/train.cpp", text).size(), 1u);
}

TEST(Scanner, cuda_and_confined_libraries_are_found) {
  EXPECT_EQ(scan_source("engine/ops/matmul.cpp", "#include <cuda_runtime.h>\n").size(), 1u);
  EXPECT_TRUE(scan_source("core/cuda/pool.cpp", "#include <cuda_runtime.h>\n").empty());
  EXPECT_EQ(scan_source("views/x/x_model.cpp", "#include <sqlite3.h>\n").size(), 1u);
  EXPECT_TRUE(scan_source("projects/sql.cpp", "#include <sqlite3.h>\n").empty());
  EXPECT_EQ(scan_source("engine/nn/conv.cpp", "#include <dnnl.hpp>\n").size(), 1u);
}

TEST(Scanner, numbers_read_as_the_locale_wants_are_found) {
  EXPECT_EQ(scan_source("views/x/x_model.cpp", "double v = std::strtod(text, &end);\n").size(), 1u);
  EXPECT_EQ(scan_source("engine/a.cpp", "double v = std::stod(text);\n").size(), 1u);
  EXPECT_TRUE(scan_source("engine/a.cpp", "int64_t v = std::strtoll(text, &end, 10);\n").empty());
}

TEST(Scanner, long_files_and_words_are_found) {
  EXPECT_EQ(scan_source("core/a.cpp", std::string(501, '\n')).size(), 1u);
  EXPECT_TRUE(scan_source("core/a.cpp", std::string(500, '\n')).empty());
  EXPECT_EQ(scan_words("core/a.cpp", "int x;  // " + std::string("TO") + "DO later\n").size(), 1u);
  EXPECT_TRUE(scan_words("core/a.cpp", "int x;\n").empty());
}

TEST(Scanner, a_room_compiled_with_qt_is_found) {
  const std::string entry =
      "{\n  \"command\": \"c++ -I/usr/include/x86_64-linux-gnu/qt6 -c a\",\n  \"file\": \"/r/engine/a.cpp\"\n}";
  EXPECT_EQ(scan_compile_commands("/r", entry).size(), 1u);
  const std::string fine =
      "{\n  \"command\": \"c++ -I/usr/include/x86_64-linux-gnu/qt6 -c a\",\n  \"file\": \"/r/views/a/a_view.cpp\"\n}";
  EXPECT_TRUE(scan_compile_commands("/r", fine).empty());
  const std::string several = "/r/build/dev/CMakeFiles/tenon_core.dir/Unity/unity_3_cxx.cxx";
  EXPECT_EQ(
      scan_compile_commands("/r", "\"command\": \"c++ -I/usr/include/qt6\"\n\"file\": \"" + several + "\"\n").size(),
      1u);
}

}  // namespace
}  // namespace tenon::house
