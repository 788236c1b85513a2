//===- PhaseTiming.h - Times of the phases of a compilation -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_PHASETIMING_H
#define FOVEA_SUPPORT_PHASETIMING_H

#include "mlir/Support/Timing.h"

namespace fovea {

/// Times a phase, up to the end of the scope that is returned, as a part of
/// `whole`, unless that is null.
inline mlir::TimingScope timePhase(mlir::TimingScope *whole,
                                   const char *phase) {
  return whole ? whole->nest(phase) : mlir::TimingScope();
}

} // namespace fovea

#endif // FOVEA_SUPPORT_PHASETIMING_H
