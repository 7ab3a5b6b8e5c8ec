import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { parseAddress } from "../../src/engine/net/Address.ts"
import { AlpnPeer } from "../../src/engine/net/AlpnPeer.ts"
import { ConnectFailed, TlsFailed } from "../../src/engine/net/Connect.ts"
import { HttpGet } from "../../src/engine/net/HttpGet.ts"
import { ResolveFailed, Resolver } from "../../src/engine/net/Resolver.ts"
import type { Signers } from "../../src/services/signing/Signer.ts"
import type { Machine, Process } from "./Machine.ts"
import { Program } from "./Program.ts"
import type { Random } from "./Random.ts"

/*
 * The hosts of clients as the service sees them: a DNS server that is slow or returns wrong answers, and web servers
 * with the proofs that clients publish.
 */

/** A proof that a client has published. */
interface Proof {
  readonly name: string
  readonly keyAuthorization: string
  /** Whether the text is what the challenge requires. */
  readonly isRight: boolean
}

/** Names below this one never validate, because their servers do not answer within any time limit. */
export const stuckZone = "flood.example.org"
const stuckMillis = 120_000

const hostAddress = "203.0.113.10"
const strangerAddress = "203.0.113.66"

/**
 * The outside world of a run, which keeps, for each token, every answer that the service saw and that may count as a
 * proof.
 */
export class World {
  readonly #http = new Map<string, Proof>()
  readonly #txt = new Map<
    string,
    ReadonlyArray<{ readonly token: string; readonly text: string; readonly isRight: boolean }>
  >()
  /** The tokens of the proofs that the service saw. */
  readonly shown = new Set<string>()
  readonly #machine: Machine
  readonly #random: Random
  /** How often the outside world fails. */
  malice: number
  /** The program that signs for the profile `other`. */
  readonly program: Program

  constructor(machine: Machine, random: Random, malice: number) {
    this.#machine = machine
    this.#random = random
    this.malice = malice
    this.program = new Program(machine, random, () => this.malice)
  }

  /** Puts the proof of a challenge where the service will look for it. */
  provide(type: string, token: string, proof: Proof): void {
    if (type === "http-01") this.#http.set(`${proof.name} ${token}`, proof)
    else {
      const text = createHash("sha256").update(proof.keyAuthorization).digest("base64url")
      const at = `_acme-challenge.${proof.name}`
      this.#txt.set(at, [...this.#txt.get(at) ?? [], { token, text, isRight: proof.isRight }])
    }
  }

  #slowly<A, E>(answer: () => Effect.Effect<A, E>, name = ""): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const usual = this.#random.chance(this.malice) ? this.#random.between(500, 20_000) : this.#random.between(1, 30)
      const millis = name.endsWith(stuckZone) ? stuckMillis : usual
      return Effect.andThen(this.#passing(millis), Effect.suspend(answer))
    })
  }

  #passing(millis: number): Effect.Effect<void> {
    return Effect.callback((resume) => this.#machine.after(millis, () => resume(Effect.void)))
  }

  /**
   * Returns the signers of a process. Each signer takes some time, as a signer outside the process does. A program
   * signs for the profile `other`.
   */
  readonly signing = (signers: Signers["Service"], process: Process): Signers["Service"] => ({
    ...signers,
    of: (profile) =>
      Effect.map(signers.of(profile), (signer) => {
        if (signer.issue === undefined) return signer
        if (profile === "other") return this.program.asked(signer, process)
        const { issue } = signer
        const passing = Effect.suspend(() => this.#passing(this.#random.between(1, 30)))
        return { ...signer, issue: (request) => Effect.andThen(passing, issue(request)) }
      })
  })

  /** Returns the outside world in the form that the validators use. */
  readonly layer = (): Layer.Layer<Resolver | HttpGet | AlpnPeer> => {
    const addresses: Resolver["Service"]["addresses"] = (name) =>
      this.#slowly(() => {
        if (this.#random.chance(this.malice)) return new ResolveFailed({ name, code: "ESERVFAIL" })
        const found = this.#random.chance(this.malice)
          ? this.#random.pick([[], [strangerAddress], [strangerAddress, hostAddress]])
          : [hostAddress]
        return Effect.succeed(found.flatMap((text) => {
          const parsed = parseAddress(text)
          return parsed._tag === "Some" ? [parsed.value] : []
        }))
      }, name)
    return Layer.mergeAll(
      Layer.succeed(Resolver, {
        addresses,
        timedAddresses: (name) => Effect.map(addresses(name), (found) => ({ addresses: found, seconds: 0 })),
        pointers: () => Effect.succeed([]),
        texts: (name) =>
          this.#slowly(() => {
            if (this.#random.chance(this.malice)) return new ResolveFailed({ name, code: "ETIMEOUT" })
            if (this.#random.chance(this.malice)) return Effect.succeed(["something else"])
            const records = this.#txt.get(name) ?? []
            for (const { isRight, token } of records) if (isRight) this.shown.add(token)
            return Effect.succeed(records.map(({ text }) => text))
          }, name)
      }),
      HttpGet.layerScripted(({ address, host, path }) =>
        this.#slowly(() => {
          if (this.#random.chance(this.malice)) return new ConnectFailed({ detail: "planted" })
          const token = path.split("/").at(-1) ?? ""
          const proof = this.#http.get(`${host} ${token}`)
          const isThere = proof !== undefined && address === hostAddress && !this.#random.chance(this.malice)
          if (isThere && proof.isRight) this.shown.add(token)
          return Effect.succeed({
            status: isThere ? 200 : 404,
            location: undefined,
            body: Buffer.from(isThere ? proof.keyAuthorization : "no such page"),
            truncated: false
          })
        })
      ),
      AlpnPeer.layerScripted(() => new TlsFailed({ detail: "nothing speaks TLS here" }))
    )
  }
}
