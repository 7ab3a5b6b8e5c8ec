import type * as acme from "acme-client"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { resolve } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import { acmeClient, issueByHttp01 } from "../support/AcmeClient.ts"
import type { Said } from "../support/CommandLine.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory, sqlite } from "../support/Databases.ts"
import { openDriver, sql } from "../support/Graph.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { verifyChain } from "../support/Openssl.ts"
import { minimalConfig, runtime } from "../support/Server.ts"

const program = resolve(import.meta.dirname, "../../dist/main.js")
const nobody = "01234567-89ab-7def-8123-456789abcdef"
const config = `${minimalConfig}[profiles.lab]\n[profiles.parked]\nenabled = false\n`

interface Created {
  readonly kid: string
  readonly hmacKey: string
  readonly label?: string
  readonly profile?: string
  readonly status: string
  readonly accounts: number
}

/** Runs commands with one database, and keeps all their output. */
class Commands {
  readonly said: Array<string> = []
  private readonly env: Readonly<Record<string, string | undefined>>
  constructor(url: string) {
    this.env = { ACME_SVC_DATABASE__URL: url, USER: "tester" }
  }

  async run(...words: ReadonlyArray<string>): Promise<Said> {
    const ended = await commandLine(words, { config, env: this.env })
    this.said.push(ended.stdout, ended.stderr)
    return ended
  }

  /** Returns the output of a command that must succeed. */
  async succeed(...words: ReadonlyArray<string>): Promise<string> {
    const { code, stderr, stdout } = await this.run(...words)
    assert.deepStrictEqual([code, stderr], [0, ""], words.join(" "))
    return stdout
  }

  /** Returns the error output of a command that must fail with the given exit code. */
  async refused(code: number, ...words: ReadonlyArray<string>): Promise<string> {
    const ended = await this.run(...words)
    assert.deepStrictEqual([ended.code, ended.stdout], [code, ""], `${words.join(" ")}: ${ended.stderr}`)
    return ended.stderr
  }

  /** Makes a new credential, and leaves its secret out of the recorded output. */
  async create(...words: ReadonlyArray<string>): Promise<Created> {
    const stdout = await this.succeed("eab", "create", "--json", ...words)
    this.said.splice(this.said.indexOf(stdout), 1)
    return JSON.parse(stdout) as Created
  }

  async statusOf(kid: string): Promise<string> {
    return (JSON.parse(await this.succeed("eab", "show", kid, "--json")) as Created).status
  }

  /**
   * Runs a command on a terminal of its own, and types this text there. `undefined` closes the terminal before anything
   * is typed.
   */
  onTerminal(typed: string | undefined, ...words: ReadonlyArray<string>): Promise<{ code: number; screen: string }> {
    const command = [runtime, program, ...words].map((word) => `'${word}'`).join(" ")
    const child = spawn("script", ["--quiet", "--return", "--echo", "never", "--command", command, "/dev/null"], {
      cwd: freshDirectory(),
      stdio: ["pipe", "pipe", "inherit"],
      env: { PATH: process.env["PATH"], ACME_SVC_PROFILES__DEFAULT__ENABLED: "true", NO_COLOR: "1", ...this.env }
    })
    let screen = ""
    let asked = false
    child.stdout.on("data", (chunk: Buffer) => {
      screen += chunk.toString()
      if (asked || !screen.includes("[y/N]")) return
      asked = true
      if (typed === undefined) child.stdin.end()
      else child.stdin.write(`${typed}\n`)
    })
    return new Promise((done, fail) => {
      child.once("error", fail)
      child.once("close", (code) => {
        this.said.push(screen)
        done({ code: code ?? -1, screen })
      })
    })
  }
}

