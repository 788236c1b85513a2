// The code for AMX tiles against the unfused graph in f64. Where the processor
// has no tiles, a library that is preloaded computes what their instructions
// say; test/Conversion/AttnToVector/matrix-tiles.mlir checks that they are used.
//
// REQUIRES: fake-amx, avx512
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=causal --random=1 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=causal --random=1 --check --strategy=two-pass | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=causal --random=1 --check --strategy=three-pass | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=wide --random=2 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=region --random=3 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=dropped --random=4 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=window --random=5 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=few --random=6 --dims=5 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=few --random=6 --dims=23 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=few --random=6 --dims=131 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=huge --random=8 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=outside --random=7 --check | FileCheck %s
// Groups of queries that overlap: each keeps more keys than the one before, other
// ones, fewer, or all; blocks of keys end within a tile, or before one.
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=rising --random=9 --dims=519 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=moving --random=9 --dims=519 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=falling --random=9 --dims=263 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=all --random=9 --dims=300 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=amx --entry=all --random=9 --dims=131 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --arch=native --entry=causal --random=1 --check --opt-level=0 | FileCheck %s
// In f16, whose numbers are two parts in bf16, and by dot products.
// RUN: sed s/bf16/f16/g %s > %t.mlir
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=causal --random=1 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=causal --random=1 --check --strategy=two-pass | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=wide --random=2 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=dropped --random=4 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=window --random=5 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=few --random=6 --dims=23 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=moving --random=9 --dims=519 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --arch=amx --entry=all --random=9 --dims=131 --check | FileCheck %s --check-prefixes=CHECK,HALF
//
// CHECK: check: result 0: max error
// CHECK-NOT: error:
// An error of a single part would be 2e-3 and more of a number near one.
// HALF-SAME: {{ [0-9.]+e-0[4-9]|0.000[0-9]+}}, relative

// Grouped heads; queries and keys that no tile divides; two blocks of keys.
func.func @causal(%q: tensor<2x4x100x64xbf16>, %k: tensor<2x2x100x64xbf16>, %v: tensor<2x2x100x48xbf16>) -> tensor<2x4x100x48xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } : tensor<2x4x100x64xbf16>, tensor<2x2x100x64xbf16>, tensor<2x2x100x48xbf16> -> tensor<2x4x100x48xbf16>
  return %o : tensor<2x4x100x48xbf16>
}

// More tiles of features than sums are live, and a negative scale.
func.func @wide(%q: tensor<1x1x48x96xbf16>, %k: tensor<1x1x200x96xbf16>, %v: tensor<1x1x200x80xbf16>) -> (tensor<1x1x48x80xbf16>, tensor<1x1x48xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(-0.2)
      : tensor<1x1x48x96xbf16>, tensor<1x1x200x96xbf16>, tensor<1x1x200x80xbf16> -> tensor<1x1x48x80xbf16>, tensor<1x1x48xf32>
  return %o, %l : tensor<1x1x48x80xbf16>, tensor<1x1x48xf32>
}

func.func @region(%q: tensor<1x2x40x32xbf16>, %k: tensor<1x2x70x32xbf16>, %v: tensor<1x2x70x16xbf16>, %bias: tensor<2x70xf32>) -> tensor<1x2x40x16xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %j] : tensor<2x70xf32>
        %y = arith.addf %s, %x : f32
        attn.yield %y : f32
      } : tensor<1x2x40x32xbf16>, tensor<1x2x70x32xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x40x16xbf16>
  return %o : tensor<1x2x40x16xbf16>
}

func.func @dropped(%q: tensor<1x2x37x32xbf16>, %k: tensor<1x2x71x32xbf16>, %v: tensor<1x2x71x32xbf16>) -> tensor<1x2x37x32xbf16> {
  %seed = arith.constant 7 : i64
  %offset = arith.constant 3 : i64
  %o = attn.attention %q, %k, %v scale(0.125) dropout(0.3, %seed, %offset)
      : tensor<1x2x37x32xbf16>, tensor<1x2x71x32xbf16>, tensor<1x2x71x32xbf16> -> tensor<1x2x37x32xbf16>
  return %o : tensor<1x2x37x32xbf16>
}

// Rows without keys; tiles of which the mask's bounds leave a part.
func.func @window(%q: tensor<1x1x150x32xbf16>, %k: tensor<1x1x150x32xbf16>, %v: tensor<1x1x150x32xbf16>) -> tensor<1x1x150x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %size = arith.constant 20 : index
        %first = arith.constant 31 : index
        %distance = arith.subi %i, %j : index
        %near = arith.cmpi slt, %distance, %size : index
        %causal = arith.cmpi sge, %i, %j : index
        %late = arith.cmpi sge, %j, %first : index
        %a = arith.andi %near, %causal : i1
        %keep = arith.andi %a, %late : i1
        attn.yield %keep : i1
      } : tensor<1x1x150x32xbf16>, tensor<1x1x150x32xbf16>, tensor<1x1x150x32xbf16> -> tensor<1x1x150x32xbf16>
  return %o : tensor<1x1x150x32xbf16>
}

// Numbers of queries and keys are known at run time alone: fewer keys than a tile
// has, some more, and a last block of three.
func.func @few(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      : tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}

// Scores of some thousands, whose maxima rise from block to block.
func.func @huge(%q: tensor<1x1x60x64xbf16>, %k: tensor<1x1x300x64xbf16>, %v: tensor<1x1x300x32xbf16>) -> tensor<1x1x60x32xbf16> {
  %o = attn.attention %q, %k, %v scale(100.0)
      {schedule = #attn.schedule<tile = 64x32, order = linear>}
      : tensor<1x1x60x64xbf16>, tensor<1x1x300x64xbf16>, tensor<1x1x300x32xbf16> -> tensor<1x1x60x32xbf16>
  return %o : tensor<1x1x60x32xbf16>
}

// Groups of queries whose last key is long before a block of keys: they keep none
// of it.
func.func @outside(%q: tensor<1x1x80x64xbf16>, %k: tensor<1x1x160x64xbf16>, %v: tensor<1x1x160x64xbf16>) -> tensor<1x1x80x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c64 = arith.constant 64 : index
    %last = arith.addi %i, %c64 : index
    %keep = arith.cmpi sge, %last, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 80x128, order = longest_first>}
    : tensor<1x1x80x64xbf16>, tensor<1x1x160x64xbf16>, tensor<1x1x160x64xbf16> -> tensor<1x1x80x64xbf16>
  return %o : tensor<1x1x80x64xbf16>
}

func.func @rising(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  }
      {schedule = #attn.schedule<tile = 192x256, order = linear>}
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}

func.func @moving(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %size = arith.constant 45 : index
    %distance = arith.subi %i, %j : index
    %near = arith.cmpi slt, %distance, %size : index
    %causal = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %near, %causal : i1
    attn.yield %keep : i1
  }
      {schedule = #attn.schedule<tile = 192x128, order = linear>}
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}

func.func @falling(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 300 : index
    %sum = arith.addi %i, %j : index
    %keep = arith.cmpi sle, %sum, %last : index
    attn.yield %keep : i1
  }
      {schedule = #attn.schedule<tile = 192x128, order = linear>}
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}

func.func @all(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      {schedule = #attn.schedule<tile = 144x64, order = linear>}
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}
