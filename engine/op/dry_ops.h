#pragma once

namespace tenon {

/// Gives every op that is registered now, those of plug-ins too, a kernel for the dry device (Note [The dry device]),
/// which does nothing. What an op asks for as workspace is taken there all the same.
void make_ops_dry();

}  // namespace tenon
