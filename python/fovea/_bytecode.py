# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the code of a function reads from outside of its arguments.

Found in its bytecode, of which only operations are known here that compute with
what is on the stack: neither do they write to anything that outlives the call, nor
do they read what is not a part of such a value. Code with any other operation, of
this or of a later Python, is not understood.
"""

import dis
import types

#: Where a read begins: in a cell of the closure, a global name, or the object that
#: the first parameter is.
CELL, GLOBAL, SELF = range(3)

#: Operations that compute with what is on the stack, in all versions of Python.
_PLAIN = frozenset("""
    BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SLICE BUILD_TUPLE CALL
    CALL_FUNCTION CALL_FUNCTION_EX CALL_FUNCTION_KW CALL_KW CALL_METHOD COMPARE_OP
    CONTAINS_OP COPY COPY_FREE_VARS DICT_MERGE DICT_UPDATE DUP_TOP DUP_TOP_TWO
    END_FOR FOR_ITER GEN_START GET_ITER IS_OP KW_NAMES LIST_APPEND LIST_EXTEND
    LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_CLOSURE LOAD_COMMON_CONSTANT LOAD_CONST
    LOAD_CONST_IMMORTAL LOAD_SMALL_INT MAKE_CELL MAKE_FUNCTION MAP_ADD NOT_TAKEN
    POP_ITER POP_TOP PRECALL PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_CONST
    RETURN_GENERATOR RETURN_VALUE ROT_FOUR ROT_N ROT_THREE ROT_TWO
    SET_FUNCTION_ATTRIBUTE SWAP TO_BOOL UNPACK_EX UNPACK_SEQUENCE YIELD_VALUE
    BINARY_ADD BINARY_AND BINARY_FLOOR_DIVIDE BINARY_LSHIFT BINARY_MATRIX_MULTIPLY
    BINARY_MODULO BINARY_MULTIPLY BINARY_OP BINARY_OR BINARY_POWER BINARY_RSHIFT
    BINARY_SLICE BINARY_SUBSCR BINARY_SUBTRACT BINARY_TRUE_DIVIDE BINARY_XOR
    UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE
    JUMP_ABSOLUTE JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD
    JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP POP_JUMP_BACKWARD_IF_FALSE
    POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE
    POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE
    POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE
    """.split())

#: Those that stand for nothing.
_NOTHING = ("CACHE", "EXTENDED_ARG", "NOP")

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")

#: Those that push one local variable; of two, the last is on top of the stack.
_LOCALS = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST",
           "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST")

_STORES = ("LOAD_FAST_AND_CLEAR", "STORE_FAST", "STORE_FAST_MAYBE_NULL",
           "STORE_FAST_STORE_FAST")

_INTRINSICS = ("INTRINSIC_LIST_TO_TUPLE", "INTRINSIC_STOPITERATION_ERROR",
               "INTRINSIC_UNARY_POSITIVE")


class Reads:
    """What a code reads: known by its identity, since equal codes may be of
    several functions."""

    __slots__ = ("code", "paths", "updates")

    def __init__(self, code, paths, updates):
        #: The code, which lives as long.
        self.code = code
        #: Where each read begins, the index or the name there, the names of
        #: attributes that follow, and from which of these on all are plain.
        self.paths = paths
        #: There are operations that change a list in place.
        self.updates = updates


class _Unknown(Exception):
    """The code is not understood."""


def find_reads(code, plain, has_self=False):
    """Returns the `Reads` of a code, None if it is not understood.

    plain: the names of attributes that computed values may be asked for.
    has_self: the first parameter is an object, of which attributes alone are read.
    """
    cells = {name: at for at, name in enumerate(code.co_freevars)}
    owner = None
    if has_self:
        if not code.co_argcount:
            return None
        owner = code.co_varnames[0]
    scan = _Scan(plain)
    try:
        scan.read(code, cells, owner)
    except _Unknown:
        return None
    return Reads(code, tuple(scan.paths), scan.updates)


class _Scan:
    def __init__(self, plain):
        self.plain = plain
        self.paths = {}  # Ordered, and each once.
        self.updates = False

    def read(self, code, cells, owner):
        """Reads a code of which the free variables are cells of the outermost
        function, by their indices, or variables in between, None."""
        if owner in code.co_cellvars:
            raise _Unknown
        steps = [step for step in dis.get_instructions(code)
                 if step.opname not in _NOTHING]
        at = 0
        while at < len(steps):
            root = self._find_root(steps[at], code, cells, owner)
            at += 1
            if root is None:
                continue
            names = []
            while at < len(steps) and steps[at].opname in _ATTRIBUTES and (
                    not steps[at].is_jump_target):
                names.append(steps[at].argval)
                at += 1
            start = len(names)
            while start and names[start - 1] in self.plain:
                start -= 1
            self.paths[(*root, tuple(names), start)] = None

    def _find_root(self, step, code, cells, owner):
        """Returns where a step's value comes from, None if from the stack."""
        name = step.opname
        if name == "LOAD_GLOBAL":
            return GLOBAL, step.argval
        if name == "LOAD_DEREF":
            at = cells.get(step.argval)
            if at is not None:
                return CELL, at
            if step.argval not in cells and step.argval not in code.co_cellvars:
                raise _Unknown
            return None
        if name in _LOCALS:
            names = step.argval
            names = names if isinstance(names, tuple) else (names,)
            if owner in names[:-1]:
                raise _Unknown
            return (SELF, 0) if owner is not None and names[-1] == owner else None
        if name in _STORES:
            names = step.argval
            if owner in (names if isinstance(names, tuple) else (names,)):
                raise _Unknown
            return None
        if name == "STORE_DEREF":
            if step.argval not in code.co_cellvars:
                raise _Unknown
            return None
        if name in _ATTRIBUTES:
            if step.argval not in self.plain:
                raise _Unknown
            return None
        if name.startswith("INPLACE_") or (
                name == "BINARY_OP" and step.argrepr.endswith("=")):
            self.updates = True
            return None
        if name == "CALL_INTRINSIC_1":
            if step.argrepr not in _INTRINSICS:
                raise _Unknown
            return None
        if name not in _PLAIN:
            raise _Unknown
        if name == "LOAD_CONST" and isinstance(step.argval, types.CodeType):
            inner = step.argval
            self.read(inner, {
                free: None if free in code.co_cellvars else cells[free]
                for free in inner.co_freevars}, None)
        return None
