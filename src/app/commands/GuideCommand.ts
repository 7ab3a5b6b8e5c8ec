import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { certificatesIn, readTlsCertificate } from "../../crypto/x509/TlsCertificate.ts"
import { readTextFile } from "../../engine/host/KeyFile.ts"
import { mapLayerError } from "../../engine/Layers.ts"
import { endpointGuide, guideText } from "../../operations/EndpointGuide.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { escapedLines } from "../../surfaces/cli/Escaped.ts"
import { CommandFailed, filesFailed } from "../CommandFailed.ts"
import { tlsOf } from "../ListenerTls.ts"
import { namedProfile } from "../NamedProfile.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText } from "./Flags.ts"
import { print } from "./Print.ts"

/** The clients with lines of their own, in the words of the command. */
const known = ["certbot", "lego", "acme.sh", "cert-manager", "Caddy"]

/**
 * Returns the ACME listener if clients reach it itself and the service has made its certificate. Returns undefined if
 * this command may not read the certificate.
 */
const ownListener = (config: Config) => {
  const { enabled, settings } = tlsOf(config, "acme")
  const { host, port, protocol } = new URL(config.server.base_url)
  const reached = port === "" ? "443" : port
  const isReached = enabled && protocol === "https:" && config.server.bind_address.endsWith(`:${reached}`)
  if (!isReached) return Effect.succeed(undefined)
  return Effect.map(Effect.option(readTextFile(settings.cert_path)), (file) => {
    if (Option.isNone(file) || certificatesIn(file.value.text)?.length !== 1) return undefined
    const { fingerprint, selfIssued } = readTlsCertificate(file.value.text)
    return selfIssued ? { host: port === "" ? `${host}:443` : host, sha256: fingerprint } : undefined
  })
}

const clientCommand = command(
  "client",
  "Print what to paste on another machine: how to trust the CA of a profile, and how a client asks for a certificate. Example: acme-svc guide client lego. Exit codes: 0, 1, 2, 3.",
  {
    client: Argument.String("client").pipe(
      Argument.optional,
      Argument.withDescription(`The client: ${known.join(", ")}. Without it, all of them.`),
      Argument.map(Option.getOrUndefined)
    ),
    profile: optionalText("profile", "The profile. Needed if there are several."),
    kid: optionalText("kid", "The identifier of the credential of the client, as eab create printed it."),
    json: jsonOption
  },
  ({ client, json, kid, profile }) =>
    Effect.gen(function*() {
      const loaded = yield* Settings.loaded
      const found = yield* namedProfile(loaded, profile)
      const wanted = client?.toLowerCase()
      const name = known.find((one) => one.toLowerCase() === wanted)
      if (wanted !== undefined && name === undefined) {
        return yield* new CommandFailed({
          code: 2,
          message: `There are no lines for ${client ?? ""}, but for ${
            known.join(", ")
          }; docs/clients/README.md has others.`
        })
      }
      const guide = yield* endpointGuide(found, loaded.config.server.base_url, {
        kid,
        listener: yield* ownListener(loaded.config)
      }).pipe(
        Effect.provide(mapLayerError(Issuers.layer([found]), filesFailed))
      )
      const clients = guide.clients.filter((one) => name === undefined || one.client === name)
      const shown = { ...guide, clients }
      yield* print(json, shown, () => escapedLines(guideText(shown).trimEnd()))
    })
)

/** `guide`: what somebody on another machine needs. */
export const guideCommand = Command.make("guide").pipe(
  Command.withDescription("What somebody on another machine needs to get a certificate."),
  Command.withSubcommands([clientCommand])
)
