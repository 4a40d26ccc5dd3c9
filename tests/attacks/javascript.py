"""What a hostile JavaScript program tries, and which layer stops it.

`$SECRET` and its like are replaced by things outside that the tests watch: see `Outside`. Codes may throw; what counts
is what happened outside, and whether the canary's content came back.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.sandbox.job import Limits


@dataclass(frozen=True)
class Attack:
    name: str
    tries: str
    stopped_by: str
    """With Deno as we start it / with Deno's permissions opened, where another layer is left to stop it."""
    code: str


FILES = [
    Attack("read", "read a file of the host", "deno / mounts, landlock", "console.log(Deno.readTextFileSync('$SECRET'))"),
    Attack("read by node", "the same through Node's module", "deno / mounts, landlock",
           "import fs from 'node:fs'; console.log(fs.readFileSync('$SECRET', 'utf8'))"),
    Attack("read by fetch", "a file: address", "deno / mounts, landlock",
           "console.log(await (await fetch('file://$SECRET')).text())"),
    Attack("read by import", "a JSON module of the host's", "deno / mounts, landlock",
           "console.log((await import('file://$SECRET', { with: { type: 'json' } })).default)"),
    Attack("read by require", "Node's loader", "deno / mounts, landlock",
           "import { createRequire } from 'node:module'; console.log(createRequire('/')('$SECRET'))"),
    Attack("read by symlink", "a link in the work directory", "deno / mounts, landlock",
           "Deno.symlinkSync('$SECRET', 'link'); console.log(Deno.readTextFileSync('link'))"),
    Attack("read by node symlink", "the same through Node's module", "deno / mounts, landlock",
           "import fs from 'node:fs'; fs.symlinkSync('$SECRET', 'link'); console.log(fs.readFileSync('link', 'utf8'))"),
    Attack("read by hard link", "a second name for the file", "deno / mounts, landlock",
           "Deno.linkSync('$SECRET', 'link'); console.log(Deno.readTextFileSync('link'))"),
    Attack("left symlink", "a link that the host would follow when it collects files", "host",
           "import fs from 'node:fs'; fs.symlinkSync('$SECRET', 'left.txt')"),
    Attack("left directory symlink", "a linked directory that the host would walk into", "host",
           "import fs from 'node:fs'; fs.symlinkSync('$DIRECTORY', 'left')"),
    Attack("outputs symlink", "a link in the place of the file of outputs", "host",
           "output(1); import fs from 'node:fs';"
           "for (const name of fs.readdirSync('.')) if (name.startsWith('.output')) {"
           " fs.rmSync(name); fs.symlinkSync('$SECRET', name) }"),
    Attack("relative path", "a path that climbs out", "deno / mounts, landlock",
           "console.log(Deno.readTextFileSync('../../../../../../../..$SECRET'))"),
    Attack("another directory", "leave the work directory first", "deno / mounts, landlock",
           "import process from 'node:process'; process.chdir('$DIRECTORY'); console.log(Deno.readTextFileSync('secret.json'))"),
    Attack("root by proc", "the host's root through /proc", "deno / mounts, landlock",
           "for (const pid of ['1', 'self', '$HOST']) try {"
           " console.log(Deno.readTextFileSync(`/proc/${pid}/root$SECRET`)) } catch {}"),
    Attack("environment by proc", "the environment of the host", "deno / processes, landlock",
           "for (const pid of ['1', 'self', '$HOST', '$VICTIM']) try {"
           " console.log(Deno.readTextFileSync(`/proc/${pid}/environ`)) } catch {}"),
    Attack("memory by proc", "the memory of the host", "deno / processes, landlock",
           "const file = Deno.openSync('/proc/$HOST/mem', { read: true, write: true }); console.log(file)"),
    Attack("environment", "variables of the host", "deno, a clean environment",
           "import process from 'node:process'; console.log(Deno.env.toObject(), { ...process.env })"),
    Attack("worker with rights", "a worker that asks for more than its parent has", "deno / mounts, landlock",
           "const url = 'data:text/javascript,' + encodeURIComponent(`postMessage(Deno.readTextFileSync('$SECRET'))`);"
           "const worker = new Worker(url, { type: 'module', deno: { permissions: { read: true } } });"
           "console.log(await new Promise((done) => { worker.onmessage = (event) => done(event.data);"
           " worker.onerror = (event) => { event.preventDefault(); done('none') } })); Deno.exit()"),
    Attack("node worker", "a thread of Node's", "deno / mounts, landlock",
           "import { Worker } from 'node:worker_threads';"
           "new Worker(`console.log(require('fs').readFileSync('$SECRET','utf8'))`, { eval: true })"),
    Attack("asking for rights", "permission at run time", "deno / mounts, landlock",
           "console.log(await Deno.permissions.request({ name: 'read' })); console.log(Deno.readTextFileSync('$SECRET'))"),
    Attack("sqlite", "a database anywhere", "deno / mounts, landlock",
           "import { DatabaseSync } from 'node:sqlite';"
           "const db = new DatabaseSync(':memory:'); db.exec(`attach '$DIRECTORY/new' as x; create table x.t(a)`)"),
    Attack("wasi", "a preopened root", "deno / mounts, landlock",
           "import { WASI } from 'node:wasi'; console.log(new WASI({ version: 'preview1', preopens: { '/': '/' } }))"),
    Attack("write", "overwrite a file that anybody may write", "deno / mounts, landlock", "Deno.writeTextFileSync('$TARGET', 'changed')"),
    Attack("write by node", "the same through Node's module", "deno / mounts, landlock",
           "import fs from 'node:fs'; fs.appendFileSync('$TARGET', 'changed')"),
    Attack("create", "a new file outside", "deno / mounts, landlock", "Deno.writeTextFileSync('$DIRECTORY/new', 'x')"),
    Attack("rename", "move a file over another", "deno / mounts, landlock",
           "Deno.writeTextFileSync('mine', 'changed'); Deno.renameSync('mine', '$TARGET')"),
    Attack("remove", "delete a file", "deno / mounts, landlock", "Deno.removeSync('$TARGET')"),
    Attack("chmod", "change a mode, or truncate", "deno / mounts, landlock",
           "try { Deno.chmodSync('$TARGET', 0) } catch {} Deno.truncateSync('$TARGET')"),
    Attack("temporary file", "a temporary directory outside", "deno / mounts, landlock", "Deno.makeTempFileSync({ dir: '$DIRECTORY' })"),
    Attack("the runtime itself", "replace what the next program runs", "deno / mounts, landlock",
           "Deno.writeTextFileSync('$PRELUDE', '')"),
]  # fmt: skip

