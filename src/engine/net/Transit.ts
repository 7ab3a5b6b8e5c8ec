import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { splitPem } from "../../crypto/asn1/Pem.ts"
import { sha256Octets } from "../../crypto/Digest.ts"
import { certificatesIn } from "../../crypto/x509/TlsCertificate.ts"
import { oneLine } from "../HiddenText.ts"
import { readSecretFile, readTextFile, said } from "../host/KeyFile.ts"
import { lifeMillis } from "../Time.ts"
import type { Web, WebAnswer } from "./Web.ts"

/* Signs with a key of the Transit engine of OpenBao or of Vault, over HTTP. The key never leaves that server. */

/** Where the key is, and how the server is reached. An empty text, or a version of 0, is not set. */
export interface TransitSettings {
  readonly address: string
  readonly mount: string
  readonly namespace: string
  readonly key: string
  readonly key_version: number
  readonly token_file: string
  readonly ca_path: string
}

/**
 * There is no signature. `detail` is a clause for operators without a secret. `isFault` means that the configuration, or
 * the key that it names, must be changed: no later attempt succeeds.
 */
export class TransitFailed extends Data.TaggedError("TransitFailed")<{
  readonly detail: string
  readonly isFault: boolean
}> {}

/** One version of a key, with its public key as DER SubjectPublicKeyInfo. */
export interface TransitVersion {
  readonly version: number
  readonly spki: Uint8Array
}

/** What the server is asked to sign. */
export interface TransitDigest {
  readonly digestName: "sha256" | "sha384"
  readonly digest: Uint8Array
}

/** A key of the server. */
export interface Transit {
  /** Reads the public keys and chooses a version, unless this is done already. */
  readonly open: Effect.Effect<void, TransitFailed>
  /** Signs a digest: for an elliptic curve the DER of r and s, for RSA that of PKCS#1 v1.5. */
  readonly sign: (asked: TransitDigest) => Effect.Effect<Uint8Array, TransitFailed>
  /** Reports that a signature does not fit. Before the next signature, the public keys are read and judged again. */
  readonly doubt: Effect.Effect<void>
  /** Returns why the key does not sign now. After a failure, this tries to open the key again, with growing waits. */
  readonly trouble: Effect.Effect<string | undefined>
}

/** Signatures that are under way at once. Each has a connection of its own. */
const signaturesAtOnce = 8

const [mostOfKey, mostOfSignature] = [1_048_576, 65_536]
const [firstWaitMillis, longestWaitMillis] = [1000, 60_000]

/** How long the server may take to open the key, and for a signature. */
const usualLimitMillis = 10_000

const failed = (detail: string, isFault = false) => new TransitFailed({ detail, isFault })

const KeyAnswer = Schema.fromJsonString(Schema.Struct({
  data: Schema.Struct({ type: Schema.String, keys: Schema.Record(Schema.String, Schema.Unknown) })
}))
const readKey = Schema.decodeUnknownOption(KeyAnswer)
const readPublicKey = Schema.decodeUnknownOption(Schema.Struct({ public_key: Schema.String }))
const readSignature = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ data: Schema.Struct({ signature: Schema.String }) }))
)
const readErrors = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ errors: Schema.Array(Schema.String) }))
)

const longestErrors = 200

/** Returns what the server says about a failure, without the token. */
const errorsIn = ({ body }: WebAnswer, token: string): string => {
  const { errors } = Option.getOrElse(readErrors(body.toString("utf8")), () => ({ errors: [] }))
  return oneLine(errors.join("; ").replaceAll(token, "***")).slice(0, longestErrors)
}

const spkiOf = (key: unknown): Uint8Array | undefined => {
  const read = Option.getOrUndefined(readPublicKey(key))
  const blocks = read === undefined ? undefined : Result.getOrUndefined(splitPem(read.public_key, "before"))
  return blocks?.find(({ label }) => label === "PUBLIC KEY")?.der
}

/** Returns the versions that have a public key, the newest first. */
const versionsIn = (keys: { readonly [version: string]: unknown }): ReadonlyArray<TransitVersion> =>
  Object.entries(keys).flatMap(([version, key]) => {
    const spki = spkiOf(key)
    return spki === undefined ? [] : [{ version: Number(version), spki }]
  }).sort((one, other) => other.version - one.version)

