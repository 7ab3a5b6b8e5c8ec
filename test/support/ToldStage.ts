import { X509Certificate } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { MessageKind, Scope } from "../../src/domain/Notification.ts"
import { AcmeSession } from "./AcmeSession.ts"
import { bindingOf } from "./Binding.ts"
import { commandLine } from "./CommandLine.ts"
import type { Backend } from "./Databases.ts"
import { freshDirectory } from "./Databases.ts"
import type { World } from "./Ground.ts"
import { startWorld } from "./Ground.ts"
import type { Inbox } from "./Inbox.ts"
import { everybody, startInbox } from "./Inbox.ts"
import { newEcKey } from "./Keys.ts"
import { idLiteral, sqlAt } from "./OpenDatabase.ts"
import { makeCa } from "./Openssl.ts"
import type { OperatorSurface, Seat } from "./OperatorSeats.ts"
import { apiSurface, panelSurface } from "./OperatorSeats.ts"
import { patienceMs } from "./Patience.ts"
import { freePort } from "./Ports.ts"
import type { Server } from "./Server.ts"
import { startServer } from "./Server.ts"
import type { Means } from "./ToldGround.ts"
import { factored, kindIn, operators, password, profiles } from "./ToldGround.ts"

/*
 * A service with everything that causes notifications: a CA, a script that signs, a relay to an endpoint of the same
 * service, credentials, operators, and three receivers.
 */

/** A notification that must arrive at every backend that `backends` names. */
export interface Expected {
  readonly event: MessageKind
  readonly scope: Scope
  /** All members of the event except those that every event has. */
  readonly members: Readonly<Record<string, unknown>>
  /** The recipients of the mail. */
  readonly to: ReadonlyArray<string>
  /** The epoch second before which the event cannot have happened. */
  readonly since: number
}

/** An account, with its session. */
export interface Owner {
  readonly session: AcmeSession
  readonly profile: string
  readonly id: string
}

/** A time that is longer than any startup takes. */
const startSeconds = patienceMs / 1000

const now = (): number => Math.floor(Date.now() / 1000)

/** The service, and the notifications that it must have sent so far. */
export class Stage {
  readonly expected: Array<Expected> = []
  readonly surfaces: readonly [OperatorSurface, OperatorSurface]
  readonly inbox: Inbox
  private readonly world: World
  private readonly server: Server
  private readonly databaseUrl: string
  private readonly means: Means
  private readonly env: Readonly<Record<string, string>>
  private readonly startedAt = now() - startSeconds
  private readonly kept = new Map<string, unknown>()

  private constructor(
    { adminUrl, databaseUrl, env, inbox, means, server, world }: {
      readonly inbox: Inbox
      readonly world: World
      readonly server: Server
      readonly databaseUrl: string
      readonly means: Means
      readonly adminUrl: string
      readonly env: Readonly<Record<string, string>>
    }
  ) {
    ;[this.inbox, this.world, this.server] = [inbox, world, server]
    ;[this.databaseUrl, this.means, this.env] = [databaseUrl, means, env]
    this.surfaces = [apiSurface(adminUrl), panelSurface(adminUrl)]
  }

  static async start({ dialect, freshUrl }: Backend): Promise<Stage> {
    const databaseUrl = await freshUrl()
    const inbox = await startInbox()
    const adminPort = await freePort()
    const directory = freshDirectory()
    const adminUrl = `http://127.0.0.1:${adminPort}`
    const env = {
      ACME_SVC_DATABASE__URL: databaseUrl,
      ACME_SVC_ADMIN__ENABLED: "true",
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: adminUrl
    }
    const upstream = await startServer({ config: "[profiles.default]\nchallenge.bypass = true\n" })
    const means = { signer: freshDirectory(), authority: freshDirectory(), upstream }
    makeCa(join(means.authority, "ca.pem"), join(means.authority, "ca.key"), "Soon", 20)
    const config = inbox.toml + profiles(means, false)
    const world = await startWorld()
    const server = await startServer({ databaseUrl, config, directory, env: { ...world.env, ...env } })
    const stage = new Stage({ inbox, world, server, databaseUrl, means, adminUrl, env })
    writeFileSync(join(directory, "password"), password, { mode: 0o600 })
    await stage.command("admin", "user", "create", "first", "--role", "admin", "--password-file", "password")
    const bytes = (hex: string) => dialect === "sqlite" ? `X'${hex}'` : `'\\x${hex}'`
    for (const [index, [username, address]] of operators.entries()) {
      const id = idLiteral(dialect, `01890a5d-ac96-774b-bcce-${String(index + 1).padStart(12, "0")}`)
      const secret = factored.has(username) ? bytes("0102030405060708090a0b0c0d0e0f1011121314") : "NULL"
      await sqlAt(
        databaseUrl,
        `INSERT INTO admin_users (id, username, password_hash, status, role, contact_email, known_login_ips, totp_secret,
           created_at, updated_at)
         SELECT ${id}, '${username}', password_hash, status, ${
          username.endsWith("-root") ? "role" : "'operator'"
        }, '${username}@example.org', '["${address}"]', ${secret},
           created_at, updated_at FROM admin_users WHERE username = 'first'`
      )
    }
    return stage
  }

