#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tenon::house {

/// One broken rule: "projects/project.cpp:12: includes views/x.h, which lies above projects".
using Violations = std::vector<std::string>;

/// Checks one source file. `path` is relative to the root of the tree ("engine/ops/matmul.cpp"), `text` what is in it.
Violations scan_source(const std::string& path, const std::string& text);

/// Whether the inner order of the rooms names the folder of this source.
bool has_floor(const std::string& path);

/// The inner order, the highest floor first: what stands on one line does not see each other, but for a knot ("a <->
/// b").
std::string inner_order();

/// The functions, "append()", and types, "Row", that a source keeps to itself: those of its anonymous namespaces, and
/// static functions.
std::vector<std::string> local_names(const std::string& text);

/// Sources, by path and text, of which two in one folder keep functions or types of one name to themselves.
Violations scan_local_names(const std::vector<std::pair<std::string, std::string>>& sources);

/// Headers, by path and text, of which two define a type of one name in one namespace.
Violations scan_shared_types(const std::vector<std::pair<std::string, std::string>>& headers);

/// Headers and sources, by path and text: what a source keeps to itself in an anonymous namespace while a header gives
/// everyone a type or function of that name in the same namespace. Whoever includes both means either, and the compiler
/// says so only where both happen to meet.
Violations scan_hidden_names(const std::vector<std::pair<std::string, std::string>>& headers,
                             const std::vector<std::pair<std::string, std::string>>& sources);

/// Words that no file of the tree may hold: marks of unfinished work, hosts of package registries.
Violations scan_words(const std::string& path, const std::string& text);

/// Compile commands (the text of compile_commands.json): outside the window's places no file is compiled with Qt on its
/// include path.
Violations scan_compile_commands(const std::string& root, const std::string& json);

/// Every file under `root` that belongs to the project, relative, sorted; build trees and dot folders left out.
std::vector<std::string> project_files(const std::string& root);

std::string read_text(const std::string& path);

}  // namespace tenon::house
