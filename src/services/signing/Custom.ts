import * as Effect from "effect/Effect"
import { findLeaf } from "../../crypto/x509/FoundLeaf.ts"
import { isExecutable } from "../../engine/host/Files.ts"
import { Scripts } from "../../engine/host/Scripts.ts"
import { accept, maxChainBytes } from "./ForeignChain.ts"
import type { DirectSigner } from "./Signer.ts"
import { CsrRejected, SigningFailed } from "./Signer.ts"
import type { CustomSettings } from "./SignerScript.ts"
import { ask, badCsrExit } from "./SignerScript.ts"

// The highest number of bytes that are read from the output of revoke. Only the line that says why revoke failed is
// used.
const maxIgnoredBytes = 65_536

const base64 = (der: Uint8Array): string => Buffer.from(der).toString("base64")

/** Makes a signer that signs and revokes with an operator's program. */
export const make = (settings: CustomSettings): Effect.Effect<DirectSigner, never, Scripts> =>
  Effect.map(Scripts, (scripts) => ({
    issue: (request) =>
      Effect.gen(function*() {
        const { csr, kind, names, orderId, validityBound } = request
        const printed = yield* ask(scripts, settings, {
          name: "issue",
          input: {
            order_id: orderId,
            identifiers: names.map((value) => ({ type: "dns", value })),
            csr_der_base64: base64(csr.der),
            certificate_kind: kind.name,
            ...validityBound === undefined ? {} : { max_validity_seconds: validityBound }
          },
          env: { ACME_SIGNER_ORDER_ID: orderId, ACME_SIGNER_IDENTIFIERS: names.join(",") },
          maxBytes: maxChainBytes
        }).pipe(Effect.mapError(({ detail, exit, isTimedOut, printed }) =>
          exit === badCsrExit
            ? new CsrRejected({ detail })
            : new SigningFailed({
              cause: "script_failed",
              detail,
              isTimedOut: isTimedOut === true,
              // The program may have signed a certificate before it failed.
              made: printed === undefined ? undefined : findLeaf(printed.toString("latin1"), csr.spki)?.leaf
            })
        ))
        if (printed.length > maxChainBytes) {
          const made = findLeaf(printed.toString("latin1"), csr.spki)?.leaf
          return yield* new SigningFailed({ cause: "chain_rejected", detail: "the script printed too much", made })
        }
        return yield* accept(`${printed.toString("utf8").trimEnd()}\n`, request, "program")
      }),
    trouble: Effect.map(
      isExecutable(settings.script_path),
      (isIt) => isIt ? undefined : `signer.custom.script_path: ${settings.script_path} is not an executable file.`
    ),
    revoke: (leaf, reason) =>
      ask(scripts, settings, {
        name: "revoke",
        input: { cert_der_base64: base64(leaf), reason: reason ?? null },
        env: { ACME_SIGNER_REASON: reason === undefined ? "" : String(reason) },
        maxBytes: maxIgnoredBytes
      }).pipe(
        Effect.mapError(({ detail }) => new SigningFailed({ cause: "script_failed", detail })),
        Effect.asVoid
      )
  }))
