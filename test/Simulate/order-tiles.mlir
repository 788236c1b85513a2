// Tiles of queries that are sorted by how many keys they see, which tensors decide, in
// persistent blocks of a machine of 2 multiprocessors: sequences of several lengths,
// rows without a key among them, for each batch; documents, whose tiles are in lists.
// Programs are located by tables that they read ahead, beside the last product of the
// program before.
//
// DEFINE: %{run} = fovea-run %s --target=sm_90a --simulate --check
// RUN: %{run} --entry=sequences --seeds=6 --random=1 --integers=0:400 | FileCheck %s
// RUN: %{run} --entry=sequences --seeds=2 --random=2 --integers=0:0 | FileCheck %s
// RUN: %{run} --entry=sequences --seeds=2 --random=3 --integers=400:400 | FileCheck %s
// RUN: %{run} --entry=documents --seeds=6 --random=1 --integers=0:3 | FileCheck %s
// RUN: %{run} --entry=documents --seeds=2 --random=2 --integers=5:5 | FileCheck %s
// RUN: fovea-run %s --target=sm_80 --simulate --check --entry=sequences --random=1 --integers=0:400 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 2, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  func.func @sequences(%q: tensor<2x2x400x64xbf16>, %end: tensor<2x400xi32>) -> tensor<2x2x400x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %end[%b, %i] : tensor<2x400xi32>
        %n = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<2x2x400x64xbf16>, tensor<2x2x400x64xbf16>, tensor<2x2x400x64xbf16> -> tensor<2x2x400x64xbf16>
    return %o : tensor<2x2x400x64xbf16>
  }

  func.func @documents(%q: tensor<1x3x400x64xbf16>, %ids: tensor<400xi32>) -> tensor<1x3x400x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %ids[%i] : tensor<400xi32>
        %y = tensor.extract %ids[%j] : tensor<400xi32>
        %same = arith.cmpi eq, %x, %y : i32
        %past = arith.cmpi sge, %i, %j : index
        %keep = arith.andi %past, %same : i1
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, maximum = stale, blocks = persistent>}
      : tensor<1x3x400x64xbf16>, tensor<1x3x400x64xbf16>, tensor<1x3x400x64xbf16> -> tensor<1x3x400x64xbf16>
    return %o : tensor<1x3x400x64xbf16>
  }
}
