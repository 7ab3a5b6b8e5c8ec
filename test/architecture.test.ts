import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { assert, describe, it } from "vitest"

/* docs/architecture.md as assertions: which storey may import which, and in which rooms the outside world is met. */

const src = fileURLToPath(new URL("../src", import.meta.url))

interface Import {
  readonly file: string
  /** A path below src, or the name of a package. */
  readonly of: string
}

const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))

const imports: ReadonlyArray<Import> = files.flatMap((file) =>
  ts.preProcessFile(readFileSync(join(src, file), "utf8"), true, true).importedFiles.map(({ fileName }) => ({
    file,
    of: fileName.startsWith(".") ? relative(src, join(src, dirname(file), fileName)) : fileName
  }))
)

const show = ({ file, of }: Import) => `${file} imports ${of}`
const isPackage = (of: string) => !of.endsWith(".ts")
const isOf = (name: string) => (of: string) => of === name || of.startsWith(`${name}/`)

const storeys = ["domain", "subsystems", "operations", "surfaces", "app", "main.ts"]
const storeyOf = (path: string) => storeys.findIndex((storey) => path === storey || path.startsWith(`${storey}/`))

/** Below this folder, a room is the first part of a path: `db`, `crypto`, … */
const roomOf = (path: string, storey: string) => path.startsWith(`${storey}/`) ? path.split("/")[1] : undefined

/** What may import a package or runtime module; everything not listed is refused. `effect` itself is everywhere. */
const rooms: Readonly<Record<string, ReadonlyArray<string>>> = {
  "node:crypto": [
    "subsystems/crypto",
    "subsystems/db",
    "subsystems/outside/dns",
    "subsystems/signing",
    "surfaces/http/TlsFiles.ts"
  ],
  "node:child_process": ["subsystems/db/Readers.ts", "subsystems/outside/Scripts.ts"],
  "node:dgram": ["subsystems/outside"],
  "node:dns": ["subsystems/outside"],
  "node:fs": [
    "subsystems/config",
    "subsystems/crypto/KeyFile.ts",
    "subsystems/db",
    "subsystems/outside/Exhausted.ts",
    "subsystems/outside/Files.ts",
    "subsystems/queue/Owner.ts",
    "subsystems/signing",
    "surfaces/http"
  ],
  "node:module": ["main.ts"],
  "node:http": ["subsystems/outside", "surfaces/http", "app/Health.ts"],
  "node:https": ["surfaces/http", "app/Health.ts"],
  "node:net": ["subsystems/config", "subsystems/crypto/TlsPair.ts", "subsystems/outside", "surfaces/http"],
  "node:os": ["app"],
  "node:path": ["subsystems/config", "subsystems/crypto/KeyFile.ts", "subsystems/db/Migrations.ts", "app"],
  "node:readline": ["app/Program.ts"],
  "node:stream": ["subsystems/outside/Scripts.ts"],
  "node:tls": ["subsystems/outside", "surfaces/http"],
  "node:url": ["subsystems/db/Readers.ts", "main.ts"],
  "@effect/cli": ["app/Cli.ts", "app/commands"],
  "@effect/platform-node": ["app/Program.ts"],
  "@effect/sql": ["subsystems/db"],
  "@effect/sql-pg": ["subsystems/db/Postgres.ts"],
  "@effect/sql-sqlite-node": ["subsystems/db/Sqlite.ts"],
  "node:util": ["app/Cli.ts"],
  "better-sqlite3": ["subsystems/db/sqliteReader.ts"],
  re2js: ["domain/policy/Regex.ts"],
  "prom-client": ["subsystems/metrics/Metrics.ts"],
  pg: ["subsystems/db/Postgres.ts"],
  "smol-toml": ["subsystems/config/Source.ts"],
  tr46: ["domain/Identifier.ts"]
}

