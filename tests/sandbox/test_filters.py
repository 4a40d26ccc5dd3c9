"""The seccomp filter, run by a small machine of our own on both architectures: what is not named is refused."""

from __future__ import annotations

import errno
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.sandbox.inside import seccomp
from toolgate.sandbox.inside.kernel import AARCH64, X86_64, Arch

ARCHES = [X86_64, AARCH64]
KINDS = {
    "python": seccomp.Permits(),
    "network": seccomp.Permits(network=True),
    "javascript": seccomp.Permits(execute=True, runtime=True),
    "shell": seccomp.Permits(execute=True, processes=True),
    "landlock": seccomp.Permits(alone=4242),
}
NEVER = """
ptrace process_vm_readv process_vm_writev mount umount2 pivot_root chroot unshare setns io_uring_setup io_uring_enter
io_uring_register bpf perf_event_open userfaultfd keyctl add_key request_key kexec_load init_module finit_module
delete_module open_by_handle_at name_to_handle_at pidfd_getfd pidfd_open pidfd_send_signal kcmp personality swapon reboot
sethostname setdomainname acct quotactl syslog settimeofday clock_settime adjtimex mount_setattr move_mount fsopen fsconfig
fsmount fspick open_tree memfd_secret fanotify_init move_pages migrate_pages process_madvise process_mrelease mknodat mknod
shmget semget msgget mq_open setuid setgid setgroups capset seccomp landlock_restrict_self execveat vhangup
"""
TALK = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3, "recvfrom": 3, "recvmsg": 2, "recvmmsg": 3}
"""Which argument their flags are."""


