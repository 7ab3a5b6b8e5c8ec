import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Entropy } from "../../../crypto/Entropy.ts"
import type { RequestKey } from "../../../crypto/jose/RequestKey.ts"
import { newRequestKey, readRequestKey, signByMac } from "../../../crypto/jose/RequestKey.ts"
import { emit } from "../../../domain/words/Log.ts"
import type { FileUnusable } from "../../../engine/host/KeyFile.ts"
import { readTextFile, removeLeftovers, replaceFile, said, writeNewFile } from "../../../engine/host/KeyFile.ts"
import type { AcmeClient } from "./AcmeClient.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"

/*
 * The relay's own account at the upstream. The account consists of a key, and of its URL in a `.kid` file beside the
 * key.
 */

/** A credential that the upstream issued (external account binding). */
export interface UpstreamCredential {
  readonly kid: string
  readonly hmacKey: Redacted.Redacted<Uint8Array>
}

/** The account cannot be used or created. `detail` is a sentence that names the file or quotes the upstream. */
export class AccountUnusable extends Data.TaggedError("AccountUnusable")<{
  readonly detail: string
  /** Whether a later attempt may succeed, because a file could not be written, or an upstream did not answer. */
  readonly mayPass: boolean
  /** Whether the cause is outside the configuration: a file is missing, or the upstream does not answer or refuses. */
  readonly isOutside?: boolean
  /** The number of seconds that the upstream asks the service to wait. */
  readonly retryAfter?: number | undefined
}> {}

const unusable = (detail: string, mayPass = false) => new AccountUnusable({ detail, mayPass })
/** Returns a failure whose cause is outside the configuration. */
export const outside = (detail: string, mayPass = false) => new AccountUnusable({ detail, mayPass, isOutside: true })
const keyName = "signer.relay.account_key_path"
const about = (error: FileUnusable) => outside(`${keyName}: ${error.path} cannot be used: ${said(error)}.`)

/** Returns the failure for a file of the account that cannot be written. */
export const unwritten = (path: string) => (error: FileUnusable): AccountUnusable =>
  outside(`${keyName}: ${path} cannot be written: ${said(error)}.`, error.reason !== "exists")

/** Returns the path of the file with the account's URL. */
export const kidPathOf = (keyPath: string): string => `${keyPath}.kid`

/** Returns the path of the file with the next key of the account. */
export const nextPathOf = (keyPath: string): string => `${keyPath}.next`

const fileIfPresent = (path: string) =>
  readTextFile(path).pipe(
    Effect.catchIf(({ reason }) => reason === "absent", () => Effect.succeed(undefined)),
    Effect.mapError(about)
  )

/** Returns the text of a file of the account, or `undefined` if there is no such file. */
export const readIfPresent = (path: string) => Effect.map(fileIfPresent(path), (file) => file?.text)

/** Reads the key in a file's text. */
export const parseKey = (path: string, text: string): Effect.Effect<RequestKey, AccountUnusable> =>
  Effect.mapError(readRequestKey(text), ({ reason }) =>
    unusable(
      reason === "unreadable"
        ? `${keyName}: ${path} holds no private key in PEM.`
        : `${keyName}: ${path} holds a key that is not an ECDSA P-256 key.`
    ))

/**
 * Returns the account key, or `undefined` if there is neither a key nor an account. Fails if there is an account
 * without its key.
 */
export const findKey = (path: string): Effect.Effect<RequestKey | undefined, AccountUnusable> =>
  Effect.gen(function*() {
    const file = yield* fileIfPresent(path)
    if (file?.permissive === true) yield* emit("upstream_account_key_permissive", { path })
    if (file !== undefined) return yield* parseKey(path, file.text)
    if ((yield* readIfPresent(kidPathOf(path))) === undefined) return undefined
    return yield* outside(`${keyName}: ${kidPathOf(path)} names an account, but its key ${path} is gone.`)
  })

/**
 * Loads the account key. If there is neither a key nor an account, makes a key. If there is an account without its key,
 * fails and replaces nothing.
 */
export const loadKey = (path: string): Effect.Effect<RequestKey, AccountUnusable, Entropy> =>
  Effect.gen(function*() {
    for (const one of [path, kidPathOf(path), nextPathOf(path)]) yield* removeLeftovers(one)
    const known = yield* findKey(path)
    if (known !== undefined) return known
    const content = yield* newRequestKey
    const entropy = yield* Entropy
    const suffix = yield* entropy.token
    yield* Effect.mapError(
      writeNewFile({ path, content, mode: 0o600, suffix }),
      unwritten(path)
    )
    // The new key is read back in the same way as at later startups.
    return yield* parseKey(path, content)
  })

/** Returns the stored URL of the account, or `undefined` if the account has not been registered yet. */
export const readKid = (keyPath: string): Effect.Effect<string | undefined, AccountUnusable> =>
  Effect.map(readIfPresent(kidPathOf(keyPath)), (text) => text?.trim())

