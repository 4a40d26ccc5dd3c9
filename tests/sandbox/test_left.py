"""What a program leaves comes back as plain files; what it says comes back as plain values. Neither can fool the host."""

from __future__ import annotations

import json

from sandbox.remote import Remote
from toolgate.sandbox.job import Left


def telling(*messages: str) -> str:
    """A program that writes these lines to the host and prints the answers."""
    return (
        "import os, socket\n"
        "line = socket.socket(fileno=os.dup(3)).makefile('rwb', 0)\n"
        f"for message in {list(messages)!r}:\n"
        "    line.write(message.encode('utf-8', 'surrogateescape') + b'\\n')\n"
        "    print(line.readline().decode().strip())\n"
    )


async def test_files_come_back_with_their_names_and_modes(sandbox: Remote) -> None:
    code = "import os\nos.makedirs('a/b'); open('a/b/c.txt', 'w').write('c'); x = open('x', 'wb'); x.write(bytes(3)); os.fchmod(x.fileno(), 0o755)"
    outcome = await sandbox.python(code)
    changed = 0o644 if sandbox.mode == "landlock" else 0o755  # there, modes are not changed
    assert outcome.left == (Left("a/b/c.txt", b"c", 0o644), Left("x", bytes(3), changed))
    assert outcome.dropped == ()


async def test_links_and_what_is_no_file_are_said_and_not_followed(sandbox: Remote) -> None:
    code = (
        "import os\n"
        "open('one', 'w').close(); os.link('one', 'two')\n"
        "os.symlink('/etc/hostname', 'link'); os.symlink('/', 'root')\n"
        "try: os.mkfifo('fifo')\n"
        "except OSError: pass\n"
    )
    outcome = await sandbox.python(code)
    assert outcome.left == ()
    assert [each.split("'")[1] for each in outcome.dropped] == ["link", "one", "root", "two"], outcome


async def test_too_many_too_large_too_deep_and_unreadable_names_are_dropped(sandbox: Remote) -> None:
    code = (
        "import os\n"
        "for n in range(300): open(f'f{n:03}', 'w').close()\n"
        "open('a-large', 'wb').write(bytes(17 << 20))\n"
        "open(b'b-\\xff', 'w').close()\n"
        "os.makedirs('d/' * 30)\n"
    )
    outcome = await sandbox.python(code)
    assert outcome.exit_code == 0, outcome
    assert len(outcome.left) == 100
    said = "\n".join(outcome.dropped)
    for part in ("17,825,792 bytes", "not text", "16 directories deep", "more than 100 files", "more"):
        assert part in said
    assert len(outcome.dropped) <= 22


async def test_outputs_come_back_as_values(sandbox: Remote) -> None:
    outcome = await sandbox.python(
        telling('{"op":"output","data":{"a":[1,2.5,null,"ü"]}}', '{"op":"output","data":3}')
    )
    assert outcome.outputs == ({"a": [1, 2.5, None, "ü"]}, 3)
    assert outcome.stdout == b'{"ok":true}\n{"ok":true}\n'


async def test_deep_broken_and_forged_messages_are_answered_and_harm_nobody(sandbox: Remote) -> None:
    deep = '{"op":"output","data":' + "[" * 100 + "]" * 100 + "}"
    deeper = '{"op":"output","data":' + "[" * 100_000 + "]" * 100_000 + "}"
    broken = [
        "not json",
        "[]",
        "1",
        '{"op":',
        deep,
        deeper,
        '{"op":"output","data":NaN}',
        '{"a":"\udcff"}',
        "\0",
    ]
    forged = ['{"op":"ready"}', '{"op":"ended","job":1,"code":0}', '{"op":"broken","error":"x"}']
    outcome = await sandbox.python(telling(*broken, *forged))
    answers = [json.loads(line) for line in outcome.stdout.decode().splitlines()]
    assert len(answers) == len(broken) + len(forged), outcome
    assert all(set(answer) == {"error"} for answer in answers)
    assert outcome.outputs == ()
    assert outcome.exit_code == 0


async def test_outputs_have_a_limit_in_number_and_size(sandbox: Remote) -> None:
    many = await sandbox.python(telling(*['{"op":"output","data":1}'] * 150))
    assert len(many.outputs) == 100
    assert many.dropped
    large = await sandbox.python(telling(*['{"op":"output","data":"' + "x" * 200_000 + '"}'] * 10))
    assert len(large.outputs) == 5
    assert large.limit is None


async def test_a_broker_answers_what_is_not_an_output(sandbox: Remote) -> None:
    outcome = await sandbox.python(telling('{"op":"secret","name":"a"}', '{"op":"fail"}'), broker=True)
    first, second = outcome.stdout.decode().splitlines()
    assert json.loads(first) == {"echo": {"op": "secret", "name": "a"}}
    assert json.loads(second) == {"error": "the request failed"}, "the host's words stay with the host"


async def test_a_program_that_does_not_read_its_answers_holds_only_itself(sandbox: Remote) -> None:
    code = 'import os\nfor _ in range(100): os.write(3, b\'{"op":"big","size":1000000}\\n\')\nprint(\'done\')'
    outcome = await sandbox.python(code, broker=True)
    assert outcome.stdout == b"done\n"
    assert outcome.exit_code == 0


async def test_output_that_is_no_text_comes_back_as_it_is(sandbox: Remote) -> None:
    outcome = await sandbox.python(
        "import os; os.write(1, bytes(range(256))); os.write(2, b'\\x1b[31m\\xff')"
    )
    assert outcome.stdout == bytes(range(256))
    assert outcome.stderr == b"\x1b[31m\xff"


async def test_handles_that_a_program_sends_are_not_taken(sandbox: Remote) -> None:
    code = (
        "import socket, os\n"
        "line = socket.socket(fileno=os.dup(3))\n"
        "for _ in range(200): socket.send_fds(line, [b' '], [0] * 50)\n"
        "print('sent')"
    )
    assert (await sandbox.python(code)).exit_code is not None
    assert (await sandbox.python("print(1)")).stdout == b"1\n"
