#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/tensor.h"

// The parts of a certificate that both who writes and who checks one need (Note [Certificates]).
namespace tenon::projects {

/// The bytes of a certificate; `key` empty: without a signature.
std::string sealed(const nlohmann::json& body, const std::string& key);

struct Unsealed {
  std::string body;    ///< its first line
  bool whole = false;  ///< the digest is that of the body
  bool is_signed = false;
  bool signature_fits = false;  ///< with this key
};
/// Throws Error naming the file where it is no certificate.
Unsealed unsealed(const std::string& bytes, const std::string& key, const std::string& name);

/// dtype, size and the bytes in row-major order as base64.
nlohmann::json packed_tensor(const Tensor& t);
/// Throws Error where it is none.
Tensor unpacked_tensor(const nlohmann::json& j);

/// How values are spread: shares of ten bins of as many values each, and where the bins meet; count, mean, deviation,
/// least and largest. Values that are not finite are counted apart.
nlohmann::json spread_of(const std::vector<double>& values);
/// How far other values lie from a spread: the population stability index over its bins; below 0.1 nothing moved, above
/// 0.25 the inputs are other ones.
double stability_index(const nlohmann::json& spread, const std::vector<double>& values);

}  // namespace tenon::projects
