"""A small assembler for the classic BPF that seccomp runs.

A program is a list of instructions, and of lists that are tried one after the other: a `rule` looks at one system call
and falls through to the next one if it is about another. Jumps are relative and short by construction.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

Instruction = tuple[int, int, int, int]
"""Operation, how many to skip if true, how many to skip if false, operand."""

_LOAD, _RETURN, _AND = 0x20, 0x06, 0x54
_EQUAL, _GREATER, _AT_LEAST, _ANY_BIT = 0x15, 0x25, 0x35, 0x45
NUMBER, ARCH = 0, 4
"""Offsets in what the filter is shown: the call's number and the architecture it was made for."""

ALLOW, KILL = 0x7FFF0000, 0x80000000
LONGEST = 4096


def fail(errno: int) -> int:
    return 0x00050000 | errno


def load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def argument(index: int) -> Instruction:
    """The low half: enough for flags, families and numbers of processes, all of which the kernel takes as ints."""
    return load(16 + 8 * index)


def give(verdict: int) -> Instruction:
    return (_RETURN, 0, 0, verdict)


def mask(bits: int) -> Instruction:
    return (_AND, 0, 0, bits)


def unless_equal(value: int, skip: int) -> Instruction:
    return (_EQUAL, 0, skip, value)


def if_equal(value: int, skip: int) -> Instruction:
    return (_EQUAL, skip, 0, value)


def if_any_bit(bits: int, skip: int) -> Instruction:
    return (_ANY_BIT, skip, 0, bits)


def if_above(value: int, skip: int) -> Instruction:
    return (_GREATER, skip, 0, value)


def unless_at_least(value: int, skip: int) -> Instruction:
    return (_AT_LEAST, 0, skip, value)


def rule(number: int, body: Sequence[Instruction]) -> list[Instruction]:
    """For one call; the body must end in a verdict on every path."""
    return [unless_equal(number, len(body)), *body]


def allow_only(index: int, values: Iterable[int], otherwise: int) -> list[Instruction]:
    """Allowed if the argument is one of these."""
    wanted = sorted(set(values))
    tests = [if_equal(value, len(wanted) - place) for place, value in enumerate(wanted)]
    return [argument(index), *tests, give(otherwise), give(ALLOW)]


def allow_numbers(numbers: Iterable[int]) -> list[Instruction]:
    """Neighbouring numbers are tested as one range, which keeps the program short."""
    program: list[Instruction] = []
    for low, high in _ranges(sorted(set(numbers))):
        if low == high:
            program += [unless_equal(low, 1), give(ALLOW)]
        else:
            program += [unless_at_least(low, 2), if_above(high, 1), give(ALLOW)]
    return program


def assemble(program: Sequence[Instruction]) -> bytes:
    if len(program) > LONGEST:
        raise ValueError(f"a filter of {len(program)} instructions is too long")
    for place, (operation, yes, no, _) in enumerate(program):
        if max(yes, no) > 255 or place + 1 + max(yes, no) >= len(program) + (operation == _RETURN):
            raise ValueError(f"instruction {place} jumps out of the filter")
    return b"".join(struct.pack("<HBBI", *each) for each in program)


def _ranges(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    start = 0
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers) or numbers[place + 1] != number + 1:
            yield numbers[start], number
            start = place + 1
