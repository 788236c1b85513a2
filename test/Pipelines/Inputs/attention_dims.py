"""Prints a module with attention of each head dim and element type.

attention_dims.py DIMS TYPES [dropout], each separated by commas; 192:128 is a
head dim of 192 with values of 128.
"""

import sys

dropout = "dropout(0.1, %seed, %offset) " if "dropout" in sys.argv[3:] else ""
for dim in sys.argv[1].split(","):
    head, value = (dim.split(":") * 2)[:2]
    for element in sys.argv[2].split(","):
        query = f"tensor<1x4x?x{head}x{element}>"
        key = f"tensor<1x2x?x{head}x{element}>"
        values = f"tensor<1x2x?x{value}x{element}>"
        output = f"tensor<1x4x?x{value}x{element}>"
        types = f"{query}, {key}, {values}"
        name = f"{element}_{head}_{value}"
        print(f"""
func.func @{name}(%q: {query}, %k: {key}, %v: {values}, %seed: i64, %offset: i64) -> {output} {{
  %o = attn.attention %q, %k, %v scale(0.125) {dropout}mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %m = arith.cmpi sge, %i, %j : index
    attn.yield %m : i1
  }} : {types} -> {output}
  return %o : {output}
}}""")