const signatureIn = (text: string, version: number): Uint8Array | undefined => {
  const [, signedBy, signature = ""] = /^[^:]*:v(\d+):([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  return Number(signedBy) === version ? Buffer.from(signature, "base64") : undefined
}

/** What is signed, and thrown away, to see whether a key that failed signs again. */
const probe: TransitDigest = {
  digestName: "sha256",
  digest: sha256Octets(new TextEncoder().encode("Does this key sign again?"))
}

interface Asked {
  readonly path: string
  readonly body?: object
  readonly maxBytes: number
}

/** Returns what makes a request, and what reads the trusted roots for all requests that follow. */
const makeServer = (
  web: Web["Service"],
  { address, ca_path, namespace, token_file }: TransitSettings
): {
  readonly ask: (asked: Asked) => Effect.Effect<string, TransitFailed>
  readonly readRoots: Effect.Effect<void, TransitFailed>
} => {
  let token: Redacted.Redacted | undefined
  let roots: ReadonlyArray<string> = []

  const readToken = readSecretFile(token_file).pipe(
    Effect.mapBoth({
      onFailure: (error) => failed(`the token file ${error.path} cannot be used: ${said(error)}`),
      onSuccess: ({ text }) => Redacted.make(text)
    })
  )

  const readRoots = Effect.gen(function*() {
    if (ca_path === "") return
    const unusable = (fault: string) => failed(`ca_path: ${ca_path} cannot be used: ${fault}`)
    const { text } = yield* Effect.mapError(readTextFile(ca_path), (error) => unusable(said(error)))
    const found = certificatesIn(text)
    if (found === undefined) return yield* unusable("it holds a certificate that cannot be read")
    if (found.length === 0) return yield* unusable("it holds no certificate in PEM")
    roots = found
  })

  const send = (secret: Redacted.Redacted, { body, maxBytes, path }: Asked) =>
    Effect.mapError(
      web.send({
        method: body === undefined ? "GET" : "POST",
        url: new URL(`${address.replace(/\/+$/, "")}/v1/${path}`),
        headers: {
          "X-Vault-Token": Redacted.value(secret),
          // An agent between the two may require this.
          "X-Vault-Request": "true",
          ...namespace === "" ? {} : { "X-Vault-Namespace": namespace },
          ...body === undefined ? {} : { "Content-Type": "application/json" }
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        roots,
        rootsKey: "ca_path",
        maxBytes
      }),
      ({ detail }) => failed(`the server cannot be asked: ${detail}`)
    )

  /** Sends a request. A token that is refused is read again, because an agent may have replaced it. */
  const ask = Effect.fnUntraced(function*(asked: Asked) {
    const first = token ?? (yield* readToken)
    let used = first
    let answer = yield* send(first, asked)
    if (answer.status === 403) {
      token = undefined
      used = yield* readToken
      if (Redacted.value(used) !== Redacted.value(first)) answer = yield* send(used, asked)
    }
    if (answer.status !== 403) token = used
    if (answer.truncated) return yield* failed(`the server answers with more than ${asked.maxBytes} bytes`)
    if (answer.status === 200) return answer.body.toString("utf8")
    const errors = errorsIn(answer, Redacted.value(used))
    const hint = answer.status === 403
      ? `; the token in ${token_file} does not permit this`
      : answer.status >= 300 && answer.status <= 399
      ? "; redirects are not followed"
      : ""
    return yield* failed(
      `the server answers ${answer.status}${errors === "" ? "" : `: ${errors}`}${hint}`,
      answer.status === 404
    )
  })

  return { ask, readRoots }
}

type Choose = (versions: ReadonlyArray<TransitVersion>) => TransitVersion | string

/** Returns what chooses a version of the key, and what signs with a version. Each is one attempt. */
const makeAttempts = (web: Web["Service"], settings: TransitSettings, choose: Choose) => {
  const { key, key_version, mount } = settings
  const { ask, readRoots } = makeServer(web, settings)
  const where = mount.split("/").map(encodeURIComponent).join("/")
  const named = encodeURIComponent(key)

  const choice = Effect.gen(function*() {
    yield* readRoots
    const text = yield* Effect.mapError(
      ask({ path: `${where}/keys/${named}`, maxBytes: mostOfKey }),
      (error) => error.isFault ? failed(`there is no key ${mount}/${key}; ${error.detail}`, true) : error
    )
    const answer = Option.getOrUndefined(readKey(text))
    if (answer === undefined) return yield* failed("the server answers in a form that is not expected")
    const { keys, type } = answer.data
    const all = versionsIn(keys)
    if (all.length === 0) {
      return yield* failed(`the key ${mount}/${key} is of the type ${oneLine(type)}, which signs nothing`, true)
    }
    const versions = key_version === 0 ? all : all.filter(({ version }) => version === key_version)
    if (versions.length === 0) return yield* failed(`the key ${mount}/${key} has no version ${key_version}`, true)
    const judged = choose(versions)
    return typeof judged === "string" ? yield* failed(judged, true) : judged
  })

  const signWith = Effect.fnUntraced(function*({ version }: TransitVersion, { digest, digestName }: TransitDigest) {
    const text = yield* ask({
      path: `${where}/sign/${named}`,
      body: {
        input: Buffer.from(digest).toString("base64"),
        prehashed: true,
        hash_algorithm: digestName === "sha256" ? "sha2-256" : "sha2-384",
        signature_algorithm: "pkcs1v15",
        marshaling_algorithm: "asn1",
        key_version: version
      },
      maxBytes: mostOfSignature
    })
    const answer = Option.getOrUndefined(readSignature(text))
    const signature = answer === undefined ? undefined : signatureIn(answer.data.signature, version)
    return signature ?? (yield* failed(`the server answers with no signature of version ${version}`))
  })

  return { choice, signWith }
}

/**
 * Makes a key, which is opened when it is first needed. `choose` gets the versions of the key, the newest first, and
 * returns the one that signs, or why there is none. If the settings name a version, there is only this one.
 */
export const makeTransit = (
  web: Web["Service"],
  settings: TransitSettings,
  choose: Choose,
  limitMillis = usualLimitMillis
): Transit => {
  const { choice, signWith } = makeAttempts(web, settings, choose)
  const opening = Semaphore.makeUnsafe(1)
  const turns = Semaphore.makeUnsafe(signaturesAtOnce)
  let opened: TransitVersion | undefined
  let failure: { readonly error: TransitFailed; readonly until: number } | undefined
  let failures = 0
  /** Whether a signature failed since the last one that succeeded. */
  let isDoubted = false

  const limited = <A>(whole: Effect.Effect<A, TransitFailed>) =>
    Effect.timeoutOrElse(whole, {
      duration: limitMillis,
      orElse: () => failed(`the server did not answer within ${limitMillis / 1000} s`)
    })

  const openNow = Effect.gen(function*() {
    const found = yield* choice
    // A server that lets the public key be read may still refuse to sign.
    if (isDoubted) yield* signWith(found, probe)
    return found
  })

  const open = opening.withPermits(1)(Effect.gen(function*() {
    if (opened !== undefined) return opened
    if (failure !== undefined && (yield* lifeMillis) < failure.until) return yield* failure.error
    const tried = yield* Effect.result(limited(openNow))
    if (Result.isFailure(tried)) {
      const wait = Math.min(longestWaitMillis, firstWaitMillis * 2 ** Math.min(failures, 10))
      failures++
      failure = { error: tried.failure, until: (yield* lifeMillis) + wait }
      return yield* tried.failure
    }
    opened = tried.success
    failure = undefined
    failures = 0
    isDoubted = false
    return opened
  }))

  const doubted = (version: TransitVersion) =>
    Effect.sync(() => {
      // Signatures that fail together are one failure.
      if (opened !== version) return
      opened = undefined
      isDoubted = true
    })

  return {
    open: Effect.asVoid(open),
    sign: (asked) =>
      turns.withPermits(1)(
        Effect.flatMap(open, (version) => Effect.tapError(limited(signWith(version, asked)), () => doubted(version)))
      ),
    doubt: Effect.suspend(() => opened === undefined ? Effect.void : doubted(opened)),
    trouble: Effect.suspend(() =>
      opened === undefined
        ? Effect.match(open, { onFailure: ({ detail }) => detail, onSuccess: () => undefined })
        : Effect.succeed(undefined)
    )
  }
}