/** Returns the binding of a key to a credential that the upstream issued (RFC 8555 section 7.3.4). */
const bindingOf = ({ jwk }: RequestKey, url: string, { hmacKey, kid }: UpstreamCredential) =>
  signByMac(Redacted.value(hmacKey), { kid, url }, JSON.stringify(jwk))

/**
 * Registers the key at the upstream (RFC 8555 section 7.3), or finds the account that the key already has. Returns the
 * URL of the account.
 */
export const register = (
  client: AcmeClient,
  contact: ReadonlyArray<string>,
  credential: UpstreamCredential | undefined
): Effect.Effect<string, UpstreamFailed | AccountUnusable> =>
  Effect.gen(function*() {
    const { newAccount, termsOfService } = yield* client.directory
    // This finds the account of a key whose `.kid` file was lost. Even an upstream that requires credentials does not
    // require one for this request.
    const known = yield* Effect.catchTag(
      client.probe("newAccount", newAccount, { onlyReturnExisting: true }, "jwk"),
      "UpstreamRefused",
      () => Effect.succeed({ location: undefined })
    )
    const { location } = known.location !== undefined ? known : yield* client.post("newAccount", newAccount, {
      ...(contact.length === 0 ? {} : { contact }),
      ...(termsOfService === undefined ? {} : { termsOfServiceAgreed: true }),
      ...(credential === undefined ? {} : {
        externalAccountBinding: yield* bindingOf(client.key, newAccount, credential)
      })
    }, "jwk")
    return location ??
      (yield* outside("signer.relay.directory_url: the upstream made an account but does not tell its URL."))
  })

const kept =
  (write: typeof writeNewFile) => (keyPath: string, kid: string): Effect.Effect<void, AccountUnusable, Entropy> =>
    Effect.gen(function*() {
      const entropy = yield* Entropy
      const suffix = yield* entropy.token
      const path = kidPathOf(keyPath)
      yield* Effect.mapError(
        write({ path, content: `${kid}\n`, mode: 0o600, suffix }),
        unwritten(path)
      )
    })

/** Stores the account's URL, unless a URL is already stored. */
export const writeKid = kept(writeNewFile)

/** Replaces a stored URL that the upstream no longer knows. */
export const replaceKid = kept(replaceFile)

/** Returns the text that tells an operator that the upstream has lost the account. */
export const accountLost = (profile: string, keyPath: string, detail: string): string =>
  `the upstream does not know the account in ${kidPathOf(keyPath)} any more (${
    withoutStop(detail)
  }); \`acme-svc upstream register --profile ${profile}\` registers its key there again`

/** Returns remote text without its final full stop, for use within a sentence. */
export const withoutStop = (text: string): string => text.replace(/[.\s]+$/, "")

/**
 * Returns what an operator can do if an upstream requires a credential, or refused one. Upstreams refuse credentials
 * with many different problem types, so any refusal of a request with a credential may be about the credential.
 */
const wayOut = (error: UpstreamFailed, profile: string, credential: UpstreamCredential | undefined): string => {
  if (error._tag !== "UpstreamRefused") return ""
  const command = `acme-svc upstream register --profile ${profile} --eab-kid KID`
  if (credential !== undefined) {
    return `; the service sent the credential ${credential.kid} of signer.relay.eab: if the upstream refuses this credential, correct signer.relay.eab.hmac_key and signer.relay.eab.kid, or give another credential to \`${command}\``
  }
  return error.type === "externalAccountRequired"
    ? `; the upstream requires a credential: give it to \`${command}\`, or set signer.relay.eab`
    : ""
}

/** Returns the stored URL of the account. If there is none, registers at the upstream and stores the URL. */
export const open = (options: {
  readonly client: AcmeClient
  readonly profile: string
  readonly keyPath: string
  readonly directoryUrl: string
  readonly contact: ReadonlyArray<string>
  readonly credential: UpstreamCredential | undefined
}): Effect.Effect<string, AccountUnusable, Entropy> =>
  Effect.gen(function*() {
    const { client, contact, credential, directoryUrl, keyPath, profile } = options
    const kept = yield* readKid(keyPath)
    const facts = { profile, target_host: new URL(directoryUrl).host }
    if (kept !== undefined && kept !== "") {
      yield* emit("upstream_account_reused", facts)
      return kept
    }
    const kid = yield* Effect.mapError(
      register(client, contact, credential),
      (error) =>
        error._tag === "AccountUnusable"
          ? error
          : new AccountUnusable({
            detail: `signer.relay.directory_url: the upstream makes no account: ${withoutStop(error.detail)}${
              wayOut(error, profile, credential)
            }.`,
            mayPass: error._tag === "UpstreamUnavailable",
            isOutside: true,
            retryAfter: error._tag === "UpstreamUnavailable" ? error.retryAfter : undefined
          })
    )
    // A blank file contains no URL, but its existence would prevent a new file from being written.
    yield* (kept === undefined ? writeKid : replaceKid)(keyPath, kid)
    yield* emit("upstream_registered", facts)
    return kid
  })

/** Returns whether the file with the key exists. */
export const hasKey = (keyPath: string): Effect.Effect<boolean, AccountUnusable> =>
  Effect.map(readIfPresent(keyPath), (text) => text !== undefined)
