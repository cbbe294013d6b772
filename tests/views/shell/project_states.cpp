#include "tests/views/shell/project_states.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <QProcess>
#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "projects/sweep.h"
#include "tests/projects/old_versions.h"

namespace tenon::views::testing {

namespace {
using projects::Project;
using projects::RunDriver;
using projects::TrainOptions;

std::shared_ptr<Project> spirals(const std::string& path,
                                 const std::vector<std::pair<std::string, std::string>>& settings = {}) {
  const Beginning b = begin(find_template("spirals"), "", path, settings);
  return Project::create(path, b.model, b.recipe.to_json());
}

void train(const std::shared_ptr<Project>& project, const TrainOptions& options) {
  RunDriver::start(project, options)->wait();
}

/// Trains in a process of its own that is killed once its metrics go beyond its last checkpoint.
void train_and_kill(const std::string& path) {
  // An epoch of 10,000 steps: metrics are written every quarter of a second, the next checkpoint would come much later.
  spirals(path, {{"epochs", "100000"}, {"data.samples", "1000000"}, {"checkpoint_every", "0"}});
  QProcess program;
  program.start(QString(TENON_BINARY_DIR) + "/bin/tenon", {"train", QString::fromStdString(path)});
  auto far_enough = [&] {
    auto p = Project::open(path);
    const auto runs = p->runs();
    if (runs.empty()) return false;
    const auto kept = p->checkpoints(runs[0].id);
    return !kept.empty() && runs[0].steps > kept.back().step;
  };
  while (!far_enough()) {
    if (program.waitForFinished(50))
      throw std::runtime_error("the run to be killed ended: " + program.readAllStandardError().toStdString());
  }
  program.kill();
  program.waitForFinished();
}

/// A sweep with a trial of every kind: finished, pruned, failed without and with a run, and chosen but not begun.
void sweep(const std::shared_ptr<Project>& project) {
  const auto id =
      projects::begin_sweep(
          *project, "",
          {{"data.batch_size", "20,9000000"}, {"optimizer.lr", "0.05,1e-7,1e30"}, {"optimizer.type", "sgd"}},
          {{"method", "grid"}, {"prune", int64_t{100}}, {"prune_factor", int64_t{2}}},
          {{"epochs", "2"}, {"eval_every", "1"}})
          .id;
  for (int i = 0; i < 4; ++i)
    if (const auto driver = projects::start_trial(project, *projects::next_trial(*project, id))) driver->wait();
  projects::next_trial(*project, id);
}

void seventy_layers(const std::string& path) {
  const Beginning b = begin(find_template("spirals"), "", path);
  ModelSpec m;
  m.name = "deep";
  for (const LayerSpec& l : b.model.layers)
    if (l.type == "Input") m.layers.push_back(l);
  auto add = [&](const std::string& name, const std::string& type, std::vector<Attr> attrs) {
    m.wires.push_back({m.layers.back().name, 0, name, 0});
    m.layers.push_back({name, type, std::move(attrs)});
  };
  for (int i = 0; i < 33; ++i) {
    add("blocks." + std::to_string(i) + ".fc", "Linear", {{"out_features", int64_t{8}}, {"bias", true}});
    add("blocks." + std::to_string(i) + ".act", "Tanh", {});
  }
  add("head", "Linear", {{"out_features", int64_t{2}}, {"bias", true}});
  add("output", "Output", {});
  auto project = Project::create(path, m, b.recipe.to_json());
  train(project, {.max_steps = 3});
}

/// Trained on a table that has since been deleted.
void no_data(const std::string& path) {
  const std::string table = path + ".csv";
  {
    std::ofstream out(table);
    out << "a,b,label\n";
    for (int i = 0; i < 200; ++i) out << i % 7 << ',' << i % 3 << ',' << (i % 7 > 3 ? "yes" : "no") << '\n';
  }
  const Beginning b = begin(find_template("tabular"), table, path);
  train(Project::create(path, b.model, b.recipe.to_json()), {.max_steps = 3});
  std::filesystem::remove(table);
}

/// A folder in which nobody can write. Root can write past permissions, but not past a mount.
std::string make_read_only(const std::string& folder) {
  if (geteuid() != 0) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_write, std::filesystem::perm_options::remove);
    return {};
  }
  const char* f = folder.c_str();
  if (mount(f, f, nullptr, MS_BIND, nullptr) == 0 &&
      mount(nullptr, f, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0)
    return {};
  return "this machine lets nobody mount a folder read-only, and root writes past permissions";
}

/// How each state's project is made at a path; gives why it could not be, or nothing.
struct Maker {
  const char* name;
  bool has_run, pauses;
  std::string (*make)(const std::string& path);
};

const Maker kMakers[] = {
    {"no project", false, false, nullptr},
    {"empty", false, false,
     [](const std::string& path) {
       Project::create(path, ModelSpec{"nothing", {}, {}}, find_template("spirals").recipe.to_json());
       return std::string();
     }},
    {"never trained", false, false, [](const std::string& path) { return spirals(path), std::string(); }},
    {"one step", true, false,
     [](const std::string& path) { return train(spirals(path), {.max_steps = 1}), std::string(); }},
    {"trained", true, false,
     [](const std::string& path) {
       auto p = spirals(path);
       train(p, {.max_steps = 40});
       train(p, {.set = {{"seed", "7"}}, .max_steps = 20});
       p->add_artifact(1, 7, "note", "n.txt", "looked at");
       p->add_artifact(1, 7, "trace", "t.json", "{}");
       return std::string();
     }},
    {"paused", true, true, [](const std::string& path) { return spirals(path), std::string(); }},
    {"killed", true, false, [](const std::string& path) { return train_and_kill(path), std::string(); }},
    {"failed with NaN", true, false,
     [](const std::string& path) {
       train(spirals(path), {.set = {{"optimizer.type", "sgd"}, {"optimizer.lr", "1e30"}}, .max_steps = 40});
       return std::string();
     }},
    {"swept", true, false, [](const std::string& path) { return sweep(spirals(path)), std::string(); }},
    {"from version 1", true, false,
     [](const std::string& path) { return projects::testing_files::make_version_1(path), std::string(); }},
    {"seventy layers", true, false, [](const std::string& path) { return seventy_layers(path), std::string(); }},
    {"no data on disk", true, false, [](const std::string& path) { return no_data(path), std::string(); }},
    {"read-only", true, false,
     [](const std::string& path) {
       train(spirals(path), {.max_steps = 10});
       return make_read_only(std::filesystem::path(path).parent_path().string());
     }},
};
}  // namespace