PROCESSES = [
    Attack("command", "a shell", "deno / seccomp, landlock", "new Deno.Command('/bin/sh', { args: ['-c', 'id > $DIRECTORY/new'] }).outputSync()"),
    Attack("child process", "a shell by Node", "deno / seccomp, landlock",
           "import { execSync } from 'node:child_process'; execSync('id > $DIRECTORY/new')"),
    Attack("deno again", "Deno itself, with every permission", "deno / seccomp",
           "const made = new Deno.Command(Deno.execPath(), { args: ['eval', `console.log(Deno.readTextFileSync('$SECRET'))`] }).outputSync();"
           "console.log(new TextDecoder().decode(made.stdout))"),
    Attack("fork", "a Node child that outlives its parent", "deno / seccomp",
           "import { spawn } from 'node:child_process'; spawn('/bin/sleep', ['$NAP'], { detached: true, stdio: 'ignore' }).unref()"),
    Attack("cluster", "workers of Node's cluster", "deno / seccomp", "import cluster from 'node:cluster'; cluster.fork()"),
    Attack("kill", "a process of the host", "deno / processes, landlock", "Deno.kill($VICTIM, 'SIGKILL')"),
    Attack("kill by node", "the same through Node", "deno / processes, landlock", "import p from 'node:process'; p.kill($VICTIM, 'SIGKILL')"),
    Attack("kill all", "every process there is", "deno / processes, landlock",
           "import p from 'node:process'; for (const pid of [$VICTIM, $HOST, -1]) try { p.kill(pid, 'SIGTERM') } catch {}"),
    Attack("foreign function", "system() of the C library", "deno / seccomp, landlock",
           "const c = Deno.dlopen('libc.so.6', { system: { parameters: ['buffer'], result: 'i32' } });"
           "console.log(c.symbols.system(new TextEncoder().encode('id > $DIRECTORY/new\\0')))"),
    Attack("foreign open", "open() of the C library", "deno / mounts, landlock",
           "const c = Deno.dlopen('libc.so.6', { creat: { parameters: ['buffer', 'u32'], result: 'i32' } });"
           "console.log(c.symbols.creat(new TextEncoder().encode('$DIRECTORY/new\\0'), 0o666))"),
    Attack("native addon", "a library of its own", "deno / seccomp",
           "Deno.writeFileSync('x.node', new Uint8Array([127, 69, 76, 70])); import p from 'node:process';"
           "p.dlopen({ exports: {} }, Deno.cwd() + '/x.node')"),
    Attack("internals", "operations below Deno's interfaces", "the prelude, deno / seccomp",
           "const ops = Deno[Deno.internal]?.core?.ops; console.log(ops?.op_napi_open?.('/lib/x86_64-linux-gnu/libc.so.6'))"),
    Attack("become root", "another user", "deno / capabilities", "import p from 'node:process'; p.setuid(0); Deno.writeTextFileSync('$TARGET', 'x')"),
]  # fmt: skip

