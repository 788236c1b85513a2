//===- Output.h - Writing of files that a user names ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A regular file is replaced when all of its new contents are there, so that
// nobody sees a part of them. Anything else that a name may mean stays what it
// is and is written into: devices, FIFOs, and the streams that the process has.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_OUTPUT_H
#define FOVEA_DRIVER_OUTPUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace fovea {

/// Writes to the file at `path`, where `-` is standard output. Links are
/// followed to the file that is written. A regular file keeps its mode; a file
/// that has several names, belongs to somebody else or is in a folder that
/// cannot be written to is overwritten in place. Errors name the path.
llvm::Error writeOutput(llvm::StringRef path,
                        llvm::function_ref<void(llvm::raw_ostream &)> write);

/// Returns an error if a path cannot be written to, as far as that can be known
/// before, or if two of the paths are one regular file.
llvm::Error checkOutputs(llvm::ArrayRef<std::string> paths);

} // namespace fovea

#endif // FOVEA_DRIVER_OUTPUT_H
