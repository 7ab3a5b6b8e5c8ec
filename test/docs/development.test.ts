import { spawnSync } from "node:child_process"
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, vi } from "vitest"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { bodiesOf, documents, repository, text } from "../support/Documents.ts"
import { isFull } from "../support/Full.ts"
import { patienceMs } from "../support/Patience.ts"
import { cloneInto, hasRunLinesOf, Place, settled } from "../support/Place.ts"

/* The commands of the documents for developers of the service. */

describe.runIf(isFull)("the documents for developers", () => {
  it("install with docs/operate/service.md what the service needs and nothing more", async () => {
    await builtServer()
    const installed = await Place.make()
    for (const entry of ["package.json", "package-lock.json", ".npmrc", "runtime", "dist", "migrations"]) {
      cpSync(join(repository, entry), installed.at(entry), { recursive: true })
    }
    // On some file systems these are links, so that removing one leaves the files of this project alone.
    const modules = join(repository, "node_modules")
    const copied = spawnSync("sh", [
      "-c",
      "cp -al \"$0\" \"$1\" || { rm -rf \"$1\"; cp -a \"$0\" \"$1\"; }",
      modules,
      installed.at("node_modules")
    ])
    assert.strictEqual(copied.status, 0, copied.stderr.toString())
    await installed.succeed("prune")
    await installed.succeed("relink")
    assert.isFalse(existsSync(installed.at("node_modules/vitest")))
    assert.isTrue(existsSync(join(modules, "vitest")))
    const started = spawnSync(installed.at("node_modules/.bin/node"), [installed.at("dist/main.js"), "init"], {
      cwd: freshDirectory(),
      encoding: "utf8"
    })
    assert.strictEqual(started.status, 0, started.stderr)
  })

  it("serve from the sources with npm run dev", async () => {
    const place = await Place.make()
    cloneInto(place)
    const serving = await place.serve("dev", settled)
    assert.isTrue(existsSync(place.at("dev/config.toml")))
    appendFileSync(place.at("src/domain/Role.ts"), "\n// Changed.\n")
    await vi.waitFor(() => assert.lengthOf(serving.said().split(settled), 3), { timeout: patienceMs, interval: 100 })
    const { stdout } = await serving.stop()
    assert.include(stdout, "server_shutdown_completed")
  })

  it("serve a panel with content on every page with npm run demo", async () => {
    const place = await Place.make()
    cloneInto(place)
    const serving = await place.serve("demo", "Ctrl-C ends it")
    assert.match(serving.said(), /ann {5}Amber kettle by the quay {3}admin/)
    const url = /The panel is at (\S+)/.exec(serving.said())?.[1] ?? ""
    assert.strictEqual((await fetch(url, { redirect: "manual" })).status, 303)
    await serving.stop()
  })

  it("make every picture of docs/start/panel.md with npm run pictures", async () => {
    const place = await Place.make()
    cloneInto(place)
    rmSync(place.at("docs/pictures"), { recursive: true })
    await place.succeed("pictures")
    const shown = [...text("docs/start/panel.md").matchAll(/\(\.\.\/pictures\/([\w-]+\.png)\)/g)].map(([, name = ""]) =>
      name
    )
    assert.sameMembers(readdirSync(place.at("docs/pictures")), shown)
  })

  it("generate docs/reference/cli.md, docs/reference/errors.md and docs/reference/log-events.md again from only the code", async () => {
    const place = await Place.make()
    cloneInto(place)
    const written = ["docs/reference/cli.md", "docs/reference/errors.md", "docs/reference/log-events.md"]
    for (const document of written) {
      const emptied = text(document).replace(/(?<=dprint-ignore-start -->).*(?=<!-- dprint-ignore-end)/s, "\n")
      assert.isBelow(emptied.length, text(document).length)
      writeFileSync(place.at(document), emptied)
    }
    await place.succeed("catalogues")
    for (const document of written) {
      assert.strictEqual(readFileSync(place.at(document), "utf8"), text(document), document)
    }
  })

  it("make the pages of the documents with npm run site", async () => {
    const place = await Place.make()
    cloneInto(place)
    assert.match(await place.succeed("site"), /^dist\/site: pages \d+ of \d+ octets, index 1 of \d+ octets, /m)
    assert.include(readFileSync(place.at("dist/site/index.html"), "utf8"), "<h1 id=\"documents\">Documents</h1>")
  })

  it("find the code of each operation in several rooms with npm run walk", async () => {
    const place = await Place.make()
    cloneInto(place)
    const rows = [...(await place.succeed("walk")).matchAll(/^ {2}(\w.*?) +(\d+) +(\d+) +(\d+)$/gm)]
    assert.lengthOf(rows, 6)
    for (const [row, , ...figures] of rows) {
      const [files = 0, rooms = 0, functions = 0] = figures.map(Number)
      assert.isTrue(1 < rooms && rooms < files && files < functions, row)
    }
  })

  it("describe in CONTRIBUTING.md a first change that can be applied and passes the tests", async () => {
    const place = await Place.make()
    cloneInto(place)
    const changes = bodiesOf("CONTRIBUTING.md", "diff")
    assert.lengthOf(changes, 2)
    for (const body of changes) {
      const applied = spawnSync("git", ["apply", "-"], {
        cwd: place.directory,
        input: body,
        encoding: "utf8"
      })
      assert.strictEqual(applied.status, 0, applied.stderr)
    }
    await place.succeed("catalogues")
    assert.match(await place.succeed("firstChange"), /^\d+ passed, 0 failed$/m)
  })

  it("run the formatter without a change to the documents", async () => {
    const place = await Place.make()
    cloneInto(place)
    await place.succeed("format")
    for (const document of documents) {
      assert.strictEqual(readFileSync(place.at(document), "utf8"), text(document), document)
    }
  })
})

hasRunLinesOf("development")
