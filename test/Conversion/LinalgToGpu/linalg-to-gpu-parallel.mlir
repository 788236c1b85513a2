// RUN: fovea-opt --convert-linalg-to-gpu --canonicalize --cse --split-input-file %s | FileCheck %s
// RUN: fovea-opt --convert-linalg-to-gpu=deterministic --remarks-filter=convert-linalg-to-gpu --split-input-file %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK --allow-empty

// Parallel loops with more than one op in the body: what the threads of an iteration's
// block, or warp, share. Nothing of it is slow on a GPU.
// REMARK-NOT: remark:

// Linalg in the body: an iteration a block, whose threads share the fill. For a
// large buffer there is memory for each block, as large as it may be; a small
// one is in shared memory. One thread stores an element; all wait for it.
// CHECK-LABEL: func @block_loop(
// CHECK:         %[[BLOCKS:.*]] = arith.minui %{{.*}}, %c1024{{ }}
// CHECK:         %[[BYTES:.*]] = arith.muli %[[BLOCKS]], %c4032{{ }}
// CHECK:         %[[MEMORY:.*]] = memref.alloc(%[[BYTES]]) {{.*}} : memref<?xi8>
// CHECK:         gpu.launch blocks(%{{.*}}) in (%{{.*}} = %[[BLOCKS]]
// CHECK-SAME:      workgroup(%[[SMALL:.*]] : memref<4xf32, #gpu.address_space<workgroup>>)
// CHECK:           scf.for
// CHECK:             %[[MINE:.*]] = memref.view %[[MEMORY]][%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xf32>
// CHECK:             scf.for
// CHECK:               memref.store %{{.*}}, %[[MINE]]
// CHECK:             gpu.barrier
// CHECK:             scf.if
// CHECK-NEXT:          memref.store %{{.*}}
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
// CHECK-NOT:         memref.dealloc
// CHECK:           gpu.terminator
// CHECK:         memref.dealloc %[[MEMORY]]
func.func @block_loop(%x: memref<?x?xf32>, %n: index, %m: index) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %size = affine.min affine_map<(i)[m] -> (m - i, 1000)>(%i)[%m]
    %large = memref.alloc(%size) : memref<?xf32>
    linalg.fill ins(%z : f32) outs(%large : memref<?xf32>)
    %small = memref.alloc() : memref<4xf32>
    memref.store %z, %small[%c0] : memref<4xf32>
    %v = memref.load %small[%i] : memref<4xf32>
    memref.store %v, %x[%i, %i] : memref<?x?xf32>
    memref.dealloc %small : memref<4xf32>
    memref.dealloc %large : memref<?xf32>
  }
  return
}

// -----

// Else an iteration a thread, with buffers of its own.
// CHECK-LABEL: func @thread_loop(
// CHECK:         gpu.launch
// CHECK-NOT:       workgroup
// CHECK:           %[[MINE:.*]] = memref.alloca() {{.*}} : memref<4xf32>
// CHECK:           scf.for
// CHECK:             memref.store %{{.*}}, %[[MINE]]
// CHECK-NOT:         gpu.barrier
// CHECK:           gpu.terminator
func.func @thread_loop(%x: memref<?x?xf32>, %n: index) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %small = memref.alloc() : memref<4xf32>
    memref.store %z, %small[%c0] : memref<4xf32>
    %v = memref.load %small[%i] : memref<4xf32>
    memref.store %v, %x[%i, %i] : memref<?x?xf32>
    memref.dealloc %small : memref<4xf32>
  }
  return
}

// -----

