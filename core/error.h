#pragma once
#include <stdexcept>
#include <string>

namespace tenon {

/// What went wrong, to what, where, and what to do about it. The engine throws nothing else; it never prints and never
/// exits.
class Error : public std::runtime_error {
 public:
  enum class Kind : unsigned char {
    failure,   ///< the work failed (the command line exits with 1)
    usage,     ///< the words were wrong: an unknown key, a bad value (exits with 2)
    no_space,  ///< a disk is full: what was saved is still there, and the same call succeeds once there is room (1 too)
  };

  /// `message` names the thing and the shapes, dtypes or file position involved; `hint` says what to do.
  explicit Error(std::string message, std::string hint = {}, Kind kind = Kind::failure);
  static Error usage(std::string message, std::string hint = {}) {
    return Error(std::move(message), std::move(hint), Kind::usage);
  }

  /// The same error with the place it happened in front ("in features.3: ...").
  Error in(const std::string& where) const;

  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  Kind kind() const { return kind_; }

 private:
  std::string message_, hint_;
  Kind kind_;
};

/// The exception being handled, as an Error: its own words, or those of what is none ("memory is out"). Called in a
/// `catch` block.
Error caught_error();

/// "(did you mean a, b?)" for the candidates nearest to `word` by edit distance; empty when none is near.
std::string near_names(const std::string& word, const std::string* first, size_t count);

}  // namespace tenon
