import { Effect, Layer } from "effect"
import type { KeyObject } from "node:crypto"
import { X509Certificate } from "node:crypto"
import { join } from "node:path"
import { Entropy } from "../../src/crypto/Entropy.ts"
import type { JobKind } from "../../src/domain/words/JobKind.ts"
import * as Runner from "../../src/engine/queue/Runner.ts"
import { finalize } from "../../src/operations/acme/Finalize.ts"
import type { Caller } from "../../src/operations/Caller.ts"
import * as crl from "../../src/operations/work/crl/ListPublication.ts"
import type { SigningProfile } from "../../src/services/signing/Backends.ts"
import type { LocalCaSettings } from "../../src/services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../src/services/signing/LocalCa.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import * as certificates from "../../src/store/orders/CertificateRows.ts"
import { handlers } from "../../src/surfaces/jobs/JobHandlers.ts"
import { makeCsr } from "./Csr.ts"
import type { Backend } from "./Databases.ts"
import { freshDirectory } from "./Databases.ts"
import type { Script } from "./Graph.ts"
import { configOf, count, newPrivateKey, orderOf, sql, world } from "./Graph.ts"
import { madeAt, settingsIn, signerOf } from "./LocalCa.ts"
import { offline } from "./Offline.ts"
import type { Making } from "./UseTests.ts"
import { useStore } from "./UseTests.ts"
import { useWorld } from "./UseWorld.ts"
import { watched } from "./Watched.ts"

/* Certificates that the service itself has signed and stored, and the jobs that follow. */

/** Returns the profiles `default` and `other`, which sign with one CA in a directory. */
export const profilesIn = (
  directory: string,
  more: Partial<LocalCaSettings> = {}
): ReadonlyArray<SigningProfile & { readonly name: string }> =>
  ["default", "other"].map((name) => ({ name, signer: signerOf(settingsIn(directory, more)) }))

/** Returns the files of {@link profilesIn} for the exported revocation list and the old ledger. */
export const filesIn = (directory: string) => ({ crl: join(directory, "ca.crl"), ledger: join(directory, "ca.json") })

const config = configOf()

/** Runs due jobs of some kinds with the handlers of a configuration until none is due. */
export const workUnder = (config: Config, ...kinds: ReadonlyArray<JobKind>) =>
  Effect.scoped(Effect.gen(function*() {
    const named = new Set<string>(kinds)
    const wanted = (yield* handlers(config)).filter(({ kind, periodic }) =>
      named.size === 0 ? !periodic : named.has(kind)
    )
    const { idle, pass } = yield* Runner.make({ ...config.jobs, owner: "host:1:a" }, wanted)
    const list = wanted.map(({ kind }) => `'${kind}'`).join()
    for (let round = 0; round < 20; round++) {
      yield* pass
      yield* Effect.orDie(idle)
      const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      const due = `status = 'ready' AND run_at <= ${Math.floor(now / 1000)} AND kind IN (${list})`
      if ((yield* count(`SELECT count(*) FROM jobs WHERE ${due}`)) === 0) return
    }
  }))

/** Runs due jobs of some kinds until none is due. */
export const work = (...kinds: ReadonlyArray<JobKind>) => workUnder(config, ...kinds)

/** Tests in a world with a CA that a worker has already seen. They begin at {@link madeAt}. */
export const useOwnCa = (backend: Backend) =>
  useWorld(backend, {
    around: watched,
    startsAt: madeAt,
    first: () => crl.initialize,
    script: () => ({ profiles: profilesIn(freshDirectory()) })
  })

/**
 * Defines tests with an external signer. No worker has seen the CA of this signer. `revoke` replaces the signer's
 * method for revocations.
 */
export const useForeignSigner = (
  backend: Backend,
  { first, revoke = () => Effect.void }: {
    readonly first?: () => Effect.Effect<void>
    readonly revoke?: NonNullable<Script["revoke"]>
  } = {}
) =>
  useStore(backend, {
    ...(first === undefined ? {} : { first }),
    around: watched,
    startsAt: madeAt,
    layer: ({ name, records, script }: Making<Omit<Script, "issue" | "profiles">>) =>
      Layer.unwrap(Effect.map(
        Effect.provide(
          LocalCa.make(settingsIn(freshDirectory())),
          Layer.merge(Entropy.layerSeeded("foreign"), offline)
        ),
        ({ issue }) => world({ records, seed: name, revoke, ...script, issue })
      ))
  })

/** A certificate that the service has stored. */
export interface IssuedHere {
  readonly orderId: Effect.Success<ReturnType<typeof orderOf>>["id"]
  /** The chain in PEM, leaf first. */
  readonly chain: string
  readonly leaf: X509Certificate
  readonly der: Buffer
  /** The serial number in its stored form. */
  readonly serial: string
  readonly key: KeyObject
}

/** Takes an order of this account from its creation to its certificate, without validation. */
export const issueTo = Effect.fnUntraced(function*(
  caller: Caller,
  names: ReadonlyArray<string>,
  key: KeyObject = newPrivateKey(),
  under: Config = config
) {
  const { id: orderId } = yield* orderOf(caller, ...names)
  yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
  yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
  yield* finalize(caller, orderId, makeCsr({ names, key }).csr.toString("base64url"))
  yield* workUnder(under, "signer_issue")
  const owned = { id: orderId, profile: caller.profile.name, accountId: caller.accountId }
  const { certificate: chain = "" } = (yield* certificates.certificate(owned)) ?? {}
  const leaf = new X509Certificate(chain)
  const issued: IssuedHere = {
    orderId,
    chain,
    leaf,
    der: leaf.raw,
    serial: leaf.serialNumber.toLowerCase(),
    key
  }
  return issued
})
