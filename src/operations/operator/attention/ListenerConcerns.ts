import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readTlsCertificate } from "../../../crypto/x509/TlsCertificate.ts"
import { readTextFile } from "../../../engine/host/KeyFile.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { concern, counted } from "./Concern.ts"

/* What the certificates of the listeners need attention for. */

const daySeconds = 86_400
/** A certificate that ends within this number of days is a warning, and within the second number an alarm. */
const soon = { warning: 14, alarm: 2 }

/** Returns when a certificate file ends, in epoch seconds. If the file cannot be read, the listener reports that. */
const endOf = (path: string) =>
  Effect.map(
    Effect.option(
      Effect.flatMap(readTextFile(path), ({ text }) => Effect.try(() => readTlsCertificate(text).notAfter))
    ),
    Option.map((end) => Math.floor(end.getTime() / 1000))
  )

/**
 * Returns the concerns about the certificates of the listeners, as their files on this machine say. The files of other
 * machines cannot be read.
 */
export const listenerConcerns = ({ admin, server }: Pick<Config, "admin" | "server">) =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const listeners = [
      ["ACME clients", "server.tls.cert_path", server.tls] as const,
      ...admin.enabled ? [["operators", "admin.tls.cert_path", admin.tls] as const] : []
    ].filter(([, , tls]) => tls.enabled)
    const ends = yield* Effect.forEach(listeners, ([whom, key, { cert_path }]) =>
      Effect.map(endOf(cert_path), (end) => ({ whom, key, end: Option.getOrUndefined(end) })))
    return ends.flatMap(({ end, key, whom }) => {
      if (end === undefined || end - now >= soon.warning * daySeconds) {
        return []
      }
      const way = { label: "Show the configuration", path: "/ui/configuration", command: "config check" }
      const effect = `Put a new certificate at ${key}; the service takes it without a restart.`
      if (end <= now) {
        return [concern("listener_certificate_ended", {
          title: `The certificate of the listener for ${whom} has expired`,
          effect,
          since: end,
          way
        })]
      }
      const days = Math.floor((end - now) / daySeconds)
      return [concern("listener_certificate_ending", {
        ...days < soon.alarm ? { severity: "alarm" as const } : {},
        title: `The certificate of the listener for ${whom} expires in ${counted(days, "day")}`,
        effect,
        way
      })]
    })
  })
