// RUN: fovea-opt %s --verify-roundtrip | FileCheck %s

#acc = #tile.layout<128x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
!q = memref<2x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>
!s = !tile.fragment<128x64xf32>

// A plain program, before layouts.
// CHECK-LABEL: func @plain
func.func @plain(%q: tensor<2x16x?x64xbf16>, %k: tensor<2x16x?x64xbf16>, %init: tensor<2x16x?x64xf32>, %n: index) -> tensor<2x16x?x64xf32> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: tile.launch kernel "scores" grid(%{{.*}}, %{{.*}}, %{{.*}}) warps 8 ins(%{{.*}}, %{{.*}} : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>) outs(%{{.*}} : tensor<2x16x?x64xf32>)
  %o = tile.launch kernel "scores" grid(%n, %n, %n) warps 8
      ins(%q, %k : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>)
      outs(%init : tensor<2x16x?x64xf32>) {
  ^bb0(%r: index, %h: index, %b: index, %Q: !q, %K: !q, %O: memref<2x16x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>):
    %row = arith.muli %r, %c128 : index
    // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] dims [2, 3] : memref<2x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>> -> !tile.shared<128x64xbf16>
    %qt = tile.load %Q[%b, %h, %row, %c0] dims [2, 3] : !q -> !tile.shared<128x64xbf16>
    // CHECK: tile.load %{{.*}}[%{{.*}}] dims [2, 3] rows(%{{.*}}, %{{.*}}) : memref<2x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>> -> !tile.shared<64x64xbf16>
    %kt = tile.load %K[%b, %h, %row, %c0] dims [2, 3] rows(%c0, %c64) : !q -> !tile.shared<64x64xbf16>
    // CHECK: tile.mma %{{.*}}, %{{.*}} transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
    %s = tile.mma %qt, %kt transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !s
    %z = tile.fill %zero : !tile.fragment<128xf32>
    // CHECK: tile.reduce max %{{.*}}, %{{.*}} dim 1{{ }}
    %m = tile.reduce max %s, %z dim 1 : !s -> !tile.fragment<128xf32>
    // CHECK: tile.reduce add %{{.*}}, %{{.*}} dim 1 : !tile.fragment<128x64xf32> -> !tile.fragment<128x8xf32>
    %parts = tile.fill %zero : !tile.fragment<128x8xf32>
    %l = tile.reduce add %s, %parts dim 1 : !s -> !tile.fragment<128x8xf32>
    // CHECK: tile.reduce add %{{.*}}, %{{.*}} dim 1 neighbors : !tile.fragment<128x8xf32> -> !tile.fragment<128x4xf32>
    %none = tile.fill %zero : !tile.fragment<128x4xf32>
    %joined = tile.reduce add %l, %none dim 1 neighbors : !tile.fragment<128x8xf32> -> !tile.fragment<128x4xf32>
    // CHECK: tile.sum_diagonals %{{.*}} : !tile.fragment<128x64xf32>
    %diagonals = tile.sum_diagonals %s : !s
    %tests = tile.map ins(%m : !tile.fragment<128xf32>) {
    ^bb1(%x: f32, %i: index):
      %large = arith.cmpf ogt, %x, %zero : f32
      tile.yield %large : i1
    } -> !tile.fragment<128xi1>
    // CHECK: tile.of_rows %{{.*}} rows 128 {
    // CHECK-NEXT: ^bb0(%{{.*}}: index, %[[LAST:.*]]: index):
    // CHECK-NEXT: tile.yield %[[LAST]] : index
    // CHECK-NEXT: } : index
    %to = tile.of_rows %c0 rows 128 {
    ^bb1(%first: index, %last: index):
      tile.yield %last : index
    } : index
    // CHECK: tile.any %{{.*}} : !tile.fragment<128xi1>
    %any = tile.any %tests : !tile.fragment<128xi1>
    // CHECK: %{{.*}}, %{{.*}} = tile.extremes %{{.*}} : !tile.fragment<128xi32>
    %number = arith.constant 0 : i32
    %numbers = tile.fill %number : !tile.fragment<128xi32>
    %least, %greatest = tile.extremes %numbers : !tile.fragment<128xi32>
    // CHECK: tile.first_only %{{.*}}{{$}}
    %short = tile.first_only %any
    // CHECK: tile.map exact ins(%{{.*}} : !tile.fragment<128x64xf32>) rows(%{{.*}} : !tile.fragment<128xf32>)
    %p = tile.map exact ins(%s : !s) rows(%m : !tile.fragment<128xf32>) {
    ^bb1(%x: f32, %y: f32, %i: index, %j: index):
      %d = arith.subf %x, %y : f32
      tile.yield %d : f32
    } -> !s
    // CHECK: tile.store %{{.*}}, %{{.*}}[{{.*}}] dims [2, 3] valid(%{{.*}})
    tile.store %p, %O[%b, %h, %row, %c0] dims [2, 3] valid(%c64) : !s, memref<2x16x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
  } -> tensor<2x16x?x64xf32>
  return %o : tensor<2x16x?x64xf32>
}