// The threads of an iteration's block, as many as it has steps, share a loop that combines
// integers: each warp leaves what it finds in shared memory, and all threads read that.
// The sum of floats keeps its order, in all threads. One thread stores the results.
// CHECK-LABEL: func @reductions(
// CHECK:         gpu.launch blocks(%{{.*}}) in {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128{{,}} {{.*}} workgroup(%[[ALL:.*]] : memref<32xindex
// CHECK:           %[[MIN:.*]] = scf.for %[[AT:.*]] = %[[THREAD]] to %c100 step %c128 iter_args(%{{.*}} = %c9223372036854775807)
// CHECK:             memref.load %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK:             arith.minsi
// CHECK-COUNT-5:   arith.minsi
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %{{.*}}, %[[ALL]]
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-4:   memref.load %[[ALL]]
// CHECK:           arith.minsi %{{.*}}, %c7{{ }}
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args
// CHECK:             arith.addf
// CHECK:           %[[IS:.*]] = arith.cmpi eq, %[[THREAD]], %c0
// CHECK-NEXT:      scf.if %[[IS]] {
// CHECK-NEXT:        memref.store %{{.*}} : memref<4xindex>
// CHECK-NEXT:        memref.store %{{.*}} : memref<4xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-NOT:       memref.store
func.func @reductions(%in: memref<4x100xindex>, %floats: memref<4x100xf32>, %out: memref<4xindex>, %sums: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    %least = scf.for %j = %c0 to %c100 step %c1 iter_args(%min = %c7) -> (index) {
      %x = memref.load %in[%i, %j] : memref<4x100xindex>
      %next = arith.minsi %min, %x : index
      scf.yield %next : index
    }
    %sum = scf.for %j = %c0 to %c100 step %c1 iter_args(%old = %zero) -> (f32) {
      %x = memref.load %floats[%i, %j] : memref<4x100xf32>
      %next = arith.addf %old, %x : f32
      scf.yield %next : f32
    }
    memref.store %least, %out[%i] : memref<4xindex>
    memref.store %sum, %sums[%i] : memref<4xf32>
    %own = memref.subview %out[%i] [1] [1] : memref<4xindex> to memref<1xindex, strided<[1], offset: ?>>
    memref.copy %own, %own : memref<1xindex, strided<[1], offset: ?>> to memref<1xindex, strided<[1], offset: ?>>
  }
  return
}

// -----

