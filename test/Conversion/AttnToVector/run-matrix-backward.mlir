// The backward pass by AMX tiles, against the gradient of the unfused graph in
// f64. Where the processor has no tiles, a library that is preloaded computes
// what their instructions say; matrix-backward.mlir checks that they are used.
//
// REQUIRES: fake-amx, avx512
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=causal --random=1 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=wide --random=2 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=region --random=3 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=dropped --random=4 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=window --random=5 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=few --random=6 --dims=5 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=few --random=6 --dims=23 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=few --random=6 --dims=131 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=outside --random=7 --check | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=native --entry=causal --random=1 --check --opt-level=0 | FileCheck %s
// RUN: env LD_PRELOAD=%fake-amx fovea-run %s --grad --arch=amx --entry=absent --random=1 | FileCheck %s --check-prefix=ABSENT
// In f16, whose numbers are two parts in bf16.
// RUN: sed s/bf16/f16/g %s > %t.mlir
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=causal --random=1 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=wide --random=2 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=region --random=3 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=dropped --random=4 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=window --random=5 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=few --random=6 --dims=5 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=few --random=6 --dims=131 --check | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: env LD_PRELOAD=%fake-amx fovea-run %t.mlir --grad --arch=amx --entry=outside --random=7 --check | FileCheck %s --check-prefixes=CHECK,HALF
//
// CHECK: check: result 0: max error
// CHECK-NOT: error:
// An error of a single part would be 2e-3 and more.
// HALF: check: result 1: {{.*}} relative {{[0-9.]+e-0[4-9]|0.000[0-9]+}} (
// HALF: check: result 2: {{.*}} relative {{[0-9.]+e-0[4-9]|0.000[0-9]+}} (
// HALF: check: result 3: {{.*}} relative {{[0-9.]+e-0[4-9]|0.000[0-9]+}} (
// HALF-NOT: error:

// Grouped heads; queries and keys that no tile divides.
func.func @causal(%q: tensor<2x4x100x64xbf16>, %k: tensor<2x2x100x64xbf16>, %v: tensor<2x2x100x32xbf16>) -> tensor<2x4x100x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } : tensor<2x4x100x64xbf16>, tensor<2x2x100x64xbf16>, tensor<2x2x100x32xbf16> -> tensor<2x4x100x32xbf16>
  return %o : tensor<2x4x100x32xbf16>
}

// More tiles of features than sums are live, and a negative scale.
func.func @wide(%q: tensor<1x1x48x96xbf16>, %k: tensor<1x1x200x96xbf16>, %v: tensor<1x1x200x160xbf16>) -> tensor<1x1x48x160xbf16> {
  %o = attn.attention %q, %k, %v scale(-0.2)
      : tensor<1x1x48x96xbf16>, tensor<1x1x200x96xbf16>, tensor<1x1x200x160xbf16> -> tensor<1x1x48x160xbf16>
  return %o : tensor<1x1x48x160xbf16>
}

// A captured tensor has a gradient, too: scores are written.
func.func @region(%q: tensor<1x2x40x32xbf16>, %k: tensor<1x2x70x32xbf16>, %v: tensor<1x2x70x32xbf16>, %bias: tensor<2x70xf32>) -> tensor<1x2x40x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %j] : tensor<2x70xf32>
        %y = arith.addf %s, %x : f32
        %z = math.tanh %y : f32
        attn.yield %z : f32
      } : tensor<1x2x40x32xbf16>, tensor<1x2x70x32xbf16>, tensor<1x2x70x32xbf16> -> tensor<1x2x40x32xbf16>
  return %o : tensor<1x2x40x32xbf16>
}

func.func @dropped(%q: tensor<1x2x37x32xbf16>, %k: tensor<1x2x71x32xbf16>, %v: tensor<1x2x71x32xbf16>) -> tensor<1x2x37x32xbf16> {
  %seed = arith.constant 7 : i64
  %offset = arith.constant 3 : i64
  %o = attn.attention %q, %k, %v scale(0.125) dropout(0.3, %seed, %offset)
      : tensor<1x2x37x32xbf16>, tensor<1x2x71x32xbf16>, tensor<1x2x71x32xbf16> -> tensor<1x2x37x32xbf16>
  return %o : tensor<1x2x37x32xbf16>
}

// Rows without keys; tiles of which the mask's bounds leave a part.
func.func @window(%q: tensor<1x1x450x32xbf16>, %k: tensor<1x1x450x32xbf16>, %v: tensor<1x1x450x32xbf16>) -> tensor<1x1x450x32xbf16> {
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
      } : tensor<1x1x450x32xbf16>, tensor<1x1x450x32xbf16>, tensor<1x1x450x32xbf16> -> tensor<1x1x450x32xbf16>
  return %o : tensor<1x1x450x32xbf16>
}

// Numbers of queries and keys are known at run time alone: fewer keys than a tile
// has, some more, and a last block of three.
func.func @few(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
      : tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
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
  } : tensor<1x1x80x64xbf16>, tensor<1x1x160x64xbf16>, tensor<1x1x160x64xbf16> -> tensor<1x1x80x64xbf16>
  return %o : tensor<1x1x80x64xbf16>
}

// Queries that keep no key, and their outputs' gradients, are not numbers, which
// whole tiles of queries do not add to the gradients of keys and values.
// ABSENT: gradient of %k): bf16 1x1x70x32, mean {{-?[0-9][^n]*}}, min -{{[0-9].*}}, max {{[0-9]}}
// ABSENT: gradient of %v): bf16 1x1x70x32, mean {{-?[0-9][^n]*}}, min -{{[0-9].*}}, max {{[0-9]}}
func.func @absent(%q0: tensor<1x1x25x32xbf16>, %k: tensor<1x1x70x32xbf16>, %v: tensor<1x1x70x32xbf16>, %w0: tensor<1x1x25x32xbf16>) -> tensor<1x1x40x32xbf16> {
  %nan = arith.constant dense<0x7FC0> : tensor<1x1x40x32xbf16>
  %q = tensor.insert_slice %q0 into %nan[0, 0, 0, 0] [1, 1, 25, 32] [1, 1, 1, 1] : tensor<1x1x25x32xbf16> into tensor<1x1x40x32xbf16>
  %w = tensor.insert_slice %w0 into %nan[0, 0, 0, 0] [1, 1, 25, 32] [1, 1, 1, 1] : tensor<1x1x25x32xbf16> into tensor<1x1x40x32xbf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %end = arith.constant 25 : index
        %keep = arith.cmpi slt, %i, %end : index
        attn.yield %keep : i1
      } : tensor<1x1x40x32xbf16>, tensor<1x1x70x32xbf16>, tensor<1x1x70x32xbf16> -> tensor<1x1x40x32xbf16>
  %r = arith.mulf %o, %w : tensor<1x1x40x32xbf16>
  return %r : tensor<1x1x40x32xbf16>
}
