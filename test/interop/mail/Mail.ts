import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AcmeSession } from "../../support/AcmeSession.ts"
import { leafOf } from "../../support/Openssl.ts"
import { freePort } from "../../support/Ports.ts"
import type { Server } from "../../support/Server.ts"
import { runToEnd, startServer } from "../../support/Server.ts"
import type { NameServer } from "../NameServer.ts"
import { zone } from "../NameServer.ts"
import type { Outcome } from "../Table.ts"
import type { Exim } from "./Exim.ts"
import { account, boxes, domain, eximPackages, startExim } from "./Exim.ts"
import { check, isOf, isSound } from "./Sound.ts"
import { withPackages } from "./Unpacked.ts"

/*
 * Notifications by mail. A running service reports events to Exim, over TLS and with a sign-in, and Python's library
 * reads the mailboxes.
 */

const client = "mail Exim"

/** The programs and libraries that {@link playMail} needs. */
export const mailCommands: ReadonlyArray<string> = ["python3"]

interface Stage {
  readonly exim: Exim
  readonly server: Server
  /** The session of an account at a profile that bypasses validation. */
  readonly session: AcmeSession
  readonly host: string
  /** Runs a command while the service runs, with other variables if they are given. */
  readonly command: (
    words: ReadonlyArray<string>,
    env?: Readonly<Record<string, string>>
  ) => ReturnType<typeof runToEnd>
  /** Replaces the configuration and makes the service read it. */
  readonly reload: (more: string) => Promise<void>
}

const emailOf = (section: string, { port }: Exim, more: ReadonlyArray<string>): ReadonlyArray<string> => [
  `[${section}]`,
  "enabled = [\"email\"]",
  `[${section}.email]`,
  "smtp_host = \"localhost\"",
  `smtp_port = ${port}`,
  "smtp_security = \"starttls\"",
  `smtp_username = "${account.username}"`,
  `smtp_password = "${account.password}"`,
  `from = "ACME für alle <acme@${domain}>"`,
  "timeout_ms = 60000",
  ...more
]

const recipients = [`pki@${domain}`, `Zweite für Post <second@${domain}>`] as const

const configOf = (exim: Exim, adminPort: number): string =>
  [
    "[jobs]\nretry_base_seconds = 1",
    "[admin]\nenabled = true",
    `bind_address = "127.0.0.1:${adminPort}"\nbase_url = "http://127.0.0.1:${adminPort}"`,
    ...emailOf("admin.notify", exim, []),
    ...emailOf("notify", exim, [`to = ${JSON.stringify(recipients)}`]),
    "[profiles.default.challenge]\nbypass = true",
    "[profiles.proving]",
    ""
  ].join("\n")

/** Waits for the mail about an event in both mailboxes, and checks each mail. */
const arrived = async ({ exim }: Stage, subject: RegExp, lines: ReadonlyArray<string>) => {
  for (const box of boxes) {
    const message = await exim.awaitMessage(box, isOf(subject))
    isSound(message, `${box}@${domain}`)
    const missing = lines.filter((line) => !message.text.split("\n").includes(line))
    check(missing.length === 0, `the mail says nothing like ${missing.join(", ")}:\n${message.text}`)
  }
}

const issued = async (stage: Stage) => {
  const { order, chain } = await stage.session.issue([stage.host, `www.${stage.host}`], new Map())
  const serial = leafOf(chain).serialNumber.toLowerCase()
  const until = new Date(leafOf(chain).validTo).toISOString().replace(".000Z", "Z")
  await arrived(
    stage,
    new RegExp(`^ACME Service \\S+: \\[default\\] certificate issued for ${stage.host}, www.*${until}$`),
    [
      "Profile: default",
      `Order: ${order.url.split("/").at(-1)}`,
      `Serial: ${serial}`,
      `Names: ${stage.host}, www.${stage.host}`,
      `Valid until: ${until}`,
      "Client: 127.0.0.1"
    ]
  )
  return chain
}

