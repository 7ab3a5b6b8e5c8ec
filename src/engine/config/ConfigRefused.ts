import * as Data from "effect/Data"
import * as Order from "effect/Order"

/** One fault of the configuration: a key, and a sentence that never quotes the value of the key. */
export interface Fault {
  /**
   * The dotted key. If a variable is unknown, this is the name of the variable. If a file is unreadable, it is the path
   * of the file.
   */
  readonly key: string
  readonly message: string
  /** The place where the key was written: `line 3 of config.toml`. Absent if no line of the file contains the key. */
  readonly place?: string | undefined
}

/** Returns a sentence about a key. The place of the key is added to the end of the first line. */
export const withPlace = (sentence: string, place: string | undefined): string =>
  place === undefined ? sentence : sentence.replace(/\.?$/m, (stop) => ` (${place})${stop}`)

const byKey: Order.Order<Fault> = Order.combine(
  Order.mapInput(Order.String, (fault) => fault.key),
  Order.mapInput(Order.String, (fault) => fault.message)
)

/**
 * The configuration cannot be used. The error has every fault that was found, sorted by key. Each line of `message` is
 * one fault: `key: message (place)` (docs/contribute/decisions/configuration.md, "Every fault at once").
 */
export class ConfigRefused extends Data.TaggedError("ConfigRefused")<{
  readonly faults: ReadonlyArray<Fault>
  /** A sentence that is not about a fault, but may explain the faults. */
  readonly advice?: string
}> {
  /**
   * Makes a refusal from faults. Sorts the faults, and drops a fault if another one has the same key and the same
   * sentence.
   */
  static readonly of = (faults: ReadonlyArray<Fault>): ConfigRefused =>
    new ConfigRefused({
      faults: [...new Map(faults.map((fault) => [`${fault.key}: ${fault.message}`, fault])).values()].sort(byKey)
    })

  /** Returns a refusal with the same faults, and with advice before them. */
  advised(advice: string): ConfigRefused {
    return new ConfigRefused({ faults: this.faults, advice })
  }

  /**
   * The advice, if there is any, then a header line, then one line per fault, indented by two blanks. If a fault has
   * several lines, each of them is indented.
   */
  override get message(): string {
    const count = this.faults.length === 1 ? "1 fault" : `${this.faults.length} faults`
    const lines = this.faults.flatMap(({ key, message, place }) => withPlace(`${key}: ${message}`, place).split("\n"))
    const indented = lines.map((line) => line === "" ? "" : `  ${line}`)
    const advice = this.advice === undefined ? [] : [this.advice]
    return [...advice, `The configuration is refused, ${count}:`, ...indented].join("\n")
  }
}
