// RUN: fovea-opt --pass-pipeline='builtin.module(gpu.module(convert-gpu-kernels-to-nvvm))' %s | FileCheck %s

// Descriptors become arguments, indices have 64 bits, square roots are
// instructions, and blocks have the size that they are launched with.
gpu.module @kernels {
  // CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr, %[[X:.*]]: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
  // CHECK-SAME: nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>
  // CHECK-NOT: nvvm.maxntid
  // CHECK: %[[T:.*]] = nvvm.read.ptx.sreg.tid.x
  // A bf16 becomes the upper half of an f32; other floats are converted.
  // CHECK: %[[ZERO:.*]] = llvm.mlir.zero : vector<2xbf16>
  // CHECK: %[[HALVES:.*]] = llvm.insertelement %{{.*}}, %[[ZERO]][%{{.*}} : i32] : vector<2xbf16>
  // CHECK: llvm.bitcast %[[HALVES]] : vector<2xbf16> to f32
  // CHECK: llvm.fpext %{{.*}} : f16 to f32
  // CHECK: llvm.intr.sqrt(%{{.*}}) : (f32) -> f32
  // CHECK: llvm.intr.exp2(%{{.*}}) {fastmathFlags = #llvm.fastmath<{{.*}}afn{{.*}}>} : (f32) -> f32
  // CHECK: llvm.fptrunc %{{.*}} : f32 to bf16
  // CHECK: llvm.return
  gpu.func @kernel(%x: memref<?xbf16>, %y: memref<?xf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xbf16>
    %w = arith.extf %v : bf16 to f32
    %h = memref.load %y[%t] : memref<?xf16>
    %g = arith.extf %h : f16 to f32
    %sum = arith.addf %w, %g : f32
    %s = math.sqrt %sum : f32
    %p = math.exp2 %s fastmath<afn> : f32
    %r = arith.truncf %p : f32 to bf16
    memref.store %r, %x[%t] : memref<?xbf16>
    gpu.return
  }

  // Denormal numbers become 0, but not where those of f16 would.
  // CHECK: llvm.func @single(
  // CHECK-SAME: denormal_fp_math_f32 = "preserve-sign,preserve-sign"
  // CHECK: llvm.fpext %{{.*}} : f16 to f32
  gpu.func @single(%x: memref<?xf16>, %y: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %h = memref.load %x[%t] : memref<?xf16>
    %w = arith.extf %h : f16 to f32
    %r = arith.mulf %w, %w : f32
    memref.store %r, %y[%t] : memref<?xf32>
    gpu.return
  }
  // CHECK: llvm.func @half(
  // CHECK-NOT: denormal_fp_math
  // CHECK: llvm.fmul %{{.*}}, %{{.*}} : f16
  // CHECK: llvm.return
  gpu.func @half(%x: memref<?xf16>) kernel {
    %t = gpu.thread_id x
    %h = memref.load %x[%t] : memref<?xf16>
    %r = arith.mulf %h, %h : f16
    memref.store %r, %x[%t] : memref<?xf16>
    gpu.return
  }

  // Memory that is apart: its pointers do not alias. A prefetch goes to the L2
  // cache.
  // CHECK: llvm.func @distinct(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64
  // CHECK-NOT: machine.distinct_memory
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}]
  // CHECK: %[[GLOBAL:.*]] = llvm.addrspacecast %[[PLACE]] : !llvm.ptr to !llvm.ptr<1>
  // CHECK: nvvm.prefetch level = L2, %[[GLOBAL]]
  gpu.func @distinct(%x: memref<?xbf16>) kernel attributes {machine.distinct_memory} {
    %t = gpu.thread_id x
    memref.prefetch %x[%t], read, locality<2>, data : memref<?xbf16>
    gpu.return
  }

  // Additions are atomic on the device, and order nothing.
  // CHECK: llvm.func @add(
  // CHECK: %[[SUM:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr to !llvm.ptr<1>
  // CHECK: llvm.atomicrmw fadd %[[SUM]], %{{.*}} syncscope("device") monotonic
  gpu.func @add(%x: memref<?xf64>, %v: f64, %y: memref<?xi64>, %w: i64) kernel {
    %t = gpu.thread_id x
    %old = memref.atomic_rmw addf %v, %x[%t] : (f64, memref<?xf64>) -> f64
    // CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i64
    %sum = memref.atomic_rmw addi %w, %y[%t] : (i64, memref<?xi64>) -> i64
    gpu.return
  }

  // Warps have instructions that combine integers of 32 bits of all their threads.
  // CHECK: llvm.func @reduce(
  // CHECK: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
  // CHECK: nvvm.redux.sync add %[[X:.*]], %[[ALL]] : i32 -> i32
  gpu.func @reduce(%x: i32, %y: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %sum = gpu.subgroup_reduce add %x uniform : (i32) -> i32
    // CHECK: nvvm.redux.sync min %[[X]], %{{.*}} : i32 -> i32
    %min = gpu.subgroup_reduce minsi %x uniform : (i32) -> i32
    // CHECK: nvvm.redux.sync max %[[X]], %{{.*}} : i32 -> i32
    %max = gpu.subgroup_reduce maxsi %x uniform : (i32) -> i32
    %0 = arith.addi %sum, %min : i32
    %1 = arith.addi %0, %max : i32
    memref.store %1, %y[%t] : memref<?xi32>
    gpu.return
  }
}
