// Values with fewer features than keys: results, which take the place of queries, are
// smaller than these, in each slot. Each of the two blocks has several tiles, so that the
// queries of one are read while the result of another is written.
//
// DEFINE: %{options} = --check --target=sm_90a --simulate --seeds=2 --random=1 --dims=query:1x2x1300x128 --dims=key:1x1x1300x128
//
// Results of 64 features are in the first half of a slot.
// RUN: fovea-run %s %{options} --entry=half --dims=value:1x1x1300x64 | FileCheck %s
// Rows of 96 features are 64 bytes in shared memory, and those of queries 128: they have
// places of their own.
// RUN: fovea-run %s %{options} --entry=other --dims=value:1x1x1300x96 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

!query = tensor<?x2x?x128xbf16>
!key = tensor<?x1x?x128xbf16>
!value64 = tensor<?x1x?x64xbf16>
!output64 = tensor<?x2x?x64xbf16>
!value96 = tensor<?x1x?x96xbf16>
!output96 = tensor<?x2x?x96xbf16>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @half(%query: !query, %key: !key, %value: !value64) -> !output64 {
  %o = attn.attention %query, %key, %value scale(0.088388)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating>}
    : !query, !key, !value64 -> !output64
  return %o : !output64
}
func.func @other(%query: !query, %key: !key, %value: !value96) -> !output96 {
  %o = attn.attention %query, %key, %value scale(0.088388)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 192x64, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = dealt>}
    : !query, !key, !value96 -> !output96
  return %o : !output96
}
}
