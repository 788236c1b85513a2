"""Serves a Hugging Face model of random weights from a cache in pages: prompts of
several lengths, one kernel for all steps, and the tokens of eager attention.

    python examples/paged_decode.py
"""

import torch
from transformers import (AttentionInterface, AttentionMaskInterface,
                          LlamaConfig, LlamaForCausalLM)

import fovea

PAGE = 16


class PagedCache:
    """Keys and values of all layers in pages, which sequences take as they
    grow."""

    def __init__(self, config, num_pages, batch, dtype):
        shape = (config.num_hidden_layers, 2, num_pages, PAGE,
                 config.num_key_value_heads, config.head_dim)
        # Nothing reads what nobody has written.
        self.pages = torch.full(shape, float("nan"), dtype=dtype)
        self.free = torch.randperm(num_pages).tolist()
        self.table = torch.full((batch, num_pages), -1, dtype=torch.int32)
        self.lengths = torch.zeros(batch, dtype=torch.int32)
        # The sequences of a call.
        self.rows = slice(None)

    def reserve(self, rows, count):
        """Takes pages for `count` more tokens of each of these sequences."""
        self.rows = rows
        for row in range(*rows.indices(len(self.table))):
            used = -(-int(self.lengths[row]) // PAGE)
            needed = -(-(int(self.lengths[row]) + count) // PAGE)
            for column in range(used, needed):
                self.table[row, column] = self.free.pop()

    def attend(self, module, query, key, value, attention_mask, scaling=None,
               **_):
        """The attention of one layer, in transformers' interface: writes the new
        keys to the cache and attends to all."""
        keys, values = self.pages[module.layer_idx]
        output = fovea.flash_attn_with_kvcache(
            query.transpose(1, 2), keys, values,
            key.transpose(1, 2), value.transpose(1, 2),
            cache_seqlens=self.lengths[self.rows],
            page_table=self.table[self.rows], softmax_scale=scaling,
            causal=True)
        return output, None


def generate(model, cache, prompts, count):
    """Returns `count` tokens for each prompt: prompts one by one, then a step of
    all sequences for each token."""
    AttentionInterface.register("paged", cache.attend)
    AttentionMaskInterface.register("paged", lambda *_, **__: None)
    model.set_attn_implementation("paged")

    def run(tokens, rows):
        cache.reserve(rows, tokens.shape[1])
        places = cache.lengths[rows, None] + torch.arange(tokens.shape[1])
        logits = model(tokens, position_ids=places.long(), use_cache=False).logits
        cache.lengths[rows] += tokens.shape[1]
        return logits[:, -1:].argmax(-1)

    last = torch.cat([run(prompt[None], slice(row, row + 1))
                      for row, prompt in enumerate(prompts)])
    tokens = [last]
    for _ in range(count - 1):
        tokens.append(run(tokens[-1], slice(None)))
    return torch.cat(tokens, 1)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=199, hidden_size=128, intermediate_size=96,
                         num_hidden_layers=2, num_attention_heads=8,
                         num_key_value_heads=2, max_position_embeddings=256,
                         eos_token_id=None)
    model = LlamaForCausalLM(config).eval()
    prompts = [torch.randint(199, (length,)) for length in (5, 37, 16, 1)]
    cache = PagedCache(config, 32, len(prompts), model.dtype)
    found = generate(model, cache, prompts, 24)
    model.set_attn_implementation("eager")
    for prompt, tokens in zip(prompts, found):
        wanted = model.generate(prompt[None], max_new_tokens=24,
                                do_sample=False)
        assert torch.equal(wanted[0, len(prompt):], tokens), (wanted, tokens)
    print(f"{found.numel()} tokens of {len(prompts)} prompts are those of eager "
          "attention")


if __name__ == "__main__":
    main()