NETWORK = [
    Attack("tcp", "a server on the host's loopback", "deno / network, landlock, seccomp",
           "await Deno.connect({ hostname: '127.0.0.1', port: $PORT })"),
    Attack("tcp by node", "the same through Node", "deno / network, landlock, seccomp",
           "import net from 'node:net'; net.connect($PORT, '127.0.0.1'); await sleep(100)"),
    Attack("fetch", "the same by fetch", "the prelude, deno / network", "await fetch('http://127.0.0.1:$PORT/')"),
    Attack("http client", "a client with a proxy of its own", "deno / network",
           "const client = Deno.createHttpClient({ proxy: { url: 'http://127.0.0.1:$PORT' } }); await fetch('http://x.test/', { client })"),
    Attack("node http", "Node's client", "deno / network",
           "import http from 'node:http'; http.get('http://127.0.0.1:$PORT/').on('error', () => {}); await sleep(100)"),
    Attack("websocket", "a web socket", "deno / network",
           "const s = new WebSocket('ws://127.0.0.1:$PORT/'); s.onerror = (e) => e.preventDefault?.(); await sleep(100); Deno.exit()"),
    Attack("event source", "an event stream", "deno / network", "new EventSource('http://127.0.0.1:$PORT/'); await sleep(100); Deno.exit()"),
    Attack("http2", "HTTP/2 by Node", "deno / network",
           "import h from 'node:http2'; h.connect('http://127.0.0.1:$PORT').on('error', () => {}); await sleep(100); Deno.exit()"),
    Attack("remote import", "code from a server", "deno / network", "await import('http://127.0.0.1:$PORT/code.js')"),
    Attack("packages", "code from a registry", "deno / network", "for (const name of ['npm:left-pad', 'jsr:@std/path']) try { await import(name) } catch (e) { console.log(e) }"),
    Attack("unix socket", "a socket with a name in the file system", "deno / mounts, seccomp",
           "await Deno.connect({ transport: 'unix', path: '$SOCKET' })"),
    Attack("abstract socket", "a socket without one", "deno / network, landlock, seccomp",
           "import net from 'node:net'; net.connect({ path: '\\0$ABSTRACT' }); await sleep(100)"),
    Attack("datagram", "UDP by Node", "deno / network, seccomp",
           "import d from 'node:dgram'; const s = d.createSocket('udp4'); s.on('error', () => {}); s.send('x', $UDP, '127.0.0.1'); await sleep(100); Deno.exit()"),
    Attack("dns", "a name server of its own", "deno / network, seccomp",
           "await Deno.resolveDns('x.test', 'A', { nameServer: { ipAddr: '127.0.0.1', port: $UDP } })"),
    Attack("dns by node", "the system's resolver", "deno / network, seccomp",
           "import dns from 'node:dns/promises'; const r = new dns.Resolver(); r.setServers(['127.0.0.1:$UDP']); await r.resolve4('x.test')"),
    Attack("listen", "a server that the host can reach", "deno / network, seccomp",
           "Deno.listen({ hostname: '0.0.0.0', port: $FREE }); await sleep(400); Deno.exit()"),
    Attack("serve", "the same by Deno.serve", "deno / network, seccomp",
           "Deno.serve({ hostname: '0.0.0.0', port: $FREE }, () => new Response('x')); await sleep(400); Deno.exit()"),
    Attack("inspector", "a debugger's port", "deno / network, seccomp",
           "import i from 'node:inspector'; i.open($FREE, '0.0.0.0'); await sleep(400); Deno.exit()"),
    Attack("vsock", "the machine below", "deno / seccomp",
           "await Deno.connect({ transport: 'vsock', cid: 2, port: 1024 })"),
]  # fmt: skip