// Threads share a loop of quotients, too: each divides in iterations alone that there are.
// CHECK-LABEL: func @quotients(
// CHECK:         gpu.launch blocks(%{{.*}}) in {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128{{,}}
// CHECK:           %[[OWN:.*]] = scf.for %[[AT:.*]] = %[[THREAD]] to %c100 step %c128 iter_args(%[[SUM:.*]] = %c0_i32)
// CHECK-NEXT:        %[[X:.*]] = memref.load %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK-NEXT:        %[[QUOTIENT:.*]] = arith.divui %[[X]], %{{.*}} : i32
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addi %[[SUM]], %[[QUOTIENT]]
// CHECK-NEXT:        scf.yield %[[NEXT]]
// CHECK:           gpu.subgroup_reduce add %[[OWN]]
func.func @quotients(%in: memref<4x100xi32>, %by: memref<4xi32>, %out: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0 : i32
  scf.forall (%i) in (4) {
    %divisor = memref.load %by[%i] : memref<4xi32>
    %all = scf.for %j = %c0 to %c100 step %c1 iter_args(%sum = %zero) -> (i32) {
      %x = memref.load %in[%i, %j] : memref<4x100xi32>
      %quotient = arith.divui %x, %divisor : i32
      %next = arith.addi %sum, %quotient : i32
      scf.yield %next : i32
    }
    memref.store %all, %out[%i] : memref<4xi32>
    %own = memref.subview %out[%i] [1] [1] : memref<4xi32> to memref<1xi32, strided<[1], offset: ?>>
    memref.copy %own, %own : memref<1xi32, strided<[1], offset: ?>> to memref<1xi32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Integers of 32 bits are combined by an instruction of warps; a result that nothing uses
// is not combined, and one of 16 bits is by shuffles.
// CHECK-LABEL: func @warp_reductions(
// CHECK:         gpu.launch blocks(%{{.*}}) in {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128{{,}} {{.*}} workgroup(%[[SUMS:[^ ]*]] : memref<32xi32, #gpu.address_space<workgroup>>, %[[MINIMA:[^ ]*]] : memref<32xi32, #gpu.address_space<workgroup>>, %[[MAXIMA:[^ ]*]] : memref<32xi32, #gpu.address_space<workgroup>>, %[[SHORTS:[^ ]*]] : memref<32xi16, #gpu.address_space<workgroup>>)
// CHECK:           %[[OWN:.*]]:5 = scf.for %{{.*}} = %[[THREAD]] to %c100 step %c128 iter_args(%{{.*}} = %c0_i32, %{{.*}} = %c2147483647_i32, %{{.*}} = %c-2147483648_i32, %{{.*}} = %c-2147483648_i32, %{{.*}} = %c32767_i16)
// CHECK:           %[[SUM:.*]] = gpu.subgroup_reduce add %[[OWN]]#0 uniform : (i32) -> i32
// CHECK-NEXT:      %[[MIN:.*]] = gpu.subgroup_reduce minsi %[[OWN]]#1 uniform : (i32) -> i32
// CHECK-NEXT:      %[[MAX:.*]] = gpu.subgroup_reduce maxsi %[[OWN]]#2 uniform : (i32) -> i32
// CHECK-NOT:       %[[OWN]]#3
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK-NOT:       gpu.shuffle
// CHECK-NOT:       gpu.subgroup_reduce
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %[[SUM]], %[[SUMS]]
// CHECK-NEXT:        memref.store %[[MIN]], %[[MINIMA]]
// CHECK-NEXT:        memref.store %[[MAX]], %[[MAXIMA]]
// CHECK-NEXT:        memref.store %{{.*}}, %[[SHORTS]]
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-4:   memref.load %[[SUMS]]
// CHECK-COUNT-4:   memref.load %[[MINIMA]]
// CHECK-COUNT-4:   memref.load %[[MAXIMA]]
// CHECK-COUNT-4:   memref.load %[[SHORTS]]
// CHECK-NOT:       gpu.shuffle
// CHECK-NOT:       gpu.subgroup_reduce
// CHECK:           gpu.terminator
func.func @warp_reductions(%in: memref<4x100xi32>, %short: memref<4x100xi16>, %out: memref<4x3xi32>, %shorts: memref<4xi16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0 : i32
  %most = arith.constant 1000 : i16
  scf.forall (%i) in (4) {
    %all:5 = scf.for %j = %c0 to %c100 step %c1 iter_args(%sum = %zero, %min = %zero, %max = %zero, %unused = %zero, %low = %most) -> (i32, i32, i32, i32, i16) {
      %x = memref.load %in[%i, %j] : memref<4x100xi32>
      %y = memref.load %short[%i, %j] : memref<4x100xi16>
      %a = arith.addi %sum, %x : i32
      %b = arith.minsi %min, %x : i32
      %c = arith.maxsi %max, %x : i32
      %double = arith.addi %x, %x : i32
      %d = arith.maxsi %unused, %double : i32
      %e = arith.minsi %low, %y : i16
      scf.yield %a, %b, %c, %d, %e : i32, i32, i32, i32, i16
    }
    memref.store %all#0, %out[%i, %c0] : memref<4x3xi32>
    memref.store %all#1, %out[%i, %c1] : memref<4x3xi32>
    memref.store %all#2, %out[%i, %c2] : memref<4x3xi32>
    memref.store %all#4, %shorts[%i] : memref<4xi16>
    %own = memref.subview %shorts[%i] [1] [1] : memref<4xi16> to memref<1xi16, strided<[1], offset: ?>>
    memref.copy %own, %own : memref<1xi16, strided<[1], offset: ?>> to memref<1xi16, strided<[1], offset: ?>>
  }
  return
}

// -----

// One op of few points is all that an iteration does, and it says itself which
// of them there are: a thread for each point of all iterations.
// CHECK-LABEL: func @rows_at_places(
// CHECK-SAME:    %[[OUT:[a-z0-9]+]]: memref<?x24xf32>, %[[IN:[a-z0-9]+]]: memref<?x24xf32>, %[[PLACES:[a-z0-9]+]]: memref<?xindex>)
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256{{,}}
// CHECK:           scf.for %[[ITEM:.*]] =
// CHECK-DAG:         %[[ROW:.*]] = arith.divui %[[ITEM]], %c24
// CHECK-DAG:         %[[AT:.*]] = arith.remui %[[ITEM]], %c24
// CHECK:             %[[PLACE:.*]] = memref.load %[[PLACES]][%[[ROW]]]
// CHECK:             %[[EXISTS:.*]] = arith.cmpi ult, %[[PLACE]],
// CHECK:             %[[SIZE:.*]] = arith.select %[[EXISTS]], %c1{{.*}}, %c0
// CHECK:             %[[IS:.*]] = arith.cmpi u{{[lg]}}t, {{.*}}%[[SIZE]]
// CHECK:             scf.if %[[IS]] {
// CHECK:               %[[X:.*]] = memref.load %[[IN]][%[[ROW]], %[[AT]]]
// CHECK:               memref.store %[[X]]
// CHECK-NOT:     gpu.barrier
// CHECK:         return
func.func @rows_at_places(%out: memref<?x24xf32>, %in: memref<?x24xf32>, %places: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %places, %c0 : memref<?xindex>
  %m = memref.dim %out, %c0 : memref<?x24xf32>
  scf.forall (%i) in (%n) {
    %p = memref.load %places[%i] : memref<?xindex>
    %exists = arith.cmpi ult, %p, %m : index
    %q = arith.select %exists, %p, %c0 : index
    %size = arith.select %exists, %c1, %c0 : index
    %row = memref.subview %out[%q, 0] [%size, 24] [1, 1] : memref<?x24xf32> to memref<?x24xf32, strided<[24, 1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(r, d) -> (r, d)>], iterator_types = ["parallel", "parallel"]}
      outs(%row : memref<?x24xf32, strided<[24, 1], offset: ?>>) {
    ^bb0(%old: f32):
      %d = linalg.index 1 : index
      %x = memref.load %in[%i, %d] : memref<?x24xf32>
      linalg.yield %x : f32
    }
  }
  return
}

// -----

// An iteration's op may not read what it writes by the loop's own loads, and long
// rows stay with blocks.
// CHECK-LABEL: func @rows_by_blocks(
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in ({{.*}} = %c128{{,}}
// CHECK:           nvvm.bar.warp.sync
// CHECK-NOT:       gpu.barrier
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in ({{.*}} = %c512{{,}}
// CHECK:           gpu.barrier
func.func @rows_by_blocks(%x: memref<?x24xindex>, %y: memref<?x2000xf32>, %places: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x24xindex>
  scf.forall (%i) in (%n) {
    %p = memref.load %x[%i, %c0] : memref<?x24xindex>
    %row = memref.subview %x[%i, 0] [1, 24] [1, 1] : memref<?x24xindex> to memref<24xindex, strided<[1], offset: ?>>
    linalg.fill ins(%p : index) outs(%row : memref<24xindex, strided<[1], offset: ?>>)
  }
  scf.forall (%i) in (%n) {
    %p = memref.load %places[%i] : memref<?xindex>
    %row = memref.subview %y[%p, 0] [1, 2000] [1, 1] : memref<?x2000xf32> to memref<2000xf32, strided<[1], offset: ?>>
    %z = arith.constant 0.0 : f32
    linalg.fill ins(%z : f32) outs(%row : memref<2000xf32, strided<[1], offset: ?>>)
  }
  return
}

// -----

// Ops of which a thread does the same points need no barrier between them, nor do ops on
// other memory. Each thread has a point: there is no loop.
// CHECK-LABEL: func @own_points(
// CHECK:         gpu.launch {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c32{{,}}
// CHECK-NOT:       scf.for
// CHECK:           memref.store %{{.*}}, %[[A:.*]][%[[THREAD]]]
// CHECK-NOT:       gpu.barrier
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[THREAD]]]
// CHECK-NOT:       gpu.barrier
// CHECK:           memref.load %[[A]][%[[THREAD]]]
// CHECK:           memref.store
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      gpu.terminator
func.func @own_points(%out: memref<4x32xf32>, %other: memref<4x32xf32>) {
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (4) {
    %a = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%a : memref<32xf32>)
    %far = memref.subview %other[%i, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.fill ins(%one : f32) outs(%far : memref<32xf32, strided<[1], offset: ?>>)
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%a : memref<32xf32>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      %y = arith.addf %x, %x : f32
      linalg.yield %y : f32
    }
    memref.dealloc %a : memref<32xf32>
  }
  return
}

