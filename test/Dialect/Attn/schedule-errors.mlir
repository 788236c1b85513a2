// RUN: fovea-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{tile must have at least 1 query and 1 key, but is 0x64}}
#schedule = #attn.schedule<tile = 0x64, order = linear>

// -----

// expected-error@+1 {{expected a tile of 2 dimensions, queries x keys, but got 3}}
#schedule = #attn.schedule<tile = 8x64x2, order = linear>

// -----

// expected-error@+1 {{expected a tile of queries x keys, such as 64x128}}
#schedule = #attn.schedule<tile = 0x-3, order = linear>

// -----

// expected-error@+1 {{warps must be 1 to 32, but are 33}}
#schedule = #attn.schedule<tile = 528x64, order = linear, warps = 33, stages = 2>

// -----

// expected-error@+1 {{stages must be 1 to 8, but are 9}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 9>

// -----

// expected-error@+1 {{expected maximum to be one of: exact, stale}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = last>

// -----

// expected-error@+1 {{expected keys to be one of: ascending, descending}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, keys = last>

// -----

// expected-error@+1 {{keys must be ascending in a schedule of gradients and on a host, but are descending}}
#schedule = #attn.schedule<tile = 64x64, order = linear, keys = descending>

// -----

// expected-error@+1 {{keys must be ascending in a schedule of gradients and on a host, but are descending}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, keys = descending, gradients = <parallel = [batch, head, key]>>

// -----

// expected-error@+1 {{expected products to be one of: overlapped, alternating}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, products = early>

// -----

// expected-error@+1 {{expected groups to be one of: free, in_turn}}
#schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, groups = first>

// -----

// expected-error@+1 {{groups must be free in a schedule of gradients and of less than 8 warps, but are in_turn}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, groups = in_turn>

// -----

// expected-error@+1 {{groups must be free in a schedule of gradients and of less than 8 warps, but are in_turn}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 8, stages = 2, groups = in_turn, gradients = <parallel = [batch, head, key]>>

// -----

// expected-error@+1 {{expected captures to be one of: gathered, tiled}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, captures = rows>

// -----

// expected-error@+1 {{expected queries to be one of: aligned, sequences}}
#schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, queries = any, blocks = persistent>

// -----

// expected-error@+1 {{queries must be aligned where blocks are not dealt tiles, but are of sequences}}
#schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, queries = sequences>

// -----

// expected-error@+1 {{queries must be aligned where blocks are not dealt tiles, but are of sequences}}
#schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = persistent>

// -----

// expected-error@+1 {{blocks must be of tiles on a host, but are dealt}}
#schedule = #attn.schedule<tile = 64x64, order = longest_first, queries = sequences, blocks = dealt>

// -----

// expected-error@+1 {{blocks must be of tiles on a host, but are persistent}}
#schedule = #attn.schedule<tile = 64x64, order = linear, blocks = persistent>

// -----

// expected-error@+1 {{blocks must not be dealt in a schedule of gradients}}
#schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, blocks = dealt, gradients = <parallel = [batch, head, key]>>

// -----

// expected-error@+1 {{captures must be gathered on a host, but are tiled}}
#schedule = #attn.schedule<tile = 64x64, order = linear, captures = tiled>

// -----

// expected-error@+1 {{expected blocks to be one of: tiles, persistent, shared, dealt}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale, blocks = few>

// -----

// expected-error@+1 {{expected 'warps' or 'stages' or 'maximum' or 'keys' or 'queries' or 'blocks' or 'products' or 'groups' or 'captures' or 'split' or 'widen' or 'parts' or 'cluster' or 'gradients', each once}}
#schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, minimum = stale>

// -----

// expected-error@+1 {{tile must have a multiple of 16 queries, but has 72}}
#schedule = #attn.schedule<tile = 72x64, order = linear, warps = 4, stages = 2>

// -----

// expected-error@+1 {{tile must have a multiple of 16 keys, but has 72}}
#schedule = #attn.schedule<tile = 64x72, order = linear, warps = 4, stages = 2>

// -----

// expected-error@+1 {{shares must be at least 1, but are 0}}
#shares = #attn.gradients<parallel = [batch, head, key], shares = 0>

// -----

// expected-error@+1 {{shares are of a GPU and of parallel heads, but are 2}}
#shares = #attn.gradients<parallel = [batch, head], shares = 2>

