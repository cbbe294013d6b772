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

/// A text holds a part; where it does not, the whole of it is shown.
#define EXPECT_SAYS(text, ...)                                                               \
  do {                                                                                       \
    const std::string whole_text = (text);                                                   \
    EXPECT_NE(whole_text.find(__VA_ARGS__), std::string::npos) << "it said: " << whole_text; \
  } while (false)
