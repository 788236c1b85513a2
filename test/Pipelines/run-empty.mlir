// Sizes that types say to be 0: everywhere what a dynamic size of 0 gives, which
// is nothing, or sums over nothing.
//
// RUN: fovea-run %s --entry=values --random=1 --check --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=values --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=values --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=values --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=values --random=1 --check --target=sm_90a --simulate --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=values --random=1 --check --grad --recompute=always | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=values --random=1 --check --grad --recompute=never | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=values --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=features --random=1 --check --strategy=fused | FileCheck %s --check-prefix=FULL
// RUN: fovea-run %s --entry=features --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=FULL
// RUN: fovea-run %s --entry=features --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=FULL
// RUN: fovea-run %s --entry=features --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=FULL
// RUN: fovea-run %s --entry=features --random=1 --check --target=sm_90a --simulate --strategy=unfused | FileCheck %s --check-prefix=FULL
// RUN: fovea-run %s --entry=features --random=1 --check --grad --recompute=always | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=features --random=1 --check --grad --recompute=never | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=features --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=heads --random=1 --check --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=heads --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=heads --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=heads --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=heads --random=1 --check --target=sm_90a --simulate --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=heads --random=1 --check --grad --recompute=always | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=heads --random=1 --check --grad --recompute=never | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=heads --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=keys --random=1 --check --strategy=fused | FileCheck %s --check-prefix=ZEROS
// RUN: fovea-run %s --entry=keys --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=ZEROS
// RUN: fovea-run %s --entry=keys --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=ZEROS
// RUN: fovea-run %s --entry=keys --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=ZEROS
// RUN: fovea-run %s --entry=keys --random=1 --check --target=sm_90a --simulate --strategy=unfused | FileCheck %s --check-prefix=ZEROS
// RUN: fovea-run %s --entry=keys --random=1 --check --grad --recompute=always | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=keys --random=1 --check --grad --recompute=never | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=keys --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=queries --random=1 --check --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=queries --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=queries --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=queries --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=queries --random=1 --check --target=sm_90a --simulate --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=queries --random=1 --check --grad --recompute=always | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=queries --random=1 --check --grad --recompute=never | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=queries --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=batches --random=1 --check --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=batches --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=batches --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=batches --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=batches --random=1 --check --target=sm_90a --simulate --strategy=unfused | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=batches --random=1 --check --grad --recompute=always | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=batches --random=1 --check --grad --recompute=never | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=batches --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=GRADIENT --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=rows --random=1 --check | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=rows --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=rows --random=1 --check --target=sm_90a --simulate | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=columns --random=1 --check | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=columns --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=columns --random=1 --check --target=sm_90a --simulate | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=norm --random=1 --check | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=norm --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=norm --random=1 --check --target=sm_90a --simulate | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=norm --random=1 --check --grad | FileCheck %s --check-prefix=WEIGHTS
// RUN: fovea-run %s --entry=lse --random=1 --check | FileCheck %s --check-prefix=LSE
// RUN: fovea-run %s --entry=chain --random=1 --check --strategy=fused | FileCheck %s --check-prefix=MEANS
// RUN: fovea-run %s --entry=chain --random=1 --check --strategy=two-pass | FileCheck %s --check-prefix=MEANS
// RUN: fovea-run %s --entry=chain --random=1 --check --strategy=unfused | FileCheck %s --check-prefix=MEANS
// RUN: fovea-run %s --entry=chain --random=1 --check --target=sm_90a --simulate --strategy=fused | FileCheck %s --check-prefix=MEANS
// RUN: fovea-run %s --entry=chain --random=1 --check --target=sm_90a --simulate --strategy=two-pass | FileCheck %s --check-prefix=MEANS
// RUN: fovea-run %s --entry=chain --random=1 --check --grad | FileCheck %s --check-prefix=CHAIN --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=chain --random=1 --check --grad --target=sm_90a --simulate | FileCheck %s --check-prefix=CHAIN --implicit-check-not=FAILED
// RUN: fovea-run %s --entry=values --random=1 --check-bounds | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=features --random=1 --check-bounds | FileCheck %s --check-prefix=BOUNDS
// RUN: fovea-run %s --entry=heads --random=1 --check-bounds | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=keys --random=1 --check-bounds | FileCheck %s --check-prefix=ZEROS
// RUN: fovea-run %s --entry=queries --random=1 --check-bounds | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=batches --random=1 --check-bounds | FileCheck %s --check-prefix=EMPTY
// RUN: fovea-run %s --entry=rows --random=1 --check-bounds | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=columns --random=1 --check-bounds | FileCheck %s --check-prefix=ROWS
// RUN: fovea-run %s --entry=values --random=1 --check-bounds --grad | FileCheck %s --check-prefix=CHECKED
// RUN: fovea-run %s --entry=features --random=1 --check-bounds --grad | FileCheck %s --check-prefix=CHECKED
// RUN: fovea-run %s --entry=heads --random=1 --check-bounds --grad | FileCheck %s --check-prefix=CHECKED
// RUN: fovea-run %s --entry=keys --random=1 --check-bounds --grad | FileCheck %s --check-prefix=CHECKED
// RUN: fovea-run %s --entry=queries --random=1 --check-bounds --grad | FileCheck %s --check-prefix=CHECKED
// RUN: fovea-run %s --entry=batches --random=1 --check-bounds --grad | FileCheck %s --check-prefix=CHECKED
// RUN: fovea-run %s --entry=zeros --random=1 --dims=70 --check | FileCheck %s --check-prefix=FILLED
// RUN: fovea-run %s --entry=zeros --random=1 --dims=70 --check --target=sm_90a --simulate | FileCheck %s --check-prefix=FILLED
// RUN: fovea-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: fovea-compile %s --target=sm_90a --strategy=unfused --emit=ptx | FileCheck %s --check-prefix=PTX
//
// EMPTY: result 0: f32 {{[0-9x]+$}}
// EMPTY-NOT: FAILED
// ZEROS: result 0: f32 1x2x7x16, mean 0, min 0, max 0
// ZEROS-NOT: FAILED
// FULL: result 0: f32 1x2x7x16, mean {{-?[0-9.]+}}, min {{-[0-9.]+}}, max {{[0-9.]+}}
// FULL: check: result 0: max error
// FULL-NOT: FAILED
// BOUNDS: result 0: f32 1x2x7x16, mean {{-?[0-9.]+}}, min {{-[0-9.]+}}, max {{[0-9.]+}}
// CHECKED: result 3 (gradient of %v): f32
// GRADIENT: result 3 (gradient of %v): f32
// GRADIENT: check: result 0:
// ROWS: result 0: f32 {{[0-9x]+$}}
// ROWS-NOT: FAILED
// WEIGHTS: result 1 (gradient of %x): f32 1x0x32{{$}}
// WEIGHTS: result 2 (gradient of %w): f32 32, mean 0, min 0, max 0
// WEIGHTS-NOT: FAILED
// LSE: result 0: f32 1x2x7x0{{$}}
// LSE: result 1: f32 1x2x7, mean
// LSE-NOT: FAILED
// MEANS: result 0: f32 1x2x7x16, mean {{-?[0-9.e-]+}}, min {{-[0-9.]+}}, max {{[0-9.]+}}
// MEANS-NEXT: result 1: f32 1x2x7, mean 7.2485, min
// MEANS: check: result 0: max error
// MEANS-NOT: FAILED
// CHAIN: result 4 (gradient of %v): f32 1x1x70x16, mean
// CHAIN: check: result 4: max error
// FILLED: result 0: f32 1x2x70x16, mean {{-?[0-9.e-]+}}, min {{-[0-9.]+}}, max {{[0-9.]+}}
// FILLED: check: result 0: max error
// FILLED-NOT: FAILED
// PTX: .target sm_90a