// -----

// A thread has four elements, or one where a point takes long: where it has a loop or a
// branch, or reads places of its own.
// CHECK-LABEL: func @long_points(
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c32{{,}}
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c128{{,}}
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c128{{,}}
func.func @long_points(%out: memref<4x128xf32>, %table: memref<?xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (4) {
    %row = memref.subview %out[%i, 0] [1, 128] [1, 1] : memref<4x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%row : memref<128xf32, strided<[1], offset: ?>>) {
    ^bb0(%old: f32):
      %y = arith.addf %old, %one : f32
      linalg.yield %y : f32
    }
    %0 = memref.load %row[%c0] : memref<128xf32, strided<[1], offset: ?>>
    memref.store %0, %row[%c1] : memref<128xf32, strided<[1], offset: ?>>
  }
  scf.forall (%i) in (4) {
    %row = memref.subview %out[%i, 0] [1, 128] [1, 1] : memref<4x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%row : memref<128xf32, strided<[1], offset: ?>>) {
    ^bb0(%old: f32):
      %y = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %old) -> (f32) {
        %z = arith.addf %sum, %one : f32
        scf.yield %z : f32
      }
      linalg.yield %y : f32
    }
    %0 = memref.load %row[%c0] : memref<128xf32, strided<[1], offset: ?>>
    memref.store %0, %row[%c1] : memref<128xf32, strided<[1], offset: ?>>
  }
  scf.forall (%i) in (4) {
    %row = memref.subview %out[%i, 0] [1, 128] [1, 1] : memref<4x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%row : memref<128xf32, strided<[1], offset: ?>>) {
    ^bb0(%old: f32):
      %d = linalg.index 0 : index
      %place = arith.muli %d, %n : index
      %x = memref.load %table[%place] : memref<?xf32>
      %y = arith.addf %old, %x : f32
      linalg.yield %y : f32
    }
    %0 = memref.load %row[%c0] : memref<128xf32, strided<[1], offset: ?>>
    memref.store %0, %row[%c1] : memref<128xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Reads of what the block itself has computed are soon done: of 512 points a thread has
