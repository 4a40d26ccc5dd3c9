// The main module of every JavaScript program in the sandbox. It reads from stdin what the host gives (one JSON
// object of known length), puts the helpers in place, and imports the program. What is left on stdin is the program's.
//
// Nothing here is a wall: the program runs in the same realm and may do what the process may. Redaction keeps honest
// programs from printing what they hold; the host redacts again, and the walls are around the process.

const MASK = "[REDACTED]";
const LONG_ENOUGH = 8; // shorter values would mangle ordinary text
const PROGRAM = "program.mjs";
const PROXY = "http://127.0.0.1:3128/";
const REDIRECTS = 20;

const { stdin, stdout, stderr } = Deno;
const writers = new Map([stdout, stderr].map((stream) => [stream, stream.writeSync.bind(stream)]));
const realFetch = fetch;
const stringify = JSON.stringify;
const inspect = Deno.inspect;
const inner = Deno[Deno.internal];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

// ---- what the host gives

function readExactly(count) {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count;) {
    const got = stdin.readSync(bytes.subarray(at));
    if (got === null) Deno.exit(125);
    at += got;
  }
  return decoder.decode(bytes);
}

const given = JSON.parse(readExactly(Number(readExactly(10))));

// ---- tainted values: usable in requests, masked wherever they are printed

const tainted = new Set();

function taint(value) {
  if (value.length < LONG_ENOUGH) return;
  const bytes = String.fromCharCode(...encoder.encode(value));
  for (const form of [value, stringify(value).slice(1, -1), encodeURIComponent(value), btoa(bytes)]) tainted.add(form);
}

function redact(text) {
  for (const form of tainted) {
    if (text.includes(form)) text = text.replaceAll(form, MASK);
  }
  return text;
}

