"""Every spelling that could lead out of a project, to what is shut in it, or to another mount in it.

Each is a trick of its own: something that a decoder, a shell, a file system or a reader of addresses might take for
another name than the one that was judged. `{outside}` stands for the directory that must not be reached.
"""

from __future__ import annotations

OUTWARDS = (
    # upwards
    "../outside/page", "..", "../", "a/../../outside/page", "./../outside/page", "sub/../../outside/page", "../.", "../..",
    "sub/../a.txt", "sub/..", "./..", ".././outside/page", "../outside/page#x", "../outside/page?x=1", "../project/a.txt",
    "sub/../../project/a.txt", "$PWD/../outside/page", "../" * 50 + "etc/passwd", "./" * 500 + "../outside/page",
    "sub/../" * 200 + "../outside/page", "link_dir/../outside/page", "a.txt/../../outside/page", "**/../../outside/page",
    # absolute, and by the doors of the kernel
    "/etc/passwd", "//etc/passwd", "/", "///", "{outside}/page", "/./etc/passwd", "/run/../etc/passwd",
    "/proc/self/root{outside}/page", "/proc/self/root/etc/passwd", "/proc/thread-self/root/etc/passwd", "/proc/1/root/etc/passwd",
    "/proc/self/cwd/../outside/page", "/proc/self/environ", "/proc/self/fd/0", "/proc/self/map_files", "/proc/self/exe",
    "/dev/stdin", "/dev/fd/0", "/dev/tty", "/dev/tcp/localhost/80", "/dev/shm/../../etc/passwd", "/sys/kernel/../../etc/passwd",
    "/mnt/c/page", "/cygdrive/c/page",
    # home directories
    "~", "~/page", "~root/.bashrc", "~+/page", "~-", "~/../etc/passwd", "~nobody/page", "~/.ssh/id_rsa", "~0", "~\\page",
    # addresses
    "file:///etc/passwd", "file:/etc/passwd", "file://localhost/etc/passwd", "FILE:///etc/passwd", "fILe:/etc/passwd",
    "file:../outside/page", "file://host/share/page", "file:////host/share/page", "file://user@localhost/etc/passwd",
    "file:///C:/page", "file:\\\\host\\page", "file:%2e%2e/outside/page", "%66ile:///etc/passwd", "file:a.txt", "url:file:///etc/passwd",
    "http://localhost/page", "vscode://file/etc/passwd", "smb://host/share/page", "ssh://host/page", "root@host:page",
    "jar:file:/etc/passwd!/x", "view-source:file:///etc/passwd", "data:text/plain,x", "php://filter/resource=/etc/passwd",
    # as Windows has it: drives, shares, devices, streams
    "C:\\page", "C:/page", "c:page", "D:", "C:..\\page", "z:/outside/page", "C:", "C:a.txt", "\\\\host\\share\\page", "//host/share/page",
    "\\\\localhost\\c$\\page", "\\\\?\\C:\\page", "\\\\?\\UNC\\host\\share\\page", "\\\\host@SSL\\DavWWWRoot\\page", "\\??\\C:\\page",
    "//?/C:/page", "\\\\.\\pipe\\x", "\\\\.\\PhysicalDrive0", "..\\outside\\page", "sub\\..\\..\\outside\\page", ".\\..\\outside\\page",
    "sub\\a.txt", "\\", "%USERPROFILE%\\page", "a.txt:stream", "a.txt::$DATA", "a.txt:Zone.Identifier", ".GIT::$INDEX_ALLOCATION",
    ".git::$INDEX_ALLOCATION/config", "sub:$I30:$INDEX_ALLOCATION/a.txt", "$env:USERPROFILE/page",
    # mounts
    "project:/etc/passwd", "project:../outside/page", "project:/", "project:~/page", "project:C:/page", "project:file:///etc/passwd",
    "project:..", "project:sub/../../outside/page", "scratch:../../../outside/page", "scratch:..", "scratch:/etc/passwd", "scratch:scratch:x",
    "garden:../../outside/page", "garden:..", "garden:~root", "garden:/etc/passwd", "garden::open.md", "outside:page", "Project:a.txt",
    "PROJECT:a.txt", "\uff50roject:a.txt", "pro\u00adject:a.txt", "project\u200b:a.txt", "project :a.txt", "project:project:a.txt",
    ":a.txt", "x:y:z", "-:a.txt", ":(top)a.txt", ":!a.txt", ":/a.txt", "HEAD:a.txt",
    # control characters, half characters, bytes that are no UTF-8
    "a\0.txt", "\0", "../outside/page\0.txt", "a.txt\0/../../outside/page", "a\n.txt", "a\r.txt", "a\t.txt", "a\x1b[31m.txt", "a\x7f.txt",
    "\x01", "..\n/outside/page", "../outside/page\n", "a\u0085/../../outside/page", "\ud800", "a/\udcff/b",
    "\udcc0\udcae\udcc0\udcae/outside/page", "..\udcc0\udcafoutside\udcc0\udcafpage", "\udce0\udc80\udcae./outside/page",
    # escapes of other languages, which have a backslash
    "\\x2e\\x2e/outside/page", "\\u002e\\u002e/outside/page", "..\\057outside", "a\\ b",
    # too long
    "n" * 256, "é" * 128, "d/" * 3000, "x" * 5000, "../" * 1400, "\U0001f600" * 64,
)  # fmt: skip
"""Spellings that no tool may accept."""

