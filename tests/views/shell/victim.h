#pragma once

namespace tenon::views::testing {

/// What the tests of kills start as a process of its own: a window that opens a project, trains (or goes on with the
/// run that was interrupted), and is worked in without end. It writes "training" on standard output once a step is
/// done.
int victim(const char* file, int seed);

}  // namespace tenon::views::testing
