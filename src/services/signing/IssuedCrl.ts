import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import type { ListUnusable, RevocationList } from "../../crypto/x509/RevocationList.ts"
import { readRevocationList, verifyList } from "../../crypto/x509/RevocationList.ts"
import type { FileUnusable } from "../../engine/host/KeyFile.ts"
import { isTaken, readOctets, replaceFile, said, stampOf } from "../../engine/host/KeyFile.ts"

/* A file on the disk of the worker that records the last list of a CA (docs/contribute/decisions/issued-lists.md). */

/** The record exists but cannot be used, so it is unknown what the CA has revoked. The message names the file. */
export class IssuedCrlUnusable extends Data.TaggedError("IssuedCrlUnusable")<{
  readonly path: string
  readonly detail: string
}> {
  override get message(): string {
    const { detail, path } = this
    return `signer.local_ca.crl_path: ${path}, the record of the list that this CA issued last, cannot be used: ${detail}. ` +
      "The CA revokes nothing and signs no list until you repair this file, or import the newest copy of the list with crl import and then move this file away."
  }
}

/** The list could not be recorded, so it is not published. */
export class IssuedCrlNotWritten extends Data.TaggedError("IssuedCrlNotWritten")<{ readonly error: FileUnusable }> {
  override get message(): string {
    return `the list is recorded before it is published, and ${this.error.message}`
  }
}

/** The record of the last list of one CA. */
export interface IssuedCrl {
  readonly path: string
  /** Returns the octets of the file, or `undefined` if there is no file. */
  readonly read: Effect.Effect<Buffer | undefined, IssuedCrlUnusable>
  /** Reads octets as a list, and verifies the list with the key of the CA. */
  readonly verified: (octets: Uint8Array) => Effect.Effect<RevocationList, IssuedCrlUnusable>
  /** Records a list. If this succeeds, the list is safely on the disk. */
  readonly write: (der: Uint8Array) => Effect.Effect<void, IssuedCrlNotWritten, Entropy>
  /**
   * Returns a sentence that says why the record cannot be used, or `undefined` if it can be used. An unchanged file is
   * not read again.
   */
  readonly trouble: Effect.Effect<string | undefined>
}

const largest = 512 * 1024 * 1024

/** Returns the path of the record for a `signer.local_ca.crl_path`. */
export const issuedPathOf = (crlPath: string): string => `${crlPath}.issued`

/** Makes the record of a CA with this public key. Nothing is read or written yet. */
export const make = (crlPath: string, publicKey: CaMaterial["publicKey"]): IssuedCrl => {
  const path = issuedPathOf(crlPath)
  let good: string | undefined
  const failed = (detail: string) => {
    good = undefined // the path may be a symbolic link, whose target can change while the link does not
    return new IssuedCrlUnusable({ path, detail })
  }
  const read = Effect.catch(
    Effect.map(readOctets(path, largest), ({ octets }): Buffer | undefined => octets),
    (error) =>
      error.reason === "absent"
        ? Effect.flatMap(isTaken(path), (taken) => taken ? failed("it leads to no file") : Effect.succeed(undefined))
        : failed(said(error))
  )
  const verified = (octets: Uint8Array) =>
    readRevocationList(octets).pipe(
      Effect.tap((list) => verifyList(list, publicKey)),
      Effect.mapError(({ detail }: ListUnusable) => failed(octets.length === 0 ? "it is empty" : detail))
    )
  return {
    path,
    read,
    verified,
    write: (content) =>
      Effect.mapError(
        Effect.flatMap(
          Effect.flatMap(Entropy, ({ token }) => token),
          (suffix) => replaceFile({ path, content, mode: 0o644, suffix })
        ),
        (error) => new IssuedCrlNotWritten({ error })
      ),
    trouble: Effect.gen(function*() {
      const stamp = yield* stampOf(path)
      if (stamp !== "" && stamp === good) return undefined
      const octets = yield* read
      if (octets !== undefined) yield* verified(octets)
      good = stamp
      return undefined
    }).pipe(Effect.catch(({ message }) => Effect.succeed(message)))
  }
}
