#pragma once
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/version.h"

// Note [Plug-ins]
// A plug-in is a shared library, built against an installed Tenon, that adds definitions to the registries: ops,
// layers, losses, data sets, analyses. They are then where Tenon's own are. It says once, in one file:
//   TENON_PLUGIN("noise") {
//     register_layer(...);
//   }
// The body runs when the plug-in is loaded. Definitions that are static objects (Register<Op>, OP_UNARY) add themselves
// just before it, as within Tenon.
// Before any code of a plug-in runs, its version is read from a section of the file: the layout of classes is no
// contract between versions, so a plug-in of another one is refused. What a refused plug-in had added is taken back,
// but its library stays in memory: the process may still hold pointers into it, and C++ libraries with unique symbols
// cannot be unloaded anyway. One that ends the process while it is loaded is found by a process that tries it first:
// see Note [Plug-ins are tried first]. So whatever a plug-in does while it is loaded, it does twice.
// A plug-in is linked with nothing of Tenon: what it calls is in the process that loads it, be that Tenon's own program
// or one that links libtenon. So there is one copy of every registry.
namespace tenon {

/// What a plug-in says of itself, readable without running it.
struct PluginRecord {
  char magic[16];
  char version[32];  ///< TENON_VERSION of the Tenon it was built for
  char name[64];
};

struct Plugin {
  std::string name, file, version;
  std::vector<RegistryScope::Added> brought;
};

/// Loads a plug-in; one that is loaded already is left as it is. Throws Error naming the file and why, after taking
/// back what it had added: no plug-in of Tenon, of another version, symbols are missing, it threw, a name was there
/// already.
Plugin load_plugin(const std::string& file);
/// Those that were loaded, in the order of loading.
std::vector<Plugin> plugins();

}  // namespace tenon

#define TENON_PLUGIN(NAME)                                                                         \
  extern "C" [[gnu::used, gnu::visibility("default"),                                              \
               gnu::section(".tenon_plugin")]] const ::tenon::PluginRecord tenon_plugin_record = { \
      "tenon plug-in 1", TENON_VERSION, NAME};                                                     \
  extern "C" [[gnu::visibility("default")]] void tenon_plugin_load()