// The same kind of program with layouts, rings and roles, on memrefs.
// CHECK-LABEL: func @roles
func.func @roles(%k: memref<?x?xbf16>, %o: memref<?x?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 stages 2 ins(%k : memref<?x?xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%r: index, %K: memref<?x?xbf16, strided<[?, 1], offset: ?>>, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // CHECK: tile.ring : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
    %ring = tile.ring : !tile.ring<2 x !tile>
    // CHECK: tile.roles
    tile.roles {
      // CHECK: tile.role "load" warps 4 registers 24 single
      tile.role "load" warps 4 registers 24 single {
        %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile>
        // CHECK: tile.load_async %{{.*}}[%{{.*}}] dims [0, 1] rows(%{{.*}}, %{{.*}}) into
        tile.load_async %K[%r, %c0] dims [0, 1] rows(%c0, %r) into %slot signals %ring[%c0] : memref<?x?xbf16, strided<[?, 1], offset: ?>>, !tile.ring<2 x !tile>
      }
      // CHECK: tile.role "compute" warps 8 registers 240{{ }}
      tile.role "compute" warps 8 registers 240 {
        %a = tile.wait %ring[%c0] : !tile.ring<2 x !tile>
        // CHECK: tile.mma_async wgmma
        %t = tile.mma_async wgmma %a, %a transpose_b : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<128x64xbf16, swizzle = 128> -> !tile.token<!tile.fragment<128x128xf32, #acc>>
        // CHECK: tile.wait_mma %{{.*}} pending 1{{ }}
        %s = tile.wait_mma %t pending 1 : !tile.token<!tile.fragment<128x128xf32, #acc>>
        tile.release %ring[%c0] : !tile.ring<2 x !tile>
        tile.store %s, %O[%r, %c0] dims [0, 1] : !tile.fragment<128x128xf32, #acc>, memref<?x?xf32, strided<[?, 1], offset: ?>>
      }
    }
  }
  return
}

