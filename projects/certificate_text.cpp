#include "projects/certificate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base64.h"
#include "core/error.h"
#include "core/sha256.h"
#include "core/tensor_bytes.h"

namespace tenon::projects {

using nlohmann::json;

namespace {
constexpr const char *kDigestWord = "sha256 ", *kSignatureWord = "hmac-sha256 ";

constexpr size_t kBins = 10;
}  // namespace

std::string sealed(const json& body, const std::string& key) {
  const std::string text = body.dump(-1, ' ', false, json::error_handler_t::replace);  // names of files and runs
  std::string bytes = text + "\n" + kDigestWord + hex(sha256(text.data(), text.size())) + "\n";
  if (!key.empty()) bytes += kSignatureWord + hex(hmac_sha256(key, text)) + "\n";
  return bytes;
}

Unsealed unsealed(const std::string& bytes, const std::string& key, const std::string& name) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    lines.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() < 2 || lines.size() > 3 || !lines[0].starts_with("{"))
    throw Error(
        name + " is no certificate",
        "File › Certify an exported model…, or tenon certify, writes one beside an exported ONNX or .pt2 file.");
  Unsealed u;
  u.body = lines[0];
  u.whole = lines[1] == kDigestWord + hex(sha256(u.body.data(), u.body.size())) && bytes.ends_with("\n");
  u.is_signed = lines.size() == 3;
  u.signature_fits = u.is_signed && !key.empty() && lines[2] == kSignatureWord + hex(hmac_sha256(key, u.body));
  return u;
}

json packed_tensor(const Tensor& t) {
  std::vector<char> copy;
  return {{"dtype", name(t.dtype())},
          {"size", std::vector<int64_t>(t.size().begin(), t.size().end())},
          {"base64", to_base64(logical_bytes(t, copy))}};
}

Tensor unpacked_tensor(const json& j) {
  DType dtype = DType::f32;
  const auto size = j.at("size").get<std::vector<int64_t>>();
  const auto bytes = from_base64(j.at("base64").get_ref<const std::string&>());
  if (!parse_dtype(j.at("dtype").get<std::string>().c_str(), dtype) || size.size() > kMaxDims || !bytes)
    throw Error("a canary is no tensor");
  int64_t count = 1;
  for (const int64_t n : size)
    if (n < 0 || __builtin_mul_overflow(count, n, &count)) throw Error("a canary has no such size");
  if (static_cast<uint64_t>(count) != bytes->size() / itemsize(dtype) || bytes->size() % itemsize(dtype) != 0)
    throw Error("a canary has more or fewer bytes than its size says");
  const Tensor t = empty(Shape(size), dtype);
  if (!bytes->empty()) std::memcpy(t.raw(), bytes->data(), bytes->size());
  return t;
}

json spread_of(const std::vector<double>& values) {
  std::vector<double> sorted;
  for (const double v : values)
    if (std::isfinite(v)) sorted.push_back(v);
  std::sort(sorted.begin(), sorted.end());
  json j = {{"count", sorted.size()}, {"not_finite", values.size() - sorted.size()}};
  if (sorted.empty()) return j;
  double sum = 0, squares = 0;
  for (const double v : sorted) sum += v;
  const double mean = sum / static_cast<double>(sorted.size());
  for (const double v : sorted) squares += (v - mean) * (v - mean);
  std::vector<double> edges;
  for (size_t b = 1; b < kBins; ++b) {
    const double edge = sorted[b * sorted.size() / kBins];
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);  // many equal values share a bin
  }
  std::vector<double> shares(edges.size() + 1, 0.0);
  for (const double v : sorted)
    shares[static_cast<size_t>(std::upper_bound(edges.begin(), edges.end(), v) - edges.begin())] +=
        1.0 / static_cast<double>(sorted.size());
  j.update({{"mean", mean},
            {"std", std::sqrt(squares / static_cast<double>(sorted.size()))},
            {"min", sorted.front()},
            {"max", sorted.back()},
            {"edges", edges},
            {"shares", shares}});
  return j;
}

double stability_index(const json& spread, const std::vector<double>& values) {
  const auto edges = spread.at("edges").get<std::vector<double>>();
  const auto expected = spread.at("shares").get<std::vector<double>>();
  if (expected.size() != edges.size() + 1) throw Error("the baseline has other bins than edges");
  std::vector<double> shares(expected.size(), 0.0);
  double count = 0;
  for (const double v : values) count += std::isfinite(v);
  if (count == 0) return INFINITY;
  for (const double v : values)
    if (std::isfinite(v))
      shares[static_cast<size_t>(std::upper_bound(edges.begin(), edges.end(), v) - edges.begin())] += 1 / count;
  constexpr double kLeast = 1e-4;  // of an empty bin, whose logarithm has no end
  double index = 0;
  for (size_t b = 0; b < shares.size(); ++b) {
    const double a = std::max(expected[b], kLeast), x = std::max(shares[b], kLeast);
    index += (x - a) * std::log(x / a);
  }
  return index;
}

}  // namespace tenon::projects