BRIEF = Limits(wall_s=0.6)


@dataclass(frozen=True)
class Flood:
    """Taking too much; the limit that ends it is named."""

    name: str
    limit: str
    stopped_by: str
    code: str
    limits: Limits = BRIEF


SMALL = Limits(
    memory_bytes=96 << 20, disk_bytes=4 << 20, inodes=64, files=64, output_bytes=100_000, wall_s=5.0, cpu_s=4
)
FLOODS = [
    Flood("spin", "time", "host", "for (;;) {}"),
    Flood("spin in workers", "time", "host",
          "for (let i = 0; i < 4; i++) new Worker('data:text/javascript,for(;;){}', { type: 'module' }); await new Promise(() => {})", Limits(memory_bytes=3 << 30, wall_s=0.6)),
    Flood("deaf", "time", "host",
          "import p from 'node:process'; for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) try { p.on(name, () => {}) } catch {} for (;;) {}"),
    Flood("wait for ever", "time", "host", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"),
    Flood("slow pattern", "time", "host", "/^(a+)+$/.test('a'.repeat(40) + '!')"),
    Flood("cpu", "cpu", "rlimits", "for (;;) {}", Limits(wall_s=10.0, cpu_s=1)),
    Flood("heap", "memory", "v8", "const all = []; for (;;) all.push(new Array(100_000).fill(1.5))", SMALL),
    Flood("buffers", "memory", "rlimits", "const all = []; for (;;) all.push(new Uint8Array(1e7).fill(1))", SMALL),
    Flood("wasm memory", "memory", "rlimits",
          "const all = []; try { for (;;) { const m = new WebAssembly.Memory({ initial: 160 }); new Uint8Array(m.buffer).fill(1); all.push(m) } }"
          " catch (error) { throw new RangeError('Array buffer allocation failed: ' + error.message) }", SMALL),
    Flood("strings", "memory", "v8", "const all = []; for (let i = 0;; i++) all.push(('' + i).repeat(100_000).split('').join('-'))", SMALL),
    Flood("output", "output", "host", "for (;;) console.log('x'.repeat(10_000))", SMALL),
    Flood("errors", "output", "host", "for (;;) console.error('x'.repeat(10_000))", SMALL),
    Flood("disk", "disk", "mounts", "for (let i = 0;; i++) Deno.writeFileSync('f' + i, new Uint8Array(1e6))", SMALL),
    Flood("one file", "disk", "rlimits, mounts", "const f = Deno.createSync('f'); for (;;) f.writeSync(new Uint8Array(1e6))", SMALL),
    Flood("names", "inodes", "mounts", "for (let i = 0;; i++) Deno.writeTextFileSync('f' + i, '')", SMALL),
    Flood("outputs", "disk", "mounts", "for (;;) output('x'.repeat(100_000))", SMALL),
    Flood("open files", "files", "rlimits", "Deno.writeTextFileSync('f', ''); const all = []; for (;;) all.push(Deno.openSync('f'))", SMALL),
]  # fmt: skip