describe.each(databases)("eab commands, $name", ({ freshUrl }) => {
  let url: string
  let commands: Commands

  beforeAll(async () => {
    await builtServer()
    url = await freshUrl()
    commands = new Commands(url)
    assert.strictEqual((await commands.run("migrate")).code, 0)
  })

  it("need a current schema, and do not migrate an older one", async () => {
    const behind = new Commands(await freshUrl())
    for (
      const words of [["create", "--label", "a"], ["list"], ["show", nobody], ["revoke", nobody], [
        "delete",
        nobody,
        "--yes"
      ]]
    ) assert.match(await behind.refused(1, "eab", ...words), /acme-svc migrate/)
    assert.strictEqual((await behind.run("migrate", "--check")).code, 3)
  })

  it("list credentials newest first, in pages and by status", async () => {
    const listing = new Commands(await freshUrl())
    await listing.run("migrate")
    assert.strictEqual(await listing.succeed("eab", "list"), "0 of 0 row(s).\n")
    const kids: Array<string> = []
    for (const label of ["one", "two", "three"]) kids.unshift((await listing.create("--label", label)).kid)
    await listing.succeed("eab", "revoke", kids[1] ?? "")
    const page = async (...flags: ReadonlyArray<string>) => {
      const { items, ...rest } = JSON.parse(await listing.succeed("eab", "list", "--json", ...flags)) as {
        readonly items: ReadonlyArray<Created>
      }
      return [items.map(({ kid }) => kid), rest]
    }
    assert.deepStrictEqual(await page(), [kids, { total: 3, limit: 50, offset: 0 }])
    assert.deepStrictEqual(await page("--limit", "1", "--offset", "2"), [
      [kids[2]],
      { total: 3, limit: 1, offset: 2 }
    ])
    assert.deepStrictEqual(await page("--limit", "0", "--offset", "-3"), [
      [kids[0]],
      { total: 3, limit: 1, offset: 0 }
    ])
    assert.deepStrictEqual(await page("--status", "revoked"), [[kids[1]], { total: 1, limit: 50, offset: 0 }])
    const [head = "", first = "", , , footer] = (await listing.succeed("eab", "list")).split("\n")
    assert.match(head, /^KID +LABEL +PROFILE +STATUS +CREATED +ACCOUNTS$/)
    assert.match(first, new RegExp(`^${kids[0]}  three  every    active   \\S+Z  0$`))
    assert.strictEqual(footer, "3 of 3 row(s).")
    assert.match(await listing.refused(3, "eab", "list", "--status", "bogus"), /status takes one of active, revoked/)
    await listing.refused(2, "eab", "list", "--limit", "many")
  })

  it("print the credential for show and revoke", async () => {
    const { hmacKey, kid } = await commands.create("--label", "shown")
    const shown = await commands.succeed("eab", "show", kid)
    assert.match(
      shown,
      new RegExp(`^kid         ${kid}\nlabel       shown\nstatus      active\ncreated at  .*\naccounts    0\n$`)
    )
    assert.match(await commands.succeed("eab", "revoke", kid), /^status {6}revoked$/m)
    const again = JSON.parse(await commands.succeed("eab", "revoke", kid, "--json")) as object
    assert.hasAllKeys(again, ["kid", "label", "status", "createdAt", "accounts"])
    assert.strictEqual(await commands.statusOf(kid), "revoked")
    assert.notInclude(commands.said.join(""), hmacKey)
  })

  it("delete only with --yes if there is no terminal", async () => {
    const { kid } = await commands.create("--label", "deleted")
    for (const flags of [[], ["--deactivate-accounts"], ["--delete-accounts"]]) {
      assert.match(await commands.refused(2, "eab", "delete", kid, ...flags), /--yes/)
      assert.strictEqual(await commands.statusOf(kid), "active")
    }
    assert.strictEqual(
      await commands.succeed("eab", "delete", kid, "--yes"),
      "Deleted the credential; accounts: 0 kept, 0 deactivated, 0 deleted with 0 order(s).\n"
    )
    assert.include(await commands.refused(3, "eab", "show", kid), kid)
    const { kid: other } = await commands.create("--label", "deleted")
    assert.deepStrictEqual(JSON.parse(await commands.succeed("-y", "eab", "delete", other, "--json")), {
      deleted: { accounts: 0, orders: 0 },
      deactivatedAccounts: 0,
      keptAccounts: 0
    })
  })

  it("name in the audit trail the user who ran them", async () => {
    const rows = await Effect.runPromise(
      Effect.scoped(Effect.flatMap(openDriver(url), (driver) =>
        Effect.provideService(
          sql("SELECT DISTINCT event, outcome, actor_kind, actor_id FROM audit_log WHERE actor_id IS NOT NULL"),
          Database,
          driver
        )))
    )
    assert.sameDeepMembers(
      rows.map((row) => ({ ...row })),
      ["eab_created", "eab_revoked", "eab_deleted"].map((event) => ({
        event,
        outcome: "success",
        actor_kind: "cli",
        actor_id: "tester"
      }))
    )
  })
})

