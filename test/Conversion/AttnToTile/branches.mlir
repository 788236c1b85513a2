// RUN: fovea-opt %s --convert-attn-to-tile --canonicalize | FileCheck %s

// Loops of two branches end at the same key: each has a bound of its own.

!q = tensor<1x1x128x64xbf16>
!k = tensor<1x1x?x64xbf16>
!acc = tensor<1x1x128x64xf32>
!rows = tensor<1x1x128xf32>
#rest = affine_map<(j)[end] -> (end - j, 64)>
#schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
// CHECK-LABEL: func.func @branches(
// CHECK:         %[[END:.*]] = arith.minsi
// CHECK:         scf.if
// CHECK:           arith.maxsi %[[END]], %c0
// CHECK:           scf.for
// CHECK:         } else {
// CHECK:           arith.maxsi %[[END]], %c0
// CHECK:           scf.for
func.func @branches(%q: !q, %k: !k, %n: index) -> !q {
  %c64 = arith.constant 64 : index
  %c7 = arith.constant 7 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %room = tensor.empty() : !q
  %o = scf.forall (%b, %h, %i) = (0, 0, 0) to (1, 1, 128) step (1, 1, 128) shared_outs(%out = %room) -> (!q) {
    %keys = tensor.dim %k, %c2 : !k
    %qt = tensor.extract_slice %q[%b, %h, %i, 0] [1, 1, 128, 64] [1, 1, 1, 1] : !q to !q
    %accs = tensor.empty() : !acc
    %acc0 = linalg.fill ins(%zero : f32) outs(%accs : !acc) -> !acc
    %rows = tensor.empty() : !rows
    %max0 = linalg.fill ins(%lowest : f32) outs(%rows : !rows) -> !rows
    %sum0 = linalg.fill ins(%zero : f32) outs(%rows : !rows) -> !rows
    %end = arith.minsi %n, %keys : index
    %is = arith.cmpi sgt, %n, %c7 : index
    %r:3 = scf.if %is -> (!acc, !rows, !rows) {
      %x:3 = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (!acc, !rows, !rows) {
        %rest = affine.min #rest(%j)[%end]
        %kt = tensor.extract_slice %k[%b, %h, %j, 0] [1, 1, %rest, 64] [1, 1, 1, 1] : !k to !k
        %s:3 = attn.online_attention scale(0.125) update(all) ins(%qt, %kt, %kt : !q, !k, !k) outs(%acc, %max, %sum : !acc, !rows, !rows) at[%b, %h, %i, %j] {schedule = #schedule} -> !acc, !rows, !rows
        scf.yield %s#0, %s#1, %s#2 : !acc, !rows, !rows
      }
      scf.yield %x#0, %x#1, %x#2 : !acc, !rows, !rows
    } else {
      %x:3 = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (!acc, !rows, !rows) {
        %rest = affine.min #rest(%j)[%end]
        %kt = tensor.extract_slice %k[%b, %h, %j, 0] [1, 1, %rest, 64] [1, 1, 1, 1] : !k to !k
        %s:3 = attn.online_attention scale(0.25) update(all) ins(%qt, %kt, %kt : !q, !k, !k) outs(%acc, %max, %sum : !acc, !rows, !rows) at[%b, %h, %i, %j] {schedule = #schedule} -> !acc, !rows, !rows
        scf.yield %s#0, %s#1, %s#2 : !acc, !rows, !rows
      }
      scf.yield %x#0, %x#1, %x#2 : !acc, !rows, !rows
    }
    %own = tensor.extract_slice %out[%b, %h, %i, 0] [1, 1, 128, 64] [1, 1, 1, 1] : !q to !q
    %final = attn.finalize ins(%r#0, %r#1, %r#2 : !acc, !rows, !rows) outs(%own : !q) -> !q
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %final into %out[%b, %h, %i, 0] [1, 1, 128, 64] [1, 1, 1, 1] : !q into !q
    }
  }
  return %o : !q
}
}
