// check.mlir's buckets, with a bias that is 1% larger.

!s = tensor<1x1x20x20xf32>
!t = tensor<1x1x20x16xf32>

func.func @buckets(%q: !t, %k: !t, %v: !t, %table: tensor<32xf32>) -> !t {
  %c8 = arith.constant 8 : index
  %c31 = arith.constant 31 : index
  %f8 = arith.constant 8.0 : f32
  %factor = arith.constant 2.8853900817779268 : f32
  %s = attn.scores %q, %k : !t, !t -> !s
  %a = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %e = arith.subi %i, %j : index
    %n = arith.maxsi %d, %e : index
    %m = arith.maxsi %n, %c8 : index
    %mi = arith.index_cast %m : index to i32
    %f = arith.sitofp %mi : i32 to f32
    %ratio = arith.divf %f, %f8 : f32
    %log = math.log %ratio : f32
    %scaled = arith.mulf %log, %factor : f32
    %li = arith.fptosi %scaled : f32 to i32
    %l = arith.index_cast %li : i32 to index
    %l8 = arith.addi %l, %c8 : index
    %lc = arith.minsi %l8, %c31 : index
    %near = arith.cmpi slt, %n, %c8 : index
    %bucket = arith.select %near, %n, %lc : index
    %bias = tensor.extract %table[%bucket] : tensor<32xf32>
    %more = arith.constant 1.01 : f32
    %larger = arith.mulf %bias, %more : f32
    %y = arith.addf %x, %larger : f32
    attn.yield %y : f32
  } : !s
  %p = attn.softmax %a : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}
