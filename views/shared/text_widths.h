#pragma once

namespace tenon::views {

/// While it lives, text_width() on its thread takes average advances, whatever a canvas has told: pictures for files,
/// which are the same bytes with and without a window.
class AverageTextWidths {
 public:
  AverageTextWidths();
  ~AverageTextWidths();
  AverageTextWidths(const AverageTextWidths&) = delete;

 private:
  bool before_;
};

}  // namespace tenon::views