  /** Returns a part of the stage, which is made only once. */
  async once<A>(name: string, make: () => Promise<A>): Promise<A> {
    if (!this.kept.has(name)) this.kept.set(name, await make())
    return this.kept.get(name) as A
  }

  /** Records the notifications that the start of the service has caused. */
  begun(told: ReadonlyArray<Pick<Expected, "event" | "members" | "scope">>): ReadonlyArray<Expected> {
    const noted = told.map((one) => ({ ...one, to: [everybody], since: this.startedAt }))
    this.expected.push(...noted)
    return noted
  }

  /** Does an action, and records the notifications that must arrive because of it. */
  async telling<A>(
    act: () => Promise<A>,
    told: (done: A) => ReadonlyArray<Omit<Expected, "since" | "to"> & { readonly to?: ReadonlyArray<string> }>
  ): Promise<ReadonlyArray<Expected>> {
    const since = now()
    const noted = told(await act()).map((one) => ({ to: [everybody], ...one, since }))
    this.expected.push(...noted)
    return noted
  }

  /** The CA of the profile that a reload adds. */
  get authority(): X509Certificate {
    return new X509Certificate(readFileSync(join(this.means.authority, "ca.pem")))
  }

  /** Makes the waiting jobs of a kind due now. */
  async hurry(kind: string): Promise<void> {
    await sqlAt(this.databaseUrl, `UPDATE jobs SET run_at = ${now()} WHERE kind = '${kind}' AND status = 'ready'`)
    await delay(100)
  }

  /** Lets the time come at which campaigns revoke. */
  async letCampaignsRevoke(): Promise<void> {
    await sqlAt(
      this.databaseUrl,
      `UPDATE campaigns SET revoke_at = ${now()}, revoke_due = ${now()} WHERE revoke_at > ${now()}`
    )
  }

  get directory(): string {
    return this.server.directory
  }

