#include "tests/house/scan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

namespace tenon::house {
namespace {

constexpr std::array<std::string_view, 6> kRooms = {"core", "engine", "tracing", "projects", "views", "app"};
constexpr size_t kMaxLines = 500;

/// Note [The inner order]
/// Inside a room, too, a folder includes only from folders below it. What stands on one line is one floor: folders of
/// the same floor do not see each other, but for the declared knot, which is one thing in four folders: an op's
/// gradient is written in ops, recorded by autograd, which calls ops.
struct Floor {
  std::vector<std::string_view> folders;
  bool knot = false;
};
const std::vector<Floor>& floors() {
  static const std::vector<Floor> all = {
      {{"core/cuda"}},
      {{"core"}},
      {{"engine/spec"}},
      {{"engine/op", "engine/autograd", "engine/ops", "engine/kernels"}, true},
      {{"engine/cuda"}},
      {{"engine/formats"}},
      {{"engine/formats/torch"}},
      {{"engine/nn"}},
      {{"engine/graph", "engine/data", "engine/optim", "engine/model"}},
      {{"engine/formats/onnx", "engine/formats/python", "engine/train"}},
      {{"engine/formats/cpp", "engine/formats/torchscript"}},
      {{"engine/formats/aten"}},
      {{"engine/formats/jit"}},
      {{"engine/templates"}},
      {{"tracing/trace"}},
      {{"tracing/snapshot"}},
      {{"tracing/record", "tracing/analyses"}},
      {{"tracing/ops"}},
      {{"tracing/checks"}},
      {{"projects/search"}},
      {{"projects"}},
      {{"projects/checks", "projects/leaks", "projects/query", "projects/spikes"}},
      {{"views/shared"}},
      {{"views/graph"}},
      {{"views/canvas"}},
      {{"views/frame"}},
      {{"views/*"}},  // each view: whatever folder of the room is named nowhere else
      {{"views/code", "views/data", "views/details", "views/report"}},
      {{"views/shell"}},
      {{"app/window"}},
      {{"app/cli"}},
      {{"app"}},
  };
  return all;
}
std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

/// The floor of a file's folder, -1 where it is on none. A folder that no floor names may stand on its room's "/*".
int floor_of(std::string_view path) {
  const std::string_view folder = folder_of(path);
  const std::string rest = std::string(folder.substr(0, folder.find('/'))) + "/*";
  int any = -1;
  for (size_t i = 0; i < floors().size(); ++i)
    for (std::string_view f : floors()[i].folders) {
      if (f == folder) return static_cast<int>(i);
      if (f == rest && folder.find('/') == folder.rfind('/')) any = static_cast<int>(i);
    }
  return any;
}

int room_rank(std::string_view path) {
  std::string_view first = path.substr(0, path.find('/'));
  auto at = std::find(kRooms.begin(), kRooms.end(), first);
  return at == kRooms.end() || first.size() == path.size() ? -1 : static_cast<int>(at - kRooms.begin());
}

bool starts(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }
bool ends(std::string_view s, std::string_view with) {
  return s.size() >= with.size() && s.substr(s.size() - with.size()) == with;
}

bool may_use_qt(std::string_view path) {
  if (starts(path, "views/frame/") || starts(path, "views/shell/") || starts(path, "views/canvas/") ||
      starts(path, "app/window/"))
    return true;
  if (starts(path, "views/")) return ends(path, "_view.cpp") || ends(path, "_view.h");
  return starts(path, "tests/views/shell/");
}

bool may_use_cuda(std::string_view path) { return starts(path, "core/cuda/") || ends(path, ".cu"); }

bool is_qt(std::string_view header) {
  return header.size() > 1 && header[0] == 'Q' && (header[1] == 't' || (header[1] >= 'A' && header[1] <= 'Z'));
}

bool is_cuda(std::string_view header) {
  for (std::string_view with : {"cuda", "cublas", "cudnn", "nccl", "nvrtc", "cupti", "cub/", "thrust/"})
    if (starts(header, with)) return true;
  return false;
}

/// A library that only one part of the house may see: everyone else goes through that part.
struct Confined {
  std::string_view header, place;
};
constexpr Confined kConfined[] = {
    {"sqlite3.h", "projects/"},  {"onnx/", "engine/formats/"},       {"google/protobuf/", "engine/formats/"},
    {"dnnl", "engine/kernels/"}, {"oneapi/dnnl", "engine/kernels/"},
};

/// The header an include line names, with the quote or bracket that opens it; empty where the line is no include.
std::string_view included(std::string_view line, char& open) {
  size_t at = line.find_first_not_of(" \t");
  if (at == line.npos || line[at] != '#') return {};
  at = line.find_first_not_of(" \t", at + 1);
  if (at == line.npos || !starts(line.substr(at), "include")) return {};
  at = line.find_first_of("<\"", at);
  if (at == line.npos) return {};
  open = line[at];
  size_t end = line.find(open == '<' ? '>' : '"', at + 1);
  return end == line.npos ? std::string_view{} : line.substr(at + 1, end - at - 1);
}

}  // namespace

Violations scan_source(const std::string& path, const std::string& text) {
  Violations bad;
  const int rank = room_rank(path);
  std::istringstream lines(text);
  std::string line;
  size_t number = 0;
  auto report = [&](const std::string& what) { bad.push_back(path + ":" + std::to_string(number) + ": " + what); };
  while (std::getline(lines, line)) {
    ++number;
    char open = 0;
    // These listen to the locale, which a window takes from the desktop: 0.5 may end at its point.
    for (std::string_view reader : {"strtod(", "strtof(", "strtold(", "stod(", "stof(", "stold(", "atof("})
      if (rank >= 0 && line.find(reader) != line.npos)
        report("reads a number with " + std::string(reader) + "), which listens to the locale; number_of() does not");
    const std::string header{included(line, open)};
    if (header.empty()) continue;
    if (rank >= 0 && open == '"') {
      const int other = room_rank(header);
      if (other < 0 && !starts(header, "tests/") && header.find('/') == header.npos && !is_qt(header)) {
        // A generated file of the meta-object compiler has no folder; everything else is named from the root.
        if (!(ends(header, ".moc") && may_use_qt(path)))
          report("includes \"" + header + "\", which is not named from the root");
      }
      if (starts(header, "tests/")) report("includes " + header + ", which belongs to the tests");
      const int here = floor_of(path), there = floor_of(header);
      if (here >= 0 && other == rank && there > here)
        report("includes " + header + ", which lies above it in the inner order");
      else if (here >= 0 && there == here && folder_of(path) != folder_of(header) &&
               !floors()[static_cast<size_t>(here)].knot)
        report("includes " + header + ", a neighbour on its own floor");
      if (other > rank)
        report("includes " + header + ", which lies above " + std::string(kRooms[static_cast<size_t>(rank)]));
    }
    const bool imgui = starts(header, "imgui");
    if ((is_qt(header) || imgui) && !may_use_qt(path)) report("includes " + header + " outside the window's places");
    if (is_cuda(header) && room_rank(header) < 0 && !may_use_cuda(path))
      report("includes " + header + " outside core/cuda");
    for (const Confined& c : kConfined)
      if (rank >= 0 && open == '<' && starts(header, c.header) && !starts(path, c.place))
        report("includes " + header + ", which only " + std::string(c.place) + " may");
  }
  if (rank >= 0 && number > kMaxLines) report("has more than " + std::to_string(kMaxLines) + " lines");
  return bad;
}

bool has_floor(const std::string& path) { return room_rank(path) < 0 || floor_of(path) >= 0; }

std::string inner_order() {
  std::string text;
  for (const Floor& floor : floors()) {
    std::string line;
    for (std::string_view f : floor.folders) line += (line.empty() ? "" : floor.knot ? " <-> " : ", ") + std::string(f);
    text = line + "\n" + text;
  }
  return text;
}

Violations scan_local_names(const std::vector<std::pair<std::string, std::string>>& sources) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> files;  // by folder and name
  for (const auto& [path, text] : sources)
    if (ends(path, ".cpp") && (room_rank(path) >= 0 || starts(path, "tests/")))
      for (const std::string& name : local_names(text))
        files[{std::string(folder_of(path)), name}].insert(path.substr(path.rfind('/') + 1));
  Violations bad;
  for (const auto& [at, in] : files) {
    if (in.size() < 2) continue;
    std::string all;
    for (const std::string& file : in) all += (all.empty() ? "" : " and ") + file;
    bad.push_back(at.first + ": " + at.second + " is defined in " + all +
                  "; files of a folder may be compiled as one, where what is meant for one reaches the other");
  }
  return bad;
}

