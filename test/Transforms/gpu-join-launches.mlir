// RUN: fovea-opt --gpu-join-launches --canonicalize --cse --split-input-file %s | FileCheck %s

// Two independent launches, each where there is work, are one: the blocks of
// the earlier one come first, and what the later one needs of its own number,
// grid and block is as it was.
// CHECK-LABEL: func @independent(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>, %[[Y:[a-z0-9]+]]: memref<?xf32>, %[[N:[a-z0-9]+]]: index, %[[M:[a-z0-9]+]]: index, %[[ANYX:[a-z0-9]+]]: i1, %[[ANYY:[a-z0-9]+]]: i1)
// CHECK-DAG:     %[[FEW:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[MANY:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[GX:.*]] = arith.select %[[ANYX]], %[[N]], %c0
// CHECK-DAG:     %[[GY:.*]] = arith.select %[[ANYY]], %[[M]], %c0
// CHECK:         %[[BLOCKS:.*]] = arith.addi %[[GX]], %[[GY]]
// CHECK:         %[[ANY:.*]] = arith.cmpi ne, %[[BLOCKS]], %c0
// CHECK:         scf.if %[[ANY]] {
// CHECK-NEXT:      gpu.launch blocks(%[[B:[a-z0-9]+]], {{.*}} in (%{{[a-z0-9]+}} = %[[BLOCKS]], {{.*}} threads(%[[T:[a-z0-9]+]], {{.*}} in (%{{[a-z0-9]+}} = %[[MANY]],
// CHECK:             %[[FIRST:.*]] = arith.cmpi ult, %[[B]], %[[GX]]
// CHECK:             scf.if %[[FIRST]] {
// CHECK:               %[[IN:.*]] = arith.cmpi ult, %[[T]], %[[FEW]]
// CHECK:               scf.if %[[IN]] {
// CHECK:                 memref.store %{{.*}}, %[[X]][%[[B]]]
// CHECK:             } else {
// CHECK:               %[[OWN:.*]] = arith.subi %[[B]], %[[GX]]
// CHECK:               %[[AT:.*]] = arith.muli %[[OWN]], %[[MANY]]
// CHECK:               %[[ITEM:.*]] = arith.addi %[[AT]], %[[T]]
// CHECK:               %[[STEP:.*]] = arith.muli %[[GY]], %[[MANY]]
// CHECK:               memref.store %{{.*}}, %[[Y]]
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @independent(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index, %anyx: i1, %anyy: i1) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %z = arith.constant 0.0 : f32
  scf.if %anyx {
    gpu.launch blocks(%a, %b, %c) in (%ga = %n, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
      memref.store %z, %x[%a] : memref<?xf32>
      gpu.terminator
    }
  }
  scf.if %anyy {
    gpu.launch blocks(%a, %b, %c) in (%ga = %m, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c256, %ge = %c1, %gf = %c1) {
      %at = arith.muli %a, %gd : index
      %item = arith.addi %at, %d : index
      %step = arith.muli %ga, %gd : index
      %place = arith.addi %item, %step : index
      memref.store %z, %y[%place] : memref<?xf32>
      gpu.terminator
    }
  }
  return
}

// -----

// What one writes the other reads: they stay apart. So do those between which
// memory is freed that the earlier one writes.
// CHECK-LABEL: func @dependent(
// CHECK-COUNT-3: gpu.launch
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @dependent(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %z = arith.constant 0.0 : f32
  %w = memref.alloc() : memref<8xf32>
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c8, %ge = %c1, %gf = %c1) {
    memref.store %z, %x[%d] : memref<8xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c8, %ge = %c1, %gf = %c1) {
    %v = memref.load %x[%d] : memref<8xf32>
    %u = memref.load %w[%d] : memref<8xf32>
    %s = arith.addf %u, %v : f32
    memref.store %s, %w[%d] : memref<8xf32>
    gpu.terminator
  }
  memref.dealloc %w : memref<8xf32>
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c8, %ge = %c1, %gf = %c1) {
    memref.store %z, %y[%d] : memref<8xf32>
    gpu.terminator
  }
  return
}

// -----

// All threads of a block meet at a barrier: it may join one with fewer threads,
// and keeps its shared memory, but not one with more.
// CHECK-LABEL: func @barriers(
// CHECK:         gpu.launch {{.*}} in (%{{[a-z0-9]+}} = %c64, {{.*}} workgroup(%[[SHARED:.*]] : memref<4xf32, #gpu.address_space<workgroup>>)
// CHECK:           memref.store %{{.*}}, %[[SHARED]]
// CHECK-NEXT:      gpu.barrier
// CHECK:         gpu.launch {{.*}} in (%{{[a-z0-9]+}} = %c128,
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @barriers(%x: memref<?xf32>, %y: memref<?xf32>, %w: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %z = arith.constant 0.0 : f32
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    memref.store %z, %x[%d] : memref<?xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c64, %ge = %c1, %gf = %c1)
      workgroup(%s: memref<4xf32, #gpu.address_space<workgroup>>) {
    memref.store %z, %s[%c0] : memref<4xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %v = memref.load %s[%c0] : memref<4xf32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%d] : memref<?xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c128, %ge = %c1, %gf = %c1) {
    memref.store %z, %w[%d] : memref<?xf32>
    gpu.terminator
  }
  return
}