// four. Those of other memory, of a buffer that all blocks have, too, are not.
// CHECK-LABEL: func @points_of_block(
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c128{{,}}
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c512{{,}}
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c512{{,}}
func.func @points_of_block(%out: memref<4x512xf32>, %table: memref<32xf32>) {
  %one = arith.constant 1.0 : f32
  %c32 = arith.constant 32 : index
  scf.forall (%i) in (4) {
    %own = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%own : memref<32xf32>)
    %row = memref.subview %out[%i, 0] [1, 512] [1, 1] : memref<4x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%row : memref<512xf32, strided<[1], offset: ?>>) {
    ^bb0(%old: f32):
      %d = linalg.index 0 : index
      %place = arith.remui %d, %c32 : index
      %x = memref.load %own[%place] : memref<32xf32>
      linalg.yield %x : f32
    }
    memref.dealloc %own : memref<32xf32>
  }
  scf.forall (%i) in (4) {
    %own = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%own : memref<32xf32>)
    %row = memref.subview %out[%i, 0] [1, 512] [1, 1] : memref<4x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%row : memref<512xf32, strided<[1], offset: ?>>) {
    ^bb0(%old: f32):
      %d = linalg.index 0 : index
      %place = arith.remui %d, %c32 : index
      %x = memref.load %own[%place] : memref<32xf32>
      %y = memref.load %table[%place] : memref<32xf32>
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
    }
    memref.dealloc %own : memref<32xf32>
  }
  %shared = memref.alloc() : memref<32xf32>
  linalg.fill ins(%one : f32) outs(%shared : memref<32xf32>)
  scf.forall (%i) in (4) {
    %own = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%own : memref<32xf32>)
    %row = memref.subview %out[%i, 0] [1, 512] [1, 1] : memref<4x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%row : memref<512xf32, strided<[1], offset: ?>>) {
    ^bb0(%old: f32):
      %d = linalg.index 0 : index
      %place = arith.remui %d, %c32 : index
      %x = memref.load %shared[%place] : memref<32xf32>
      linalg.yield %x : f32
    }
    memref.dealloc %own : memref<32xf32>
  }
  memref.dealloc %shared : memref<32xf32>
  return
}

// -----

