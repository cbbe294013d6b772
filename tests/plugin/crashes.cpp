// A plug-in that fails before its body is reached: a static object throws, which nothing in the process can catch.
#include "core/error.h"
#include "core/plugin.h"

namespace {
struct Static {
  Static() { throw tenon::Error("a table of its own is missing"); }
} object;
}  // namespace

TENON_PLUGIN("crashes") {}