// -----

// What the threads of a warp combine is no access to memory.
// CHECK-LABEL: func @warps(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xi32>, %[[Y:[a-z0-9]+]]: memref<?xi32>)
// CHECK:         gpu.launch
// CHECK:           %[[SUM:.*]] = gpu.subgroup_reduce add %{{.*}} uniform : (i32) -> i32
// CHECK:           memref.store %[[SUM]], %[[X]]
// CHECK-NOT:     gpu.launch
// CHECK:           %[[MAX:.*]] = gpu.subgroup_reduce maxsi %{{.*}} uniform : (i32) -> i32
// CHECK:           memref.store %[[MAX]], %[[Y]]
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @warps(%x: memref<?xi32>, %y: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c64, %ge = %c1, %gf = %c1) {
    %v = memref.load %x[%d] : memref<?xi32>
    %sum = gpu.subgroup_reduce add %v uniform : (i32) -> i32
    memref.store %sum, %x[%d] : memref<?xi32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c64, %ge = %c1, %gf = %c1) {
    %v = memref.load %y[%d] : memref<?xi32>
    %max = gpu.subgroup_reduce maxsi %v uniform : (i32) -> i32
    memref.store %max, %y[%d] : memref<?xi32>
    gpu.terminator
  }
  return
}

// -----

// Launches of more shared memory, of a program's tiles, and with other attributes
// of their kernel stay as they are; one in front of them goes past them.
// CHECK-LABEL: func @apart(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>, %[[Y:[a-z0-9]+]]: memref<?xf32>, %[[W:[a-z0-9]+]]: memref<?xf32>, %[[U:[a-z0-9]+]]: memref<?xf32>,
// CHECK:         gpu.launch {{.*}} workgroup(
// CHECK-NOT:     scf.if
// CHECK:         gpu.launch
// CHECK-NEXT:      tile.fill
// CHECK-NOT:     scf.if
// CHECK:         gpu.launch
// CHECK-NEXT:      memref.store %{{.*}}, %[[W]]
// CHECK:         } {nvvm.maxnreg
// CHECK:         gpu.launch
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %{{.*}}, %[[X]]
// CHECK:             memref.store %{{.*}}, %[[U]]
func.func @apart(%x: memref<?xf32>, %y: memref<?xf32>, %w: memref<?xf32>, %u: memref<?xf32>, %t: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %z = arith.constant 0.0 : f32
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    memref.store %z, %x[%d] : memref<?xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1)
      workgroup(%s: memref<2048xf32, #gpu.address_space<workgroup>>) {
    memref.store %z, %s[%c0] : memref<2048xf32, #gpu.address_space<workgroup>>
    memref.store %z, %y[%d] : memref<?xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    %f0 = tile.fill %z : !tile.fragment<16x16xf32>
    tile.store %f0, %t[%c0, %c0] dims [0, 1] : !tile.fragment<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    memref.store %z, %w[%d] : memref<?xf32>
    gpu.terminator
  } {nvvm.maxnreg = 32 : i32}
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    memref.store %z, %u[%d] : memref<?xf32>
    gpu.terminator
  }
  return
}

// -----

// A multiprocessor has room for as many threads as before, and memory is as
// distinct.
// CHECK-LABEL: func @resident(
// CHECK:         gpu.launch {{.*}} in (%{{[a-z0-9]+}} = %c128,
// CHECK:         } {machine.distinct_memory, nvvm.minctasm = 4 : i32
// CHECK-NOT:     gpu.launch
func.func @resident(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %z = arith.constant 0.0 : f32
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c64, %ge = %c1, %gf = %c1) {
    memref.store %z, %x[%d] : memref<?xf32>
    gpu.terminator
  } {machine.distinct_memory, nvvm.minctasm = 8 : i32}
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c128, %ge = %c1, %gf = %c1) {
    memref.store %z, %y[%d] : memref<?xf32>
    gpu.terminator
  } {nvvm.minctasm = 2 : i32}
  return
}

// -----

// A part of what is written is read by another name: the kernel of both could not
// say that its memory is distinct.
// CHECK-LABEL: func @shared_names(
// CHECK:         gpu.launch
// CHECK:         } {machine.distinct_memory
// CHECK:         gpu.launch
// CHECK-NOT:     distinct_memory
func.func @shared_names(%x: memref<?xf32>, %y: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %z = arith.constant 0.0 : f32
  %low = memref.subview %y[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    memref.store %z, %x[%d] : memref<?xf32>
    gpu.terminator
  } {machine.distinct_memory}
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1) threads(%d, %e, %f) in (%gd = %c32, %ge = %c1, %gf = %c1) {
    %v = memref.load %low[%d] : memref<32xf32, strided<[1]>>
    %at = arith.addi %d, %c32 : index
    memref.store %v, %y[%at] : memref<64xf32>
    gpu.terminator
  }
  return
}