def verdict(code: bytes, arch: int, number: int, *args: int) -> int:
    """What a kernel would say."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *(*args, 0, 0, 0, 0, 0, 0)[:6])
    program = list(struct.iter_unpack("<HBBI", code))
    register = place = 0
    while True:
        operation, yes, no, value = program[place]
        place += 1
        if operation == 0x06:
            return int(value)
        if operation == 0x20:
            (register,) = struct.unpack_from("<I", data, value)
        elif operation == 0x54:
            register &= value
        else:
            true = {
                0x15: register == value,
                0x25: register > value,
                0x35: register >= value,
                0x45: bool(register & value),
            }[operation]
            place += yes if true else no


def assembled(kind: str, arch: Arch) -> bytes:
    return seccomp.assemble(seccomp.program(KINDS[kind], arch))


@pytest.fixture(params=itertools.product(KINDS, ARCHES), ids=lambda pair: f"{pair[0]}-{pair[1].name}")
def both(request: pytest.FixtureRequest) -> tuple[str, Arch]:
    return request.param  # type: ignore[no-any-return]


def test_the_lists_name_only_calls_that_exist() -> None:
    known = X86_64.calls.keys() | AARCH64.calls.keys()
    for permits in KINDS.values():
        assert set(seccomp.names(permits)) <= known
    assert set(NEVER.split()) <= known


def test_it_assembles_and_is_short(both: tuple[str, Arch]) -> None:
    assert len(assembled(*both)) // 8 < 400


def test_every_call_that_is_not_named_is_refused(both: tuple[str, Arch]) -> None:
    kind, arch = both
    code = assembled(kind, arch)
    named = {arch.calls[name] for name in seccomp.names(KINDS[kind]) if name in arch.calls}
    by_arguments = {
        "clone",
        "socket",
        "socketpair",
        "ioctl",
        "fcntl",
        "prctl",
        "prlimit64",
        "kill",
        "tgkill",
        "setsockopt",
    }
    decided = {arch.calls[name] for name in (*by_arguments, *TALK, "rt_sigqueueinfo", "rt_tgsigqueueinfo")}
    for number in range(600):
        allowed = verdict(code, arch.audit, number) == seccomp.ALLOW
        assert allowed == (number in named) or number in decided, number
    for name in NEVER.split():
        if name in arch.calls:
            assert verdict(code, arch.audit, arch.calls[name]) != seccomp.ALLOW, name


def test_another_architecture_or_abi_ends_the_process(both: tuple[str, Arch]) -> None:
    kind, arch = both
    code = assembled(kind, arch)
    assert verdict(code, 0x40000003, arch.calls["read"]) == seccomp.KILL
    assert verdict(code, ARCHES[arch is X86_64].audit, 0) == seccomp.KILL
    if arch.x32:
        assert verdict(code, arch.audit, arch.calls["read"] | 0x40000000) == seccomp.KILL


def test_calls_that_do_not_exist_yet_look_as_if_they_did_not(both: tuple[str, Arch]) -> None:
    kind, arch = both
    assert verdict(assembled(kind, arch), arch.audit, arch.newest + 1) == seccomp.fail(errno.ENOSYS)
    assert verdict(assembled(kind, arch), arch.audit, arch.calls["clone3"]) == seccomp.fail(errno.ENOSYS)


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
@given(flags=st.integers(0, 0xFFFFFFFF))
def test_a_clone_makes_a_thread_or_nothing_and_never_a_namespace(arch: Arch, flags: int) -> None:
    number = arch.calls["clone"]
    namespace, thread = flags & 0x7E020080, flags & 0x10000
    assert (verdict(assembled("python", arch), arch.audit, number, flags) == seccomp.ALLOW) == bool(
        thread and not namespace
    )
    assert (verdict(assembled("shell", arch), arch.audit, number, flags) == seccomp.ALLOW) == (not namespace)


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
@given(family=st.integers(0, 60), kind=st.integers(0, 0xFFFFF))
def test_sockets_are_tcp_with_a_grant_and_pairs_are_streams(arch: Arch, family: int, kind: int) -> None:
    stream = kind & 0xF == 1
    granted = (
        verdict(assembled("network", arch), arch.audit, arch.calls["socket"], family, kind) == seccomp.ALLOW
    )
    assert granted == (family in (2, 10) and stream)
    assert verdict(assembled("python", arch), arch.audit, arch.calls["socket"], family, kind) != seccomp.ALLOW
    pair = (
        verdict(assembled("python", arch), arch.audit, arch.calls["socketpair"], family, kind)
        == seccomp.ALLOW
    )
    assert pair == (family == 1 and stream)


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
def test_without_a_namespace_only_itself_can_be_signalled(arch: Arch) -> None:
    code = assembled("landlock", arch)
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        assert verdict(code, arch.audit, arch.calls[name], 4242) == seccomp.ALLOW
        for pid in (0, 1, 4243, 0xFFFFFFFF, 2**64 - 1):
            assert verdict(code, arch.audit, arch.calls[name], pid) != seccomp.ALLOW
    assert verdict(code, arch.audit, arch.calls["tkill"], 4242) != seccomp.ALLOW


def test_nobody_is_signalled_through_a_handle(both: tuple[str, Arch]) -> None:
    kind, arch = both
    code = assembled(kind, arch)
    for command in range(2000):
        allowed = verdict(code, arch.audit, arch.calls["fcntl"], 3, command) == seccomp.ALLOW
        assert not (allowed and command in (8, 10, 15, 1024, 1026))
        assert allowed or command not in (1, 2, 3, 4, 6, 1030)


@given(st.sets(st.integers(0, 700), max_size=80))
def test_ranges_allow_exactly_their_numbers(numbers: set[int]) -> None:
    code = seccomp.assemble(
        [seccomp.load(seccomp.NUMBER), *seccomp.allow_numbers(numbers), seccomp.give(seccomp.KILL)]
    )
    assert {number for number in range(702) if verdict(code, 0, number) == seccomp.ALLOW} == numbers


def test_a_filter_that_jumps_out_of_itself_is_not_assembled() -> None:
    with pytest.raises(ValueError, match="jumps out"):
        seccomp.assemble([seccomp.load(0), seccomp.if_equal(1, 5), seccomp.give(seccomp.ALLOW)])


def test_nothing_urgent_is_sent_or_received(both: tuple[str, Arch]) -> None:
    """The kernel's code for it is young, is used by nobody else, and has had holes that led out of sandboxes."""
    kind, arch = both
    code = assembled(kind, arch)
    for name, index in TALK.items():
        for flags in (0, 0x40, 0x4000, 1, 0x4001):
            args = [0] * index + [flags]
            assert (verdict(code, arch.audit, arch.calls[name], *args) == seccomp.ALLOW) == (not flags & 1), (
                name
            )


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
def test_where_landlock_is_alone_modes_are_not_changed_through_handles_and_no_disk_is_reserved(
    arch: Arch,
) -> None:
    code = assembled("landlock", arch)
    assert verdict(code, arch.audit, arch.calls["fchmod"]) == seccomp.fail(0)
    assert verdict(code, arch.audit, arch.calls["fallocate"]) == seccomp.fail(errno.EOPNOTSUPP)
