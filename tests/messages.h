#pragma once
#include <functional>
#include <string>

#include "core/error.h"

namespace tenon::testing_words {

/// What a call says that throws an Error, "no error" where it throws none.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace tenon::testing_words
