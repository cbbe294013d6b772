#pragma once
#include <string>

#include "core/error.h"
#include "core/memory_image.h"

namespace tenon::testing_words {

/// Why memory cannot be looked at here, whatever the program does; empty: it can.
inline std::string why_no_image() {
  if (!MemoryImage::available()) return "under a sanitizer the heap is another one, which is not read";
  try {
    const MemoryImage image;
  } catch (const Error& e) {
    if (e.message().starts_with("the system does not let")) return e.message();
  }
  return {};
}

}  // namespace tenon::testing_words
