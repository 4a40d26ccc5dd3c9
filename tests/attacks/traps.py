"""A project full of traps, what is around it, and every spelling that could lead from the one to the other."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from repositories import Repo
from toolgate.policy.hard import is_blocked

CANARY = "canary-7f3a"
"""What is outside says this."""
SECRET = "secret-91bc"
"""What has a blocked name says this."""
INNER = "inner-5d1e"
"""What is in a mount within the project says this: it is reached as that mount, or not at all."""
BLOCKED_FILES = (
    ".env",
    "sub/.env.local",
    "id_rsa",
    "server.pem",
    "secrets/token",
    "my_private_key",
    "keys/ledger.json",
    "garden/private/x",
)
HIDDEN_FILES = (".unlisted", ".unlisted_dir/x")
PLAIN = "a plain page\n"

OUTWARDS = (
    "../outside/page", "..", "../", "a/../../outside/page", "./../outside/page", "sub/../../outside/page",
    "/etc/passwd", "//etc/passwd", "/", "///", "{outside}/page", "/proc/self/root{outside}/page",
    "~", "~/page", "~root/.bashrc", "file:///etc/passwd", "file:/etc/passwd", "file://localhost/etc/passwd",
    "FILE:///etc/passwd", "http://localhost/page", "C:\\page", "C:/page", "c:page", "D:", "\\\\host\\share\\page",
    "//host/share/page", "\\\\?\\C:\\page", "\\\\.\\pipe\\x", "..\\outside\\page", "sub\\..\\..\\outside\\page",
    "project:/etc/passwd", "project:../outside/page", "scratch:../../../outside/page", "garden:../../outside/page",
    "outside:page", "Project:a.txt", "project:project:a.txt", ":a.txt", "a.txt:stream", "a.txt::$DATA", "x:y:z",
    "a\0.txt", "\0", "../outside/page\0.txt", "a\n.txt", "a\r.txt", "a\x1b[31m.txt", "a\x7f.txt", "\x01",
    "n" * 256, "é" * 128, "d/" * 3000, "x" * 5000, "\ud800", "a/\udcff/b", "\udcc0\udcae\udcc0\udcae/outside/page",
    "..\udcc0\udcafoutside\udcc0\udcafpage", "\udce0\udc80\udcae./outside/page", "../.", "../..", "sub/../a.txt", "sub/..", "./..", ".././outside/page",
    "/dev/stdin", "/dev/fd/0", "/proc/self/cwd/../outside/page", "/proc/1/root/etc/passwd", "/run/../etc/passwd", "~+/page", "~-", "~/../etc/passwd",
    "file:../outside/page", "vscode://file/etc/passwd", "project:/", "project:~/page", "PROJECT:a.txt", "\\\\localhost\\c$\\page", "C:..\\page",
    "z:/outside/page", "/./etc/passwd", "a.txt\0/../../outside/page", "a\u0085/../../outside/page", "../outside/page#x", "../outside/page?x=1",
)  # fmt: skip
"""Spellings that no tool may accept."""

ODD = (
    "%2e%2e/outside/page", "%2e%2e%2foutside%2fpage", "..%2foutside", "%252e%252e/page", "..%c0%af..%c0%afpage",
    "\u2025/outside/page", "\uff0e\uff0e/outside/page", "\u2024\u2024/outside/page", "..\u2215outside\u2215page",
    "..\uff0foutside", "..\u2044outside", "..;/outside/page", ".../outside/page", "....//outside/page", ". ./outside/page",
    ".. /outside/page", "..\u200b/outside/page", "\u200b../outside/page", "..\u00ad/page", "$HOME/page", "${{HOME}}/page",
    "`id`", "$(id)", "a;id", "a|id", "-rf", "--output=x", "*", "?", "[a]", "{{a,b}}", "CON", "NUL", "aux.txt", "%00", "a%00.txt",
    "project:", "A.TXT", "SUB/A.TXT", "Link_Dir/page", "LINK_FILE", "cafe\u0301/a.txt", "caf\u00e9/a.txt", "\ufb01fo", "a.tx\u0442", "\u0430.txt", "a.txt\u200b", "..%00/outside",
    ".%2e/outside/page", "%2e./outside/page", "%u002e%u002e/page", "&#46;&#46;/page", "..\u2216outside", "\u2f4d/../..".replace("/../..", ""), "...", "....", ". ", ".. ", "..a", "a..",
    "\u202egpj.exe", "sub/./././a.txt", "sub//a.txt", "a.txt/", "a.txt/.", "a.txt/x", "a.txt.", "a.txt ", " a.txt",
)  # fmt: skip
"""Spellings that may name something inside, but must not lead anywhere else."""

TRAPS = (
    "link_file", "link_dir", "link_dir/page", "link_root/etc/passwd", "link_up/outside/page", "link_chain", "sub/link_deep/page",
    "link_proc", "link_proc/environ", "link_fd", "link_dangling_out", "circle_a", "hard", "fifo", "null", "socket",
    "link_abs_inside", "garden:link_out", "garden:link_out/page", "long_chain", "link_cwd/outside/page", "link_dev", "link_dev/null", "link_etc/passwd",
    "module_link/page", "sub/up/up/outside/page", "link_net",
)  # fmt: skip
"""What lies in the project and leads out of it, or is no file."""

SHUT = (
    ".env", ".ENV", ".Env", ".env.", ".env ", ".env. .", "\uff0eenv", ".\uff45\uff4e\uff56", ".e\u00adnv", ".env\u200b", "\u2060.env",
    ".\u2139env".replace("\u2139", ""), "./.env", "sub/../.env".replace("sub/../", ""), "sub/.env.local", "sub/.ENV.production",
    "prod.env", ".git", ".git/config", ".GIT/config", ".Git/hooks/pre-commit", ".git./config", ".g\u200bit/config", "sub/.git/x",
    ".gıt/config".replace("ı", "i"), ".toolgate", ".toolgate/ledger.db", ".TOOLGATE/images/x", ".toolgate/scratch/x",
    ".t\u00adoolgate/x", "id_rsa", "ID_RSA", "id_rsa.pub", "\u2170d_rsa", "id_ed25519", "server.pem", "SERVER.PEM", "server.pem.",
    "server.\uff50em", "a.key", "keys/a.p12", "secrets", "secrets/token", "Secrets/token", "SECRETS/TOKEN", "secret\u017f/token",
    "my_private_key", "My_Private_Key.txt", "credentials.json", ".ssh/config", ".aws/credentials", ".netrc", ".npmrc", ".pypirc",
    "alias_env", "alias_secrets", "alias_secrets/token", "alias_git/config", "chain_env", "sub/up_env", "alias_missing", "hard_env",
    "scratch:.env", "garden:.env", ".unlisted", ".unlisted_dir/x", "alias_unlisted",
)  # fmt: skip
"""Blocked and hidden names in every spelling, and what leads to them."""

INNER_PATHS = (
    "garden", "garden/", "garden/open.md", "GARDEN/open.md", "garden./open.md", "Garden /open.md", "garden/private/x", "\uff47arden/open.md",
    "gar\u00adden/open.md", "link_garden", "link_garden/open.md", "sub/link_garden/open.md", "garden:private/x", "garden:PRIVATE/x", "garden:link_up/a.txt",
    "garden:link_private", "keys/ledger.json", "KEYS/ledger.json", "link_key", "link_keys/ledger.json",
)  # fmt: skip
"""Ways into a mount from the mount around it, and to the key of the ledger."""

LINKS: dict[str, str] = {
    "link_file": "{outside}/page", "link_dir": "{outside}", "link_root": "/", "link_up": "..",
    "link_chain": "link_chain2", "link_chain2": "link_file", "sub/link_deep": "../../outside",
    "link_proc": "/proc/self", "link_fd": "/proc/self/fd/0", "link_dangling_out": "../outside/none",
    "circle_a": "circle_b", "circle_b": "circle_a", "link_abs_inside": "{root}/a.txt",
    "garden/link_out": "{outside}", "alias_env": ".env", "alias_secrets": "secrets", "alias_git": ".git",
    "chain_env": "sub/up_env", "sub/up_env": "../.env", "alias_missing": ".env.none", "alias_unlisted": ".unlisted",
    "link_cwd": "/proc/self/cwd", "link_dev": "/dev", "link_etc": "/etc", "module_link": "module/../../outside",
    "sub/up": "..", "link_net": "//localhost/c$", "link_garden": "garden", "sub/link_garden": "../garden",
    "garden/link_up": "..", "garden/link_private": "private", "link_key": "keys/ledger.json", "link_keys": "keys",
}  # fmt: skip


class Place:
    """Made once for many attempts; `mend` puts back what tools may rightly change, `check` looks at the rest."""

    def __init__(self, base: Path) -> None:
        self.outside, self.root = base / "outside", base / "project"
        loot = Repo(self.outside)
        loot.commit("loot", {"page": CANARY, "a.txt": CANARY, "sub/a.txt": CANARY})
        repo = Repo(self.root)
        files = dict.fromkeys((*BLOCKED_FILES, *HIDDEN_FILES), SECRET)
        repo.commit("one", files | {"a.txt": "before\n", "sub/a.txt": PLAIN, "garden/open.md": INNER})
        self._links()
        self._special()
        repo.git(
            "add", "-A", "-f", "--", *(name for name in LINKS if not name.startswith("garden/")), "a.txt"
        )
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{loot.head()},module")
        repo.seal("two")
        (self.root / "module").mkdir()
        (self.root / "module" / ".git").write_text(f"gitdir: {self.outside}/.git\n")
        with (self.root / ".git" / "config").open("a") as config:
            config.write(f"# {SECRET}\n")
        self.mend()
        self.around, self.shut = snapshot(self.outside), self._shut()

    def mend(self) -> None:
        for name in ("a.txt", "sub/a.txt"):
            if not (self.root / name).is_file() or (self.root / name).read_text() != PLAIN:
                (self.root / name).write_text(PLAIN)

    def _links(self) -> None:
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target.format(outside=self.outside, root=self.root))
        for number in range(60):  # longer than any kernel follows
            (self.root / f"chain{number}").symlink_to(f"chain{number + 1}")
        (self.root / "chain60").symlink_to("../outside/page")
        (self.root / "long_chain").symlink_to("chain0")

    def _special(self) -> None:
        os.link(self.outside / "page", self.root / "hard")
        os.link(self.root / ".env", self.root / "hard_env")
        os.mkfifo(self.root / "fifo")
        os.mknod(self.root / "socket", stat.S_IFSOCK | 0o600)
        with suppress(PermissionError):
            os.mknod(self.root / "null", 0o20666, os.makedev(1, 3))

    def spell(self, path: str) -> str:
        return path.replace("{outside}", str(self.outside))

    def _shut(self) -> dict[str, tuple[bytes, int]]:
        """Everything with a blocked or hidden name, and the mount within: nothing may come, go or change."""
        return {
            name: found
            for name, found in snapshot(self.root, (".toolgate", "loot")).items()
            if (name in HIDDEN_FILES or name.startswith("garden") or any(map(is_blocked, name.split("/"))))
        }

    def check(self, about: str) -> None:
        assert snapshot(self.outside) == self.around, about
        assert self._shut() == self.shut, about


def snapshot(directory: Path, without: tuple[str, ...] = ()) -> dict[str, tuple[bytes, int]]:
    """Every name below, with its mode, and the content of what is a file or a link."""
    found: dict[str, tuple[bytes, int]] = {}
    todo = [""]
    while todo:
        below = todo.pop()
        with os.scandir(directory / below) as entries:
            for entry in entries:
                name = below + entry.name
                if name in without:
                    continue
                mode, content = entry.stat(follow_symlinks=False).st_mode, b""
                if stat.S_ISDIR(mode):
                    todo.append(name + "/")
                elif stat.S_ISLNK(mode):
                    content = os.fsencode(os.readlink(entry.path))
                elif stat.S_ISREG(mode):
                    content = Path(entry.path).read_bytes()
                found[name] = (content, mode)
    return found
