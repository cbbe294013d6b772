#pragma once
#include <functional>
#include <string>

#include "core/error.h"

namespace tenon::testing_words {

/// The message of the Error that a call throws, "no error" where it throws none.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}
/// The same with the hint, as a person reads it.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace tenon::testing_words
