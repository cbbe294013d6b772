#pragma once
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tenon::snapshot {

/// The keys that a snapshot's dictionaries have, in the order in which a Machine numbers them.
enum Key : uint32_t {
  kAction, kAddr, kDeviceFree, kSize, kStream, kTimeUs, kFrames, kCompileContext, kUserMetadata, kCategory, kFilename, kLine, kName,
  kDevice, kAddress, kTotalSize, kAllocatedSize, kActiveSize, kRequestedSize, kSegmentType, kSegmentPoolId, kIsExpandable, kBlocks, kState,
  kHistory, kRealSize, kStage, kSegments, kDeviceTraces, kAllocatorSettings, kExternalAnnotations, kInternalMetadata,
  kPoolId, kForwardFrames, kHostSegments, kHostTraces
};
inline constexpr std::string_view kKeyTexts[] = {
    "action", "addr", "device_free", "size", "stream", "time_us", "frames", "compile_context", "user_metadata", "category", "filename", "line", "name",
    "device", "address", "total_size", "allocated_size", "active_size", "requested_size", "segment_type", "segment_pool_id", "is_expandable", "blocks", "state",
    "history", "real_size", "stage", "segments", "device_traces", "allocator_settings", "external_annotations", "internal_metadata",
    "pool_id", "forward_frames", "host_segments", "host_traces"};
inline constexpr size_t kKeys = std::size(kKeyTexts);
static_assert(kKeys == kHostTraces + 1);

}  // namespace tenon::snapshot
