import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { certificatesIn } from "../../../crypto/x509/TlsCertificate.ts"
import { readTextFile, said } from "../../../engine/host/KeyFile.ts"

/** The file with the trusted roots for an inventory's certificate cannot be used. */
export class RootsUnusable extends Data.TaggedError("RootsUnusable")<{
  readonly profile: string
  /** The configuration key that names the file. */
  readonly key: string
  readonly path: string
  /** What is wrong with the file: the rest of a sentence that begins with its path. */
  readonly fault: string
}> {
  override get message(): string {
    return `Profile ${this.profile}: ${this.key}: ${this.path} ${this.fault}.`
  }
}

const maxBytes = 4 * 1024 * 1024

interface ServerConfig {
  readonly url: string
  readonly ca_cert_path: string
  readonly insecure_skip_verify: boolean
}

/** Returns whether the file is needed: it is configured, and the server's certificate is verified. */
const isRead = ({ ca_cert_path, insecure_skip_verify, url }: ServerConfig): boolean =>
  ca_cert_path !== "" && !insecure_skip_verify && url.startsWith("https:")

/**
 * Returns the roots that are trusted in addition to the public roots, as PEM. Refuses a file that contains no
 * certificate.
 */
export const rootsOf = (
  profile: string,
  section: string,
  config: ServerConfig
): Effect.Effect<ReadonlyArray<string>, RootsUnusable> => {
  if (!isRead(config)) return Effect.succeed([])
  const path = config.ca_cert_path
  const unusable = (fault: string) => new RootsUnusable({ profile, key: `${section}.ca_cert_path`, path, fault })
  return Effect.flatMap(
    Effect.mapError(readTextFile(path, maxBytes), (error) => unusable(`cannot be read: ${said(error)}`)),
    ({ text }) => {
      const found = certificatesIn(text)
      if (found === undefined) return unusable("holds a certificate that cannot be read")
      return found.length === 0 ? unusable("holds no certificate in PEM") : Effect.succeed(found)
    }
  )
}