ODD = (
    # percent encodings: once, twice, overlong, of look-alikes
    "%2e%2e/outside/page", "%2e%2e%2foutside%2fpage", "..%2foutside", "%252e%252e/page", "..%c0%af..%c0%afpage", "%00", "a%00.txt",
    "..%00/outside", ".%2e/outside/page", "%2e./outside/page", "%u002e%u002e/page", "..%5coutside%5cpage",
    "%c0%ae%c0%ae/outside/page", "%e0%80%ae%e0%80%ae/page", "..%ef%bc%8foutside",
    "%5c%5chost%5cshare", "%7eroot", "%0a%2e%2e/outside",
    # encodings of other kinds
    "&#46;&#46;/page", "=2E=2E/page", "+AC4ALg-/page", "Li4vb3V0c2lkZS9wYWdl", "À®À®/outside/page", "..À¯outside",
    # dots and slashes that are none, until somebody normalises them
    "\u2025/outside/page", "\uff0e\uff0e/outside/page", "\u2024\u2024/outside/page", "\ufe52\ufe52/outside/page", "\u3002\u3002/outside/page",
    "\u2026/outside/page", "..\u2215outside\u2215page", "..\uff0foutside",
    "..\u2044outside", "..\ufe68outside", "..\uff3coutside", "C\uff1a/page", "\uff5e/page",
    # characters that combine with a dot, or show nothing
    ".\u0307./outside/page", "..\u0338/outside/page", "..\u200b/outside/page", "\u200b../outside/page", "..\u00ad/page",
    "..\u2060/outside/page", "\ufeff../outside/page", "..\ufe0f/outside/page", "..\u034f/outside/page",
    "..\U000e0001/outside/page", "..\u2028/outside/page", "..\u00a0/outside/page",
    # characters that turn the line around
    "\u202egpj.exe", "\u202e..\u202c/outside/page", "\u2066..\u2069/outside/page", "\u200e../outside/page",
    # almost upwards
    "..;/outside/page", ".../outside/page", "....//outside/page", ". ./outside/page", ".. /outside/page", "...", ".. ", "..a",
    # what a shell or a template would put in
    "$HOME/page", "${HOME}/page", "%USERPROFILE%/page", "${IFS}", "`id`", "$(id)", "<(id)", "a;id", "a|id",
    "#a", "'a.txt'", '"a.txt"', "{{page}}", "${jndi}", "@{u}",
    # options
    "-rf", "--output=x", "-", "-O/etc/passwd", "--no-index", "--pre=id",
    # globs
    "*", "**", "?", "[a]", "{a,b}", "[.][.]/outside/page", ".[.]/outside/page", "{.,.}{.,.}/outside/page", "[",
    # as Windows has it: devices, short names, trailing dots and blanks
    "NUL", "aux.txt", "LPT1.txt", "CONIN$", "PROGRA~1", "GIT~1/config", "ENV~1", "LINK_D~1/page", "SUB~1/A~1.TXT", "C|/page",
    "a.txt.", "a.txt ", "sub./a.txt", "link_dir./page", "link_dir /page", "a.txt\u00a0",
    # as macOS has it
    "a.txt/..namedfork/rsrc", "cafe\u0301/a.txt", "caf\u00e9/a.txt",
    # other cases, other alphabets
    "A.TXT", "SUB/A.TXT", "Link_Dir/page", "LINK_ROOT/etc/passwd", "l\u0131nk_dir/page", "lin\u212a_dir/page", "L\u0130NK_DIR/page",
    "a.tx\u0442", "\u0430.txt", "a.txt\u200b", "\U0001d425ink_dir/page",
    # more slashes and dots than are needed
    "project:", "sub/./././a.txt", "sub//a.txt", "a.txt/", "a.txt/.", "a.txt/x", "sub/" + "./" * 1000 + "a.txt",
    # deep, and as long as a name may be
    "d/" * 100 + "x", "n" * 255,
)  # fmt: skip
"""Spellings that may name something inside, but must not lead anywhere else."""

