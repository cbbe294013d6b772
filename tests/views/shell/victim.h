#pragma once

namespace tenon::views::testing {

/// What the tests of kills start as a process of its own: a window that opens a project, trains (or goes on with the
/// run that was interrupted), and is worked in without end. It writes "training" on standard output once a step is
/// done.
int victim(const char* file, int seed);

/// What "Another window on this project" starts where the tests are the program: a window that opens the project, waits
/// for a step of a run that somebody else trains, writes that into the run's note, and ends. Nothing where
/// TENON_SECOND_WINDOW is not set: the monkey finds that command too.
int second_window(const char* file);

}  // namespace tenon::views::testing
