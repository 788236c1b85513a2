// Keys and values of 8 bits, widened by a role of their own under schedules written by
// hand: keys split, one or two groups of warps that widen, tiles of few rows, head dims
// whose units divide a role's threads or do not, f16 and bf16, ops in front that widen
// whole tensors, and persistent blocks; and by products: warps that share keys or have
// rows of their own, parts, tiles of two rows of warps.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/pages.py write %t
//
// DEFINE: %{entry} = d32
// DEFINE: %{check} = fovea-run %s --entry=%{entry} --target=sm_90a --simulate --seeds=3 --random=1 --integers=0:72 --check | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --entry=split --input=%t/float16-q.npy --input=%t/int8-128-nan-k.npy --input=%t/int8-128-nan-v.npy --input=%t/128-nan-table.npy --input=%t/lengths.npy --output=%t/nan.npy
// RUN: fovea-run %s --target=sm_90a --simulate --entry=split --input=%t/float16-q.npy --input=%t/int8-128-clean-k.npy --input=%t/int8-128-clean-v.npy --input=%t/128-clean-table.npy --input=%t/lengths.npy --output=%t/clean.npy --seeds=3 --check | FileCheck %s
// RUN: %python %S/Inputs/pages.py compare %t/clean.npy %t/nan.npy
//
// RUN: %{check}
// REDEFINE: %{entry} = d96
// RUN: %{check}
// REDEFINE: %{entry} = d256
// RUN: %{check}
// REDEFINE: %{entry} = d64
// RUN: %{check}
// REDEFINE: %{entry} = shared
// RUN: %{check}
// REDEFINE: %{entry} = owned
// RUN: %{check}
// REDEFINE: %{entry} = rows
// RUN: %{check}
// REDEFINE: %{entry} = keys_read
// RUN: %{check}
// REDEFINE: %{entry} = values_read
// RUN: %{check}
//
// Machine code takes queries from registers where keys are bytes.
// RUN: fovea-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// PTX-LABEL: .entry values_read_
// PTX:       cvt.rn.f16x2.e4m3x2
// PTX:       mma.sync.aligned.m16n8k16
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

#rows = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

func.func private @gather128(%cache: tensor<?x128x1x64xi8>, %table: tensor<?x?xi32>) -> tensor<?x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = arith.constant 128 : index
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %bits = tensor.extract %cache[%i, %slot, %h, %d] : tensor<?x128x1x64xi8>
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  return %k : tensor<?x1x?x64xf16>
}

func.func @split(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x128x1x64xi8>, %vc: tensor<?x128x1x64xi8>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %k = call @gather128(%kc, %table) : (tensor<?x128x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %v = call @gather128(%vc, %table) : (tensor<?x128x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 3, split = 3, widen = 8>} : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @d32(%q: tensor<1x2x9x32xbf16>, %ks: tensor<1x2x145x32xi8>, %vs: tensor<1x2x145x32xi8>) -> tensor<1x2x9x32xbf16> {
  %e = tensor.empty() : tensor<1x2x145x32xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x32xi8>) outs(%e : tensor<1x2x145x32xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x32xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x32xi8>) outs(%e : tensor<1x2x145x32xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x32xbf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 2, widen = 4>} : tensor<1x2x9x32xbf16>, tensor<1x2x145x32xbf16>, tensor<1x2x145x32xbf16> -> tensor<1x2x9x32xbf16>
  return %o : tensor<1x2x9x32xbf16>
}

func.func @d96(%q: tensor<1x2x9x96xf16>, %ks: tensor<1x2x145x96xi8>, %vs: tensor<1x2x145x96xi8>) -> tensor<1x2x9x96xf16> {
  %e = tensor.empty() : tensor<1x2x145x96xf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x96xi8>) outs(%e : tensor<1x2x145x96xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<1x2x145x96xf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x96xi8>) outs(%e : tensor<1x2x145x96xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<1x2x145x96xf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 64x48, order = linear, warps = 4, stages = 4, maximum = stale, widen = 8>} : tensor<1x2x9x96xf16>, tensor<1x2x145x96xf16>, tensor<1x2x145x96xf16> -> tensor<1x2x9x96xf16>
  return %o : tensor<1x2x9x96xf16>
}

func.func @d256(%q: tensor<1x2x9x256xbf16>, %ks: tensor<1x2x145x256xi8>, %vs: tensor<1x2x145x256xi8>) -> tensor<1x2x9x256xbf16> {
  %e = tensor.empty() : tensor<1x2x145x256xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x256xi8>) outs(%e : tensor<1x2x145x256xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x256xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x256xi8>) outs(%e : tensor<1x2x145x256xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x256xbf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, widen = 4>} : tensor<1x2x9x256xbf16>, tensor<1x2x145x256xbf16>, tensor<1x2x145x256xbf16> -> tensor<1x2x9x256xbf16>
  return %o : tensor<1x2x9x256xbf16>
}

