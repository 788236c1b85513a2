# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as a statement: one meaning, one error analysis, and three ways to
write it down: the fused op, the graph of attn ops, and importers' linalg.

The errors, with u the unit of the accumulation type and t that of the type in
which probabilities are multiplied with values:

- Scores: sums of D products, scaled; then the region. The
  exponential's argument has more: s, the row's maximum and their difference are
  multiplied by log2(e) and rounded, which is 2 u of each. So the exponent has an
  absolute error e_j, known for every score.
- Probabilities are normalised by the sum of the very numbers that are summed,
  whatever the scores' errors. With weights w_j exp(d_j), |d_j| <= e_j:
      p'_j <= p_j exp(e_j) / sum over k of p_k exp(-e_k),   p'_j <= 1,
  and as both p and p' sum to 1, the output's error is
      sum over j of (p'_j - p_j) (v_j - o) <= sum over j of |dp_j| |v_j - o|,
  which is nothing where all values agree, however large scores are. It is
  computed by Cauchy's inequality from sums of |dp_j|, |dp_j| v_j and |dp_j| v_j^2.
- Sums over the keys rescale what they have once for each tile, so count twice.
- Of the backward pass, ds_ij = p_ij D_ij with
      D_ij = z_ij do_i . v_j - do_i . o_i     (z: the dropout's factor).
  An error of do is in both products: it gives |v_j - o_i|, not |v_j| + |o_i|; and
  so with one key there is none. The output is read as it was rounded. Recomputed
  probabilities have the errors of the score and of the log-sum-exp, and may be 0
  where they are not normal: that is an error of `least`, which D_ij multiplies
  (`approx.lost`).
"""

import dataclasses

import torch

from . import approx
from .approx import Approx, gamma, unit
from .expressions import Env, Printer, Tracked, evaluate, literal
from .graph import Statement


def _philox_keep(shape, probability, seed, offset):
    from attention import keep_mask  # python/tests
    return torch.from_numpy(keep_mask(tuple(shape), probability, seed, offset))


#: The relative error of tanh.approx.f32 (PTX ISA 9.7.3.22), which scores of
#: bf16 have on a GPU.
TANH = 2.0**-11


def _spread(weights, values, centre, factor=None):
    """sum over j of weights_ij |factor_ij values_jd - centre_id|, bounded by
    Cauchy's inequality."""
    first = weights if factor is None else weights * factor
    second = first if factor is None else first * factor
    mass = weights.sum(-1, keepdim=True)
    square = (second @ (values * values) - 2 * centre * (first @ values)
              + mass * centre * centre).clamp_min(0)
    return (mass * square).sqrt()


def common(*dtypes):
    """The type in which operands of these types are multiplied."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    return "f64" if "f64" in dtypes else "f32"


def _bounds_keys(node):
    """The key compared with a length or a start, or with a position, which is one
    of these and the query's number."""
    if node.op != "cmp" or node.data not in ("slt", "sle", "sgt", "sge"):
        return False

    def is_leaf(x, name):
        return x.op == "leaf" and x.data == name

    def is_limit(x):
        return x.op in ("const", "size") or is_read(x)

    def is_read(x):
        return x.op == "read" and all(
            at.op == "const" or is_leaf(at, "b") or is_leaf(at, "h")
            for at in x.args)

    def is_position(x):
        # A bound made of sizes only is a diagonal.
        return x.op == "addi" and any(
            is_read(a) and is_leaf(b, "i") for a, b in (x.args, x.args[::-1]))

    return any(is_leaf(a, "j") and (is_limit(b) or is_position(b))
               for a, b in (node.args, node.args[::-1]))


@dataclasses.dataclass
class Attention(Statement):
    out: str
    q: str
    k: str
    v: str
    scale: float
    dtype: str
    score: object = None
    mask: object = None
    dropout: float = 0.0
    seeds: tuple = ()
    lse: str = None
    #: "op", "graph" or "linalg".
    form: str = "op"
    #: For a graph: the type of scores.
    inner: str = "f32"
    #: For linalg: True if heads come before positions; softmax in one or four.
    heads_first: bool = True
    one_softmax: bool = False
    #: For an op: its schedule, as MLIR; none: the compiler's.
    schedule: str = None

    def declare(self, program):
        q, v = program.tensors[self.q], program.tensors[self.v]
        self.output(program, self.out, (*q.dims[:3], v.dims[3]), self.dtype)
        if self.lse:
            self.output(program, self.lse, q.dims[:3], approx.wider(
                self.inner) if self.form == "graph"
                else self.accumulator(program))

    def inputs(self):
        names = [self.q, self.k, self.v]
        for region in (self.score, self.mask):
            if region:
                names += sorted(region.names())
        return names + [s for s in self.seeds]

    def accumulator(self, program):
        return approx.wider(*(program.tensors[n].dtype
                              for n in (self.q, self.k, self.v)))

    # Text.

    def dims(self, program):
        """B, H, G, Sq, Sk, D, E by name."""
        q, k, v = (program.tensors[n].dims for n in (self.q, self.k, self.v))
        if not self.heads_first:
            q, k, v = ([x[0], x[2], x[1], x[3]] for x in (q, k, v))
        return q[0], q[1], k[1], q[2], k[2], q[3], v[3]

    def region(self, program, dtype, prefix):
        """Printers of score and mask, with the names of what they yield."""
        leaves = {n: f"%{n}" for n in ("s", "b", "h", "i", "j")}
        found = []
        for root, mark in ((self.score, "s"), (self.mask, "m")):
            printer = Printer(dtype, f"{prefix}{mark}")
            name = printer.print(root, leaves, program.captures()) if root else None
            found.append((printer.lines, name))
        return found

    def text(self, program):
        if self.form == "linalg":
            from .linalg import attention_text
            return attention_text(self, program)
        dtype = (self.accumulator(program) if self.form == "op" else self.inner)
        (score, s), (mask, m) = self.region(program, dtype, f"{self.out}_")
        indices = "%b: index, %h: index, %i: index, %j: index"
        regions = ["", ""]
        if s:
            regions[0] = "\n    ".join(
                [f"{{ ^bb0(%s: {dtype}, {indices}):", *score,
                 f"attn.yield {s} : {dtype} }}"])
        if m:
            regions[1] = "\n    ".join(
                [f"{{ ^bb0({indices}):", *mask, f"attn.yield {m} : i1 }}"])
        seeds = ", ".join(f"%{n}" for n in self.seeds)
        kinds = [program.kind(n) for n in (self.q, self.k, self.v)]
        if self.form == "op":
            line = (f"%{self.out}{f', %{self.lse}' if self.lse else ''} = "
                    f"attn.attention %{self.q}, %{self.k}, %{self.v} "
                    f"scale({literal(self.scale)})")
            if self.dropout:
                line += f" dropout({literal(self.dropout)}, {seeds})"
            if s:
                line += " score " + regions[0]
            if m:
                line += " mask " + regions[1]
            if self.schedule:
                line += f" {{schedule = {self.schedule}}}"
            line += f" : {', '.join(kinds)} -> {program.kind(self.out)}"
            return [line + (f", {program.kind(self.lse)}" if self.lse else "")]
        b, h, _, sq, sk, _, _ = self.dims(program)
        kind = program.kind_of((b, h, sq, sk), self.inner)
        at = f"%{self.out}_"
        lines = [f"{at}0 = attn.scores %{self.q}, %{self.k} : {kinds[0]}, "
                 f"{kinds[1]} -> {kind}",
                 f"{at}1 = attn.scale {at}0 by {literal(self.scale)} : {kind}"]
        last = f"{at}1"
        if s:
            lines.append(f"{at}2 = attn.modify {last} {regions[0]} : {kind}")
            last = f"{at}2"
        if m:
            lines.append(f"{at}3 = attn.mask {last} {regions[1]} : {kind}")
            last = f"{at}3"
        if self.lse:
            lines.append(f"%{self.lse} = attn.log_sum_exp {last} : {kind} -> "
                         f"{program.kind(self.lse)}")
        lines.append(f"{at}4 = attn.softmax {last} : {kind} -> {kind}")
        last = f"{at}4"
        if self.dropout:
            lines.append(f"{at}5 = attn.dropout {last}, {literal(self.dropout)} "
                         f"seed({seeds}) : {kind}")
            last = f"{at}5"
        lines.append(f"%{self.out} = attn.values {last}, %{self.v} : {kind}, "
                     f"{kinds[2]} -> {program.kind(self.out)}")
        return lines

    # Meaning.

    def _turn(self, x):
        return x if self.heads_first else x.transpose(1, 2)

    def _grid(self, shape):
        names = ("b", "h", "i", "j")
        return {name: torch.arange(size).reshape(
            [-1 if d == at else 1 for d in range(4)])
                for at, (name, size) in enumerate(zip(names, shape))}

    def keep(self, program, values, shape):
        """Returns the scores that the mask keeps, and the dropout's factors."""
        keep = torch.ones(shape, dtype=torch.bool)
        if self.mask and keep.numel():
            env = Env(self._grid(shape), values, program.shapes(), "f64")
            keep = keep & evaluate(self.mask, env)
        if not self.dropout or not keep.numel():
            return keep, None
        seed, offset = (int(values[n]) for n in self.seeds)
        kept = _philox_keep(shape, self.dropout, seed, offset)
        return keep, kept.double() / (1 - self.dropout)

    def absent(self, program, values, shape, heads):
        """Keys of a batch and of one of `heads` heads that are absent, so that their
        values may be anything: those that a comparison on the key removes for all
        queries of the heads that share it (the description of attn.attention,
        docs/rationale-masks.md). Some more may be,
        as arithmetic on indices has bounds of its own; these are of the simple
        comparisons that must count."""
        absent = torch.zeros(shape[0], shape[1], shape[3], dtype=torch.bool)
        if not self.mask or not absent.numel():
            return absent[:, :heads]
        env = Env(self._grid(shape), values, program.shapes(), "f64")
        conditions = [self.mask]
        while conditions:
            node = conditions.pop()
            if node.op == "and":
                conditions += node.args
            elif _bounds_keys(node):
                keep = torch.broadcast_to(evaluate(node, env), shape)
                absent = absent | ~keep.any(2)
        return absent.unflatten(1, (heads, -1)).all(2)

    def evaluate(self, program, values):
        q, k, v = (self._turn(values[n]) for n in (self.q, self.k, self.v))
        group = q.shape[1] // max(k.shape[1], 1)
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
        s = q @ k.transpose(2, 3) * self.scale
        keep, drop = self.keep(program, values, s.shape)
        if self.score and s.numel():
            env = Env({"s": s, **self._grid(s.shape)}, values, program.shapes(),
                      "f64")
            s = evaluate(self.score, env).expand(s.shape).to(s.dtype)
        # Scores of minus infinity are treated as masked.
        keep = keep & (s.detach() != -torch.inf)
        row = keep.any(-1, keepdim=True)
        s = torch.where(row, torch.where(keep, s, -torch.inf), 0.0)
        p = torch.where(keep, torch.softmax(s, -1), 0.0)
        if self.lse:
            l = torch.where(row, torch.logsumexp(s, -1, keepdim=True),
                            -torch.inf) if s.shape[3] else torch.full(
                                s.shape[:3] + (1,), -torch.inf, dtype=s.dtype)
            values[self.lse] = l.squeeze(-1)
        if drop is not None:
            p = p * drop.to(p.dtype)
        values[self.out] = self._turn(p @ v)

    # Errors.

    def _units(self, program, target):
        dtypes = [program.tensors[n].dtype for n in (self.q, self.k, self.v)]
        u = unit(self.accumulator(program))
        inner = self.accumulator(program)
        if self.form == "graph":
            # With f64 values only, scores are not computed in f64.
            u = max(u, unit(approx.wider(self.inner, *dtypes[:2])))
            inner = self.inner
        product = common(*dtypes)
        if target == "host" and not (
                product in program.pairs
                and program.shape(self.q)[-1] % 32 == 0
                and program.shape(self.v)[-1] % 16 == 0):
            product = inner
        if unit(inner) > unit(product):
            product = inner
        return u, inner, product

    def track(self, program, values, target):
        step = self._forward(program, values, target)
        values[self.out] = step["o"].map(self._turn)
        if self.lse:
            values[self.lse] = step["l"].map(lambda x: x.squeeze(-1))

    def _forward(self, program, values, target):
        u, inner, product = self._units(program, target)
        q, k, v = (values[n].map(self._turn) for n in (self.q, self.k, self.v))
        group = q.shape[1] // max(k.shape[1], 1)
        k, v = (x.map(lambda t: t.repeat_interleave(group, 1)) for x in (k, v))
        raw = times_scale(approx.matmul(
            q, k.map(lambda t: t.transpose(2, 3)), u), self.scale, u)
        if self.form == "graph":
            raw = raw.store(inner).store(inner)
        shape = raw.shape
        plain = {n: x.value if isinstance(x, Approx) else x
                 for n, x in values.items()}
        keep, drop = self.keep(program, plain, shape)
        score, region = raw, None
        if self.score and raw.value.numel():
            env = Env({"s": raw, **self._grid(shape)}, values, program.shapes(),
                      inner, TANH if target != "host" and inner == "f32"
                      and product == "bf16" else 0.0)
            region = Tracked(self.score, env)
            score = approx.expand(region.result, shape)
        if self.form == "graph":
            score = score.round(inner)
        keep = keep & (score.value != -torch.inf)
        s, e = (torch.where(keep, x, 0.0) for x in (score.value, score.error))
        row = keep.any(-1, keepdim=True)
        keys = shape[3]
        low = torch.where(keep, s, -torch.inf)
        if keys:
            lse = torch.logsumexp(torch.where(row, low, 0.0), -1, keepdim=True)
            top = torch.where(keep, s.abs() + e, 0.0).amax(-1, keepdim=True)
        else:
            lse = top = torch.zeros(shape[:3] + (1,), dtype=torch.float64)
        log_p = torch.where(keep, s - lse, -torch.inf)
        # Not the exponential of `log_p`: its sum is 1 for any scores.
        p = torch.where(keep, torch.softmax(torch.where(row, low, 0.0), -1), 0.0)
        # The error of the exponential's argument.
        e = torch.where(keep, e + u * (4 * s.abs() + 4 * top), 0.0)
        # A score that may be infinite may make its row NaN, masked keys too.
        unknown = e.isinf().any(-1, keepdim=True)
        loss = (p * torch.expm1(-e)).sum(-1, keepdim=True)
        gain = -torch.log1p(loss.clamp_min(-1 + 1e-300))
        up = torch.minimum(log_p + e + gain, torch.zeros(()))
        rise = torch.where(e + gain < 1e-2, p * torch.expm1(
            torch.clamp_max(e + gain, 1.0)), (up.exp() - p).clamp_min(0))
        delta = torch.where(keep, torch.minimum(
            torch.maximum(rise, p * -torch.expm1(-e - gain)),
            torch.maximum(1 - p, p)), 0.0)
        z = drop
        weight = p if z is None else p * z
        o = weight @ v.value
        moved = _spread(delta, v.value, o, z)
        t = unit(product)
        size = weight @ v.value.abs()
        few = (delta if z is None else delta * z)
        error = (moved + size * (gamma(2 * keys + 24, u) + t) + weight @ v.error
                 + few @ v.error + (2 * keys + 24) * approx.lost(u)
                 + approx.least(product) * (v.value.abs().sum(2, keepdim=True)
                                            * (1.0 if z is None else
                                               1 / (1 - self.dropout))))
        if self.form == "graph":
            error = error + 2 * unit(inner) * size
        error = torch.where(unknown, torch.inf, error)
        o = Approx(torch.where(row, o, 0.0), torch.where(row, error, 0.0))
        o = o.store(self.dtype)
        grown = torch.log1p((p * torch.expm1(e.clamp_max(700.0))).sum(
            -1, keepdim=True)) if keys else torch.zeros_like(lse)
        l_error = (torch.minimum(grown, e.amax(-1, keepdim=True) if keys
                                 else grown)
                   + gamma(2 * keys + 24, u) + u * 6 * (lse.abs() + top))
        l_error = torch.where(unknown, torch.inf, l_error)
        l = Approx(torch.where(row, lse, -torch.inf),
                   torch.where(row, l_error, 0.0))
        return dict(q=q, k=k, v=v, raw=raw, keep=keep, z=z, p=p, delta=delta,
                    o=o, l=l, e=e, lse=lse, region=region,
                    score=Approx(s, e),
                    units=(u, inner, product), group=group, row=row, unknown=unknown)

    def pull(self, program, values, gradients, target):
        do = gradients.take(self.out)
        dl = gradients.take(self.lse) if self.lse else None
        if do is None and dl is None:
            return
        step = self._forward(program, values, target)
        q, k, v, keep, p = (step[n] for n in ("q", "k", "v", "keep", "p"))
        u, inner, product = step["units"]
        o, z = step["o"], step["z"]
        if do is None:
            do = Approx.exact(torch.zeros_like(o.value))
        else:
            do = do.map(self._turn)
        dtypes = [program.tensors[n].dtype for n in (self.q, self.k, self.v)]
        wide = common(*dtypes)
        if (target != "host" and unit(wide) > unit(self.dtype)
                and wide != "f16"):
            # It is rounded to the type of products, but for f16, whose range is
            # too narrow.
            do = do.store(wide)
        t = unit(product)
        # Recomputed probabilities: score, log-sum-exp, their difference.
        r = step["e"] + step["l"].error + u * (
            8 * step["score"].value.abs() + 8 * step["lse"].abs() + 16)
        again = p * torch.expm1(r.clamp_max(700.0))
        delta = torch.where(keep, torch.maximum(step["delta"] + p * gamma(
            2 * keep.shape[3] + 24, u), torch.minimum(
                again, torch.ones(()))), 0.0)
        # Those that are not normal, in the type they are computed or stored in,
        # may be 0. Gradients have them times D, which may be large.
        delta = delta + torch.where(keep, approx.least(inner), 0.0)
        one = z if z is not None else torch.ones(())
        weight, few = p * one, delta * one
        vt = v.map(lambda x: x.transpose(2, 3))
        product_dv = do.value @ vt.value
        base = (do.value * o.value).sum(-1, keepdim=True)
        d = one * product_dv - base
        # Errors of do are in both terms.
        spread = (one * one * (do.error @ (vt.value * vt.value))
                  - 2 * one * ((do.error * o.value) @ vt.value)
                  + (do.error * o.value**2).sum(-1, keepdim=True)).clamp_min(0)
        spread = (spread * do.error.sum(-1, keepdim=True)).sqrt()
        # For an operand as it comes: where the exact one is 0, its error counts.
        most = lambda x: x.value.abs() + x.error
        size = (one * (most(do) @ most(vt))
                + (most(do) * most(o)).sum(-1, keepdim=True))
        d_error = (spread + one * (most(do) @ vt.error)
                   + (most(do) * o.error).sum(-1, keepdim=True)
                   + gamma(2 * v.shape[3] + 8, u) * size
                   + (2 * v.shape[3] + 8) * approx.lost(u))
        if self.form == "graph":
            d_error = d_error + 2 * unit(inner) * (size + d.abs())
        if z is not None and target != "host":
            # A GPU recognises elements that the dropout dropped by weights that
            # are 0, and has rounded these: weights too small for their type
            # count as dropped.
            gone = (p + delta) * one <= 2 * approx.least(product)
            d_error = d_error + torch.where(gone, (one * product_dv).abs(), 0.0)
        if dl is not None:
            extra = dl.map(lambda x: x.unsqueeze(-1))
            live = torch.where(step["row"], extra.value, 0.0)
            d = d + live
            d_error = d_error + extra.error + 2 * u * (live.abs() + extra.error)
        ds = Approx(p * d, delta * (d.abs() + d_error) + p * d_error
                    + 4 * u * p * (d.abs() + d_error))
        if self.form == "graph":
            ds = ds.store(inner)
        reads = []
        if self.score and ds.value.numel():
            arguments, reads = step["region"].pull_back(ds)
            ds = arguments.get("s", Approx.exact(torch.zeros_like(ds.value)))
        rounded = ds.store(product)
        error = torch.where(keep, rounded.error, 0.0)
        error = torch.where(step["unknown"], torch.inf, error)
        # Rounding does not reach scores that have no gradient at all.
        ds = Approx(torch.where(keep, ds.value, 0.0), error)
        if self.form == "graph":
            ds = ds.store(inner)
        grouped = lambda x: x.unflatten(1, (-1, step["group"])) if x.shape[1] \
            else x.unsqueeze(2)
        turned = ds.map(lambda x: x.transpose(2, 3))
        dq = times_scale(approx.matmul(ds, k, u, extra=ds.shape[3] + 8),
                         self.scale, u)
        dk = times_scale(approx.matmul(turned, q, u, extra=8), self.scale, u)
        kept = Approx(weight, few + t * weight + approx.least(product) * one)
        kept = Approx(kept.value, torch.where(step["unknown"], torch.inf,
                                              torch.where(keep, kept.error, 0.0)))
        if self.form == "graph":
            kept = kept.round(inner)
        dv = approx.matmul(kept.map(lambda x: x.transpose(2, 3)), do, u,
                           extra=8)
        gradients.add(self.q, dq.map(self._turn))
        for name, gradient in ((self.k, dk), (self.v, dv)):
            summed = approx.total(gradient.map(grouped), (2,), u)
            gradients.add(name, summed.map(self._turn))
        self._add_reads(program, values, gradients, reads, u)

    def _add_reads(self, program, values, gradients, reads, u):
        """Adds reads' gradients to captured tensors: sums of unknown order."""
        sums = {}
        for name, indices, term in reads:
            tensor = program.tensors[name]
            if getattr(tensor, "scalar", False):
                continue
            shape = program.shape(name)
            parts = sums.setdefault(name, [
                torch.zeros(shape, dtype=torch.float64) for _ in range(4)])
            flat = torch.zeros(term.shape, dtype=torch.int64)
            for index, size in zip(indices, shape):
                flat = flat * size + index
            flat = flat.reshape(-1)
            for part, what in zip(parts, (
                    term.value, term.error, term.value.abs() + term.error,
                    (term.value != 0).double())):
                part.view(-1).index_add_(0, flat, what.reshape(-1))
        for name, (value, error, size, count) in sums.items():
            n = count * u
            bound = torch.where(n < 0.5, n / (1 - n).clamp_min(0.5), 1.0)
            gradients.add(name, Approx(
                value, error + bound * size + count * approx.lost(u)))


def times_scale(a, factor, u):
    """Multiplies by the scale, and by log2(e) as a part of it."""
    value = a.value * factor
    return Approx(value, a.error * abs(factor) + 4 * u * value.abs()
                  + approx.lost(u))