describe("eab", () => {
  let commands: Commands

  beforeAll(async () => {
    await builtServer()
    commands = new Commands(await sqlite.freshUrl())
    assert.strictEqual((await commands.run("migrate")).code, 0)
  })

  it("create prints the kid and the HMAC key as text", async () => {
    assert.match(
      await commands.succeed("eab", "create", "--label", "printers"),
      /^kid {9}[0-9a-f-]{36}\nlabel {7}printers\nstatus {6}active\ncreated at {2}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\naccounts {4}0\nhmac key {4}[\w-]{43}\n\nThe HMAC key is shown only now\.\n$/
    )
  })

  it("create --json prints one object", async () => {
    const made = await commands.create("--label", "printers", "--profile", "lab")
    assert.hasAllKeys(made, ["kid", "label", "profile", "status", "createdAt", "accounts", "hmacKey"])
    assert.deepInclude(made, { label: "printers", profile: "lab", status: "active", accounts: 0 })
    assert.strictEqual(Buffer.from(made.hmacKey, "base64url").length, 32)
    assert.match(made.hmacKey, /^[\w-]{43}$/)
  })

  it("create refuses a label that is blank, too long or has control characters", async () => {
    await Promise.all(["", " ", "a\nb", "a\u0085b", "a".repeat(257)].map(async (label) => {
      assert.match(await commands.refused(2, "eab", "create", "--label", label), /--label/)
    }))
    assert.match(await commands.refused(2, "eab", "create"), /--label/)
    const label = `ä${"b".repeat(199)}`
    const { kid } = await commands.create("--label", label)
    assert.include(await commands.succeed("eab", "show", kid), label)
  })

  it("create accepts only profiles that are served", async () => {
    for (const profile of ["bogus", "parked"]) {
      const stderr = await commands.refused(3, "eab", "create", "--label", "a", "--profile", profile, "--json")
      const { error, message } = JSON.parse(stderr) as { readonly error: string; readonly message: string }
      assert.strictEqual(error, "refused")
      assert.match(message, /^--profile takes the name of a profile that is served: .*lab/)
      assert.notInclude(message, "parked")
    }
  })

  it("delete accepts only one of the two flags about accounts", async () => {
    const { kid } = await commands.create("--label", "both")
    const stderr = await commands.refused(
      2,
      "eab",
      "delete",
      kid,
      "--yes",
      "--deactivate-accounts",
      "--delete-accounts"
    )
    assert.match(stderr, /--deactivate-accounts and --delete-accounts/)
    assert.strictEqual(await commands.statusOf(kid), "active")
  })

  it.each(["y", "YES"])("delete on a terminal is confirmed by %s", async (typed) => {
    const { kid } = await commands.create("--label", "printers")
    const { code, screen } = await commands.onTerminal(typed, "eab", "delete", kid, "--delete-accounts")
    assert.strictEqual(code, 0, screen)
    assert.include(
      screen,
      `Delete credential ${kid} (printers) and delete its 0 account(s) with 0 order(s)? [y/N] `
    )
    await commands.refused(3, "eab", "show", kid)
  })

  it.each(["", "yesterday", undefined])("delete on a terminal changes nothing after %s", async (typed) => {
    const { kid } = await commands.create("--label", "printers")
    const { code, screen } = await commands.onTerminal(typed, "eab", "delete", kid)
    assert.strictEqual(code, 3, screen)
    assert.include(screen, `and keep its 0 account(s)? [y/N] `)
    assert.include(screen, "Nothing was changed.")
    assert.strictEqual(await commands.statusOf(kid), "active")
  })

  it("show, revoke and delete end with 3 for an unknown kid", async () => {
    const asked = [["show", nobody], ["show", "bogus"], ["revoke", nobody], ["delete", nobody]] as const
    await Promise.all(asked.map(async ([verb, kid]) => {
      assert.strictEqual(
        await commands.refused(3, "eab", verb, kid),
        `There is no credential ${kid}.\n`
      )
    }))
    await commands.refused(2, "eab", "show")
  })

  it("create is the only command that prints a secret, even at the log level trace", async () => {
    const { hmacKey, kid } = await commands.create("--label", "secret")
    for (
      const words of [["list"], ["list", "--json"], ["show", kid], ["show", kid, "--json"], ["revoke", kid], [
        "delete",
        kid,
        "--yes"
      ]]
    ) {
      const ended = await commands.run("eab", ...words, "--log-level", "trace")
      assert.strictEqual(ended.code, 0, ended.stderr)
    }
    const secret = Buffer.from(hmacKey, "base64url")
    for (const form of ["base64url", "base64", "hex"] as const) {
      assert.notInclude(commands.said.join(""), secret.toString(form))
    }
  })
})

