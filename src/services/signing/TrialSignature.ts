import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { keyPurposes } from "../../crypto/x509/KeyPurpose.ts"
import { makeLeafIssuer, serialFrom } from "../../crypto/x509/Leaf.ts"
import { leafContent } from "../../crypto/x509/LeafContent.ts"
import { lintLeaf } from "../../crypto/x509/Lint.ts"
import { nameConstraintsViolation } from "../../crypto/x509/NameConstraints.ts"
import { generateKey } from "../../crypto/x509/SelfSigned.ts"
import type { Web } from "../../engine/net/Web.ts"
import { currentSeconds, lifeMillis } from "../../engine/Time.ts"
import type { CaFileSettings } from "./CaFiles.ts"
import { CaFilesUnusable, openFiles } from "./CaFiles.ts"
import { isRemote, openRemote } from "./RemoteCa.ts"

/** A signature that the configured key gave for a certificate that nobody gets. */
export interface TrialSignature {
  readonly ca: CaMaterial
  /** The name in the certificate. */
  readonly name: string
  readonly milliseconds: number
}

const content = leafContent({ usages: [keyPurposes.server_auth], policies: [], subject: [] })
const label = "test-sign"
const hour = 3600

/** Returns a name for which the CA may issue, if one of its permitted subtrees has such a name. */
const nameUnder = ({ nameConstraints }: CaMaterial): string =>
  nameConstraints.flatMap(({ permitted = [] }) => permitted)
    .map((base) => `${label}${base.startsWith(".") || base === "" ? base : `.${base}`}`)
    .find((name) => nameConstraintsViolation(nameConstraints, [name]) === undefined) ?? `${label}.invalid`

/**
 * Signs a certificate for a key that is thrown away, with the configured key, and checks it as every leaf is checked.
 * Nothing is stored, and the service need not run.
 */
export const signTrial = (settings: CaFileSettings): Effect.Effect<TrialSignature, CaFilesUnusable, Entropy | Web> =>
  Effect.gen(function*() {
    const { ca, key } = yield* isRemote(settings) ? openRemote(settings) : openFiles(settings)
    const unusable = (detail: string, mayPass = false) =>
      new CaFilesUnusable({ detail: `signer.local_ca: the trial signature failed: ${detail}.`, mayPass })
    const [issuerCertDer = new Uint8Array()] = ca.certificates
    const urls = { crlDistributionPoints: [], caIssuerUrls: [] }
    const issuer = yield* Effect.mapError(
      Effect.fromResult(makeLeafIssuer({ issuerCertDer, ...urls }, key)),
      ({ detail }) => unusable(`the CA has ${detail}`)
    )
    const { spki } = yield* Effect.orDie(generateKey("ecdsa-p256"))
    const entropy = yield* Entropy
    const now = yield* currentSeconds
    const end = ca.firstToEnd.notAfter
    const name = nameUnder(ca)
    const request = {
      spki,
      keyType: "ecdsa" as const,
      names: [name],
      commonName: undefined,
      content,
      serial: serialFrom(yield* entropy.bytes(16)),
      notBefore: Math.max(now - hour, ca.notBefore),
      notAfter: Math.min(now + hour, end)
    }
    const begun = yield* lifeMillis
    const der = yield* Effect.mapError(issuer.build(request), ({ detail }) => unusable(detail, true))
    const milliseconds = (yield* lifeMillis) - begun
    const check = lintLeaf(der, { issuer: { ...ca, notAfter: end, ...urls }, request })
    if (check !== undefined) return yield* unusable(`the certificate failed the check ${check}`)
    return { ca, name, milliseconds }
  })
