#pragma once
#include "app/cli/command.h"

namespace tenon::projects {
struct Results;
}

namespace tenon::app {

/// What --classes, --roc, --confusion and --worst of `tenon eval` ask for.
void tell_results(const Args& args, const projects::Results& results);

}  // namespace tenon::app
