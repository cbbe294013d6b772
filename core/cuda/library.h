#pragma once
#include "core/cuda/abi.h"

// Note [Libraries of the GPU]
// What NVIDIA gives beside its driver (cuBLASLt, cuDNN, NCCL, NVML) is opened when it is first asked for, by its file's
// name: a module that was linked against them would not load where one is missing, and opening them takes up to a
// second. Everything works without them, by kernels of Tenon's own. The few functions and constants that are called are
// declared here and held against NVIDIA's headers where the module is compiled beside them.
// A library is looked for in the folders of the environment's TENON_CUDA_LIBRARIES (between colons) and nowhere else
// where that is set; otherwise where the loader looks, in the toolkit's folder, and in the packages of the Python
// environment that is active.
namespace tenon::cuda {

/// One library, by the files that it may be. A static; entered into the module's list.
class Library {
 public:
  /// `file`: its name with its version. `use` and `without`: what it does, and what is done where it is not there, in
  /// words for doctor. `package`: Python's that brings it, or null. `version`: writes what it says of itself, once it
  /// is open.
  Library(const char* name, const char* file, const char* use, const char* without, const char* package,
          void (*version)(const Library& library, char* text, size_t room));

  const char* name() const { return name_; }
  /// Opens it. Safe from any thread.
  bool there() const;
  /// Null where the library, or it, is missing.
  void* symbol(const char* function) const;
  template <class F>
  bool find(F*& function, const char* name_of_it) const {
    function = reinterpret_cast<F*>(symbol(name_of_it));
    return function != nullptr;
  }
  void facts(LibraryFacts* facts) const;
  const Library* next() const { return next_; }

 private:
  const char *name_, *file_, *use_, *without_, *package_;
  void (*version_)(const Library&, char*, size_t);
  const Library* next_;
};

/// Of the Module: the number `index` of the list, opened.
Outcome library_facts(int32_t index, LibraryFacts* facts);

}  // namespace tenon::cuda
