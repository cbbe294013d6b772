#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/simt/cuda_calls.h"

// Note [Streams of the emulated GPU]
// A stream is a queue of pieces of work that nobody runs until somebody has to wait: what was given to the device is as
// late as it can be, so that memory that is read, freed or written again too early shows in what is computed. Then the
// streams' independent pieces are run in an order that simt::set_order() changes: forward, only what is waited for;
// backward, everything else as far as it goes before it; shuffled, one piece of any stream at a time. A piece that
// throws leaves the device broken, as a GPU's context is after a fault: what is queued is dropped, and every call that
// has to do with the device says so from then on.
struct simt_stream;

namespace simt {

struct Passing;  ///< what a stream is to reach

/// A stream of its own, of a device.
simt_stream* make_stream(int device);
/// The stream that has no name (a null cudaStream_t), of the calling thread's device.
simt_stream* unnamed_stream(int device);

/// These queue, and answer with the device's fault where it is broken.
cudaError_t give(simt_stream* stream, std::function<void()> work);
cudaError_t record(simt_stream* stream, const std::shared_ptr<Passing>& mark);
cudaError_t hold_for(simt_stream* stream, const std::shared_ptr<Passing>& mark);

/// Between the two, what the stream is given is kept instead of queued. Waiting for it, and whatever else waits for the
/// device, is not permitted then and makes the end fail.
using Recorded = std::vector<std::function<void()>>;
cudaError_t begin_recording(simt_stream* stream);
cudaError_t end_recording(simt_stream* stream, Recorded* recorded);

/// These run what has to be run.
cudaError_t finish(simt_stream* stream);
cudaError_t finish_device(int device);
cudaError_t finish(const std::shared_ptr<Passing>& mark);

std::shared_ptr<Passing> make_passing(bool timed);
/// cudaErrorNotReady where it has not been reached, after which its stream does one piece more.
cudaError_t ask(const std::shared_ptr<Passing>& mark);
cudaError_t between(const std::shared_ptr<Passing>& begin, const std::shared_ptr<Passing>& end, float* ms);

/// cudaSuccess where the device is whole.
cudaError_t fault_of(int device);
/// The text of the last fault.
const char* fault_text();

}  // namespace simt
