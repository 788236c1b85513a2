// RUN: fovea-opt %s --tile-own-slots --canonicalize --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-own-slots --split-input-file -o %t.a
// RUN: fovea-opt %t.a --tile-own-slots --split-input-file -o %t.b
// RUN: diff %t.a %t.b

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!s = !tile.fragment<128x64xf32>
!w = !tile.fragment<128x64xbf16>
!h = !tile.shared<128x32xbf16, swizzle = 64>

// Each of two groups has a slot of 64 rows, for queries and for halves of results, in
// the same memory. Groups take rows there and back: the copies of the rows that a group
// has in a round, first for the one that has the last of them, which had the first
// before; stores first from the one that has the first.
// CHECK-LABEL: func.func @back(
// CHECK:       %[[QS:.*]] = tile.ring groups 2 : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
// CHECK:       %[[OS:.*]] = tile.ring groups 2 : !tile.ring<2 x !tile.shared<64x32xbf16, swizzle = 64>>
// CHECK:       %[[KS:.*]] = tile.ring : !tile.ring<2 x
// CHECK:       tile.role "load_item"
// CHECK:         scf.for %[[I:.*]] = %c0 to
// CHECK:           %[[ROW:.*]] = arith.muli %[[I]], %c128
// CHECK:           scf.for %[[N:.*]] = %c0 to %c2 step %c1 {
// CHECK:             %[[ODD:.*]] = arith.andi %[[I]], %c1
// CHECK:             %[[BACK:.*]] = arith.cmpi ne, %[[ODD]], %c0
// CHECK:             %[[BY0:.*]] = arith.select %[[BACK]], %c64, %c0
// CHECK:             %[[FIRST:.*]] = arith.cmpi ne, %[[BY0]], %c0
// CHECK:             %[[OTHER:.*]] = arith.subi %c1, %[[N]]
// CHECK:             %[[GROUP:.*]] = arith.select %[[FIRST]], %[[N]], %[[OTHER]]
// CHECK:             %[[OWN:.*]] = arith.muli %[[GROUP]], %c64
// CHECK:             %[[BY:.*]] = arith.select
// CHECK:             %[[PLACE:.*]] = arith.addi %[[OWN]], %[[BY]]
// CHECK:             %[[TWICE:.*]] = arith.muli %[[I]], %c2
// CHECK:             %[[USE:.*]] = arith.addi %[[TWICE]], %[[GROUP]]
// CHECK:             %[[SLOT:.*]] = tile.acquire %[[QS]][%[[USE]]]
// CHECK:             %[[AT:.*]] = arith.addi %[[ROW]], %[[PLACE]]
// CHECK:             tile.load_async %{{.*}}[%[[AT]], %c0] dims [0, 1] into %[[SLOT]] signals %[[QS]][%[[USE]]]
// CHECK:       tile.role "store"
// CHECK:           scf.for %[[N:.*]] = %c0 to %c2 step %c1 {
// CHECK:             %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:             %[[GROUP:.*]] = arith.select %[[FIRST]], %[[N]], %{{.*}}
// CHECK:             %[[TILE:.*]] = tile.wait %[[OS]][%[[USE:.*]]]
// CHECK:             tile.store_async %[[TILE]], %{{.*}}[%{{.*}}, %c0] dims [0, 1]
// CHECK-NEXT:        tile.wait_stores
// CHECK-NEXT:        tile.release %[[OS]][%[[USE]]]
// CHECK-NEXT:      }
// CHECK:           scf.for %{{.*}} = %c0 to %c2 step %c1 {
// CHECK:             tile.store_async %{{.*}}, %{{.*}}[%{{.*}}, %c32] dims [0, 1]
// CHECK:       tile.role "compute"
// CHECK:         %[[G:.*]] = tile.group
// CHECK:         scf.for %[[I:.*]] = %c0
// CHECK:           %[[TWICE:.*]] = arith.muli %[[I]], %c2
// CHECK:           %[[USE:.*]] = arith.addi %[[TWICE]], %[[G]]
// CHECK:           %[[TILE:.*]] = tile.wait %[[QS]][%[[USE]]]
// CHECK:           %[[DOWN:.*]] = arith.muli %[[G]], %c-64
// CHECK:           %[[Q:.*]] = tile.shift_rows %[[TILE]] by %[[DOWN]] : !tile.shared<64x64xbf16, swizzle = 128>
// CHECK:           %[[K:.*]] = tile.wait %[[KS]][%[[I]]]
// CHECK:           tile.mma wgmma %[[Q]], %[[K]] transpose_b : !tile.shared<64x64xbf16, swizzle = 128>, {{.*}} -> !tile.fragment<128x64xf32>
// CHECK:           tile.release %[[KS]][%[[I]]]
// CHECK:           tile.release %[[QS]][
// CHECK:           %[[SLOT:.*]] = tile.acquire %[[OS]][
// CHECK:           %[[O:.*]] = tile.shift_rows %[[SLOT]] by
// CHECK:           tile.write %{{.*}} column 0 into %[[O]] signals %[[OS]][
// CHECK:           tile.write %{{.*}} column 32 into
func.func @back(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %o: memref<?x64xbf16>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q, %k : memref<?x64xbf16>, memref<?x64xbf16>) outs(%o : memref<?x64xbf16>) {
  ^bb0(%b: index, %Q: !g, %K: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %qs = tile.ring : !tile.ring<1 x !q>
    %os = tile.ring : !tile.ring<1 x !h>
    %ks = tile.ring : !tile.ring<2 x !k>
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %slot = tile.acquire %ks[%i] : !tile.ring<2 x !k>
          tile.load_async %K[%c0, %c0] dims [0, 1] into %slot signals %ks[%i] : !g, !tile.ring<2 x !k>
        }
      }
      tile.role "load_item" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %row = arith.muli %i, %c128 : index
          %slot = tile.acquire %qs[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%row, %c0] dims [0, 1] into %slot signals %qs[%i] : !g, !tile.ring<1 x !q>
        }
      }
      tile.role "store" warps 2 single {
        scf.for %i = %c0 to %items step %c1 {
          %row = arith.muli %i, %c128 : index
          %use = arith.muli %i, %c2 : index
          %tile = tile.wait %os[%use] : !tile.ring<1 x !h>
          tile.store_async %tile, %O[%row, %c0] dims [0, 1] : !h, !g
          tile.wait_stores
          tile.release %os[%use] : !tile.ring<1 x !h>
          %next = arith.addi %use, %c1 : index
          %rest = tile.wait %os[%next] : !tile.ring<1 x !h>
          tile.store_async %rest, %O[%row, %c32] dims [0, 1] : !h, !g
          tile.wait_stores
          tile.release %os[%next] : !tile.ring<1 x !h>
        }
      }
      tile.role "compute" warps 8 {
        %group = tile.group
        scf.for %i = %c0 to %items step %c1 {
          %odd = arith.andi %i, %c1 : index
          %back = arith.cmpi ne, %odd, %c0 : index
          %other = arith.subi %c1, %group : index
          %apart = arith.subi %other, %group : index
          %rows = arith.muli %apart, %c64 : index
          %by = arith.select %back, %rows, %c0 : index
          %tile = tile.wait %qs[%i] : !tile.ring<1 x !q>
          %view = tile.shift_rows %tile by %by : !q
          %kt = tile.wait %ks[%i] : !tile.ring<2 x !k>
          %x = tile.mma wgmma %view, %kt transpose_b : !q, !k -> !s
          tile.release %ks[%i] : !tile.ring<2 x !k>
          tile.release %qs[%i] : !tile.ring<1 x !q>
          %y = tile.map ins(%x : !s) {
          ^bb0(%e: f32, %m: index, %n: index):
            %t = arith.truncf %e : f32 to bf16
            tile.yield %t : bf16
          } -> !w
          %use = arith.muli %i, %c2 : index
          %slot = tile.acquire %os[%use] : !tile.ring<1 x !h>
          %place = tile.shift_rows %slot by %by : !h
          tile.write %y column 0 into %place signals %os[%use] : !w, !tile.ring<1 x !h>
          %next = arith.addi %use, %c1 : index
          %slot1 = tile.acquire %os[%next] : !tile.ring<1 x !h>
          %place1 = tile.shift_rows %slot1 by %by : !h
          tile.write %y column 32 into %place1 signals %os[%next] : !w, !tile.ring<1 x !h>
        }
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!s = !tile.fragment<128x64xf32>

// Groups that keep their rows run apart from now on. The first one comes first.
// CHECK-LABEL: func.func @forth(
// CHECK:       %[[QS:.*]] = tile.ring groups 2
// CHECK:       tile.role "load"
// CHECK:           scf.for %[[N:.*]] = %c0 to %c2 step %c1 {
// CHECK-NEXT:        %[[OWN:.*]] = arith.muli %[[N]], %c64
// CHECK-NEXT:        %[[TWICE:.*]] = arith.muli %{{.*}}, %c2
// CHECK-NEXT:        %[[USE:.*]] = arith.addi %[[TWICE]], %[[N]]
// CHECK-NEXT:        tile.acquire %[[QS]][%[[USE]]]
// CHECK:       tile.role "compute"
// CHECK:         tile.group
func.func @forth(%q: memref<?x64xbf16>, %o: memref<?x?xf32>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %qs = tile.ring : !tile.ring<1 x !q>
    %ks = tile.ring : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %row = arith.muli %i, %c128 : index
          %slot = tile.acquire %qs[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%row, %c0] dims [0, 1] into %slot signals %qs[%i] : !g, !tile.ring<1 x !q>
          %other = tile.acquire %ks[%i] : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
          tile.load_async %Q[%row, %c0] dims [0, 1] into %other signals %ks[%i] : !g, !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
        }
      }
      tile.role "compute" warps 8 {
        scf.for %i = %c0 to %items step %c1 {
          %row = arith.muli %i, %c128 : index
          %tile = tile.wait %qs[%i] : !tile.ring<1 x !q>
          %k = tile.wait %ks[%i] : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
          %x = tile.mma wgmma %tile, %k transpose_b : !q, !tile.shared<64x64xbf16, swizzle = 128> -> !s
          tile.release %qs[%i] : !tile.ring<1 x !q>
          tile.release %ks[%i] : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
          tile.store %x, %O[%row, %c0] dims [0, 1] : !s, !o
        }
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!s = !tile.fragment<128x64xf32>

// Several slots, a tile that is no left operand, a copy of which `rows` leaves out a
// part, and a role that copies in other loops: all groups share them.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT:   groups
// CHECK-NOT:   tile.group
// CHECK:       return
func.func @shared(%q: memref<?x64xbf16>, %o: memref<?x?xf32>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %several = tile.ring : !tile.ring<2 x !q>
    %right = tile.ring : !tile.ring<1 x !q>
    %cut = tile.ring : !tile.ring<1 x !q>
    %apart = tile.ring : !tile.ring<1 x !q>
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %s0 = tile.acquire %several[%i] : !tile.ring<2 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] into %s0 signals %several[%i] : !g, !tile.ring<2 x !q>
          %s1 = tile.acquire %right[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] into %s1 signals %right[%i] : !g, !tile.ring<1 x !q>
          %s2 = tile.acquire %cut[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] rows(%c0, %i) into %s2 signals %cut[%i] : !g, !tile.ring<1 x !q>
        }
      }
      tile.role "load_item" warps 1 single {
        scf.for %i = %c0 to %items step %c2 {
          %s = tile.acquire %apart[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] into %s signals %apart[%i] : !g, !tile.ring<1 x !q>
        }
      }
      tile.role "compute" warps 8 {
        scf.for %i = %c0 to %items step %c1 {
          %a = tile.wait %several[%i] : !tile.ring<2 x !q>
          %r = tile.wait %right[%i] : !tile.ring<1 x !q>
          %c = tile.wait %cut[%i] : !tile.ring<1 x !q>
          %d = tile.wait %apart[%i] : !tile.ring<1 x !q>
          %x = tile.mma wgmma %a, %r transpose_b : !q, !q -> !tile.fragment<128x128xf32>
          %y = tile.mma wgmma %c, %r transpose_b : !q, !q -> !tile.fragment<128x128xf32>
          %z = tile.mma wgmma %d, %r transpose_b : !q, !q -> !tile.fragment<128x128xf32>
          tile.release %several[%i] : !tile.ring<2 x !q>
          tile.release %right[%i] : !tile.ring<1 x !q>
          tile.release %cut[%i] : !tile.ring<1 x !q>
          tile.release %apart[%i] : !tile.ring<1 x !q>
          tile.store %x, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x128xf32>, !o
          tile.store %y, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x128xf32>, !o
          tile.store %z, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x128xf32>, !o
        }
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>

// One item for each block: nothing is copied into the slot again. And a role whose
// groups exchange rows.
// CHECK-LABEL: func.func @once(
// CHECK-NOT:   groups
// CHECK:       return
func.func @once(%q: memref<?x64xbf16>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%q : memref<?x64xbf16>) {
  ^bb0(%b: index, %Q: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %qs = tile.ring : !tile.ring<1 x !q>
    tile.roles {
      tile.role "load" warps 1 single {
        %slot = tile.acquire %qs[%c0] : !tile.ring<1 x !q>
        tile.load_async %Q[%c0, %c0] dims [0, 1] into %slot signals %qs[%c0] : !g, !tile.ring<1 x !q>
      }
      tile.role "compute" warps 8 {
        %tile = tile.wait %qs[%c0] : !tile.ring<1 x !q>
        %x = tile.from_shared %tile : !q -> !tile.fragment<128x64xbf16>
        tile.release %qs[%c0] : !tile.ring<1 x !q>
        tile.store %x, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x64xbf16>, !g
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>

// CHECK-LABEL: func.func @exchange(
// CHECK-NOT:   groups
// CHECK:       return
func.func @exchange(%q: memref<?x64xbf16>, %o: memref<?x?xf32>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qs = tile.ring : !tile.ring<1 x !q>
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %slot = tile.acquire %qs[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] into %slot signals %qs[%i] : !g, !tile.ring<1 x !q>
        }
      }
      tile.role "compute" warps 8 {
        scf.for %i = %c0 to %items step %c1 {
          %tile = tile.wait %qs[%i] : !tile.ring<1 x !q>
          %zero = arith.constant 0.0 : bf16
          %f = tile.fill %zero : !tile.fragment<128x64xbf16>
          %right = tile.to_shared %f : !tile.fragment<128x64xbf16> -> !q
          %x = tile.mma wgmma %tile, %right transpose_b : !q, !q -> !tile.fragment<128x128xf32>
          tile.release %qs[%i] : !tile.ring<1 x !q>
          tile.store %x, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x128xf32>, !o
        }
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>

// A result that is written at once finds its slot free.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT:   groups
// CHECK:       return
func.func @whole(%q: memref<?x64xbf16>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 outs(%q : memref<?x64xbf16>) {
  ^bb0(%b: index, %O: !g):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %os = tile.ring : !tile.ring<1 x !q>
    tile.roles {
      tile.role "store" warps 4 single {
        scf.for %i = %c0 to %items step %c1 {
          %tile = tile.wait %os[%i] : !tile.ring<1 x !q>
          tile.store_async %tile, %O[%i, %c0] dims [0, 1] : !q, !g
          tile.wait_stores
          tile.release %os[%i] : !tile.ring<1 x !q>
        }
      }
      tile.role "compute" warps 8 {
        scf.for %i = %c0 to %items step %c1 {
          %y = tile.fill %zero : !tile.fragment<128x64xbf16>
          %slot = tile.acquire %os[%i] : !tile.ring<1 x !q>
          tile.write %y into %slot signals %os[%i] : !tile.fragment<128x64xbf16>, !tile.ring<1 x !q>
        }
      }
    }
  }
  return
}

// -----

!g = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!o = memref<?x?xf32, strided<[?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>

// Queries that nothing reads, and rows that follow from what the loop carries.
// CHECK-LABEL: func.func @unknown(
// CHECK-NOT:   groups
// CHECK:       return
func.func @unknown(%q: memref<?x64xbf16>, %o: memref<?x?xf32>, %items: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q : memref<?x64xbf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%b: index, %Q: !g, %O: !o):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %unread = tile.ring : !tile.ring<1 x !q>
    %carried = tile.ring : !tile.ring<1 x !q>
    %several = tile.ring : !tile.ring<2 x !q>
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %s0 = tile.acquire %unread[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] into %s0 signals %unread[%i] : !g, !tile.ring<1 x !q>
          %s1 = tile.acquire %carried[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %c0] dims [0, 1] into %s1 signals %carried[%i] : !g, !tile.ring<1 x !q>
        }
      }
      tile.role "compute" warps 8 {
        %end = scf.for %i = %c0 to %items step %c1 iter_args(%by = %c0) -> (index) {
          %u = tile.wait %unread[%i] : !tile.ring<1 x !q>
          tile.release %unread[%i] : !tile.ring<1 x !q>
          %t = tile.wait %carried[%i] : !tile.ring<1 x !q>
          %v = tile.shift_rows %t by %by : !q
          %right = tile.wait %several[%i] : !tile.ring<2 x !q>
          %x = tile.mma wgmma %v, %right transpose_b : !q, !q -> !tile.fragment<128x128xf32>
          tile.release %several[%i] : !tile.ring<2 x !q>
          tile.release %carried[%i] : !tile.ring<1 x !q>
          tile.store %x, %O[%c0, %c0] dims [0, 1] : !tile.fragment<128x128xf32>, !o
          %next = arith.addi %by, %c0 : index
          scf.yield %next : index
        }
      }
    }
  }
  return
}

// -----

!g = memref<4x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!h = !tile.shared<128x32xbf16, swizzle = 64>

// Of rows that run along two dimensions 64 are 16 places of the first one, of which each
// has 4. The number of valid rows is one of rows.
// CHECK-LABEL: func.func @inner(
// CHECK-SAME:    %[[LEFT:[^:]*]]: index)
// CHECK:       tile.role "load"
// CHECK:           %[[PLACE:.*]] = arith.muli %[[I:.*]], %c32
// CHECK:           scf.for %[[N:.*]] = %c0 to %c2 step %c1 {
// CHECK:             %[[OWN:.*]] = arith.muli %[[N]], %c64
// CHECK:             %[[BY:.*]] = arith.divsi %[[OWN]], %c4
// CHECK:             %[[AT:.*]] = arith.addi %[[PLACE]], %[[BY]]
// CHECK:             tile.load_async %{{.*}}[%c0, %[[AT]], %c0] dims [1, 0, 2] inner 4 into
// CHECK:       tile.role "store"
// CHECK:           %[[PLACE:.*]] = arith.muli %[[I:.*]], %c32
// CHECK:           scf.for %[[N:.*]] = %c0 to %c2 step %c1 {
// CHECK:             %[[OWN:.*]] = arith.muli %[[N]], %c64
// CHECK:             %[[BY:.*]] = arith.divsi %[[OWN]], %c4
// CHECK:             %[[AT:.*]] = arith.addi %[[PLACE]], %[[BY]]
// CHECK:             %[[VALID:.*]] = arith.subi %[[LEFT]], %[[OWN]]
// CHECK:             tile.store_async %{{.*}}, %{{.*}}[%c0, %[[AT]], %c0] dims [1, 0, 2] inner 4 valid(%[[VALID]]) : !tile.shared<64x32xbf16, swizzle = 64>
func.func @inner(%q: memref<4x?x64xbf16>, %o: memref<4x?x64xbf16>, %items: index, %left: index) {
  %c132 = arith.constant 132 : index
  tile.launch grid(%c132) warps 8 stages 2 ins(%q : memref<4x?x64xbf16>) outs(%o : memref<4x?x64xbf16>) {
  ^bb0(%b: index, %Q: !g, %O: !g):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %qs = tile.ring : !tile.ring<1 x !q>
    %os = tile.ring : !tile.ring<1 x !h>
    %ks = tile.ring : !tile.ring<2 x !k>
    tile.roles {
      tile.role "load" warps 1 single {
        scf.for %i = %c0 to %items step %c1 {
          %place = arith.muli %i, %c32 : index
          %slot = tile.acquire %qs[%i] : !tile.ring<1 x !q>
          tile.load_async %Q[%c0, %place, %c0] dims [1, 0, 2] inner 4 into %slot signals %qs[%i] : !g, !tile.ring<1 x !q>
          %other = tile.acquire %ks[%i] : !tile.ring<2 x !k>
          tile.load_async %Q[%c0, %place, %c0] dims [1, 2] into %other signals %ks[%i] : !g, !tile.ring<2 x !k>
        }
      }
      tile.role "store" warps 2 single {
        scf.for %i = %c0 to %items step %c1 {
          %place = arith.muli %i, %c32 : index
          %use = arith.muli %i, %c2 : index
          %tile = tile.wait %os[%use] : !tile.ring<1 x !h>
          tile.store_async %tile, %O[%c0, %place, %c0] dims [1, 0, 2] inner 4 valid(%left) : !h, !g
          tile.wait_stores
          tile.release %os[%use] : !tile.ring<1 x !h>
          %next = arith.addi %use, %c1 : index
          %rest = tile.wait %os[%next] : !tile.ring<1 x !h>
          tile.store_async %rest, %O[%c0, %place, %c32] dims [1, 0, 2] inner 4 valid(%left) : !h, !g
          tile.wait_stores
          tile.release %os[%next] : !tile.ring<1 x !h>
        }
      }
      tile.role "compute" warps 8 {
        scf.for %i = %c0 to %items step %c1 {
          %tile = tile.wait %qs[%i] : !tile.ring<1 x !q>
          %kt = tile.wait %ks[%i] : !tile.ring<2 x !k>
          %x = tile.mma wgmma %tile, %kt transpose_b : !q, !k -> !tile.fragment<128x64xf32>
          tile.release %ks[%i] : !tile.ring<2 x !k>
          tile.release %qs[%i] : !tile.ring<1 x !q>
          %y = tile.map ins(%x : !tile.fragment<128x64xf32>) {
          ^bb0(%e: f32, %m: index, %n: index):
            %t = arith.truncf %e : f32 to bf16
            tile.yield %t : bf16
          } -> !tile.fragment<128x64xbf16>
          %use = arith.muli %i, %c2 : index
          %slot = tile.acquire %os[%use] : !tile.ring<1 x !h>
          tile.write %y column 0 into %slot signals %os[%use] : !tile.fragment<128x64xbf16>, !tile.ring<1 x !h>
          %next = arith.addi %use, %c1 : index
          %slot1 = tile.acquire %os[%next] : !tile.ring<1 x !h>
          tile.write %y column 32 into %slot1 signals %os[%next] : !tile.fragment<128x64xbf16>, !tile.ring<1 x !h>
        }
      }
    }
  }
  return
}