func.func @values(%q: tensor<1x2x7x16xf32>, %k: tensor<1x1x9x16xf32>, %v: tensor<1x1x9x0xf32>) -> tensor<1x2x7x0xf32> {
  %s = attn.scores %q, %k : tensor<1x2x7x16xf32>, tensor<1x1x9x16xf32> -> tensor<1x2x7x9xf32>
  %t = attn.scale %s by 0.25 : tensor<1x2x7x9xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x7x9xf32>
  %p = attn.softmax %m : tensor<1x2x7x9xf32> -> tensor<1x2x7x9xf32>
  %o = attn.values %p, %v : tensor<1x2x7x9xf32>, tensor<1x1x9x0xf32> -> tensor<1x2x7x0xf32>
  return %o : tensor<1x2x7x0xf32>
}

func.func @features(%q: tensor<1x2x7x0xf32>, %k: tensor<1x1x9x0xf32>, %v: tensor<1x1x9x16xf32>) -> tensor<1x2x7x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x7x0xf32>, tensor<1x1x9x0xf32> -> tensor<1x2x7x9xf32>
  %t = attn.scale %s by 0.25 : tensor<1x2x7x9xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x7x9xf32>
  %p = attn.softmax %m : tensor<1x2x7x9xf32> -> tensor<1x2x7x9xf32>
  %o = attn.values %p, %v : tensor<1x2x7x9xf32>, tensor<1x1x9x16xf32> -> tensor<1x2x7x16xf32>
  return %o : tensor<1x2x7x16xf32>
}