class TaintedString {
  #value;
  constructor(value) {
    this.#value = String(value);
    taint(this.#value);
    Object.freeze(this);
  }
  get length() {
    return this.#value.length;
  }
  toString() {
    return this.#value;
  }
  valueOf() {
    return this.#value;
  }
  concat(...others) {
    return new TaintedString(this.#value.concat(...others));
  }
  toJSON() {
    return MASK;
  }
  [Symbol.toPrimitive]() {
    return this.#value;
  }
  [Symbol.for("Deno.customInspect")]() {
    return MASK;
  }
  [Symbol.for("nodejs.util.inspect.custom")]() {
    return MASK;
  }
}

// ---- printing

function writeAll(stream, bytes) {
  const write = writers.get(stream);
  for (let at = 0; at < bytes.length;) at += write(bytes.subarray(at));
}

function print(stream, text) {
  writeAll(stream, encoder.encode(redact(text)));
}

function guard(stream) {
  const cleaned = (bytes) => {
    try {
      return encoder.encode(redact(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)));
    } catch {
      return bytes; // not text: nothing to recognise a value in
    }
  };
  const writeSync = (bytes) => (writeAll(stream, cleaned(bytes)), bytes.length);
  fix(stream, "writeSync", writeSync);
  fix(stream, "write", async (bytes) => writeSync(bytes));
  fix(stream, "writable", new WritableStream({ write: (bytes) => void writeSync(bytes) }));
}

function quietConsole() {
  if (inner?.Console) return new inner.Console((text, level) => print(level > 1 ? stderr : stdout, text));
  const to = (stream) => (...values) =>
    print(stream, values.map((value) => typeof value === "string" ? value : inspect(value)).join(" ") + "\n");
  const [out, err] = [to(stdout), to(stderr)];
  return { log: out, info: out, debug: out, table: out, dir: out, dirxml: out, warn: err, error: err, trace: err };
}

// A line of the program and where in it something went wrong.
function excerpt(text) {
  const [, line, column] = /program\.mjs:(\d+):(\d+)/.exec(text) ?? [];
  const shown = given.code.split("\n")[line - 1];
  if (!shown?.trim() || shown.length > 150) return "";
  return `${shown}\n${" ".repeat(column - 1)}^\n`;
}

// The wrapper of a CommonJS snippet stands on its first line, before its first column.
function relocate(text) {
  const moved = (_, place, at) => place + Math.max(1, at - given.wrapped.length);
  return given.wrapped ? text.replaceAll(/(program\.mjs:1:)(\d+)/g, moved) : text;
}

const OURS = new RegExp(`\\n *at [^\\n]*${import.meta.url.replaceAll(/[.$]/g, "\\$&")}[^\\n]*`, "g");

// As Deno says it, in words that help here.
function plainly(text) {
  return relocate(text)
    .replaceAll(/, run again with the --allow-[\w-]+ flag/g, ", which programs do not have here")
    .replace(/ \{\n  code: "ERR_MODULE_NOT_FOUND"\n\}/, "");
}

function report(error) {
  let text = plainly(inspect(error));
  // Of a program that cannot be parsed Deno makes one message: what is wrong, the line, the place.
  const unparsed = /^TypeError: (SyntaxError: [^\n]*)[^]*?(\n +at [^\n]*program\.mjs[^\n]*)/.exec(text);
  if (unparsed) text = unparsed[1] + unparsed[2];
  const [head, ...frames] = text.replaceAll(OURS, "").split(/\n(?= +at )/);
  print(stderr, `error: Uncaught ${head}\n${excerpt(text)}${frames.map((frame) => frame + "\n").join("")}`);
  Deno.exit(1);
}

// ---- the helpers

function getSecret(name) {
  const held = Object.hasOwn(given.secrets, name) ? given.secrets[name] : undefined;
  if (!held) throw new Error(`Secret '${name}' not found. Available: ${listSecrets().join(", ") || "none"}`);
  if (held.error !== undefined) throw new Error(`Secret '${name}' was not given: ${held.error}`);
  return new TaintedString(held.value ?? held.placeholder);
}

function listSecrets() {
  return Object.keys(given.secrets);
}

// What JSON.stringify masks is sent as it is by postJSON: the body of a request is where a secret belongs.
function wire(body) {
  return stringify(body, function (key, value) {
    return this[key] instanceof TaintedString ? this[key].toString() : value;
  });
}

function refuseMasks(...parts) {
  if (!parts.some((part) => part.includes(MASK))) return;
  throw new TypeError(
    `the request holds ${MASK} in the place of a secret: JSON.stringify masks secrets. ` +
      "Give the object itself to postJSON, or put String(secret) into it",
  );
}

async function throughProxy(input, init) {
  let request = new Request(input, init);
  if (!/^https?:/.test(request.url)) return realFetch(request);
  if (!given.network) {
    throw new TypeError(
      `this program has no network, so ${new URL(request.url).host} cannot be reached: ` +
        "run it again with a network grant for that host",
    );
  }
  const body = request.body ? new Uint8Array(await request.arrayBuffer()) : undefined;
  refuseMasks(request.url, decodeURI(request.url), ...request.headers.values(), body ? decoder.decode(body) : "");
  let { method, url } = request;
  let carried = body;
  const headers = new Headers(request.headers);
  for (let hop = 0; hop <= REDIRECTS; hop++) {
    headers.set("x-toolgate-url", url);
    const response = await realFetch(PROXY, {
      method, headers, body: carried, redirect: "manual", signal: request.signal,
    });
    const location = response.headers.get("location");
    const moved = [301, 302, 303, 307, 308].includes(response.status) && location;
    if (!moved || request.redirect === "manual") return named(response, url, hop > 0);
    if (request.redirect === "error") throw new TypeError(`${url} answered with a redirect`);
    await response.body?.cancel();
    const next = new URL(location, url);
    if (next.origin !== new URL(url).origin) headers.delete("authorization");
    if (response.status === 303 ? method !== "HEAD" : response.status < 303 && method === "POST") {
      [method, carried] = ["GET", undefined];
      for (const name of ["content-type", "content-length"]) headers.delete(name);
    }
    url = next.href;
  }
  throw new TypeError(`${request.url} redirected more than ${REDIRECTS} times`);
}

function named(response, url, redirected) {
  Object.defineProperties(response, { url: { value: url }, redirected: { value: redirected } });
  return response;
}

function fetchWithAuth(url, options = {}) {
  const { authSecret, auth_secret = authSecret, ...rest } = options;
  const headers = new Headers(rest.headers);
  if (auth_secret) headers.set("Authorization", `Bearer ${getSecret(auth_secret)}`);
  return fetch(url, { ...rest, headers });
}

async function answered(response) {
  if (!response.ok) throw new Error(`HTTP ${response.status} from ${response.url}: ${await response.text()}`);
  return response.json();
}

async function getJSON(url, authSecret) {
  return answered(await fetchWithAuth(url, { authSecret }));
}

async function postJSON(url, body, authSecret) {
  const headers = { "Content-Type": "application/json" };
  return answered(await fetchWithAuth(url, { method: "POST", headers, body: wire(body), authSecret }));
}

let outputs = null;

function output(data) {
  const text = stringify(data);
  if (text === undefined) throw new TypeError(`output() takes JSON values, not ${typeof data}`);
  outputs ??= Deno.openSync(given.outputs, { append: true, create: true });
  const bytes = encoder.encode(redact(text) + "\n");
  for (let at = 0; at < bytes.length;) at += outputs.writeSync(bytes.subarray(at));
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// ---- in place, and not to be replaced by accident

function fix(object, name, value) {
  Object.defineProperty(object, name, { value, writable: false, configurable: false, enumerable: true });
}

const helpers = {
  getSecret, listSecrets, fetchWithAuth, getJSON, postJSON, output, sleep, TaintedString,
  get_secret: getSecret, list_secrets: listSecrets, fetch_with_auth: fetchWithAuth, get_json: getJSON, post_json: postJSON,
};
for (const [name, helper] of Object.entries(helpers)) fix(globalThis, name, Object.freeze(helper));
Object.freeze(TaintedString.prototype);
fix(globalThis, "fetch", throughProxy);
for (const [name, method] of Object.entries(quietConsole())) {
  if (typeof method === "function") fix(console, name, method);
}
if (Object.keys(given.secrets).length) [stdout, stderr].forEach(guard);
addEventListener("error", (event) => (event.preventDefault(), report(event.error)));
addEventListener("unhandledrejection", (event) => (event.preventDefault(), report(event.reason)));
delete Deno[Deno.internal];

// ---- the program

function requireBuiltin(name) {
  const found = process.getBuiltinModule(name);
  if (found === undefined) throw new Error(`require("${name}") is refused: only modules built into Node are here`);
  return found;
}

async function runCommonJS(program) {
  const module = { exports: {} };
  const untouched = module.exports;
  requireBuiltin.main = module;
  await program.call(untouched, module, untouched, requireBuiltin, `${Deno.cwd()}/${PROGRAM}`, Deno.cwd());
  const made = typeof module.exports === "function" ? await module.exports() : module.exports;
  if (made === undefined || (made === untouched && !Object.keys(made).length)) return;
  const calls = Object.keys(made ?? {}).filter((key) => typeof made[key] === "function");
  if (calls.length && calls.length === Object.keys(made).length) {
    throw new TypeError(`module.exports has only functions (${calls.join(", ")}): export one function, or data`);
  }
  output(made);
}

try {
  Deno.writeTextFileSync(PROGRAM, given.wrapped ? `${given.wrapped}${given.code}\n}` : given.code);
  const program = await import(`file://${Deno.cwd()}/${PROGRAM}`);
  if (given.wrapped) await runCommonJS(program.default);
} catch (error) {
  report(error);
}