describe("src", () => {
  it("has every file on one of the five storeys, and every import reads", () => {
    assert.deepStrictEqual(files.filter((file) => storeyOf(file) < 0), [])
    assert.isAbove(files.length, 50)
    assert.isAbove(imports.length, 300)
    const missing = imports.filter(({ of }) => !isPackage(of) && !files.includes(of))
    assert.deepStrictEqual(missing.map(show), [])
  })

  it("imports downwards only: domain, subsystems, operations, surfaces, app, main", () => {
    const backwards = imports.filter(({ file, of }) => !isPackage(of) && storeyOf(of) > storeyOf(file))
    assert.deepStrictEqual(backwards.map(show), [])
  })

  it("keeps the surfaces apart", () => {
    const across = imports.filter(({ file, of }) => {
      const [from, to] = [roomOf(file, "surfaces"), roomOf(of, "surfaces")]
      return from !== undefined && to !== undefined && from !== to
    })
    assert.deepStrictEqual(across.map(show), [])
  })

  it("lets no room of the subsystems import one that imports it", () => {
    const uses = new Map<string, Set<string>>()
    for (const { file, of } of imports) {
      const [from, to] = [roomOf(file, "subsystems"), roomOf(of, "subsystems")]
      if (from === undefined || to === undefined || from === to) continue
      uses.set(from, (uses.get(from) ?? new Set()).add(to))
    }
    const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
      [...uses.get(from) ?? []].some((next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))))
    assert.deepStrictEqual([...uses.keys()].filter((room) => reaches(room, room)), [])
  })

  it("meets the runtime and every package in the rooms made for it", () => {
    const outside = imports.filter(({ file, of }) => {
      if (!isPackage(of) || isOf("effect")(of)) return false
      const name = Object.keys(rooms).find((known) => of === known || of.startsWith(`${known}/`))
      return name === undefined || !rooms[name]?.some((room) => isOf(room)(file))
    })
    assert.deepStrictEqual(outside.map(show), [])
  })

  it("runs effects in the programs alone, and reads the process there alone", () => {
    const programs = new Set(["app/Program.ts", "main.ts", "subsystems/db/sqliteReader.ts"])
    const offending = files.filter((file) => !programs.has(file)).flatMap((file) => {
      const text = readFileSync(join(src, file), "utf8")
      const found =
        text.match(/\bEffect\.run(?!time\b)\w+|\bprocess\.(?:env|argv|exit|stdout|stderr|stdin|cwd|on)\b/g) ?? []
      // Examples in documentation run themselves.
      return found.filter((one) => !new RegExp(`^ \\* .*${one.replace(".", "\\.")}`, "m").test(text)).map((one) =>
        `${file}: ${one}`
      )
    })
    assert.deepStrictEqual(offending, [])
  })

  it("loads nothing before the runtime was judged", () => {
    assert.deepStrictEqual(imports.filter(({ file }) => file === "app/Runtime.ts"), [])
    assert.sameMembers(imports.filter(({ file, of }) => file === "main.ts" && !isPackage(of)).map(({ of }) => of), [
      "app/Runtime.ts",
      "app/Program.ts"
    ])
    assert.include(readFileSync(join(src, "main.ts"), "utf8"), "await import(\"./app/Program.ts\")")
  })

  it("uses no key as generateKeyPairSync makes it: exporting one as JWK can hang for good", () => {
    const calls = files.flatMap((file) =>
      readFileSync(join(src, file), "utf8").split("generateKeyPairSync(").slice(1).map((call) => ({ file, call }))
    )
    assert.isAbove(calls.length, 0)
    assert.deepStrictEqual(
      calls.filter(({ call }) => !call.slice(0, call.indexOf("})") + 1).includes("privateKeyEncoding")).map((
        { file }
      ) => file),
      []
    )
  })

  it("holds no file of more than 300 lines", () => {
    const long = files.filter((file) => readFileSync(join(src, file), "utf8").split("\n").length > 301)
    assert.deepStrictEqual(long, [])
  })
})
