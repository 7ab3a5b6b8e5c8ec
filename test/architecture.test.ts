import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { jobKinds } from "../src/domain/words/JobKind.ts"

/*
 * Checks docs/contribute/architecture.md: which storey may import which, and which rooms may use the network, the disk
 * and the clock of the host.
 */

const src = fileURLToPath(new URL("../src", import.meta.url))

interface Import {
  readonly file: string
  /** A path below src or the name of a package. */
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

const storeys = [
  "crypto",
  "engine",
  "domain",
  "settings",
  "store",
  "services",
  "operations",
  "surfaces",
  "app",
  "main.ts"
]
const storeyOf = (path: string) => storeys.findIndex((storey) => path === storey || path.startsWith(`${storey}/`))

/** Returns the storey and the folder in it, such as `engine/sql` or `services/signing`. */
const roomOf = (path: string) => path.split("/").length > 2 ? path.split("/").slice(0, 2).join("/") : undefined

/**
 * Where a package or a runtime module may be imported. Everything else is refused. The modules of `effect` itself may
 * be imported everywhere. The modules of its folders are marked as unstable, so each folder has its rooms
 * (docs/contribute/decisions/effect.md).
 */
const rooms: Readonly<Record<string, ReadonlyArray<string>>> = {
  "node:crypto": ["crypto", "engine/net/Connect.ts"],
  "node:child_process": ["engine/host/Scripts.ts", "engine/sql/Readers.ts", "engine/token/Token.ts"],
  "node:cluster": ["engine/processes"],
  "node:dgram": ["engine/net"],
  "node:dns": ["engine/net"],
  "node:fs": ["engine", "settings", "services/signing", "app/Bundle.ts"],
  "node:module": ["app/Bundle.ts", "engine/template/Machine.ts", "main.ts"],
  "node:http": ["engine/http", "engine/net", "app/Health.ts"],
  "node:https": ["engine/http", "app/Health.ts"],
  "node:net": ["engine/http", "engine/net", "crypto/x509/TlsPair.ts"],
  "node:os": ["app", "engine/sql/Readers.ts"],
  "node:path": ["engine", "settings", "app"],
  "node:readline": ["app/Program.ts"],
  "node:stream": ["engine/host/Scripts.ts", "engine/net/Handshake.ts"],
  "node:tls": ["engine/http", "engine/net"],
  "node:url": [
    "engine/sql/Checkpoints.ts",
    "engine/sql/Readers.ts",
    "engine/template/Machine.ts",
    "engine/token/Token.ts",
    "main.ts"
  ],
  "node:util": ["engine/http/Compressed.ts"],
  "node:v8": ["main.ts"],
  "node:vm": ["app/Bundle.ts"],
  "node:worker_threads": ["engine/sql/Checkpoints.ts", "engine/sql/sqliteCheckpointer.ts"],
  "node:zlib": ["app/Bundle.ts", "engine/http/Compressed.ts"],
  "@effect/platform-node": ["app/Program.ts"],
  "effect/cli": ["app/Cli.ts", "app/Commands.ts", "app/commands"],
  "effect/http-api": ["surfaces/operator"],
  "better-sqlite3": ["SqliteConnection", "sqliteCheckpointer", "sqliteReader"].map((file) => `engine/sql/${file}.ts`),
  "fast-string-truncated-width": ["surfaces/cli/Text.ts"],
  koffi: ["engine/token/pkcs11Module.ts"],
  jose: ["crypto/jose/Library.ts"],
  "minijinja-js": ["engine/template/Engine.ts", "engine/template/Machine.ts"],
  nodemailer: ["engine/net/Mail.ts"],
  otplib: ["crypto/Totp.ts"],
  pg: ["Postgres", "PostgresCancel", "PostgresClient", "PostgresServer"].map((file) => `engine/sql/${file}.ts`),
  "prom-client": ["engine/telemetry/Registry.ts"],
  re2js: ["domain/policy/Regex.ts"],
  "smol-toml": ["engine/config/Source.ts"],
  "toml-eslint-parser": ["engine/config/Lines.ts"],
  tr46: ["domain/Identifier.ts"],
  uqr: ["surfaces/panel/QrCode.ts"]
}

describe("src", () => {
  it("has every file on one of the storeys", () => {
    assert.deepStrictEqual(files.filter((file) => storeyOf(file) < 0), [])
    assert.isAbove(files.length, 50)
    assert.isAbove(imports.length, 300)
    const missing = imports.filter(({ of }) => !isPackage(of) && !files.includes(of))
    assert.deepStrictEqual(missing.map(show), [])
  })

  it("imports only downwards, from main to crypto", () => {
    const backwards = imports.filter(({ file, of }) => !isPackage(of) && storeyOf(of) > storeyOf(file))
    assert.deepStrictEqual(backwards.map(show), [])
  })

  it("has no surface that reads a table", () => {
    assert.deepStrictEqual(
      imports.filter(({ file, of }) => isOf("surfaces")(file) && isOf("store")(of)).map(show),
      []
    )
  })

  it("has separate surfaces, except that the surfaces of operators share the entrance and the acts", () => {
    const shared: { readonly [room: string]: ReadonlyArray<string> } = {
      "surfaces/panel": ["surfaces/operator"],
      "surfaces/operator": ["surfaces/cli"]
    }
    const across = imports.filter(({ file, of }) =>
      file.startsWith("surfaces/") && of.startsWith("surfaces/") && roomOf(file) !== roomOf(of) &&
      !(shared[roomOf(file) ?? ""] ?? []).includes(roomOf(of) ?? "")
    )
    assert.deepStrictEqual(across.map(show), [])
  })

  it("lets operations of clients import only those of jobs, and operations of jobs import neither of the others", () => {
    const rooms = ["work", "acme", "operator"].map((name) => `operations/${name}`)
    // All rooms share the files outside of rooms.
    const placeOf = (path: string) => rooms.indexOf(roomOf(path) ?? "")
    const upwards = imports.filter(({ file, of }) => isOf("operations")(file) && placeOf(of) > placeOf(file))
    assert.deepStrictEqual(upwards.map(show), [])
    assert.deepStrictEqual(
      files.filter((file) => isOf("operations")(file) && roomOf(file) !== undefined && placeOf(file) < 0),
      []
    )
  })

  it.each([["room", roomOf], ["file", (path: string) => path]] as const)(
    "has no %s that is part of a cycle of imports",
    (_, placeOf) => {
      const uses = new Map<string, Set<string>>()
      for (const { file, of } of imports) {
        const [from, to] = [placeOf(file), placeOf(of)]
        if (isPackage(of) || from === undefined || to === undefined || from === to) continue
        uses.set(from, (uses.get(from) ?? new Set()).add(to))
      }
      const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
        [...uses.get(from) ?? []].some((next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))))
      assert.deepStrictEqual([...uses.keys()].filter((place) => reaches(place, place)), [])
    }
  )

