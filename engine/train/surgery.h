#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/layout.h"
#include "engine/spec/model_spec.h"
#include "engine/train/checkpoint.h"

// Note [Surgery]
// A run's model is never changed: surgery is a branch (Note [A branch]) with another model. The branch begins with a
// state that is made of the parent's, tensor by tensor, and of the starting values that its own seed gives: what has a
// place in both models is kept with all that the optimizer and averages remember of it; a layer that makes more has
// copies of its units, whose readers share what the one had; of one that makes fewer those of largest 1-norm stay; a
// layer that is new begins so that it changes nothing, where there is a way. Copies share unevenly, by the seed, so
// that they learn different things. The state is a function of the two models, the parent's state and the seed: the
// branch is replayed like any other.
namespace tenon {

struct SurgeryRow {
  enum class Deed { kept, widened, narrowed, resized, identity, silent, begun, gone };
  std::string tensor;                  ///< "fc1.weight"
  std::optional<Shape> before, after;  ///< none: the model has none of this name
  Deed deed = Deed::kept;
  std::string how;  ///< in words, without its end; empty where it is kept
};
/// "kept", "widened", ...
const char* surgery_word(SurgeryRow::Deed deed);

struct Surgery {
  Checkpoint state;
  std::vector<SurgeryRow> rows;    ///< in the order of the new model, then what is gone
  std::vector<std::string> norms;  ///< batch norms that a batch must tell how to undo themselves
};

/// What a session of the model `after` begins with that goes on from the state of one of `before`. `fresh` is its own
/// state before its first step. Throws Error where the state is not of that model, or a model cannot be built.
Surgery operate(const ModelSpec& before, const ModelSpec& after, const Checkpoint& state, const Checkpoint& fresh,
                uint64_t seed);

}  // namespace tenon