TRAPS = (
    "link_file", "link_dir", "link_dir/page", "link_dir/", "link_dir/.", "link_dir/sub/a.txt", "link_dir/.git/config", "link_file/", "link_root",
    "link_root/etc/passwd", "link_root/proc/self/environ", "link_up", "link_up/outside/page", "link_up/project/a.txt", "link_chain",
    "sub/link_deep/page", "sub/link_deep/sub/a.txt", "link_proc", "link_proc/environ", "link_proc/root/etc/passwd", "link_proc/fd/0", "link_fd",
    "link_dangling_out", "circle_a", "circle_a/x", "hard", "fifo", "null", "socket", "link_abs_inside", "garden:link_out", "garden:link_out/page",
    "long_chain", "link_cwd", "link_cwd/outside/page", "link_exe", "link_thread/etc/passwd", "link_dev", "link_dev/null", "link_dev/fd/0",
    "link_etc/passwd", "module_link/page", "sub/up/up/outside/page", "link_net", "link_back", "link_slashes/etc/passwd", "link_there_and_back/outside/page",
)  # fmt: skip
"""What lies in the project and leads out of it, or is no file."""

SHUT = (
    # cases, trailing dots and blanks
    ".env", ".ENV", ".Env", ".env.", ".env ", ".env. .", ".env...", "./.env", "sub/.env.local", "sub/.ENV.production", "prod.env", ".git",
    ".git/config", ".git/HEAD", ".git/objects/info/alternates", ".GIT/config", ".Git/hooks/pre-commit", ".git./config", ".git /config", "sub/.git/x",
    "sub/.GIT /hooks/x", ".toolgate", ".toolgate/ledger.db", ".TOOLGATE/images/x", ".toolgate/scratch/x", ".toolgate ./ledger.db",
    # letters that fold to others
    "\uff0eenv", "\u2024env", "\ufe52env", ".\uff45\uff4e\uff56", ".\uff27\uff29\uff34/config", ".\U0001d41e\U0001d427\U0001d42f", ".\u24d4\u24dd\u24e5",
    ".\u1d49\u207f\u1d5b", "\u2170d_rsa", "id\uff3frsa", "server.\uff50em", "secret\u017f/token", "\u017fecrets/token", "a.\u212aey", "my_private_\u212aey",
    ".env\u00a0", ".env\u3000",
    # characters that HFS+ passes over in a name
    ".e\u00adnv", ".env\u200b", "\u2060.env", ".g\u200bit/config", ".t\u00adoolgate/x", ".g\u200cit/config", ".gi\u200dt/config", "\u200e.git/config",
    ".git\u200f/config", ".\u202agit/config", ".g\u202eit/config", ".g\u206ait/config", ".gi\u206ft/config", "\ufeff.git/config", ".e\u200cnv", ".env\ufeff",
    # characters that ext4 passes over in a directory without cases
    ".e\u034fnv", ".env\ufe0f", ".e\u180bnv", ".g\ufe00it/config", ".g\u3164it/config", ".g\u115fit/config", ".e\u17b4nv", ".e\U000e0101nv",
    ".env\U000e0065", "id_\ufe0frsa", "secrets\ufe0f/token", "server\ufe0f.pem", "sec\uffa0rets/token",
    # names of keys and passwords
    "id_rsa", "ID_RSA", "id_rsa.pub", "id_ed25519", "server.pem", "SERVER.PEM", "server.pem.", "a.key", "keys/a.p12", "store.JKS", "vault.kdbx", "secrets",
    "secrets/token", "Secrets/token", "SECRETS/TOKEN", "secrets./token", "my_private_key", "My_Private_Key.txt", "credentials.json", "passwords.txt",
    "service-account-prod.json", ".ssh/config", ".aws/credentials", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd",
    # what leads to them, and the same in other mounts
    "alias_env", "alias_secrets", "alias_secrets/token", "alias_git/config", "chain_env", "sub/up_env", "alias_missing", "hard_env", "scratch:.env",
    "scratch:.git/config", "garden:.env", "garden:.GIT/config", ".unlisted", ".unlisted_dir/x", "alias_unlisted", ".e\u0301nv",
)  # fmt: skip
"""Blocked and hidden names in every spelling, and what leads to them."""

INNER_PATHS = (
    "garden", "garden/", "./garden/open.md", "garden/open.md", "GARDEN/open.md", "garden./open.md", "Garden /open.md", "garden/private/x",
    "\uff47arden/open.md", "gar\u00adden/open.md", "garden\ufe0f/open.md", "link_garden", "link_garden/open.md", "link_garden/private/x",
    "sub/link_garden/open.md", "garden:private/x", "garden:PRIVATE/x", "garden:private./x", "garden:\uff50rivate/x", "garden:priv\ufe0fate/x",
    "garden:link_up/a.txt", "garden:link_private", "keys/ledger.json", "KEYS/ledger.json", "keys/LEDGER.JSON", "keys./ledger.json", "keys/ledger\u200b.json",
    "link_key", "link_keys/ledger.json",
)  # fmt: skip
"""Ways into a mount from the mount around it, and to the key of the ledger."""
