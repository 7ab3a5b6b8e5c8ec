import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { SMTPPoolOptions } from "nodemailer/lib/smtp-pool"
import { tlsFault } from "../TlsFault.ts"
import type { FairSemaphore } from "./FairSemaphore.ts"
import { makeFairSemaphore } from "./FairSemaphore.ts"

/** The mail server. */
export interface MailServer {
  readonly host: string
  readonly port: number
  /** How the connection is secured. With `starttls`, no mail is sent without TLS. */
  readonly security: "starttls" | "tls" | "none"
  readonly username: string
  readonly password: Redacted.Redacted<string>
  /** How long it may take until a message was sent. */
  readonly timeoutMillis: number
}

/** One message of plain text. A mailbox is an address alone, or `Name <address>`. */
export interface Letter {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly subject: string
  readonly text: string
  /** The Message-ID, with its angle brackets. */
  readonly messageId: string
  /** The time of the message, in epoch seconds. */
  readonly at: number
}

/** The message was not accepted. `detail` contains no password. */
export class MailFailed extends Data.TaggedError("MailFailed")<{
  readonly detail: string
  /** The answer of the server, if it answered. */
  readonly status: number | undefined
  /** Whether the server permanently refused this message, or all its recipients. */
  readonly isPermanent: boolean
}> {}

/** The server accepted a message. */
export interface Posted {
  readonly answer: string
  /** The recipients that the server refused, although it accepted others. */
  readonly refused: ReadonlyArray<string>
  /** Those of the refused recipients that the server may accept later, as a server does that greylists. */
  readonly deferred: ReadonlyArray<string>
}

/** For how many milliseconds a connection is kept for the next message. */
const idleMillis = 5000

/**
 * How long a server may take to accept a message that it has received, as it may while it looks for viruses (RFC 5321
 * section 4.5.3.2.6). If the service stopped waiting, it would send the message again, although the server may keep it.
 */
const acceptMillis = 600_000

/** Returns how long a message may take when it has a connection. */
export const longestMillis = (timeoutMillis: number): number => timeoutMillis + acceptMillis

/** How many connections to one server there are at once. */
const atOnce = 2

const optionsOf = (server: MailServer): SMTPPoolOptions & { readonly pool: true } => {
  const { host, password, port, security, timeoutMillis, username } = server
  return {
    pool: true,
    host,
    port,
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    ...(username === "" ? {} : { auth: { user: username, pass: Redacted.value(password) } }),
    tls: { minVersion: "TLSv1.2" },
    maxConnections: atOnce,
    // The queue decides whether to try again.
    maxRequeues: 0,
    idleTimeout: idleMillis,
    connectionTimeout: timeoutMillis,
    greetingTimeout: timeoutMillis,
    // A server that says nothing before it has the message is given up by `patiently`.
    socketTimeout: longestMillis(timeoutMillis),
    dnsTimeout: timeoutMillis
  }
}

interface SmtpError extends Error {
  readonly command?: string
  readonly responseCode?: number
  readonly recipient?: string
}

/** The commands whose refusal is about the message or its recipients, not about the connection. */
const aboutTheMessage = new Set(["MAIL FROM", "RCPT TO", "DATA"])

const failureOf = (cause: unknown): MailFailed => {
  const { command = "", message, responseCode }: SmtpError = cause instanceof Error ? cause : new Error(String(cause))
  return new MailFailed({
    detail: tlsFault(message),
    status: responseCode,
    isPermanent: responseCode !== undefined && responseCode >= 500 && aboutTheMessage.has(command)
  })
}

const late = (detail: string): MailFailed => new MailFailed({ detail, status: undefined, isPermanent: false })

const within = <A>({ timeoutMillis }: MailServer, self: Effect.Effect<A, MailFailed>): Effect.Effect<A, MailFailed> =>
  Effect.timeoutOrElse(self, {
    duration: timeoutMillis,
    orElse: () => Effect.fail(late(`not taken within ${timeoutMillis} ms`))
  })

/** Limits the time until the message was sent, and then the time until the server accepts it. */
const patiently = <A>(
  { timeoutMillis }: MailServer,
  self: (whenSent: () => void) => Effect.Effect<A, MailFailed>
): Effect.Effect<A, MailFailed> =>
  Effect.suspend(() => {
    let isSent = false
    const limit = Effect.gen(function*() {
      yield* Effect.sleep(timeoutMillis)
      if (!isSent) return yield* late(`not sent within ${timeoutMillis} ms`)
      yield* Effect.sleep(acceptMillis)
      return yield* late(`sent, but not accepted within ${acceptMillis / 1000} s`)
    })
    return Effect.raceFirst(self(() => isSent = true), limit)
  })

