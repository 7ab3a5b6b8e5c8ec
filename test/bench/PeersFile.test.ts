import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { declaredKeys } from "../../src/engine/config/Key.ts"
import { dotted } from "../../src/engine/config/KeyPath.ts"
import { filledIn, peersTable, readPeers } from "../../tools/bench/PeersFile.ts"
import { freshDirectory } from "../support/Databases.ts"
import { text } from "../support/Documents.ts"

const written = (content: string): string => {
  const file = join(freshDirectory(), "peers.toml")
  writeFileSync(file, content)
  return file
}

const url = `directory_url = "https://127.0.0.1:9000/dir"`
const running = `${url}\npid = ${process.pid}`

/** Returns the lines about faults. */
const faultsOf = (content: string): ReadonlyArray<string> => {
  try {
    readPeers(written(content))
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).split("\n").slice(1).map((line) => line.trim())
  }
  return []
}

describe("a file of peers", () => {
  it("names servers by their URL and process", () => {
    const file = written(`
      dns_port = 8053
      http_01_port = 5002

      [peers."step-ca 0.30"]
      directory_url = "https://localhost:9000/acme/acme/directory"
      pid_path = "step.pid"
      ca_path = "root.pem"
      eab_kid = "kid"
      eab_key = "c2VjcmV0"
    `)
    writeFileSync(join(file, "../step.pid"), `${process.pid}\n`)
    writeFileSync(join(file, "../root.pem"), "certificates")
    assert.deepStrictEqual(readPeers(file), {
      dnsPort: 8053,
      httpPort: 5002,
      list: [{
        name: "step-ca 0.30",
        directoryUrl: "https://localhost:9000/acme/acme/directory",
        runs: { pid: process.pid },
        isProved: true,
        ca: "certificates",
        binding: { kid: "kid", key: "c2VjcmV0" }
      }]
    })
  })

  it("names servers by the command that starts them", () => {
    const file = written(`
      [peers.pebble]
      directory_url = "https://127.0.0.1:{port}/dir"
      command = ["pebble", "-dnsserver", "{resolver}"]
      validation = "bypass"
    `)
    const { list: [peer] } = readPeers(file)
    assert.deepStrictEqual(peer?.runs, { command: ["pebble", "-dnsserver", "{resolver}"], cwd: join(file, "..") })
    assert.isFalse(peer?.isProved)
    const values = { port: 9000, directory: "/tmp/x", resolver: "127.0.0.1:53", http_01_port: 80 }
    assert.strictEqual(
      filledIn("{port} {http_01_port} {resolver} {directory} {other}", values),
      "9000 80 127.0.0.1:53 /tmp/x {other}"
    )
  })

  it.each([
    ["[peers]", "peers: must have a table for each peer, such as [peers.pebble] (line 1 of peers.toml)"],
    [
      `[peers.x]\n${running}\npdi = 1`,
      "peers.x.pdi: is not a known key; the nearest is peers.x.pid (line 4 of peers.toml)"
    ],
    [`dns_port = 70000\n[peers.x]\n${running}`, "dns_port: must be 0 to 65535 (line 1 of peers.toml)"],
    [`[peers.sqlite]\n${running}`, "peers.sqlite: is a name of the service itself (line 1 of peers.toml)"],
    [
      `[peers."a/b"]\n${running}`,
      `peers."a/b": must be a name of letters, digits, blanks, dots, _ and - (line 1 of peers.toml)`
    ],
    [`[peers.x]\npid = ${process.pid}`, "peers.x.directory_url: must be set (line 1 of peers.toml)"],
    [
      `[peers.x]\ndirectory_url = "localhost"\npid = 1`,
      "peers.x.directory_url: must be an absolute http or https URL (line 2 of peers.toml)"
    ],
    [
      `[peers.x]\ndirectory_url = "https://127.0.0.1:{port}/"\npid = ${process.pid}`,
      "peers.x.directory_url: must not contain {port} without command (line 2 of peers.toml)"
    ],
    [`[peers.x]\n${url}`, "peers.x.pid: must be set, or instead of it pid_path or command (line 1 of peers.toml)"],
    [
      `[peers.x]\n${running}\ncommand = ["true"]`,
      "peers.x.pid: must not be set together with command (line 3 of peers.toml)"
    ],
    [
      `[peers.x]\n${url}\npid = 2147483647`,
      "peers.x.pid: must be the number of a process that is running (line 3 of peers.toml)"
    ],
    [
      `[peers.x]\n${url}\npid_path = "none"`,
      "peers.x.pid_path: cannot be read: ENOENT: no such file or directory (line 3 of peers.toml)"
    ],
    [
      `[peers.x]\n${url}\npid_path = "peers.toml"`,
      "peers.x.pid_path: must be the number of a process that is running (line 3 of peers.toml)"
    ],
    [
      `[peers.x]\n${running}\nca_path = "none"`,
      "peers.x.ca_path: cannot be read: ENOENT: no such file or directory (line 4 of peers.toml)"
    ],
    [
      `[peers.x]\n${running}\nvalidation = "dns-01"`,
      `peers.x.validation: must be one of "http-01", "bypass", and not "dns-01" (line 4 of peers.toml)`
    ],
    [
      `[peers.x]\n${running}\neab_kid = "k"`,
      "peers.x.eab_key: must be set together with eab_kid (line 1 of peers.toml)"
    ],
    [
      `[peers.x]\n${running}\neab_key = "c2VjcmV0"`,
      "peers.x.eab_kid: must be set together with eab_key (line 1 of peers.toml)"
    ],
    [
      `[peers.x]\n${running}\neab_kid = "k"\neab_key = "not base64url"`,
      "peers.x.eab_key: must be base64url (line 5 of peers.toml)"
    ]
  ])("is refused with the name of the key: %s", (content, ...faults) => {
    assert.deepStrictEqual(faultsOf(content), faults)
  })

  it("is refused with every fault", () => {
    assert.deepStrictEqual(faultsOf(`[peers.x]\npid = ${process.pid}\n[peers.y]\n${url}`), [
      "peers.x.directory_url: must be set (line 1 of peers.toml)",
      "peers.y.pid: must be set, or instead of it pid_path or command (line 3 of peers.toml)"
    ])
  })

  it("is refused as a whole if it cannot be read or is not TOML", () => {
    const absent = join(freshDirectory(), "none.toml")
    assert.throws(() => readPeers(absent), `${absent}: cannot be read: ENOENT: no such file or directory`)
    const broken = written("[peers")
    assert.throws(() => readPeers(broken), `${broken}: is not well-formed TOML at line 1`)
  })

  it("has every key in the document, with its default and its purpose", () => {
    const rows = text("docs/contribute/bench.md").split("\n").map((line) => line.replaceAll(/ +/g, " "))
    for (const { facts, path } of declaredKeys(peersTable)) {
      const initial = Array.isArray(facts.default)
        ? "[]"
        : typeof facts.default === "string"
        ? JSON.stringify(facts.default)
        : String(facts.default)
      assert.include(rows, `| \`${dotted(path).replace("\"<name>\"", "<name>")}\` | \`${initial}\` | ${facts.doc} |`)
    }
  })
})