// A fragment becomes the columns of a tile, and is added to memory.
// CHECK-LABEL: func @adds
func.func @adds(%o: memref<?x?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?x?xf32>) {
  ^bb0(%r: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %x = tile.fill %zero : !tile.fragment<128x32xf32>
    // CHECK: tile.to_shared %{{.*}} transposed : !tile.fragment<128x32xf32> -> !tile.shared<32x128xf32>
    %a = tile.to_shared %x transposed : !tile.fragment<128x32xf32> -> !tile.shared<32x128xf32>
    // CHECK: tile.store add %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1] : !tile.fragment<128x32xf32>
    tile.store add %x, %O[%r, %c0] dims [0, 1] : !tile.fragment<128x32xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// Two slots, a row that is read, and parts of a product.
// CHECK-LABEL: func @slots
func.func @slots(%o: memref<?x?xf32>, %n: index, %x: bf16) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?x?xf32>) {
  ^bb0(%r: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %f = tile.fill %x : !tile.fragment<128x64xbf16>
    // CHECK: tile.to_shared %{{.*}} transposed slot %{{.*}} of 2 : !tile.fragment<128x64xbf16> -> !tile.shared<64x128xbf16, swizzle = 128>
    %t = tile.to_shared %f transposed slot %n of 2 : !tile.fragment<128x64xbf16> -> !tile.shared<64x128xbf16, swizzle = 128>
    // CHECK: tile.shift_rows %{{.*}} by %{{.*}} : !tile.shared<64x128xbf16, swizzle = 128>
    %same = tile.shift_rows %t by %n : !tile.shared<64x128xbf16, swizzle = 128>
    // CHECK: tile.from_shared %{{.*}} : !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<64x128xbf16>
    %g = tile.from_shared %t : !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<64x128xbf16>
    // CHECK: tile.from_shared %{{.*}} transposed : !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<128x64xbf16>
    %h = tile.from_shared %t transposed : !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<128x64xbf16>
    %line = tile.load %o[%n, %n] dims [0, 1] : memref<?x?xf32> -> !tile.shared<1x192xf32>
    // CHECK: tile.from_shared %{{.*}}[%{{.*}}] by [1, -1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32>
    %diagonals = tile.from_shared %line[%n] by [1, -1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32>
    // CHECK: tile.mma %{{.*}}, %{{.*}} inner [0, 32] :
    %a = tile.mma %f, %t inner [0, 32] : !tile.fragment<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128> -> !tile.fragment<128x128xf32>
    // CHECK: %[[FIRST:.*]] = tile.mma_async {{.*}} inner [0, 32] :
    %b = tile.mma_async %f, %t inner [0, 32] : !tile.fragment<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128> -> !tile.token<!tile.fragment<128x128xf32>>
    // CHECK: tile.mma_async {{.*}} into %[[FIRST]] inner [32, 64] : {{.*}}, !tile.token<!tile.fragment<128x128xf32>> -> !tile.token<!tile.fragment<128x128xf32>>
    %c = tile.mma_async %f, %t into %b inner [32, 64] : !tile.fragment<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128>, !tile.token<!tile.fragment<128x128xf32>> -> !tile.token<!tile.fragment<128x128xf32>>
    %d = tile.wait_mma %c : !tile.token<!tile.fragment<128x128xf32>>
  }
  return
}

// A role that stores what another writes, in turn with other blocks.
// CHECK-LABEL: func @sends
func.func @sends(%o: memref<?x?xf32>, %turns: memref<?xi32>, %lanes: memref<2x?xi32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o, %turns, %lanes : memref<?x?xf32>, memref<?xi32>, memref<2x?xi32>) {
  ^bb0(%r: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>, %T: memref<?xi32, strided<[1], offset: ?>>, %L: memref<2x?xi32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !tile.ring<1 x !tile.shared<128x32xf32>>
    tile.roles {
      tile.role "store" warps 1 single {
        // CHECK: %[[T:.*]] = tile.wait
        %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile.shared<128x32xf32>>
        // CHECK: tile.take_turn %{{.*}}[%{{.*}}] at %{{.*}} : memref<?xi32
        tile.take_turn %T[%r] at %c0 : memref<?xi32, strided<[1], offset: ?>>
        // CHECK: tile.store_async add %[[T]]
        tile.store_async add %t, %O[%c0, %c0] dims [0, 1] : !tile.shared<128x32xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
        tile.wait_stores
        tile.release %ring[%c0] : !tile.ring<1 x !tile.shared<128x32xf32>>
        // CHECK: tile.pass_turn %{{.*}}[%{{.*}}] to %{{.*}} : memref<?xi32
        tile.pass_turn %T[%r] to %n : memref<?xi32, strided<[1], offset: ?>>
        // CHECK: tile.pass_turn %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}} lanes 2 : memref<2x?xi32
        tile.pass_turn %L[%c0, %r] to %n lanes 2 : memref<2x?xi32, strided<[?, 1], offset: ?>>
      }
      tile.role "compute" warps 8 {
        %x = tile.fill %zero : !tile.fragment<128x32xf32>
        // CHECK: %[[SLOT:.*]] = tile.acquire
        %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile.shared<128x32xf32>>
        // CHECK: tile.write %{{.*}} into %[[SLOT]] signals %{{.*}}[%{{.*}}] : !tile.fragment<128x32xf32>, !tile.ring<1 x !tile.shared<128x32xf32>>
        tile.write %x into %slot signals %ring[%c0] : !tile.fragment<128x32xf32>, !tile.ring<1 x !tile.shared<128x32xf32>>
      }
    }
  }
  return
}

// What two blocks find of one program, and memory that one writes and the other
// reads.
// CHECK-LABEL: func @parts
func.func @parts(%o: memref<?x?x64xf32>, %flags: memref<?x4xi32>, %n: index) {
  tile.launch grid(%n) persistent shared warps 4 outs(%o, %flags : memref<?x?x64xf32>, memref<?x4xi32>) {
  ^bb0(%b: index, %O: memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>>, %F: memref<?x4xi32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // CHECK: %[[X:.*]] = tile.load %{{.*}}[%{{.*}}] dims [1, 2] aligned : memref
    %x = tile.load %O[%b, %c0, %c0] dims [1, 2] aligned : memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>> -> !tile.fragment<64x64xf32>
    %zero = arith.constant 0.0 : f32
    %y = tile.fill %zero : !tile.fragment<64xf32>
    // CHECK: %[[BOTH:.*]]:2 = tile.combine_parts %[[X]], %{{.*}} : !tile.fragment<64x64xf32>, !tile.fragment<64xf32> {
    // CHECK: ^bb0(%{{.*}}: !tile.fragment<64x64xf32>, %{{.*}}: !tile.fragment<64xf32>, %[[Z:.*]]: !tile.fragment<64x64xf32>, %[[W:.*]]: !tile.fragment<64xf32>):
    // CHECK:   tile.yield %[[Z]], %[[W]] : !tile.fragment<64x64xf32>, !tile.fragment<64xf32>
    %both:2 = tile.combine_parts %x, %y : !tile.fragment<64x64xf32>, !tile.fragment<64xf32> {
    ^bb0(%a: !tile.fragment<64x64xf32>, %c: !tile.fragment<64xf32>, %z: !tile.fragment<64x64xf32>, %w: !tile.fragment<64xf32>):
      tile.yield %z, %w : !tile.fragment<64x64xf32>, !tile.fragment<64xf32>
    }
    // CHECK: tile.store %[[BOTH]]#0, %{{.*}}[%{{.*}}] dims [1, 2] aligned : !tile.fragment<64x64xf32>
    tile.store %both#0, %O[%b, %c0, %c0] dims [1, 2] aligned : !tile.fragment<64x64xf32>, memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>>
    // CHECK: tile.signal %{{.*}}[%{{.*}}] : memref<?x4xi32
    tile.signal %F[%b] : memref<?x4xi32, strided<[?, 1], offset: ?>>
    // CHECK: tile.await %{{.*}}[%{{.*}}] : memref<?x4xi32
    tile.await %F[%c0] : memref<?x4xi32, strided<[?, 1], offset: ?>>
  }
  return
}

// Some columns of a fragment, in the place of another ring's tile.
// CHECK-LABEL: func @sends_in_place
func.func @sends_in_place(%p: memref<?x?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%p : memref<?x?xf32>) {
  ^bb0(%r: index, %P: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    // CHECK: %[[Q:.*]] = tile.ring : !tile.ring<2 x !tile.shared<128x64xf32>>
    %q = tile.ring : !tile.ring<2 x !tile.shared<128x64xf32>>
    // CHECK: %[[O:.*]] = tile.ring shares %[[Q]] : !tile.ring<2 x !tile.shared<128x32xf32>>, !tile.ring<2 x !tile.shared<128x64xf32>>
    %o = tile.ring shares %q : !tile.ring<2 x !tile.shared<128x32xf32>>, !tile.ring<2 x !tile.shared<128x64xf32>>
    %x = tile.fill %zero : !tile.fragment<128x64xf32>
    %slot = tile.acquire %o[%c0] : !tile.ring<2 x !tile.shared<128x32xf32>>
    // CHECK: tile.write %{{.*}} column 32 into %{{.*}} signals %[[O]][%{{.*}}] : !tile.fragment<128x64xf32>, !tile.ring<2 x !tile.shared<128x32xf32>>
    tile.write %x column 32 into %slot signals %o[%c0] : !tile.fragment<128x64xf32>, !tile.ring<2 x !tile.shared<128x32xf32>>
  }
  return
}

// Slots of warp groups, whose tiles have 64 rows of 128.
// CHECK-LABEL: func @slots_of_groups
func.func @slots_of_groups(%p: memref<?x?xbf16>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%p : memref<?x?xbf16>) {
  ^bb0(%r: index, %P: memref<?x?xbf16, strided<[?, 1], offset: ?>>):
    %c-64 = arith.constant -64 : index
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    // CHECK: %[[Q:.*]] = tile.ring groups 2 : !tile.ring<4 x !tile.shared<64x64xbf16, swizzle = 128>>
    %q = tile.ring groups 2 : !tile.ring<4 x !tile.shared<64x64xbf16, swizzle = 128>>
    tile.roles {
      tile.role "compute" warps 8 {
        %g = tile.group
        %by = arith.muli %g, %c-64 : index
        %x = tile.fill %zero : !tile.fragment<128x64xbf16>
        %slot = tile.acquire %q[%g] : !tile.ring<4 x !tile.shared<64x64xbf16, swizzle = 128>>
        // CHECK: %[[VIEW:.*]] = tile.shift_rows %{{.*}} by %{{.*}} : !tile.shared<64x64xbf16, swizzle = 128>
        %view = tile.shift_rows %slot by %by : !tile.shared<64x64xbf16, swizzle = 128>
        // CHECK: tile.write %{{.*}} into %[[VIEW]] signals %[[Q]][%{{.*}}] : !tile.fragment<128x64xbf16>,
        tile.write %x into %view signals %q[%g] : !tile.fragment<128x64xbf16>, !tile.ring<4 x !tile.shared<64x64xbf16, swizzle = 128>>
        // CHECK: tile.mma wgmma %[[VIEW]], %[[VIEW]] : {{.*}} -> !tile.fragment<128x64xf32>
        %y = tile.mma wgmma %view, %view : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> !tile.fragment<128x64xf32>
        // CHECK: tile.mma_async wgmma %[[VIEW]], %[[VIEW]] rows 100 :
        %z = tile.mma_async wgmma %view, %view rows 100 : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> !tile.token<!tile.fragment<128x64xf32>>
      }
    }
  }
  return
}

// Results on their way to global memory.
// CHECK-LABEL: func @stores
func.func @stores(%o: memref<?x?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?x?xf32>) {
  ^bb0(%r: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %ring = tile.ring : !tile.ring<2 x !tile.shared<128x32xf32>>
    %x = tile.fill %zero : !tile.fragment<128x32xf32>
    // CHECK: %[[A:.*]] = tile.to_shared %{{.*}} : !tile.fragment<128x32xf32> -> !tile.shared<128x32xf32>
    %a = tile.to_shared %x : !tile.fragment<128x32xf32> -> !tile.shared<128x32xf32>
    // CHECK: %[[B:.*]] = tile.to_shared %{{.*}} reuses %{{.*}} : !tile.fragment<128x32xf32>, !tile.ring<2 x !tile.shared<128x32xf32>> -> !tile.shared<128x32xf32>
    %b = tile.to_shared %x reuses %ring : !tile.fragment<128x32xf32>, !tile.ring<2 x !tile.shared<128x32xf32>> -> !tile.shared<128x32xf32>
    // CHECK: tile.store_async %[[A]], %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1] : !tile.shared<128x32xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    tile.store_async %a, %O[%r, %c0] dims [0, 1] : !tile.shared<128x32xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    // CHECK: tile.store_async add %[[B]], %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1]
    tile.store_async add %b, %O[%r, %c0] dims [0, 1] : !tile.shared<128x32xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    // CHECK: tile.store_async %[[A]], %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1] valid(%{{.*}}) : !tile.shared<128x32xf32>
    tile.store_async %a, %O[%r, %c0] dims [0, 1] valid(%n) : !tile.shared<128x32xf32>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    // CHECK: tile.wait_stores pending 1{{$}}
    tile.wait_stores pending 1
    // CHECK: tile.wait_stores{{$}}
    tile.wait_stores
  }
  return
}

// Programs that blocks are dealt, and a role that deals them.
// CHECK-LABEL: func @dealt
func.func @dealt(%o: memref<?x?xf32>, %p: memref<1xi32>, %n: index) {
  // CHECK: grid(%{{.*}}) persistent dealt warps 4
  tile.launch grid(%n) persistent dealt warps 4 outs(%o, %p : memref<?x?xf32>, memref<1xi32>) {
  ^bb0(%b: index, %O: memref<?x?xf32, strided<[?, 1], offset: ?>>, %P: memref<1xi32, strided<[1], offset: ?>>):
    // CHECK: tile.dealt_count %[[P:.*]] of %{{.*}} : memref<1xi32, strided<[1], offset: ?>>
    %count = tile.dealt_count %P of %n : memref<1xi32, strided<[1], offset: ?>>
    // CHECK: tile.dealt %[[P]][%{{.*}}] of %{{.*}} : memref<1xi32, strided<[1], offset: ?>>
    %item = tile.dealt %P[%count] of %n : memref<1xi32, strided<[1], offset: ?>>
    // CHECK: tile.of_item %{{.*}} {
    // CHECK:   tile.yield %{{.*}}, %{{.*}} : index, i1
    // CHECK: } : index, i1
    %twice:2 = tile.of_item %item {
    ^bb0(%i: index):
      %sum = arith.addi %i, %i : index
      %is = arith.cmpi slt, %sum, %n : index
      tile.yield %sum, %is : index, i1
    } : index, i1
    %ring = tile.ring : !tile.ring<2 x !tile.shared<1x4xi32>>
    tile.roles {
      tile.role "deal" warps 1 single {
        // CHECK: %[[N:.*]] = tile.claim %[[P]] : memref<1xi32, strided<[1], offset: ?>>
        %number = tile.claim %P : memref<1xi32, strided<[1], offset: ?>>
        // CHECK: %[[S:.*]] = tile.acquire
        %slot = tile.acquire %ring[%b] : !tile.ring<2 x !tile.shared<1x4xi32>>
        %small = arith.index_cast %number : index to i32
        %wide = arith.index_cast %number : index to i64
        // CHECK: tile.publish %{{.*}}, %{{.*}} into %[[S]] signals %{{.*}}[%{{.*}}] : !tile.ring<2 x !tile.shared<1x4xi32>>, i32, i64
        tile.publish %small, %wide into %slot signals %ring[%b] : !tile.ring<2 x !tile.shared<1x4xi32>>, i32, i64
      }
      tile.role "compute" warps 4 {
        // CHECK: %[[T:.*]] = tile.wait
        %tile = tile.wait %ring[%b] : !tile.ring<2 x !tile.shared<1x4xi32>>
        // CHECK: tile.read_numbers %[[T]] : !tile.shared<1x4xi32> -> i32, i64
        %number:2 = tile.read_numbers %tile : !tile.shared<1x4xi32> -> i32, i64
        tile.release %ring[%b] : !tile.ring<2 x !tile.shared<1x4xi32>>
      }
    }
  }
  return
}

// CHECK-LABEL: func @clipped
func.func @clipped(%o: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>) {
  // CHECK: tile.tensor_map clipped %{{.*}} dims [1, 2] : memref<?x?x64xbf16, {{.*}}> -> !tile.tensor_map<4 x !tile.shared<128x64xbf16, swizzle = 128>>
  %map = tile.tensor_map clipped %o dims [1, 2] : memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>> -> !tile.tensor_map<4 x !tile.shared<128x64xbf16, swizzle = 128>>
  return
}

// Rows that a region places.

// CHECK-LABEL: func @places
func.func @places(%cache: memref<?x16x8x64xbf16, strided<[?, ?, ?, 1]>>, %map: !tile.tensor_map<4 x !tile.shared<16x64xbf16, swizzle = 128>>, %table: memref<?xindex>, %h: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %ring = tile.ring : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK: tile.load %{{.*}} dims [2, 3] runs 1 {
  // CHECK-NEXT: ^bb0(%[[R:.*]]: index):
  // CHECK:        tile.yield %[[R]], %{{.*}}, %{{.*}} : index, index, index
  // CHECK-NEXT: } : memref<?x16x8x64xbf16, strided<[?, ?, ?, 1]>> -> !tile.shared<64x64xbf16>
  %a = tile.load %cache dims [2, 3] runs 1 {
  ^bb0(%r: index):
    tile.yield %r, %c0, %h : index, index, index
  } : memref<?x16x8x64xbf16, strided<[?, ?, ?, 1]>> -> !tile.shared<64x64xbf16>
  %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK: tile.load_async %{{.*}} dims [1, 3] rows(%{{.*}}, %{{.*}}) whole_runs runs 16 {
  // CHECK:        memref.load
  // CHECK:      } into %{{.*}} signals %{{.*}}[%{{.*}}] : !tile.tensor_map<4 x !tile.shared<16x64xbf16, swizzle = 128>>, !tile.ring<2 x
  tile.load_async %map dims [1, 3] rows(%c0, %h) whole_runs runs 16 {
  ^bb0(%r: index):
    %n = arith.divui %r, %c16 : index
    %page = memref.load %table[%n] : memref<?xindex>
    tile.yield %page, %c0, %h : index, index, index
  } into %slot signals %ring[%c0] : !tile.tensor_map<4 x !tile.shared<16x64xbf16, swizzle = 128>>, !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
  return
}

// Runs of which all panels are copied at once.
// CHECK-LABEL: func @runs
func.func @runs(%cache: memref<?x16x8x128xbf16, strided<[?, ?, ?, 1]>>, %page: index) {
  %c0 = arith.constant 0 : index
  // CHECK: tile.tensor_map %{{.*}} dims [1, 3] : {{.*}} -> !tile.tensor_map<5 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>
  %map = tile.tensor_map %cache dims [1, 3] : memref<?x16x8x128xbf16, strided<[?, ?, ?, 1]>> -> !tile.tensor_map<5 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>
  // CHECK: tile.ring : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
  %ring = tile.ring : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
  %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
  tile.load_async %map dims [1, 3] runs 16 {
  ^bb0(%r: index):
    tile.yield %page, %c0, %c0 : index, index, index
  } into %slot signals %ring[%c0] : !tile.tensor_map<5 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
  return
}

// Rows of memory that are asked for.
// CHECK-LABEL: func @prefetch
// CHECK-SAME:    %[[TABLE:[^:]*]]: memref<?x?xi32>, %[[NUMBERS:[^:]*]]: memref<?xi32>, %[[B:[^:]*]]: index
func.func @prefetch(%table: memref<?x?xi32>, %numbers: memref<?xi32>, %b: index) {
  // CHECK: tile.prefetch %[[TABLE]][%[[B]]] : memref<?x?xi32>
  tile.prefetch %table[%b] : memref<?x?xi32>
  // CHECK: tile.prefetch %[[NUMBERS]][] : memref<?xi32>
  tile.prefetch %numbers[] : memref<?xi32>
  return
}

// Bytes that are widened, in a tile of the op's own and in a slot.
// CHECK-LABEL: func @widening
func.func @widening(%bytes: !tile.shared<64x32xi8, swizzle = 32>, %ring: !tile.ring<2 x !tile.shared<64x32xbf16, swizzle = 64>>, %use: index) {
  // CHECK: tile.widen %{{.*}} from f8E4M3FN warps 4 : !tile.shared<64x32xi8, swizzle = 32> -> !tile.shared<64x32xf16>
  %wide = tile.widen %bytes from f8E4M3FN warps 4 : !tile.shared<64x32xi8, swizzle = 32> -> !tile.shared<64x32xf16>
  %slot = tile.acquire %ring[%use] : !tile.ring<2 x !tile.shared<64x32xbf16, swizzle = 64>>
  // CHECK: tile.widen_into %{{.*}} from f8E4M3FN warps 8 into %{{.*}} signals %{{.*}}[%{{.*}}] : !tile.shared<64x32xi8, swizzle = 32>, !tile.ring<2 x !tile.shared<64x32xbf16, swizzle = 64>>
  tile.widen_into %bytes from f8E4M3FN warps 8 into %slot signals %ring[%use] : !tile.shared<64x32xi8, swizzle = 32>, !tile.ring<2 x !tile.shared<64x32xbf16, swizzle = 64>>
  return
}

// A product that widens bytes.
// CHECK-LABEL: func @bytes
func.func @bytes(%a: !tile.fragment<16x32xf16>, %b: !tile.shared<16x32xi8>, %s: !tile.shared<16x16xbf16>, %c: !tile.fragment<16x32xf32>) {
  // CHECK: tile.mma %{{.*}}, %{{.*}} from f8E4M3FN transpose_b rows 4 : !tile.fragment<16x32xf16>, !tile.shared<16x32xi8> -> !tile.fragment<16x16xf32>
  %x = tile.mma %a, %b from f8E4M3FN transpose_b rows 4 : !tile.fragment<16x32xf16>, !tile.shared<16x32xi8> -> !tile.fragment<16x16xf32>
  // CHECK: tile.mma mma_sync %{{.*}}, %{{.*}} from f8E4M3FN into %{{.*}} : !tile.shared<16x16xbf16>, !tile.shared<16x32xi8>, !tile.fragment<16x32xf32> -> !tile.fragment<16x32xf32>
  %y = tile.mma mma_sync %s, %b from f8E4M3FN into %c : !tile.shared<16x16xbf16>, !tile.shared<16x32xi8>, !tile.fragment<16x32xf32> -> !tile.fragment<16x32xf32>
  return
}

// A product of which some rows are needed.
// CHECK-LABEL: func @few_rows
func.func @few_rows(%a: !tile.shared<64x32xf16>, %b: !tile.shared<16x32xf16>) {
  // CHECK: tile.mma %{{.*}}, %{{.*}} transpose_b rows 4 : !tile.shared<64x32xf16>, !tile.shared<16x32xf16> -> !tile.fragment<64x16xf32>
  %x = tile.mma %a, %b transpose_b rows 4 : !tile.shared<64x32xf16>, !tile.shared<16x32xf16> -> !tile.fragment<64x16xf32>
  // CHECK: tile.mma_async wgmma %{{.*}}, %{{.*}} transpose_b rows 64 : !tile.shared<64x32xf16>, !tile.shared<16x32xf16> -> !tile.token<!tile.fragment<64x16xf32>>
  %y = tile.mma_async wgmma %a, %b transpose_b rows 64 : !tile.shared<64x32xf16>, !tile.shared<16x32xf16> -> !tile.token<!tile.fragment<64x16xf32>>
  return
}

// Clusters of two blocks, which fill a ring together.
// CHECK-LABEL: func @cluster
func.func @cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  // CHECK: tile.launch grid(%{{.*}}) cluster 2 persistent linear warps 4 ins(
  tile.launch grid(%n) cluster 2 persistent linear warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // CHECK: %[[RING:.*]] = tile.ring cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    %ring = tile.ring cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    // CHECK: tile.cluster_rank
    %rank = tile.cluster_rank
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    tile.load_async %X[%c0, %c0] dims [0, 1] into %slot signals %ring[%c0] : memref<?x128xbf16, strided<[?, 1], offset: ?>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    %full = tile.wait %ring[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    tile.release %ring[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
  }
  return
}

// CHECK-LABEL: func.func @group_turns(
func.func @group_turns(%n: index, %o: memref<1xf32>) {
  // CHECK: tile.launch grid(%{{.*}}) warps 8 alternating in_turn stages 2 outs
  tile.launch grid(%n) warps 8 alternating in_turn stages 2 outs(%o : memref<1xf32>) {
  ^bb0(%b: index, %O: memref<1xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "compute" warps 8 {
        // CHECK: tile.take_group_turn{{$}}
        tile.take_group_turn
        // CHECK-NEXT: tile.pass_group_turn{{$}}
        tile.pass_group_turn
      }
    }
  }
  return
}

// Rows of a tile that run along two dimensions.
// CHECK-LABEL: func @inner_rows
func.func @inner_rows(%q: memref<1x8x?x64xbf16>, %f: !tile.fragment<128x64xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  // CHECK: tile.load %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16> -> !tile.shared<128x64xbf16, swizzle = 128>
  %t = tile.load %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16> -> !tile
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 4 aligned valid(%{{.*}}) : !tile.fragment<128x64xbf16>, memref<1x8x?x64xbf16>
  tile.store %f, %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 4 aligned valid(%n) : !tile.fragment<128x64xbf16>, memref<1x8x?x64xbf16>
  %ring = tile.ring : !tile.ring<1 x !tile>
  %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
  // CHECK: tile.load_async %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 8 into %{{.*}} signals %{{.*}}[%{{.*}}] : memref<1x8x?x64xbf16>,
  tile.load_async %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 8 into %slot signals %ring[%c0] : memref<1x8x?x64xbf16>, !tile.ring<1 x !tile>
  // CHECK: tile.store_async %{{.*}}, %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 2 valid(%{{.*}}) : !tile.shared<128x64xbf16, swizzle = 128>, memref<1x8x?x64xbf16>
  tile.store_async %t, %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 2 valid(%n) : !tile, memref<1x8x?x64xbf16>
  // CHECK: tile.load %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 4 used 3 : memref<1x8x?x64xbf16> -> !tile.shared<128x64xbf16, swizzle = 128>
  %u = tile.load %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 4 used 3 : memref<1x8x?x64xbf16> -> !tile
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 4 used 3 aligned valid(%{{.*}}) : !tile.fragment<128x64xbf16>, memref<1x8x?x64xbf16>
  tile.store %f, %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 4 used 3 aligned valid(%n) : !tile.fragment<128x64xbf16>, memref<1x8x?x64xbf16>
  // CHECK: tile.store_async %{{.*}}, %{{.*}}[%{{.*}}] dims [2, 1, 3] inner 8 used 7 valid(%{{.*}}) : !tile.shared<128x64xbf16, swizzle = 128>, memref<1x8x?x64xbf16>
  tile.store_async %t, %q[%c0, %c0, %n, %c0] dims [2, 1, 3] inner 8 used 7 valid(%n) : !tile, memref<1x8x?x64xbf16>
  // CHECK: tile.tensor_map %{{.*}} dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16> -> !tile.tensor_map<4 x !tile.shared<128x64xbf16, swizzle = 128>>
  %map = tile.tensor_map %q dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16> -> !tile.tensor_map<4 x !tile>
  // CHECK: tile.tensor_map clipped %{{.*}} dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16> -> !tile.tensor_map<5 x !tile.shared<128x64xbf16, swizzle = 128>>
  %clipped = tile.tensor_map clipped %q dims [2, 1, 3] inner 4 : memref<1x8x?x64xbf16> -> !tile.tensor_map<5 x !tile>
  return
}