// -----

// expected-error@+1 {{shares are of a GPU and of parallel heads, but are 2}}
#shares = #attn.gradients<parallel = [batch, key], shares = 2>

// -----

// expected-error@+1 {{gradients must have `key` parallel on a GPU, and only there}}
#no_warps = #attn.schedule<tile = 64x64, order = linear, gradients = <parallel = [head, key]>>

// -----

// expected-error@+1 {{split must be 1 to 128, but is 0}}
#no_part = #attn.schedule<tile = 64x64, order = linear, split = 0>

// -----

// expected-error@+1 {{split must be 1 to 128, but is 129}}
#many_parts = #attn.schedule<tile = 64x64, order = linear, split = 129>

// -----

// expected-error@+1 {{order must be linear where blocks share tiles, which take the same time, but is longest_first}}
#shared_order = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, blocks = shared>

// -----

// expected-error@+1 {{blocks must not be shared in a schedule of gradients}}
#shared_gradients = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = shared, gradients = <parallel = [batch, head, key]>>

// -----

// expected-error@+1 {{split must be 1 where blocks are shared, but is 2}}
#shared_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = shared, split = 2>

// -----

// expected-error@+1 {{split must be 1 where blocks are persistent, but is 2}}
#persistent_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = persistent, split = 2>

// -----

// expected-error@+1 {{split must be fixed to a multiple of the 48 keys of a tile, but is to 128}}
#torn_tiles = #attn.schedule<tile = 64x48, order = linear, split = fixed(128)>

// -----

// expected-error@+1 {{split must be fixed to a multiple of the 64 keys of a tile, but is to -64}}
#negative_parts = #attn.schedule<tile = 64x64, order = linear, split = fixed(-64)>

// -----

// expected-error@+1 {{split must not be fixed with a number of parts, blocks that are not of tiles, a stale maximum, a cluster or gradients, but is to 128}}
#stale_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = stale, split = fixed(128)>

// -----

// expected-error@+1 {{split must not be fixed with a number of parts, blocks that are not of tiles, a stale maximum, a cluster or gradients, but is to 128}}
#persistent_fixed = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, blocks = persistent, split = fixed(128)>

// -----

// expected-error@+1 {{expected '('}}
#no_size = #attn.schedule<tile = 64x64, order = linear, split = fixed>

// -----

// expected-error@+1 {{split must be 1 in a schedule of gradients, but is 2}}
#gradients_of_parts = #attn.schedule<tile = 64x64, order = linear, split = 2, gradients = <parallel = [head]>>

// -----

// expected-error@+1 {{widen must be 4 or 8 warps, products, or 0, but is 6}}
#six_wideners = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 6>

// -----

// expected-error@+1 {{widen must be 0 in a schedule of gradients, but is 4}}
#widened_gradients = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 4, gradients = <parallel = [key]>>

// -----

// expected-error@+1 {{widen must be 0 without warps that compute, but is 4}}
#wideners_alone = #attn.schedule<tile = 64x64, order = linear, widen = 4>

// -----

// expected-error@+1 {{parts must be 3, or 0, but are 2}}
#two_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, parts = 2>

// -----

// expected-error@+1 {{parts must be 0 in a schedule of gradients, but are 3}}
#gradients_in_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, parts = 3, gradients = <parallel = [key]>>

// -----

// expected-error@+1 {{parts must be 0 without warps that compute, but are 3}}
#parts_alone = #attn.schedule<tile = 64x64, order = linear, parts = 3>

// -----

// expected-error@+1 {{parts must be 0 where bytes are widened, but are 3}}
#widened_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 4, parts = 3>

// -----

// expected-error@+1 {{cluster must be 1, 2 or 4 blocks, but is 3}}
#three_blocks = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, cluster = 3>

// -----

// expected-error@+1 {{cluster must be 1 in a schedule of gradients and on a host, but is 2}}
#cluster_of_gradients = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, cluster = 2, gradients = <parallel = [batch, head, key]>>

// -----

// expected-error@+1 {{cluster must be 1 in a schedule of gradients and on a host, but is 2}}
#cluster_of_host = #attn.schedule<tile = 64x64, order = linear, cluster = 2>

// -----

// expected-error@+1 {{cluster must be 1 where keys are split, but is 2}}
#cluster_of_parts = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 2, cluster = 2>
