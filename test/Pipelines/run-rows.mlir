// Norms, softmax, dropout and rotary embedding, row by row.
// Each is checked against its float64 reference, run kernel by kernel and fused.
// RUN: fovea-run %s --entry=lsoftmax --random=3 --check --strategy=unfused --dims=19
// RUN: fovea-run %s --entry=lsoftmax --random=3 --check --strategy=fused --dims=19
// RUN: fovea-run %s --entry=lsoftmax0 --random=3 --check --strategy=unfused --dims=19
// RUN: fovea-run %s --entry=lsoftmax0 --random=3 --check --strategy=fused --dims=19
// RUN: fovea-run %s --entry=qknorm --random=3 --check --strategy=unfused --dims=21
// RUN: fovea-run %s --entry=qknorm --random=3 --check --strategy=fused --dims=21
// RUN: fovea-run %s --entry=ropei --random=3 --check --strategy=unfused --dims=x:2x4x5x12 --dims=cos:5x6 --dims=sin:5x6
// RUN: fovea-run %s --entry=ropei --random=3 --check --strategy=fused --dims=x:2x4x5x12 --dims=cos:5x6 --dims=sin:5x6
// RUN: fovea-run %s --entry=ropei --random=3 --check --strategy=unfused --dims=x:2x4x0x12 --dims=cos:0x6 --dims=sin:0x6
// RUN: fovea-run %s --entry=ropei --random=3 --check --strategy=fused --dims=x:2x4x0x12 --dims=cos:0x6 --dims=sin:0x6
// RUN: fovea-run %s --entry=prenorm --random=3 --check --strategy=unfused --dims=21
// RUN: fovea-run %s --entry=prenorm --random=3 --check --strategy=fused --dims=21
// RUN: fovea-run %s --entry=prenorm --random=3 --check --strategy=unfused --dims=1
// RUN: fovea-run %s --entry=prenorm --random=3 --check --strategy=fused --dims=1
// RUN: fovea-run %s --entry=prenorm --random=3 --check --strategy=unfused --dims=0
// RUN: fovea-run %s --entry=prenorm --random=3 --check --strategy=fused --dims=0
// RUN: fovea-run %s --entry=dynrow --random=3 --check --strategy=unfused --dims=21
// RUN: fovea-run %s --entry=dynrow --random=3 --check --strategy=fused --dims=21
// RUN: fovea-run %s --entry=dynrow --random=3 --check --strategy=unfused --dims=x:3x5000 --dims=w:5000
// RUN: fovea-run %s --entry=dynrow --random=3 --check --strategy=fused --dims=x:3x5000 --dims=w:5000
// RUN: fovea-run %s --entry=softmaxmix --random=3 --check --strategy=unfused --dims=21
// RUN: fovea-run %s --entry=softmaxmix --random=3 --check --strategy=fused --dims=21
// RUN: fovea-run %s --entry=softmaxmix --random=3 --check --strategy=unfused --dims=0
// RUN: fovea-run %s --entry=softmaxmix --random=3 --check --strategy=fused --dims=0
// RUN: fovea-run %s --entry=sums --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=sums --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=sums --random=3 --check --target=sm_90a --simulate

func.func @lsoftmax(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : tensor<4x?xf32>
  %e = tensor.empty(%d) : tensor<4x?xf32>
  %s = linalg.softmax dimension(1) ins(%x : tensor<4x?xf32>) outs(%e : tensor<4x?xf32>) -> tensor<4x?xf32>
  return %s : tensor<4x?xf32>
}

func.func @lsoftmax0(%x: tensor<?x33xf32>) -> tensor<?x33xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x33xf32>
  %e = tensor.empty(%d) : tensor<?x33xf32>
  %s = linalg.softmax dimension(0) ins(%x : tensor<?x33xf32>) outs(%e : tensor<?x33xf32>) -> tensor<?x33xf32>
  return %s : tensor<?x33xf32>
}

