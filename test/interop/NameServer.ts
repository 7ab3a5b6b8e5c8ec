import { randomBytes } from "node:crypto"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../support/Ports.ts"
import { scriptIn } from "./Client.ts"
import { runCommand, startForeground } from "./Command.ts"

/** BIND on 127.0.0.1, the authority for the zone of the names to be certified. */
export interface NameServer {
  /** `127.0.0.1:<port>` */
  readonly address: string
  /** The key that signs dynamic updates. */
  readonly key: { readonly name: string; readonly secret: string }
  /** The same key with every algorithm that a relay knows. */
  readonly tsigKeys: ReadonlyArray<TsigKeyText>
  /**
   * `<script> add <name> <text>` adds a TXT record to the zone, and `<script> delete <name> <text>` removes the record.
   */
  readonly script: string
  /** Changes the zone by lines of nsupdate. */
  readonly update: (...lines: ReadonlyArray<string>) => Promise<void>
  /** Everything in the zone, with one record on each line. */
  readonly transfer: () => Promise<ReadonlyArray<string>>
  /** Waits for a query over TCP, which only follows a truncated answer. */
  readonly askedOverTcp: (name: string, type: string) => Promise<void>
  readonly stop: () => Promise<void>
}

/** A key that the name server knows. */
export interface TsigKeyText {
  readonly name: string
  readonly algorithm: "hmac-sha256" | "hmac-sha384" | "hmac-sha512"
  /** The secret in standard base64. */
  readonly secret: string
}

/** The zone of the names to be certified. */
export const zone = "corp.example"

/** The records for a name with the label `alias` go below this name. */
export const aliases = `keys.${zone}`

const keyName = "hooks"

/** The zone, in which every host is this machine. */
const zoneFile = [
  "$TTL 0",
  "@ SOA ns hostmaster 1 3600 600 86400 0",
  "@ NS ns",
  "ns A 127.0.0.1",
  "* A 127.0.0.1",
  ""
].join("\n")

const tsigKey = (algorithm: TsigKeyText["algorithm"]): TsigKeyText => ({
  name: `relay-${algorithm}`,
  algorithm,
  secret: randomBytes(48).toString("base64")
})

const configuration = (
  directory: string,
  port: number,
  key: string,
  keys: ReadonlyArray<TsigKeyText>
): string =>
  [
    key,
    ...keys.map(({ algorithm, name, secret }) => `key "${name}" { algorithm ${algorithm}; secret "${secret}"; };`),
    "controls {};",
    "options {",
    `  directory "${directory}";`,
    `  pid-file "${directory}/named.pid";`,
    `  managed-keys-directory "${directory}";`,
    "  session-keyfile none;",
    `  listen-on port ${port} { 127.0.0.1; };`,
    "  listen-on-v6 { none; };",
    "  recursion no;",
    "  notify no;",
    "  querylog yes;",
    // An answer that does not fit into the smallest packet must be requested again over TCP.
    "  max-udp-size 512;",
    "};",
    `zone "${zone}" { type primary; file "zone"; allow-update { ${
      [keyName, ...keys.map(({ name }) => name)].map((name) => `key "${name}";`).join(" ")
    } }; };`,
    ""
  ].join("\n")

/** Starts the name server, which the caller stops. */
export const startNameServer = async (): Promise<NameServer> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-named-"))
  // Clients that give up the rights of root also call the script.
  chmodSync(directory, 0o755)
  const port = await freePort()
  const secret = randomBytes(32).toString("base64")
  const keyFile = join(directory, "hooks.key")
  const key = `key "${keyName}" { algorithm hmac-sha256; secret "${secret}"; };\n`
  writeFileSync(keyFile, key)
  const tsigKeys = (["hmac-sha256", "hmac-sha384", "hmac-sha512"] as const).map(tsigKey)
  writeFileSync(join(directory, "named.conf"), configuration(directory, port, key, tsigKeys))
  writeFileSync(join(directory, "zone"), zoneFile)
  const script = scriptIn(
    directory,
    "txt",
    `case "$2" in *.alias.*) at="$2.${aliases}" ;; *) at="$2" ;; esac`,
    `printf 'server 127.0.0.1 ${port}\\nupdate %s %s 0 TXT "%s"\\nsend\\n' "$1" "$at" "$3" | nsupdate -k ${keyFile}`
  )
  const words = ["-g", "-n", "1", "-c", join(directory, "named.conf")]
  const named = await startForeground("named", words, { cwd: directory, ready: / running$/ })
  return {
    address: `127.0.0.1:${port}`,
    key: { name: keyName, secret },
    tsigKeys,
    script,
    update: async (...lines) => {
      const file = join(directory, `update-${randomBytes(6).toString("hex")}`)
      writeFileSync(file, [`server 127.0.0.1 ${port}`, ...lines.map((line) => `update ${line}`), "send", ""].join("\n"))
      await runCommand("nsupdate", ["-k", keyFile, file])
    },
    transfer: async () =>
      (await runCommand("dig", ["@127.0.0.1", "-p", `${port}`, zone, "AXFR", "+noall", "+answer"])).split("\n"),
    askedOverTcp: (name, type) => named.waitFor(new RegExp(`query: ${name} IN ${type} -?\\+?[A-Z()0-9]*T`)),
    stop: async () => {
      await named.stop()
      rmSync(directory, { recursive: true, force: true })
    }
  }
}
