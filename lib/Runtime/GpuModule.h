//===- GpuModule.h - What graphs keep of a module ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph launches the kernels of calls that it captured, on the memory of
// their temporaries, and may outlive the module. So both are in an object that
// the module and graphs refer to, graphs through CUDA's user objects.
//
// When a graph, its clones and its instances are gone and no launch of them
// runs, a thread of the driver drops the reference. That thread must neither
// call the driver nor wait, so it leaves the reference in a list, which the
// user's calls collect.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_GPUMODULE_H
#define FOVEA_LIB_RUNTIME_GPUMODULE_H

#include "GpuArena.h"

#include <atomic>
#include <map>

namespace fovea::cuda {

class LoadedModule;

/// A graph's reference to a module.
struct GraphReference {
  std::shared_ptr<LoadedModule> module;
  uint64_t capture;
  /// The next one in the list.
  GraphReference *next = nullptr;
};

/// References of graphs that are gone.
class DroppedReferences {
public:
  ~DroppedReferences() { collect(/*mayWait=*/true); }

  /// May be called by a thread that must not wait.
  void add(GraphReference &reference);

  /// Deletes references, which frees modules that nobody else refers to. Those
  /// stay whose kernels calls may still be running, unless it `mayWait` for the
  /// device, which would end captures of the device's streams.
  void collect(bool mayWait);

private:
  std::atomic<GraphReference *> first = nullptr;
};

/// A module's code and the arenas of its calls.
class LoadedModule : public std::enable_shared_from_this<LoadedModule> {
public:
  explicit LoadedModule(Device &device) : arenas(device), device(device) {}
  ~LoadedModule();

  Device &getDevice() const { return device; }

  /// Notes a call that is not captured, whose end nobody tells.
  void noteCall() { called.store(true, std::memory_order_relaxed); }

  /// Makes the graph of this capture refer to the module. Does so once for all
  /// calls in the capture.
  llvm::Error addReference(uint64_t capture, CUgraph graph);

  /// Null if there are no kernels.
  CUmodule handle = nullptr;
  ArenaPool arenas;

private:
  friend class DroppedReferences;

  /// Frees the arenas of a capture whose graph is gone.
  void forget(const GraphReference &reference);

  Device &device;
  std::atomic<bool> called = false;
  std::mutex mutex;
  /// The references of graphs, by their captures.
  std::map<uint64_t, const GraphReference *> references;
};

} // namespace fovea::cuda

#endif // FOVEA_LIB_RUNTIME_GPUMODULE_H
