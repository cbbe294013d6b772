#pragma once
#include "core/cuda/abi.h"

namespace tenon::cuda {

// The functions of the Module that record what a stream is given, and do it as one.
Outcome graph_begin(int32_t device, void* stream, Why* why);
Outcome graph_end(int32_t device, void* stream, void** graph, Why* why);
Outcome graph_replay(int32_t device, void* graph, void* stream, Why* why);
void graph_drop(int32_t device, void* graph, void* stream);

}  // namespace tenon::cuda