/** Returns a name of 253 octets below a host, in labels of at most 63. */
const longNameOf = (number: number, host: string): string => {
  const labels = [String(number).padStart(60, "n")]
  for (;;) {
    const left = 253 - `${labels.join(".")}..${host}`.length
    if (left <= 0) return `${labels.join(".")}.${host}`
    // The remainder must be more than a dot.
    labels.push("x".repeat(left > 63 ? Math.min(63, left - 2) : left))
  }
}

/** Checks the mail about a certificate with a hundred names of the maximum length. */
const long = async (stage: Stage) => {
  const names = Array.from({ length: 100 }, (_, number) => longNameOf(number, stage.host))
  await stage.session.issue(names, new Map())
  await arrived(stage, /^ACME Service \S+: \[default\] certificate issued for n{50}/, [`Names: ${names.join(", ")}`])
}

const failed = async (stage: Stage) => {
  const session = await AcmeSession.open(stage.server.profileUrl("proving"))
  await session.register()
  const { body } = await session.newOrder([`nobody.${stage.host}`])
  const { challenges } = await session.authorization(body.authorizations[0] ?? "")
  await session.trigger(challenges.find(({ type }) => type === "http-01")?.url ?? "")
  session.close()
  await arrived(
    stage,
    new RegExp(`^ACME Service \\S+: \\[proving\\] http-01 failed for nobody.${stage.host}: connection$`),
    [
      "Challenge type: http-01",
      `Name: nobody.${stage.host}`,
      "Error: connection"
    ]
  )
}

const revoked = async (stage: Stage) => {
  const host = `revoked.${stage.host}`
  const { chain } = await stage.session.issue([host], new Map())
  const certificate = leafOf(chain).raw.toString("base64url")
  const { status, text } = await stage.session.post(stage.session.directory.revokeCert ?? "", {
    certificate,
    reason: 1
  })
  check(status === 200, `the revocation was answered ${status}: ${text}`)
  await arrived(stage, new RegExp(`^ACME Service \\S+: .* revoked for ${host} \\(reason: keyCompromise\\)$`), [
    `Serial: ${leafOf(chain).serialNumber.toLowerCase()}`,
    "Reason: keyCompromise"
  ])
}

/**
 * Checks that after a reload that turns the digest on, the first digest is sent at once and lists what the earlier
 * scenarios issued.
 */
const digest = async (stage: Stage) => {
  await stage.reload("[notify.expiry]\nlead_days = 365\n")
  const subject = /^ACME Service \S+: \[default\] \d+ certificates expire within 365 days, first /
  await arrived(stage, subject, ["Profile: default"])
  const { text } = await stage.exim.awaitMessage("pki", isOf(subject))
  check(new RegExp(`^\\S+Z \\(\\d+ days\\): ${stage.host}, www.${stage.host}$`, "m").test(text), text)
  check(!text.includes(`revoked.${stage.host}`), "the digest tells of what was revoked")
}

/** Checks that the mail server gets one mail about an event that happened while the server was unavailable. */
const away = async (stage: Stage) => {
  const { exim, host, server, session } = stage
  await exim.leave()
  await session.issue([`away.${host}`], new Map())
  const { fields } = await server.waitForEvent("notify_delivery_failed")
  check(/ECONNREFUSED|connect/i.test(String(fields["error"])), `the log has ${String(fields["error"])}`)
  await exim.comeBack()
  await arrived(stage, new RegExp(`certificate issued for away.${host}, `), [`Names: away.${host}`])
}

/**
 * Checks that mail about an operator goes to the operator's own address, and mail about a change of the address to the
 * previous one.
 */
