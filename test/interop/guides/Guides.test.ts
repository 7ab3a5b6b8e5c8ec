import { assert, describe, it } from "vitest"
import { clients } from "../Clients.ts"
import { guideOf, guides } from "./Guide.ts"
import { recipes } from "./Recipes.ts"
import { rows } from "./Rows.ts"
import { otherVersions, triedClients } from "./Tried.ts"

const own = recipes.filter(({ document }) => document !== "docs/clients/trust.md").map(({ heading }) => heading)

describe("docs/clients/README.md", () => {
  it("has exactly one row for every client of the interop run", () => {
    const driven = rows.flatMap(({ tried }) => tried?.client ?? [])
    assert.sameMembers(driven.map(({ name }) => name), clients.map(({ name }) => name))
  })

  it("has exactly one row for every recipe", () => {
    assert.sameMembers(rows.flatMap(({ tried }) => tried?.recipes ?? []), own)
  })

  it("states a version only for a client or a recipe that the interop run uses", () => {
    for (const { name, tried } of rows) {
      if (tried === undefined) continue
      assert.isNotEmpty(tried.version, name)
      assert.isTrue(tried.client !== undefined || (tried.recipes ?? []).length > 0, name)
    }
  })

  it("marks features as tested only if a scenario or a recipe tests them", () => {
    const table = new Map(triedClients().map(([name = "", ...cells]) => [name, cells.slice(0, 4)]))
    const run = "**run**"
    assert.deepStrictEqual(table.get("Apache mod_md")?.slice(1), [run, run, run])
    assert.deepStrictEqual(table.get("Caddy")?.slice(1), [run, "with a module", "in newer versions"])
    assert.deepStrictEqual(table.get("Ruby: acme-client")?.slice(1), ["from 2.0.13", run, "from 2.0.27"])
    assert.deepStrictEqual(table.get("acme-tiny")?.slice(1), ["no", "no", "no"])
    assert.deepStrictEqual(table.get("Node.js: acme-client")?.slice(1), [run, "yes", "no"])
    for (const { byHand, name, tried } of rows) {
      if (tried === undefined) assert.notInclude(table.get(name) ?? [run], run, name)
      if (tried === undefined) {
        assert.strictEqual(table.get(name)?.[0], byHand === undefined ? "not run here" : `${byHand}, by hand`)
      } else assert.isUndefined(byHand, name)
    }
  })

  it("is compared with the installed versions", () => {
    assert.deepStrictEqual(otherVersions("acme-tiny 1:5.0.1-1\nlego 4.9.1-1\nnamed 1"), [])
    assert.deepStrictEqual(otherVersions("apache2-bin 2.4.68-1~deb12u1"), [
      "docs/clients/README.md has apache2-bin 2.4.71, this is 2.4.68"
    ])
  })
})

describe("a guide", () => {
  it.each(guides)("has a recipe for each section with commands, and a section for each recipe: %s", (document) => {
    const headings = recipes.filter((recipe) => recipe.document === document).map(({ heading }) => heading)
    assert.sameMembers([...guideOf(document).keys()], headings)
  })

  it("has its files written to the places that it names", () => {
    const steps = guideOf("docs/clients/certbot.md").get("HAProxy") ?? []
    const paths = steps.flatMap((step) => step.kind === "file" ? [step.path] : [])
    assert.deepStrictEqual(paths, ["/etc/haproxy/haproxy.cfg", "/etc/letsencrypt/renewal-hooks/deploy/haproxy"])
    assert.strictEqual(steps.at(-1)?.kind, "shell")
  })
})
