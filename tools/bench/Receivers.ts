import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { SMTPServer } from "smtp-server"

/*
 * The receivers of notifications run in a separate process. They are a web server and a mail server, which both accept
 * everything.
 */

/** The functions that the process of the receivers offers to the bench. */
export const receivers = {
  /** Starts both servers on loopback, and returns their ports. */
  listen: async (): Promise<{ readonly web: number; readonly mail: number }> => {
    const web = createServer((request, response) => {
      request.resume().on("end", () => response.end("ok"))
    })
    const mail = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS"],
      logger: false,
      onData: (stream, _, done) => void stream.resume().on("end", () => done(null, "taken"))
    })
    web.listen(0, "127.0.0.1")
    mail.listen(0, "127.0.0.1")
    await Promise.all([once(web, "listening"), once(mail.server, "listening")])
    return { web: (web.address() as AddressInfo).port, mail: (mail.server.address() as AddressInfo).port }
  }
}