const operators = async ({ command, exim, server }: Stage) => {
  writeFileSync(join(server.directory, "password"), "Wrocław tramway, 4 stops\n", { mode: 0o600 })
  const run = async (...words: ReadonlyArray<string>) => {
    const { code, stderr } = await command(["admin", "user", ...words])
    check(code === 0, `admin user ${words.join(" ")} ended with ${code}: ${stderr}`)
  }
  const [before, after] = [`pki@${domain}`, `second@${domain}`]
  await run("create", "ann", "--password-file", "password", "--contact", before)
  await run("contact", "ann", "--contact", after)
  writeFileSync(join(server.directory, "password"), "Kraków bus, 5 halts\n", { mode: 0o600 })
  await run("passwd", "ann", "--password-file", "password")
  const changed = /^ACME Service \S+: operator ann: contact address changed by another operator$/
  const password = /^ACME Service \S+: operator ann: password changed by another operator$/
  isSound(await exim.awaitMessage("pki", isOf(changed)), before, [["", before]])
  isSound(await exim.awaitMessage("second", isOf(password)), after, [["", after]])
  const others = [
    ...(await exim.messages("second")).filter(isOf(changed)),
    ...(await exim.messages("pki")).filter(isOf(password))
  ]
  check(others.length === 0, "the other address was written to as well")
}

interface Tried {
  readonly profile: string
  readonly event: string
  readonly delivered: boolean
  readonly answer: string
}

const tryOut = async ({ command }: Stage, words: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) => {
  const { code, stderr, stdout } = await command(["notify", "test", "email", "--json", ...words], env)
  check(code === 0 || code === 1, `notify test ended with ${code}: ${stderr}`)
  const { items } = JSON.parse(stdout) as { readonly items: ReadonlyArray<Tried> }
  return { code, tried: items }
}

const samples = async (stage: Stage) => {
  stage.exim.empty()
  const { code, tried } = await tryOut(stage, ["--profile", "default"])
  check(code === 0, JSON.stringify(tried))
  const answers = tried.filter(({ answer, delivered }) => delivered && /^250 OK id=\S+$/.test(answer))
  check(answers.length === 7, `delivered and answered by Exim: ${JSON.stringify(tried)}`)
  for (const box of boxes) {
    const messages = await stage.exim.awaitMessages(box, 7)
    check(messages.length === 7, `${box} has ${messages.length} samples of 7`)
    for (const message of messages) isSound(message, `${box}@${domain}`)
  }
}

const overTls = async (stage: Stage) => {
  stage.exim.empty()
  const { code, tried } = await tryOut(stage, ["--profile", "default", "--event", "account_created"], {
    ACME_SVC_NOTIFY__EMAIL__SMTP_PORT: `${stage.exim.tlsPort}`,
    ACME_SVC_NOTIFY__EMAIL__SMTP_SECURITY: "tls"
  })
  check(code === 0, JSON.stringify(tried))
  for (const box of boxes) {
    isSound(await stage.exim.awaitMessage(box, isOf(/account \S+ created/)), `${box}@${domain}`)
  }
}

/** The causes that prevent a mail, each with its variables and the message about the cause. */
const obstacles: { readonly [scenario: string]: readonly [env: Readonly<Record<string, string>>, said: RegExp] } = {
  "wrong password": [{ ACME_SVC_NOTIFY__EMAIL__SMTP_PASSWORD: "swordfish" }, /535/],
  "nobody signed in": [
    { ACME_SVC_NOTIFY__EMAIL__SMTP_USERNAME: "", ACME_SVC_NOTIFY__EMAIL__SMTP_PASSWORD: "" },
    /550.*sign in first/
  ],
  "unknown recipient": [{ ACME_SVC_NOTIFY__EMAIL__TO: `nobody@${domain}` }, /550 Unrouteable address/],
  "another's domain": [{ ACME_SVC_NOTIFY__EMAIL__TO: "somebody@example.net" }, /550.*no relay/],
  "certificate of another name": [{ ACME_SVC_NOTIFY__EMAIL__SMTP_HOST: "127.0.0.1" }, /altnames|not in the cert/i],
  "certificate nobody trusts": [{ NODE_EXTRA_CA_CERTS: "" }, /self-signed certificate/]
}

