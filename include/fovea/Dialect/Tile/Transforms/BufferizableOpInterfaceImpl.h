//===- BufferizableOpInterfaceImpl.h - tile bufferization -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define FOVEA_DIALECT_TILE_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fovea::tile {

/// Lets one-shot bufferization turn `tile.launch` on tensors into the same op
/// on memrefs: `ins` are read, and do not share memory with `outs`, which are
/// updated in place. The region does not change, as it already works on
/// memrefs. A buffer whose innermost stride is not known to be 1 is copied.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
