import * as Effect from "effect/Effect"
import { leafCommonName } from "../../crypto/x509/Csr.ts"
import type { NameConstraints } from "../../crypto/x509/NameConstraints.ts"
import { nameConstraintsViolation, permitsSubject } from "../../crypto/x509/NameConstraints.ts"
import type { IssueRequest } from "./Signer.ts"
import { CsrRejected } from "./Signer.ts"

/* The names that the name constraints of a CA permit (RFC 5280 section 4.2.1.10). */

const COMMON_NAME = "2.5.4.3"

/** Returns the common name of a leaf. Refuses names and a subject that the name constraints of the CA forbid. */
export const permittedCommonName = Effect.fnUntraced(
  function*(
    constraints: ReadonlyArray<NameConstraints>,
    { csr, kind, names }: Pick<IssueRequest, "csr" | "kind" | "names">
  ) {
    const foreign = nameConstraintsViolation(constraints, names)
    if (foreign !== undefined) {
      return yield* new CsrRejected({ detail: `The CA may not issue for ${foreign}: its name constraints forbid it.` })
    }
    const { subject } = kind.content
    const commonName = leafCommonName(
      csr,
      names,
      kind.commonName,
      (name) => permitsSubject(constraints, [...subject, { type: COMMON_NAME, value: name }])
    )
    if (commonName === undefined && !permitsSubject(constraints, subject)) {
      return yield* new CsrRejected({
        detail: `The CA may not issue with the subject of the kind ${kind.name}: its name constraints forbid it.`
      })
    }
    return commonName
  }
)