const isRefused = ([env, said]: (typeof obstacles)[string]) => async (stage: Stage) => {
  stage.exim.empty()
  const { code, tried } = await tryOut(stage, ["--profile", "default", "--event", "account_created"], env)
  const [{ answer, delivered } = { answer: "nothing was tried", delivered: true }] = tried
  check(code === 1 && !delivered && said.test(answer), `${code}: ${answer}`)
  check(!/swordfish|hunter22/.test(JSON.stringify(tried)), "the answer has a password")
  for (const box of boxes) check((await stage.exim.messages(box)).length === 0, `${box} has a mail`)
}

/** The scenarios, in the order in which they are played. */
const scenarios: { readonly [scenario: string]: (stage: Stage) => Promise<unknown> } = {
  certificate_issued: issued,
  "a hundred longest names": long,
  challenge_failed: failed,
  certificate_revoked: revoked,
  certificates_expiring: digest,
  "server away and back": away,
  "once each": ({ exim }) => isOnce(exim),
  "address of an operator": operators,
  "notify test": samples,
  "TLS at once": overTls,
  ...Object.fromEntries(Object.entries(obstacles).map(([name, obstacle]) => [name, isRefused(obstacle)]))
}

/** Checks that no mailbox has a message twice. */
const isOnce = async (exim: Exim) => {
  for (const box of boxes) {
    const ids = (await exim.messages(box)).map(({ headers }) => headers["message-id"]?.[0])
    check(new Set(ids).size === ids.length, `${box} has a message twice: ${ids.join(" ")}`)
  }
}

const played = async (stage: Stage, database: string): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const [scenario, play] of Object.entries(scenarios)) {
    const begun = performance.now()
    const error = await play(stage).then(() => undefined, (cause: unknown) => String(cause))
    const outcome = { database, client, challenge: "", scenario, milliseconds: performance.now() - begun }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
  }
  return outcomes
}

const onDatabase = async (
  database: string,
  url: string | undefined,
  nameServer: NameServer,
  unpacked: string
): Promise<ReadonlyArray<Outcome>> => {
  const exim = await startExim(unpacked)
  const home = mkdtempSync(join(tmpdir(), "acme-mail-"))
  try {
    const databaseUrl = url ?? `sqlite://${join(home, "mail.db")}`
    const config = configOf(exim, await freePort())
    const env = {
      NODE_EXTRA_CA_CERTS: exim.certificate,
      ACME_SVC_DNS__RESOLVER: nameServer.address,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${await freePort()}`
    }
    const server = await startServer({ config, databaseUrl, env })
    try {
      const session = await AcmeSession.open(server.directoryUrl)
      await session.register()
      const outcomes = await played({
        exim,
        server,
        session,
        host: `${database.toLowerCase()}.mail.${zone}`,
        command: (words, more = {}) =>
          runToEnd(words, {
            config: null,
            directory: server.directory,
            env: { ...env, ACME_SVC_DATABASE__URL: databaseUrl, ...more }
          }),
        reload: async (more) => {
          writeFileSync(join(server.directory, "config.toml"), config + more)
          server.signal("SIGHUP")
          await server.waitForEvent("server_config_reloaded")
        }
      }, database)
      session.close()
      return outcomes
    } finally {
      await server.dispose()
    }
  } finally {
    await exim.dispose()
    rmSync(home, { recursive: true, force: true })
  }
}

/** Plays everything on both databases, each with a mail server of its own. */
export const playMail = async (
  nameServer: NameServer,
  freshPostgres: () => Promise<string>,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const on = (database: string, url: string | undefined, unpacked: string): Promise<ReadonlyArray<Outcome>> =>
    onDatabase(database, url, nameServer, unpacked).catch((cause: unknown) => [
      { database, client, challenge: "", scenario: "start", milliseconds: 0, error: String(cause) }
    ])
  const outcomes = await withPackages(eximPackages, async (unpacked, versions) => {
    say(`unpacked, not installed: ${versions.join(", ")}`)
    return (await Promise.all([
      on("SQLite", undefined, unpacked),
      on("PostgreSQL", await freshPostgres(), unpacked)
    ])).flat()
  })
  for (const { database, error, scenario } of outcomes) {
    if (error !== undefined) say(`--- ${client} ${scenario} on ${database}\n${error}`)
  }
  return outcomes
}