func.func @heads(%q: tensor<1x0x7x16xf32>, %k: tensor<1x1x9x16xf32>, %v: tensor<1x1x9x16xf32>) -> tensor<1x0x7x16xf32> {
  %s = attn.scores %q, %k : tensor<1x0x7x16xf32>, tensor<1x1x9x16xf32> -> tensor<1x0x7x9xf32>
  %t = attn.scale %s by 0.25 : tensor<1x0x7x9xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x0x7x9xf32>
  %p = attn.softmax %m : tensor<1x0x7x9xf32> -> tensor<1x0x7x9xf32>
  %o = attn.values %p, %v : tensor<1x0x7x9xf32>, tensor<1x1x9x16xf32> -> tensor<1x0x7x16xf32>
  return %o : tensor<1x0x7x16xf32>
}

func.func @keys(%q: tensor<1x2x7x16xf32>, %k: tensor<1x1x0x16xf32>, %v: tensor<1x1x0x16xf32>) -> tensor<1x2x7x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x7x16xf32>, tensor<1x1x0x16xf32> -> tensor<1x2x7x0xf32>
  %t = attn.scale %s by 0.25 : tensor<1x2x7x0xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x7x0xf32>
  %p = attn.softmax %m : tensor<1x2x7x0xf32> -> tensor<1x2x7x0xf32>
  %o = attn.values %p, %v : tensor<1x2x7x0xf32>, tensor<1x1x0x16xf32> -> tensor<1x2x7x16xf32>
  return %o : tensor<1x2x7x16xf32>
}

func.func @queries(%q: tensor<1x2x0x16xf32>, %k: tensor<1x1x9x16xf32>, %v: tensor<1x1x9x16xf32>) -> tensor<1x2x0x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x0x16xf32>, tensor<1x1x9x16xf32> -> tensor<1x2x0x9xf32>
  %t = attn.scale %s by 0.25 : tensor<1x2x0x9xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x0x9xf32>
  %p = attn.softmax %m : tensor<1x2x0x9xf32> -> tensor<1x2x0x9xf32>
  %o = attn.values %p, %v : tensor<1x2x0x9xf32>, tensor<1x1x9x16xf32> -> tensor<1x2x0x16xf32>
  return %o : tensor<1x2x0x16xf32>
}