std::vector<std::string> project_state_names() {
  std::vector<std::string> names;
  for (const Maker& m : kMakers) names.push_back(m.name);
  return names;
}

const ProjectState& project_state(const std::string& name) {
  static QTemporaryDir dir;  // goes with the process
  static std::map<std::string, ProjectState> made;
  if (auto at = made.find(name); at != made.end()) return at->second;
  for (const Maker& m : kMakers) {
    if (name != m.name) continue;
    ProjectState state{name, {}, m.pauses, m.has_run, {}};
    if (m.make) {
      const std::string folder = dir.filePath(m.name).toStdString();
      std::filesystem::create_directory(folder);
      state.file = folder + "/p.tenon";
      state.skipped = m.make(state.file);
    }
    return made.emplace(name, std::move(state)).first->second;
  }
  throw std::runtime_error("there is no state " + name);
}

std::string copy_of(const ProjectState& state, const std::string& folder) {
  if (state.file.empty() || state.name == "read-only") return state.file;
  const std::filesystem::path from(state.file), to = std::filesystem::path(folder) / from.filename();
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  for (const char* tail : {"-wal", "-shm"}) {
    std::filesystem::remove(to.string() + tail);
    if (std::filesystem::exists(state.file + tail)) std::filesystem::copy_file(state.file + tail, to.string() + tail);
  }
  return to.string();
}

std::string small_trace(const std::string& folder) {
  const std::string path = folder + "/small.json";
  std::ofstream out(path);
  out << R"({"schemaVersion":1,"traceEvents":[)";
  auto slice = [&](const char* category, const std::string& name, int thread, double start, double length,
                   const std::string& args = {}) {
    out << R"({"ph":"X","pid":1,"cat":")" << category << R"(","name":")" << name << R"(","tid":)" << thread
        << R"(,"ts":)" << start << R"(,"dur":)" << length << R"(,"args":{)" << args << "}},\n";
  };
  slice("user_annotation", "training", 1, 1000, 9000);
  for (int i = 0; i < 40; ++i) {
    const double at = 1100 + 200 * i;
    const std::string id = "\"correlation\":" + std::to_string(i + 1);
    slice("cpu_op", "aten::op" + std::to_string(i % 5), 1, at, 150, R"("External id":)" + std::to_string(i));
    slice("cuda_runtime", "cudaLaunchKernel", 1, at + 20, 30, id);
    slice("kernel", "kernel" + std::to_string(i % 3), 7, at + 90, 160, id);
    slice("cpu_op", "loader", 2, at, 100);
  }
  out << R"({"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"loads data"}}]})";
  return path;
}

}  // namespace tenon::views::testing
