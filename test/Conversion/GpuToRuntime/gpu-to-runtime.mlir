// RUN: fovea-opt --convert-gpu-to-runtime --split-input-file %s | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @first() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
    llvm.func @helper() {
      llvm.return
    }
    llvm.func @early() attributes {gpu.kernel, nvvm.kernel, machine.starts_early} {
      llvm.return
    }
    llvm.func @second(%p: !llvm.ptr, %q: !llvm.ptr, %o: i64, %s: i64, %t: i64, %v: f32, %m: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>}) attributes {gpu.kernel, nvvm.kernel} {
      llvm.inline_asm "", "l,l,f,l" %q, %t, %v, %m : (!llvm.ptr, i64, f32, !llvm.ptr) -> ()
      llvm.return
    }
  }
  // CHECK-DAG: func.func private @fovea_gpu_launch(i64, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr)
  // CHECK-DAG: func.func private @fovea_gpu_allocate(i64) -> !llvm.ptr
  // CHECK-DAG: func.func private @fovea_gpu_result(i64, i64) -> !llvm.ptr
  // CHECK-DAG: func.func private @fovea_gpu_free(!llvm.ptr)

  // Kernels lose the arguments that they do not use.
  // CHECK: llvm.func @second(%[[Q:[a-z0-9]+]]: !llvm.ptr, %[[T:[a-z0-9]+]]: i64, %[[W:[a-z0-9]+]]: f32, %[[M:[a-z0-9]+]]: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>})
  // CHECK-NEXT: llvm.inline_asm "", "l,l,f,l" %[[Q]], %[[T]], %[[W]], %[[M]]

  // Arguments lie on the stack of the function, a pointer to each of them in an
  // array; an argument by value is the pointer itself.
  // CHECK-LABEL: func.func @launches(
  // CHECK-SAME:    %[[X:.*]]: memref<?xf32>, %[[V:.*]]: f32, %[[MAP:.*]]: !llvm.ptr, %[[G:.*]]: index)
  // CHECK-DAG:     %[[SLOTS:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, i64, f32, ptr)>
  // CHECK-DAG:     %[[ARGS:.*]] = llvm.alloca %{{.*}} x !llvm.array<4 x ptr>
  // CHECK:         scf.for
  // CHECK-NOT:       llvm.alloca
  // CHECK:           %[[SLOT2:.*]] = llvm.getelementptr %[[SLOTS]][0, 2]
  // CHECK:           llvm.store %[[V]], %[[SLOT2]]
  // CHECK:           %[[ARG2:.*]] = llvm.getelementptr %[[ARGS]][2]
  // CHECK:           llvm.store %[[SLOT2]], %[[ARG2]]
  // CHECK:           %[[ARG3:.*]] = llvm.getelementptr %[[ARGS]][3]
  // CHECK:           llvm.store %[[MAP]], %[[ARG3]]
  // CHECK:           %[[GRID:.*]] = arith.index_cast %[[G]] : index to i64
  // CHECK:           %[[SHARED:.*]] = arith.extui %{{.*}} : i32 to i64
  // CHECK:           call @fovea_gpu_launch(%c2_i64{{.*}}, %[[GRID]], {{.*}}, %[[SHARED]], %[[ARGS]])
  // CHECK:         call @fovea_gpu_launch(%c0_i64{{.*}}, {{.*}}, %c0_i64{{.*}}, %{{.*}})
  // CHECK:         call @fovea_gpu_launch_early(%c1_i64{{.*}})
  func.func @launches(%x: memref<?xf32>, %v: f32, %map: !llvm.ptr, %g: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %shared = arith.constant 4096 : i32
    scf.for %i = %c0 to %g step %c1 {
      gpu.launch_func @kernels::@second blocks in (%g, %c1, %c1) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %shared args(%x : memref<?xf32>, %v : f32, %map : !llvm.ptr)
    }
    gpu.launch_func @kernels::@first blocks in (%g, %c1, %c1) threads in (%c128, %c1, %c1)
    gpu.launch_func @kernels::@early blocks in (%g, %c1, %c1) threads in (%c128, %c1, %c1)
    return
  }

  // Results have buffers of their own, everything else is a temporary.
  // CHECK-LABEL: func.func @buffers(
  // CHECK:         %[[BYTES:.*]] = arith.muli %{{.*}}, %c2_i64
  // CHECK:         %[[T:.*]] = call @fovea_gpu_allocate(%[[BYTES]])
  // CHECK:         llvm.insertvalue %[[T]], %{{.*}}[0]
  // CHECK:         call @fovea_gpu_result(%c1_i64{{.*}}, %{{.*}})
  // CHECK:         call @fovea_gpu_result(%c0_i64{{.*}}, %{{.*}})
  // CHECK:         %[[F:.*]] = llvm.extractvalue %{{.*}}[0]
  // CHECK:         call @fovea_gpu_free(%[[F]])
  // CHECK:         return
  func.func @buffers(%n: index) -> (memref<index>, memref<?x3xf32>) {
    %t = memref.alloc(%n) : memref<4x?xf16>
    %b = memref.alloc(%n) : memref<?x3xf32>
    %a = memref.alloc() : memref<1xindex>
    %c = memref.collapse_shape %a [] : memref<1xindex> into memref<index>
    memref.dealloc %t : memref<4x?xf16>
    return %c, %b : memref<index>, memref<?x3xf32>
  }
}

// -----

// CHECK-LABEL: func.func @stack(
// CHECK-NEXT:    memref.alloca
func.func @stack() {
  %a = memref.alloca() : memref<4xindex>
  return
}

// -----

// An element that the host needs is read from where a memref has it.
// CHECK: func.func private @fovea_gpu_read(!llvm.ptr, !llvm.ptr, i64)
// CHECK-LABEL: func.func @reads(
// CHECK-SAME:    %[[X:.*]]: memref<i1, strided<[], offset: ?>>
// CHECK:         %[[COPY:.*]] = memref.alloca() : memref<i1>
// CHECK-DAG:     %[[TARGET:.*]] = builtin.unrealized_conversion_cast %[[COPY]]
// CHECK-DAG:     %[[HOST:.*]] = llvm.extractvalue %[[TARGET]][1]
// CHECK-DAG:     %[[SOURCE:.*]] = builtin.unrealized_conversion_cast %[[X]]
// CHECK-DAG:     %[[BASE:.*]] = llvm.extractvalue %[[SOURCE]][1]
// CHECK-DAG:     %[[OFFSET:.*]] = llvm.extractvalue %[[SOURCE]][2]
// CHECK-DAG:     %[[DEVICE:.*]] = llvm.getelementptr %[[BASE]][%[[OFFSET]]]
// CHECK:         call @fovea_gpu_read(%[[HOST]], %[[DEVICE]], %c1_i64{{.*}})
// CHECK-NEXT:    memref.load %[[COPY]][]
func.func @reads(%x: memref<i1, strided<[], offset: ?>>) -> i1 {
  %copy = memref.alloca() : memref<i1>
  gpu.memcpy %copy, %x : memref<i1>, memref<i1, strided<[], offset: ?>>
  %v = memref.load %copy[] : memref<i1>
  return %v : i1
}