func.func @batches(%q: tensor<0x2x7x16xf32>, %k: tensor<0x1x9x16xf32>, %v: tensor<0x1x9x16xf32>) -> tensor<0x2x7x16xf32> {
  %s = attn.scores %q, %k : tensor<0x2x7x16xf32>, tensor<0x1x9x16xf32> -> tensor<0x2x7x9xf32>
  %t = attn.scale %s by 0.25 : tensor<0x2x7x9xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<0x2x7x9xf32>
  %p = attn.softmax %m : tensor<0x2x7x9xf32> -> tensor<0x2x7x9xf32>
  %o = attn.values %p, %v : tensor<0x2x7x9xf32>, tensor<0x1x9x16xf32> -> tensor<0x2x7x16xf32>
  return %o : tensor<0x2x7x16xf32>
}

func.func @lse(%q: tensor<1x2x7x16xf32>, %k: tensor<1x1x9x16xf32>, %v: tensor<1x1x9x0xf32>) -> (tensor<1x2x7x0xf32>, tensor<1x2x7xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.25) : tensor<1x2x7x16xf32>, tensor<1x1x9x16xf32>, tensor<1x1x9x0xf32> -> tensor<1x2x7x0xf32>, tensor<1x2x7xf32>
  return %o, %l : tensor<1x2x7x0xf32>, tensor<1x2x7xf32>
}

// Queries of zeros, which sums start as, too: means of the values, where the
// region adds the place of the query, and each key counts 1 / 70.
func.func @chain(%q: tensor<1x2x7x16xf32>, %e: tensor<1x1x0x16xf32>, %v: tensor<1x1x70x16xf32>) -> (tensor<1x2x7x16xf32>, tensor<1x2x7xf32>) {
  %s = attn.scores %q, %e : tensor<1x2x7x16xf32>, tensor<1x1x0x16xf32> -> tensor<1x2x7x0xf32>
  %p = attn.softmax %s : tensor<1x2x7x0xf32> -> tensor<1x2x7x0xf32>
  %z = attn.values %p, %e : tensor<1x2x7x0xf32>, tensor<1x1x0x16xf32> -> tensor<1x2x7x16xf32>
  %o, %l = attn.attention %z, %v, %v scale(0.25) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %a = math.absi %i : index
    %n = arith.index_cast %a : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = arith.addf %x, %f : f32
    attn.yield %t : f32
  } : tensor<1x2x7x16xf32>, tensor<1x1x70x16xf32>, tensor<1x1x70x16xf32> -> tensor<1x2x7x16xf32>, tensor<1x2x7xf32>
  return %o, %l : tensor<1x2x7x16xf32>, tensor<1x2x7xf32>
}

// The same where sizes are not known, and the keys are those of a loop.
func.func @zeros(%q: tensor<1x2x?x16xf32>, %e: tensor<1x1x0x16xf32>) -> tensor<1x2x?x16xf32> {
  %s = attn.scores %q, %e : tensor<1x2x?x16xf32>, tensor<1x1x0x16xf32> -> tensor<1x2x?x0xf32>
  %p = attn.softmax %s : tensor<1x2x?x0xf32> -> tensor<1x2x?x0xf32>
  %z = attn.values %p, %e : tensor<1x2x?x0xf32>, tensor<1x1x0x16xf32> -> tensor<1x2x?x16xf32>
  %o = attn.attention %z, %q, %q scale(0.25) : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

func.func @rows(%x: tensor<0x8xf32>) -> tensor<0x8xf32> {
  %p = attn.softmax %x : tensor<0x8xf32> -> tensor<0x8xf32>
  return %p : tensor<0x8xf32>
}

func.func @columns(%x: tensor<3x0xf32>) -> tensor<3x0xf32> {
  %p = attn.softmax %x : tensor<3x0xf32> -> tensor<3x0xf32>
  return %p : tensor<3x0xf32>
}

func.func @norm(%x: tensor<1x0x32xf32>, %w: tensor<32xf32>) -> tensor<1x0x32xf32> {
  %y = attn.layer_norm %x weight(%w : tensor<32xf32>) epsilon(1.0e-6) : tensor<1x0x32xf32>
  return %y : tensor<1x0x32xf32>
}
