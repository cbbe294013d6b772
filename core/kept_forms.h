#pragma once
#include <functional>
#include <memory>

#include "core/tensor.h"

// Note [Kept forms]
// Weights that are used again and again are put into the order that a product wants once, not at every call. What is
// made of the values of a storage hangs on that storage: it goes as soon as the values are written (Storage::changed(),
// Storage::wrote()), and with the storage. Its memory is taken like any other, so whoever counts memory sees it. Who
// still computes with a form holds it.
namespace tenon {

/// What kernels made of the values of a storage and keep for their next call.
class KeptForms {
 public:
  virtual ~KeptForms() = default;
};

/// Those of the storage: made where there are none. Several threads may ask.
std::shared_ptr<KeptForms> kept_forms(Storage& s, const std::function<std::shared_ptr<KeptForms>()>& make);
void drop_kept_forms(Storage& s);

}  // namespace tenon