describe.each(databases)("a registration by npm's acme-client where a binding is required, $name", ({ freshUrl }) => {
  let ground: Ground
  let databaseUrl: string

  /** Runs a command with the configuration and the database of the running server. */
  const command = (...words: ReadonlyArray<string>) =>
    commandLine(words, {
      config: null,
      directory: ground.server.directory,
      env: { ACME_SVC_DATABASE__URL: databaseUrl, ACME_SVC_EAB__ENABLED: "true" }
    })

  const create = async (...words: ReadonlyArray<string>): Promise<Created> => {
    const { code, stderr, stdout } = await command("eab", "create", "--json", ...words)
    assert.strictEqual(code, 0, stderr)
    return JSON.parse(stdout) as Created
  }

  const clientOf = (
    externalAccountBinding?: Pick<Created, "kid" | "hmacKey">,
    profile = "default"
  ): Promise<acme.Client> =>
    acmeClient(
      ground.server.profileUrl(profile),
      externalAccountBinding === undefined ? {} : { externalAccountBinding }
    )

  const issue = async (client: acme.Client, name: string): Promise<string> =>
    (await issueByHttp01(client, ground.responder, [name])).chain

  const registered = async (client: acme.Client): Promise<string> => {
    await client.createAccount({ termsOfServiceAgreed: true })
    return client.getAccountUrl()
  }
  const refusal = async (client: acme.Client): Promise<string> => {
    const outcome = await client.createAccount({ termsOfServiceAgreed: true }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.instanceOf(outcome, Error)
    return outcome.message
  }
  const unaccepted = "The external account binding does not match an accepted credential."

  beforeAll(async () => {
    await builtServer()
    databaseUrl = await freshUrl()
    ground = await startGround({
      databaseUrl,
      config: `${minimalConfig}[profiles.lab]\n`,
      env: { ACME_SVC_EAB__ENABLED: "true" }
    })
  })

  afterAll(async () => {
    await ground?.dispose()
  })

  it("is refused without a credential", async () => {
    const client = await clientOf()
    assert.match(await refusal(client), /external account/i)
    await ground.server.waitForEvent("eab_rejected", { where: ({ fields }) => fields["reason"] === "missing" })
  })

  it("succeeds with a credential that other accounts use too", async () => {
    const credential = await create("--label", "web servers")
    for (const name of ["one.corp.example", "two.corp.example"]) {
      await verifyChain(await issue(await clientOf(credential), name), ground.server.caFile, name)
    }
    const verified = ground.server.records().filter(({ fields }) => fields["event"] === "eab_verified")
    assert.deepStrictEqual([...new Set(verified.map(({ fields }) => fields["kid"]))], [credential.kid])
    assert.strictEqual(new Set(verified.map(({ fields }) => fields["account_id"])).size, 2)
    const { stdout } = await command("eab", "show", credential.kid, "--json")
    assert.deepInclude(JSON.parse(stdout), { status: "active", accounts: 2 })
    assert.notInclude(ground.server.stdout() + ground.server.stderr(), credential.hmacKey)
  })

  it("is refused with a wrong secret", async () => {
    const { kid } = await create("--label", "one")
    const { hmacKey } = await create("--label", "another")
    assert.include(await refusal(await clientOf({ kid, hmacKey })), unaccepted)
    await ground.server.waitForEvent("eab_rejected", {
      where: ({ fields }) => fields["reason"] === "mac_mismatch" && fields["kid"] === kid
    })
  })

  it("is refused with a credential of another profile", async () => {
    const credential = await create("--label", "lab", "--profile", "lab")
    assert.include(await refusal(await clientOf(credential)), unaccepted)
    assert.include(await registered(await clientOf(credential, "lab")), "/profile/lab/acct/")
  })

  it("is refused with a revoked credential, although the accounts that it bound still work", async () => {
    const credential = await create("--label", "revoked")
    const client = await clientOf(credential)
    await registered(client)
    assert.strictEqual((await command("eab", "revoke", credential.kid)).code, 0)
    assert.include(await refusal(await clientOf(credential)), unaccepted)
    const order = await client.createOrder({ identifiers: [{ type: "dns", value: "goes-on.corp.example" }] })
    assert.strictEqual(order.status, "pending")
  })

  it("makes an account that cannot be deleted with its credential while it has a valid certificate", async () => {
    const credential = await create("--label", "leaving")
    const client = await clientOf(credential)
    await issue(client, "leaving.corp.example")
    for (const flags of [[], ["--yes"]]) {
      const { code, stderr, stdout } = await command("eab", "delete", credential.kid, "--delete-accounts", ...flags)
      assert.deepStrictEqual([code, stdout], [3, ""])
      assert.match(stderr, /The accounts of credential \S+ have 1 certificate that can still be used/)
    }
    assert.strictEqual((await client.updateAccount()).status, "valid")
    const { code, stderr, stdout } = await command("eab", "delete", credential.kid, "--deactivate-accounts", "--yes")
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.include(stdout, "1 deactivated")
    const ordering = client.createOrder({ identifiers: [{ type: "dns", value: "leaving.corp.example" }] })
    assert.match(String(await ordering.then(() => "ordered", (error: unknown) => error)), /deactivated/)
  })
})
