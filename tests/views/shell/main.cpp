// The window's tests in one program: they need a display, and share one application.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <QFile>
#include <QSurfaceFormat>
#include <QTemporaryDir>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/views/shell/victim.h"
#include "tests/views/shell/watchdog.h"
#include "views/frame/application.h"

namespace {
/// Root writes past permissions: a project that cannot be written takes a mount, which only this process may see.
void own_mounts() {
  if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0) mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
}
}  // namespace

int main(int argc, char** argv) {
  own_mounts();
  ::testing::InitGoogleTest(&argc, argv);
  if (qEnvironmentVariableIsEmpty("DISPLAY")) {
    std::fprintf(stderr, "These tests need a display: xvfb-run -a -s '-screen 0 1600x1000x24' test_window\n");
    return 1;
  }
  qputenv("QT_QPA_PLATFORM", "xcb");
  QTemporaryDir settings;  // nobody's own are read or written
  qputenv("XDG_CONFIG_HOME", settings.path().toUtf8());
  qputenv("XDG_CACHE_HOME", (settings.path() + "/caches").toUtf8());
  // Machines with a GPU and without have the same window: the GPU is the emulated one, where it is built.
  if (const QByteArray gpu = TENON_BINARY_DIR "/lib/tests/cuda_emulated.so"; QFile::exists(gpu))
    qputenv("TENON_CUDA_FILE", gpu);
  QSurfaceFormat format;
  format.setVersion(3, 3);
  format.setProfile(QSurfaceFormat::CoreProfile);
  format.setSwapInterval(0);
  QSurfaceFormat::setDefaultFormat(format);
  QCoreApplication::setAttribute(Qt::AA_ShareOpenGLContexts);
  QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
  tenon::views::Application app(argc, argv);
  QApplication::setCursorFlashTime(0);
  if (argc == 4 && std::string(argv[1]) == "--victim")
    return tenon::views::testing::victim(argv[2], std::atoi(argv[3]));
  if (argc == 2 && std::string_view(argv[1]).ends_with(".tenon")) return tenon::views::testing::second_window(argv[1]);
  tenon::views::testing::tell_what_ends_the_program();
  return RUN_ALL_TESTS();
}