  async command(...words: ReadonlyArray<string>): Promise<string> {
    const { directory } = this.server
    const { code, stderr, stdout } = await commandLine(words, { config: null, directory, env: { ...this.env } })
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stderr}${stdout}`)
    return stdout
  }

  /** Begins a session of an operator, which causes no notification. */
  seat(surface: OperatorSurface, username: string, address = "127.0.0.1"): Promise<Seat> {
    return this.once(`${surface.name} ${username}`, () => surface.signIn(username, password, address))
  }

  root(surface: OperatorSurface): Promise<Seat> {
    return this.seat(surface, `${surface.name.toLowerCase()}-root`)
  }

  /** Makes a new account, which causes a notification. */
  async account(profile: string, contact: ReadonlyArray<string> = []): Promise<Owner> {
    return (await this.registered(profile, contact)).owner
  }

  async registered(profile: string, contact: ReadonlyArray<string> = []) {
    const session = await AcmeSession.open(this.server.profileUrl(profile))
    const credential = profile === "bound" ? await this.credential() : undefined
    const binding = credential === undefined
      ? {}
      : { externalAccountBinding: bindingOf(credential, session.key.jwk, session.directory.newAccount) }
    const [told] = await this.telling(
      () => session.register({ termsOfServiceAgreed: true, ...contact.length === 0 ? {} : { contact }, ...binding }),
      (kid) => [{
        event: "account_created",
        scope: profile,
        members: {
          account_id: lastOf(kid),
          ...contact.length === 0 ? {} : { contact },
          ...credential === undefined ? {} : { eab_kid: credential.kid },
          client_ip: "127.0.0.1"
        }
      }]
    )
    if (told === undefined) throw new Error("nothing is noted")
    return { told, kid: credential?.kid, owner: { session, profile, id: lastOf(session.kid ?? "") } satisfies Owner }
  }

  private async credential() {
    const said = await this.command("eab", "create", "--label", "Büro \"1\"", "--json")
    const { hmacKey, kid } = JSON.parse(said) as { readonly kid: string; readonly hmacKey: string }
    return { kid, secret: Buffer.from(hmacKey, "base64url") }
  }

  /** Issues a certificate, which causes a notification. */
  async issued({ id, profile, session }: Owner, names: ReadonlyArray<string>, key = newEcKey()) {
    const made: { one?: { readonly leaf: X509Certificate; readonly orderId: string } } = {}
    const [told] = await this.telling(
      async () => {
        const { chain, order } = await session.issue(names, this.world.responder.tokens, { key })
        const leaf = new X509Certificate(chain)
        made.one = { leaf, orderId: lastOf(order.url) }
        return made.one
      },
      ({ leaf, orderId }) => [{
        event: "certificate_issued",
        scope: profile,
        members: {
          order_id: orderId,
          account_id: id,
          cert_serial: leaf.serialNumber.toLowerCase(),
          identifiers: names,
          kind: kindIn(profile),
          not_after: Date.parse(leaf.validTo) / 1000,
          client_ip: "127.0.0.1"
        }
      }]
    )
    if (told === undefined || made.one === undefined) throw new Error("nothing is noted")
    return { ...made.one, told, key, names, owner: { id, profile, session } satisfies Owner }
  }

  /**
   * Gives the service another configuration, with one more profile, a digest of expiring certificates, and second
   * factors for all.
   */
  async reload(): Promise<void> {
    const { server } = this
    writeFileSync(join(server.directory, "config.toml"), this.inbox.toml + profiles(this.means, true))
    server.signal("SIGHUP")
    await server.waitForEvent("profile_mounted", { where: ({ fields }) => fields["profile"] === "added" })
    await server.waitForEvent("notify_expiry_digest_queued")
    await server.waitForEvent("notify_expiry_reminders_queued")
  }

  /** Waits for a failed attempt of a program. */
  async failedProgram(): Promise<void> {
    await this.server.waitForEvent("notify_delivery_failed", {
      where: ({ fields }) => fields["backend"] === "custom"
    })
  }

  /** Waits until no job is due and no notification waits to be delivered. */
  async quiet(): Promise<void> {
    const live = () =>
      sqlAt(
        this.databaseUrl,
        `SELECT kind, status, attempts, last_error FROM jobs WHERE status = 'running' OR status = 'ready'
           AND (kind = 'notify_deliver' OR run_at <= ${now()})`
      )
    const end = Date.now() + patienceMs
    for (let rows = await live(); rows.length > 0; rows = await live()) {
      if (Date.now() > end) throw new Error(`still to be done: ${JSON.stringify(rows)}`)
      await delay(100)
    }
  }

  /** Returns deliveries by the status of their jobs. */
  async deliveries(): Promise<Readonly<Record<string, number>>> {
    const text = "SELECT status, count(*) AS many FROM jobs WHERE kind = 'notify_deliver' GROUP BY status"
    const rows = await sqlAt(this.databaseUrl, text)
    return Object.fromEntries(rows.map(({ many, status }) => [String(status), Number(many)]))
  }

  /** Returns the number of records in the log about a delivery. */
  logged(deliveryId: string, backend: string): number {
    return this.server.records().filter(({ fields }) =>
      fields["event"] === "notify_delivered" && fields["delivery_id"] === deliveryId && fields["backend"] === backend
    ).length
  }

  async stop(): Promise<void> {
    await this.server.dispose()
    await this.world.stop()
    await this.means.upstream.dispose()
    await this.inbox.close()
  }
}

/** Returns an expectation, which must not be undefined. */
export const given = (one: Expected | undefined): Expected => {
  if (one === undefined) throw new Error("nothing is noted")
  return one
}

/** Returns the last part of a URL. */
export const lastOf = (url: string): string => url.slice(url.lastIndexOf("/") + 1)
