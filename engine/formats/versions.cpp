#include "engine/formats/versions.h"

#include <google/protobuf/stubs/common.h>
#include <openssl/crypto.h>
#include <zlib.h>

#include "engine/kernels/dnnl.h"

namespace tenon::formats {
std::vector<std::pair<std::string, std::string>> library_versions() {
  return {{"oneDNN", std::string(kernels::dnnl_name()).substr(7)},
          {"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)},
          {"zlib", zlibVersion()},
          {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)}};
}
}  // namespace tenon::formats