// Threads meet where one reads what another has written: another element, by a map or
// by a load, or the same of an op whose points are others.
// CHECK-LABEL: func @others_points(
// CHECK:         gpu.launch
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK-NEXT:      gpu.terminator
func.func @others_points(%out: memref<4x32x2xf32>) {
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (4) {
    %a = memref.alloc() : memref<32xf32>
    %b = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%a : memref<32xf32>)
    linalg.generic {indexing_maps = [affine_map<(d) -> (31 - d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%a : memref<32xf32>) outs(%b : memref<32xf32>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      outs(%a : memref<32xf32>) {
    ^bb0(%old: f32):
      %d = linalg.index 0 : index
      %c31 = arith.constant 31 : index
      %e = arith.subi %c31, %d : index
      %x = memref.load %b[%e] : memref<32xf32>
      linalg.yield %x : f32
    }
    %rows = memref.subview %out[%i, 0, 0] [1, 32, 2] [1, 1, 1] : memref<4x32x2xf32> to memref<32x2xf32, strided<[2, 1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d, e) -> (d)>, affine_map<(d, e) -> (d, e)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<32xf32>) outs(%rows : memref<32x2xf32, strided<[2, 1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    memref.dealloc %a : memref<32xf32>
    memref.dealloc %b : memref<32xf32>
  }
  return
}

// -----

// Two views of one buffer may have an element of two threads.
// CHECK-LABEL: func @views(
// CHECK:         gpu.launch
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CHECK-NEXT:      gpu.terminator
func.func @views(%out: memref<4x32xf32>) {
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (4) {
    %a = memref.alloc() : memref<64xf32>
    %low = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
    %next = memref.subview %a[1] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 1>>
    linalg.fill ins(%one : f32) outs(%low : memref<32xf32, strided<[1]>>)
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%low : memref<32xf32, strided<[1]>>) outs(%next : memref<32xf32, strided<[1], offset: 1>>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%low : memref<32xf32, strided<[1]>>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    memref.dealloc %a : memref<64xf32>
  }
  return
}

// -----

// Threads share the iterations of a loop that only stores, each at a place of its own,
// with one barrier, also where it divides. A loop that stores at one place, or in two
// views, stays as it is: the last one counts.
// CHECK-LABEL: func @stores_in_loops(
// CHECK:         gpu.launch {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%[[THREADS:.*]] = %c32{{,}}
// CHECK:           scf.for %[[AT:.*]] = %[[THREAD]] to %{{.*}} step %c32
// CHECK-NEXT:        %[[PART:.*]] = arith.divui %[[AT]], %{{.*}}
// CHECK-NEXT:        memref.store %[[PART]], %{{.*}}[%[[AT]]]
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for %[[N:.*]] = %c0 to %{{.*}} step %c1
// CHECK:             %[[IS:.*]] = arith.cmpi eq, %[[THREAD]], %c0
// CHECK-NEXT:        scf.if %[[IS]] {
// CHECK-NEXT:          memref.store %[[N]], %{{.*}}[%c0]
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
// CHECK:           scf.for %[[N:.*]] = %c0 to %{{.*}} step %c1
// CHECK:             scf.if
// CHECK-NEXT:          memref.store %{{.*}}, %{{.*}}[%[[N]]]
// CHECK-NEXT:          memref.store %{{.*}}, %{{.*}}[%[[N]]]
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
func.func @stores_in_loops(%out: memref<4x?xindex>, %last: memref<4xindex>, %n: index, %parts: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (4) {
    %row = memref.subview %out[%i, 0] [1, %n] [1, 1] : memref<4x?xindex> to memref<?xindex, strided<[1], offset: ?>>
    scf.for %j = %c0 to %n step %c1 {
      %part = arith.divui %j, %parts : index
      memref.store %part, %row[%j] : memref<?xindex, strided<[1], offset: ?>>
    }
    %own = memref.subview %last[%i] [1] [1] : memref<4xindex> to memref<1xindex, strided<[1], offset: ?>>
    scf.for %j = %c0 to %n step %c1 {
      memref.store %j, %own[%c0] : memref<1xindex, strided<[1], offset: ?>>
    }
    %next = memref.subview %out[%i, 1] [1, %n] [1, 1] : memref<4x?xindex> to memref<?xindex, strided<[1], offset: ?>>
    scf.for %j = %c0 to %n step %c1 {
      memref.store %i, %row[%j] : memref<?xindex, strided<[1], offset: ?>>
      memref.store %j, %next[%j] : memref<?xindex, strided<[1], offset: ?>>
    }
    memref.copy %own, %own : memref<1xindex, strided<[1], offset: ?>> to memref<1xindex, strided<[1], offset: ?>>
  }
  return
}

// -----

// An op that reads its own element by a map may read another one by a load.
// CHECK-LABEL: func @own_and_others(
// CHECK:         gpu.launch
// CHECK:           memref.store %{{.*}}, %[[A:.*]][%{{.*}}]
// CHECK-NEXT:      gpu.barrier
// CHECK:           memref.load %[[A]]
// CHECK:           memref.load %[[A]]
// CHECK:           gpu.barrier
func.func @own_and_others(%out: memref<4x32xf32>) {
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (4) {
    %a = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%a : memref<32xf32>)
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%a : memref<32xf32>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      %d = linalg.index 0 : index
      %c31 = arith.constant 31 : index
      %e = arith.subi %c31, %d : index
      %z = memref.load %a[%e] : memref<32xf32>
      %y = arith.addf %x, %z : f32
      linalg.yield %y : f32
    }
    memref.dealloc %a : memref<32xf32>
  }
  return
}

// -----

// Where a warp is enough for each of many iterations, a block has four of them, and
// a machine no more blocks than its multiprocessors have room for, 8 on each of 132.
// Warps meet by themselves, and have buffers of their own.
// CHECK-LABEL: func @by_warps(
// CHECK:         %[[BLOCKS:.*]] = arith.ceildivui %{{.*}}, %c4
// CHECK:         %[[GRID:.*]] = arith.minui %[[BLOCKS]], %c1056 :
// CHECK:         gpu.launch blocks({{.*}}) in (%{{[^ ]*}} = %[[GRID]], {{.*}} threads(%[[T:[^,]*]], {{.*}}) in (%{{[^ ]*}} = %c128, {{.*}} workgroup(%[[ALL:[^ ]*]] : memref<4x32xf32, #gpu.address_space<workgroup>>)
// CHECK-DAG:       %[[LANE:.*]] = arith.remui %[[T]], %c32
// CHECK-DAG:       %[[WARP:.*]] = arith.divui %[[T]], %c32
// CHECK:           scf.for
// CHECK:             %[[SHARED:.*]] = memref.memory_space_cast %[[ALL]]
// CHECK:             %[[OWN:.*]] = memref.subview %[[SHARED]][%[[WARP]], 0] [1, 32] [1, 1]
// CHECK:             memref.store %{{.*}}, %[[OWN]][%[[LANE]]]
// CHECK-NEXT:        nvvm.bar.warp.sync %c-1_i32
// CHECK:             memref.load %[[OWN]]
// CHECK:             nvvm.bar.warp.sync
// CHECK-NOT:         gpu.barrier
func.func @by_warps(%out: memref<?x32xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x32xf32>
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<32xf32>
    linalg.fill ins(%one : f32) outs(%a : memref<32xf32>)
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<?x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (31 - d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%a : memref<32xf32>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    memref.dealloc %a : memref<32xf32>
  }
  return
}

// -----

// A buffer of which there are views stays a block's, as ops of more points than a warp
// has threads do.
// CHECK-LABEL: func @not_by_warps(
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in ({{.*}} = %c32{{,}}
// CHECK-NOT:       nvvm.bar.warp.sync
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in ({{.*}} = %c128{{,}}
// CHECK-NOT:       nvvm.bar.warp.sync
func.func @not_by_warps(%out: memref<?x32xf32>, %wide: memref<?x512xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x32xf32>
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<64xf32>
    %low = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
    linalg.fill ins(%one : f32) outs(%low : memref<32xf32, strided<[1]>>)
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<?x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (31 - d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%low : memref<32xf32, strided<[1]>>) outs(%row : memref<32xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    memref.dealloc %a : memref<64xf32>
  }
  scf.forall (%i) in (%n) {
    %a = memref.alloc() : memref<512xf32>
    linalg.fill ins(%one : f32) outs(%a : memref<512xf32>)
    %row = memref.subview %wide[%i, 0] [1, 512] [1, 1] : memref<?x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d) -> (511 - d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%a : memref<512xf32>) outs(%row : memref<512xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
    }
    memref.dealloc %a : memref<512xf32>
  }
  return
}

// -----

// A branch may yield what is then copied to itself: nothing is.
// CHECK-LABEL: func @same_of_branches(
// CHECK:         gpu.launch
// CHECK:           scf.if
// CHECK:             memref.store
// CHECK-NOT:       memref.store
func.func @same_of_branches(%out: memref<?x32xf32>, %skip: i1) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x32xf32>
  scf.forall (%i) in (%n) {
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<?x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    %same = scf.if %skip -> (memref<32xf32, strided<[1], offset: ?>>) {
      scf.yield %row : memref<32xf32, strided<[1], offset: ?>>
    } else {
      linalg.fill ins(%one : f32) outs(%row : memref<32xf32, strided<[1], offset: ?>>)
      scf.yield %row : memref<32xf32, strided<[1], offset: ?>>
    }
    memref.copy %same, %row : memref<32xf32, strided<[1], offset: ?>> to memref<32xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// One branch yields other memory, which is copied.
// CHECK-LABEL: func @other_of_branches(
// CHECK:         gpu.launch
// CHECK:           %[[SOURCE:.*]] = arith.select
// CHECK:           scf.if
// CHECK:           %[[X:.*]] = memref.load %[[SOURCE]]
// CHECK:           memref.store %[[X]]
func.func @other_of_branches(%out: memref<?x32xf32>, %other: memref<?x32xf32>, %skip: i1) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x32xf32>
  scf.forall (%i) in (%n) {
    %row = memref.subview %out[%i, 0] [1, 32] [1, 1] : memref<?x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    %far = memref.subview %other[%i, 0] [1, 32] [1, 1] : memref<?x32xf32> to memref<32xf32, strided<[1], offset: ?>>
    %some = scf.if %skip -> (memref<32xf32, strided<[1], offset: ?>>) {
      scf.yield %far : memref<32xf32, strided<[1], offset: ?>>
    } else {
      linalg.fill ins(%one : f32) outs(%row : memref<32xf32, strided<[1], offset: ?>>)
      scf.yield %row : memref<32xf32, strided<[1], offset: ?>>
    }
    memref.copy %some, %row : memref<32xf32, strided<[1], offset: ?>> to memref<32xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Iterations that are neighbours read the same elements at a time: a thread each. One that
// begins where its number says has a warp, which shares it; so has a loop of at most 32
// steps, however many there are.
// CHECK-LABEL: func.func @together(
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c256
// CHECK:           arith.remui %{{.*}}, %c32
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args
// CHECK-NOT:       gpu.subgroup_reduce
// CHECK:           memref.store
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c128
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c32 iter_args
// CHECK:           gpu.subgroup_reduce
// CHECK:           nvvm.bar.warp.sync
func.func @together(%x: memref<?xi32>, %out: memref<?x32xi32>, %sums: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %n = memref.dim %out, %c0 : memref<?x32xi32>
  scf.forall (%i, %j) in (%n, 32) {
    %s = scf.for %k = %c0 to %j step %c1 iter_args(%so_far = %zero) -> (i32) {
      %e = memref.load %x[%k] : memref<?xi32>
      %t = arith.addi %so_far, %e : i32
      scf.yield %t : i32
    }
    %own = memref.subview %out[%i, %j] [1, 1] [1, 1] : memref<?x32xi32> to memref<1x1xi32, strided<[32, 1], offset: ?>>
    memref.store %s, %own[%c0, %c0] : memref<1x1xi32, strided<[32, 1], offset: ?>>
    memref.copy %own, %own : memref<1x1xi32, strided<[32, 1], offset: ?>> to memref<1x1xi32, strided<[32, 1], offset: ?>>
  }
  scf.forall (%i) in (%n) {
    %count = affine.min affine_map<(d0) -> (32, d0)>(%i)
    %s = scf.for %k = %c0 to %count step %c1 iter_args(%so_far = %zero) -> (i32) {
      %at = arith.addi %i, %k : index
      %e = memref.load %x[%at] : memref<?xi32>
      %t = arith.addi %so_far, %e : i32
      scf.yield %t : i32
    }
    %own = memref.subview %sums[%i] [1] [1] : memref<?xi32> to memref<1xi32, strided<[1], offset: ?>>
    memref.store %s, %own[%c0] : memref<1xi32, strided<[1], offset: ?>>
    memref.copy %own, %own : memref<1xi32, strided<[1], offset: ?>> to memref<1xi32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Left to warps: a loop that begins at the iteration's own place.
// CHECK-LABEL: func.func @own_places(
// CHECK:         gpu.launch
// CHECK:           gpu.subgroup_reduce
func.func @own_places(%x: memref<?xi32>, %out: memref<?x32xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i32
  %n = memref.dim %out, %c0 : memref<?x32xi32>
  scf.forall (%i, %j) in (%n, 32) {
    %begin = arith.muli %j, %c8 : index
    %end = arith.addi %begin, %c8 : index
    %s = scf.for %k = %begin to %end step %c1 iter_args(%so_far = %zero) -> (i32) {
      %e = memref.load %x[%k] : memref<?xi32>
      %t = arith.addi %so_far, %e : i32
      scf.yield %t : i32
    }
    %own = memref.subview %out[%i, %j] [1, 1] [1, 1] : memref<?x32xi32> to memref<1x1xi32, strided<[32, 1], offset: ?>>
    memref.store %s, %own[%c0, %c0] : memref<1x1xi32, strided<[32, 1], offset: ?>>
    memref.copy %own, %own : memref<1x1xi32, strided<[32, 1], offset: ?>> to memref<1x1xi32, strided<[32, 1], offset: ?>>
  }
  return
}

// -----

// One iteration, of no dimension, has no neighbours.
// CHECK-LABEL: func.func @no_dimension(
// CHECK:         gpu.launch
// CHECK:           memref.load
// CHECK:           memref.store
func.func @no_dimension(%out: memref<4xf32>, %x: memref<4xf32>) {
  scf.forall () in () {
    memref.copy %x, %out : memref<4xf32> to memref<4xf32>
  }
  return
}
