// RUN: fovea-opt %s --pass-pipeline='builtin.module(convert-tile-to-nvvm,gpu.module(canonicalize,cse))' | FileCheck %s

#wide = #tile.layout<8x16, registers = [2:1d1, 2:8d1], threads = [4:2d1, 8:1d0]>
#acc = #tile.layout<16x8, registers = [2:1d1, 2:8d0], threads = [4:2d1, 8:1d0]>
#two = #tile.layout<16x16, registers = [2:1d1, 2:8d0, 2:8d1], threads = [4:2d1, 8:1d0]>
#swapped = #tile.layout<16x8, registers = [2:8d0, 2:1d1], threads = [4:2d1, 8:1d0]>
#quad = #tile.layout<16x4, registers = [2:8d0], threads = [4:1d1, 8:1d0]>
#row = #tile.layout<16, registers = [2:8d0], threads = [4:r, 8:1d0]>
#column = #tile.layout<8, registers = [2:1d0], threads = [4:2d0, 8:r]>

gpu.module @kernels {
  // One scalar for each register; operands of a map in the result's order.
  // Coordinates are the thread's plus the register's.

  // CHECK-LABEL: gpu.func @map
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32, %[[O:[^:]*]]: memref<?xi64>
  // CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
  // CHECK-DAG:     %[[EIGHT:.*]] = arith.constant 8 : index
  // CHECK-DAG:     %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK-DAG:     %[[ROW:.*]] = arith.divui %[[TID]], %c4_i32
  // CHECK-DAG:     %[[I:.*]] = arith.index_castui %[[ROW]]
  // CHECK-DAG:     %[[PLACE:.*]] = arith.remui %[[TID]], %c4_i32
  // CHECK-DAG:     %[[COLUMN:.*]] = arith.muli %[[PLACE]], %c2_i32
  // CHECK-DAG:     %[[J:.*]] = arith.index_castui %[[COLUMN]]
  // CHECK:         %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
  // CHECK:         %[[M:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK:         arith.addf %{{.*}}, %{{.*}} fastmath<contract> : f32
  // CHECK:         llvm.intr.maxnum
  // CHECK:         arith.muli %[[I]], %[[J]]
  // CHECK:         %[[J1:.*]] = arith.addi %[[J]], %[[ONE]]
  // CHECK:         arith.muli %[[I]], %[[J1]]
  // CHECK:         %[[I8:.*]] = arith.addi %[[I]], %[[EIGHT]]
  // CHECK:         arith.muli %[[I8]], %[[J]]
  // CHECK:         arith.muli %[[I8]], %[[J1]]
  // CHECK-NOT:     tile.
  gpu.func @map(%a: f32, %b: f32, %o: memref<?xi64>, %q: memref<16x8xf32, strided<[8, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.fill %a : !tile.fragment<16x8xf32, #acc>
    %p = tile.map ins(%x : !tile.fragment<16x8xf32, #acc>) {
    ^bb0(%e: f32, %i: index, %j: index):
      %0 = math.exp2 %e : f32
      %1 = arith.mulf %0, %b : f32
      %2 = arith.addf %1, %e : f32
      %3 = arith.maxnumf %2, %b : f32
      %4 = arith.muli %i, %j : index
      %5 = arith.index_cast %4 : index to i64
      memref.store %5, %o[%4] : memref<?xi64>
      tile.yield %3 : f32
    } -> !tile.fragment<16x8xf32, #acc>
    tile.store %p, %q[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #acc>, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // Whether some are true is a matter of a warp. A sum that is written as a
  // multiply-add has nothing contracted into it.
  // CHECK-LABEL: gpu.func @warp
  // CHECK:         %[[S0:.*]] = llvm.inline_asm "sub.rn.ftz.f32 $0, $1, $2;", "=f,f,f" %{{.*}}, %{{.*}} : (f32, f32) -> f32
  // CHECK:         %[[S1:.*]] = llvm.inline_asm "sub.rn.ftz.f32 $0, $1, $2;", "=f,f,f"
  // CHECK:         %[[T0:.*]] = arith.cmpf ogt, %[[S0]]
  // CHECK:         %[[T1:.*]] = arith.cmpf ogt, %[[S1]]
  // CHECK:         %[[ANY:.*]] = arith.ori %[[T0]], %[[T1]] : i1
  // CHECK:         %[[VOTE:.*]] = nvvm.vote.sync any %c-1_i32, %[[ANY]] -> i1
  // CHECK-NOT:     tile.first_only
  // CHECK:         memref.store %[[VOTE]]
  // CHECK:         llvm.inline_asm "add.rn.f64 $0, $1, $2;", "=d,d,d"
  // CHECK:         math.fma
  gpu.func @warp(%a: f32, %b: f64, %in: memref<16xf32>, %o: memref<?xi1>, %d: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %f = tile.load %in[%c0] dims [0] : memref<16xf32> -> !tile.fragment<16xf32, #row>
    %s = tile.map ins(%f : !tile.fragment<16xf32, #row>) {
    ^bb0(%x: f32, %i: index):
      %minus = arith.constant -1.0 : f32
      %r = math.fma %a, %minus, %x : f32
      tile.yield %r : f32
    } -> !tile.fragment<16xf32, #row>
    %t = tile.map ins(%s : !tile.fragment<16xf32, #row>) {
    ^bb0(%x: f32, %i: index):
      %r = arith.cmpf ogt, %x, %a : f32
      tile.yield %r : i1
    } -> !tile.fragment<16xi1, #row>
    %any = tile.any %t : !tile.fragment<16xi1, #row>
    %first = tile.first_only %any
    memref.store %first, %o[%c0] : memref<?xi1>
    %g = tile.fill %b : !tile.fragment<16xf64, #row>
    %n = tile.map ins(%g : !tile.fragment<16xf64, #row>) {
    ^bb0(%x: f64, %i: index):
      %one = arith.constant 1.0 : f64
      %two = arith.constant 2.0 : f64
      %r = math.fma %b, %one, %x : f64
      %q = math.fma %b, %two, %r : f64
      memref.store %q, %d[%i] : memref<?xf64>
      tile.yield %q : f64
    } -> !tile.fragment<16xf64, #row>
    gpu.return
  }

  // So are extremes: a thread compares its own elements, then the warp does. What nothing
  // reads, threads do not find.
  // CHECK-LABEL: gpu.func @extremes
  // CHECK-SAME:    %[[P:[^:]*]]: memref<16xi32>, %[[Q:[^:]*]]: memref<16xi32>, %[[O:[^:]*]]: memref<?xi32>
  // CHECK-NOT:     nvvm.redux
  // CHECK:         %[[OWN:.*]] = arith.minsi %[[X0:.*]], %[[X1:.*]] : i32
  // CHECK:         %[[LEAST:.*]] = nvvm.redux.sync min %[[OWN]], %c-1_i32 : i32 -> i32
  // CHECK:         %[[OWN2:.*]] = arith.maxsi %[[X0]], %[[X1]] : i32
  // CHECK:         %[[GREATEST:.*]] = nvvm.redux.sync max %[[OWN2]], %c-1_i32 : i32 -> i32
  // CHECK-NOT:     arith.minsi
  // CHECK-NOT:     nvvm.redux.sync min
  // CHECK:         %[[OTHER:.*]] = nvvm.redux.sync max
  // CHECK-NOT:     nvvm.redux
  // CHECK:         memref.store %[[LEAST]], %[[O]]
  // CHECK:         memref.store %[[GREATEST]], %[[O]]
  // CHECK:         memref.store %[[OTHER]], %[[O]]
  // CHECK-NOT:     nvvm.redux
  // CHECK:         gpu.return
  gpu.func @extremes(%p: memref<16xi32>, %q: memref<16xi32>, %o: memref<?xi32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %f = tile.load %p[%c0] dims [0] : memref<16xi32> -> !tile.fragment<16xi32, #row>
    %least, %greatest = tile.extremes %f : !tile.fragment<16xi32, #row>
    %g = tile.load %q[%c0] dims [0] : memref<16xi32> -> !tile.fragment<16xi32, #row>
    %none, %other = tile.extremes %g : !tile.fragment<16xi32, #row>
    memref.store %least, %o[%c0] : memref<?xi32>
    memref.store %greatest, %o[%c1] : memref<?xi32>
    memref.store %other, %o[%c2] : memref<?xi32>
    gpu.return
  }

  // Sums of columns whose numbers are equal modulo 8: a thread has them all, of
  // registers 0 and 4, 1 and 5, and so on, and exchanges nothing.
  // CHECK-LABEL: gpu.func @parts
  // CHECK-COUNT-8: llvm.load
  // CHECK-NOT:     shfl
  // CHECK:         %[[S0:.*]] = arith.addf
  // CHECK:         %[[S1:.*]] = arith.addf
  // CHECK:         %[[S2:.*]] = arith.addf
  // CHECK:         %[[S3:.*]] = arith.addf
  // CHECK:         arith.addf %{{.*}}, %[[S0]] : f32
  // CHECK:         arith.addf %{{.*}}, %[[S1]] : f32
  // CHECK:         arith.addf %{{.*}}, %[[S2]] : f32
  // CHECK:         arith.addf %{{.*}}, %[[S3]] : f32
  // CHECK-NOT:     arith.addf
  gpu.func @parts(%a: f32, %in: memref<16x16xf32>, %o: memref<16x8xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %in[%c0, %c0] dims [0, 1] : memref<16x16xf32> -> !tile.fragment<16x16xf32, #two>
    %z = tile.fill %a : !tile.fragment<16x8xf32, #acc>
    %s = tile.reduce add %x, %z dim 1 : !tile.fragment<16x16xf32, #two> -> !tile.fragment<16x8xf32, #acc>
    tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #acc>, memref<16x8xf32>
    gpu.return
  }

  // Sums of neighbours: registers 0 and 1, 2 and 3; then of the four threads.
  // CHECK-LABEL: gpu.func @neighbors
  // CHECK:         %[[X:.*]]:4 = scf.if
  // CHECK-NOT:     shfl
  // CHECK:         %[[S0:.*]] = arith.addf %[[X]]#0, %[[X]]#1
  // CHECK:         %[[S1:.*]] = arith.addf %[[X]]#2, %[[X]]#3
  // CHECK:         arith.addf %{{.*}}, %[[S0]] : f32
  // CHECK:         arith.addf %{{.*}}, %[[S1]] : f32
  // CHECK-COUNT-4: nvvm.shfl.sync
  // CHECK-NOT:     nvvm.shfl.sync
  gpu.func @neighbors(%a: f32, %in: memref<16x8xf32>, %o: memref<16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %in[%c0, %c0] dims [0, 1] : memref<16x8xf32> -> !tile.fragment<16x8xf32, #acc>
    %z = tile.fill %a : !tile.fragment<16x4xf32, #quad>
    %s = tile.reduce add %x, %z dim 1 neighbors : !tile.fragment<16x8xf32, #acc> -> !tile.fragment<16x4xf32, #quad>
    %n = tile.fill %a : !tile.fragment<16xf32, #row>
    %t = tile.reduce add %s, %n dim 1 : !tile.fragment<16x4xf32, #quad> -> !tile.fragment<16xf32, #row>
    tile.store %t, %o[%c0] dims [0] : !tile.fragment<16xf32, #row>, memref<16xf32>
    gpu.return
  }

  // Eight neighbours are in the four threads of a row, which exchange what they have.
  // CHECK-LABEL: gpu.func @exchanged
  // CHECK:         %[[X:.*]]:8 = scf.if
  // CHECK:         arith.addf %[[X]]#0, %[[X]]#1
  // CHECK-COUNT-8: nvvm.shfl.sync
  // CHECK-NOT:     nvvm.shfl.sync
  gpu.func @exchanged(%a: f32, %in: memref<16x16xf32>, %o: memref<16x2xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %in[%c0, %c0] dims [0, 1] : memref<16x16xf32> -> !tile.fragment<16x16xf32, #two>
    %z = tile.fill %a : !tile.fragment<16x2xf32, #tile.layout<16x2, registers = [2:8d0, 2:1d1], threads = [4:r, 8:1d0]>>
    %s = tile.reduce add %x, %z dim 1 neighbors : !tile.fragment<16x16xf32, #two> -> !tile.fragment<16x2xf32, #tile.layout<16x2, registers = [2:8d0, 2:1d1], threads = [4:r, 8:1d0]>>
    tile.store %s, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x2xf32, #tile.layout<16x2, registers = [2:8d0, 2:1d1], threads = [4:r, 8:1d0]>>, memref<16x2xf32>
    gpu.return
  }

  // Numbers of 16 bits leave the branches of a load in pairs, and are taken apart
  // behind them; in the other branch a pair is made when its numbers are there.
  // CHECK-LABEL: gpu.func @pairs
  // CHECK:         %[[X:.*]]:2 = scf.if %{{.*}} -> (vector<2xbf16>, vector<2xbf16>) {
  // CHECK-COUNT-2:   llvm.load %{{.*}} : !llvm.ptr<1> -> vector<2xbf16>
  // CHECK-NOT:       llvm.extractelement
  // CHECK:           scf.yield
  // CHECK:         } else {
  // CHECK-COUNT-2:   llvm.load %{{.*}} : !llvm.ptr<1> -> bf16
  // CHECK-COUNT-2:   llvm.insertelement
  // CHECK-COUNT-2:   llvm.load %{{.*}} : !llvm.ptr<1> -> bf16
  // CHECK-COUNT-2:   llvm.insertelement
  // CHECK:           scf.yield
  // CHECK:         llvm.extractelement %[[X]]#0
  // CHECK:         llvm.extractelement %[[X]]#0
  // CHECK:         llvm.extractelement %[[X]]#1
  // CHECK:         llvm.extractelement %[[X]]#1
  gpu.func @pairs(%in: memref<16x8xbf16>, %o: memref<16x8xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %in[%c0, %c0] dims [0, 1] : memref<16x8xbf16> -> !tile.fragment<16x8xbf16, #acc>
    %y = tile.map ins(%x : !tile.fragment<16x8xbf16, #acc>) {
    ^bb0(%a: bf16, %m: index, %n: index):
      %w = arith.extf %a : bf16 to f32
      tile.yield %w : f32
    } -> !tile.fragment<16x8xf32, #acc>
    tile.store %y, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #acc>, memref<16x8xf32>
    gpu.return
  }

  // Scores need no exact tanh, quotient, or erf, which becomes one, and `afn` asks
  // for the machine's tanh; f64 keeps what it has.
  // CHECK-LABEL: gpu.func @approximate
  // CHECK:         %[[Q:.*]] = arith.divf %{{.*}}, %{{.*}} fastmath<reassoc,arcp,afn> : f32
  // CHECK:         %[[X:.*]] = arith.mulf %[[Q]], %{{.*}} fastmath<reassoc> : f32
  // CHECK:         %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%[[X]])
  // CHECK:         %[[S:.*]] = arith.addf %[[E]], %{{.*}} : f32
  // CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[S]])
  // CHECK:         math.fma %[[R]], %{{.*}}, %{{.*}} : f32
  // CHECK:         llvm.inline_asm "tanh.approx.f32 $0, $1;", "=f,f" %[[Q]] : (f32) -> f32
  // CHECK:         math.erf %[[Q]] fastmath<afn> : f32
  // CHECK:         arith.divf %{{.*}}, %{{.*}} : f64
  // CHECK:         math.tanh %{{.*}} : f64
  gpu.func @approximate(%a: f32, %b: f64, %s: memref<?xf32>, %d: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %f = tile.fill %a : !tile.fragment<16xf32, #row>
    %m = tile.map ins(%f : !tile.fragment<16xf32, #row>) {
    ^bb0(%x: f32, %i: index):
      %q = arith.divf %x, %a : f32
      %t = math.tanh %q : f32
      memref.store %t, %s[%i] : memref<?xf32>
      %u = math.tanh %q fastmath<afn> : f32
      memref.store %u, %s[%i] : memref<?xf32>
      %v = math.erf %q : f32
      memref.store %v, %s[%i] : memref<?xf32>
      tile.yield %t : f32
    } -> !tile.fragment<16xf32, #row>
    %g = tile.fill %b : !tile.fragment<16xf64, #row>
    %n = tile.map ins(%g : !tile.fragment<16xf64, #row>) {
    ^bb0(%x: f64, %i: index):
      %q = arith.divf %x, %b : f64
      %t = math.tanh %q : f64
      memref.store %t, %d[%i] : memref<?xf64>
      tile.yield %t : f64
    } -> !tile.fragment<16xf64, #row>
    gpu.return
  }

  // What is exact stays as it is, to be lowered as elsewhere.
  // CHECK-LABEL: gpu.func @exact
  // CHECK:         %[[Q:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
  // CHECK:         %[[T:.*]] = math.tanh %[[Q]] : f32
  // CHECK:         arith.addf %[[T]], %{{.*}} : f32
  gpu.func @exact(%a: f32, %s: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %f = tile.fill %a : !tile.fragment<16xf32, #row>
    %m = tile.map exact ins(%f : !tile.fragment<16xf32, #row>) {
    ^bb0(%x: f32, %i: index):
      %q = arith.divf %x, %a : f32
      %t = math.tanh %q : f32
      %u = arith.addf %t, %a : f32
      memref.store %u, %s[%i] : memref<?xf32>
      tile.yield %u : f32
    } -> !tile.fragment<16xf32, #row>
    gpu.return
  }

  // Functions with the flag `afn` are the machine's, also of 16 bits: a quotient that is
  // right for a large denominator, or a reciprocal. Sums keep no flags of scores.
  // CHECK-LABEL: gpu.func @may_approximate
  // CHECK-SAME:    %[[A:[^:]*]]: f32, %[[B:[^:]*]]: bf16
  // CHECK-DAG:     %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
  // CHECK:         %[[W:.*]] = arith.extf %[[B]] : bf16 to f32
  // CHECK:         %[[M:.*]] = arith.mulf %[[W]], %[[LOG2E]] : f32
  // CHECK:         %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%[[M]])
  // CHECK:         arith.truncf %[[E]] : f32 to bf16
  // CHECK:         %[[S:.*]] = arith.addf %{{.*}}, %[[A]] : f32
  // CHECK:         %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full.ftz"(%[[S]], %[[A]])
  // CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[Q]])
  // CHECK:         %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%[[R]])
  // CHECK:         %[[T:.*]] = llvm.inline_asm "tanh.approx.f32 $0, $1;", "=f,f" %[[P]]
  // CHECK:         arith.divf %[[T]], %[[A]] : f32
  // CHECK:         arith.divf %{{.*}} fastmath<afn> : f64
  gpu.func @may_approximate(%a: f32, %b: bf16, %s: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %f = tile.fill %b : !tile.fragment<16xbf16, #row>
    %m = tile.map exact ins(%f : !tile.fragment<16xbf16, #row>) {
    ^bb0(%x: bf16, %i: index):
      %one = arith.constant 1.0 : f32
      %e = math.exp %x fastmath<afn> : bf16
      %w = arith.extf %e : bf16 to f32
      %u = arith.addf %w, %a : f32
      %q = arith.divf %u, %a fastmath<afn> : f32
      %r = arith.divf %one, %q fastmath<afn> : f32
      %p = math.exp2 %r fastmath<afn> : f32
      %t = math.tanh %p fastmath<afn> : f32
      %v = arith.divf %t, %a : f32
      %z = arith.extf %v : f32 to f64
      %y = arith.divf %z, %z fastmath<afn> : f64
      memref.store %y, %s[%i] : memref<?xf64>
      tile.yield %e : bf16
    } -> !tile.fragment<16xbf16, #row>
    gpu.return
  }

  // Registers are matched by their elements, whatever their order: rows of
  // registers 0 to 3 are 0, 0, 8, 8 in one layout, 0, 8, 0, 8 in the other.

  // CHECK-LABEL: gpu.func @orders
  // CHECK:         %[[R0:.*]] = llvm.load
  // CHECK:         %[[R1:.*]] = llvm.load
  // CHECK:         arith.addf %{{.*}}, %[[R0]]
  // CHECK:         arith.addf %{{.*}}, %[[R1]]
  // CHECK:         arith.addf %{{.*}}, %[[R0]]
  // CHECK:         arith.addf %{{.*}}, %[[R1]]
  // CHECK-NOT:     arith.addf
  gpu.func @orders(%m: memref<16xf32, strided<[1]>>, %o: memref<16x8xf32, strided<[8, 1]>>, %a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.load %m[%c0] dims [0] : memref<16xf32, strided<[1]>> -> !tile.fragment<16xf32, #row>
    %x = tile.load %o[%c0, %c0] dims [0, 1] : memref<16x8xf32, strided<[8, 1]>> -> !tile.fragment<16x8xf32, #acc>
    %p = tile.map ins(%x : !tile.fragment<16x8xf32, #acc>) rows(%r : !tile.fragment<16xf32, #row>) {
    ^bb0(%e: f32, %f: f32, %i: index, %j: index):
      %0 = arith.addf %e, %f : f32
      tile.yield %0 : f32
    } -> !tile.fragment<16x8xf32, #swapped>
    tile.store %p, %o[%c0, %c0] dims [0, 1] : !tile.fragment<16x8xf32, #swapped>, memref<16x8xf32, strided<[8, 1]>>
    gpu.return
  }

  // The registers of a row, then the four threads that share it, then the
  // initial value.

  // CHECK-LABEL: gpu.func @reduce
  // CHECK-SAME:    %{{[^:]*}}: memref<16x8xf32, {{.*}}>, %{{.*}}: memref<16xf32, {{.*}}>, %[[INIT:[^:]*]]: f32
  // CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : i32
  // CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
  // CHECK:         %[[R0:.*]] = llvm.intr.maxnum(%[[X0:.*]], %[[X1:.*]])
  // CHECK:         %[[R1:.*]] = llvm.intr.maxnum(%{{.*}}, %{{.*}})
  // CHECK:         %[[S0:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[R0]], %[[C1]]
  // CHECK:         %[[T0:.*]] = llvm.intr.maxnum(%[[R0]], %[[S0]])
  // CHECK:         %[[S1:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[T0]], %[[C2]]
  // CHECK:         %[[T1:.*]] = llvm.intr.maxnum(%[[T0]], %[[S1]])
  // CHECK:         nvvm.shfl.sync bfly %{{.*}}, %[[R1]], %[[C1]]
  // CHECK:         nvvm.shfl.sync bfly
  // CHECK:         llvm.intr.maxnum(%[[INIT]], %[[T1]])
  gpu.func @reduce(%o: memref<16x8xf32, strided<[8, 1]>>, %m: memref<16xf32, strided<[1]>>, %init: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %o[%c0, %c0] dims [0, 1] : memref<16x8xf32, strided<[8, 1]>> -> !tile.fragment<16x8xf32, #acc>
    %z = tile.fill %init : !tile.fragment<16xf32, #row>
    %r = tile.reduce max %x, %z dim 1 : !tile.fragment<16x8xf32, #acc> -> !tile.fragment<16xf32, #row>
    tile.store %r, %m[%c0] dims [0] : !tile.fragment<16xf32, #row>, memref<16xf32, strided<[1]>>
    gpu.return
  }

  // Along columns eight threads share, at distances 4, 8 and 16. Other types
  // than words are shuffled as words.

  // CHECK-LABEL: gpu.func @reduce_columns
  // CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : i32
  // CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : i32
  // CHECK:         %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f64
  // CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : f64 to i64
  // CHECK:         %[[WORDS:.*]] = llvm.bitcast %[[BITS]] : i64 to vector<2xi32>
  // CHECK:         nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C4]]
  // CHECK:         nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C4]]
  // CHECK:         nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C16]]
  gpu.func @reduce_columns(%o: memref<16x8xf64, strided<[8, 1]>>, %m: memref<8xf64, strided<[1]>>, %init: f64) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %o[%c0, %c0] dims [0, 1] : memref<16x8xf64, strided<[8, 1]>> -> !tile.fragment<16x8xf64, #acc>
    %z = tile.fill %init : !tile.fragment<8xf64, #column>
    %r = tile.reduce add %x, %z dim 0 : !tile.fragment<16x8xf64, #acc> -> !tile.fragment<8xf64, #column>
    tile.store %r, %m[%c0] dims [0] : !tile.fragment<8xf64, #column>, memref<8xf64, strided<[1]>>
    gpu.return
  }

  // Of 8 x 16 elements, four registers have distances 0, -1, -8 and -9. Those of
  // odd columns are added to the others by two exchanges, chains of lanes summed by
  // two, then those that begin in rows 0 and 1 go to the register that is 8 before.

  // CHECK-LABEL: gpu.func @diagonals
  // CHECK-DAG:     %[[C3:.*]] = arith.constant 3 : i32
  // CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : i32
  // CHECK-DAG:     %[[C9:.*]] = arith.constant 9 : i32
  // CHECK-DAG:     %[[C18:.*]] = arith.constant 18 : i32
  // CHECK-DAG:     %[[C31:.*]] = arith.constant 31 : i32
  // CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f32
  // CHECK:         %[[X:.*]]:4 = scf.if
  // CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %[[C31]]
  // CHECK:         %[[ROW:.*]] = arith.divui %[[LANE]], %[[C4]]
  // CHECK:         %[[COLUMN:.*]] = arith.remui %[[LANE]], %[[C4]]
  // CHECK:         %[[FIRST:.*]] = arith.cmpi ult, %[[COLUMN]], %{{.*}} : i32
  // CHECK:         %[[BEGINS:.*]] = arith.ori %[[FIRST]], %{{.*}} : i1
  // CHECK:         %[[LAST:.*]] = arith.cmpi eq, %[[LANE]], %[[C3]]
  // CHECK:         %[[BELOW:.*]] = arith.addi %[[LANE]], %[[C4]]
  // CHECK:         %[[CORNER:.*]] = arith.select %[[FIRST]], %[[C3]], %{{.*}} : i32
  // CHECK:         %[[NEAR:.*]] = arith.addi %[[LANE]], %[[C9]]
  // CHECK:         %[[FAR:.*]] = arith.addi %[[LANE]], %[[C18]]
  // CHECK:         %[[READ:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[X]]#3, %[[BELOW]]
  // CHECK:         %[[TERM:.*]] = arith.select %{{.*}}, %[[READ]], %[[ZERO]] : f32
  // CHECK:         %[[ROWS:.*]] = arith.addf %[[X]]#2, %[[TERM]]
  // CHECK:         %[[ODD:.*]] = arith.select %[[LAST]], %[[X]]#1, %[[X]]#3
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %[[ODD]], %[[CORNER]]
  // CHECK:         %[[SUM:.*]] = arith.addf %[[ROWS]], %{{.*}}
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %[[SUM]], %[[NEAR]]
  // CHECK:         %[[PAIR:.*]] = arith.addf %[[SUM]], %{{.*}}
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %[[PAIR]], %[[FAR]]
  // CHECK:         nvvm.shfl.sync idx %{{.*}}, %[[X]]#1, %[[BELOW]]
  // CHECK-COUNT-4: nvvm.shfl.sync idx
  // CHECK-NOT:     nvvm.shfl.sync
  // CHECK:         arith.select %[[BEGINS]]
  // CHECK:         arith.select %[[LAST]], %[[X]]#3, %[[ZERO]]
  // CHECK:         arith.select %[[FIRST]]
  // CHECK-NOT:     nvvm.shfl.sync
  // CHECK:         gpu.return
  gpu.func @diagonals(%o: memref<8x16xf32, strided<[16, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %x = tile.load %o[%c0, %c0] dims [0, 1] : memref<8x16xf32, strided<[16, 1]>> -> !tile.fragment<8x16xf32, #wide>
    %d = tile.sum_diagonals %x : !tile.fragment<8x16xf32, #wide>
    tile.store %d, %o[%c0, %c0] dims [0, 1] : !tile.fragment<8x16xf32, #wide>, memref<8x16xf32, strided<[16, 1]>>
    gpu.return
  }

  // Fragments cross control flow and selects as their registers.

  // CHECK-LABEL: gpu.func @control
  // CHECK:         %[[L:.*]]:2 = scf.for {{.*}} -> (f32, f32)
  // CHECK:           scf.yield %{{.*}}, %{{.*}} : f32, f32
  // CHECK:         arith.select %{{.*}}, %[[L]]#0
  // CHECK:         arith.select %{{.*}}, %[[L]]#1
  gpu.func @control(%m: memref<16xf32, strided<[1]>>, %n: index, %c: i1, %a: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = tile.fill %a : !tile.fragment<16xf32, #row>
    %l = scf.for %k = %c0 to %n step %c1 iter_args(%x = %z) -> (!tile.fragment<16xf32, #row>) {
      %y = tile.map ins(%x : !tile.fragment<16xf32, #row>) {
      ^bb0(%e: f32, %i: index):
        %0 = arith.addf %e, %a : f32
        tile.yield %0 : f32
      } -> !tile.fragment<16xf32, #row>
      scf.yield %y : !tile.fragment<16xf32, #row>
    }
    %s = scf.if %c -> (!tile.fragment<16xf32, #row>) {
      scf.yield %l : !tile.fragment<16xf32, #row>
    } else {
      scf.yield %z : !tile.fragment<16xf32, #row>
    }
    tile.store %s, %m[%c0] dims [0] : !tile.fragment<16xf32, #row>, memref<16xf32, strided<[1]>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @selected
  // CHECK-COUNT-2: arith.select
  gpu.func @selected(%m: memref<16xf32, strided<[1]>>, %c: i1, %a: f32, %b: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %y = tile.load %m[%c0] dims [0] : memref<16xf32, strided<[1]>> -> !tile.fragment<16xf32, #row>
    %z = tile.fill %a : !tile.fragment<16xf32, #row>
    %s = arith.select %c, %y, %z : !tile.fragment<16xf32, #row>
    tile.store %s, %m[%c0] dims [0] : !tile.fragment<16xf32, #row>, memref<16xf32, strided<[1]>>
    gpu.return
  }
}

// What has no tile ops stays as it is.
// CHECK-LABEL: func.func @host
// CHECK-NEXT:    return
func.func @host() {
  return
}
