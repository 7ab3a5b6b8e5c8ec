import { Effect } from "effect"
import type { Scope } from "effect"
import { simpleParser } from "mailparser"
import type { ParsedMail } from "mailparser"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import type { SMTPServerOptions, SMTPServerSession } from "smtp-server"
import { SMTPServer } from "smtp-server"

/** A message as the server received it. */
export interface Taken {
  readonly raw: string
  /** The message as a library other than the one that wrote it has parsed it. */
  readonly mail: ParsedMail
  readonly recipients: ReadonlyArray<string>
  readonly session: SMTPServerSession
}

/** A mail server on loopback. */
export interface MailServer {
  readonly port: number
  readonly taken: ReadonlyArray<Taken>
  readonly connections: () => number
}

/** Returns a failure that the server answers with. */
export const answering = (code: number, words = "no"): Error => Object.assign(new Error(words), { responseCode: code })

/**
 * Starts a mail server that accepts every message until the scope ends, unless the options or `judge` say otherwise.
 * `judge` sees each message and may return a failure.
 */
export const mailServer = (
  options: SMTPServerOptions = {},
  judge: (message: Taken) => Error | undefined = () => undefined
): Effect.Effect<MailServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const taken: Array<Taken> = []
        let connections = 0
        const server = new SMTPServer({
          authOptional: true,
          disabledCommands: options.key === undefined ? ["STARTTLS"] : [],
          logger: false,
          closeTimeout: 100,
          onConnect: (_, done) => {
            connections++
            done()
          },
          onData: (stream, session, done) => {
            const chunks: Array<Buffer> = []
            stream.on("data", (chunk: Buffer) => chunks.push(chunk))
            stream.on("end", () => {
              const recipients = session.envelope.rcptTo.map(({ address }) => address)
              const raw = Buffer.concat(chunks).toString("latin1")
              void simpleParser(Buffer.concat(chunks)).then((mail) => {
                const message = { raw, mail, recipients, session }
                const refusal = judge(message)
                if (refusal !== undefined) return done(refusal)
                taken.push(message)
                done(null, "taken")
              })
            })
          },
          ...options
        })
        server.on("error", () => {})
        server.listen(0, "127.0.0.1")
        await once(server.server, "listening")
        const { port } = server.server.address() as AddressInfo
        return { server, facts: { port, taken, connections: () => connections } satisfies MailServer }
      }),
      ({ server }) => Effect.callback<void>((resume) => server.close(() => resume(Effect.void)))
    ),
    ({ facts }) => facts
  )
