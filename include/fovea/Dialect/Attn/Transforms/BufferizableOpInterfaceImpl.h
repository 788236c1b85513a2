//===- BufferizableOpInterfaceImpl.h - attn bufferization -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define FOVEA_DIALECT_ATTN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fovea::attn {

/// Lets one-shot bufferization turn `attn.online_attention`, `attn.finalize`
/// and `attn.pack_query` on tensors into the same ops on memrefs: inputs are
/// only read, running values and outputs are updated in place.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
