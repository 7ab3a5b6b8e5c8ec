import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"
import { basename, dirname, resolve } from "node:path"
import { assemble, merge } from "../../src/engine/config/Assemble.ts"
import type { Fault } from "../../src/engine/config/ConfigRefused.ts"
import { ConfigRefused } from "../../src/engine/config/ConfigRefused.ts"
import * as Key from "../../src/engine/config/Key.ts"
import { dotted } from "../../src/engine/config/KeyPath.ts"
import { lineOf, linesOf } from "../../src/engine/config/Lines.ts"
import { readFile } from "../../src/engine/config/Source.ts"
import type { Form } from "../../src/engine/config/ValueForm.ts"
import { anyText, form, httpUrl, orEmpty, path } from "../../src/engine/config/ValueForm.ts"
import * as Procfs from "./Procfs.ts"
import type { ProofPorts } from "./Proof.ts"

/*
 * Reads the file of `--peers`, which names other ACME servers. docs/contribute/bench.md, "Beside other servers",
 * explains it.
 */

/** The value of a placeholder in the words that start a peer. */
export interface Placeholders {
  /** A free port, on which the peer is to listen. */
  readonly port: number
  /** An empty directory, which is removed at the end. */
  readonly directory: string
  /** The address of the name server, and the port of the web server, by which names are proved. */
  readonly resolver: string
  readonly http_01_port: number
}

/** Returns the text with the values of its placeholders, which are written as `{port}`. */
export const filledIn = (text: string, values: Placeholders): string =>
  Object.entries(values).reduce((filled, [name, value]) => filled.replaceAll(`{${name}}`, String(value)), text)

const example: Placeholders = { port: 1, directory: "/", resolver: "127.0.0.1:1", http_01_port: 1 }
const placeholders = Object.keys(example).map((name) => `{${name}}`)

const directoryUrl: Form = {
  says: "absolute http or https URL",
  fault: (text) => httpUrl.fault(filledIn(text, example))
}

const keyOfBinding: Form = form("base64url", (text) => /^[A-Za-z0-9_-]+$/.test(text), "must be base64url")

const names: Key.Names = {
  fold: (segment) => segment,
  fault: (name) =>
    !/^[\w. -]{1,40}$/.test(name)
      ? "must be a name of letters, digits, blanks, dots, _ and -"
      : ["sqlite", "postgres"].includes(name)
      ? "is a name of the service itself"
      : undefined
}

const anyPort = { min: 0, max: 65_535 }