/** Sends mail through the operator's mail server. */
export class Mail extends Context.Service<Mail, {
  readonly send: (server: MailServer, letter: Letter) => Effect.Effect<Posted, MailFailed>
  /** Connects and signs in as for a message, but sends no message. */
  readonly greet: (server: MailServer) => Effect.Effect<void, MailFailed>
}>()("acme/engine/net/Mail") {
  /**
   * Uses SMTP. Messages to the same server share connections, and wait for one as long as they may then take. The
   * connections close with the layer. The library is loaded only when it is needed.
   */
  static readonly layer: Layer.Layer<Mail> = Layer.effect(
    this,
    Effect.gen(function*() {
      const library = yield* Effect.cached(Effect.promise(() => import("nodemailer")))
      const open = new Map<string, {
        readonly transport: Transport
        readonly turns: FairSemaphore
      }>()
      yield* Effect.addFinalizer(() => Effect.sync(() => open.forEach(({ transport }) => transport.close())))
      return Mail.of({
        greet: Effect.fnUntraced(function*(server) {
          const { createTransport } = yield* library
          yield* within(
            server,
            Effect.acquireUseRelease(
              Effect.sync(() => createTransport(optionsOf(server))),
              (transport) => Effect.tryPromise({ try: () => transport.verify(), catch: failureOf }),
              (transport) => Effect.sync(() => transport.close())
            )
          )
        }),
        send: Effect.fnUntraced(function*(server, letter) {
          const { createTransport } = yield* library
          const key = JSON.stringify({ ...server, password: Redacted.value(server.password) })
          const { transport, turns } = open.get(key) ??
            { transport: watched(createTransport(optionsOf(server))), turns: makeFairSemaphore(atOnce) }
          open.set(key, { transport, turns })
          // The wait for a connection is not part of the time limit. Otherwise a message whose server is slow would be
          // given up after it was sent, and sent again, only because others were sent before it.
          const patience = longestMillis(server.timeoutMillis)
          return yield* turns.takeWithin(
            patience,
            patiently(server, (whenSent) => post(transport, letter, whenSent)),
            Effect.fail(late(`other messages had the connections for ${patience} ms`))
          )
        })
      })
    })
  )

  /** Opens no connection. A function receives every message. */
  static readonly layerScripted = (
    script: (server: MailServer, letter: Letter) => Effect.Effect<Posted, MailFailed>
  ): Layer.Layer<Mail> => Layer.succeed(this, { send: script, greet: () => Effect.void })
}

/**
 * Returns the two parts of a mailbox. The library's own parser is not used, because it would read a name with a colon,
 * a semicolon or brackets as a group or a comment.
 */
const partsOf = (mailbox: string): { readonly name: string; readonly address: string } => {
  const [, name = "", address = mailbox] = /^([^<>]*)<([^<>]*)>$/.exec(mailbox) ?? []
  return { name: name.trim().replace(/^"(.*)"$/, "$1"), address }
}

type Transport = ReturnType<(typeof import("nodemailer"))["createTransport"]>

/** What the service adds to the options of a message. */
interface Watched {
  readonly whenSent: () => void
}

/** Calls `whenSent` of each message when all of its text has gone to the connection. */
const watched = (transport: Transport): Transport =>
  transport.use("stream", ({ data, message }, done) => {
    const { whenSent } = data as unknown as Watched
    message.processFunc((input) => input.once("end", whenSent))
    done()
  })

const post = (
  transport: Transport,
  { at, from, messageId, subject, text, to }: Letter,
  whenSent: () => void
): Effect.Effect<Posted, MailFailed> =>
  Effect.map(
    Effect.tryPromise({
      try: (signal) => {
        const more: Watched = { whenSent }
        return transport.sendMail({
          ...more,
          from: partsOf(from),
          to: to.map(partsOf),
          subject,
          text,
          messageId,
          date: new Date(at * 1000),
          headers: { "Auto-Submitted": "auto-generated", Precedence: "bulk" },
          encoding: "quoted-printable",
          xMailer: false,
          disableFileAccess: true,
          disableUrlAccess: true,
          signal
        })
      },
      catch: failureOf
    }),
    ({ rejected = [], rejectedErrors = [], response }) => ({
      answer: String(response),
      refused: rejected.map(String),
      deferred: (rejectedErrors as ReadonlyArray<SmtpError>).flatMap(({ recipient, responseCode = 0 }) =>
        recipient !== undefined && responseCode >= 400 && responseCode < 500 ? [recipient] : []
      )
    })
  )
