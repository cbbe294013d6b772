#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/model_spec.h"
#include "projects/finish.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::projects {

// Note [What a GGUF file of ours says]
// GGUF names architectures, and a program that reads one computes what it has under that name. So a model is called
// "gpt2" where llama.cpp's gpt2 computes the same: norms with one epsilon, GELU by a hyperbolic tangent, biases
// everywhere but at the end, bytes as tokens. Everything else that is such a chain of blocks, byte-gpt with its ReLU
// too, is called "tenon" and keeps the names of its state_dict: llama.cpp then says that it does not know it, instead
// of writing nonsense.

/// A transformer that foretells tokens, found in a model's layers: an embedding, learned positions, blocks of causal
/// attention and a feed-forward network with norms in front, a norm and a projection.
struct GptLayers {
  struct Block {
    std::string norm1, attention, norm2, up, down;  ///< names of layers
  };
  std::string embedding, positions, norm, head;
  std::vector<Block> blocks;
  int64_t heads = 0;
  double epsilon = 0;
  std::string activation;     ///< "ReLU"
  bool same_as_gpt2 = false;  ///< but for its tokens
};
/// Throws Error that says where the model is another, and offers safetensors.
GptLayers find_gpt(const ModelSpec& model);
/// Names of the state_dict and those that llama.cpp has for them in a gpt2.
std::vector<std::pair<std::string, std::string>> gpt2_names(const GptLayers& layers);

/// A GGUF file, see export_run().
ExportReport export_gguf(TrainingSession& session, const std::string& doc, const std::string& path, bool verify);

}  // namespace tenon::projects