  it("imports Effect module by module", () => {
    const whole = imports.filter(({ of }) => ["effect", "effect/cli", "effect/http", "effect/http-api"].includes(of))
    assert.deepStrictEqual(whole.map(show), [])
  })

  it("uses the runtime and every package only in the rooms that may use them", () => {
    const outside = imports.filter(({ file, of }) => {
      if (!isPackage(of) || /^effect\/[A-Z][A-Za-z]*$/.test(of)) return false
      const name = Object.keys(rooms).find((known) => of === known || of.startsWith(`${known}/`))
      return name === undefined || !rooms[name]?.some((room) => isOf(room)(file))
    })
    assert.deepStrictEqual(outside.map(show), [])
  })

  it("runs effects and reads the process only in the programs", () => {
    const programs = new Set([
      "app/Program.ts",
      "main.ts",
      "engine/sql/sqliteReader.ts",
      "engine/sql/sqliteCheckpointer.ts",
      "engine/token/pkcs11Module.ts"
    ])
    const offending = files.filter((file) => !programs.has(file)).flatMap((file) => {
      const text = readFileSync(join(src, file), "utf8")
      const found =
        text.match(/\bEffect\.run(?!ForkWith\b)\w+|\bprocess\.(?:env|argv|exit|stdout|stderr|stdin|cwd|on)\b/g) ?? []
      // An example in a docstring has its own runtime.
      return found.filter((one) => !new RegExp(`^ \\* .*${one.replace(".", "\\.")}`, "m").test(text)).map((one) =>
        `${file}: ${one}`
      )
    })
    assert.deepStrictEqual(offending, [])
  })

