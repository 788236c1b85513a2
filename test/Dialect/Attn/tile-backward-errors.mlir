// RUN: not fovea-opt --attn-tile-backward=key-tile=0 %s 2>&1 | FileCheck %s

// CHECK: error: attn-tile-backward: expects query-tile to be at least 0 and key-tile at least 1, but they are 0 and 0{{$}}
module {}
