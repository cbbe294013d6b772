#include "views/canvas/scene_renderer.h"

#include <imgui.h>
#include <imgui_impl_opengl3.h>

#include <QCoreApplication>
#include <QOpenGLContext>
#include <QOpenGLFunctions>

#include "views/canvas/memory_gl.h"

namespace tenon::views {

namespace {
/// ImGui's current context is one global: every piece of work sets its own and puts the other back.
class UseContext {
 public:
  explicit UseContext(ImGuiContext* c) : saved_(ImGui::GetCurrentContext()) { ImGui::SetCurrentContext(c); }
  ~UseContext() { ImGui::SetCurrentContext(saved_); }
  UseContext(const UseContext&) = delete;

 private:
  ImGuiContext* saved_;
};

/// A renderer, and the context in memory that it draws in.
struct InMemory {
  ~InMemory() {
    if (gl.make_current()) renderer.shut_down();
  }
  MemoryGl gl;
  SceneRenderer renderer;
};
/// Freed with the application and never after it: where the program ends without, there is no OpenGL to free it in.
std::shared_ptr<InMemory>& kept() {
  static auto* const it = new std::shared_ptr<InMemory>;
  return *it;
}
}  // namespace

SceneRenderer::SceneRenderer() {
  ImGuiContext* before = ImGui::GetCurrentContext();  // the first context made would stay the current one
  imgui_ = ImGui::CreateContext();
  ImGui::SetCurrentContext(imgui_);
  ImGui::GetIO().IniFilename = nullptr;
  ImGui::GetIO().LogFilename = nullptr;
  ImGui::SetCurrentContext(before);
}

SceneRenderer::~SceneRenderer() {
  // Never leave a context current that is gone: ImGui counts its allocations in the current one.
  ImGuiContext* other = ImGui::GetCurrentContext();
  ImGui::DestroyContext(imgui_);
  ImGui::SetCurrentContext(other == imgui_ ? nullptr : other);
}

void SceneRenderer::start_up() {
  if (started_) return;
  UseContext use(imgui_);
  ImGui_ImplOpenGL3_Init("#version 330");
  painter_.forget_atlas();
  started_ = true;
}

void SceneRenderer::shut_down() {
  if (!started_) return;
  UseContext use(imgui_);
  ImGui_ImplOpenGL3_Shutdown();
  started_ = false;
}

bool SceneRenderer::draw(const Scene& scene, QSizeF size, double dpr, ThemeName theme, bool ring) {
  UseContext use(imgui_);
  ImGuiIO& io = ImGui::GetIO();
  if (const auto glyphs = Glyphs::at_scale(dpr); painter_.needs_atlas(glyphs)) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    painter_.build_atlas(glyphs);
    ImGui_ImplOpenGL3_CreateFontsTexture();
  }
  const float width = static_cast<float>(size.width()), height = static_cast<float>(size.height());
  io.DisplaySize = {width, height};
  io.DisplayFramebufferScale = {static_cast<float>(dpr), static_cast<float>(dpr)};
  io.DeltaTime = 1.f / 60;
  const Rgb back = color(Ink::panel, theme);
  QOpenGLFunctions* gl = QOpenGLContext::currentContext()->functions();
  gl->glClearColor(back.r / 255.f, back.g / 255.f, back.b / 255.f, 1);
  gl->glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_NewFrame();
  ImGui::NewFrame();
  ImDrawList* list = ImGui::GetBackgroundDrawList();
  painter_.paint(list, scene, theme);
  if (ring) {
    const Rgb a = color(Ink::accent, theme);
    list->AddRect({0.5f, 0.5f}, {width - 0.5f, height - 0.5f}, IM_COL32(a.r, a.g, a.b, 255), 0, 0, 1);
  }
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  return !painter_.needs_atlas(Glyphs::at_scale(dpr));
}

std::shared_ptr<SceneRenderer> SceneRenderer::in_memory() {
  std::shared_ptr<InMemory>& it = kept();
  if (!it) {
    it = std::make_shared<InMemory>();
    qAddPostRoutine([] { kept().reset(); });  // while there still is a platform to free it in
  }
  return {it, &it->renderer};
}

}  // namespace tenon::views