func.func @d64(%q: tensor<1x2x300x64xbf16>, %ks: tensor<1x2x145x64xi8>, %vs: tensor<1x2x145x64xi8>) -> tensor<1x2x300x64xbf16> {
  %e = tensor.empty() : tensor<1x2x145x64xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 3, blocks = persistent, widen = 4>} : tensor<1x2x300x64xbf16>, tensor<1x2x145x64xbf16>, tensor<1x2x145x64xbf16> -> tensor<1x2x300x64xbf16>
  return %o : tensor<1x2x300x64xbf16>
}

func.func @shared(%q: tensor<1x2x9x128xbf16>, %ks: tensor<1x2x445x128xi8>, %vs: tensor<1x2x445x128xi8>) -> tensor<1x2x9x128xbf16> {
  %e = tensor.empty() : tensor<1x2x445x128xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x445x128xi8>) outs(%e : tensor<1x2x445x128xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x445x128xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x445x128xi8>) outs(%e : tensor<1x2x445x128xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x445x128xbf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 16x128, order = linear, warps = 4, stages = 3, split = 2, widen = products>} : tensor<1x2x9x128xbf16>, tensor<1x2x445x128xbf16>, tensor<1x2x445x128xbf16> -> tensor<1x2x9x128xbf16>
  return %o : tensor<1x2x9x128xbf16>
}

func.func @owned(%q: tensor<1x2x21x96xf16>, %ks: tensor<1x2x145x96xi8>, %vs: tensor<1x2x145x96xi8>) -> tensor<1x2x21x96xf16> {
  %e = tensor.empty() : tensor<1x2x145x96xf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x96xi8>) outs(%e : tensor<1x2x145x96xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<1x2x145x96xf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x96xi8>) outs(%e : tensor<1x2x145x96xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<1x2x145x96xf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 32x48, order = linear, warps = 2, stages = 2, widen = products>} : tensor<1x2x21x96xf16>, tensor<1x2x145x96xf16>, tensor<1x2x145x96xf16> -> tensor<1x2x21x96xf16>
  return %o : tensor<1x2x21x96xf16>
}

func.func @rows(%q: tensor<1x2x40x64xbf16>, %ks: tensor<1x2x145x64xi8>, %vs: tensor<1x2x145x64xi8>) -> tensor<1x2x40x64xbf16> {
  %e = tensor.empty() : tensor<1x2x145x64xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %o = attn.attention %q, %k, %v scale(0.125)
      {schedule = #attn.schedule<tile = 32x64, order = linear, warps = 4, stages = 1, widen = products>} : tensor<1x2x40x64xbf16>, tensor<1x2x145x64xbf16>, tensor<1x2x145x64xbf16> -> tensor<1x2x40x64xbf16>
  return %o : tensor<1x2x40x64xbf16>
}

// What something else reads, too, is written in front.
func.func @keys_read(%q: tensor<1x2x9x64xbf16>, %ks: tensor<1x2x145x64xi8>, %vs: tensor<1x2x145x64xi8>) -> (tensor<1x2x9x64xbf16>, tensor<1x2x145x64xbf16>) {
  %e = tensor.empty() : tensor<1x2x145x64xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x9x64xbf16>, tensor<1x2x145x64xbf16>, tensor<1x2x145x64xbf16> -> tensor<1x2x9x64xbf16>
  return %o, %k : tensor<1x2x9x64xbf16>, tensor<1x2x145x64xbf16>
}

// What something else reads, too, is written in front.
func.func @values_read(%q: tensor<1x2x9x64xbf16>, %ks: tensor<1x2x145x64xi8>, %vs: tensor<1x2x145x64xi8>) -> (tensor<1x2x9x64xbf16>, tensor<1x2x145x64xbf16>) {
  %e = tensor.empty() : tensor<1x2x145x64xbf16>
  %k = linalg.generic #each ins(%ks : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %v = linalg.generic #each ins(%vs : tensor<1x2x145x64xi8>) outs(%e : tensor<1x2x145x64xbf16>) {
  ^bb0(%bits: i8, %x: bf16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to bf16
    linalg.yield %y : bf16
  } -> tensor<1x2x145x64xbf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x9x64xbf16>, tensor<1x2x145x64xbf16>, tensor<1x2x145x64xbf16> -> tensor<1x2x9x64xbf16>
  return %o, %v : tensor<1x2x9x64xbf16>, tensor<1x2x145x64xbf16>
}
