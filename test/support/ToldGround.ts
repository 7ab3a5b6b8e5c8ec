import { resolve } from "node:path"
import type { Server } from "./Server.ts"

/* The configuration and the operators of a service that reports everything. */

/** The password of every operator. */
export const password = "Gdynia trolleybus, 7 stops"

/** The new password that operators choose. */
export const nextPassword = "Szczecin ferry, 3 piers"

/** The number of wrong attempts that an operator has. */
export const mostAttempts = 3

/** The surfaces, in this order. Each has addresses of its own, because wrong attempts are counted for each address. */
const doorNames = ["api", "panel"] as const

/** The operators by name, with the address from which each has signed in before. */
export const operators: ReadonlyArray<readonly [username: string, address: string]> = [
  ["cli-target", "127.0.0.1"],
  ...doorNames.flatMap((surface, number) => {
    const at = (last: number) => `127.0.${number}.${last}`
    return ([
      [`${surface}-root`, "127.0.0.1"],
      [`${surface}-own`, at(10)],
      [`${surface}-locked`, at(10)],
      [`${surface}-wrong`, at(13)],
      [`${surface}-step`, at(14)],
      [`${surface}-guessed`, at(19)],
      [`${surface}-mistaken`, at(31)],
      [`${surface}-target`, at(10)],
      [`${surface}-forced`, at(15)],
      [`${surface}-late`, at(17)]
    ] as const)
  })
]

/** The operators who have a second factor from the beginning. */
export const factored = new Set(["api-target", "panel-target", "cli-target"])

/** The folders and URLs that the configuration names. */
export interface Means {
  /** The folder of the script that signs. */
  readonly signer: string
  /** The folder of a CA that expires soon. */
  readonly authority: string
  readonly upstream: Server
}

const recipe = resolve(import.meta.dirname, "../../docs/recipes/sign-with-openssl.sh")

/** Orders have the kind `mutual`, which a version that knows no kinds must not sign. */
const kinds = `default = "mutual"
kinds.default.description = "Servers"
kinds.mutual.description = "Servers and clients"`

const addedWith = (authority: string): string =>
  `[profiles.added.signer.local_ca]
cert_path = "${authority}/ca.pem"
key_path = "${authority}/ca.key"
crl_path = "${authority}/ca.crl"
`

/** Returns the configuration without receivers, for the start or for the reload. */
export const profiles = ({ authority, signer, upstream }: Means, isReloaded: boolean): string =>
  `[signer.local_ca]
leaf_validity_days = 5
[admin]
login_max_attempts = ${mostAttempts}
require_mfa = ${isReloaded}
[jobs]
retry_base_seconds = 1
poll_interval_ms = 100
[profiles.default]
[profiles.bound.eab]
enabled = true
[profiles.script.signer]
backend = "custom"
[profiles.script.signer.custom]
script_path = "${recipe}"
args = ["${signer}"]
timeout_ms = 60000
[profiles.relayed]
challenge.bypass = true
[profiles.relayed.signer]
backend = "relay"
relay.directory_url = "${upstream.directoryUrl}"
relay.poll_interval_ms = 50
[profiles.kinds.certificates]
${kinds}
[profiles.relayed-kinds]
challenge.bypass = true
[profiles.relayed-kinds.certificates]
${kinds}
[profiles.relayed-kinds.signer]
backend = "relay"
relay.directory_url = "${upstream.directoryUrl}"
relay.poll_interval_ms = 50
[profiles.doomed.signer.local_ca]
cert_path = "doomed.pem"
key_path = "doomed.key"
crl_path = "doomed.crl"
[profiles.ending.notify.expiry]
lead_days = ${isReloaded ? 14 : 0}
to_contacts = ${isReloaded}
${isReloaded ? addedWith(authority) : ""}`

/** The profiles that report something when the service starts. */
export const startingProfiles = [
  "default",
  "bound",
  "script",
  "relayed",
  "kinds",
  "relayed-kinds",
  "doomed",
  "ending"
] as const

/** Returns the kind of certificate of the orders of a profile. */
export const kindIn = (profile: string): string => profile.endsWith("kinds") ? "mutual" : "default"
