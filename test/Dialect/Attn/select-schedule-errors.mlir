// RUN: not fovea-opt %s --attn-select-schedule="query-tile=-3" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not fovea-opt %s --attn-select-schedule="query-tile=4096 key-tile=4096" 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not fovea-opt %s --attn-select-schedule="typical-length=-1" 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: not fovea-opt %s --attn-select-schedule="typical-rows=-1" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not fovea-opt %s --attn-select-schedule="tile-rows=-1" 2>&1 | FileCheck %s --check-prefix=TILES

// LENGTH: typical-length must be at least 1, or 0 for what is usual, but is -1{{$}}
// TILES: tile-rows must be at least 1, or 0 for what is usual, but is -1{{$}}
// ROWS: typical-rows must be at least 1, or 0 for what is usual, but is -1{{$}}
// NEGATIVE: query-tile and key-tile must be at least 1, or 0 to choose, but are -3 and 0{{$}}
// LARGE: 'attn.attention' op has a schedule that does not fit the target: a tile of 4096x4096 needs {{[0-9]+}} bytes, but a core of "host" has 1048576{{$}}
module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>} {
  func.func @full(%q: tensor<2x16x1024x64xf32>) -> tensor<2x16x1024x64xf32> {
    %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x1024x64xf32>, tensor<2x16x1024x64xf32>, tensor<2x16x1024x64xf32> -> tensor<2x16x1024x64xf32>
    return %o : tensor<2x16x1024x64xf32>
  }
}