  it("loads nothing before the version of the runtime is checked", () => {
    const early = imports.filter(({ file }) => file === "app/Bundle.ts" || file === "app/Runtime.ts")
    assert.deepStrictEqual(early.filter(({ of }) => !of.startsWith("node:")), [])
    const own = imports.filter(({ file, of }) => file === "main.ts" && !isPackage(of)).map(({ of }) => of)
    assert.sameMembers([...new Set(own)], ["app/Bundle.ts", "app/Program.ts", "app/Runtime.ts"])
    const main = readFileSync(join(src, "main.ts"), "utf8")
    assert.deepStrictEqual(main.split("\n").filter((line) => line.includes("Program.ts")).map((line) => line.trim()), [
      "import type * as Program from \"./app/Program.ts\"",
      "if (import.meta.url.endsWith(\".ts\")) return import(\"./app/Program.ts\")"
    ])
  })

  it("imports no command statically, so that a command is loaded only when it is called", () => {
    const always = files.filter((file) => !file.startsWith("app/commands/")).flatMap((file) =>
      [...readFileSync(join(src, file), "utf8").matchAll(/^import (?!type ).*"(.*\/commands\/.*)"$/gm)].map(([, of]) =>
        of
      )
    )
    assert.sameMembers([...new Set(always)], ["./commands/Descriptor.ts", "./commands/Usage.ts"])
  })

  it("limits the concurrency of its work, except for its own listeners", () => {
    const unbounded = files.flatMap((file) =>
      [...readFileSync(join(src, file), "utf8").matchAll(/"unbounded"/g)].map(() => file)
    )
    assert.deepStrictEqual(unbounded, ["app/Listeners.ts"])
  })

