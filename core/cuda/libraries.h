#pragma once
#include "core/cuda/abi.h"

namespace tenon::cuda {

/// Of the Module: what the loader finds. Opens the libraries, which takes up to a second the first time.
int32_t library_facts(int32_t index, LibraryFacts* facts);

/// A library that is opened when it is first asked for and stays. Null where it is missing.
enum class Library { cublas, cudnn, nccl };
void* open_library(Library which);
/// A function of it by name; null where it is missing.
void* library_function(Library which, const char* name);

}  // namespace tenon::cuda