const Peer = Schema.Struct({
  directory_url: Key.text(
    "",
    orEmpty(directoryUrl),
    "The directory of the peer. With `command`, the URL may contain the placeholders of `command`."
  ),
  pid: Key.integer(0, { min: 0 }, "The process of a peer that is running already."),
  pid_path: Key.text("", orEmpty(path), "A file with the number of this process, instead of `pid`."),
  command: Key.texts(
    [],
    anyText,
    "The program that starts the peer, and its options, instead of `pid`. Every turn has a new process, which is warmed "
      + `up. It runs in the directory of the file. Placeholders: ${placeholders.map((one) => `\`${one}\``).join(", ")}.`
  ),
  validation: Key.word(
    "http-01",
    { offered: ["http-01", "bypass"] },
    "Whether the peer validates names. With `bypass`, it accepts every challenge."
  ),
  ca_path: Key.text(
    "",
    orEmpty(path),
    "The CA certificates, in PEM, for the TLS of the peer. If it is empty, its certificate is not checked."
  ),
  eab_kid: Key.text("", anyText, "The credential for external account binding, with which many accounts can register."),
  eab_key: Key.secret("", orEmpty(keyOfBinding), "The HMAC key of this credential.")
})

const Table = Schema.Struct({
  dns_port: Key.integer(0, anyPort, "The port of the name server that proves names. 0 is any free port."),
  http_01_port: Key.integer(0, anyPort, "The port of the web server that proves names. 0 is any free port."),
  peers: Key.entries(names, Peer)
})

/** The table of keys, which docs/contribute/bench.md lists. */
export const peersTable = Key.nodeOf(Table.ast)

/** A credential for external account binding (RFC 8555 section 7.3.4). */
export interface Binding {
  readonly kid: string
  /** The HMAC key in base64url. */
  readonly key: string
}

/** Another ACME server. */
export interface Peer {
  readonly name: string
  readonly directoryUrl: string
  /** The process of the peer, or the words that start it, which may contain placeholders. */
  readonly runs: { readonly pid: number } | { readonly command: ReadonlyArray<string>; readonly cwd: string }
  readonly isProved: boolean
  /** The CA certificates for its TLS, or undefined if its certificate is not checked. */
  readonly ca: string | undefined
  readonly binding: Binding | undefined
}

/** The other servers, and the ports at which names are proved. */
export interface Peers extends ProofPorts {
  readonly list: ReadonlyArray<Peer>
}

/** No other server. */
export const noPeers: Peers = { dnsPort: 0, httpPort: 0, list: [] }

const decode = Schema.decodeUnknownSync(Table)

/** Returns the content of a file, or why it cannot be read. */
const contentOf = (file: string): Result.Result<string, string> =>
  Result.try({
    try: () => readFileSync(file, "utf8"),
    catch: (error) => `cannot be read: ${error instanceof Error ? error.message.split(",", 1)[0] : String(error)}`
  })

type Given = typeof Peer.Type
type Ways = "pid" | "pid_path" | "command"

/** Reads the keys of one peer. `refuse` gets the faults. Relative paths begin in the directory `at`. */
const peerOf = (name: string, given: Given, at: string, refuse: (key: keyof Given, message: string) => void): Peer => {
  const { ca_path, command, directory_url, eab_kid, pid, pid_path, validation } = given
  const key = Redacted.value(given.eab_key)
  const read = (where: "ca_path" | "pid_path"): string | undefined =>
    Result.getOrElse(contentOf(resolve(at, given[where])), (message) => void refuse(where, message))
  const running = (where: "pid" | "pid_path", number: number): { readonly pid: number } => {
    if (!Procfs.isRunning(number)) refuse(where, "must be the number of a process that is running")
    return { pid: number }
  }
  const runs: { readonly [W in Ways]: () => Peer["runs"] } = {
    pid: () => running("pid", pid),
    pid_path: () => {
      const text = read("pid_path")
      return text === undefined ? { pid: 0 } : running("pid_path", Number(text))
    },
    command: () => ({ command, cwd: at })
  }
  const ways: ReadonlyArray<Ways> = [
    ...pid === 0 ? [] : ["pid" as const],
    ...pid_path === "" ? [] : ["pid_path" as const],
    ...command.length === 0 ? [] : ["command" as const]
  ]
  const [way] = ways
  if (way === undefined) refuse("pid", "must be set, or instead of it pid_path or command")
  else if (ways.length > 1) refuse(way, `must not be set together with ${ways.slice(1).join(" and ")}`)
  if (directory_url === "") refuse("directory_url", "must be set")
  const unfilled = placeholders.find((one) => directory_url.includes(one))
  if (way !== "command" && unfilled !== undefined) {
    refuse("directory_url", `must not contain ${unfilled} without command`)
  }
  if (eab_kid !== "" && key === "") refuse("eab_key", "must be set together with eab_kid")
  if (eab_kid === "" && key !== "") refuse("eab_kid", "must be set together with eab_key")
  return {
    name,
    directoryUrl: directory_url,
    runs: way === undefined ? { pid: 0 } : runs[way](),
    isProved: validation === "http-01",
    ca: ca_path === "" ? undefined : read("ca_path"),
    binding: eab_kid === "" ? undefined : { kid: eab_kid, key }
  }
}

/** Reads a file of peers. Throws a `ConfigRefused` with every fault. */
export const readPeers = (file: string): Peers => {
  const refuse = (faults: ReadonlyArray<Fault>): never => {
    throw ConfigRefused.of(faults)
  }
  const text = Result.getOrElse(contentOf(file), (message) => refuse([{ key: file, message }]))
  const layer = Result.getOrElse(readFile(peersTable, text), (message) => refuse([{ key: file, message }]))
  const lines = linesOf(text)
  const refuseAll = (faults: ReadonlyArray<Fault>): void => {
    if (faults.length === 0) return
    refuse(faults.map((fault) => {
      const line = lineOf(lines, fault.key)
      return line === undefined ? fault : { ...fault, place: `line ${line} of ${basename(file)}` }
    }))
  }
  refuseAll([
    ...layer.faults,
    ...layer.written.flatMap(({ facts, key, raw }) => {
      const value = Result.flatMap(raw, facts.read)
      return Result.isFailure(value) ? [{ key, message: value.failure }] : []
    })
  ])
  const { dns_port, http_01_port, peers } = decode(assemble(peersTable, merge([layer]), new Set()).tree)
  const faults: Array<Fault> = []
  const list = Object.entries(peers).map(([name, given]) =>
    peerOf(
      name,
      given,
      dirname(resolve(file)),
      (key, message) => faults.push({ key: dotted(["peers", name, key]), message })
    )
  )
  if (list.length === 0) {
    faults.push({ key: "peers", message: "must have a table for each peer, such as [peers.pebble]" })
  }
  refuseAll(faults)
  return { dnsPort: dns_port, httpPort: http_01_port, list }
}
