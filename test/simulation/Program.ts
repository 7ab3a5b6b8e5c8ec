import { Effect } from "effect"
import type { Issued, Signer } from "../../src/services/signing/Signer.ts"
import { SigningFailed } from "../../src/services/signing/Signer.ts"
import type { Machine, Process } from "./Machine.ts"
import type { Random } from "./Random.ts"

/*
 * A program of the operator that signs. The program is sometimes so slow that an order ends while it signs. For an
 * order that already has a certificate, the program returns the same certificate again. The program records the
 * certificates that it signed, the processes that got them, and the revocations.
 */

/** A certificate that a process got. */
interface Given {
  readonly order: string
  readonly serial: string
  readonly process: Process
  /** Milliseconds of the machine's time. */
  readonly at: number
}

/** The milliseconds within which a process must report what happened to a certificate that it got. */
const settledWithin = 120_000

const bare = (serial: string): string => serial.toLowerCase().replace(/^0+/, "")

/** The program that all processes share. */
export class Program {
  readonly #signed = new Map<string, Issued>()
  readonly #given: Array<Given> = []
  readonly #ended = new Map<Process, number>()
  /** Serial numbers that the program was asked to revoke. */
  readonly revoked = new Set<string>()
  readonly #machine: Machine
  readonly #random: Random
  readonly #malice: () => number

  constructor(machine: Machine, random: Random, malice: () => number) {
    this.#machine = machine
    this.#random = random
    this.#malice = malice
  }

  /** Returns the signer with which a process calls this program. The program signs with the CA of the given signer. */
  asked(signer: Extract<Signer, { readonly relay?: undefined }>, process: Process): Signer {
    process.onKilled.add(() => this.#ended.set(process, this.#machine.now))
    const passing = (least: number, most: number) =>
      Effect.callback<void>((resume) =>
        this.#machine.after(this.#random.between(least, most), () => resume(Effect.void))
      )
    const slowly = Effect.suspend(() => this.#random.chance(this.#malice()) ? passing(1000, 90_000) : passing(1, 30))
    return {
      ...signer,
      issue: (request) =>
        Effect.gen({ self: this }, function*() {
          const known = this.#signed.get(request.orderId)
          const issued = known ?? (yield* signer.issue(request))
          const { chain, notAfter, serial } = issued
          this.#signed.set(request.orderId, issued)
          yield* slowly
          this.#given.push({ order: request.orderId, serial: bare(serial), process, at: this.#machine.now })
          return { chain, notAfter, serial }
        }),
      revoke: (leaf) =>
        Effect.suspend(() => {
          if (this.#random.chance(this.#malice())) {
            return new SigningFailed({ cause: "script_failed", detail: "the HSM is away" })
          }
          for (const { chain, serial } of this.#signed.values()) {
            const body = chain.slice(chain.indexOf("\n"), chain.indexOf("-----END")).replaceAll("\n", "")
            if (Buffer.from(leaf).toString("base64") === body) this.revoked.add(bare(serial))
          }
          return Effect.void
        })
    }
  }

  /** Certificates whose process has lived long enough to report what happened to them. */
  settled(): ReadonlyArray<{ readonly order: string; readonly serial: string }> {
    return this.#given.filter(({ at, process }) => (this.#ended.get(process) ?? Infinity) - at > settledWithin)
  }
}
