// Included before every other header in builds with assertions. NDEBUG decides
// the layout of one class of LLVM and MLIR: llvm::Statistic, the base of every
// pass's statistics, whose members libMLIR reads. This file gives the class the
// layout that it has in the packaged libraries, which are built with NDEBUG.
#ifndef NDEBUG
#ifdef __cplusplus
#include "llvm/Config/abi-breaking.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Compiler.h"
#include <atomic>
#include <memory>
#include <vector>
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#include <cassert>
static_assert(!LLVM_ENABLE_STATS && !LLVM_ENABLE_ABI_BREAKING_CHECKS);
#endif
#endif
