import { Effect } from "effect"
import { createHash, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { compromise } from "../../src/operations/operator/CaCompromise.ts"
import type { LocalCaSettings } from "../../src/services/signing/ConfiguredCas.ts"
import { settingsIn } from "../support/LocalCa.ts"
import { chainIn, issuersQuery } from "../support/StoredChains.ts"
import type { Commands } from "./Commands.ts"
import { atKeyboard } from "./Commands.ts"
import type { Ledger } from "./Ledger.ts"
import type { Random } from "./Random.ts"
import type { Row, Store } from "./Store.ts"
import { bare, uuid } from "./Tables.ts"

/*
 * The CAs of a run: one that issues at first, one that takes its place at its time, and an operator who declares either
 * of them compromised.
 */

/** The common names of the CAs. Their files have these names too. */
export const caNames = ["ca", "next"] as const
type CaName = (typeof caNames)[number]

// A certificate begins an hour before it is signed.
const backdatedSeconds = 3600

/** Returns the settings with which a CA of a simulation is made. */
export const madeIn = (directory: string, name: CaName): LocalCaSettings => {
  const settings = settingsIn(directory)
  return {
    ...settings,
    cert_path: join(directory, `${name}.pem`),
    key_path: join(directory, `${name}.key`),
    subject: { ...settings.subject, common_name: name }
  }
}

/** Returns the id of a CA: the SHA-256 of its SubjectPublicKeyInfo. */
const idIn = (directory: string, name: CaName): string =>
  createHash("sha256").update(
    new X509Certificate(readFileSync(join(directory, `${name}.pem`))).publicKey.export({ type: "spki", format: "der" })
  ).digest("hex")

/** Returns whether the CAs must change places, so that the order of their ids is the same in every simulation. */
export const areSwapped = (directory: string): boolean => {
  const [first = "", second = ""] = caNames.map((name) => idIn(directory, name))
  return first > second
}

/** The CAs of a run. */
export class Authorities {
  readonly ids: { readonly [name in CaName]: string }
  /** When the second CA begins to issue, in epoch seconds; undefined if there is only the first one. */
  readonly takeover: number | undefined
  readonly #certificates: ReadonlyArray<X509Certificate>
  readonly #directory: string
  readonly #ledger: Ledger
  readonly #violated: (what: string) => void
  #compromised: ReadonlySet<string> = new Set()

  constructor(options: {
    readonly directory: string
    readonly takeover: number | undefined
    readonly ledger: Ledger
    readonly violated: (what: string) => void
  }) {
    const { directory, ledger, takeover, violated } = options
    this.#directory = directory
    this.takeover = takeover
    this.#ledger = ledger
    this.#violated = violated
    this.ids = { ca: idIn(directory, "ca"), next: idIn(directory, "next") }
    this.#certificates = caNames.map((name) => new X509Certificate(readFileSync(join(directory, `${name}.pem`))))
  }

  /** The section `signer.local_ca` of every profile. */
  settings(): LocalCaSettings {
    const first = madeIn(this.#directory, "ca")
    if (this.takeover === undefined) return first
    const { cert_path, cross_cert_paths, key_passphrase_file, key_path, key_source, pkcs11, transit } = madeIn(
      this.#directory,
      "next"
    )
    return {
      ...first,
      others: {
        next: {
          cert_path,
          cross_cert_paths,
          key_passphrase_file,
          key_path,
          key_source,
          pkcs11,
          transit,
          crl_path: "",
          state: "waiting",
          from: new Date(this.takeover * 1000).toISOString()
        }
      }
    }
  }

  /** Returns whether one of the CAs has signed a leaf. */
  hasSigned(leaf: X509Certificate): boolean {
    return this.#certificates.some((ca) => leaf.verify(ca.publicKey))
  }

  #idOf(leaf: X509Certificate): string {
    return leaf.issuer === "CN=next" ? this.ids.next : this.ids.ca
  }

  /** Reads which CAs are compromised, after a commit or a power cut. */
  changed(store: Store): void {
    this.#compromised = new Set(
      store.rows("SELECT issuer FROM compromised_issuers").map(({ issuer }) => String(issuer))
    )
  }

  /** Checks the CA of a certificate that was just stored. */
  issued(order: string, leaf: X509Certificate): void {
    const id = this.#idOf(leaf)
    if (this.#compromised.has(id)) {
      this.#violated(`the order ${uuid(order)} has a certificate of a CA that was compromised before`)
    }
    const signedAt = leaf.validFromDate.getTime() / 1000 + backdatedSeconds
    const expected = this.takeover !== undefined && signedAt >= this.takeover ? this.ids.next : this.ids.ca
    if (id !== expected) {
      this.#violated(`the certificate of the order ${uuid(order)}, signed at ${signedAt}, is of the CA ${leaf.issuer}`)
    }
  }

  /**
   * Checks at the end that a declaration is not lost, and that every certificate of a compromised CA is revoked, unless
   * it has expired by the clock that was furthest ahead.
   */
  atRest(store: Store, orders: Iterable<Row>, expired: number): void {
    this.changed(store)
    for (const id of this.#ledger.compromised) {
      if (!this.#compromised.has(id)) this.#violated("a CA is not compromised any more")
    }
    for (const { cert_not_after, cert_serial, id, revoked_at } of orders) {
      if (cert_serial === null || revoked_at !== null || Number(cert_not_after) <= expired) continue
      const [found] = store.rows(
        `SELECT certificate, leaf, issuers FROM orders WHERE id = x'${String(id)}' AND profile = 'default'`
      )
      if (found === undefined) continue
      const chain = chainIn(found, store.rows(issuersQuery))
      if (chain === undefined) this.#violated(`the chain of the certificate ${bare(cert_serial)} is lost`)
      else if (this.#compromised.has(this.#idOf(new X509Certificate(chain)))) {
        this.#violated(`the certificate ${bare(cert_serial)} of a compromised CA is not revoked`)
      }
    }
  }
}

/** Returns the life of an operator who declares CAs compromised. A CA without a list is left as it is. */
export const declareCompromised = (
  { authorities, commands, isOver, ledger, random }: {
    readonly authorities: Authorities
    readonly commands: Commands
    readonly isOver: () => boolean
    readonly ledger: Ledger
    readonly random: Random
  }
): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (const name of caNames) {
      yield* Effect.sleep(random.between(500, 40_000))
      if (isOver() || !random.chance(0.5)) continue
      const id = authorities.ids[name]
      yield* commands.run(
        compromise(atKeyboard, id).pipe(
          Effect.map(() => void ledger.compromised.add(id)),
          Effect.catchTag("NoSuch", () => Effect.void)
        )
      )
    }
  })