Violations scan_words(const std::string& path, const std::string& text) {
  // Put together from halves, so that this file does not hold them either.
  static const std::string words[] = {std::string("TO") + "DO",
                                      std::string("FIX") + "ME",
                                      std::string("deb.") + "debian.org",
                                      std::string("py") + "pi.org",
                                      std::string("pythonhosted") + ".org",
                                      std::string("registry.") + "npmjs",
                                      std::string("/wo") + "rk/"};
  Violations bad;
  for (const std::string& w : words)
    if (size_t at = text.find(w); at != text.npos)
      bad.push_back(path + ":" +
                    std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
                    ": holds " + w);
  return bad;
}

Violations scan_compile_commands(const std::string& root, const std::string& json) {
  Violations bad;
  std::istringstream lines(json);
  std::string line, command;
  while (std::getline(lines, line)) {
    if (line.find("\"command\"") != line.npos) command = line;
    const std::string key = "\"file\": \"" + root + "/";
    size_t at = line.find(key);
    if (at == line.npos) continue;
    at += key.size();
    std::string path = line.substr(at, line.find('"', at) - at);
    // Several files of a room at a time: "build/dev/CMakeFiles/tenon_core.dir/Unity/unity_3_cxx.cxx". (The views' own
    // room may not use Qt; the window has a target of its own.)
    if (path.find("CMakeFiles/tenon.dir/Unity/") != path.npos) path = "app/" + path;
    if (const size_t unity = path.find(".dir/Unity/"), room = path.find("CMakeFiles/tenon_");
        unity != path.npos && room != path.npos) {
      const std::string target = path.substr(room + 17, unity - room - 17);
      path = target == "window" ? "views/shell/" + path : target + "/" + path;
    }
    const int rank = room_rank(path);
    if (rank < 0 || may_use_qt(path)) continue;
    if (command.find("/qt6") != command.npos || command.find("QT_CORE_LIB") != command.npos)
      bad.push_back(path + ": compiled with Qt on its include path");
    if (command.find("/cuda/") != command.npos && !may_use_cuda(path))
      bad.push_back(path + ": compiled with CUDA on its include path");
  }
  return bad;
}

std::vector<std::string> project_files(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() &&
        (it.depth() == 0 && (name == "build" || name == "shared" || name[0] == '.') && name != ".ci")) {
      it.disable_recursion_pending();
      continue;
    }
    if (it->is_regular_file() && name != ".git") out.push_back(fs::relative(it->path(), root).generic_string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace tenon::house