  it("looks names up on the thread pool only for its own listeners", () => {
    const asking = files.filter((file) => /\blookup\b[^\n]* from "node:dns/.test(readFileSync(join(src, file), "utf8")))
    assert.deepStrictEqual(asking, ["engine/net/HostAddress.ts"])
    const users = imports.filter(({ of }) => of === "engine/net/HostAddress.ts").map(({ file }) => file)
    assert.deepStrictEqual(users, ["app/Addresses.ts"])
  })

  it("never makes a key by generateKeyPairSync, because the export as JWK can hang forever", () => {
    const offending = files.filter((file) => readFileSync(join(src, file), "utf8").includes("generateKeyPairSync"))
    assert.deepStrictEqual(offending, [])
  })

  it("has no service whose methods require other services", () => {
    const asking: Array<string> = []
    let services = 0
    for (const file of files) {
      const source = ts.createSourceFile(file, readFileSync(join(src, file), "utf8"), ts.ScriptTarget.Latest, true)
      const members = (node: ts.Node): void => {
        const requires = ts.isTypeReferenceNode(node) && node.typeName.getText() === "Effect.Effect"
        if (requires && node.typeArguments?.length === 3) asking.push(`${file}: ${node.getText()}`)
        ts.forEachChild(node, members)
      }
      const tags = (node: ts.Node): void => {
        const isService = ts.isCallExpression(node) && node.expression.getText() === "Context.Service"
        if (!isService) return ts.forEachChild(node, tags)
        services++
        for (const argument of node.typeArguments ?? []) members(argument)
      }
      tags(source)
    }
    assert.isAbove(services, 20)
    assert.deepStrictEqual(asking, [])
  })

  it("logs, counts and supervises outside the engine with the words of the service", () => {
    const functions = new Set(["emit", "emitIn", "withinSpan", "count", "countIn", "begin", "supervised"])
    const ofEngine =
      /^import \{([^}]*)\} from "[^"]*\/engine\/(?:telemetry\/EngineLog|telemetry\/EngineSeries|Supervised)\.ts"$/gm
    const taken = files.filter((file) => !isOf("engine")(file)).flatMap((file) =>
      [...readFileSync(join(src, file), "utf8").matchAll(ofEngine)].flatMap(([, names = ""]) =>
        names.split(",").map((name) => name.trim())
      )
    )
    assert.include(taken, "engineSeries")
    assert.deepStrictEqual(taken.filter((name) => functions.has(name)), [])
  })

  it("looks for a service that may be missing only for counts and for spans", () => {
    const optional = files.filter((file) =>
      /\bmapUnsafe\b|\bserviceOption\b|\bgetOrUndefined\(fiber\.context\b/.test(
        readFileSync(join(src, file), "utf8")
      )
    )
    assert.deepStrictEqual(optional, ["engine/telemetry/Metrics.ts", "engine/telemetry/Tracing.ts"])
  })

  it("starts fibers that outlive their caller only by `supervised`, and awaits or interrupts every other fiber", () => {
    const starts =
      /\b(?:Effect\.(?:fork|run(?:Fork|Promise|Sync|Callback))|FiberSet\.(?:make|run)|FiberMap\.|FiberHandle\.)\w*/g
    const found = files.flatMap((file) =>
      [...readFileSync(join(src, file), "utf8").matchAll(starts)].map(([call]) => `${file} ${call}`)
    )
    assert.sameMembers(found, [
      "engine/Supervised.ts Effect.forkScoped",
      // the program of the process
      "app/Program.ts Effect.runFork",
      // a command line, until it ends or is ended by a signal
      "app/Cli.ts Effect.forkDetach",
      // the wait for a defect of the process, with which each step of the startup is raced
      "app/commands/ServeCommand.ts Effect.forkChild",
      // a listener, which ends with the check that uses it
      "app/ListenCheck.ts Effect.forkChild",
      // a request, which the listener counts, and the answer to a request that took too long
      "engine/http/Listener.ts Effect.runForkWith",
      "engine/http/Listener.ts Effect.forkChild",
      // an attempt, its handler and its timers, for which the runner waits when it ends
      "engine/queue/Attempts.ts Effect.forkChild",
      "engine/queue/Runner.ts FiberSet.make",
      "engine/queue/Runner.ts FiberSet.runtime",
      "engine/queue/Runner.ts FiberSet.makeRuntime",
      // a commit, for which its members wait
      "engine/sql/GroupCommit.ts FiberSet.makeRuntime",
      // a batch of nonces, for which requests wait
      "engine/queue/Announcer.ts FiberSet.make",
      "engine/queue/Announcer.ts FiberSet.runtime",
      "services/nonce/Nonces.ts FiberSet.make",
      "services/nonce/Nonces.ts FiberSet.runtime",
      // look-ups that several callers share, so that the end of one caller does not end them
      "engine/net/ReverseNames.ts Effect.forkIn",
      "services/signing/PublishedCrls.ts Effect.forkIn",
      "services/signing/ReadHooks.ts Effect.forkIn",
      // a sample, for which no code waits any longer if it takes too long
      "operations/operator/BriefReading.ts Effect.forkDetach"
    ])
  })

  it("sets no service or reference of a fiber by hand", () => {
    const setting = files.filter((file) => /\bfiber\.setContext\b/.test(readFileSync(join(src, file), "utf8")))
    assert.deepStrictEqual(setting, [])
  })

  it("uses races only where the loser is meant to be interrupted", () => {
    const racing = files.filter((file) =>
      /\bEffect\.(?:race|raceFirst|raceAll)\b/.test(readFileSync(join(src, file), "utf8"))
    )
    assert.sameMembers(racing, [
      "app/Children.ts",
      "app/Cli.ts",
      "app/Processes.ts",
      "app/Serve.ts",
      "app/Stoppable.ts",
      "app/commands/ServeCommand.ts",
      "engine/net/Mail.ts",
      "engine/net/SyslogTls.ts",
      "engine/queue/Waits.ts",
      "engine/sql/Sqlite.ts",
      "engine/sql/SqliteFiles.ts"
    ])
  })

  it("has file names that begin with an upper-case letter, except for the programs", () => {
    const programs = new Set([
      "main.ts",
      "engine/sql/sqliteReader.ts",
      "engine/sql/sqliteCheckpointer.ts",
      "engine/token/pkcs11Module.ts"
    ])
    const named = (file: string) => programs.has(file) || /(?:^|\/)[A-Z][A-Za-z0-9]*\.ts$/.test(file)
    assert.deepStrictEqual(files.filter((file) => !named(file)), [])
    const folders = files.flatMap((file) => file.split("/").slice(0, -1))
    assert.deepStrictEqual([...new Set(folders)].filter((folder) => !/^[a-z0-9]+$/.test(folder)), [])
  })

  it("has engines that contain no noun of ACME and no kind of job", () => {
    const nouns = new Set(
      ("account accounts acme authz authorizations challenge challenges crl crls csr csrs eab finalize identifiers issuance " +
        "issuer issuers kid nonce nonces ocsp orders profile profiles revocation revocations revoke " +
        "revoked signer signers upstream upstreams validation validations").split(" ")
    )
    /** Matches the name of the product, the keys of services, which begin with that name, and a function of PKCS #11. */
    const ofTheProduct = /acme[-_]svc|ACME_SVC|"acme\/[a-zA-Z/]+"|C_Finalize/g
    const words = (text: string) => text.replaceAll(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().match(/[a-z]+/g) ?? []
    const found = files.filter(isOf("engine")).flatMap((file) => {
      const text = readFileSync(join(src, file), "utf8").replaceAll(ofTheProduct, "")
      const told = [
        ...[...new Set(words(text))].filter((word) => nouns.has(word)),
        ...jobKinds.filter((kind) => text.includes(kind))
      ]
      return told.length === 0 ? [] : [`${file}: ${told.sort().join(", ")}`]
    })
    assert.deepStrictEqual(found, [])
  })

  it("has no two files with the same name", () => {
    const names = files.map((file) => basename(file))
    assert.deepStrictEqual(names.filter((name, at) => names.indexOf(name) !== at), [])
  })

  /**
   * Returns those of the ten longest that were not reviewed. A review asks whether each of them still has one purpose.
   */
  const unjudged = (found: ReadonlyArray<readonly [name: string, lines: number]>, judged: ReadonlyArray<string>) =>
    [...new Set(found.toSorted(([, one], [, other]) => other - one).map(([name]) => name))].slice(0, 10)
      .filter((name) => !judged.includes(name))

  it("has reviewed each of the ten longest files", () => {
    const lengths = files.map((file) => [file, readFileSync(join(src, file), "utf8").split("\n").length] as const)
    assert.deepStrictEqual(
      unjudged(lengths, [
        "crypto/keys/WeakKey.ts",
        "domain/Audit.ts",
        "domain/Problem.ts",
        "engine/config/Key.ts",
        "engine/http/Listener.ts",
        "engine/http/TlsFiles.ts",
        "engine/queue/Runner.ts",
        "engine/queue/Slots.ts",
        "engine/sql/PostgresPool.ts",
        "engine/token/pkcs11Module.ts",
        "services/signing/relay/AcmeClient.ts",
        "services/signing/relay/Relay.ts",
        "settings/PolicyRules.ts",
        "settings/Table.ts",
        "store/orders/OrderRows.ts",
        "store/orders/OrderSearch.ts",
        "store/transfer/Tables.ts",
        "surfaces/acme/AcmeApp.ts",
        "surfaces/operator/Field.ts"
      ]),
      []
    )
  })

  it("has reviewed each of the ten longest functions", () => {
    const functions = files.flatMap((file) => {
      const source = ts.createSourceFile(file, readFileSync(join(src, file), "utf8"), ts.ScriptTarget.Latest, true)
      const lineOf = (at: number) => source.getLineAndCharacterOfPosition(at).line
      const found: Array<readonly [string, number]> = []
      const visit = (node: ts.Node): void => {
        if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
          const holder = ts.isArrowFunction(node) || ts.isFunctionExpression(node) ? declarationOf(node) : node
          const name = holder?.name?.getText()
          if (name !== undefined) found.push([`${file} ${name}`, lineOf(node.getEnd()) - lineOf(node.getStart()) + 1])
        }
        ts.forEachChild(node, visit)
      }
      visit(source)
      return found
    })
    assert.deepStrictEqual(
      unjudged(functions, [
        "engine/http/Listener.ts bind",
        "engine/http/Listener.ts serve",
        "engine/queue/Attempts.ts make",
        "engine/queue/Runner.ts make",
        "engine/queue/Settlement.ts make",
        "engine/queue/Slots.ts make",
        "engine/sql/Postgres.ts make",
        "engine/token/Token.ts makeToken",
        "services/nonce/Nonces.ts make",
        "services/signing/relay/AcmeClient.ts make",
        "services/signing/relay/Relay.ts make",
        "surfaces/acme/AcmeApp.ts make",
        "surfaces/jobs/JobHandlers.ts handlers"
      ]),
      []
    )
  })
})

/**
 * Returns the declaration whose value is a function, even if calls wrap the function: `const issue =
 * Effect.fnUntraced(function*…)`.
 */
const declarationOf = (node: ts.Node): ts.NamedDeclaration | undefined => {
  const { parent } = node
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent)) {
    return parent
  }
  return ts.isCallExpression(parent) || ts.isArrowFunction(parent) ? declarationOf(parent) : undefined
}
