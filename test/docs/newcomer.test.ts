import { existsSync, readFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { builtServer, freshPostgresUrl } from "../support/Databases.ts"
import { oneLine } from "../support/Documents.ts"
import { isFull } from "../support/Full.ts"
import { client, gateComesBack } from "../support/Installed.ts"
import type { Serving } from "../support/Place.ts"
import { cloneInto, hasRunLinesOf, Place, settled, startBuilt } from "../support/Place.ts"

/* The commands of README.md and docs/start for newcomers. */

describe("docs/start", () => {
  let place: Place
  beforeAll(async () => {
    // The configuration that `init` writes must be sufficient.
    place = await Place.make({})
    cloneInto(place)
  })

  describe("with a first certificate", () => {
    let serving: Serving
    beforeAll(async () => {
      serving = await place.serve("start", settled)
    })
    afterAll(() => serving.stop())

    it("has commands that print the directory, the CA file and the lines to copy", () => {
      const said = serving.said()
      assert.include(said, "acme-svc is ready.")
      assert.include(said, `Directory       http://localhost:${place.port}/profile/default/directory`)
      assert.include(said, `CA certificate  ${place.at("ca.pem")}`)
      assert.include(said, `Panel           http://localhost:${place.adminPort}/ui/`)
      // Nobody has installed a command of the name acme-svc here.
      assert.include(said, "  node_modules/.bin/node dist/main.js admin user link admin\n")
      const printed = said.split("\n").map(oneLine)
      assert.include(printed, place.rewritten("certbot"))
      assert.include(printed, place.rewritten("lego"))
      assert.include(readFileSync(place.at("config.toml"), "utf8"), "port = 5002")
    })

    it("lets certbot get the certificate", async () => {
      if (client.certbot) await place.succeed("certbot")
      else {await place.issueInItsPlace(
          `http://localhost:${place.port}/profile/default/directory`,
          "demo-certbot/live/demo.localhost/cert.pem"
        )}
      assert.match(await place.succeed("verifyCertbot"), /cert\.pem: OK/)
    })

    it("lets lego get the certificate", async () => {
      if (client.lego) await place.succeed("lego")
      else {await place.issueInItsPlace(
          `http://localhost:${place.port}/profile/default/directory`,
          "demo-lego/certificates/demo.localhost.crt"
        )}
      assert.match(await place.succeed("verifyLego"), /demo\.localhost\.crt: OK/)
    })
  })

  describe("with a first certificate over TLS", () => {
    let serving: Serving
    beforeAll(async () => {
      if (!isFull) {
        await builtServer()
        place.stand("npm start", startBuilt)
      }
      serving = await place.serve("startTls", settled)
    })
    afterAll(() => serving.stop())

    it("has commands that print the CA file that clients must trust", () => {
      assert.include(serving.said(), `Directory       https://localhost:${place.port}/profile/default/directory`)
      assert.include(serving.said(), place.at("server.pem"))
    })

    it("lets certbot get the certificate", async () => {
      if (client.certbot) await place.succeed("certbotTls")
      else gateComesBack()
    })

    it("lets lego get the certificate", async () => {
      if (client.lego) await place.succeed("legoTls")
      else gateComesBack()
    })
  })

  describe("with PostgreSQL", () => {
    it("has a command with which the service works in the same way", async () => {
      const elsewhere = await Place.make()
      if (isFull) cloneInto(elsewhere)
      else {
        await builtServer()
        elsewhere.stand("npm start", startBuilt)
      }
      elsewhere.replacements.push(["postgres://acme:secret@localhost/acme", `'${await freshPostgresUrl()}'`])
      const serving = await elsewhere.serve("startPostgres", settled)
      await elsewhere.issueInItsPlace(`http://localhost:${elsewhere.port}/profile/default/directory`, "cert.pem")
      const { stdout } = await serving.stop()
      assert.include(stdout, "backend=postgres")
      assert.isFalse(existsSync(elsewhere.at("sqlite.db")))
    })
  })
})

hasRunLinesOf("newcomer")