func.func @qknorm(%x: tensor<2x?x64xf16>, %wq: tensor<64x64xf16>, %g: tensor<16xf32>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>) -> (tensor<2x4x?x16xf16>, tensor<2x?x64xf16>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?x64xf16>
  %h = attn.rms_norm %x epsilon(1.0e-6) : tensor<2x?x64xf16>
  %e = tensor.empty(%n) : tensor<2x?x64xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b,s,o,i)->(b,s,i)>, affine_map<(b,s,o,i)->(o,i)>, affine_map<(b,s,o,i)->(b,s,o)>], iterator_types=["parallel","parallel","parallel","reduction"]} ins(%h, %wq: tensor<2x?x64xf16>, tensor<64x64xf16>) outs(%f : tensor<2x?x64xf32>) {
  ^bb0(%a: f16, %w: f16, %o: f32):
    %a1 = arith.extf %a : f16 to f32
    %w1 = arith.extf %w : f16 to f32
    %m = arith.mulf %a1, %w1 : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x?x64xf32>
  %p16 = arith.truncf %p : tensor<2x?x64xf32> to tensor<2x?x64xf16>
  %v = tensor.expand_shape %p16 [[0],[1],[2,3]] output_shape [2, %n, 4, 16] : tensor<2x?x64xf16> into tensor<2x?x4x16xf16>
  %te = tensor.empty(%n) : tensor<2x4x?x16xf16>
  %t = linalg.transpose ins(%v : tensor<2x?x4x16xf16>) outs(%te : tensor<2x4x?x16xf16>) permutation = [0, 2, 1, 3]
  %qn = attn.rms_norm %t weight(%g : tensor<16xf32>) epsilon(1.0e-6) : tensor<2x4x?x16xf16>
  %r = attn.rope %qn, %cos, %sin : tensor<2x4x?x16xf16>, tensor<?x8xf32>, tensor<?x8xf32>
  return %r, %h : tensor<2x4x?x16xf16>, tensor<2x?x64xf16>
}

func.func @ropei(%x: tensor<2x4x?x?xf32>, %cos: tensor<?x?xf32>, %sin: tensor<?x?xf32>) -> tensor<2x4x?x?xf32> {
  %r = attn.rope %x, %cos, %sin interleaved : tensor<2x4x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  return %r : tensor<2x4x?x?xf32>
}

func.func @prenorm(%x: tensor<2x?x96xf32>, %w: tensor<96xf32>, %b: tensor<96xf32>, %r: tensor<2x?x96xf32>, %seed: i64, %off: i64) -> (tensor<2x?x96xf32>, tensor<2x?x96xf32>) {
  %d = attn.dropout %x, 0.25 seed(%seed, %off) : tensor<2x?x96xf32>
  %h = attn.residual_add %d, %r : tensor<2x?x96xf32>, tensor<2x?x96xf32>
  %y = attn.layer_norm %h weight(%w : tensor<96xf32>) bias(%b : tensor<96xf32>) epsilon(1.0e-5) : tensor<2x?x96xf32>
  return %h, %y : tensor<2x?x96xf32>, tensor<2x?x96xf32>
}

func.func @dynrow(%x: tensor<?x?xf16>, %w: tensor<?xf16>) -> (tensor<?x?xf16>, tensor<?x?xf16>) {
  %y = attn.layer_norm %x weight(%w : tensor<?xf16>) epsilon(1.0e-5) : tensor<?x?xf16>
  %p = attn.softmax %y : tensor<?x?xf16> -> tensor<?x?xf16>
  return %p, %y : tensor<?x?xf16>, tensor<?x?xf16>
}

func.func @softmaxmix(%x: tensor<3x4x?xf16>) -> tensor<3x4x?xf32> {
  %p = attn.softmax %x : tensor<3x4x?xf16> -> tensor<3x4x?xf32>
  return %p : tensor<3x4x?xf32>
}

// Two sums of each row start from one tensor of zeros.
func.func @sums(%x: tensor<64x32xf32>, %y: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %t = tensor.empty() : tensor<64x32xf32>
  %p = linalg.mul ins(%x, %y : tensor<64x32xf32>, tensor<64x32xf32>) outs(%t : tensor<64x32xf32>) -> tensor<64x32xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<64x32xf32>) outs(%f : tensor<64xf32>) dimensions = [1]
  %q = linalg.mul ins(%p, %x : tensor<64x32xf32>, tensor<64x32xf32>) outs(%t : tensor<64x32xf32>) -> tensor<64x32xf32>
  %u = linalg.reduce { arith.addf } ins(%q : tensor<64x32xf32>) outs(%f : tensor<64xf32>) dimensions = [1]
  return %s, %u : tensor<64xf32>, tensor<64xf32>
}
